//! A lattice split by parity: the eight phases of one interpolation level, and the memory layout of their points.
//!
//! Points of the lattice whose indices are even in every dimension are phase 0, the coarser lattice.
//! Phase `t` holds the points whose index is odd in the dimensions of `t`'s bits (bit 0: z, bit 1: y,
//! bit 2: x). All phases have the same padded shape, so that neighbours in other phases are at fixed offsets, and rows
//! along x are contiguous.

/// Phases in the order of coding: along one dimension, then two, then three.
pub(crate) const ORDER: [usize; 7] = [1, 2, 4, 3, 5, 6, 7];

/// Padding points before the first and after the last point of a padded dimension. Predictions read up to two points
/// beyond the last. Along x, the second of these is the padding before the next row; its value is ignored.
const LOW: usize = 1;
const HIGH: [usize; 3] = [2, 2, 1];
/// Extrapolation into holes reads three points before a hole, so at least this many precede the first point. Rows of
/// one-dimensional lattices have no other rows before them.
const BEFORE_FIRST: usize = 3;

/// The shape of the phases of a lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phases {
    /// The number of points of the lattice in z, y, x.
    pub fine: [usize; 3],
    /// The distance of neighbours of a phase in z, y and x; 1 in x.
    pub stride: [usize; 3],
    /// The number of points of a phase, padding included.
    pub len: usize,
    /// The offset of the first point that is not padding.
    first: usize,
}

impl Phases {
    /// The phases of a lattice of `fine` points.
    pub(crate) fn new(fine: [usize; 3]) -> Self {
        // Rows are always padded, because predictions read beyond their ends.
        let pads = [fine[0] > 1, fine[1] > 1, true];
        let padded: [usize; 3] = std::array::from_fn(|d| {
            let points = fine[d].div_ceil(2);
            if pads[d] {
                LOW + points + HIGH[d]
            } else {
                points
            }
        });
        let stride = [padded[1] * padded[2], padded[2], 1];
        let low = pads.map(|pad| if pad { LOW } else { 0 });
        let first = low[0] * stride[0] + low[1] * stride[1] + low[2];
        let more = BEFORE_FIRST.saturating_sub(first);
        Self {
            fine,
            stride,
            len: padded.iter().product::<usize>() + more,
            first: first + more,
        }
    }

    /// The number of points of phase `t` in z, y, x; 0 in odd dimensions of length 1.
    pub(crate) fn points(&self, t: usize) -> [usize; 3] {
        std::array::from_fn(|d| {
            if t >> d & 1 == 1 {
                self.fine[d] / 2
            } else {
                self.fine[d].div_ceil(2)
            }
        })
    }

    /// The offset of the row (z, y) of a phase.
    #[inline(always)]
    pub(crate) fn row(&self, z: usize, y: usize) -> usize {
        self.first + z * self.stride[0] + y * self.stride[1]
    }
}

/// The shapes of the lattices of a region, the finest first. Each has half the length of the one before in each
/// dimension; the last is a single point.
pub(crate) fn levels(shape: [usize; 3]) -> Vec<[usize; 3]> {
    let mut levels = vec![shape];
    let mut last = shape;
    while last != [1; 3] {
        last = last.map(|n| n.div_ceil(2));
        levels.push(last);
    }
    levels
}

/// Copies the phases of a lattice into rows, of which `start(z, y)` is the first index in `to`.
pub(crate) fn interleave<T: Copy>(
    phases: &Phases,
    from: &[Vec<T>; 8],
    to: &mut [T],
    start: impl Fn(usize, usize) -> usize,
) {
    let [nz, ny, nx] = phases.fine;
    let from = from.each_ref().map(|values| &values[..]);
    for z in 0..nz {
        for y in 0..ny {
            let begin = start(z, y);
            interleave_row(phases, &from, [z, y, 0], &mut to[begin..begin + nx]);
        }
    }
}

/// Copies consecutive points of a row of a lattice.
#[inline(always)]
pub(crate) fn interleave_row<T: Copy>(
    phases: &Phases,
    from: &[&[T]; 8],
    [z, y, x]: [usize; 3],
    to: &mut [T],
) {
    let t = (z & 1) | (y & 1) << 1;
    let row = phases.row(z / 2, y / 2);
    let Some((first, rest)) = to.split_first_mut().filter(|_| x % 2 == 1) else {
        return pairs(from[t], from[t | 4], row + x / 2, to);
    };
    *first = from[t | 4][row + x / 2];
    pairs(from[t], from[t | 4], row + x / 2 + 1, rest);
}

/// Interleaves the points of two phases from index `at`.
#[inline(always)]
fn pairs<T: Copy>(even: &[T], odd: &[T], at: usize, to: &mut [T]) {
    let even = &even[at..at + to.len().div_ceil(2)];
    // A phase without points has no values.
    let odd = odd.get(at..at + to.len() / 2).unwrap_or_default();
    let (to, last) = to.as_chunks_mut::<2>();
    for ((pair, even), odd) in to.iter_mut().zip(even).zip(odd) {
        *pair = [*even, *odd];
    }
    if let ([last], Some(even)) = (last, even.last()) {
        *last = *even;
    }
}

/// The `n` first points with even and with odd indices of the row (z, y) of a lattice.
#[inline(always)]
pub(crate) fn row_halves<'a, T>(
    phases: &Phases,
    from: &[&'a [T]; 8],
    [z, y]: [usize; 2],
    n: usize,
) -> [&'a [T]; 2] {
    let t = (z & 1) | (y & 1) << 1;
    let row = phases.row(z / 2, y / 2);
    [&from[t][row..][..n], &from[t | 4][row..][..n]]
}

/// Interleaves two arrays.
#[inline(always)]
pub(crate) fn interleave_pairs<T: Copy, const N: usize>(
    even: &[T; N],
    odd: &[T; N],
    to: &mut [[T; 2]],
) {
    let (even, odd) = (*even, *odd);
    for (k, to) in to.iter_mut().enumerate().take(N) {
        *to = [even[k], odd[k]];
    }
}
