//! Options and result of a conversion.

use std::sync::Arc;

use ambar::container::Durability;
use ambar::kinds::bound::Compression;

use crate::progress::Progress;
use crate::ramses::component::ComponentKind;

/// Options of `convert`.
#[derive(Clone, Default)]
pub struct ConvertOptions {
    /// Components to convert; `None` for all that are present.
    pub components: Option<Vec<ComponentKind>>,
    /// Names (or aliases) of the fields of cells and particles to convert; `None` for all.
    pub fields: Option<Vec<String>>,
    /// First and last level of the leaf cells to convert, as `CellsRequest::levels`.
    pub levels: Option<(u8, u8)>,
    /// The level at which the tree ends, as `CellsRequest::max_level`.
    pub max_level: Option<u8>,
    /// Compression of the arrays. Error bounds are named after fields of cells (or their aliases) and
    /// columns of particles; `*` matches the fields of cells only.
    pub compression: Compression,
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// Replaces an existing store. Without it, an existing series is extended, and the existing store of
    /// a single output is an error.
    pub overwrite: bool,
    /// What happens if one of several outputs cannot be converted.
    pub on_error: OnError,
    /// Called with the work done and the total work, in hundredths of an output.
    pub progress: Option<Arc<Progress<'static>>>,
}

/// What a conversion of several outputs does if one of them cannot be converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Stops, and returns the error. Committed outputs stay in the store.
    #[default]
    Stop,
    /// Lists the output with the reason, and converts the others.
    Skip,
}

/// The outputs that were converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// Names of converted outputs that were not in the store before.
    pub converted: Vec<String>,
    /// Names of outputs converted again because their files have changed.
    pub replaced: Vec<String>,
    /// Names of outputs that were already in the store.
    pub skipped: Vec<String>,
    /// Names of folders that could not be converted, and the reasons.
    pub failed: Vec<(String, String)>,
    /// Bytes of all files of the converted, replaced and skipped outputs.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub stored_bytes: u64,
}
