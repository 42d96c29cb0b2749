//! Where the boxes' values come from: a store, memory, or another code's files.

use super::hierarchy::PatchHierarchy;
use crate::dtype::DataType;
use crate::error::Result;

/// Fields on the boxes of a hierarchy.
///
/// Readers of other codes' files implement it, so that values go straight from their files to the
/// chunks of a store or to the caller.
pub trait PatchSource: Send + Sync {
    /// The levels and their boxes.
    fn hierarchy(&self) -> &PatchHierarchy;

    /// The fields' names, in their order in the file.
    fn fields(&self) -> &[String];

    /// The type of a field; the same on all levels.
    ///
    /// # Errors
    /// `NotFound`, naming the fields there are.
    fn dtype(&self, field: &str) -> Result<DataType>;

    /// Reads a field on all cells of box `index` of `level` (ghost cells left out) into `out`, which
    /// has exactly their size: x fastest, native byte order. Runs on the calling thread; called from
    /// many threads at once.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if the data are not what was announced; `Io`.
    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()>;
}
