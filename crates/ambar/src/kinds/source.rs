//! Where a table's columns come from: a store, or memory. Every kind that selects rows reads this.

use std::ops::Range;
use std::sync::Arc;

use crate::container::ReadAhead;
use crate::dtype::DataType;
use crate::error::Result;
use crate::memory::Column;

/// Columns of equal length, cut into chunks of the same rows.
///
/// The store implements it over arrays; readers of other codes' files over columns in memory. All
/// columns share one division into chunks: chunk `i` holds the rows
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
    /// `NotFound`, naming the columns there are.
    fn dtype(&self, name: &str) -> Result<DataType>;

    /// Reads `rows` of the column `name` into `out`, which has exactly their size, native byte
    /// order. Runs on the calling thread; called from many threads. Decodes only the
    /// chunks that `rows` touches.
    ///
    /// # Errors
    /// `Corrupt` if a checksum differs, `NotFound`, `Io`.
    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()>;

    /// Whether reading takes requests to another machine, so that reading ahead pays.
    fn is_remote(&self) -> bool {
        false
    }

    /// Fetches what is stored of rows of columns, together, and keeps it for `read` until the result
    /// is dropped. It is a hint.
    ///
    /// # Errors
    /// As `read`.
    fn read_ahead(&self, _wanted: &[(&str, Range<u64>)]) -> Result<ReadAhead> {
        Ok(ReadAhead::default())
    }

    /// Loads columns whose values are loaded when they are first asked for; names of other columns are
    /// ignored. Called before parallel work that reads them.
    ///
    /// # Errors
    /// As `read`.
    fn prepare(&self, _names: &[&str]) -> Result<()> {
        Ok(())
    }

    /// Smallest and largest value of the column in each chunk, rounded outwards to f64, NaN left
    /// out (a chunk without a number has `[inf, -inf]`). `None` if they were not recorded.
    ///
    /// # Errors
    /// As `read`.
    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>>;

    /// The column itself, where it is in memory as a whole: to be shared instead of copied.
    fn whole(&self, _name: &str) -> Option<Arc<Column>> {
        None
    }
}
