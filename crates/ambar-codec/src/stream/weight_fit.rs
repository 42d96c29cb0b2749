//! The fit of the weights of a phase to some of its points.
//!
//! A point is predicted by the linear interpolation, plus multiples of the differences of the far points and of the means on
//! diagonals from it. The multiples minimise an estimate of the bits of residuals, by least squares with weights that depend
//! on the residuals.

use crate::predict::interpolation::PhaseWeights;

/// Unknowns of a fit: those of the far points and of three planes.
const UNKNOWNS: usize = 4;
/// Solutions of the least squares problem.
const ITERATIONS: usize = 4;

/// A point of a phase: differences from the linear interpolation of what predicts it.
pub(crate) struct FitPoint {
    /// The interpolation less the mean of the far points.
    pub far: f64,
    /// The mean on the diagonals of each plane, less the interpolation; 0 for unused planes.
    pub diagonals: [f64; 3],
    /// The value less the interpolation.
    pub value: f64,
}

impl FitPoint {
    fn terms(&self) -> [f64; UNKNOWNS] {
        let [a, b, c] = self.diagonals;
        [self.far, a, b, c]
    }
}

/// Fits the weights of a phase whose points are interpolated along `dimensions` dimensions. `planes` are those of diagonals;
/// the values have quantization errors of the variance `noise`.
pub(crate) fn fit(
    points: &[FitPoint],
    dimensions: u32,
    planes: &[usize],
    noise: f64,
) -> PhaseWeights {
    // The variances of the linear interpolation and of the mean on diagonals. Errors of a point are in all terms that use it.
    let (linear, diagonal) = (noise / f64::from(2 * dimensions), noise / 4.0);
    let unknowns: Vec<usize> = std::iter::once(0)
        .chain(planes.iter().map(|p| 1 + p))
        .collect();
    // At first, cubic interpolation.
    let mut multiples = [0.125, 0.0, 0.0, 0.0];
    for _ in 0..ITERATIONS {
        let (mut matrix, mut right) = ([[0.0; UNKNOWNS]; UNKNOWNS], [0.0; UNKNOWNS]);
        let mut sum = 0.0;
        let residual = |point: &FitPoint| {
            let terms = point.terms().into_iter().zip(multiples);
            point.value - terms.map(|(term, multiple)| term * multiple).sum::<f64>()
        };
        let mean = points.iter().map(|p| residual(p).abs()).sum::<f64>() / points.len() as f64;
        let least = 10.0 * noise + 1e-4 * mean * mean + f64::MIN_POSITIVE;
        for point in points {
            let (terms, off) = (point.terms(), residual(point));
            let weight = 1.0 / (off * off + least);
            sum += weight;
            for i in &unknowns {
                right[*i] += weight * terms[*i] * point.value;
                for j in &unknowns {
                    matrix[*i][*j] += weight * terms[*i] * terms[*j];
                }
            }
        }
        for i in &unknowns {
            right[*i] += sum * if *i == 0 { -linear } else { linear };
            for j in &unknowns {
                matrix[*i][*j] += sum
                    * match (*i, *j) {
                        (0, 0) => 2.0 * linear,
                        (0, _) | (_, 0) => -linear,
                        (i, j) if i == j => diagonal + linear,
                        _ => linear,
                    };
            }
            matrix[*i][*i] *= 1.0 + 1e-6;
        }
        match solve(matrix, right, &unknowns) {
            Some(found) => multiples = found,
            None => break,
        }
    }
    let [far, diagonals @ ..] = multiples;
    let rounded = |x: f64| x.round().clamp(-128.0, 127.0) as i8;
    let diagonals = diagonals.map(|weight| rounded(32.0 * weight));
    // The interpolation, of which the sharpness is a part, has the rest of all weights.
    let rest = 1.0 - diagonals.iter().map(|w| f64::from(*w)).sum::<f64>() / 32.0;
    let sharpness = if rest.abs() < 0.125 {
        0.0
    } else {
        0.5 * far / rest
    };
    PhaseWeights {
        sharpness: rounded(64.0 * sharpness),
        diagonals,
    }
}

/// Solves the equations of some unknowns by elimination; `None` if they are singular. All others are 0.
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
    let mut found = [0.0; UNKNOWNS];
    for i in unknowns.iter().rev() {
        let known: f64 = (0..UNKNOWNS)
            .filter(|j| j != i)
            .map(|j| matrix[*i][j] * found[j])
            .sum();
        found[*i] = (right[*i] - known) / matrix[*i][*i];
    }
    found.iter().all(|x| x.is_finite()).then_some(found)
}
