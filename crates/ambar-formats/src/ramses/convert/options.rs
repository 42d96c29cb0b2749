//! Options of a conversion.

use ambar::kinds::bound::Compression;

use crate::ramses::component::ComponentKind;
use crate::series::StoreOptions;

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
    /// How the store is written.
    pub store: StoreOptions,
}

impl ConvertOptions {
    /// Whether a part of the output is converted.
    pub(super) fn selects_part(&self) -> bool {
        self.components.is_some()
            || self.fields.is_some()
            || self.levels.is_some()
            || self.max_level.is_some()
    }
}
