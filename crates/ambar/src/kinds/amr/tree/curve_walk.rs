//! The walk along the Morton curve, which computes cells' positions from a first corner and the cells' levels.

use crate::error::{Error, Result};
use crate::kinds::amr::tree::shape::TreeShape;

/// A gap in the sequence of leaf cells along the Morton curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The row of the first leaf after the gap.
    pub row: u64,
    /// Its lower corner, in lattice units (`2^lattice_level` to the side of a root cell).
    pub corner: [u64; 3],
}

/// Rows of a block of the walk, so that their positions stay in the processor's cache.
pub(crate) const BLOCK: usize = 2048;

/// Centres of cells in half lattice units, which are integers at every level; one vector for each dimension.
///
/// The cell of level `l` with centre `c` has the side `s = 2^(L - l)` and the lower corner `(c - s) / 2` in
/// lattice units; its index on its level is `c >> (L - l + 1)`.
#[derive(Default)]
pub(crate) struct Centres {
    pub axes: [Vec<u64>; 3],
}

/// Masks of the siblings that are in the second half of their parent, for each dimension.
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

/// The position of the next leaf cell on the curve.
pub(crate) struct CurveWalk<'a> {
    shape: &'a TreeShape,
    row: u64,
    corner: [u64; 3],
    /// The remaining jumps.
    jumps: &'a [Jump],
}

impl<'a> CurveWalk<'a> {
    /// Starts a walk at the leaf `row`, whose lower corner is `corner`. `jumps` can include
    /// those before `row`.
    pub(crate) fn new(shape: &'a TreeShape, row: u64, corner: [u64; 3], jumps: &'a [Jump]) -> Self {
        let ahead = jumps.partition_point(|jump| jump.row <= row);
        Self {
            shape,
            row,
            corner,
            jumps: &jumps[ahead..],
        }
    }

    /// Fills `centres` with the centres of the next cells, whose levels are `levels`.
    ///
    /// # Errors
    /// `Corrupt` if these levels do not form a tree.
    pub(crate) fn next(&mut self, levels: &[u8], centres: &mut Centres) -> Result<()> {
        for axis in &mut centres.axes {
            axis.resize(levels.len(), 0);
        }
        let mut done = 0;
        while done < levels.len() {
            let mut end = levels.len();
            if let Some((jump, later)) = self.jumps.split_first() {
                let ahead = jump.row - self.row;
                if ahead == 0 {
                    self.corner = jump.corner;
                    self.jumps = later;
                    continue;
                }
                end = end.min(done.saturating_add(ahead as usize));
            }
            let is_valid = match self.shape.ndim {
                1 => self.segment::<1>(&levels[done..end], done, centres),
                2 => self.segment::<2>(&levels[done..end], done, centres),
                _ => self.segment::<3>(&levels[done..end], done, centres),
            };
            self.row += (end - done) as u64;
            if !is_valid {
                return Err(Error::corrupt(format!(
                    "the levels of the cells before row {} do not form a tree of finest level {}; \
                     restore the file from a copy",
                    self.row, self.shape.lattice_level
                )));
            }
            done = end;
        }
        Ok(())
    }

    /// Walks over cells without a jump between them. Returns `false` if they do not fit on the lattice.
    fn segment<const N: usize>(&mut self, levels: &[u8], at: usize, centres: &mut Centres) -> bool {
        let finest = self.shape.lattice_level;
        let extent = self.shape.extent();
        let family = 1 << N;
        let mut corner: [u64; N] = std::array::from_fn(|d| self.corner[d]);
        let mut is_valid = true;
        let mut i = 0;
        while let Some(&level) = levels.get(i) {
            if level > finest {
                return false;
            }
            let shift = u32::from(finest - level);
            let size = 1u64 << shift;
            let bits = corner.iter().fold(0, |bits, x| bits | x);
            // All cells of a parent together: the common case, without carries.
            let siblings = levels.get(i..i + family);
            let alike = siblings.is_some_and(|s| s.iter().fold(0, |or, l| or | (l ^ level)) == 0);
            let step = if alike && bits & (2 * size - 1) == 0 {
                for (d, axis) in centres.axes.iter_mut().enumerate().take(N) {
                    let (first, step) = (2 * corner[d] + size, 2 * size);
                    let siblings = axis[at + i..at + i + family].iter_mut();
                    for (centre, second) in siblings.zip(SECOND[d]) {
                        *centre = first + (step & second);
                    }
                }
                i += family;
                shift + 1
            } else {
                for (d, axis) in centres.axes.iter_mut().enumerate().take(N) {
                    axis[at + i] = 2 * corner[d] + size;
                }
                is_valid &= bits & (size - 1) == 0;
                i += 1;
                shift
            };
            for d in 0..N {
                is_valid &= corner[d] + (1 << step) <= extent[d];
            }
            advance(&mut corner, step);
        }
        self.corner[..N].copy_from_slice(&corner);
        is_valid
    }
}

/// The corner after the cell of side `2^shift` at `corner` along the curve.
pub(crate) fn following_corner(ndim: usize, corner: [u64; 3], shift: u32) -> [u64; 3] {
    let mut next = corner;
    match ndim {
        1 => advance::<1>(next.first_chunk_mut().unwrap_or(&mut [0]), shift),
        2 => advance::<2>(next.first_chunk_mut().unwrap_or(&mut [0; 2]), shift),
        _ => advance::<3>(&mut next, shift),
    }
    next
}

/// Moves `corner` by a cell of side `2^shift` along the curve: an addition of one to the interleaved bits.
#[inline]
fn advance<const N: usize>(corner: &mut [u64; N], shift: u32) {
    let mut bit = 1u64 << shift;
    // Terminates at the latest when the bit is shifted out: then nothing changes.
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
