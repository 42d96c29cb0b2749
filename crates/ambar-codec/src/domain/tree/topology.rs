//! The topology of a tree: its leaf cells along the Morton curve, as a few entropy-coded bits per node.
//!
//! The cells are runs that are contiguous on the curve. Each run begins with the position of its first cell. Then, one
//! bit states for each node where a cell may begin whether it is refined; its context is the states of its neighbours.

use super::neighbours::{NEIGHBOUR_STATES, NeighbourStates};
use super::node::{Node, Tree};
use super::siblings::SiblingCollector;
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, NumberModel, Probability};
use crate::error::{Error, Result, corrupt, invalid};
use std::ops::Range;

/// The finest levels have different probabilities; coarser levels use those of the last.
const LEVEL_CLASSES: usize = 4;

/// The error of a cell outside of its tree.
fn out_of_tree(row: usize, cell: &Node) -> Error {
    invalid!(
        "cell {row} has the indices {:?} (z, y, x) on level {}; expected indices from 0 to 2^42 of the finest \
         level, and 0 in dimensions that the tree lacks",
        cell.place,
        cell.level
    )
}

/// Probabilities that nodes are refined, by their contexts.
struct Model {
    depth: u32,
    neighbours: NeighbourStates,
    is_refined: Vec<Probability>,
    has_refined_child: Vec<Probability>,
}

impl Model {
    fn new(tree: &Tree, cells: usize) -> Self {
        let probabilities =
            vec![
                Probability::default();
                LEVEL_CLASSES * NEIGHBOUR_STATES * NEIGHBOUR_STATES * NEIGHBOUR_STATES
            ];
        Self {
            depth: tree.depth,
            neighbours: NeighbourStates::new(tree, cells),
            is_refined: probabilities.clone(),
            has_refined_child: probabilities,
        }
    }

    /// The index of the probabilities of a node above the finest level.
    fn context(&self, node: &Node) -> usize {
        let kind = (self.depth - 1 - node.level).min(LEVEL_CLASSES as u32 - 1) as usize;
        kind * NEIGHBOUR_STATES * NEIGHBOUR_STATES * NEIGHBOUR_STATES
            + self.neighbours.context(node.child())
    }
}

/// The bits of nodes: an encoder knows them, a decoder reads them.
trait RefinementBits {
    /// Whether the node that begins at `row` is refined.
    fn is_refined(&mut self, probability: &mut Probability, node: &Node, row: usize) -> bool;
    /// Whether any child of the node that begins at `row` is refined.
    fn has_refined_child(&mut self, probability: &mut Probability, node: &Node, row: usize)
    -> bool;
}

/// Traverses a run of cells along the curve, from the cell `first`. Returns the node that begins at its end.
fn traverse_run(
    (tree, model): (&Tree, &mut Model),
    first: Node,
    rows: Range<usize>,
    bits: &mut impl RefinementBits,
    to: &mut SiblingCollector,
) -> Result<Option<Node>> {
    let (mut row, end) = (rows.start + 1, rows.end);
    model.neighbours.jump(&first);
    model.neighbours.record(first.child(), false);
    to.add(&first, rows.start);
    let (all, mut next) = (1 << tree.dimensions, first.next(tree));
    while row < end {
        let mut at = next
            .ok_or_else(|| corrupt!("the curve ends at cell {row}; expected cells up to {end}"))?;
        model.neighbours.follow(&at);
        next = loop {
            let context = if at.level < tree.depth {
                model.context(&at)
            } else {
                0
            };
            if at.level == tree.depth || !bits.is_refined(&mut model.is_refined[context], &at, row)
            {
                model.neighbours.record(at.child(), false);
                to.add(&at, row);
                row += 1;
                break at.next(tree);
            }
            let finest = at.level + 1 == tree.depth;
            if !finest && bits.has_refined_child(&mut model.has_refined_child[context], &at, row) {
                model.neighbours.enter(at.child());
                at = at.child_of(0);
                continue;
            }
            model.neighbours.record(at.child(), true);
            let count = all.min(end - row);
            if count < all && !finest {
                return Err(corrupt!(
                    "a node above the finest level has {count} of {all} children; expected all of them"
                ));
            }
            to.add_children(&at, count, row);
            row += count;
            break if count == all {
                at.next(tree)
            } else {
                Some(at.child_of(count))
            };
        };
    }
    Ok(next)
}

/// The encoder of known cells.
struct TopologyEncoder<'a> {
    encoder: BinaryEncoder,
    cells: &'a [Node],
    /// The number of children of a node.
    children: usize,
    /// The row after the end of the run.
    end: usize,
}

impl RefinementBits for TopologyEncoder<'_> {
    fn is_refined(&mut self, probability: &mut Probability, node: &Node, row: usize) -> bool {
        let bit = self.cells[row].level > node.level;
        self.encoder.bit(probability, bit);
        bit
    }

    fn has_refined_child(
        &mut self,
        probability: &mut Probability,
        node: &Node,
        row: usize,
    ) -> bool {
        let left = &self.cells[row..self.end];
        let children = left.iter().take(self.children);
        let leaves = children.filter(|cell| cell.level == node.level + 1);
        let bit = leaves.count() < self.children;
        self.encoder.bit(probability, bit);
        bit
    }
}

impl RefinementBits for BinaryDecoder<'_> {
    fn is_refined(&mut self, probability: &mut Probability, _: &Node, _: usize) -> bool {
        self.bit(probability)
    }

    fn has_refined_child(&mut self, probability: &mut Probability, _: &Node, _: usize) -> bool {
        self.bit(probability)
    }
}

/// Encodes cells, which are sorted along the curve.
///
/// # Errors
/// `Invalid` if they are not sorted, or out of range.
pub(super) fn encode(tree: &Tree, cells: &[Node], to: &mut SiblingCollector) -> Result<Vec<u8>> {
    let mut numbers = NumberModel::new();
    let mut writer = TopologyEncoder {
        encoder: BinaryEncoder::new(),
        cells,
        children: 1 << tree.dimensions,
        end: 0,
    };
    let mut model = Model::new(tree, cells.len());
    let mut row = 0;
    for end in runs(tree, cells)? {
        let first = cells[row];
        numbers.write(&mut writer.encoder, (end - row) as u64);
        numbers.write(&mut writer.encoder, u64::from(first.level));
        for n in &first.place[3 - tree.dimensions..] {
            numbers.write(&mut writer.encoder, *n);
        }
        writer.end = end;
        traverse_run((tree, &mut model), first, row..end, &mut writer, to)?;
        row = end;
    }
    Ok(writer.encoder.finish())
}

/// The ends of the runs of cells that are contiguous on the curve.
fn runs(tree: &Tree, cells: &[Node]) -> Result<Vec<usize>> {
    let mut ends = Vec::new();
    if let Some(first) = cells.first().filter(|first| !tree.holds(**first)) {
        return Err(out_of_tree(0, first));
    }
    for (row, pair) in cells.windows(2).enumerate() {
        let next = pair[0].next(tree);
        if next.is_some_and(|next| next.begins(&pair[1])) {
            continue;
        }
        if !tree.holds(pair[1]) {
            return Err(out_of_tree(row + 1, &pair[1]));
        }
        if next.is_none_or(|next| !tree.precedes(&next, &pair[1])) {
            return Err(invalid!(
                "cell {} precedes the end of the cell before it on the Morton curve; sort the cells, x fastest, \
                 and pass leaf cells only",
                row + 1
            ));
        }
        ends.push(row + 1);
    }
    if !cells.is_empty() {
        ends.push(cells.len());
    }
    Ok(ends)
}

/// Decodes `count` cells.
pub(super) fn decode(
    tree: &Tree,
    bytes: &[u8],
    count: usize,
    to: &mut SiblingCollector,
) -> Result<()> {
    let (mut decoder, mut numbers) = (BinaryDecoder::new(bytes), NumberModel::new());
    let mut model = Model::new(tree, count);
    let (mut row, mut next) = (0, None);
    while row < count {
        let found = numbers.read(&mut decoder);
        let run = usize::try_from(found).ok();
        let run = run.filter(|run| (1..=count - row).contains(run));
        let end = row
            + run.ok_or_else(|| {
                corrupt!(
                    "a run of cells has {found} of {} remaining cells",
                    count - row
                )
            })?;
        let first = first_of_run(tree, &mut decoder, &mut numbers);
        let follows = |next: Option<Node>| next.is_some_and(|next| tree.precedes(&next, &first));
        if !tree.holds(first) || !(row == 0 || follows(next)) {
            return Err(corrupt!(
                "the cells are not sorted along the Morton curve, or are outside of the tree: found {first:?} at \
                 row {row}"
            ));
        }
        next = traverse_run((tree, &mut model), first, row..end, &mut decoder, to)?;
        row = end;
    }
    decoder.finish()
}

/// Reads the first cell of a run.
fn first_of_run(tree: &Tree, decoder: &mut BinaryDecoder<'_>, numbers: &mut NumberModel) -> Node {
    let level = numbers.read(decoder);
    let mut place = [0; 3];
    for n in &mut place[3 - tree.dimensions..] {
        *n = numbers.read(decoder);
    }
    let level = u32::try_from(level).unwrap_or(u32::MAX);
    Node { level, place }
}
