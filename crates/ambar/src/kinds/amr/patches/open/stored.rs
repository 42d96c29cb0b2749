//! Unit blocks in a store: one group for each level, one array for each field.

use std::ops::Range;
use std::sync::Arc;

use super::values::Values;
use crate::array::{Array, Slice};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::blocks::{Blocks, MAX_BLOCKS};
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::amr::patches::hierarchy::{IndexBox, MAX_INDEX};
use crate::kinds::stored::whole_array;
use crate::limits::Limits;
use crate::process::SetOnce;
use crate::store::{NodeKind, Store};

/// The layout of a level, from the attributes.
pub(crate) struct StoredLevel {
    pub side: usize,
    pub blocks: u64,
    /// By field: whether covered cells were dropped.
    pub dropped: Vec<bool>,
    /// By field.
    pub arrays: Vec<Array>,
    pub per_chunk: usize,
    /// Ranges by field, then chunk, after they were read; `None` if the store has no ranges.
    pub ranges: SetOnce<Option<Vec<[f64; 2]>>>,
}

impl StoredLevel {
    /// The unit blocks of a level without the array of their origins: those around all cells, or fewer, those
    /// around leaf cells.
    fn derived_blocks(&self, nest: &Arc<Nest>, level: usize) -> Result<Blocks> {
        let mut counts = Vec::new();
        for cells in [CellSet::All, CellSet::Leaves] {
            let blocks = Blocks::of_side(nest, level, (self.side, self.per_chunk), cells)?;
            if blocks.origins().len() as u64 == self.blocks {
                return Ok(blocks);
            }
            counts.push(blocks.origins().len());
        }
        Err(Error::corrupt(format!(
            "expected {} or {} unit blocks of side {} on level {level}, found the attribute \"blocks\" {}; \
             restore the file from a copy",
            counts[0], counts[1], self.side, self.blocks
        )))
    }
}

/// The levels' arrays.
pub(crate) struct StoredValues {
    pub store: Store,
    /// The group's path, without a `/` at its end.
    pub path: String,
    pub ndim: usize,
    pub levels: Vec<StoredLevel>,
}

impl StoredValues {
    fn node(&self, level: usize, name: &str) -> String {
        format!("{}/level_{level}/{name}", self.path)
    }

    fn read_ranges(&self, blocks: &Blocks) -> Result<Option<Vec<[f64; 2]>>> {
        let path = self.node(blocks.level(), "index/range");
        if self.store.kind(&path)? != Some(NodeKind::Array) {
            return Ok(None);
        }
        let fields = self.levels[blocks.level()].arrays.len() as u64;
        let shape = [fields, blocks.chunks() as u64, 2].map(Some);
        let ranges = whole_array(&self.store, &path, DataType::Float64, &shape)?;
        Ok(Some(ranges.values::<f64>().as_chunks().0.to_vec()))
    }
}

impl Values for StoredValues {
    fn blocks(&self, nest: &Arc<Nest>, level: usize) -> Result<Blocks> {
        let stored = &self.levels[level];
        let path = self.node(level, "origin");
        let located = |error: Error| error.at_node(&path).in_file(self.store.location());
        Limits::check("the list of unit blocks", stored.blocks, MAX_BLOCKS).map_err(located)?;
        let division = (stored.side, stored.per_chunk);
        if self.store.kind(&path)?.is_none() {
            return stored.derived_blocks(nest, level).map_err(located);
        }
        let shape = [Some(stored.blocks), Some(self.ndim as u64)];
        let origins = whole_array(&self.store, &path, DataType::Int64, &shape)?;
        let origins = origins.values::<i64>().chunks_exact(self.ndim);
        let origins =
            origins.map(|origin| std::array::from_fn(|d| origin.get(d).copied().unwrap_or(0)));
        Blocks::from_origins(nest, level, division, origins.collect()).map_err(located)
    }

    fn read(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        out: &mut [u8],
    ) -> Result<()> {
        self.read_samples(blocks, field, range, 1, out)
    }

    fn has_samples(&self) -> bool {
        true
    }

    fn read_samples(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        step: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let array = &self.levels[blocks.level()].arrays[field];
        let all = |n: &u64| Slice {
            step,
            ..Slice::all(*n)
        };
        let mut selection: Vec<Slice> = array.shape().iter().map(all).collect();
        if let Some(first) = selection.first_mut() {
            *first = (range.start as u64..range.end as u64).into();
        }
        array.read(&selection, out)
    }

    fn drops(&self, level: usize, field: usize) -> bool {
        self.levels[level].dropped[field]
    }

    fn ranges(&self, blocks: &Blocks, field: usize) -> Result<Option<Vec<[f64; 2]>>> {
        let slot = &self.levels[blocks.level()].ranges;
        let all = match slot.get() {
            Some(all) => all,
            None => {
                let ranges = self.read_ranges(blocks)?;
                slot.get_or_set(ranges)
            }
        };
        let chunks = blocks.chunks();
        let of_field = |all: &Vec<[f64; 2]>| all[field * chunks..(field + 1) * chunks].to_vec();
        Ok(all.as_ref().map(of_field))
    }

    fn extents(&self, blocks: &Blocks) -> Result<Vec<IndexBox>> {
        if blocks.chunks() < 2 {
            return Ok(blocks.bounding_box().into_iter().collect());
        }
        let path = self.node(blocks.level(), "index/box");
        let shape = [blocks.chunks() as u64, 2, self.ndim as u64].map(Some);
        let corners = whole_array(&self.store, &path, DataType::Int64, &shape)?;
        let boxes = boxes(corners.values(), self.ndim);
        let far = |x: &i64| x.unsigned_abs() > MAX_INDEX as u64;
        match boxes.iter().find(|b| b.lo.iter().chain(&b.hi).any(far)) {
            None => Ok(boxes),
            Some(b) => Err(Error::corrupt(format!(
                "{b} has an index beyond {MAX_INDEX}; restore the file from a copy"
            ))
            .at_node(path)
            .in_file(self.store.location())),
        }
    }
}

/// Boxes from consecutive lower and upper corners, of `ndim` indices each.
pub(crate) fn boxes(corners: &[i64], ndim: usize) -> Vec<IndexBox> {
    let pairs = corners.chunks_exact(2 * ndim);
    pairs
        .map(|pair| IndexBox {
            lo: std::array::from_fn(|d| if d < ndim { pair[d] } else { 0 }),
            hi: std::array::from_fn(|d| if d < ndim { pair[ndim + d] } else { 1 }),
        })
        .collect()
}
