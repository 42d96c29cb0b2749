//! Leaf cells of a tree along the Morton curve, and the tree as the library's users see it.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::geometry::Geometry;
use crate::kinds::amr::shape::Shape;
use crate::kinds::memory_source::MemoryColumns;
use crate::kinds::source::ColumnSource;
use crate::memory::Column;

/// The column that holds the leaves' levels.
pub const LEVEL: &str = "level";

/// A place where the sequence of leaf cells does not go on along the Morton curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The row of the first leaf behind the gap.
    pub row: u64,
    /// Its lower corner, in lattice units (a root cell has `2^lattice_level` of them a side).
    pub corner: [u64; 3],
}

/// Leaf cells of all levels along one Morton curve (x is the lowest bit).
///
/// Positions are not stored: each leaf begins where the one before ends, but at `jumps`.
#[derive(Debug)]
pub struct Leaves {
    /// Dimensions, 1 to 3. Coordinates of further dimensions are 0.
    pub ndim: usize,
    /// Root cells per dimension; 1 in dimensions that are not used. A cell of level `l` is
    /// `2^-l` of a root cell a side.
    pub root: [u64; 3],
    /// Size of the box in x, in code length; a root cell's side is `boxlen / root[0]`.
    pub boxlen: f64,
    /// The level whose cells are the lattice's unit: the finest there is among the leaves.
    pub lattice_level: u8,
    /// The leaves' levels, `uint8`, in order.
    pub levels: Column,
    /// Where the walk goes on elsewhere; none where the leaves fill the box. A set that does not
    /// begin at the origin begins with a jump at row 0.
    pub jumps: Vec<Jump>,
}

impl Leaves {
    /// The lattice that the leaves lie on.
    pub fn shape(&self) -> Shape {
        Shape {
            ndim: self.ndim,
            root: self.root,
            boxlen: self.boxlen,
            lattice_level: self.lattice_level,
        }
    }
}

/// Leaf cells with their fields, in a store or in memory: the kind `amr`, layout `tree`.
///
/// Nothing is read before it is asked for. All methods run on the current rayon pool.
pub struct AmrTree {
    pub(crate) source: Arc<dyn ColumnSource>,
    pub(crate) shape: Shape,
    /// The names of `source` without `level`.
    fields: Vec<String>,
    cells_per_level: Vec<(u8, u64)>,
    attributes: Value,
    geometry: OnceLock<Geometry>,
    read_geometry: Box<dyn Fn() -> Result<Geometry> + Send + Sync>,
}

impl AmrTree {
    /// A tree in memory. `columns` are its fields, each with as many rows as there are leaves.
    ///
    /// # Errors
    /// `Invalid` where columns differ in length, names are taken twice or by a derived column, or
    /// the leaves make no tree.
    pub fn from_leaves(
        leaves: Leaves,
        columns: Vec<(String, Column)>,
        chunk_rows: u64,
    ) -> Result<Self> {
        let shape = leaves.shape();
        shape.check()?;
        if *leaves.levels.dtype() != DataType::UInt8 {
            let found = leaves.levels.dtype();
            return Err(Error::invalid(format!("levels must be uint8, not {found}")));
        }
        let geometry = Geometry::of_leaves(&shape, leaves.levels.bytes(), leaves.jumps, chunk_rows)?;
        let mut counts = [0u64; 256];
        for level in leaves.levels.bytes() {
            counts[usize::from(*level)] += 1;
        }
        let counts = (0u8..).zip(counts).filter(|(_, cells)| *cells > 0).collect();
        let mut all = vec![(LEVEL.to_owned(), leaves.levels)];
        all.extend(columns);
        let source: Arc<dyn ColumnSource> = Arc::new(MemoryColumns::new(all, chunk_rows)?);
        Self::new(source, shape, counts, json!({}), Ok(geometry))
    }
}
