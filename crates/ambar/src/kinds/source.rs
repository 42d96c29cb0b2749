//! The trait of sources of columns: a store, or memory. Selections of rows read from it.

use std::ops::Range;
use std::sync::Arc;

use crate::container::ReadAhead;
use crate::dtype::DataType;
use crate::error::Result;
use crate::memory::Column;

/// Columns of equal length, divided into chunks of the same rows.
///
/// Implemented by arrays of a store, and by columns in memory for readers of the files of simulation
/// codes. Chunk `i` of every column contains the rows
/// `i * chunk_rows .. min((i + 1) * chunk_rows, rows)`.
pub trait ColumnSource: Send + Sync {
    /// Rows of every column.
    fn rows(&self) -> u64;

    /// Rows of a chunk, at least 1.
    fn chunk_rows(&self) -> u64;

    /// The columns' names, in their order in the file.
    fn names(&self) -> &[String];

    /// The type of the column `name`.
    ///
    /// # Errors
    /// `NotFound`, with the available columns.
    fn dtype(&self, name: &str) -> Result<DataType>;

    /// Reads `rows` of the column `name` into `out`, which has exactly their size, native byte
    /// order. Runs on the calling thread; many threads call it. Decodes only the chunks that overlap
    /// `rows`.
    ///
    /// # Errors
    /// `Corrupt` if a checksum differs, `NotFound`, `Io`.
    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()>;

    /// True if reads are requests to another machine: reading ahead saves time.
    fn is_remote(&self) -> bool {
        false
    }

    /// Fetches the stored bytes of rows of columns in few requests, and keeps them for `read` until the
    /// result is dropped. It is a hint.
    ///
    /// # Errors
    /// As `read`.
    fn read_ahead(&self, _wanted: &[(&str, Range<u64>)]) -> Result<ReadAhead> {
        Ok(ReadAhead::default())
    }

    /// Loads those of the columns that are loaded on the first access; ignores other names. Called
    /// before parallel work that reads them.
    ///
    /// # Errors
    /// As `read`.
    fn prepare(&self, _names: &[&str]) -> Result<()> {
        Ok(())
    }

    /// Minimum and maximum of the column in each chunk, rounded outwards to f64, NaN excluded. A chunk
    /// without a number has `[inf, -inf]`. `None` if ranges were not recorded.
    ///
    /// # Errors
    /// As `read`.
    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>>;

    /// The column itself if it is in memory as a whole: it is shared, not copied.
    fn whole(&self, _name: &str) -> Option<Arc<Column>> {
        None
    }
}
