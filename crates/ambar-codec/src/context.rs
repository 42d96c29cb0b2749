//! Contexts: how large a residual is to be expected, from what has been coded around it.

use crate::lattice::Phases;

/// Classes of expected magnitude.
pub(crate) const BINS: usize = 40;

/// Groups of passes whose weights differ: by the number of odd dimensions.
pub(crate) const GROUPS: usize = 3;

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
        Self { phases: 0.3, rows: 0.4, rough: 0.15 },
        Self { phases: 0.4, rows: 0.25, rough: 0.1 },
        Self { phases: 0.5, rows: 0.2, rough: 0.08 },
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

/// The bin of an expected length in bits, 0 to 64.
#[inline(always)]
pub(crate) fn linear_bin(bits: f32) -> u8 {
    ((bits * (BINS as f32 / 65.0)) as i32).clamp(0, BINS as i32 - 1) as u8
}

/// Where the magnitudes near a point lie: earlier phases and offsets, of which the mean counts.
pub(crate) struct Nearby {
    /// Phase, and offsets within it.
    terms: Vec<(usize, isize)>,
    inverse: f32,
}

impl Nearby {
    /// The nearest points of earlier phases of the same lattice.
    pub(crate) fn new(t: usize, phases: &Phases) -> Self {
        let stride = phases.stride.map(|s| s as isize);
        let mut terms = Vec::new();
        // Faces: the points that the prediction is made of, where they belong to this lattice.
        for d in (0..3).filter(|d| t >> d & 1 == 1 && t != 1 << d) {
            terms.extend([(t ^ 1 << d, 0), (t ^ 1 << d, stride[d])]);
        }
        if terms.is_empty() {
            // Diagonals: from phase 1 and 2 to 2 and 4. Seen from an odd index the neighbours of
            // even index lie at 0 and +1, from an even index those of odd index at -1 and 0.
            let own = t.trailing_zeros() as usize;
            for other in (0..own).filter(|d| phases.fine[*d] > 1) {
                for (a, b) in [(0, 0), (0, -1), (1, 0), (1, -1)] {
                    terms.push((1 << other, a * stride[own] + b * stride[other]));
                }
            }
        }
        let inverse = 1.0 / terms.len().max(1) as f32;
        Self { terms, inverse }
    }

    /// Fills `out` with the mean magnitudes near the row at `row`.
    pub(crate) fn means(&self, marks: &[Vec<u8>; 8], row: usize, out: &mut [f32], sums: &mut [u16]) {
        let n = out.len();
        let sums = &mut sums[..n];
        sums.fill(0);
        for (t, offset) in &self.terms {
            let start = row.wrapping_add_signed(*offset);
            for (sum, mark) in sums.iter_mut().zip(&marks[*t][start..start + n]) {
                *sum += u16::from(*mark);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = f32::from(*sum) * self.inverse;
        }
    }

    /// Whether there is any such point.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Fills `out` with the mean magnitudes in the rows before (z, y) of the phase; `false` where there
/// is none.
pub(crate) fn row_means(
    marks: &[u8],
    phases: &Phases,
    (z, y): (usize, usize),
    out: &mut [f32],
    sums: &mut [u16],
) -> bool {
    let n = out.len();
    let sums = &mut sums[..n];
    let row = phases.row(z, y);
    let before = |present: bool, d: usize| present.then(|| row - phases.stride[d]);
    let rows = [before(y > 0, 1), before(z > 0, 0)];
    let count = rows.iter().flatten().count();
    if count == 0 {
        return false;
    }
    sums.fill(0);
    let wide = phases.fine[2] > 1;
    for row in rows.into_iter().flatten() {
        let mid = &marks[row..row + n];
        let (left, right) = if wide {
            (&marks[row - 1..row - 1 + n], &marks[row + 1..row + 1 + n])
        } else {
            (mid, mid)
        };
        for k in 0..n {
            sums[k] += 2 * u16::from(mid[k]) + u16::from(left[k]) + u16::from(right[k]);
        }
    }
    let inverse = 0.25 / count as f32;
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = f32::from(*sum) * inverse;
    }
    true
}
