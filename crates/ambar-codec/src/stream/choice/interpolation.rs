//! The choice of interpolations: estimates of the bits of residuals, from points spread over the regions.

use crate::domain::lattice::ORDER;
use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::tables::log2;
use crate::predict::interpolation::{DIMENSION_PAIRS, Interpolation, PhaseWeights, coded_pairs};
use crate::quantize::float_order::difference;
use crate::stream::choice::weight_fit::{self, Extra, Fit, FitPoint, FitPoints};
use crate::stream::params::MAX_INTERPOLATIONS;
use std::ops::Range;

/// The interpolations of the finest levels.
pub(crate) type Interpolations = [Interpolation; MAX_INTERPOLATIONS];

/// Levels for which an interpolation is chosen; coarser ones have too few points.
const CHOSEN_LEVELS: usize = 2;
/// Maximum number of points of each phase.
const MAX_POINTS: usize = 512;
/// With fewer points of a phase, the default applies.
const MIN_POINTS: usize = 64;
/// Other interpolations than the default must save this many bits a point to be chosen without a trial.
const ACCEPTED_GAIN: f64 = 0.05;
/// Other interpolations than the default must save this many bits a point to be tried.
const MIN_GAIN: f64 = 0.01;
/// Weights of two bytes must save this many bits of a level: a few times the bits of the additional bytes.
const MIN_FINE_GAIN: f64 = 512.0;
/// Outer points, and slopes, must save this many bits a value to be tried. Slopes rarely save any.
const MIN_EXTRA_GAINS: [f64; 2] = [0.01, 0.05];
/// The squared error of an interpolation between values with quantization errors, in squared steps.
const NOISE: f64 = 0.64 / 12.0;

/// Proposed interpolations.
#[derive(Default)]
pub(crate) struct Proposals {
    /// Interpolations that are used without a trial.
    pub accepted: Interpolations,
    /// Interpolations to try on the sample.
    pub candidate: Interpolations,
    /// As `candidate`, with weights of each phase of levels that have enough points for a fit.
    pub fitted: Interpolations,
    /// As `fitted`, with outer points in the phases that gain by them; and with slopes instead.
    pub with_extra: [Interpolations; 2],
}

/// Proposes interpolations for `count` values within an absolute bound, 0 for lossless, from regions of all or of some of them;
/// with weights of each phase if `fits_weights`.
/// Predicts from the original values.
pub(crate) fn propose<T: Element>(
    regions: &[RegionBuffer<'_, T>],
    count: usize,
    bound: f64,
    fits_weights: bool,
) -> Proposals {
    let mut proposals = Proposals::default();
    // Regions have equal numbers of dimensions.
    let shape = regions.first().map_or([1; 3], |region| region.shape);
    let dimensions = shape.iter().filter(|n| **n > 1).count();
    let mut extra_gains = [0.0; 2];
    for level in 0..CHOSEN_LEVELS {
        // The part of all values that are in one phase of the level.
        let part = 0.5f64.powi((dimensions * (level + 1)) as i32);
        // Without extra terms, with outer points, and with slopes.
        let mut fits = [[Fit::NONE; 8]; 3];
        for t in ORDER {
            let points = Points::new(regions, (level, t), bound, fits_weights);
            for (interpolation, min_gain) in [
                (&mut proposals.accepted[level], ACCEPTED_GAIN),
                (&mut proposals.candidate[level], MIN_GAIN),
            ] {
                *interpolation = points.cheapest(t, *interpolation, min_gain);
            }
            if fits_weights {
                let [without, with_extra @ ..] = points.fits(t, proposals.candidate[level]);
                fits[0][t] = without;
                for (extra, with) in with_extra.into_iter().enumerate() {
                    let gain = without.bits[1] - with.bits[1];
                    let gains = gain > MIN_GAIN;
                    extra_gains[extra] += if gains { part * gain } else { 0.0 };
                    fits[1 + extra][t] = if gains { with } else { without };
                }
            }
        }
        let candidate = proposals.candidate[level];
        let [fitted, with_extra @ ..] = fits.map(|fits| {
            let gain: f64 = fits.iter().map(|fit| fit.bits[0] - fit.bits[1]).sum();
            let is_fine = gain * part * count as f64 > MIN_FINE_GAIN;
            let weights = fits.map(|fit| fit.weights[usize::from(is_fine)]);
            if weights == [PhaseWeights::CUBIC; 8] {
                candidate
            } else {
                candidate.with_phase_weights(|t| weights[t])
            }
        });
        proposals.fitted[level] = fitted;
        for (proposed, with) in proposals.with_extra.iter_mut().zip(with_extra) {
            proposed[level] = with;
        }
    }
    for (extra, gain) in extra_gains.into_iter().enumerate() {
        if gain < MIN_EXTRA_GAINS[extra] {
            proposals.with_extra[extra] = proposals.fitted;
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

/// A point of a phase.
struct SamplePoint<T> {
    value: T,
    /// Its neighbours at -3, -1, +1 and +3 along the odd dimensions.
    neighbours: [[f64; 4]; 3],
    /// The means of its nearest points on the diagonals of each pair of dimensions that has coded ones; NaN if any is absent.
    diagonal_means: [f64; 3],
    /// The means of its neighbours at -5 and +5 along the odd dimensions; NaN if one is absent.
    outer_means: [f64; 3],
}

/// Points of a phase of a level.
struct Points<T> {
    points: Vec<SamplePoint<T>>,
    /// The inverse of the step; infinity for lossless.
    inverse: f64,
    /// The number of lowest bits that are 0 in all points.
    shift: u32,
}

impl<T: Element> Points<T> {
    /// Points of phase `t` of a level; with the neighbours that weights of phases are fitted to, if `fits_weights`.
    fn new(
        regions: &[RegionBuffer<'_, T>],
        (level, t): (usize, usize),
        bound: f64,
        fits_weights: bool,
    ) -> Self {
        let all: usize = regions.iter().map(|region| region.values.len()).sum();
        let mut points: Vec<SamplePoint<T>> = Vec::with_capacity(MAX_POINTS);
        let (mut first, mut before) = (0, 0);
        for region in regions {
            before += region.values.len();
            let end = (MAX_POINTS as u128 * before as u128 / all.max(1) as u128) as usize;
            let places = spread(region.shape, level, t, first..end);
            points
                .extend(places.filter_map(|at| sample_point(region, (level, t), at, fits_weights)));
            first = end;
        }
        if points.len() < MIN_POINTS {
            points.clear();
        }
        let bits = points
            .iter()
            .fold(0, |bits, point| bits | point.value.to_word());
        Self {
            points,
            inverse: 0.5 / bound,
            shift: if bits == 0 { 0 } else { bits.trailing_zeros() },
        }
    }

    /// The interpolation with the cheapest sharpness, or dimensions, of phase `t`, if it saves `min_gain` bits a point.
    fn cheapest(&self, t: usize, before: Interpolation, min_gain: f64) -> Interpolation {
        if t.is_power_of_two() {
            let d = t.trailing_zeros() as usize;
            let cost = |index| self.cost(t, t, before.with_sharpness(d, index));
            let others = 1..Interpolation::SHARPNESS_COUNT;
            return before.with_sharpness(d, cheapest(0, others, min_gain, cost));
        }
        let subsets = (1..t).rev().filter(|used| used & t == *used);
        let cost = |used| self.cost(t, used, before);
        before.with_dimensions(t, cheapest(t, subsets, min_gain, cost))
    }

    /// The mean of an estimate of a residual's bits, if the points are interpolated along the dimensions `used`.
    fn cost(&self, t: usize, used: usize, interpolation: Interpolation) -> f64 {
        let dimensions = || (0..3).filter(|d| used >> d & 1 == 1);
        let part = 1.0 / f64::from(used.count_ones());
        let least = 0.25 + NOISE * part;
        let bits = self.points.iter().map(|point| {
            let values = dimensions().map(|d| {
                let (near, far) = interpolation.weights(t, d);
                let v = point.neighbours[d];
                (v[1] + v[2]) * near + (v[0] + v[3]) * far
            });
            let prediction = values.sum::<f64>() * part;
            if self.inverse.is_infinite() {
                let folded = difference(point.value, T::from_f64(prediction), self.shift);
                return log2(folded as f64 + 1.0);
            }
            let residual = (point.value.to_f64() - prediction) * self.inverse;
            0.5 * log2((residual * residual + least).min(f64::MAX))
        });
        bits.sum::<f64>() / self.points.len().max(1) as f64
    }

    /// Fits weights of phase `t`, which is interpolated along the dimensions of `interpolation`: without extra terms, with outer
    /// points, where most points have some, and with slopes. None to few points.
    fn fits(&self, t: usize, interpolation: Interpolation) -> [Fit; 3] {
        let used = interpolation.dimensions(t);
        let dimensions = || (0..3).filter(|d| used >> d & 1 == 1);
        let most_have = |mean: &dyn Fn(&SamplePoint<T>) -> f64| {
            let count = self.points.iter().filter(|p| mean(p).is_finite()).count();
            2 * count > self.points.len()
        };
        let pairs = coded_pairs(t).filter(|pair| most_have(&|point| point.diagonal_means[*pair]));
        let pairs: Vec<usize> = pairs.collect();
        let part = 1.0 / f64::from(used.count_ones());
        let outer_mean =
            |point: &SamplePoint<T>| part * dimensions().map(|d| point.outer_means[d]).sum::<f64>();
        let points = self.points.iter().map(|point| {
            let (mut near, mut far, mut slope) = (0.0, 0.0, 0.0);
            for d in dimensions() {
                let v = point.neighbours[d];
                near += 0.5 * part * (v[1] + v[2]);
                far += 0.5 * part * (v[0] + v[3]);
                slope += 0.5 * part * (v[2] - v[1]);
            }
            let mut diagonals = [0.0; 3];
            for pair in &pairs {
                diagonals[*pair] = point.diagonal_means[*pair] - near;
            }
            let outer = outer_mean(point) - 3.0 * far + 2.0 * near;
            FitPoint {
                far: near - far,
                diagonals,
                // Points that lack an outer point are predicted without all of them.
                outer: if outer.is_finite() { outer } else { 0.0 },
                slope,
                value: point.value.to_f64() - near,
            }
        });
        let points = FitPoints::new(points);
        if points.len() < MIN_POINTS {
            return [Fit::NONE; 3];
        }
        let (count, step) = (used.count_ones(), 1.0 / self.inverse);
        let fit = |extra| weight_fit::fit(&points, count, &pairs, extra, step);
        let without = fit(Extra::None);
        let with_outer = if most_have(&outer_mean) {
            fit(Extra::OuterPoints)
        } else {
            without
        };
        [without, with_outer, fit(Extra::Slopes)]
    }
}

/// Indices of points of phase `t` that have all neighbours along the odd dimensions, spread over the lattice of a level: those
/// of some numbers of a sequence.
fn spread(
    shape: [usize; 3],
    level: usize,
    t: usize,
    numbers: Range<usize>,
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
    let numbers = if places.contains(&0) { 0..0 } else { numbers };
    numbers.map(move |i| {
        [0, 1, 2].map(|d| {
            let fraction = (i as u64 + 1).wrapping_mul(STEPS[d]);
            let place = ((u128::from(fraction) * places[d] as u128) >> 64) as usize;
            if t >> d & 1 == 1 {
                2 * place + 3
            } else {
                2 * place
            }
        })
    })
}

/// A point of a lattice; `None` if it, or any neighbour along the odd dimensions, is absent or not finite. The means of other
/// neighbours are 0 unless `has_means`.
fn sample_point<T: Element>(
    region: &RegionBuffer<'_, T>,
    (level, t): (usize, usize),
    at: [usize; 3],
    has_means: bool,
) -> Option<SamplePoint<T>> {
    let value = |at: [usize; 3]| {
        let [z, y, x] = at.map(|k| k << level);
        let shape = region.shape;
        if z >= shape[0] || y >= shape[1] || x >= shape[2] {
            return None;
        }
        let valid = region.valid.as_ref();
        let is_present = valid.is_none_or(|valid| valid.get([z, y, x]));
        let value = region.values[(z * shape[1] + y) * shape[2] + x];
        (is_present && value.to_f64().is_finite()).then_some(value)
    };
    let odd_dimensions = || (0..3).filter(|d| t >> d & 1 == 1);
    let mut point = SamplePoint {
        value: value(at)?,
        neighbours: [[0.0; 4]; 3],
        diagonal_means: [0.0; 3],
        outer_means: [0.0; 3],
    };
    for d in odd_dimensions() {
        for (k, to) in point.neighbours[d].iter_mut().enumerate() {
            let mut neighbour = at;
            neighbour[d] = at[d] + 2 * k - 3;
            *to = value(neighbour)?.to_f64();
        }
    }
    if !has_means {
        return Some(point);
    }
    let moved = |steps: &[(usize, isize)]| {
        let mut place = at;
        for (d, step) in steps {
            // An index below 0 becomes one outside of the region.
            place[*d] = at[*d]
                .checked_add_signed(*step)
                .unwrap_or(usize::MAX >> level);
        }
        value(place).map_or(f64::NAN, |x| x.to_f64())
    };
    for pair in coded_pairs(t) {
        let [a, b] = DIMENSION_PAIRS[pair];
        for [i, j] in [[-1, -1], [-1, 1], [1, -1], [1, 1]] {
            point.diagonal_means[pair] += 0.25 * moved(&[(a, i), (b, j)]);
        }
    }
    for d in odd_dimensions() {
        point.outer_means[d] = 0.5 * (moved(&[(d, -5)]) + moved(&[(d, 5)]));
    }
    Some(point)
}
