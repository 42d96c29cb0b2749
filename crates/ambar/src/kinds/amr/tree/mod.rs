//! The layout `tree` of the kind `amr`: leaf cells of all levels along one Morton curve, as in RAMSES.

mod derived;
mod geometry;
mod grid;
mod leaves;
mod open;
mod places;
mod project;
mod select;
mod shape;
mod walk;
mod window;
mod write;

use std::sync::{Arc, OnceLock};

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::memory_source::MemoryColumns;
use crate::kinds::source::ColumnSource;
use crate::memory::Column;
use crate::metadata::Attributes;

use geometry::Geometry;
pub use leaves::{Jump, Leaves};
pub use shape::Shape;

/// The column that holds the cells' levels.
pub const LEVEL: &str = "level";

/// Leaf cells with their fields, in a store or in memory: the kind `amr`, layout `tree`.
///
/// Nothing is read before it is asked for. All methods run on the current rayon pool.
pub struct AmrTree {
    source: Arc<dyn ColumnSource>,
    shape: Shape,
    fields: Vec<String>,
    /// Cells by level, where they were counted.
    counts: Vec<(u8, u64)>,
    attributes: Attributes,
    geometry: OnceLock<Geometry>,
    /// Where the geometry is read from when it is first needed.
    index: Option<open::Index>,
}

impl AmrTree {
    /// A tree in memory. `columns` are its fields, each with as many rows as there are leaves.
    ///
    /// # Errors
    /// `Invalid` where columns differ in length, a name is taken twice or by a derived column, or
    /// the leaves make no tree.
    pub fn from_leaves(leaves: Leaves, columns: Vec<(String, Column)>) -> Result<Self> {
        let chunk_rows = write::chunk_rows(leaves.levels.rows() as u64);
        Self::with_chunks(leaves, columns, chunk_rows)
    }

    fn with_chunks(
        leaves: Leaves,
        columns: Vec<(String, Column)>,
        chunk_rows: u64,
    ) -> Result<Self> {
        let shape = leaves.checked_shape()?;
        write::check_names(&columns, shape.ndim)?;
        let levels = leaves.levels.bytes();
        let counts = write::cells_per_level(levels);
        let geometry = Geometry::of_leaves(&shape, levels, leaves.jumps, chunk_rows)?;
        let fields = columns.iter().map(|(name, _)| name.clone()).collect();
        let mut all = vec![(LEVEL.to_owned(), leaves.levels)];
        all.extend(columns);
        Ok(Self {
            source: Arc::new(MemoryColumns::new(all, chunk_rows)?),
            shape,
            fields,
            counts,
            attributes: Attributes::new(),
            geometry: OnceLock::from(geometry),
            index: None,
        })
    }

    /// The box, the root cells and the finest level.
    pub fn shape(&self) -> &Shape {
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
    /// `iz`, as far as there are dimensions.
    pub fn derived(&self) -> Vec<String> {
        derived::Derived::names(self.shape.ndim)
    }

    /// The type of a field or a derived column.
    ///
    /// # Errors
    /// `NotFound`, naming the columns there are.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        crate::kinds::select::Rows::dtype(self, name)
    }

    /// The levels that hold cells, and how many; from the attributes alone.
    pub fn cells_per_level(&self) -> &[(u8, u64)] {
        &self.counts
    }

    /// The `ambar` attributes of the group; empty for a tree in memory.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The stored columns, `level` among them.
    pub fn source(&self) -> &Arc<dyn ColumnSource> {
        &self.source
    }

    fn geometry(&self) -> Result<&Geometry> {
        if let Some(geometry) = self.geometry.get() {
            return Ok(geometry);
        }
        let geometry = match &self.index {
            Some(index) => index.read(&self.shape, &*self.source)?,
            None => Geometry::default(),
        };
        // Two threads may read it at once: either result will do, they are equal.
        Ok(self.geometry.get_or_init(|| geometry))
    }
}

#[cfg(test)]
mod tests;
