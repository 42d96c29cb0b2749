//! The fit of the weights of a phase to some of its points.
//!
//! A point is predicted by the linear interpolation, plus multiples of the differences of the far points and of the means on
//! diagonals from it. The multiples minimise an estimate of the bits of residuals, the sum of their logarithms, by repeated
//! least squares in which a point has the inverse of its squared residual as its weight.

use crate::predict::interpolation::PhaseWeights;

/// Unknowns of a fit: the multiples of the far points and of three pairs of dimensions.
const UNKNOWNS: usize = 4;
/// Solutions of the least squares problem.
const ITERATIONS: usize = 4;
/// The variance of the errors of neighbours, in squared steps. They are smaller than uniform ones, because coarse levels have
/// tighter bounds, and because points that are predicted well have small errors.
const ERROR_VARIANCE: f64 = 0.3 / 12.0;
/// Smaller squared residuals, in squared steps, do not take fewer bits.
const LEAST_SQUARE: f64 = 0.25;
/// The same without loss, in squares of the mean residual.
const LEAST_RELATIVE_SQUARE: f64 = 1e-4;
/// The diagonal of the matrix is larger by this part, so that terms which depend on each other have a solution.
const REGULARISATION: f64 = 1e-6;
/// With less weight left for the interpolation, its sharpness does not matter.
const MIN_INTERPOLATION_WEIGHT: f64 = 0.125;
/// The interpolation of the first iteration is cubic: the multiple of the far points, and the others.
const CUBIC: [f64; UNKNOWNS] = [0.125, 0.0, 0.0, 0.0];

/// The terms of the fit of one point, relative to the linear interpolation.
pub(crate) struct FitPoint {
    /// The interpolation less the mean of the far points.
    pub far: f64,
    /// The mean on the diagonals of each pair of dimensions, less the interpolation; 0 for unused pairs.
    pub diagonals: [f64; 3],
    /// The value less the interpolation.
    pub value: f64,
}

impl FitPoint {
    fn terms(&self) -> [f64; UNKNOWNS] {
        let [a, b, c] = self.diagonals;
        [self.far, a, b, c]
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.value.is_finite() && self.terms().iter().all(|term| term.is_finite())
    }

    fn residual(&self, multiples: [f64; UNKNOWNS]) -> f64 {
        let terms = self.terms().into_iter().zip(multiples);
        self.value - terms.map(|(term, multiple)| term * multiple).sum::<f64>()
    }
}

/// Fits the weights of a phase whose points are interpolated along `dimensions` dimensions. `pairs` are the pairs of dimensions
/// whose diagonals are used, `step` is the width of the bins, 0 without loss.
pub(crate) fn fit(
    points: &[FitPoint],
    dimensions: u32,
    pairs: &[usize],
    step: f64,
) -> PhaseWeights {
    let unknowns: Vec<usize> = std::iter::once(0)
        .chain(pairs.iter().map(|pair| 1 + pair))
        .collect();
    let mut multiples = CUBIC;
    for _ in 0..ITERATIONS {
        let Some(solved) = iterate(points, dimensions, &unknowns, step, multiples) else {
            break;
        };
        multiples = solved;
    }
    let [far, diagonals @ ..] = multiples;
    let rounded = |x: f64| x.round().clamp(-128.0, 127.0) as i8;
    let diagonals = diagonals.map(|weight| rounded(32.0 * weight));
    // The interpolation, of which the sharpness is a part, has the rest of all weights.
    let rest = 1.0 - diagonals.iter().map(|w| f64::from(*w)).sum::<f64>() / 32.0;
    let sharpness = if rest.abs() < MIN_INTERPOLATION_WEIGHT {
        0.0
    } else {
        0.5 * far / rest
    };
    PhaseWeights {
        sharpness: rounded(64.0 * sharpness),
        diagonals,
    }
}

/// Solves the least squares problem with weights that follow from given multiples. `None` if there is no solution, also where
/// squares overflow or underflow.
fn iterate(
    points: &[FitPoint],
    dimensions: u32,
    unknowns: &[usize],
    step: f64,
    multiples: [f64; UNKNOWNS],
) -> Option<[f64; UNKNOWNS]> {
    let (mut matrix, mut right) = ([[0.0; UNKNOWNS]; UNKNOWNS], [0.0; UNKNOWNS]);
    let residuals = points.iter().map(|point| point.residual(multiples).abs());
    let mean = residuals.sum::<f64>() / points.len() as f64;
    let least = LEAST_SQUARE * step * step + LEAST_RELATIVE_SQUARE * mean * mean;
    let mut total_weight = 0.0;
    for point in points {
        let (terms, residual) = (point.terms(), point.residual(multiples));
        let weight = 1.0 / (residual * residual + least);
        total_weight += weight;
        for i in unknowns {
            right[*i] += weight * terms[*i] * point.value;
            for j in unknowns {
                matrix[*i][*j] += weight * terms[*i] * terms[*j];
            }
        }
    }
    // The variances of the linear interpolation and of the mean on diagonals. Errors of a point are in all terms that use it.
    let noise = ERROR_VARIANCE * step * step * total_weight;
    let (linear, diagonal) = (noise / f64::from(2 * dimensions), noise / 4.0);
    for i in unknowns {
        right[*i] += if *i == 0 { -linear } else { linear };
        for j in unknowns {
            matrix[*i][*j] += match (*i, *j) {
                (0, 0) => 2.0 * linear,
                (0, _) | (_, 0) => -linear,
                (i, j) if i == j => diagonal + linear,
                _ => linear,
            };
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
    fn points(multiples: [f64; 2], amplitude: f64) -> Vec<FitPoint> {
        let noise = |i: usize| amplitude * ((i * 7919 % 1009) as f64 / 1009.0 - 0.5);
        let point = |i: usize| FitPoint {
            far: noise(i),
            diagonals: [noise(i + 400), 0.0, 0.0],
            value: multiples[0] * noise(i) + multiples[1] * noise(i + 400),
        };
        (0..500).map(point).collect()
    }

    #[test]
    fn exact_weights_are_found() {
        for step in [0.0, 1e-4] {
            // Twice the linear interpolation less the mean on diagonals.
            let weights = fit(&points([0.0, -1.0], 1.0), 2, &[0], step);
            assert_eq!((weights.sharpness, weights.diagonals), (0, [-32, 0, 0]));
            assert_eq!(
                fit(&points([0.125, 0.0], 1.0), 2, &[0], step),
                PhaseWeights::CUBIC
            );
        }
    }

    #[test]
    fn values_without_a_fit_give_cubic_interpolation() {
        for amplitude in [0.0, 1e-200, 1e200] {
            let weights = fit(&points([0.0, -1.0], amplitude), 2, &[0], 0.0);
            assert_eq!(weights, PhaseWeights::CUBIC, "{amplitude:e}");
        }
    }
}
