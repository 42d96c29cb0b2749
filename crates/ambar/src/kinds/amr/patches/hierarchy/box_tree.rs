//! Boxes in a tree, so that those that meet a region are found without looking at all.

use super::IndexBox;

/// Boxes of a leaf of the tree at most.
const LEAF: usize = 8;

/// Boxes of one level, halved along their longest side again and again.
#[derive(Debug, Default)]
pub(crate) struct BoxTree {
    /// The boxes and their places in the list they came in; every node has a range of them.
    boxes: Vec<(IndexBox, u32)>,
    /// The box around each node's boxes; the children of node `i` are `2 i + 1` and `2 i + 2`.
    around: Vec<IndexBox>,
}

impl BoxTree {
    pub fn new(boxes: &[IndexBox]) -> Self {
        let mut tree = Self {
            boxes: boxes.iter().copied().zip(0..).collect(),
            around: Vec::new(),
        };
        if !boxes.is_empty() {
            build(&mut tree.boxes, 0, &mut tree.around);
        }
        tree
    }

    /// Calls `visit` with the place of each box that meets `region`, and what both hold.
    pub fn meet(&self, region: &IndexBox, visit: &mut impl FnMut(usize, IndexBox)) {
        self.descend(0, &self.boxes, region, visit);
    }

    fn descend(
        &self,
        node: usize,
        boxes: &[(IndexBox, u32)],
        region: &IndexBox,
        visit: &mut impl FnMut(usize, IndexBox),
    ) {
        let around = self.around.get(node);
        if around.is_none_or(|around| around.intersection(region).is_empty()) {
            return;
        }
        if boxes.len() <= LEAF {
            for (index_box, place) in boxes {
                let part = index_box.intersection(region);
                if !part.is_empty() {
                    visit(*place as usize, part);
                }
            }
            return;
        }
        let (left, right) = boxes.split_at(boxes.len() / 2);
        self.descend(2 * node + 1, left, region, visit);
        self.descend(2 * node + 2, right, region, visit);
    }
}

/// Sorts the boxes of `node` into its children.
fn build(boxes: &mut [(IndexBox, u32)], node: usize, around: &mut Vec<IndexBox>) {
    let mut all = boxes[0].0;
    for (index_box, _) in &*boxes {
        for d in 0..3 {
            all.lo[d] = all.lo[d].min(index_box.lo[d]);
            all.hi[d] = all.hi[d].max(index_box.hi[d]);
        }
    }
    if around.len() <= node {
        around.resize(node + 1, all);
    }
    around[node] = all;
    if boxes.len() <= LEAF {
        return;
    }
    let longest = (0..3).max_by_key(|d| all.hi[*d] - all.lo[*d]).unwrap_or(0);
    let half = boxes.len() / 2;
    boxes.select_nth_unstable_by_key(half, |(index_box, place)| {
        (index_box.lo[longest] + index_box.hi[longest], *place)
    });
    let (left, right) = boxes.split_at_mut(half);
    build(left, 2 * node + 1, around);
    build(right, 2 * node + 2, around);
}
