//! What is known of the nodes around one that is met: those before it in z, y and x.

use super::node::{Node, REACH, Tree};

/// States of a node: not met, not there but a larger cell in its place, a cell, a node whose children all are
/// cells; then records of nodes that are refined further.
const UNKNOWN: u32 = 0;
const LARGER: u32 = 1;
const CELL: u32 = 2;
const REFINED: u32 = 3;
const RECORDS: u32 = 4;
/// States that are told apart.
pub(super) const STATES: usize = 5;

/// A node that has children which are refined.
#[derive(Default)]
struct Record {
    children: [u32; 8],
    /// The nodes before it in z, y and x.
    before: [u32; 3],
}

/// Nodes that were met.
pub(super) struct Around {
    records: Vec<Record>,
    /// The records from the root of all to the last node that was entered.
    path: Vec<u32>,
    /// Levels above the coarsest.
    above: u32,
    /// The last node's index on the coarsest level.
    base: [u64; 3],
    most: usize,
}

impl Around {
    /// None, of a tree with so many cells.
    pub fn new(tree: &Tree, cells: usize) -> Self {
        Self {
            records: Vec::new(),
            path: Vec::new(),
            above: REACH - tree.depth + 1,
            base: [0; 3],
            most: cells,
        }
    }

    /// Goes to the parent of a node, wherever it is.
    pub fn jump(&mut self, node: &Node) {
        if self.records.len() > self.most {
            self.records.clear();
        }
        if self.records.is_empty() {
            self.records.push(Record::default());
        }
        self.path.clear();
        self.path.push(0);
        self.base = node.place.map(|n| n >> node.level);
        self.descend(node);
    }

    /// Goes to the parent of a node that follows the last one.
    pub fn follow(&mut self, node: &Node) {
        let base = node.place.map(|n| n >> node.level);
        if base != self.base {
            let differ = (0..3).map(|d| u64::BITS - (base[d] ^ self.base[d]).leading_zeros());
            let kept = self.above.saturating_sub(differ.max().unwrap_or(0));
            self.path.truncate(kept as usize + 1);
            self.base = base;
            self.descend(node);
        } else {
            self.path.truncate((self.above + node.level) as usize);
        }
    }

    /// Follows a path down to the parent of a node.
    fn descend(&mut self, node: &Node) {
        let levels = self.above + node.level;
        for number in self.path.len() as u32..levels {
            let ancestor = node.place.map(|n| n >> (levels - number));
            let child = Node {
                level: 0,
                place: ancestor,
            }
            .child();
            self.enter(child);
        }
    }

    /// Makes a child of the last node of the path the last one.
    pub fn enter(&mut self, child: usize) {
        let parent = self.path.last().map_or(0, |last| *last as usize);
        let mut state = self.records[parent].children[child];
        if state < RECORDS {
            let before = self.before(child);
            state = self.records.len() as u32 + RECORDS;
            self.records.push(Record {
                children: [UNKNOWN; 8],
                before,
            });
            self.records[parent].children[child] = state;
        }
        self.path.push(state - RECORDS);
    }

    /// The states of the nodes before a child of the last node of the path, in z, y and x.
    fn before(&self, child: usize) -> [u32; 3] {
        let parent = self.path.last().map_or(0, |last| *last as usize);
        let parent = &self.records[parent];
        std::array::from_fn(|d| {
            let bit = 4 >> d;
            if child & bit != 0 {
                return parent.children[child ^ bit];
            }
            match parent.before[d] {
                UNKNOWN => UNKNOWN,
                LARGER | CELL => LARGER,
                REFINED => CELL,
                record => self.records[(record - RECORDS) as usize].children[child ^ bit],
            }
        })
    }

    /// A number for what is known of the nodes before a child of the last node of the path.
    pub fn number(&self, child: usize) -> usize {
        let states = self.before(child).map(|state| state.min(RECORDS) as usize);
        states
            .iter()
            .fold(0, |number, state| number * STATES + state)
    }

    /// Takes note of a child of the last node of the path: a cell, or one whose children all are cells.
    pub fn met(&mut self, child: usize, refined: bool) {
        let parent = self.path.last().map_or(0, |last| *last as usize);
        self.records[parent].children[child] = if refined { REFINED } else { CELL };
    }
}
