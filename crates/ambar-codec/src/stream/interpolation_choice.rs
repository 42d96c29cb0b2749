//! The choice of interpolations: estimates of the bits of residuals, from points spread over the regions.

use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::tables::log2;
use crate::predict::interpolation::Interpolation;
use crate::quantize::float_order::difference;
use crate::stream::params::LEVELS;

/// The interpolations of the finest levels.
pub(crate) type Interpolations = [Interpolation; LEVELS];

/// Levels for which an interpolation is chosen; coarser ones have too few points.
const CHOSEN_LEVELS: usize = 2;
/// Approximate number of points of each phase.
const MAX_POINTS: usize = 512;
/// With fewer points of a phase, the default applies.
const MIN_POINTS: usize = 64;
/// Other interpolations than the default must save this many bits a point to be chosen without a trial.
const ACCEPTED_GAIN: f64 = 0.05;
/// Other interpolations than the default must save this many bits a point to be tried.
const MIN_GAIN: f64 = 0.01;
/// The squared error of an interpolation between values with quantization errors, in squared steps.
const NOISE: f64 = 0.64 / 12.0;

/// Proposed interpolations.
#[derive(Default)]
pub(crate) struct Proposals {
    /// Interpolations that are used without a trial.
    pub accepted: Interpolations,
    /// Interpolations to try on the sample.
    pub candidate: Interpolations,
}

/// Proposes interpolations for regions within an absolute bound; 0 for lossless. Predicts from the original values.
pub(crate) fn propose<T: Element>(regions: &[RegionBuffer<'_, T>], bound: f64) -> Proposals {
    let mut proposals = Proposals::default();
    for level in 0..CHOSEN_LEVELS {
        for t in [1, 2, 4, 3, 5, 6, 7_usize] {
            let points = Points::new(regions, level, t, bound);
            for (interpolation, min_gain) in [
                (&mut proposals.accepted[level], ACCEPTED_GAIN),
                (&mut proposals.candidate[level], MIN_GAIN),
            ] {
                let before = *interpolation;
                *interpolation = if t.is_power_of_two() {
                    let d = t.trailing_zeros() as usize;
                    let cost = |index| points.cost(t, before.with_sharpness(d, index));
                    let others = 1..Interpolation::SHARPNESS_COUNT;
                    before.with_sharpness(d, cheapest(0, others, min_gain, cost))
                } else {
                    let subsets = (1..t).rev().filter(|used| used & t == *used);
                    let cost = |used| points.cost(used, before);
                    before.with_dimensions(t, cheapest(t, subsets, min_gain, cost))
                };
            }
        }
    }
    proposals
}

/// The option of the least cost; the default, unless another one is cheaper by `min_gain`.
fn cheapest<O: Copy>(
    default: O,
    others: impl Iterator<Item = O>,
    min_gain: f64,
    cost: impl Fn(O) -> f64,
) -> O {
    let mut best = (default, cost(default) - min_gain);
    for option in others {
        let cost = cost(option);
        if cost < best.1 {
            best = (option, cost);
        }
    }
    best.0
}

/// Points of a phase of a level, each with its neighbours at -3, -1, +1 and +3 along the odd dimensions.
struct Points<T> {
    points: Vec<(T, [[f64; 4]; 3])>,
    /// The inverse of the step; infinity for lossless.
    inverse: f64,
    /// The number of lowest bits that are 0 in all points.
    shift: u32,
}

impl<T: Element> Points<T> {
    fn new(regions: &[RegionBuffer<'_, T>], level: usize, t: usize, bound: f64) -> Self {
        let all: usize = regions.iter().map(|region| region.values.len()).sum();
        let mut points: Vec<(T, _)> = Vec::with_capacity(MAX_POINTS);
        for region in regions {
            let count = (MAX_POINTS * region.values.len()).div_ceil(all.max(1));
            points.extend(
                spread(region.shape, level, t, count)
                    .filter_map(|at| neighbours(region, level, t, at)),
            );
        }
        if points.len() < MIN_POINTS {
            points.clear();
        }
        let bits = points.iter().fold(0, |bits, (x, _)| bits | x.to_word());
        Self {
            points,
            inverse: 0.5 / bound,
            shift: if bits == 0 { 0 } else { bits.trailing_zeros() },
        }
    }

    /// The mean of an estimate of a residual's bits, if the points are interpolated along the dimensions `used`.
    fn cost(&self, used: usize, interpolation: Interpolation) -> f64 {
        let dimensions = || (0..3).filter(|d| used >> d & 1 == 1);
        let part = 1.0 / f64::from(used.count_ones());
        let least = 0.25 + NOISE * part;
        let bits = self.points.iter().map(|(x, neighbours)| {
            let values = dimensions().map(|d| {
                let (near, far) = interpolation.weights(d);
                let v = neighbours[d];
                (v[1] + v[2]) * near + (v[0] + v[3]) * far
            });
            let prediction = values.sum::<f64>() * part;
            if self.inverse.is_infinite() {
                let folded = difference(*x, T::from_f64(prediction), self.shift);
                return log2(folded as f64 + 1.0);
            }
            let residual = (x.to_f64() - prediction) * self.inverse;
            0.5 * log2((residual * residual + least).min(f64::MAX))
        });
        bits.sum::<f64>() / self.points.len().max(1) as f64
    }
}

/// Indices of points of phase `t` that have all neighbours along the odd dimensions, spread over the lattice of a level.
fn spread(
    shape: [usize; 3],
    level: usize,
    t: usize,
    count: usize,
) -> impl Iterator<Item = [usize; 3]> {
    // Fractions of 2^64 of a sequence of low discrepancy. Source: M. Roberts, "The unreasonable effectiveness of
    // quasirandom sequences", for three dimensions.
    const STEPS: [u64; 3] = [
        0xd1b5_4a32_d192_ed03,
        0xabad_d88e_fe92_f2c4,
        0x8cb9_2ba7_2f3d_8dd7,
    ];
    let lattice = shape.map(|n| n.div_ceil(1 << level));
    let places = [0, 1, 2].map(|d| match t >> d & 1 {
        1 => lattice[d].saturating_sub(5) / 2,
        _ => lattice[d].div_ceil(2),
    });
    let count = if places.contains(&0) { 0 } else { count };
    (1..=count as u64).map(move |i| {
        [0, 1, 2].map(|d| {
            let fraction = i.wrapping_mul(STEPS[d]);
            let place = ((u128::from(fraction) * places[d] as u128) >> 64) as usize;
            if t >> d & 1 == 1 {
                2 * place + 3
            } else {
                2 * place
            }
        })
    })
}

/// The value of a point of a lattice, and its neighbours along the odd dimensions; `None` if any is absent or not finite.
fn neighbours<T: Element>(
    region: &RegionBuffer<'_, T>,
    level: usize,
    t: usize,
    at: [usize; 3],
) -> Option<(T, [[f64; 4]; 3])> {
    let value = |at: [usize; 3]| {
        let [z, y, x] = at.map(|k| k << level);
        let is_present = region
            .valid
            .as_ref()
            .is_none_or(|valid| valid.get([z, y, x]));
        let value = region.values[(z * region.shape[1] + y) * region.shape[2] + x];
        (is_present && value.to_f64().is_finite()).then_some(value)
    };
    let mut all = [[0.0; 4]; 3];
    for d in (0..3).filter(|d| t >> d & 1 == 1) {
        for (k, to) in all[d].iter_mut().enumerate() {
            let mut neighbour = at;
            neighbour[d] = at[d] + 2 * k - 3;
            *to = value(neighbour)?.to_f64();
        }
    }
    Some((value(at)?, all))
}
