//! The places of a tree's cells, chunk by chunk, for the codec that predicts values from those around them.

use std::sync::Arc;

use crate::array::LeafPlaces;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::geometry::Geometry;
use crate::kinds::amr::tree::shape::Shape;
use crate::kinds::amr::tree::walk::Jump;
use crate::kinds::amr::tree::walk::{Centres, Walk};
use crate::kinds::bound::{ErrorBound, FieldBounds, stricter};

/// The cells of a tree that is being written.
#[derive(Debug)]
pub(super) struct Places {
    shape: Shape,
    levels: Arc<[u8]>,
    /// The first corner of each chunk.
    corners: Vec<[u64; 3]>,
    jumps: Vec<Jump>,
    chunk_rows: usize,
}

impl Places {
    /// Of cells with these levels, cut into chunks of `chunk_rows`.
    pub fn new(shape: &Shape, levels: &[u8], geometry: &Geometry, chunk_rows: u64) -> Self {
        Self {
            shape: shape.clone(),
            levels: levels.into(),
            corners: geometry.corners.clone(),
            jumps: geometry.jumps.clone(),
            chunk_rows: chunk_rows as usize,
        }
    }
}

impl Places {
    /// The strictest bound of the cells of a chunk; `None` for a chunk without cells.
    ///
    /// # Errors
    /// As `chunk`.
    pub fn strictest(&self, chunk: u64, bounds: &FieldBounds) -> Result<Option<ErrorBound>> {
        let (levels, places) = self.chunk(chunk)?;
        let cells = levels.iter().zip(&places).map(|(level, place)| {
            let side = self.shape.cell_size(*level);
            // Indices are in z, y, x.
            let lower = std::array::from_fn(|d| place[2 - d] as f64 * side);
            let upper = std::array::from_fn(|d| (place[2 - d] + 1) as f64 * side);
            bounds.within(Some(u64::from(*level)), &lower, &upper)
        });
        Ok(cells.reduce(stricter))
    }
}

impl LeafPlaces for Places {
    fn dimensions(&self) -> usize {
        self.shape.ndim
    }

    fn chunk(&self, chunk: u64) -> Result<(Vec<u8>, Vec<[i64; 3]>)> {
        let number = usize::try_from(chunk).unwrap_or(usize::MAX);
        let levels = self.levels.chunks(self.chunk_rows).nth(number);
        let (Some(levels), Some(corner)) = (levels, self.corners.get(number)) else {
            return Err(Error::invalid(format!("the tree has no chunk {chunk}")));
        };
        let row = chunk * self.chunk_rows as u64;
        let mut centres = Centres::default();
        Walk::new(&self.shape, row, *corner, &self.jumps).next(levels, &mut centres)?;
        let finest = self.shape.lattice_level;
        let place = |(row, level): (usize, &u8)| {
            std::array::from_fn(|d| match 2 - d {
                axis if axis < self.shape.ndim => {
                    (centres.axes[axis][row] >> (finest - level + 1)) as i64
                }
                _ => 0,
            })
        };
        let places = levels.iter().enumerate().map(place).collect();
        Ok((levels.to_vec(), places))
    }
}
