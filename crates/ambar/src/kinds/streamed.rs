//! Columns that are read while they are written, so that they need not fit in memory.

use std::ops::Range;

use crate::dtype::DataType;
use crate::error::Result;
use crate::memory::Column;

/// Maximum bytes of columns that are read together, except of one window of one column.
pub(crate) const WINDOW_BYTES: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// Reads rows of columns, given by their numbers, into columns of these rows. May run in parallel.
pub type RowReader<'a> = dyn Fn(&[usize], Range<usize>, &mut [Column]) -> Result<()> + Sync + 'a;

/// Columns of equal length of which any rows can be read.
///
/// A column is read in windows of many rows, from the first row to the last, each once; columns with an error bound
/// relative to their range are read twice. In addition a few chunks of each column are read.
pub struct StreamedColumns<'a> {
    /// Names and types.
    pub columns: Vec<(String, DataType)>,
    /// Rows of every column.
    pub rows: usize,
    /// Reads rows.
    pub read: Box<RowReader<'a>>,
}

impl StreamedColumns<'_> {
    /// Reads all columns if they fit in the memory of a window; `None` if they do not.
    ///
    /// # Errors
    /// Errors of reading.
    pub(crate) fn load_small(&self) -> Result<Option<Vec<(String, Column)>>> {
        let sizes = self
            .columns
            .iter()
            .map(|(_, dtype)| dtype.size().unwrap_or(1));
        if sizes.sum::<usize>().saturating_mul(self.rows) > WINDOW_BYTES {
            return Ok(None);
        }
        let (names, dtypes): (Vec<_>, Vec<_>) = self.columns.iter().cloned().unzip();
        let mut columns = Column::allocate(&dtypes, self.rows)?;
        let all: Vec<usize> = (0..columns.len()).collect();
        (self.read)(&all, 0..self.rows, &mut columns)?;
        Ok(Some(names.into_iter().zip(columns).collect()))
    }
}
