//! Contexts of the entropy coder: the residual magnitude expected from residuals that have been coded.

use crate::domain::lattice::Phases;
use crate::entropy::CONTEXTS;
use crate::entropy::tables::log2;
use crate::simd::LANES;
use crate::simd::dispatch::vectorised;

/// Groups of passes whose weights differ: by the number of odd dimensions.
pub(crate) const GROUPS: usize = 3;

/// The weights of the expected magnitude's terms, for one group of passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ContextWeights {
    /// Weight of the mean magnitude of nearby points in earlier phases.
    pub phases: f32,
    /// Weight of the mean magnitude in earlier rows of the phase.
    pub rows: f32,
    /// Weight of the local variation of the values, in steps.
    pub variation: f32,
}

impl ContextWeights {
    /// Weights that suit most fields.
    pub(crate) const DEFAULT: [Self; GROUPS] = [
        Self {
            phases: 0.3,
            rows: 0.4,
            variation: 0.15,
        },
        Self {
            phases: 0.4,
            rows: 0.25,
            variation: 0.1,
        },
        Self {
            phases: 0.5,
            rows: 0.2,
            variation: 0.08,
        },
    ];
}

/// The Lagrange multiplier: the squared error, in squared steps, that a bit is worth. Fine uniform quantization has the squared
/// error 1/12 and loses 2 ln 2 of it per bit.
pub(crate) const LAGRANGE_MULTIPLIER: f64 = std::f64::consts::LN_2 / 6.0;

/// The smallest expected magnitude that is distinguished: context 0 begins at its logarithm.
const LEAST: f32 = 1.0 / 64.0;

/// The context of an expected magnitude: half octaves from `LEAST`.
#[inline(always)]
pub(crate) fn context(expected: f32) -> u8 {
    // The bits of a float ordered by exponent and first bit of the fraction: half octaves.
    let steps = ((expected + LEAST).to_bits() >> 22) as i32 - (LEAST.to_bits() >> 22) as i32;
    steps.min(CONTEXTS as i32 - 1) as u8
}

/// For each context, what the encoder subtracts from the magnitude of a residual before it rounds it, if it minimises rate and
/// squared error together: half the Lagrange multiplier times the bits that the next larger magnitude takes more. Residuals
/// of a context are modelled as a two-sided geometric distribution with the expected magnitude.
pub(crate) fn dead_zones() -> [f64; CONTEXTS] {
    std::array::from_fn(|context| {
        let half_octaves = f64::from(if context % 2 == 0 { 1.25f32 } else { 1.75 });
        let middle = f64::from(LEAST) * ((1u64 << (context / 2)) as f64 * half_octaves - 1.0);
        let ratio = ((1.0 + middle * middle).sqrt() - 1.0) / middle;
        (-0.5 * LAGRANGE_MULTIPLIER * log2(ratio)).min(0.45)
    })
}

/// The context of a level; all levels from 2 on share one.
pub(crate) fn level_context(level: usize) -> u8 {
    level.min(2) as u8
}

/// The context of an expected length in bits, 0 to 64.
#[inline(always)]
pub(crate) fn length_context(bits: f32) -> u8 {
    ((bits * (CONTEXTS as f32 / 65.0)) as i32).clamp(0, CONTEXTS as i32 - 1) as u8
}

/// Computes the contexts of a phase's rows from the residual magnitudes around them and the local variation.
pub(crate) struct ContextModel {
    /// The positions of the magnitudes near a point: earlier phases, and offsets within them.
    nearby: [(usize, isize); 8],
    nearby_count: usize,
    /// For rows without and with earlier ones in y (1) and z (2): factors of the sums of magnitudes
    /// in earlier phases and in earlier rows.
    factors: [(f32, f32); 4],
    variation: f32,
    /// Distance of rows in y and z.
    strides: [usize; 2],
    is_lossless: bool,
}

impl ContextModel {
    /// For phase `t` of a lattice whose steps are `step`; 0 for lossless coding.
    pub(crate) fn new(
        t: usize,
        phases: &Phases,
        context_weights: &ContextWeights,
        step: f64,
    ) -> Self {
        let (nearby, nearby_count) = nearest(t, phases);
        let is_lossless = step == 0.0;
        let mixed = if is_lossless {
            (0.5, 0.5)
        } else {
            (context_weights.phases, context_weights.rows)
        };
        let factors = std::array::from_fn(|known: usize| {
            let (mut near, mut rows) = mixed;
            // If only one kind exists, it represents the other as well.
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
            variation: if is_lossless {
                0.0
            } else {
                context_weights.variation * (1.0 / step) as f32
            },
            strides: [phases.stride[1], phases.stride[0]],
            is_lossless,
        }
    }

    /// Sums the magnitudes near points from `at`. `magnitudes` are those of all phases.
    pub(crate) fn near(&self, magnitudes: &[Vec<u8>; 8], at: usize, sums: &mut [u16]) {
        let n = sums.len();
        match self.nearby_count {
            4 => add(self.nearby::<4>(magnitudes, at, n), sums),
            6 => add(self.nearby::<6>(magnitudes, at, n), sums),
            8 => add(self.nearby::<8>(magnitudes, at, n), sums),
            _ => sums.fill(0),
        }
    }

    /// Computes the contexts of points from `at`, in whole groups of lanes, from the magnitudes around the same points of the
    /// plane before. `sums` has space for two more points.
    pub(crate) fn contexts_after_plane(
        &self,
        (magnitudes, at): (&[u8], usize),
        (near, variation): (&[u16], &[f32]),
        sums: &mut [u16],
        out: &mut [u8],
    ) {
        let n = out.len() + 2;
        let begin = at - self.strides[1] - 1;
        let row = |from: usize| &magnitudes[from..][..n];
        let rows = [begin - self.strides[0], begin, begin + self.strides[0]].map(row);
        add_rows(rows, &mut sums[..n]);
        let (near_weight, row_weight) = self.factors[2];
        contexts_of_sums(
            &sums[..n],
            near,
            variation,
            [near_weight, row_weight / 4.0, self.variation],
            out,
        );
    }

    /// The magnitudes near `n` points.
    #[inline(always)]
    fn nearby<'a, const N: usize>(
        &self,
        magnitudes: &'a [Vec<u8>; 8],
        at: usize,
        n: usize,
    ) -> [&'a [u8]; N] {
        let mut near: [&[u8]; N] = [&[]; N];
        for (near, (phase, offset)) in near.iter_mut().zip(self.nearby) {
            *near = &magnitudes[phase][at.wrapping_add_signed(offset)..][..n];
        }
        near
    }

    /// Computes the contexts of a row of `out.len()` points, in whole groups of lanes. `magnitudes` are those of the phase,
    /// in which the first point is at `at`. `above`: whether rows precede it in y and in z.
    pub(crate) fn contexts(
        &self,
        (magnitudes, at): (&[u8], usize),
        above: [bool; 2],
        (near, variation): (&[u16], &[f32]),
        out: &mut [u8],
    ) {
        let n = out.len();
        let known = usize::from(above[0]) | usize::from(above[1]) << 1;
        let weights = [self.factors[known].0, self.factors[known].1, self.variation];
        // The magnitudes of a missing row are not used.
        let row =
            |d: usize| &magnitudes[at - if above[d] { self.strides[d] } else { 0 } - 1..][..n + 2];
        let rows = if above[0] {
            [row(0), row(1)]
        } else {
            [row(1), row(1)]
        };
        match (known.count_ones(), self.is_lossless) {
            (0, false) => contexts::<0, false>(rows, near, variation, weights, out),
            (1, false) => contexts::<1, false>(rows, near, variation, weights, out),
            (_, false) => contexts::<2, false>(rows, near, variation, weights, out),
            (0, true) => contexts::<0, true>(rows, near, variation, weights, out),
            (1, true) => contexts::<1, true>(rows, near, variation, weights, out),
            (_, true) => contexts::<2, true>(rows, near, variation, weights, out),
        }
    }
}

vectorised! {
    /// Computes contexts from the sums of magnitudes nearby, from the magnitudes of `ROWS` earlier rows, which begin one point
    /// before the row (four times their mean around each point), and from the local variation.
    fn contexts [const ROWS: usize, const LOSSLESS: bool] of [ROWS, LOSSLESS] (
        rows: [&[u8]; 2],
        near: &[u16],
        variation: &[f32],
        weights: [f32; 3],
        out: &mut [u8],
    ) {
        let n = out.len() / LANES * LANES;
        let (near, variation, out) = (&near[..n], &variation[..n], &mut out[..n]);
        let [one, two] = rows;
        let (one_left, one_mid, one_right) = (&one[..n], &one[1..][..n], &one[2..][..n]);
        let (two_left, two_mid, two_right) = (&two[..n], &two[1..][..n], &two[2..][..n]);
        let around =
            |left: u8, mid: u8, right: u8| 2 * u16::from(mid) + u16::from(left) + u16::from(right);
        for k in 0..n {
            let mut rows = 0;
            if ROWS > 0 {
                rows += around(one_left[k], one_mid[k], one_right[k]);
            }
            if ROWS > 1 {
                rows += around(two_left[k], two_mid[k], two_right[k]);
            }
            let expected = f32::from(near[k]) * weights[0] + f32::from(rows) * weights[1];
            out[k] = if LOSSLESS {
                length_context(expected)
            } else {
                context(expected + variation[k] * weights[2])
            };
        }
    }
}

vectorised! {
    /// Sums the magnitudes of three rows, with twice those of the middle one.
    fn add_rows [] of [] (rows: [&[u8]; 3], sums: &mut [u16]) {
        let n = sums.len();
        let [up, mid, down] = rows.map(|row| &row[..n]);
        for k in 0..n {
            sums[k] = u16::from(up[k]) + 2 * u16::from(mid[k]) + u16::from(down[k]);
        }
    }
}

vectorised! {
    /// Computes contexts from sums of magnitudes of the plane before, which begin one point before the points (16 times their
    /// mean around each point), from the sums of magnitudes nearby, and from the local variation.
    fn contexts_of_sums [] of [] (
        sums: &[u16],
        near: &[u16],
        variation: &[f32],
        weights: [f32; 3],
        out: &mut [u8],
    ) {
        let n = out.len() / LANES * LANES;
        let (near, variation, out) = (&near[..n], &variation[..n], &mut out[..n]);
        let (left, mid, right) = (&sums[..n], &sums[1..][..n], &sums[2..][..n]);
        for k in 0..n {
            let before = left[k] + 2 * mid[k] + right[k];
            let expected = f32::from(near[k]) * weights[0] + f32::from(before) * weights[1];
            out[k] = context(expected + variation[k] * weights[2]);
        }
    }
}

vectorised! {
    /// Sums magnitudes.
    fn add [const N: usize] of [N] (magnitudes: [&[u8]; N], sums: &mut [u16]) {
        let n = sums.len();
        let magnitudes = magnitudes.map(|magnitudes| &magnitudes[..n]);
        for k in 0..n {
            let mut sum = 0;
            for magnitudes in magnitudes {
                sum += u16::from(magnitudes[k]);
            }
            sums[k] = sum;
        }
    }
}

/// The nearest points of earlier phases of the same lattice to those of phase `t`: phases and offsets.
fn nearest(t: usize, phases: &Phases) -> ([(usize, isize); 8], usize) {
    let stride = phases.stride.map(|s| s as isize);
    let mut terms = [(0, 0); 8];
    let mut count = 0;
    let mut add = |term| {
        terms[count] = term;
        count += 1;
    };
    if t.is_power_of_two() {
        // Diagonals: from phases 1 and 2 to 2 and 4. The neighbours with even indices of an odd index have offsets 0 and +1,
        // those with odd indices of an even index -1 and 0.
        let own = t.trailing_zeros() as usize;
        for other in (0..own).filter(|d| phases.fine[*d] > 1) {
            for (a, b) in [(0, 0), (0, -1), (1, 0), (1, -1)] {
                add((1 << other, a * stride[own] + b * stride[other]));
            }
        }
    } else {
        // Faces: the points of this lattice from which the point is predicted.
        for d in (0..3).filter(|d| t >> d & 1 == 1) {
            add((t ^ 1 << d, 0));
            add((t ^ 1 << d, stride[d]));
        }
    }
    (terms, count)
}
