//! The lattice of the finest cells, and the levels of a read.

/// The cells of the finest level that is read, over the whole box. Morton keys are in its units.
#[derive(Clone, Copy, Debug)]
pub struct Lattice {
    /// Dimensions.
    pub ndim: usize,
    /// Root cells in each dimension; 1 in unused dimensions.
    pub root: [u64; 3],
    /// Index of the first root cell among the coarse cells; boundary cells come before it.
    pub shift: [u64; 3],
    /// Level of the lattice's cells.
    pub level: u8,
    /// Side of a root cell in code length.
    pub side: f64,
}

impl Lattice {
    /// Bits of a lattice coordinate.
    pub fn coordinate_bits(&self) -> u32 {
        let most = self.root.iter().max().map_or(1, |side| *side);
        u32::from(self.level) + (u64::BITS - (most - 1).leading_zeros())
    }

    /// Bits of the Morton keys inside a cell of `level`.
    pub fn cell_bits(&self, level: u8) -> u32 {
        self.ndim as u32 * u32::from(self.level - level)
    }

    /// The centre of a cell in code length.
    pub fn centre(&self, level: u8, at: [u64; 3]) -> [f64; 3] {
        let half = self.side * 0.5f64.powi(i32::from(level) + 1);
        at.map(|x| (2 * x + 1) as f64 * half)
    }
}

/// The levels of a read.
#[derive(Clone, Copy, Debug)]
pub struct LevelRange {
    /// The first level whose leaf cells are wanted.
    pub first: u8,
    /// The last level whose leaf cells are wanted. Octs up to this level are read.
    pub last: u8,
    /// The level at which the tree ends: all its cells are leaves.
    pub deepest: u8,
}
