//! A rank's values of one field on one level, collected box by box.

use super::share::Share;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::kinds::amr::patches::write::gather::{Field, fill_value};
use crate::memory::Column;
use crate::numbers;

/// Copies a row of a box's cells along x into bytes of exactly their size. The indices are those of the
/// row's first cell, counted from the box's lower corner in x, y and z.
pub type ReadRow<'a> = dyn FnMut([usize; 3], &mut [u8]) + 'a;

/// The values of one field on the local blocks. Cells that no box covers have the fill value.
pub(super) struct FieldValues {
    pub values: Column,
    /// Ranges of values that have no NaN to represent what is missing, by chunk.
    pub ranges: Vec<(usize, [f64; 2])>,
    given: Vec<bool>,
}

/// One field on one level, with the part of a rank.
#[derive(Clone, Copy)]
pub(super) struct LevelField<'a> {
    pub nest: &'a Nest,
    pub blocks: &'a Blocks,
    pub share: &'a Share,
    pub field: &'a Field,
    /// Whether covered cells are left out.
    pub dropped: bool,
}

/// A box of a rank.
#[derive(Clone, Copy)]
pub(super) struct RankBox {
    /// The index in the list of the boxes of the rank.
    pub own: usize,
    /// The index in the list of all boxes of the level.
    pub index: usize,
}

impl FieldValues {
    /// Allocates the values of a rank with `boxes` boxes.
    pub fn new(target: LevelField<'_>, boxes: usize) -> Result<Self> {
        let cells = target.share.local.len() * target.blocks.block_cells();
        let column = Column::allocate(std::slice::from_ref(&target.field.dtype), cells)?.pop();
        let mut values =
            column.ok_or_else(|| Error::limit("cannot allocate memory for a level"))?;
        let fill = fill_value(target.field);
        if fill.iter().any(|byte| *byte != 0) {
            let each = values.bytes_mut().chunks_exact_mut(fill.len());
            each.for_each(|to| to.copy_from_slice(&fill));
        }
        Ok(Self {
            values,
            ranges: Vec::new(),
            given: vec![false; boxes],
        })
    }

    /// Whether the values of every box have been put.
    pub fn is_complete(&self) -> bool {
        self.given.iter().all(|given| *given)
    }

    /// Puts the values of a box.
    ///
    /// # Errors
    /// `Invalid` if they were put before.
    pub fn put(
        &mut self,
        target: LevelField<'_>,
        RankBox { own, index }: RankBox,
        read: &mut ReadRow<'_>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.given[own], true) {
            return Err(Error::invalid(
                "the values of this box were already put; put each box once",
            ));
        }
        let LevelField { nest, blocks, .. } = target;
        let size = target.field.size;
        let frame = nest.level(blocks.level()).boxes[index];
        let numbers_only = !numbers::has_nan(&target.field.dtype);
        for block in blocks.meeting(&frame) {
            let Ok(local) = target.share.local.binary_search(&block) else {
                continue;
            };
            let first = local * blocks.block_cells();
            let extent = blocks.extent(block);
            let part = extent.intersection(&frame);
            let shape = part.shape();
            let mut row = 0;
            rows(&part, [&extent], |[to], len| {
                let inside = [0, row % shape[1], row / shape[1]];
                row += 1;
                let from = std::array::from_fn(|d| (part.lo[d] - frame.lo[d]) as usize + inside[d]);
                let to = (first + to) * size..(first + to + len) * size;
                let to = &mut self.values.bytes_mut()[to];
                read(from, to);
                if numbers_only {
                    let range = numbers::range(&target.field.dtype, to);
                    self.ranges.push((block / blocks.per_chunk(), range));
                }
            });
            if target.dropped {
                let fill = fill_value(target.field);
                nest.covered_in(blocks.level(), &part, |_, covered| {
                    rows(&covered, [&extent], |[to], len| {
                        let to = (first + to) * size..(first + to + len) * size;
                        let cells = self.values.bytes_mut()[to].chunks_exact_mut(size);
                        cells.for_each(|to| to.copy_from_slice(&fill));
                    });
                });
            }
        }
        Ok(())
    }

    /// The ranges of the values, by chunk.
    pub fn all_ranges(&self, target: LevelField<'_>) -> Vec<(usize, [f64; 2])> {
        if !numbers::has_nan(&target.field.dtype) {
            return self.ranges.clone();
        }
        let block_bytes = target.blocks.block_cells() * target.field.size;
        let per_chunk = target.blocks.per_chunk();
        let mut ranges = Vec::new();
        let mut start = 0;
        let same = |a: &usize, b: &usize| a / per_chunk == b / per_chunk;
        for blocks in target.share.local.chunk_by(same) {
            let end = start + blocks.len();
            let bytes = &self.values.bytes()[start * block_bytes..end * block_bytes];
            let range = numbers::range(&target.field.dtype, bytes);
            ranges.push((blocks[0] / per_chunk, range));
            start = end;
        }
        ranges
    }
}
