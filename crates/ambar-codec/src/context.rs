//! Contexts: how large a residual is to be expected, from what has been coded around it.

use crate::lattice::Phases;

/// Classes of expected magnitude.
pub(crate) const BINS: usize = 40;

/// Groups of passes whose weights differ: by the number of odd dimensions.
pub(crate) const GROUPS: usize = 3;

/// Points whose bins are made at a time, at most.
pub(crate) const MOST: usize = 64;

/// How the expectation is put together for one group of passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mixture {
    /// Of the mean magnitude in earlier phases nearby.
    pub phases: f32,
    /// Of the mean magnitude in earlier rows of the phase.
    pub rows: f32,
    /// Of the roughness of the values around, in steps.
    pub rough: f32,
}

impl Mixture {
    /// What serves most fields.
    pub(crate) const DEFAULT: [Self; GROUPS] = [
        Self {
            phases: 0.3,
            rows: 0.4,
            rough: 0.15,
        },
        Self {
            phases: 0.4,
            rows: 0.25,
            rough: 0.1,
        },
        Self {
            phases: 0.5,
            rows: 0.2,
            rough: 0.08,
        },
    ];
}

/// The least expectation that is told from others: log2 of it begins bin 0.
const LEAST: f32 = 1.0 / 64.0;

/// The bin of an expectation: half octaves from `LEAST` on.
#[inline(always)]
pub(crate) fn bin(expected: f32) -> u8 {
    // The bits of a float ordered by exponent and first bit of the fraction: half octaves.
    let steps = ((expected + LEAST).to_bits() >> 22) as i32 - (LEAST.to_bits() >> 22) as i32;
    steps.min(BINS as i32 - 1) as u8
}

/// The bin of values of which nothing is expected: that of their level, the coarser ones together.
pub(crate) fn level_bin(level: usize) -> u8 {
    level.min(2) as u8
}

/// The bin of an expected length in bits, 0 to 64.
#[inline(always)]
pub(crate) fn linear_bin(bits: f32) -> u8 {
    ((bits * (BINS as f32 / 65.0)) as i32).clamp(0, BINS as i32 - 1) as u8
}

/// How the bins of a phase's rows follow from the magnitudes around them, and the roughness of the
/// values.
pub(crate) struct Expectation {
    /// Where the magnitudes near a point lie: earlier phases, and offsets within them.
    nearby: [(usize, isize); 8],
    nearby_count: usize,
    /// For rows without and with earlier ones in y (1) and z (2): factors of the sums of magnitudes
    /// in earlier phases and in earlier rows.
    factors: [(f32, f32); 4],
    rough: f32,
    /// Distance of rows in y and z.
    strides: [usize; 2],
    lossless: bool,
}

impl Expectation {
    /// For phase `t` of a lattice whose steps are `step`; 0 for lossless coding.
    pub(crate) fn new(t: usize, phases: &Phases, mixture: &Mixture, step: f64) -> Self {
        let (nearby, nearby_count) = nearest(t, phases);
        let lossless = step == 0.0;
        let mixed = if lossless {
            (0.5, 0.5)
        } else {
            (mixture.phases, mixture.rows)
        };
        let factors = std::array::from_fn(|known: usize| {
            let (mut near, mut rows) = mixed;
            // Where there is only one kind, it stands for the other as well.
            if known == 0 {
                near += rows;
            }
            if nearby_count == 0 {
                rows += near;
            }
            let counted = known.count_ones().max(1);
            (
                near / nearby_count.max(1) as f32,
                rows / (4 * counted) as f32,
            )
        });
        Self {
            nearby,
            nearby_count,
            factors,
            rough: if lossless {
                0.0
            } else {
                mixture.rough * (1.0 / step) as f32
            },
            strides: [phases.stride[1], phases.stride[0]],
            lossless,
        }
    }

    /// Fills the bins of a row, of as many points as `out` has: of the phases' `marks`, `own` are those
    /// of the row's phase, in which its first point is at `at`. `above` says whether there are rows
    /// before it in y and z.
    pub(crate) fn bins(
        &self,
        (marks, own): (&[Vec<u8>; 8], &[u8]),
        at: usize,
        above: [bool; 2],
        rough: &[f32],
        out: &mut [u8],
    ) {
        let n = out.len();
        let (mut near, mut rows) = ([0u16; MOST], [0u16; MOST]);
        let (near, rows) = (&mut near[..n], &mut rows[..n]);
        match self.nearby_count {
            4 => add(self.near::<4>(marks, at, n), near),
            6 => add(self.near::<6>(marks, at, n), near),
            8 => add(self.near::<8>(marks, at, n), near),
            _ => {}
        }
        for d in (0..2).filter(|d| above[*d]) {
            add_row(&own[at - self.strides[d] - 1..][..n + 2], rows);
        }
        let factors = self.factors[usize::from(above[0]) | usize::from(above[1]) << 1];
        if self.lossless {
            linear_bins(near, rows, factors, out);
        } else {
            bins(near, rows, factors, (&rough[..n], self.rough), out);
        }
    }

    /// The magnitudes nearby of `n` points.
    #[inline(always)]
    fn near<'a, const N: usize>(
        &self,
        marks: &'a [Vec<u8>; 8],
        at: usize,
        n: usize,
    ) -> [&'a [u8]; N] {
        let mut near: [&[u8]; N] = [&[]; N];
        for (near, (phase, offset)) in near.iter_mut().zip(self.nearby) {
            *near = &marks[phase][at.wrapping_add_signed(offset)..][..n];
        }
        near
    }
}

/// Fills bins from the sums of magnitudes nearby and in earlier rows, with their factors, and from
/// roughness, with its factor. Functions of their own, so that the compiler knows what is written to
/// be apart from what is read.
#[inline(never)]
fn bins(
    near: &[u16],
    rows: &[u16],
    factors: (f32, f32),
    (rough, rough_factor): (&[f32], f32),
    out: &mut [u8],
) {
    let n = out.len();
    let (near, rows, rough) = (&near[..n], &rows[..n], &rough[..n]);
    for k in 0..n {
        let expected = f32::from(near[k]) * factors.0 + f32::from(rows[k]) * factors.1;
        out[k] = bin(expected + rough[k] * rough_factor);
    }
}

/// Fills bins where coding is lossless.
#[inline(never)]
fn linear_bins(near: &[u16], rows: &[u16], factors: (f32, f32), out: &mut [u8]) {
    let n = out.len();
    let (near, rows) = (&near[..n], &rows[..n]);
    for k in 0..n {
        let expected = f32::from(near[k]) * factors.0 + f32::from(rows[k]) * factors.1;
        out[k] = linear_bin(expected);
    }
}

/// Adds magnitudes.
#[inline(never)]
fn add<const N: usize>(mut marks: [&[u8]; N], sums: &mut [u16]) {
    let n = sums.len();
    for marks in &mut marks {
        *marks = &marks[..n];
    }
    for k in 0..n {
        let mut sum = 0;
        for marks in marks {
            sum += u16::from(marks[k]);
        }
        sums[k] = sum;
    }
}

/// The points of earlier phases nearest to those of phase `t`, on the same lattice: phases, offsets.
fn nearest(t: usize, phases: &Phases) -> ([(usize, isize); 8], usize) {
    let stride = phases.stride.map(|s| s as isize);
    let mut terms = [(0, 0); 8];
    let mut count = 0;
    let mut add = |term| {
        terms[count] = term;
        count += 1;
    };
    if t.is_power_of_two() {
        // Diagonals: from phase 1 and 2 to 2 and 4. Seen from an odd index the neighbours of even
        // index lie at 0 and +1, from an even index those of odd index at -1 and 0.
        let own = t.trailing_zeros() as usize;
        for other in (0..own).filter(|d| phases.fine[*d] > 1) {
            for (a, b) in [(0, 0), (0, -1), (1, 0), (1, -1)] {
                add((1 << other, a * stride[own] + b * stride[other]));
            }
        }
    } else {
        // Faces: the points that the prediction is made of, where they belong to this lattice.
        for d in (0..3).filter(|d| t >> d & 1 == 1) {
            add((t ^ 1 << d, 0));
            add((t ^ 1 << d, stride[d]));
        }
    }
    (terms, count)
}

/// Adds four times the mean of the magnitudes around each point of a row; `marks` begin one before
/// the row.
#[inline(never)]
fn add_row(marks: &[u8], sums: &mut [u16]) {
    let n = sums.len();
    let (left, mid, right) = (&marks[..n], &marks[1..=n], &marks[2..n + 2]);
    for k in 0..n {
        sums[k] += 2 * u16::from(mid[k]) + u16::from(left[k]) + u16::from(right[k]);
    }
}
