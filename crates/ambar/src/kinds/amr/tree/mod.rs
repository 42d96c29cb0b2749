//! The layout `tree` of the kind `amr`: leaf cells of all levels along a Morton curve, as in RAMSES.

mod curve_walk;
mod derived_columns;
mod geometry;
mod grid;
mod leaf_positions;
mod leaves;
mod load;
mod open;
mod project;
mod select;
mod shape;
mod window;
mod write;
mod write_selected;

use std::sync::Arc;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::memory_source::{Loader, MemoryColumns};
use crate::kinds::source::ColumnSource;
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::process::SetOnce;

pub use curve_walk::Jump;
use geometry::TreeGeometry;
pub use leaves::Leaves;
pub use shape::TreeShape;

/// The column of the cells' levels.
pub const LEVEL: &str = "level";

/// Leaf cells with their fields, in a store or in memory: the kind `amr`, layout `tree`.
///
/// Values are read on demand. All methods run on the current rayon pool.
pub struct AmrTree {
    source: Arc<dyn ColumnSource>,
    shape: TreeShape,
    fields: Vec<String>,
    /// Number of cells by level; empty if they were not counted.
    counts: Vec<(u8, u64)>,
    attributes: Attributes,
    geometry: SetOnce<TreeGeometry>,
    /// Reads the geometry on first use.
    index: Option<open::GeometryReader>,
}

impl AmrTree {
    /// A tree in memory. `columns` are its fields, each with one row for each leaf.
    ///
    /// # Errors
    /// `Invalid` if columns differ in length, a name occurs twice or is that of a derived column, or
    /// the leaves do not form a tree.
    pub fn from_leaves(leaves: Leaves, columns: Vec<(String, Column)>) -> Result<Self> {
        let chunk_rows = write::chunk_rows(leaves.levels.rows() as u64);
        Self::with_chunks(leaves, columns, chunk_rows)
    }

    /// A tree in memory whose `fields`, with their types, are loaded on first use.
    ///
    /// # Errors
    /// As `from_leaves`.
    pub fn loading(
        leaves: Leaves,
        fields: Vec<(String, DataType)>,
        loader: Loader,
    ) -> Result<Self> {
        let chunk_rows = write::chunk_rows(leaves.levels.rows() as u64);
        Self::of(leaves, Vec::new(), fields, Some(loader), chunk_rows)
    }

    fn with_chunks(
        leaves: Leaves,
        columns: Vec<(String, Column)>,
        chunk_rows: u64,
    ) -> Result<Self> {
        Self::of(leaves, columns, Vec::new(), None, chunk_rows)
    }

    fn of(
        leaves: Leaves,
        columns: Vec<(String, Column)>,
        later: Vec<(String, DataType)>,
        loader: Option<Loader>,
        chunk_rows: u64,
    ) -> Result<Self> {
        let shape = leaves.checked_shape()?;
        let names = columns.iter().map(|(name, _)| name);
        let fields: Vec<String> = names
            .chain(later.iter().map(|(name, _)| name))
            .cloned()
            .collect();
        write::check_names(fields.iter().map(String::as_str), shape.ndim)?;
        let levels = leaves.levels.bytes();
        let counts = write::cells_per_level(levels);
        let geometry = TreeGeometry::of_leaves(&shape, levels, leaves.jumps, chunk_rows)?;
        let rows = leaves.levels.rows();
        let mut all = vec![(LEVEL.to_owned(), leaves.levels)];
        all.extend(columns);
        let source = MemoryColumns::loading(all, later, loader, rows, chunk_rows)?;
        Ok(Self {
            source: Arc::new(source),
            shape,
            fields,
            counts,
            attributes: Attributes::new(),
            geometry: SetOnce::from(geometry),
            index: None,
        })
    }

    /// The box, the root cells and the finest level.
    pub fn shape(&self) -> &TreeShape {
        &self.shape
    }

    /// Number of cells.
    pub fn rows(&self) -> u64 {
        self.source.rows()
    }

    /// Names of the stored fields, in their order in the file.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Names of the columns that are derived on request: `level`, `x`, `y`, `z`, `dx`, `ix`, `iy`,
    /// `iz`, for the existing dimensions.
    pub fn derived(&self) -> Vec<String> {
        derived_columns::DerivedColumn::names(self.shape.ndim)
    }

    /// The type of a field or a derived column.
    ///
    /// # Errors
    /// `NotFound` with the existing columns.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        crate::kinds::select::Rows::dtype(self, name)
    }

    /// The levels that have cells, and their numbers of cells, from the attributes.
    pub fn cells_per_level(&self) -> &[(u8, u64)] {
        &self.counts
    }

    /// The `ambar` attributes of the group; empty for a tree in memory.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The stored columns, including `level`.
    pub fn source(&self) -> &Arc<dyn ColumnSource> {
        &self.source
    }

    /// Names of the columns that are derived in `ndim` dimensions, and their types.
    pub fn derived_in(ndim: usize) -> Vec<(String, DataType)> {
        let names = derived_columns::DerivedColumn::names(ndim).into_iter();
        names
            .filter_map(|name| {
                let dtype = derived_columns::DerivedColumn::parse(&name, ndim)?.dtype();
                Some((name, dtype))
            })
            .collect()
    }

    fn geometry(&self) -> Result<&TreeGeometry> {
        if let Some(geometry) = self.geometry.get() {
            return Ok(geometry);
        }
        let geometry = match &self.index {
            Some(index) => index.read(&self.shape, &*self.source)?,
            None => TreeGeometry::default(),
        };
        // Two threads can read the geometry concurrently, with equal results.
        Ok(self.geometry.get_or_set(geometry))
    }
}

#[cfg(test)]
mod tests;
