//! The presence of a region's points on every lattice of the traversal, and the extrapolation of present points
//! into holes that are not predicted.

use crate::domain::bitmap::{Bitmap, bit_runs};
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::extrapolate::extrapolated;
use crate::predict::interpolate::{NeighbourMask, VECTOR_POINTS, nonzero_bytes};
use crate::simd::dispatch::vectorised;
use std::ops::Range;

/// The present points of each phase of each lattice, except the coarsest one.
pub(crate) struct Validity {
    levels: Vec<[Bitmap; 8]>,
    has_anchor: bool,
    predicts_holes: bool,
}

impl Validity {
    /// From the present points of a region. `predicts_holes`: the others are predicted like them.
    pub(crate) fn new(region: &Bitmap, predicts_holes: bool) -> Self {
        let mut levels: Vec<[Bitmap; 8]> = Vec::new();
        loop {
            let lattice = levels.last().map_or(region, |phases| &phases[0]);
            if lattice.shape() == [1; 3] {
                break;
            }
            levels.push(lattice.phases());
        }
        Self {
            levels,
            has_anchor: region.get([0; 3]),
            predicts_holes,
        }
    }

    /// Whether absent points are predicted like present ones, and others are predicted from them.
    pub(crate) fn predicts_holes(&self) -> bool {
        self.predicts_holes
    }

    /// Whether the single point of the coarsest lattice is present.
    pub(crate) fn has_anchor(&self) -> bool {
        self.has_anchor
    }

    /// The phases of lattice `number`.
    pub(crate) fn phases(&self, number: usize) -> &[Bitmap; 8] {
        &self.levels[number]
    }
}

/// The neighbour mask of a word of a row of phase `t`, which is odd in dimensions `odd`. `own` are the word's
/// present points.
#[inline(always)]
pub(crate) fn neighbour_mask<const N: usize>(
    phases: &[Bitmap; 8],
    (t, odd): (usize, [usize; N]),
    [z, y]: [usize; 2],
    (word, own): (usize, u64),
) -> NeighbourMask<N> {
    let mut neighbours = NeighbourMask {
        own,
        before: [0; N],
        after: [0; N],
    };
    for (j, d) in odd.into_iter().enumerate() {
        let phase = &phases[t ^ 1 << d];
        neighbours.before[j] = phase.word([z, y], word);
        neighbours.after[j] = match d {
            0 => phase.word([z + 1, y], word),
            1 => phase.word([z, y + 1], word),
            _ => phase.word_after([z, y], word, 1),
        };
    }
    neighbours
}

/// Extrapolates the present points of phase `t` into the absent ones next to them along an even dimension, and
/// into the points one beyond the borders.
pub(crate) fn extrapolate_into_holes<T: Element>(
    values: &mut [T],
    valid: &Bitmap,
    phases: &Phases,
    t: usize,
) {
    let even: [bool; 3] = std::array::from_fn(|d| t >> d & 1 == 0 && phases.fine[d] > 1);
    if even == [false; 3] {
        return;
    }
    let filler = HoleFiller {
        valid,
        bordered: BorderedWords::new(valid),
        even,
        strides: phases.stride.map(|stride| stride as isize),
        mean_factors: [0, 1, 2, 3, 4, 5, 6].map(|n| T::from_f64(1.0 / f64::from(n))),
    };
    let [nz, ny, nx] = valid.shape();
    let origin = phases.row(0, 0) as isize;
    let beyond_z = isize::from(even[0]);
    let beyond_y = isize::from(even[1]);
    for z in -beyond_z..nz as isize + beyond_z {
        for y in -beyond_y..ny as isize + beyond_y {
            let row = (origin + z * filler.strides[0] + y * filler.strides[1]) as usize;
            for word in 0..valid.words() {
                let within = u64::MAX >> (64 - (nx - 64 * word).min(64));
                filler.fill(values, [z, y], word, row + 64 * word, within);
            }
            if even[2] {
                filler.fill_ends(values, [z as usize, y as usize], row, nx);
            }
        }
    }
}

/// The words of a bitmap, with empty rows around them.
struct BorderedWords {
    words: Vec<u64>,
    /// Words of a row.
    row: usize,
    /// Distance of neighbours in z and y.
    strides: [usize; 2],
}

/// Empty rows around a bitmap: points one beyond it are extrapolated from up to three further on.
const BORDER: usize = 4;

impl BorderedWords {
    fn new(valid: &Bitmap) -> Self {
        let ([nz, ny, _], row) = (valid.shape(), valid.words());
        let strides = [(ny + 2 * BORDER) * row, row];
        let mut words = vec![0; (nz + 2 * BORDER) * strides[0]];
        for z in 0..nz {
            let to = (z + BORDER) * strides[0] + BORDER * row;
            words[to..to + ny * row].copy_from_slice(valid.plane(z));
        }
        Self {
            words,
            row,
            strides,
        }
    }

    /// The index of a word of the row (z, y).
    #[inline(always)]
    fn index(&self, [z, y]: [isize; 2], word: usize) -> usize {
        let [z, y] = [z, y].map(|k| (k + BORDER as isize) as usize);
        z * self.strides[0] + y * self.strides[1] + word
    }

    /// The word of the points that follow those of the word at an index by `k` along dimension `d`. It is number `word` of its
    /// row.
    #[inline(always)]
    fn neighbours(&self, at: usize, word: usize, d: usize, k: isize) -> u64 {
        if d < 2 {
            return self.words[at.wrapping_add_signed(k * self.strides[d] as isize)];
        }
        let by = k.unsigned_abs() as u32;
        let (own, next) = (self.words[at], word + 1 < self.row);
        if k > 0 {
            let next = if next { self.words[at + 1] } else { 0 };
            own >> by | next << (64 - by)
        } else {
            let before = if word > 0 { self.words[at - 1] } else { 0 };
            own << by | before >> (64 - by)
        }
    }
}

/// Extrapolates into the holes of a phase.
struct HoleFiller<'a, T> {
    valid: &'a Bitmap,
    bordered: BorderedWords,
    /// The dimensions along which points are extrapolated.
    even: [bool; 3],
    strides: [isize; 3],
    /// The factor that turns the sum of n numbers into their mean, by n.
    mean_factors: [T; 7],
}

/// A direction: its step, and the presence of the points at a distance of 1, 2 and 3 (3 only if 2 is present).
type Direction = (isize, [u64; 3]);

impl<T: Element> HoleFiller<'_, T> {
    /// Fills the points of a word of a row, whose first has the index `start`.
    #[inline(always)]
    fn fill(&self, values: &mut [T], row: [isize; 2], word: usize, start: usize, within: u64) {
        let bits = &self.bordered;
        let at = bits.index(row, word);
        let missing = !bits.words[at] & within;
        if missing == 0 {
            return;
        }
        // The directions from which points are extrapolated, the points that are extrapolated from any direction, and those
        // from several.
        let (mut directions, mut count) = ([(0, [0; 3]); 6], 0);
        let (mut edge, mut several) = (0, 0);
        for d in (0..3).filter(|d| self.even[*d]) {
            for sign in [1, -1] {
                let first = bits.neighbours(at, word, d, sign) & missing;
                if first != 0 {
                    let second = bits.neighbours(at, word, d, 2 * sign);
                    let third = bits.neighbours(at, word, d, 3 * sign) & second;
                    directions[count] = (sign * self.strides[d], [first, second, third]);
                    count += 1;
                    several |= edge & first;
                    edge |= first;
                }
            }
        }
        let directions = &directions[..count];
        for (step, present) in directions {
            let [first, second, third] = *present;
            let single = first & !several;
            if single != 0 {
                self.fill_from_one(values, start, (*step, [single, second, third]));
            }
        }
        bit_runs(nonzero_bytes(several), |first, n| {
            let span = VECTOR_POINTS * first..VECTOR_POINTS * (first + n);
            self.fill_span(values, start, several, span, directions);
        });
    }

    /// Fills points that are extrapolated from a single direction.
    #[inline(always)]
    fn fill_from_one(&self, values: &mut [T], start: usize, (step, present): Direction) {
        let mut left = present[0];
        if left.count_ones() <= 2 {
            while left != 0 {
                let k = left.trailing_zeros();
                left &= left - 1;
                let near = present.map(|word| word >> k & 1 == 1);
                let at = start + k as usize;
                values[at] = extrapolate_point(values, at, step, near);
            }
            return;
        }
        let mut out = [T::default(); 64];
        bit_runs(nonzero_bytes(left), |first, n| {
            let (k, n) = (VECTOR_POINTS * first, VECTOR_POINTS * n);
            let present = present.map(|word| word >> k);
            extrapolate_span(values, start + k, step, present, &mut out[..n]);
            for (j, (value, new)) in values[start + k..].iter_mut().zip(&out[..n]).enumerate() {
                *value = if present[0] >> j & 1 == 1 {
                    *new
                } else {
                    *value
                };
            }
        });
    }

    /// Fills the points of a span whose bit in `edge` is set. The first point of the word has the index `start`.
    fn fill_span(
        &self,
        values: &mut [T],
        start: usize,
        edge: u64,
        span: Range<usize>,
        directions: &[Direction],
    ) {
        let (at, n) = (start + span.start, span.len());
        let ours = u64::MAX >> (64 - n);
        let (mut sums, mut counts) = ([T::from_f64(-0.0); 64], [0; 64]);
        let (sums, counts) = (&mut sums[..n], &mut counts[..n]);
        for (direction, present) in directions {
            let present = present.map(|word| word >> span.start & ours);
            if present[0] != 0 {
                extend(values, at, *direction, present, sums, counts);
            }
        }
        let mut edge = edge >> span.start & ours;
        while edge != 0 {
            let k = edge.trailing_zeros() as usize;
            edge &= edge - 1;
            if let (Some(sum), Some(count)) = (sums.get(k), counts.get(k)) {
                values[at + k] = sum.times(self.mean_factors[usize::from(*count)]);
            }
        }
    }

    /// Fills the points before and after a row.
    #[inline(always)]
    fn fill_ends(&self, values: &mut [T], place: [usize; 2], row: usize, nx: usize) {
        let first = self.valid.word(place, 0);
        if first & 1 == 1 {
            let near = [1, 2, 3].map(|k| first >> (k - 1) & 1 == 1);
            values[row - 1] = extrapolate_point(values, row - 1, 1, near);
        }
        let (word, bit) = ((nx - 1) / 64, (nx - 1) % 64);
        if self.valid.word(place, word) >> bit & 1 == 1 {
            let near = [0, 1, 2].map(|k| self.valid.word_before(place, word, k) >> bit & 1 == 1);
            values[row + nx] = extrapolate_point(values, row + nx, -1, near);
        }
    }
}

vectorised! {
    /// Extrapolates points from `at`. `present` are the bits of the points at a distance of 1, 2, and, if 2 is present, 3. The
    /// result is undefined if the first is absent.
    fn extrapolate_span [T: Element] of [T] (values: &[T], at: usize, step: isize, present: [u64; 3], out: &mut [T]) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let out = &mut out[..n];
        let Some(lanes) = lanes(values, at, step, n) else {
            return;
        };
        for (k, value) in out.iter_mut().enumerate() {
            *value = extrapolate_lane(lanes, present, k);
        }
    }
}

/// The `n` values from 1, 2 and 3 steps on. Values beyond the buffer are beyond a border, where no point is present:
/// the values in their place are not used.
#[inline(always)]
fn lanes<T>(values: &[T], at: usize, step: isize, n: usize) -> Option<[&[T]; 3]> {
    let lanes = |k: isize| {
        let from = at.wrapping_add_signed(k * step);
        values.get(from..).and_then(|values| values.get(..n))
    };
    let first = lanes(1)?;
    Some([first, lanes(2).unwrap_or(first), lanes(3).unwrap_or(first)])
}

/// Extrapolates the lanes at `k`.
#[inline(always)]
fn extrapolate_lane<T: Element>(
    [first, second, third]: [&[T]; 3],
    present: [u64; 3],
    k: usize,
) -> T {
    let a = first[k];
    let b = if present[1] >> k & 1 == 1 {
        second[k]
    } else {
        a
    };
    let line = b.plus(b).minus(a);
    let c = if present[2] >> k & 1 == 1 {
        third[k]
    } else {
        line
    };
    extrapolated(a, b, c)
}

vectorised! {
    /// Adds the extrapolation from a direction to the sums of points from `at` whose neighbour in this direction is present,
    /// and counts it. `present` are the bits of the points at a distance of 1, 2, and, if 2 is present, 3.
    fn extend [T: Element] of [T] (
        values: &[T],
        at: usize,
        direction: isize,
        present: [u64; 3],
        sums: &mut [T],
        counts: &mut [u8],
    ) {
        let n = sums.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (sums, counts) = (&mut sums[..n], &mut counts[..n]);
        let Some(lanes) = lanes(values, at, direction, n) else {
            return;
        };
        for k in 0..n {
            let one = present[0] >> k & 1 == 1;
            let value = extrapolate_lane(lanes, present, k);
            sums[k] = if one { sums[k].plus(value) } else { sums[k] };
            counts[k] += u8::from(one);
        }
    }
}

/// Extrapolates the value at `at` from a direction, in which the first point is present.
#[inline(always)]
fn extrapolate_point<T: Element>(
    values: &[T],
    at: usize,
    direction: isize,
    present: [bool; 3],
) -> T {
    let value = |k: isize| values[at.wrapping_add_signed(k * direction)];
    let a = value(1);
    let b = if present[1] { value(2) } else { a };
    let c = if present[1] && present[2] {
        value(3)
    } else {
        b.plus(b).minus(a)
    };
    extrapolated(a, b, c)
}
