//! Leaf cells of a tree along the Morton curve: what is known of their geometry.

use crate::memory::Column;

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
