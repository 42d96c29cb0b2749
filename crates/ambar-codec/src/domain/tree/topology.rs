//! Leaf cells of a tree along its Morton curve: which there are, in few bytes.
//!
//! The curve meets the nodes of a tree from the root down. Of each node that a cell may begin at, one bit
//! tells whether it is refined, under what is known of its siblings; where the cells leave the curve, it
//! is told where they go on.

use super::neighbours::{Around, STATES};
use super::node::{Node, Tree};
use super::siblings::Collector;
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Numbers, Probability};
use crate::error::{Corrupt, Invalid, Result};
use std::ops::Range;

/// Levels below the finest that have probabilities of their own; coarser ones do as the last.
const KINDS: usize = 4;

const ORDER: &str = "cells are sorted along the Morton curve, x quickest, and none lies in another";
const PLACES: &str = "cells lie at indices from 0 to 2^42 of the finest level";

/// Probabilities of nodes to be refined, under what is known of those before them.
struct Model {
    depth: u32,
    around: Around,
    is_refined: Vec<Probability>,
    has_refined_child: Vec<Probability>,
}

impl Model {
    fn new(tree: &Tree, cells: usize) -> Self {
        let probabilities = vec![Probability::default(); KINDS * STATES * STATES * STATES];
        Self {
            depth: tree.depth,
            around: Around::new(tree, cells),
            is_refined: probabilities.clone(),
            has_refined_child: probabilities,
        }
    }

    /// The number of the probabilities for a node above the finest level.
    fn number(&self, node: &Node) -> usize {
        let kind = (self.depth - 1 - node.level).min(KINDS as u32 - 1) as usize;
        kind * STATES * STATES * STATES + self.around.number(node.child())
    }
}

/// What tells of nodes, and is told of them on the other side.
trait Bits {
    /// Whether the node that begins at a row is refined.
    fn is_refined(&mut self, probability: &mut Probability, node: &Node, row: usize) -> bool;
    /// Whether any of the children of the node that begins at a row is refined.
    fn has_refined_child(&mut self, probability: &mut Probability, node: &Node, row: usize)
    -> bool;
}

/// Walks from the cell `first`, along the curve, over cells of as many rows; gives the node that begins
/// behind them.
fn walk(
    (tree, model): (&Tree, &mut Model),
    first: Node,
    rows: Range<usize>,
    bits: &mut impl Bits,
    to: &mut Collector,
) -> Result<Option<Node>> {
    let (mut row, end) = (rows.start + 1, rows.end);
    model.around.jump(&first);
    model.around.met(first.child(), false);
    to.add(&first, rows.start);
    let (all, mut next) = (1 << tree.dimensions, first.next(tree));
    while row < end {
        let mut at = next.ok_or(Corrupt("the tree topology continues after its last cell"))?;
        model.around.follow(&at);
        next = loop {
            let number = if at.level < tree.depth {
                model.number(&at)
            } else {
                0
            };
            if at.level == tree.depth || !bits.is_refined(&mut model.is_refined[number], &at, row) {
                model.around.met(at.child(), false);
                to.add(&at, row);
                row += 1;
                break at.next(tree);
            }
            let finest = at.level + 1 == tree.depth;
            if !finest && bits.has_refined_child(&mut model.has_refined_child[number], &at, row) {
                model.around.enter(at.child());
                at = at.child_of(0);
                continue;
            }
            model.around.met(at.child(), true);
            let count = all.min(end - row);
            if count < all && !finest {
                return Err(Corrupt("the tree topology disagrees with the cell count"));
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

/// Bits of cells that are known.
struct Writer<'a> {
    encoder: BinaryEncoder,
    cells: &'a [Node],
    /// Children of a node.
    children: usize,
    /// The row behind the run.
    end: usize,
}

impl Bits for Writer<'_> {
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

impl Bits for BinaryDecoder<'_> {
    fn is_refined(&mut self, probability: &mut Probability, _: &Node, _: usize) -> bool {
        self.bit(probability)
    }

    fn has_refined_child(&mut self, probability: &mut Probability, _: &Node, _: usize) -> bool {
        self.bit(probability)
    }
}

/// Encodes cells, which come along the curve: their levels, of which the finest is `tree.depth`.
///
/// # Errors
/// `Invalid` where they do not.
pub(super) fn encode(tree: &Tree, cells: &[Node], to: &mut Collector) -> Result<Vec<u8>> {
    let mut numbers = Numbers::new();
    let mut writer = Writer {
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
        walk((tree, &mut model), first, row..end, &mut writer, to)?;
        row = end;
    }
    Ok(writer.encoder.finish())
}

/// Where runs of cells end, behind each other along the curve.
fn runs(tree: &Tree, cells: &[Node]) -> Result<Vec<usize>> {
    let mut ends = Vec::new();
    if cells.first().is_some_and(|first| !tree.holds(*first)) {
        return Err(Invalid(PLACES));
    }
    for (row, pair) in cells.windows(2).enumerate() {
        let next = pair[0].next(tree);
        if next.is_some_and(|next| next.begins(&pair[1])) {
            continue;
        }
        if !tree.holds(pair[1]) {
            return Err(Invalid(PLACES));
        }
        if next.is_none_or(|next| !tree.precedes(&next, &pair[1])) {
            return Err(Invalid(ORDER));
        }
        ends.push(row + 1);
    }
    if !cells.is_empty() {
        ends.push(cells.len());
    }
    Ok(ends)
}

/// Undoes [`encode`], of `count` cells.
pub(super) fn decode(tree: &Tree, bytes: &[u8], count: usize, to: &mut Collector) -> Result<()> {
    let (mut decoder, mut numbers) = (BinaryDecoder::new(bytes), Numbers::new());
    let mut model = Model::new(tree, count);
    let (mut row, mut next) = (0, None);
    while row < count {
        let run = usize::try_from(numbers.read(&mut decoder)).ok();
        let run = run.filter(|run| (1..=count - row).contains(run));
        let end = row + run.ok_or(Corrupt("the tree topology disagrees with the cell count"))?;
        let first = first_of_run(tree, &mut decoder, &mut numbers);
        let follows = |next: Option<Node>| next.is_some_and(|next| tree.precedes(&next, &first));
        if !tree.holds(first) || !(row == 0 || follows(next)) {
            return Err(Corrupt(
                "the cells are not sorted along the space-filling curve",
            ));
        }
        next = walk((tree, &mut model), first, row..end, &mut decoder, to)?;
        row = end;
    }
    decoder.finish()
}

/// The first cell of a run.
fn first_of_run(tree: &Tree, decoder: &mut BinaryDecoder<'_>, numbers: &mut Numbers) -> Node {
    let level = numbers.read(decoder);
    let mut place = [0; 3];
    for n in &mut place[3 - tree.dimensions..] {
        *n = numbers.read(decoder);
    }
    let level = u32::try_from(level).unwrap_or(u32::MAX);
    Node { level, place }
}
