//! Windows: ranges of cells of one level, the pixels of grids, slices and projections.

use crate::error::{Error, Result};

/// The cells `lo .. hi` of one level, in each dimension, counted from the lower corner of the box;
/// 0 .. 1 in unused dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The level of its cells. On a tree, finer than the finest cell is possible.
    pub level: u8,
    /// The first cell.
    pub lo: [u64; 3],
    /// The index after the last cell.
    pub hi: [u64; 3],
}

impl Window {
    /// Its number of cells in each dimension.
    pub fn cells(&self) -> [u64; 3] {
        std::array::from_fn(|d| self.hi[d].saturating_sub(self.lo[d]))
    }

    pub(super) fn contains(&self, cell: &[u64; 3]) -> bool {
        (0..3).all(|d| self.lo[d] <= cell[d] && cell[d] < self.hi[d])
    }

    /// Number of cells.
    ///
    /// # Errors
    /// `Limit` if they do not fit in memory.
    pub(super) fn count(&self) -> Result<usize> {
        let cells = self.cells();
        let count = cells.iter().try_fold(1u64, |all, n| all.checked_mul(*n));
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| {
            Error::limit(format!(
                "a window of {cells:?} cells does not fit in memory; choose a coarser level or a smaller region"
            ))
        })
    }
}

/// Rounds `x` to an integer if it is within a billionth of it.
pub(super) fn snapped(x: f64) -> f64 {
    let face = x.round();
    if (x - face).abs() < 1e-9 { face } else { x }
}
