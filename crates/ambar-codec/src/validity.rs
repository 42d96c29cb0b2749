//! Which points of a region are there, on every lattice of the walk; and what stands for the others.

use crate::bitmap::Bitmap;
use crate::continuation::continued;
use crate::element::Element;
use crate::lattice::Phases;
use crate::predict::{FEW, There, groups};
use std::ops::Range;

/// The points that are there: of each lattice but the coarsest, and each of its phases.
pub(crate) struct Validity {
    levels: Vec<[Bitmap; 8]>,
    anchor: bool,
}

impl Validity {
    /// From the points of a region that are there.
    pub(crate) fn new(region: &Bitmap) -> Self {
        let mut levels: Vec<[Bitmap; 8]> = Vec::new();
        loop {
            let lattice = levels.last().map_or(region, |phases| &phases[0]);
            if lattice.shape() == [1; 3] {
                break;
            }
            levels.push(std::array::from_fn(|t| lattice.phase(t)));
        }
        Self {
            levels,
            anchor: region.get([0; 3]),
        }
    }

    /// Whether the single point of the coarsest lattice is there.
    pub(crate) fn anchor(&self) -> bool {
        self.anchor
    }

    /// The phases of lattice `number`.
    pub(crate) fn phases(&self, number: usize) -> &[Bitmap; 8] {
        &self.levels[number]
    }
}

/// Which points of a word of a row of phase `t`, odd in dimensions `odd`, are there (`own`), and their
/// near neighbours.
#[inline(always)]
pub(crate) fn near<const N: usize>(
    phases: &[Bitmap; 8],
    (t, odd): (usize, [usize; N]),
    [z, y]: [usize; 2],
    (word, own): (usize, u64),
) -> There<N> {
    let mut there = There {
        own,
        before: [0; N],
        behind: [0; N],
    };
    for (j, d) in odd.into_iter().enumerate() {
        let phase = &phases[t ^ 1 << d];
        there.before[j] = phase.word([z, y], word);
        there.behind[j] = match d {
            0 => phase.word([z + 1, y], word),
            1 => phase.word([z, y + 1], word),
            _ => phase.ahead([z, y], word, 1),
        };
    }
    there
}

/// Gives points of phase `t` that are not there, but next to some that are along an even dimension,
/// the value that continues these. Points one beyond the borders are such points too.
pub(crate) fn fill<T: Element>(values: &mut [T], valid: &Bitmap, phases: &Phases, t: usize) {
    let even: [bool; 3] = std::array::from_fn(|d| t >> d & 1 == 0 && phases.fine[d] > 1);
    if even == [false; 3] {
        return;
    }
    let filler = Filler {
        valid,
        even,
        strides: phases.stride.map(|stride| stride as isize),
        parts: [0, 1, 2, 3, 4, 5, 6].map(|n| T::from_f64(1.0 / f64::from(n))),
    };
    let [nz, ny, nx] = valid.shape();
    let origin = phases.row(0, 0) as isize;
    let beyond_z = isize::from(even[0]);
    let beyond_y = isize::from(even[1]);
    for z in -beyond_z..nz as isize + beyond_z {
        for y in -beyond_y..ny as isize + beyond_y {
            let row = (origin + z * filler.strides[0] + y * filler.strides[1]) as usize;
            let place = [z as usize, y as usize];
            for word in 0..valid.words() {
                let within = u64::MAX >> (64 - (nx - 64 * word).min(64));
                filler.fill(values, place, word, row + 64 * word, within);
            }
            if even[2] {
                filler.fill_ends(values, place, row, nx);
            }
        }
    }
}

/// Fills points of a phase.
struct Filler<'a, T> {
    valid: &'a Bitmap,
    /// The dimensions along which points continue others.
    even: [bool; 3],
    strides: [isize; 3],
    /// What the sum of so many numbers is multiplied by to get their mean.
    parts: [T; 7],
}

impl<T: Element> Filler<'_, T> {
    /// Fills the points of a word of a row, whose first has the index `start`.
    #[inline(always)]
    fn fill(&self, values: &mut [T], row: [usize; 2], word: usize, start: usize, within: u64) {
        let missing = !self.valid.word(row, word) & within;
        if missing == 0 {
            return;
        }
        let mut near = 0;
        for d in 0..3 {
            if !self.even[d] {
                continue;
            }
            near |= self.neighbour(row, word, d, 1) | self.neighbour(row, word, d, -1);
        }
        let edge = missing & near;
        if edge == 0 {
            return;
        }
        // For each direction there is need of: its step, and which points are there in it at a
        // distance of 1, 2, and, if 2 is there too, 3.
        let (mut directions, mut count) = ([(0, [0; 3]); 6], 0);
        for d in (0..3).filter(|d| self.even[*d]) {
            for sign in [1, -1] {
                let first = self.neighbour(row, word, d, sign) & edge;
                if first != 0 {
                    let second = self.neighbour(row, word, d, 2 * sign);
                    let third = self.neighbour(row, word, d, 3 * sign) & second;
                    directions[count] = (sign * self.strides[d], [first, second, third]);
                    count += 1;
                }
            }
        }
        let mut left = groups(edge);
        while left != 0 {
            // A run of groups.
            let first = left.trailing_zeros();
            let n = (!(left >> first)).trailing_zeros();
            left &= u64::MAX.checked_shl(first + n).unwrap_or(0);
            let span = FEW * first as usize..FEW * (first + n) as usize;
            self.fill_span(values, start, edge, span, &directions[..count]);
        }
    }

    /// Fills those of a span of a word's points whose `edge` is set; the word's first has the index
    /// `start`.
    fn fill_span(
        &self,
        values: &mut [T],
        start: usize,
        edge: u64,
        span: Range<usize>,
        directions: &[(isize, [u64; 3])],
    ) {
        let (at, n) = (start + span.start, span.len());
        let ours = u64::MAX >> (64 - n);
        let (mut sums, mut counts) = ([T::from_f64(-0.0); 64], [0; 64]);
        let (sums, counts) = (&mut sums[..n], &mut counts[..n]);
        for (direction, there) in directions {
            let there = there.map(|word| word >> span.start & ours);
            if there[0] != 0 {
                extend(values, at, *direction, there, sums, counts);
            }
        }
        let mut edge = edge >> span.start & ours;
        while edge != 0 {
            let k = edge.trailing_zeros() as usize;
            edge &= edge - 1;
            if let (Some(sum), Some(count)) = (sums.get(k), counts.get(k)) {
                values[at + k] = sum.times(self.parts[usize::from(*count)]);
            }
        }
    }

    /// Fills the points before and behind a row.
    #[inline(always)]
    fn fill_ends(&self, values: &mut [T], place: [usize; 2], row: usize, nx: usize) {
        let first = self.valid.word(place, 0);
        if first & 1 == 1 {
            let near = [1, 2, 3].map(|k| first >> (k - 1) & 1 == 1);
            values[row - 1] = beyond(values, row - 1, 1, near);
        }
        let (word, bit) = ((nx - 1) / 64, (nx - 1) % 64);
        if self.valid.word(place, word) >> bit & 1 == 1 {
            let near = [0, 1, 2].map(|k| self.valid.behind(place, word, k) >> bit & 1 == 1);
            values[row + nx] = beyond(values, row + nx, -1, near);
        }
    }

    /// The word of the points `k` further on along dimension `d`.
    #[inline(always)]
    fn neighbour(&self, [z, y]: [usize; 2], word: usize, d: usize, k: isize) -> u64 {
        match d {
            0 => self.valid.word([z.wrapping_add_signed(k), y], word),
            1 => self.valid.word([z, y.wrapping_add_signed(k)], word),
            _ if k > 0 => self.valid.ahead([z, y], word, k as u32),
            _ => self.valid.behind([z, y], word, k.unsigned_abs() as u32),
        }
    }
}

/// Adds the values that continue the points in a direction to the sums of points from `at` on, and
/// counts them: of those whose neighbour in this direction is there. `there` are the bits of the
/// points at a distance of 1, 2, and, if 2 is there too, 3.
#[inline(never)]
fn extend<T: Element>(
    values: &[T],
    at: usize,
    direction: isize,
    there: [u64; 3],
    sums: &mut [T],
    counts: &mut [u8],
) {
    let n = sums.len() / FEW * FEW;
    let (sums, counts) = (&mut sums[..n], &mut counts[..n]);
    // Beyond the borders nothing is there: what is read in its place is not used.
    let lanes = |k: isize| {
        let from = at.wrapping_add_signed(k * direction);
        values.get(from..).and_then(|values| values.get(..n))
    };
    let Some(first) = lanes(1) else {
        return;
    };
    let second = lanes(2).unwrap_or(first);
    let third = lanes(3).unwrap_or(first);
    for k in 0..n {
        let a = first[k];
        let b = if there[1] >> k & 1 == 1 { second[k] } else { a };
        let line = b.plus(b).minus(a);
        let c = if there[2] >> k & 1 == 1 {
            third[k]
        } else {
            line
        };
        let one = there[0] >> k & 1 == 1;
        let value = continued(a, b, c);
        sums[k] = if one { sums[k].plus(value) } else { sums[k] };
        counts[k] += u8::from(one);
    }
}

/// The value at `at` that continues the points in a direction, of which the first is there.
#[inline(always)]
fn beyond<T: Element>(values: &[T], at: usize, direction: isize, there: [bool; 3]) -> T {
    let value = |k: isize| values[at.wrapping_add_signed(k * direction)];
    let a = value(1);
    let b = if there[1] { value(2) } else { a };
    let c = if there[1] && there[2] {
        value(3)
    } else {
        b.plus(b).minus(a)
    };
    continued(a, b, c)
}
