//! Options and inputs of a conversion.

use ambar::kinds::amr::patches::Covered;
use ambar::kinds::bound::Compression;
use serde_json::{Map, Value};

use crate::amrex::files::folder::FileUsage;
use crate::amrex::layout::run::RunInfo;
use crate::series::StoreOptions;

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
    /// How the store is written.
    pub store: StoreOptions,
}

impl ConvertOptions {
    /// Whether a part of the plotfile is converted.
    pub(super) fn selects_part(&self) -> bool {
        self.components.is_some() || self.fields.is_some()
    }
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
    pub usage: FileUsage,
}
