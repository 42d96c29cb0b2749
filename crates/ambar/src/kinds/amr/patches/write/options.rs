//! Options of the writer of patch-based hierarchies.

use std::sync::Arc;

use super::covered::Covered;
use crate::error::Result;
use crate::kinds::bound::Compression;
use crate::metadata::Attributes;

/// Called with the raw bytes encoded so far and in total; an error ends the write.
pub type Progress = dyn Fn(u64, u64) -> Result<()> + Send + Sync;

/// Options of the writer of patch-based hierarchies.
#[derive(Clone, Default)]
pub struct PatchOptions {
    /// Names of the fields to keep; `None` for all.
    pub fields: Option<Vec<String>>,
    /// How cells that the next finer level covers are stored.
    pub covered: Covered,
    /// How the arrays are compressed.
    pub compression: Compression,
    /// Cells of a chunk, padding among them; `None`: chosen by the number of cells of a level.
    pub chunk_cells: Option<usize>,
    /// Added to the `ambar` attributes of the group (`components`).
    pub more: Attributes,
    /// Reports progress.
    pub progress: Option<Arc<Progress>>,
}
