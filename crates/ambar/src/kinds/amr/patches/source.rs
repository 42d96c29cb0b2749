//! The trait of sources of values on boxes: a store, memory, or the files of a simulation code.

use super::hierarchy::PatchHierarchy;
use crate::dtype::DataType;
use crate::error::Result;

/// Fields on the boxes of a hierarchy.
///
/// Readers of the files of simulation codes implement it: values are copied from the files to the
/// chunks of a store, or to the caller, without an intermediate copy.
pub trait PatchSource: Send + Sync {
    /// The levels and their boxes.
    fn hierarchy(&self) -> &PatchHierarchy;

    /// The fields' names, in their order in the file.
    fn fields(&self) -> &[String];

    /// The type of a field; the same on all levels.
    ///
    /// # Errors
    /// `NotFound`, with the available fields.
    fn dtype(&self, field: &str) -> Result<DataType>;

    /// Reads a field on all cells of box `index` of `level` (without ghost cells) into `out`, which
    /// has exactly their size: x fastest, native byte order. Runs on the calling thread; many threads
    /// call it.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if the data differ from the declaration; `Io`.
    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()>;
}
