//! Diagonals: the points of earlier phases that are next to a point in two dimensions, and their part in its prediction.

use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::{VECTOR_POINTS, finite_or_zero};
use crate::predict::interpolation::Interpolation;
use crate::simd::dispatch::vectorised;

/// The four nearest points of a phase on the diagonals of a plane, for each point of another phase.
struct Diagonal<'a, T> {
    plane: [usize; 2],
    /// The number and the values of the phase that holds the points.
    source: usize,
    values: &'a [T],
    /// The distances of the points.
    offsets: [isize; 4],
    /// The weight of each point.
    weight: T,
}

/// The diagonals that predict the points of a phase, together with the interpolation along its odd dimensions.
pub(crate) struct Diagonals<'a, T> {
    t: usize,
    all: Vec<Diagonal<'a, T>>,
    /// The weight of the interpolation.
    rest: T,
    /// The number of points of a row.
    points: usize,
    /// In each dimension, the first point and the end of those with all points on diagonals, if none is absent.
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
        let (mut all, mut rest) = (Vec::new(), 1.0);
        for (plane, weight) in interpolation.diagonals(t) {
            if weight == 0.0 || plane.iter().any(|d| phases.fine[*d] < 2) {
                continue;
            }
            let steps = plane.map(|d| {
                let is_odd = t >> d & 1 == 1;
                // Between the points `k` and `k + 1` of an even dimension, or `k - 1` and `k` of an odd one.
                spans[d] = if is_odd {
                    [0, points[d].min(phases.fine[d].div_ceil(2) - 1)]
                } else {
                    [1, points[d].min(phases.fine[d] / 2)]
                };
                let stride = phases.stride[d] as isize;
                if is_odd { [0, stride] } else { [-stride, 0] }
            });
            let [[a, b], [c, d]] = steps;
            let source = plane.iter().fold(t, |t, d| t ^ 1 << d);
            rest -= weight;
            all.push(Diagonal {
                plane,
                source,
                values: &values[source],
                offsets: [a + c, a + d, b + c, b + d],
                weight: T::from_f64(0.25 * weight),
            });
        }
        Self {
            t,
            all,
            rest: T::from_f64(rest),
            points: points[2],
            spans,
            valid,
        }
    }

    /// Adds the diagonals to the interpolated values of a batch, whose rows are `pitch` apart.
    pub(crate) fn add_to(&self, batch: &Batch, pitch: usize, predictions: &mut [T]) {
        if self.all.is_empty() {
            return;
        }
        for (row, word) in (0..batch.rows)
            .flat_map(|row| (0..self.points.div_ceil(64)).map(move |word| (row, word)))
        {
            let mask = self.mask([batch.z, batch.y + row], word);
            if mask == 0 {
                continue;
            }
            let from = row * pitch + 64 * word;
            let n = (self.points - 64 * word).min(64);
            let out = &mut predictions[from..][..n.next_multiple_of(VECTOR_POINTS)];
            match &self.all[..] {
                [one] => self.add::<1>([one], batch.at + from, mask, out),
                [one, two] => self.add::<2>([one, two], batch.at + from, mask, out),
                [one, two, three] => {
                    self.add::<3>([one, two, three], batch.at + from, mask, out);
                }
                _ => {}
            }
        }
    }

    /// Adds the diagonals to the values of points from `at` on whose bit is set.
    fn add<const N: usize>(&self, all: [&Diagonal<'_, T>; N], at: usize, mask: u64, out: &mut [T]) {
        let points = all.map(|diagonal| {
            diagonal
                .offsets
                .map(|offset| &diagonal.values[at.wrapping_add_signed(offset)..][..out.len()])
        });
        let weights = all.map(|diagonal| diagonal.weight);
        add_points(points, weights, self.rest, mask, out);
    }

    /// The points of a word of a row that have all points on diagonals.
    fn mask(&self, [z, y]: [usize; 2], word: usize) -> u64 {
        let Some(valid) = self.valid else {
            let is_within = |d: usize, k: usize| (self.spans[d][0]..self.spans[d][1]).contains(&k);
            if !is_within(0, z) || !is_within(1, y) {
                return 0;
            }
            let below = |n: usize| match n.saturating_sub(64 * word) {
                n @ 0..64 => (1 << n) - 1,
                _ => u64::MAX,
            };
            let [first, end] = self.spans[2];
            return below(end) & !below(first);
        };
        let own = valid[self.t].word([z, y], word);
        self.all.iter().fold(own, |mask, diagonal| {
            let source = &valid[diagonal.source];
            let near = |d: usize, after: bool| match (diagonal.plane.contains(&d), self.t >> d & 1)
            {
                (false, _) => 0,
                (true, 1) => isize::from(after),
                (true, _) => isize::from(after) - 1,
            };
            [[false, false], [false, true], [true, false], [true, true]]
                .iter()
                .fold(mask, |mask, corner| {
                    let step = |d: usize| {
                        let place = diagonal.plane.iter().position(|other| *other == d);
                        near(d, place.is_some_and(|place| corner[place]))
                    };
                    let row = [
                        z.wrapping_add_signed(step(0)),
                        y.wrapping_add_signed(step(1)),
                    ];
                    mask & match step(2) {
                        -1 => source.word_before(row, word, 1),
                        0 => source.word(row, word),
                        _ => source.word_after(row, word, 1),
                    }
                })
        })
    }
}

vectorised! {
    /// Adds points on diagonals to the values of points whose bit is set; `rest` is the weight of these values.
    fn add_points [T: Element, const N: usize] of [T, N] (
        points: [[&[T]; 4]; N],
        weights: [T; N],
        rest: T,
        mask: u64,
        out: &mut [T],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (points, out) = (points.map(|four| four.map(|points| &points[..n])), &mut out[..n]);
        for k in 0..n {
            let mut sum = out[k].times(rest);
            for j in 0..N {
                let [a, b, c, d] = points[j].map(|points| points[k]);
                sum = sum.plus(a.plus(b).plus(c.plus(d)).times(weights[j]));
            }
            out[k] = if mask >> k & 1 == 1 { finite_or_zero(sum) } else { out[k] };
        }
    }
}
