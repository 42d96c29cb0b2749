//! Options, inputs and results of a conversion.

use std::sync::Arc;

use ambar::container::Durability;
use ambar::kinds::amr::patches::Covered;
use ambar::kinds::bound::Compression;
use serde_json::{Map, Value};

use crate::amrex::files::folder::{FolderUsage, IgnoredEntry};
use crate::amrex::layout::run::RunInfo;
use crate::progress::Progress;

/// Options of `convert`.
#[derive(Clone, Default)]
pub struct ConvertOptions {
    /// Components to convert: `cells` and names of species; `None` for all.
    pub components: Option<Vec<String>>,
    /// Names of the fields of cells to convert; `None` for all.
    pub fields: Option<Vec<String>>,
    /// How cells that the next finer level covers are stored.
    pub covered: Covered,
    /// Compression of the arrays. Error bounds are named after fields of cells, or `species/column` of
    /// particles; `*` matches the fields of cells only.
    pub compression: Compression,
    /// Whether the commit waits for the disk.
    pub durability: Durability,
    /// Replaces an existing store.
    pub overwrite: bool,
    /// Called with the work done, in hundredths.
    pub progress: Option<Arc<Progress<'static>>>,
}

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// Name of the plotfile.
    pub name: String,
    /// Bytes of its files.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub stored_bytes: u64,
    /// Entries of its folder that are not in the store.
    pub ignored: Vec<IgnoredEntry>,
}

/// Information on the source of patches, besides their values.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// Name of the plotfile.
    pub name: String,
    /// The run information, stored among the attributes.
    pub info: Map<String, Value>,
    /// The run information that a plotfile needs.
    pub run: RunInfo,
    /// Files of the source.
    pub usage: FolderUsage,
}
