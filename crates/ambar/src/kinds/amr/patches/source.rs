//! The trait of sources of values on boxes: a store, memory, or the files of a simulation code.

use super::hierarchy::rows::copy;
use super::hierarchy::{IndexBox, PatchHierarchy};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::memory::Column;

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

    /// Reads a field on the cells of `part` of a box, as `read_box`. Unless it is implemented, the whole box is read.
    ///
    /// # Errors
    /// As `read_box`.
    fn read_part(
        &self,
        level: usize,
        index: usize,
        field: &str,
        part: &IndexBox,
        out: &mut [u8],
    ) -> Result<()> {
        let frame = self
            .hierarchy()
            .levels
            .get(level)
            .and_then(|level| level.boxes.get(index))
            .filter(|frame| frame.contains(part));
        let frame = frame.ok_or_else(|| {
            Error::not_found(format!(
                "level {level} has no box {index} that contains {part}"
            ))
        })?;
        if frame == part {
            return self.read_box(level, index, field, out);
        }
        let size = self.dtype(field)?.size().unwrap_or(1);
        let mut values = Column::allocate(&[DataType::UInt8], frame.cells() * size)?;
        self.read_box(level, index, field, values[0].bytes_mut())?;
        copy(part, size, (frame, values[0].bytes()), (part, out));
        Ok(())
    }
}
