//! Samples of values for trials of parameters: the parts with the largest estimated size, and how rough they are along each
//! dimension.

use crate::element::Element;
use crate::quantize::float_order::difference;

/// Maximum number of values of a sample of an array or of blocks.
pub(crate) const MAX_SAMPLE: usize = 1 << 16;
/// Differences along a dimension must take this much more than along others, in units of [`difference_cost`], to try whether
/// values are better not predicted along it.
const ROUGH_EXCESS: f64 = 1.0;
/// Where that is less, it is enough if they take twice as much as along the others, and this much more.
const MIN_EXCESS: f64 = 0.25;

/// The mean cost of differences along each dimension of an array, in units of [`difference_cost`]; `None` for dimensions with fewer
/// than two points.
pub(crate) fn difference_costs<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
) -> Vec<Option<f64>> {
    if values.is_empty() {
        return vec![None; shape.len()];
    }
    let cost = |d: usize| {
        let stride: usize = shape[d + 1..].iter().product();
        let (mut sum, mut pairs) = (0.0, 0usize);
        for run in values.chunks_exact((stride * shape[d]).max(1)) {
            for (a, b) in run.iter().zip(&run[stride..]).step_by(5) {
                sum += difference_cost(*a, *b, 0.5 / bound);
                pairs += 1;
            }
        }
        (pairs > 0).then(|| sum / pairs as f64)
    };
    (0..shape.len()).map(cost).collect()
}

/// Whether each of some costs exceeds all others by so much that a trial is promising; true without costs.
pub(crate) fn are_rougher(costs: &[Option<f64>], others: &[Option<f64>]) -> bool {
    let most = others.iter().flatten().copied().reduce(f64::max);
    costs.iter().all(|cost| {
        cost.zip(most)
            .is_some_and(|(cost, most)| cost > most + (MIN_EXCESS + most).min(ROUGH_EXCESS))
    })
}

/// Approximately twice the binary logarithm of a difference in steps, of which `inverse` is the inverse, infinity without loss;
/// 0 for NaN and infinities.
fn difference_cost<T: Element>(a: T, b: T, inverse: f64) -> f64 {
    let distance = (a.to_f64() - b.to_f64()).abs();
    let steps = if inverse.is_finite() {
        distance * inverse
    } else if distance.is_finite() {
        difference(a, b, 0) as f64
    } else {
        f64::INFINITY
    };
    if steps < 1e300 {
        ((steps + 1.0).to_bits() >> 51) as f64 - 2046.0
    } else {
        0.0
    }
}

/// A relative estimate of the bits of consecutive values within a bound, 0 for lossless, from the differences of some of them.
fn relative_cost<T: Element>(values: &[T], bound: f64) -> f64 {
    let (inverse, mut sum) = (0.5 / bound, 0.0);
    for eight in values.as_chunks::<8>().0.iter().step_by(4) {
        for pair in eight.windows(2) {
            sum += difference_cost(pair[0], pair[1], inverse);
        }
    }
    sum
}

/// The first block and the end of the run of blocks, of `cells` values each, with the largest estimated size. A run has at most
/// `max_values` values, or one block.
pub(crate) fn costliest_run<T: Element>(
    values: &[T],
    cells: usize,
    bound: f64,
    max_values: usize,
) -> (usize, usize) {
    // An aligned run of a power of two of blocks: on the Morton curve, often a cuboid.
    let count = 1 << (max_values / cells.max(1)).max(1).ilog2();
    let all = values.len() / cells;
    let mut best = (-1.0, 0);
    for first in (0..all).step_by(count) {
        let end = (first + count).min(all);
        let cost = relative_cost(&values[first * cells..end * cells], bound);
        if cost > best.0 {
            best = (cost, first);
        }
    }
    (best.1, (best.1 + count).min(all))
}

/// Copies the tile of an array that takes the most bits. Returns its shape.
pub(crate) fn costliest_tile<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
    max_values: usize,
    best: &mut Vec<T>,
) -> Vec<usize> {
    let mut tile = shape.to_vec();
    // Halve the longest dimension until the tile has the size of a sample.
    while tile.iter().product::<usize>() > max_values {
        if let Some(longest) = tile.iter_mut().max_by_key(|n| **n) {
            *longest = longest.div_ceil(2);
        }
    }
    let mut origins = vec![vec![]];
    for (n, part) in shape.iter().zip(&tile) {
        // The last tile overlaps the one before it if the length is not a multiple.
        let firsts = (0..n.div_ceil(*part.max(&1))).map(|k| (k * part).min(n - part));
        origins = firsts
            .flat_map(|first| {
                origins
                    .iter()
                    .map(move |o: &Vec<usize>| [&o[..], &[first]].concat())
            })
            .collect();
    }
    let mut most = -1.0;
    for origin in origins {
        let copy = copy_tile(values, shape, &origin, &tile);
        let cost = relative_cost(&copy, bound);
        if cost > most {
            (*best, most) = (copy, cost);
        }
    }
    tile
}

fn copy_tile<T: Element>(
    values: &[T],
    shape: &[usize],
    origin: &[usize],
    tile: &[usize],
) -> Vec<T> {
    let mut rows = vec![0];
    for d in 0..shape.len() - 1 {
        let range = origin[d]..origin[d] + tile[d];
        rows = rows
            .iter()
            .flat_map(|row| range.clone().map(move |k| row * shape[d] + k))
            .collect();
    }
    let Some(((n, first), length)) = shape.last().zip(origin.last()).zip(tile.last()) else {
        return Vec::new();
    };
    rows.iter()
        .flat_map(|row| &values[row * n + first..][..*length])
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that are rough in one part and smooth in all others, which begins with constant ones.
    fn rough_end(n: usize) -> Vec<f64> {
        let noise = |i: usize| (i * 7919 % 1009) as f64 / 1009.0;
        let place = |i: usize| [i / n / n, i / n % n, i % n];
        let value = |at: [usize; 3]| {
            let is_rough = at.iter().all(|k| *k > n / 2);
            let [z, y, x] = at;
            if is_rough {
                noise(z) + noise(y) + noise(x)
            } else {
                (z + y + x) as f64 * 1e-12
            }
        };
        (0..n * n * n).map(|i| value(place(i))).collect()
    }

    #[test]
    fn the_sample_is_the_part_that_takes_the_most_bits() {
        for bound in [0.0, 1e-3] {
            for n in [64, 65] {
                let (values, mut best) = (rough_end(n), Vec::new());
                costliest_tile(&values, &[n; 3], bound, 1 << 16, &mut best);
                let rough = best.iter().filter(|x| **x > 1e-3).count();
                assert!(10 * rough > 4 * best.len(), "{bound} {n} {rough}");
            }
        }
        let values = rough_end(64);
        let cost = |values: &[f64]| relative_cost(values, 0.0);
        let halves: Vec<f64> = values.iter().map(|x| x * 0.5f64.powi(40)).collect();
        assert!((cost(&values) - cost(&halves)).abs() < 0.05 * cost(&values));
    }
}
