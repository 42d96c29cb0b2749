//! Diagonals: the points of earlier phases that are next to a point in two dimensions, and their part in its prediction.

use crate::domain::bitmap::{Bitmap, first_bits};
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::{VECTOR_POINTS, finite_or_zero};
use crate::predict::interpolation::Interpolation;
use crate::simd::dispatch::vectorised;

/// The four nearest points on the diagonals of a pair of dimensions, which one phase has for each point of another.
struct Diagonal<'a, T> {
    /// The number of the phase that has the points.
    source: usize,
    /// The values of this phase.
    values: &'a [T],
    /// The index of each point less that of the predicted point, in z, y, x.
    steps: [[isize; 3]; 4],
    /// The distance of each point's value in memory.
    offsets: [isize; 4],
    /// The weight of each point.
    weight: T,
}

/// The diagonals that predict the points of a phase, together with the interpolation along its odd dimensions.
pub(crate) struct Diagonals<'a, T> {
    t: usize,
    diagonals: Vec<Diagonal<'a, T>>,
    interpolation_weight: T,
    /// The number of points of a row.
    row_points: usize,
    /// The first index and the end, in each dimension, of points whose points on diagonals are all inside the lattice.
    spans: [[usize; 2]; 3],
    /// The present points of each phase; `None` for all.
    valid: Option<&'a [Bitmap; 8]>,
}

impl<'a, T: Element> Diagonals<'a, T> {
    /// The diagonals of phase `t`, from the values of all phases.
    pub(crate) fn new(
        t: usize,
        interpolation: Interpolation,
        phases: &Phases,
        values: &'a [Vec<T>; 8],
        valid: Option<&'a [Bitmap; 8]>,
    ) -> Self {
        let points = phases.points(t);
        let mut spans = points.map(|n| [0, n]);
        let (mut diagonals, mut interpolation_weight) = (Vec::new(), 1.0);
        for (pair, weight) in interpolation.diagonals(t) {
            if weight == 0.0 || pair.iter().any(|d| phases.fine[*d] < 2) {
                continue;
            }
            // An odd dimension of the phase is an even one of the source, and vice versa.
            let first_step = |d: usize| if t >> d & 1 == 1 { 0 } else { -1 };
            for d in pair {
                let (first, source_points) = match first_step(d) {
                    0 => (0, phases.fine[d].div_ceil(2) - 1),
                    _ => (1, phases.fine[d] / 2),
                };
                spans[d] = [first, points[d].min(source_points)];
            }
            let steps = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|after| {
                let mut step = [0; 3];
                for (d, after) in pair.into_iter().zip(after) {
                    step[d] = first_step(d) + after;
                }
                step
            });
            let distance =
                |step: [isize; 3]| (0..3).map(|d| step[d] * phases.stride[d] as isize).sum();
            let source = pair.iter().fold(t, |t, d| t ^ 1 << d);
            interpolation_weight -= weight;
            diagonals.push(Diagonal {
                source,
                values: &values[source],
                steps,
                offsets: steps.map(distance),
                weight: T::from_f64(0.25 * weight),
            });
        }
        Self {
            t,
            diagonals,
            interpolation_weight: T::from_f64(interpolation_weight),
            row_points: points[2],
            spans,
            valid,
        }
    }

    /// Replaces the interpolated values of a batch, whose rows are `pitch` apart, by their weighted sums with the points on
    /// diagonals.
    pub(crate) fn blend_into(&self, batch: &Batch, pitch: usize, predictions: &mut [T]) {
        if self.diagonals.is_empty() {
            return;
        }
        for (row, word) in (0..batch.rows)
            .flat_map(|row| (0..self.row_points.div_ceil(64)).map(move |word| (row, word)))
        {
            let mask = self.mask([batch.z, batch.y + row], word);
            if mask == 0 {
                continue;
            }
            let from = row * pitch + 64 * word;
            let n = (self.row_points - 64 * word).min(64);
            let out = &mut predictions[from..][..n.next_multiple_of(VECTOR_POINTS)];
            match &self.diagonals[..] {
                [one] => self.blend::<1>([one], batch.at + from, mask, out),
                [one, two] => self.blend::<2>([one, two], batch.at + from, mask, out),
                [one, two, three, ..] => {
                    self.blend::<3>([one, two, three], batch.at + from, mask, out);
                }
                [] => {}
            }
        }
    }

    /// Blends the values of points from `at` on whose bit is set.
    fn blend<const N: usize>(
        &self,
        diagonals: [&Diagonal<'_, T>; N],
        at: usize,
        mask: u64,
        out: &mut [T],
    ) {
        let points = diagonals.map(|diagonal| {
            let from = |offset| &diagonal.values[at.wrapping_add_signed(offset)..][..out.len()];
            diagonal.offsets.map(from)
        });
        let weights = diagonals.map(|diagonal| diagonal.weight);
        blend(points, weights, self.interpolation_weight, mask, out);
    }

    /// The points of a word of a row that have all points on diagonals.
    fn mask(&self, [z, y]: [usize; 2], word: usize) -> u64 {
        let Some(valid) = self.valid else {
            let is_within = |d: usize, k: usize| (self.spans[d][0]..self.spans[d][1]).contains(&k);
            if !is_within(0, z) || !is_within(1, y) {
                return 0;
            }
            let [first, end] = self.spans[2];
            return first_bits(end, word) & !first_bits(first, word);
        };
        let own = valid[self.t].word([z, y], word);
        self.diagonals.iter().fold(own, |mask, diagonal| {
            let source = &valid[diagonal.source];
            diagonal.steps.iter().fold(mask, |mask, step| {
                let row = [
                    z.wrapping_add_signed(step[0]),
                    y.wrapping_add_signed(step[1]),
                ];
                let present = match step[2] {
                    -1 => source.word_before(row, word, 1),
                    0 => source.word(row, word),
                    _ => source.word_after(row, word, 1),
                };
                mask & present
            })
        })
    }
}

vectorised! {
    /// Replaces values whose bit is set by their weighted sums with the points on diagonals.
    fn blend [T: Element, const N: usize] of [T, N] (
        points: [[&[T]; 4]; N],
        weights: [T; N],
        own_weight: T,
        mask: u64,
        out: &mut [T],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (points, out) = (points.map(|four| four.map(|points| &points[..n])), &mut out[..n]);
        for k in 0..n {
            let mut sum = out[k].times(own_weight);
            for j in 0..N {
                let [a, b, c, d] = points[j].map(|points| points[k]);
                sum = sum.plus(a.plus(b).plus(c.plus(d)).times(weights[j]));
            }
            out[k] = if mask >> k & 1 == 1 { finite_or_zero(sum) } else { out[k] };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::interpolation::{PhaseWeights, coded_pairs};

    #[test]
    fn masks_of_whole_lattices_and_of_bitmaps_are_equal() {
        let lengths = [1, 2, 3, 4, 5];
        let rows = [1, 2, 3, 64, 127, 128, 129, 130, 131, 257];
        let all = PhaseWeights {
            sharpness: 0,
            diagonals: [1; 3],
        };
        let interpolation = Interpolation::default().with_phase_weights(|_| all);
        let values: [Vec<f32>; 8] = Default::default();
        for shape in lengths
            .iter()
            .flat_map(|z| lengths.iter().flat_map(move |y| rows.map(|x| [*z, *y, x])))
        {
            let phases = Phases::new(shape);
            let valid = Bitmap::full(shape).phases();
            for t in (1..8).filter(|t| !phases.points(*t).contains(&0)) {
                let [nz, ny, nx] = phases.points(t);
                let of = |valid| Diagonals::new(t, interpolation, &phases, &values, valid);
                let (whole, with_bitmaps) = (of(None), of(Some(&valid)));
                let has_diagonals = coded_pairs(t).next().is_some();
                for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
                    for word in 0..nx.div_ceil(64) {
                        let masks = [&whole, &with_bitmaps].map(|d| d.mask([z, y], word));
                        assert_eq!(masks[0], masks[1], "{shape:?} {t} {z} {y} {word}");
                    }
                }
                assert!(has_diagonals || whole.diagonals.is_empty());
            }
        }
    }
}
