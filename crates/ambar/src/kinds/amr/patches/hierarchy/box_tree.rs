//! A bounding volume hierarchy of boxes: finds the boxes that overlap a region.

use super::IndexBox;

/// Maximum number of boxes of a leaf of the tree.
const LEAF: usize = 8;

/// Boxes of one level, halved recursively along their longest side.
#[derive(Debug, Default)]
pub(crate) struct BoxTree {
    /// The boxes and their indices in the input list; every node has a range of them.
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

    /// Calls `visit` with the index of each box that overlaps `region`, and the intersection.
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
