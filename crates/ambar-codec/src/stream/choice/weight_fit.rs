//! The fit of the weights of a phase to some of its points.
//!
//! A point is predicted by the linear interpolation, plus multiples of the differences of the far points and of the means on
//! diagonals from it, and of differences: those that include outer points, or slopes. The multiples minimise an estimate of the bits of residuals,
//! the sum of their logarithms, by repeated least squares in which a point has the inverse of its squared residual as its
//! weight.

use crate::entropy::tables::log2;
use crate::predict::interpolation::{
    DIAGONAL_UNIT, OUTER_UNIT, PhaseWeights, SHARPNESS_UNIT, SLOPE_UNIT, UNITS_PER_ONE,
};
use crate::simd::dispatch::vectorised;

/// Unknowns of a fit: the multiples of the far points, of three pairs of dimensions, of the outer points, and of slopes.
const UNKNOWNS: usize = 6;
/// The numbers of the last ones.
const OUTER_TERM: usize = 4;
const SLOPE_TERM: usize = 5;
/// The coefficients of the means of the near, the far and the outer points, and of half the difference of the near ones, in each
/// term.
const COEFFICIENTS: [[f64; UNKNOWNS]; 4] = [
    [1.0, -1.0, -1.0, -1.0, 2.0, 0.0],
    [-1.0, 0.0, 0.0, 0.0, -3.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
];
/// Solutions of the least squares problem.
const ITERATIONS: usize = 4;
/// The variance of the errors of neighbours, in squared steps. They are smaller than uniform ones, because coarse levels have
/// tighter bounds, and because points that are predicted well have small errors.
const ERROR_VARIANCE: f64 = 0.3 / 12.0;
/// The same in the estimates of bits that compare fits. With three times as much, plotfiles take 0.8 % more bytes at 1e-3.
const ESTIMATED_VARIANCE: f64 = 0.64 / 12.0;
/// Smaller squared residuals, in squared steps, do not take fewer bits.
const MIN_SQUARE: f64 = 0.25;
/// The same without loss, in squares of the mean residual.
const MIN_RELATIVE_SQUARE: f64 = 1e-4;
/// The diagonal of the matrix is larger by this part, so that terms which depend on each other have a solution.
const REGULARISATION: f64 = 1e-6;
/// With less weight left for the interpolation, its sharpness does not matter.
const MIN_INTERPOLATION_WEIGHT: f64 = 0.125;
/// The interpolation of the first iteration is cubic: the multiple of the far points, and the others.
const CUBIC: [f64; UNKNOWNS] = [0.125, 0.0, 0.0, 0.0, 0.0, 0.0];
/// Fits with slopes begin with the preceding or the following points: repeated values, such as those of coarse cells, then have no
/// residuals.
const NEIGHBOURS: [[f64; UNKNOWNS]; 2] = [
    [0.0, 0.0, 0.0, 0.0, 0.0, -1.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
];

/// The terms of the fit of one point, relative to the linear interpolation.
pub(crate) struct FitPoint {
    /// The interpolation less the mean of the far points.
    pub far: f64,
    /// The mean on the diagonals of each pair of dimensions, less the interpolation; 0 for unused pairs.
    pub diagonals: [f64; 3],
    /// The mean of the outer points, less three times that of the far ones, plus twice that of the near ones; 0 if unused.
    pub outer: f64,
    /// Half the difference of the near points.
    pub slope: f64,
    /// The value less the interpolation.
    pub value: f64,
}

/// Points to fit weights to, with one array for each term.
#[derive(Default)]
pub(crate) struct FitPoints {
    terms: [Vec<f64>; UNKNOWNS],
    values: Vec<f64>,
}

impl FitPoints {
    /// Keeps the points whose value and terms are finite.
    pub(crate) fn new(points: impl Iterator<Item = FitPoint>) -> Self {
        let mut all = Self::default();
        for point in points {
            let [a, b, c] = point.diagonals;
            let terms = [point.far, a, b, c, point.outer, point.slope];
            if point.value.is_finite() && terms.iter().all(|term| term.is_finite()) {
                all.values.push(point.value);
                for (all, term) in all.terms.iter_mut().zip(terms) {
                    all.push(term);
                }
            }
        }
        all
    }

    /// The number of points.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The residuals with these multiples of terms.
    fn residuals(&self, multiples: [f64; UNKNOWNS]) -> Vec<f64> {
        let mut residuals = self.values.clone();
        for (terms, multiple) in self.terms.iter().zip(multiples) {
            if multiple != 0.0 {
                subtract_multiple(terms, multiple, &mut residuals);
            }
        }
        residuals
    }
}

/// Fitted weights of a phase.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    /// The weights in units of one byte, and of two.
    pub weights: [PhaseWeights; 2],
    /// An estimate of the bits of a residual with each of them, up to a constant: differences are meaningful.
    pub bits: [f64; 2],
}

impl Fit {
    /// Cubic interpolation, without an estimate.
    pub(crate) const NONE: Self = Self {
        weights: [PhaseWeights::CUBIC; 2],
        bits: [0.0; 2],
    };
}

/// Terms of a fit that not all fits have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extra {
    None,
    OuterPoints,
    Slopes,
}

/// Fits the weights of a phase whose points are interpolated along `dimensions` dimensions. `pairs` are the pairs of dimensions
/// whose diagonals are used. `step` is the width of the bins, 0 without loss.
pub(crate) fn fit(
    points: &FitPoints,
    dimensions: u32,
    pairs: &[usize],
    extra: Extra,
    step: f64,
) -> Fit {
    let unknowns: Vec<usize> = std::iter::once(0)
        .chain(pairs.iter().map(|pair| 1 + pair))
        .chain((extra == Extra::OuterPoints).then_some(OUTER_TERM))
        .chain((extra == Extra::Slopes).then_some(SLOPE_TERM))
        .collect();
    let estimate = |multiples| estimate_bits(points, dimensions, step, multiples);
    let mut multiples = match extra {
        Extra::Slopes if estimate(NEIGHBOURS[1]) < estimate(NEIGHBOURS[0]) => NEIGHBOURS[1],
        Extra::Slopes => NEIGHBOURS[0],
        _ => CUBIC,
    };
    for _ in 0..ITERATIONS {
        let Some(solved) = iterate(points, dimensions, &unknowns, step, multiples) else {
            break;
        };
        multiples = solved;
    }
    let one_byte = (
        [SHARPNESS_UNIT, OUTER_UNIT, SLOPE_UNIT, DIAGONAL_UNIT],
        i8::MAX.into(),
    );
    let two_bytes = ([1; 4], i16::MAX);
    let fits = [one_byte, two_bytes].map(|(units, limit)| {
        let (weights, rounded) = round(multiples, units, f64::from(limit));
        let bits = estimate(rounded);
        (weights, bits)
    });
    Fit {
        weights: fits.map(|(weights, _)| weights),
        bits: fits.map(|(_, bits)| bits),
    }
}

/// The weights of multiples in some units (of the sharpness, of outer points, of slopes and of diagonals), of which each has at
/// most `limit`.
/// Also returns the multiples of these weights.
fn round(
    multiples: [f64; UNKNOWNS],
    [sharp, outer, slope, diagonal]: [i16; 4],
    limit: f64,
) -> (PhaseWeights, [f64; UNKNOWNS]) {
    let rounded = |x: f64, unit: i16| {
        (UNITS_PER_ONE / f64::from(unit) * x)
            .round()
            .clamp(-limit, limit) as i16
            * unit
    };
    let value = |weight: i16| f64::from(weight) / UNITS_PER_ONE;
    let [far, diagonals @ .., last, difference] = multiples;
    let diagonals = diagonals.map(|weight| rounded(weight, diagonal));
    // The interpolation, of which sharpness and outer points are parts, has the rest of all weights.
    let rest = 1.0 - diagonals.iter().map(|w| value(*w)).sum::<f64>();
    let part = |multiple: f64| {
        if rest.abs() < MIN_INTERPOLATION_WEIGHT {
            0.0
        } else {
            multiple / rest
        }
    };
    let weights = PhaseWeights {
        sharpness: rounded(0.5 * part(far), sharp),
        outer: rounded(part(last), outer),
        slope: rounded(part(difference), slope),
        diagonals,
    };
    let [a, b, c] = diagonals.map(value);
    let [far, last, difference] = [
        2.0 * value(weights.sharpness),
        value(weights.outer),
        value(weights.slope),
    ]
    .map(|weight| rest * weight);
    (weights, [far, a, b, c, last, difference])
}

/// An estimate of the bits of a residual with neighbours that have errors.
fn estimate_bits(
    points: &FitPoints,
    dimensions: u32,
    step: f64,
    multiples: [f64; UNKNOWNS],
) -> f64 {
    let sum = |part: &[f64; UNKNOWNS]| part.iter().zip(multiples).map(|(a, b)| a * b).sum::<f64>();
    let [near, far, outer, slope] = COEFFICIENTS.each_ref().map(sum);
    let along = (1.0 + near).powi(2) + far.powi(2) + outer.powi(2) + slope.powi(2);
    let on_diagonals: f64 = multiples[1..OUTER_TERM]
        .iter()
        .map(|weight| weight * weight)
        .sum();
    let variance = ESTIMATED_VARIANCE * (along / f64::from(2 * dimensions) + on_diagonals / 4.0);
    let residuals = points.residuals(multiples);
    let least = least_square(&residuals, MIN_SQUARE + variance, step);
    sum_of_bits(&residuals, least) / points.len() as f64
}

/// The square below which a residual does not take fewer bits: some squared steps, and a part of the squared mean.
fn least_square(residuals: &[f64], squared_steps: f64, step: f64) -> f64 {
    let mean = sum_of_magnitudes(residuals) / residuals.len() as f64;
    squared_steps * step * step + MIN_RELATIVE_SQUARE * mean * mean
}

vectorised! {
    fn subtract_multiple [] of [] (terms: &[f64], multiple: f64, residuals: &mut [f64]) {
        for (residual, term) in residuals.iter_mut().zip(terms) {
            *residual -= multiple * term;
        }
    }
}

vectorised! {
    fn sum_of_magnitudes [] of [] (values: &[f64]) -> f64 {
        sum_of(values, f64::abs)
    }
}

vectorised! {
    /// The sum of the logarithms of residuals whose squares are larger by `least`.
    fn sum_of_bits [] of [] (residuals: &[f64], least: f64) -> f64 {
        sum_of(residuals, |residual| {
            let square = residual * residual + least;
            0.5 * log2(if square > f64::MIN_POSITIVE { square } else { f64::MIN_POSITIVE })
        })
    }
}

vectorised! {
    fn sum_of_products [] of [] (a: &[f64], b: &[f64]) -> f64 {
        debug_assert_eq!(a.len(), b.len());
        let ((a, last_a), (b, last_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
        let mut sums = [0.0; 8];
        for (a, b) in a.iter().zip(b) {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += a[k] * b[k];
            }
        }
        let last = last_a.iter().zip(last_b).map(|(a, b)| a * b);
        sums.into_iter().chain(last).sum()
    }
}

/// The sum of a function of values. Eight sums, of every eighth value each, do not wait for each other.
#[inline(always)]
fn sum_of(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let (eights, last) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += f(*value);
        }
    }
    let last = last.iter().map(|value| f(*value));
    sums.into_iter().chain(last).sum()
}

/// Solves the least squares problem with weights that follow from given multiples. `None` if there is no solution, also where
/// squares overflow or underflow.
fn iterate(
    points: &FitPoints,
    dimensions: u32,
    unknowns: &[usize],
    step: f64,
    multiples: [f64; UNKNOWNS],
) -> Option<[f64; UNKNOWNS]> {
    let residuals = points.residuals(multiples);
    let least = least_square(&residuals, MIN_SQUARE, step);
    let weights: Vec<f64> = residuals.iter().map(|x| 1.0 / (x * x + least)).collect();
    let (mut matrix, mut right) = ([[0.0; UNKNOWNS]; UNKNOWNS], [0.0; UNKNOWNS]);
    for (number, i) in unknowns.iter().enumerate() {
        let pairs = points.terms[*i].iter().zip(&weights);
        let weighted: Vec<f64> = pairs.map(|(term, weight)| term * weight).collect();
        right[*i] = sum_of_products(&weighted, &points.values);
        for j in &unknowns[..=number] {
            let sum = sum_of_products(&weighted, &points.terms[*j]);
            (matrix[*i][*j], matrix[*j][*i]) = (sum, sum);
        }
    }
    // The variances of the linear interpolation and of the mean on diagonals. Errors of a point are in all terms that use it.
    let noise = ERROR_VARIANCE * step * step * sum_of_magnitudes(&weights);
    let (linear, diagonal) = (noise / f64::from(2 * dimensions), noise / 4.0);
    for i in unknowns {
        right[*i] -= linear * COEFFICIENTS[0][*i];
        for j in unknowns {
            matrix[*i][*j] += linear
                * COEFFICIENTS
                    .iter()
                    .map(|part| part[*i] * part[*j])
                    .sum::<f64>();
        }
        if (1..OUTER_TERM).contains(i) {
            matrix[*i][*i] += diagonal;
        }
        matrix[*i][*i] *= 1.0 + REGULARISATION;
    }
    solve(matrix, right, unknowns)
}

/// Solves the equations of some unknowns by elimination; `None` if they are singular. Other unknowns are 0.
fn solve(
    mut matrix: [[f64; UNKNOWNS]; UNKNOWNS],
    mut right: [f64; UNKNOWNS],
    unknowns: &[usize],
) -> Option<[f64; UNKNOWNS]> {
    // The matrix is symmetric and positive: no pivots are needed.
    for (k, i) in unknowns.iter().enumerate() {
        if !(matrix[*i][*i] > 0.0 && matrix[*i][*i].is_finite()) {
            return None;
        }
        for j in &unknowns[k + 1..] {
            let factor = matrix[*j][*i] / matrix[*i][*i];
            for l in unknowns {
                matrix[*j][*l] -= factor * matrix[*i][*l];
            }
            right[*j] -= factor * right[*i];
        }
    }
    let mut solved = [0.0; UNKNOWNS];
    for i in unknowns.iter().rev() {
        let known = (0..UNKNOWNS).filter(|j| j != i);
        let known: f64 = known.map(|j| matrix[*i][j] * solved[j]).sum();
        solved[*i] = (right[*i] - known) / matrix[*i][*i];
    }
    solved.iter().all(|x| x.is_finite()).then_some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of two dimensions with a noise of `amplitude` in all terms, which are predicted without a residual by the multiples.
    fn points([far, diagonal, outer]: [f64; 3], amplitude: f64) -> FitPoints {
        let noise = |i: usize| amplitude * ((i * 7919 % 1009) as f64 / 1009.0 - 0.5);
        let point = |i: usize| FitPoint {
            far: noise(i),
            diagonals: [noise(i + 400), 0.0, 0.0],
            outer: noise(i + 700),
            slope: 0.0,
            value: far * noise(i) + diagonal * noise(i + 400) + outer * noise(i + 700),
        };
        FitPoints::new((0..500).map(point))
    }

    #[test]
    fn exact_weights_are_found() {
        for step in [0.0, 1e-4] {
            // Twice the linear interpolation less the mean on diagonals.
            let fit =
                |points: &FitPoints| fit(points, 2, &[0], Extra::OuterPoints, step).weights[0];
            let weights = fit(&points([0.0, -1.0, 0.0], 1.0));
            assert_eq!((weights.sharpness, weights.outer), (0, 0));
            assert_eq!(weights.diagonals, [-8192, 0, 0]);
            let cubic = fit(&points([0.125, 0.0, 0.0], 1.0));
            assert_eq!(cubic, PhaseWeights::CUBIC);
            let weights = fit(&points([0.125, 0.0, 0.0625], 1.0));
            assert_eq!((weights.sharpness, weights.outer), (512, 512));
        }
    }

    #[test]
    fn repeated_values_are_predicted_by_the_preceding_or_the_following_ones() {
        for slope in [-1.0, 1.0] {
            let noise = |i: usize| (i * 7919 % 1009) as f64 / 1009.0 - 0.5;
            // Two thirds of the values equal a neighbour, the others are between them.
            let point = |i: usize| FitPoint {
                far: 0.3 * noise(i),
                diagonals: [0.0; 3],
                outer: 0.0,
                slope: noise(i + 400),
                value: if i.is_multiple_of(3) {
                    0.01 * noise(i + 700)
                } else {
                    slope * noise(i + 400)
                },
            };
            let points = FitPoints::new((0..500).map(point));
            let fit = fit(&points, 1, &[], Extra::Slopes, 1e-4);
            assert_eq!(f64::from(fit.weights[0].slope), slope * UNITS_PER_ONE);
        }
    }

    #[test]
    fn values_without_a_fit_give_cubic_interpolation() {
        for amplitude in [0.0, 1e-200, 1e200] {
            let points = points([0.0, -1.0, 0.0], amplitude);
            let fit = fit(&points, 2, &[0], Extra::OuterPoints, 0.0);
            assert_eq!(fit.weights, [PhaseWeights::CUBIC; 2], "{amplitude:e}");
        }
    }
}
