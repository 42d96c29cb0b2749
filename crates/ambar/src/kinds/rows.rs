//! The trait of tables whose rows are selected: stored columns, derived columns, and bounds of chunks.

use std::collections::HashMap;
use std::ops::Range;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::region::Region;
use crate::kinds::source::ColumnSource;

/// A table whose rows are selected: stored columns, and columns that are derived from them.
pub(crate) trait Rows: Sync {
    /// The stored columns.
    fn source(&self) -> &dyn ColumnSource;
    /// Names of all columns, for messages.
    fn names(&self) -> Vec<String>;
    /// The type of a derived column; `None` if no derived column has this name.
    fn derived(&self, name: &str) -> Option<DataType>;
    /// Computes derived columns of one chunk in one pass. With computed columns, names of stored ones are valid, too.
    fn derive(&self, rows: Range<u64>, names: &[&str], outs: &mut [&mut [u8]]) -> Result<()>;
    /// The names of the columns of positions.
    fn positions(&self) -> Vec<String>;
    /// The names of the columns of sides of cells: one for cubes, otherwise one for each dimension; none for points.
    fn sides(&self) -> Vec<String> {
        Vec::new()
    }
    /// The bounding box of the positions of each chunk, if known; of whole cells if `with_sides`.
    fn boxes(&self, with_sides: bool) -> Result<Option<Vec<[[f64; 3]; 2]>>>;
    /// True if every row is in the box of its chunk. Positions of NaN are not.
    fn boxes_hold_all(&self) -> bool;
    /// Whether rows of a chunk may be in the region, whose box touches it: a finer test than the box.
    fn may_reach(&self, _chunk: usize, _region: &Region) -> Result<bool> {
        Ok(true)
    }
    /// Clears the flags of rows of one chunk whose positions are not in the region. Returns `false`, without a change, if the
    /// caller must pass the columns of positions to [`Region::narrow`].
    fn narrow(&self, _rows: Range<u64>, _region: &Region, _mask: &mut [bool]) -> Result<bool> {
        Ok(false)
    }
    /// True if some rows are padding; `mask` is false for them.
    fn is_masked(&self) -> bool {
        false
    }
    /// One flag for each row, false for padding. Called only if `is_masked`.
    fn mask(&self, rows: Range<u64>) -> Result<Vec<bool>> {
        Ok(vec![true; (rows.end - rows.start) as usize])
    }
    /// As `ColumnSource::ranges`, of stored and derived columns.
    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>>;

    /// The type of any column.
    fn dtype(&self, name: &str) -> Result<DataType> {
        if let Some(dtype) = self.derived(name) {
            return Ok(dtype);
        }
        if !self.source().names().iter().any(|other| other == name) {
            return Err(Error::unknown("column", name, &self.names()));
        }
        self.source().dtype(name)
    }
}

/// The rows of chunk `chunk`.
pub(crate) fn chunk_range(source: &dyn ColumnSource, chunk: u64) -> Range<u64> {
    let start = chunk.saturating_mul(source.chunk_rows()).min(source.rows());
    start..start.saturating_add(source.chunk_rows()).min(source.rows())
}

/// The number of chunks.
pub(crate) fn chunk_count(source: &dyn ColumnSource) -> u64 {
    source.rows().div_ceil(source.chunk_rows().max(1))
}

/// A column to read.
pub(crate) struct WantedColumn<'a> {
    pub name: &'a str,
    pub dtype: DataType,
    pub size: usize,
    pub derived: bool,
    /// True if computed columns of the request need it.
    pub is_input: bool,
}

/// The rows of one chunk that a selection picked.
pub(crate) struct PickedRows<'a> {
    pub table: &'a dyn Rows,
    pub rows: Range<u64>,
    /// Row numbers within the chunk; `None`: all.
    pub picked: Option<Vec<u32>>,
    /// Picked values of the columns that the conditions read, by the column's index in the request.
    pub kept: HashMap<usize, Vec<u8>>,
}

impl PickedRows<'_> {
    /// The number of rows picked.
    pub fn len(&self) -> usize {
        match &self.picked {
            Some(picked) => picked.len(),
            None => (self.rows.end - self.rows.start) as usize,
        }
    }
}
