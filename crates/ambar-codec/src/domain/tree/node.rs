//! Nodes of a tree, and their order along its Morton curve.

/// Indices on the finest level are below 2 to this.
pub(super) const REACH: u32 = 42;

/// A node: its level, 0 being the coarsest of the cells, and its index there, in z, y, x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub level: u32,
    pub place: [u64; 3],
}

impl Node {
    /// The node's number among its siblings: bit 0 is that of x.
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

    /// The largest node that begins where this one ends; `None` at the end of the curve.
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
            // Above the coarsest level there are no nodes, but the curve goes on.
            if level > 0 {
                level -= 1;
            } else {
                above += 1;
            }
            if above > REACH {
                return None;
            }
        }
    }

    /// Whether the first point of `other` is the first of this node, which is not smaller.
    pub fn begins(&self, other: &Self) -> bool {
        other.level >= self.level
            && self.place.map(|n| n << (other.level - self.level)) == other.place
    }
}

/// What nodes there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub dimensions: usize,
    /// The finest level.
    pub depth: u32,
}

impl Tree {
    /// Whether a node lies where nodes may lie.
    pub fn holds(&self, node: Node) -> bool {
        let unused = &node.place[..3 - self.dimensions];
        node.level <= self.depth
            && node
                .place
                .iter()
                .all(|n| n >> (REACH - (self.depth - node.level)) == 0)
            && unused.iter().all(|n| *n == 0)
    }

    /// Whether a node's first point comes before that of another along the curve.
    pub fn precedes(&self, one: &Node, other: &Node) -> bool {
        let corner = |node: &Node| node.place.map(|n| n << (self.depth - node.level));
        let (one, other) = (corner(one), corner(other));
        let bits = |d: usize| u64::BITS - (one[d] ^ other[d]).leading_zeros();
        // The dimension of the highest bit that differs; of equal ones the slowest.
        let d = (0..3).rev().max_by_key(|d| bits(*d)).unwrap_or(0);
        one[d] < other[d]
    }
}
