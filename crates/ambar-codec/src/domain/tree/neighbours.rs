//! Contexts of the tree topology: the states of the nodes before a node in z, y and x.

use super::node::{Node, POSITION_BITS, Tree};

/// States of a node: not traversed; part of a larger cell; a cell; a node whose children are all cells. Larger states are
/// the indices of records of nodes that are refined further, plus `RECORDS`.
const UNKNOWN: u32 = 0;
const LARGER: u32 = 1;
const CELL: u32 = 2;
const REFINED: u32 = 3;
const RECORDS: u32 = 4;
/// The number of states of a context, in which all records are one state.
pub(super) const NEIGHBOUR_STATES: usize = 5;

/// A node with refined children.
#[derive(Default)]
struct Record {
    children: [u32; 8],
    /// The states of the nodes before it in z, y and x.
    before: [u32; 3],
}

/// The states of traversed nodes.
pub(super) struct NeighbourStates {
    records: Vec<Record>,
    /// The records from the common root to the last entered node.
    path: Vec<u32>,
    /// The number of levels above the coarsest.
    above: u32,
    /// The indices of the last node on the coarsest level.
    base: [u64; 3],
    /// Records are discarded above this number, which bounds the memory.
    max_records: usize,
}

impl NeighbourStates {
    /// For a tree with this number of cells, none of which has been traversed.
    pub fn new(tree: &Tree, cells: usize) -> Self {
        Self {
            records: Vec::new(),
            path: Vec::new(),
            above: POSITION_BITS - tree.depth + 1,
            base: [0; 3],
            max_records: cells,
        }
    }

    /// Enters the parent of any node.
    pub fn jump(&mut self, node: &Node) {
        if self.records.len() > self.max_records {
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

    /// Enters the parent of the node that follows the last one.
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

    /// Enters nodes from the end of the path to the parent of a node.
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

    /// Appends a child of the last node to the path.
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

    /// The context of a child of the last node of the path.
    pub fn context(&self, child: usize) -> usize {
        let states = self.before(child).map(|state| state.min(RECORDS) as usize);
        states
            .iter()
            .fold(0, |context, state| context * NEIGHBOUR_STATES + state)
    }

    /// Records a child of the last node of the path: a cell, or a node whose children are all cells.
    pub fn record(&mut self, child: usize, is_refined: bool) {
        let parent = self.path.last().map_or(0, |last| *last as usize);
        self.records[parent].children[child] = if is_refined { REFINED } else { CELL };
    }
}
