//! The positions of a tree's cells, chunk by chunk, from which the codec predicts their values.

use std::sync::Arc;

use crate::array::LeafPositions;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::Jump;
use crate::kinds::amr::tree::curve_walk::{Centres, CurveWalk};
use crate::kinds::amr::tree::geometry::TreeGeometry;
use crate::kinds::amr::tree::shape::TreeShape;
use crate::kinds::bound::{ErrorBound, FieldBounds, stricter};

/// The positions of the cells of a tree that is being written.
#[derive(Debug)]
pub(super) struct TreeLeafPositions {
    shape: TreeShape,
    levels: Arc<[u8]>,
    /// The first corner of each chunk.
    corners: Vec<[u64; 3]>,
    jumps: Vec<Jump>,
    chunk_rows: usize,
}

impl TreeLeafPositions {
    /// The positions of cells with these levels, in chunks of `chunk_rows`.
    pub fn new(shape: &TreeShape, levels: &[u8], geometry: &TreeGeometry, chunk_rows: u64) -> Self {
        Self {
            shape: shape.clone(),
            levels: levels.into(),
            corners: geometry.corners.clone(),
            jumps: geometry.jumps.clone(),
            chunk_rows: chunk_rows as usize,
        }
    }
}

impl TreeLeafPositions {
    /// The strictest bound of the cells of a chunk; `None` for a chunk without cells.
    ///
    /// # Errors
    /// As `chunk`.
    pub fn strictest(&self, chunk: u64, bounds: &FieldBounds) -> Result<Option<ErrorBound>> {
        let (levels, positions) = self.chunk(chunk)?;
        let cells = levels.iter().zip(&positions).map(|(level, position)| {
            let side = self.shape.cell_size(*level);
            // Indices are in z, y, x.
            let lower = std::array::from_fn(|d| position[2 - d] as f64 * side);
            let upper = std::array::from_fn(|d| (position[2 - d] + 1) as f64 * side);
            bounds.within(Some(u64::from(*level)), &lower, &upper)
        });
        Ok(cells.reduce(stricter))
    }
}

impl LeafPositions for TreeLeafPositions {
    fn dimensions(&self) -> usize {
        self.shape.ndim
    }

    fn chunk(&self, chunk: u64) -> Result<(Vec<u8>, Vec<[i64; 3]>)> {
        let number = usize::try_from(chunk).unwrap_or(usize::MAX);
        let levels = self.levels.chunks(self.chunk_rows).nth(number);
        let (Some(levels), Some(corner)) = (levels, self.corners.get(number)) else {
            return Err(Error::invalid(format!(
                "chunk {chunk} of the tree does not exist; available: 0 to {}",
                self.corners.len().saturating_sub(1)
            )));
        };
        let row = chunk * self.chunk_rows as u64;
        let mut centres = Centres::default();
        CurveWalk::new(&self.shape, row, *corner, &self.jumps).next(levels, &mut centres)?;
        let finest = self.shape.lattice_level;
        let position = |(row, level): (usize, &u8)| {
            std::array::from_fn(|d| match 2 - d {
                axis if axis < self.shape.ndim => {
                    (centres.axes[axis][row] >> (finest - level + 1)) as i64
                }
                _ => 0,
            })
        };
        let positions = levels.iter().enumerate().map(position).collect();
        Ok((levels.to_vec(), positions))
    }
}
