//! The boxes of a patch-based hierarchy, level by level, and searches for boxes in a region.

pub(super) mod box_tree;
pub(super) mod nest;
pub(super) mod rows;

use std::fmt;

use crate::error::{Error, Result};

/// A rectangle of cells of one level: `lo .. hi` in each dimension, in that level's cell indices,
/// which may be negative. `0 .. 1` in dimensions that are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexBox {
    /// The first cell.
    pub lo: [i64; 3],
    /// The index after the last cell.
    pub hi: [i64; 3],
}

/// As in files of AMReX, `((64,0) (81,15) (0,0))`: the first and the last cell, and zeros for values at cell centres.
/// Trailing dimensions of the range `0 .. 1` are left out.
impl fmt::Display for IndexBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = (1..3).rev().find(|&d| (self.lo[d], self.hi[d]) != (0, 1));
        let ndim = used.unwrap_or(0) + 1;
        let tuple = |indices: [i64; 3]| {
            let indices: Vec<_> = indices[..ndim].iter().map(i64::to_string).collect();
            format!("({})", indices.join(","))
        };
        let last = self.hi.map(|index| index.saturating_sub(1));
        write!(f, "({} {} {})", tuple(self.lo), tuple(last), tuple([0; 3]))
    }
}

/// Maximum magnitude of a cell index: differences and products of two indices cannot overflow.
pub const MAX_INDEX: i64 = 1 << 40;

impl IndexBox {
    /// Number of cells in each dimension; 0 where it is empty.
    pub fn shape(&self) -> [usize; 3] {
        std::array::from_fn(|d| (self.hi[d] - self.lo[d]).max(0) as usize)
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        (0..3).any(|d| self.lo[d] >= self.hi[d])
    }

    /// The cells in both boxes; empty if they do not overlap.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            lo: std::array::from_fn(|d| self.lo[d].max(other.lo[d])),
            hi: std::array::from_fn(|d| self.hi[d].min(other.hi[d])),
        }
    }

    /// The smallest box that contains both.
    #[must_use]
    pub(crate) fn hull(&self, other: &Self) -> Self {
        Self {
            lo: std::array::from_fn(|d| self.lo[d].min(other.lo[d])),
            hi: std::array::from_fn(|d| self.hi[d].max(other.hi[d])),
        }
    }

    /// The cells, coarser by `ratio`, that overlap it.
    #[must_use]
    pub fn coarsened(&self, ratio: [i64; 3]) -> Self {
        Self {
            lo: std::array::from_fn(|d| self.lo[d].div_euclid(ratio[d])),
            hi: std::array::from_fn(|d| (self.hi[d] - 1).div_euclid(ratio[d]) + 1),
        }
    }

    /// The cells, finer by `ratio`, that are in it.
    #[must_use]
    pub fn refined(&self, ratio: [i64; 3]) -> Self {
        Self {
            lo: std::array::from_fn(|d| self.lo[d] * ratio[d]),
            hi: std::array::from_fn(|d| self.hi[d] * ratio[d]),
        }
    }

    /// Its parts of at most `cells` cells, or of one plane, cut along the last of `ndim` dimensions.
    pub(crate) fn slabs(self, ndim: usize, cells: usize) -> impl Iterator<Item = Self> {
        let axis = ndim - 1;
        let length = self.shape()[axis].max(1);
        let plane = (self.cells() / length).max(1);
        let planes = (cells / plane).clamp(1, length);
        (self.lo[axis]..self.hi[axis])
            .step_by(planes)
            .map(move |lo| {
                let mut slab = self;
                slab.lo[axis] = lo;
                slab.hi[axis] = (lo + planes as i64).min(self.hi[axis]);
                slab
            })
    }

    /// Whether it contains all of `other`.
    pub fn contains(&self, other: &Self) -> bool {
        (0..3).all(|d| self.lo[d] <= other.lo[d] && other.hi[d] <= self.hi[d])
    }
}

/// One level: its index domain, its boxes, the size of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchLevel {
    /// All cells the level could have: the problem domain in this level's indices.
    pub domain: IndexBox,
    /// The boxes with data, in their order in the file. They do not overlap.
    pub boxes: Vec<IndexBox>,
    /// Sides of a cell, in code length; 0 in dimensions that are not used.
    pub cell_size: [f64; 3],
    /// How many times finer the next level is in each dimension; 1 for the finest level.
    pub ratio: [i64; 3],
}

/// A patch-based hierarchy: its levels, the coarsest first.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchHierarchy {
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// Lower corner of the problem domain, in code length.
    pub lower: [f64; 3],
    /// Upper corner of the problem domain, in code length.
    pub upper: [f64; 3],
    /// The levels; at least one.
    pub levels: Vec<PatchLevel>,
}

impl PatchHierarchy {
    /// Checks every property, so that no later arithmetic can overflow.
    ///
    /// # Errors
    /// `Invalid`, with the property and the level.
    pub fn check(&self) -> Result<()> {
        if !(1..=3).contains(&self.ndim) {
            let ndim = self.ndim;
            return Err(Error::invalid(format!(
                "invalid number of dimensions: {ndim}; expected 1 to 3"
            )));
        }
        if self.levels.is_empty() {
            return Err(Error::invalid(
                "the hierarchy has no levels; expected at least one",
            ));
        }
        for (number, level) in self.levels.iter().enumerate() {
            let wrong = |what: String| Error::invalid(format!("level {number}: {what}"));
            level.check(self.ndim).map_err(wrong)?;
        }
        Ok(())
    }
}

impl PatchLevel {
    fn check(&self, ndim: usize) -> std::result::Result<(), String> {
        if self.domain.is_empty() {
            return Err("the domain is empty; expected at least one cell".into());
        }
        for index_box in self.boxes.iter().chain([&self.domain]) {
            let far = |x: &i64| x.unsigned_abs() > MAX_INDEX as u64;
            if index_box.lo.iter().chain(&index_box.hi).any(far) {
                return Err(format!("{index_box} has an index beyond {MAX_INDEX}"));
            }
            let flat = |d: usize| index_box.lo[d] == 0 && index_box.hi[d] == 1;
            if !(ndim..3).all(flat) {
                return Err(format!("{index_box} has more than {ndim} dimensions"));
            }
        }
        if self.boxes.iter().any(IndexBox::is_empty) {
            return Err("a box is empty; expected at least one cell".into());
        }
        if self.ratio.iter().any(|ratio| !(1..=1024).contains(ratio)) {
            return Err(format!(
                "invalid refinement ratio: {:?}; expected 1 to 1024",
                self.ratio
            ));
        }
        let sides = self.cell_size[..ndim].iter();
        if sides
            .into_iter()
            .any(|side| !(*side > 0.0 && side.is_finite()))
        {
            return Err(format!(
                "invalid cell size: {:?}; expected finite numbers above 0",
                self.cell_size
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_written_as_in_files_of_amrex() {
        let written = |lo, hi| IndexBox { lo, hi }.to_string();
        assert_eq!(written([64, 0, 0], [82, 1, 1]), "((64) (81) (0))");
        assert_eq!(written([64, -2, 0], [82, 16, 1]), "((64,-2) (81,15) (0,0))");
        assert_eq!(written([0, 0, 4], [1, 1, 5]), "((0,0,4) (0,0,4) (0,0,0))");
    }
}
