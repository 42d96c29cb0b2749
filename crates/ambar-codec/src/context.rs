//! Contexts: how large a residual is to be expected, from what has been coded around it.

use crate::lattice::Phases;
use crate::predict::{FEW, LANES, groups, lanes};

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

    /// Fills the bins of `n` points from `at` on of row `y` of plane `z` of phase `t`.
    pub(crate) fn bins(
        &self,
        marks: &[Vec<u8>; 8],
        (t, at, n): (usize, usize, usize),
        (z, y): (usize, usize),
        rough: &[f32],
        out: &mut [u8],
    ) {
        let around = Around {
            marks,
            own: &marks[t],
            above: [y > 0, z > 0],
        };
        groups(
            n,
            &mut (rough, out),
            |(rough, out), k| self.group::<LANES>(&around, at + k, &rough[k..], &mut out[k..]),
            |(rough, out), k| self.group::<FEW>(&around, at + k, &rough[k..], &mut out[k..]),
        );
    }

    /// Fills the bins of `L` points from `at` on.
    #[inline(always)]
    fn group<const L: usize>(&self, around: &Around<'_>, at: usize, rough: &[f32], out: &mut [u8]) {
        let (Some(rough), Some(out)) = (rough.first_chunk::<L>(), out.first_chunk_mut::<L>())
        else {
            return;
        };
        let known = usize::from(around.above[0]) | usize::from(around.above[1]) << 1;
        let (near_factor, rows_factor) = self.factors[known];
        let mut near = [0u16; L];
        for (phase, offset) in &self.nearby[..self.nearby_count] {
            let at = at.wrapping_add_signed(*offset);
            if let Some(marks) = lanes::<u8, L>(&around.marks[*phase], at) {
                for k in 0..L {
                    near[k] += u16::from(marks[k]);
                }
            }
        }
        let mut rows = [0u16; L];
        for (above, stride) in around.above.iter().zip(self.strides) {
            if *above {
                add_row(around.own, at - stride, &mut rows);
            }
        }
        for k in 0..L {
            let expected = f32::from(near[k]) * near_factor + f32::from(rows[k]) * rows_factor;
            out[k] = if self.lossless {
                linear_bin(expected)
            } else {
                bin(expected + rough[k] * self.rough)
            };
        }
    }
}

/// The magnitudes around a row: of all phases, of its own, and whether there are earlier rows of it
/// in y and z.
struct Around<'a> {
    marks: &'a [Vec<u8>; 8],
    own: &'a [u8],
    above: [bool; 2],
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

/// Adds four times the mean of the magnitudes around each point of the row at `at`.
#[inline(always)]
fn add_row<const L: usize>(marks: &[u8], at: usize, sums: &mut [u16; L]) {
    let sides = (
        lanes::<u8, L>(marks, at.wrapping_sub(1)),
        lanes::<u8, L>(marks, at + 1),
    );
    if let (Some(mid), (Some(left), Some(right))) = (lanes::<u8, L>(marks, at), sides) {
        for k in 0..L {
            sums[k] += 2 * u16::from(mid[k]) + u16::from(left[k]) + u16::from(right[k]);
        }
    }
}
