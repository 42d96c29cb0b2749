//! Selections of leaf cells of all levels, from coarse to fine: their fields and derived columns.

use std::ops::Range;

use rayon::prelude::*;

use super::derived_columns::DerivedColumn;
use crate::condition::Condition;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::AXES;
use crate::kinds::amr::patches::PatchAmr;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::CellSet;
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::region::Region;
use crate::kinds::select::{Rows, Selection, select_all, touched};
use crate::kinds::source::ColumnSource;
use crate::memory::Column;

/// Bounds of unknown values.
const ALL_NUMBERS: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

impl PatchAmr {
    /// Fields and derived columns (`level` int32; `x`, `y`, `z`, `dx` float64, code length; `ix`,
    /// `iy`, `iz` int64) of the selected leaf cells: level by level, the coarsest
    /// first; within a level block after block along the Morton curve, x fastest in a block. A cell
    /// is in a region if its centre is. Only chunks that may contain such cells are read.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if the region has other dimensions,
    /// the first level is above the last, or the condition names a column that is not a number; `Corrupt`, `Io`.
    pub fn cells(&self, columns: &[&str], selection: &Selection) -> Result<Vec<(String, Column)>> {
        let levels = self.levels()?;
        let tables: Vec<&dyn Rows> = self.chosen(&levels, selection)?;
        let conditions: Vec<&Condition> = selection.condition.iter().collect();
        select_all(&levels[0], &tables, columns, selection, &conditions)
    }

    /// The number of leaf cells in each chunk, on all levels.
    ///
    /// # Errors
    /// As [`PatchAmr::chunks`].
    pub fn chunk_lengths(&self) -> Result<Vec<u64>> {
        let mut lengths = Vec::new();
        for level in 0..self.nest.levels() {
            let blocks = self.blocks(level)?;
            let leaves = |block| {
                let extent = blocks.extent(block);
                self.nest.count(level, &extent, CellSet::Leaves)
            };
            let chunks = (0..blocks.chunks()).into_par_iter();
            let of_level = chunks.map(|chunk| blocks.chunk(chunk).map(leaves).sum());
            lengths.extend(of_level.collect::<Vec<u64>>());
        }
        Ok(lengths)
    }

    /// Number of chunks of a field that [`PatchAmr::cells`] reads for `selection`.
    ///
    /// # Errors
    /// As `cells`.
    pub fn chunks_touched(&self, selection: &Selection) -> Result<u64> {
        let levels = self.levels()?;
        let conditions: Vec<&Condition> = selection.condition.iter().collect();
        let tables = self.chosen(&levels, selection)?;
        let touched = |table: &&dyn Rows| touched(*table, selection, &conditions);
        tables.iter().map(touched).sum()
    }

    /// Bounds of the values of a column in each chunk, NaN excluded; `None` if they are unknown.
    ///
    /// # Errors
    /// `NotFound` if the column does not exist, `Invalid` if it is not numeric; `Corrupt`, `Io`.
    pub fn bounds(
        &self,
        column: &str,
        computed: &ComputedColumns,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        let levels = self.levels()?;
        let mut bounds = Vec::new();
        for level in &levels {
            match WithComputed::new(level, computed).bounds(column)? {
                Some(of_level) => bounds.extend(of_level),
                None => bounds.extend(vec![ALL_NUMBERS; level.blocks.chunks()]),
            }
        }
        Ok(Some(bounds))
    }

    fn levels(&self) -> Result<Vec<LevelRows<'_>>> {
        let levels = 0..self.nest.levels();
        levels.map(|level| LevelRows::new(self, level)).collect()
    }

    /// Checks a selection, and returns the tables of its levels.
    fn chosen<'a>(
        &self,
        levels: &'a [LevelRows<'a>],
        selection: &Selection,
    ) -> Result<Vec<&'a dyn Rows>> {
        if let Some(region) = &selection.region {
            region.check(self.nest.ndim())?;
        }
        let (lo, hi) = selection.levels.unwrap_or((0, u8::MAX));
        if lo > hi {
            return Err(Error::invalid(format!(
                "invalid levels: {lo} to {hi}; expected the coarsest first"
            )));
        }
        let numbered = (0u8..).zip(levels);
        let chosen = numbered.filter(|(level, _)| (lo..=hi).contains(level));
        Ok(chosen.map(|(_, level)| level as &dyn Rows).collect())
    }
}

/// The cells of the unit blocks of one level as rows of a table; cells that are not leaves are masked.
pub(crate) struct LevelRows<'a> {
    amr: &'a PatchAmr,
    blocks: &'a Blocks,
}

impl<'a> LevelRows<'a> {
    pub fn new(amr: &'a PatchAmr, level: usize) -> Result<Self> {
        let blocks = amr.blocks(level)?;
        Ok(Self { amr, blocks })
    }

    /// The bounding box of centres, which excludes chunks that only share a face with a region, or of whole cells.
    fn bounds(&self, extent: &IndexBox, with_sides: bool) -> [[f64; 3]; 2] {
        let level = self.blocks.level();
        match with_sides {
            true => self.amr.nest.corners(level, extent),
            false => self.amr.nest.centres(level, extent),
        }
    }

    /// The blocks whose cells are these rows.
    fn blocks_of(&self, rows: &Range<u64>) -> Result<Range<usize>> {
        let size = self.blocks.block_cells() as u64;
        let whole = [rows.start, rows.end]
            .iter()
            .all(|row| row.is_multiple_of(size));
        if !whole || rows.end > self.rows() {
            return Err(Error::invalid(format!(
                "expected whole unit blocks of {size} cells, found the rows {rows:?}"
            )));
        }
        Ok((rows.start / size) as usize..(rows.end / size) as usize)
    }
}

impl ColumnSource for LevelRows<'_> {
    fn rows(&self) -> u64 {
        (self.blocks.origins().len() * self.blocks.block_cells()) as u64
    }

    fn chunk_rows(&self) -> u64 {
        (self.blocks.per_chunk() * self.blocks.block_cells()) as u64
    }

    fn names(&self) -> &[String] {
        &self.amr.fields
    }

    fn dtype(&self, name: &str) -> Result<DataType> {
        Ok(self.amr.dtypes[self.amr.field(name)?].clone())
    }

    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let blocks = self.blocks_of(&rows)?;
        let field = self.amr.field(name)?;
        self.amr.values.read(self.blocks, field, blocks, out)
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        self.amr.values.ranges(self.blocks, self.amr.field(name)?)
    }
}

impl Rows for LevelRows<'_> {
    fn source(&self) -> &dyn ColumnSource {
        self
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.amr.fields.clone();
        names.extend(self.amr.derived());
        names
    }

    fn derived(&self, name: &str) -> Option<DataType> {
        DerivedColumn::parse(name, &self.amr.nest).map(DerivedColumn::dtype)
    }

    fn derive(&self, rows: Range<u64>, names: &[&str], outs: &mut [&mut [u8]]) -> Result<()> {
        let blocks = self.blocks_of(&rows)?;
        for (name, out) in names.iter().zip(outs) {
            if let Some(derived) = DerivedColumn::parse(name, &self.amr.nest) {
                derived.fill(&self.amr.nest, self.blocks, blocks.clone(), out);
            }
        }
        Ok(())
    }

    fn positions(&self) -> Vec<String> {
        let axes = AXES[..self.amr.nest.ndim()].iter();
        axes.map(|axis| (*axis).to_owned()).collect()
    }

    fn sides(&self) -> Vec<String> {
        let sides = ["dx", "dy", "dz"][..self.amr.nest.ndim()].iter();
        let exists = |side: &&&str| self.derived(side).is_some();
        sides
            .filter(exists)
            .map(|side| (*side).to_owned())
            .collect()
    }

    fn boxes(&self, with_sides: bool) -> Result<Option<Vec<[[f64; 3]; 2]>>> {
        let level = self.blocks.level();
        let extents = self.amr.extents(level)?.iter();
        let boxes = extents.map(|extent| self.bounds(extent, with_sides));
        Ok(Some(boxes.collect()))
    }

    fn boxes_hold_all(&self) -> bool {
        true
    }

    fn may_reach(&self, chunk: usize, region: &Region) -> Result<bool> {
        Ok(self.blocks.chunk(chunk).any(|block| {
            let [lo, hi] = self.bounds(&self.blocks.extent(block), region.is_by_volume());
            region.may_touch(&lo, &hi)
        }))
    }

    fn is_masked(&self) -> bool {
        true
    }

    fn mask(&self, rows: Range<u64>) -> Result<Vec<bool>> {
        Ok(self.blocks.mask(self.blocks_of(&rows)?, CellSet::Leaves))
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        let level = self.blocks.level();
        let chunks = self.blocks.chunks();
        Ok(match DerivedColumn::parse(name, &self.amr.nest) {
            None => ColumnSource::ranges(self, name)?,
            Some(DerivedColumn::Level) => Some(vec![[level as f64; 2]; chunks]),
            Some(DerivedColumn::Side(d)) => {
                Some(vec![[self.amr.nest.level(level).cell_size[d]; 2]; chunks])
            }
            Some(DerivedColumn::Centre(d)) => {
                let boxes = self.boxes(false)?.unwrap_or_default();
                Some(boxes.iter().map(|[lo, hi]| [lo[d], hi[d]]).collect())
            }
            Some(DerivedColumn::Index(d)) => {
                let extents = self.amr.extents(level)?.iter();
                let range = |extent: &IndexBox| [extent.lo[d] as f64, extent.hi[d] as f64];
                Some(extents.map(range).collect())
            }
        })
    }
}
