//! Leaf cells of a tree along the Morton curve, which readers of other codes' files create.

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::Jump;
use crate::kinds::amr::tree::derived_columns::{CurvePosition, DerivedColumn, derive};
use crate::kinds::amr::tree::geometry::first_corners;
use crate::kinds::amr::tree::shape::TreeShape;
use crate::memory::Column;

/// Rows of each task of the parallel walk.
const CHUNK: usize = 1 << 15;

/// Leaf cells of all levels along one Morton curve (x is the lowest bit).
///
/// Positions are not stored: each leaf starts at the end of the previous one, except at `jumps`.
#[derive(Debug)]
pub struct Leaves {
    /// Dimensions, 1 to 3. Coordinates of further dimensions are 0.
    pub ndim: usize,
    /// Root cells per dimension; 1 in unused dimensions. The side of a cell of level `l` is
    /// `2^-l` of a root cell's.
    pub root: [u64; 3],
    /// Size of the box in x, in code length; a root cell's side is `boxlen / root[0]`.
    pub boxlen: f64,
    /// The finest level of the leaves, whose cells are the unit of the lattice.
    pub lattice_level: u8,
    /// The leaves' levels, `uint8`, in order.
    pub levels: Column,
    /// The gaps between leaves along the curve; empty if the leaves fill the box. Leaves that do not start at
    /// the origin have a jump at row 0.
    pub jumps: Vec<Jump>,
}

impl Leaves {
    /// The lattice that the leaves are on.
    pub fn shape(&self) -> TreeShape {
        TreeShape {
            ndim: self.ndim,
            root: self.root,
            boxlen: self.boxlen,
            lattice_level: self.lattice_level,
        }
    }

    pub(super) fn checked_shape(&self) -> Result<TreeShape> {
        let shape = self.shape();
        shape.check()?;
        if *self.levels.dtype() != DataType::UInt8 {
            let found = self.levels.dtype();
            return Err(Error::invalid(format!(
                "levels must be uint8, not {found}; convert them"
            )));
        }
        Ok(shape)
    }

    /// Derived columns of all leaves: `level` (int32), `x`, `y`, `z` (centres, float64, code
    /// length), `dx` (sides, float64, code length), `ix`, `iy`, `iz` (indices on the leaf's
    /// level, int64). Computed in parallel.
    ///
    /// # Errors
    /// `NotFound` for other names; `Invalid` if the leaves do not form a tree.
    pub fn derived(&self, names: &[&str]) -> Result<Vec<(String, Column)>> {
        let shape = self.checked_shape()?;
        let columns = names
            .iter()
            .map(|name| {
                DerivedColumn::parse(name, shape.ndim).ok_or_else(|| {
                    let known = DerivedColumn::names(shape.ndim).join(", ");
                    Error::not_found(format!(
                        "derived column {name:?} does not exist; available: {known}"
                    ))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let levels = self.levels.bytes();
        let corners = first_corners(&shape, levels, &self.jumps, CHUNK)?;
        let dtypes: Vec<DataType> = columns.iter().map(|column| column.dtype()).collect();
        let mut filled = Column::allocate(&dtypes, levels.len())?;
        let mut outs: Vec<Vec<&mut [u8]>> = corners.iter().map(|_| Vec::new()).collect();
        for column in &mut filled {
            let size = column.dtype().size().unwrap_or(1);
            for (outs, bytes) in outs
                .iter_mut()
                .zip(column.bytes_mut().chunks_mut(CHUNK * size))
            {
                outs.push(bytes);
            }
        }
        let chunks = levels.par_chunks(CHUNK).zip(&corners).zip(outs);
        chunks
            .enumerate()
            .try_for_each(|(chunk, ((levels, corner), mut outs))| {
                let start = CurvePosition {
                    row: (chunk * CHUNK) as u64,
                    corner: *corner,
                };
                derive(&shape, &self.jumps, start, levels, &columns, &mut outs)
            })?;
        Ok(names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(filled)
            .collect())
    }
}
