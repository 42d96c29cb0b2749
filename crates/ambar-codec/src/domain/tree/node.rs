//! Nodes of a tree, and their order along its Morton curve.

/// Indices on the finest level are below 2 to the power of this.
pub(super) const POSITION_BITS: u32 = 42;

/// A node: its level, where 0 is that of the coarsest cell, and its indices there in z, y, x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub level: u32,
    pub place: [u64; 3],
}

impl Node {
    /// The number of the node among its siblings: bit 0 is the parity of x.
    pub fn child(&self) -> usize {
        let [z, y, x] = self.place.map(|n| (n & 1) as usize);
        x | y << 1 | z << 2
    }

    /// The child with a number.
    pub fn child_of(&self, number: usize) -> Self {
        let [z, y, x] = self.place.map(|n| n << 1);
        let bit = |d: usize| (number >> d & 1) as u64;
        Self {
            level: self.level + 1,
            place: [z | bit(2), y | bit(1), x | bit(0)],
        }
    }

    /// The largest node that begins at the end of this one; `None` at the end of the curve.
    pub fn next(self, tree: &Tree) -> Option<Self> {
        let Self {
            mut level,
            mut place,
        } = self;
        let mut above = 0;
        loop {
            let child = Self { level, place }.child() + 1;
            if child >> tree.dimensions == 0 {
                for (d, n) in place.iter_mut().enumerate() {
                    *n = (*n & !1 | (child >> (2 - d) & 1) as u64) << above;
                }
                let next = Self { level, place };
                return tree.holds(next).then_some(next);
            }
            place = place.map(|n| n >> 1);
            // The curve continues in other root nodes.
            if level > 0 {
                level -= 1;
            } else {
                above += 1;
            }
            if above > POSITION_BITS {
                return None;
            }
        }
    }

    /// Whether this node contains `other`, and begins at the same point.
    pub fn begins(&self, other: &Self) -> bool {
        other.level >= self.level
            && self.place.map(|n| n << (other.level - self.level)) == other.place
    }
}

/// The nodes that a tree may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub dimensions: usize,
    /// The finest level.
    pub depth: u32,
}

impl Tree {
    /// Whether the tree may have a node.
    pub fn holds(&self, node: Node) -> bool {
        let unused = &node.place[..3 - self.dimensions];
        node.level <= self.depth
            && node
                .place
                .iter()
                .all(|n| n >> (POSITION_BITS - (self.depth - node.level)) == 0)
            && unused.iter().all(|n| *n == 0)
    }

    /// Whether the first point of a node precedes that of another on the curve.
    pub fn precedes(&self, one: &Node, other: &Node) -> bool {
        let corner = |node: &Node| node.place.map(|n| n << (self.depth - node.level));
        let (one, other) = (corner(one), corner(other));
        let bits = |d: usize| u64::BITS - (one[d] ^ other[d]).leading_zeros();
        // The dimension of the highest different bit; the slowest of several.
        let d = (0..3).rev().max_by_key(|d| bits(*d)).unwrap_or(0);
        one[d] < other[d]
    }
}
