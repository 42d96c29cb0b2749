//! The walk along the Morton curve: from a chunk's first corner and its levels to the cells' places.

use crate::error::{Error, Result};
use crate::kinds::amr::tree::shape::Shape;

/// A gap in the sequence of leaf cells along the Morton curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The row of the first leaf after the gap.
    pub row: u64,
    /// Its lower corner, in lattice units (a root cell has `2^lattice_level` of them a side).
    pub corner: [u64; 3],
}

/// Rows walked at a time, so that their places stay in the processor's cache.
pub(crate) const BLOCK: usize = 2048;

/// Centres of cells in half lattice units, one vector a dimension: integers whatever the level.
///
/// The cell of level `l` around centre `c` begins at `(c - s) / 2` lattice units and is `s = 2^(L -
/// l)` of them a side; its index on its own level is `c >> (L - l + 1)`.
#[derive(Default)]
pub(crate) struct Centres {
    pub axes: [Vec<u64>; 3],
}

/// Which of a parent's halves in each dimension are the second ones: all bits, where they are.
const SECOND: [[u64; 8]; 3] = {
    let mut second = [[0; 8]; 3];
    let mut j = 0;
    while j < 8 {
        let mut d = 0;
        while d < 3 {
            second[d][j] = if j >> d & 1 == 1 { u64::MAX } else { 0 };
            d += 1;
        }
        j += 1;
    }
    second
};

/// A place on the curve: where the next leaf cell begins.
pub(crate) struct Walk<'a> {
    shape: &'a Shape,
    row: u64,
    corner: [u64; 3],
    /// Those still ahead.
    jumps: &'a [Jump],
}

impl<'a> Walk<'a> {
    /// A walk that begins with the leaf `row`, whose lower corner is `corner`. `jumps` may hold
    /// those before `row` too.
    pub(crate) fn new(shape: &'a Shape, row: u64, corner: [u64; 3], jumps: &'a [Jump]) -> Self {
        let ahead = jumps.partition_point(|jump| jump.row <= row);
        Self {
            shape,
            row,
            corner,
            jumps: &jumps[ahead..],
        }
    }

    /// Fills `centres` with the places of the next cells, whose levels are `levels`.
    ///
    /// # Errors
    /// `Corrupt` where these levels cannot follow each other in a tree.
    pub(crate) fn next(&mut self, levels: &[u8], centres: &mut Centres) -> Result<()> {
        for axis in &mut centres.axes {
            axis.resize(levels.len(), 0);
        }
        let mut done = 0;
        while done < levels.len() {
            let mut end = levels.len();
            if let Some((jump, behind)) = self.jumps.split_first() {
                let ahead = jump.row - self.row;
                if ahead == 0 {
                    self.corner = jump.corner;
                    self.jumps = behind;
                    continue;
                }
                end = end.min(done.saturating_add(ahead as usize));
            }
            let sound = match self.shape.ndim {
                1 => self.segment::<1>(&levels[done..end], done, centres),
                2 => self.segment::<2>(&levels[done..end], done, centres),
                _ => self.segment::<3>(&levels[done..end], done, centres),
            };
            self.row += (end - done) as u64;
            if !sound {
                return Err(Error::corrupt(format!(
                    "the levels of the cells before row {} make no tree of finest level {}; \
                     restore the file from a copy",
                    self.row, self.shape.lattice_level
                )));
            }
            done = end;
        }
        Ok(())
    }

    /// Cells that follow each other without a jump. `false` where they do not fit on the lattice.
    fn segment<const N: usize>(&mut self, levels: &[u8], at: usize, centres: &mut Centres) -> bool {
        let finest = self.shape.lattice_level;
        let extent = self.shape.extent();
        let family = 1 << N;
        let mut corner: [u64; N] = std::array::from_fn(|d| self.corner[d]);
        let mut sound = true;
        let mut i = 0;
        while let Some(&level) = levels.get(i) {
            if level > finest {
                return false;
            }
            let shift = u32::from(finest - level);
            let size = 1u64 << shift;
            let bits = corner.iter().fold(0, |bits, x| bits | x);
            // All cells of a parent at once: the common case, and free of carries.
            let siblings = levels.get(i..i + family);
            let alike = siblings.is_some_and(|s| s.iter().fold(0, |or, l| or | (l ^ level)) == 0);
            let step = if alike && bits & (2 * size - 1) == 0 {
                for (d, axis) in centres.axes.iter_mut().enumerate().take(N) {
                    let (first, step) = (2 * corner[d] + size, 2 * size);
                    let places = axis[at + i..at + i + family].iter_mut();
                    for (centre, second) in places.zip(SECOND[d]) {
                        *centre = first + (step & second);
                    }
                }
                i += family;
                shift + 1
            } else {
                for (d, axis) in centres.axes.iter_mut().enumerate().take(N) {
                    axis[at + i] = 2 * corner[d] + size;
                }
                sound &= bits & (size - 1) == 0;
                i += 1;
                shift
            };
            for d in 0..N {
                sound &= corner[d] + (1 << step) <= extent[d];
            }
            advance(&mut corner, step);
        }
        self.corner[..N].copy_from_slice(&corner);
        sound
    }
}

/// Moves `corner` by a cell of side `2^shift` along the curve: adds one to the bits by turns.
#[inline]
fn advance<const N: usize>(corner: &mut [u64; N], shift: u32) {
    let mut bit = 1u64 << shift;
    // Ends at the latest when the bit has left the word: adding 0 changes nothing.
    loop {
        for x in corner.iter_mut() {
            *x ^= bit;
            if *x & bit == bit {
                return;
            }
        }
        bit <<= 1;
    }
}
