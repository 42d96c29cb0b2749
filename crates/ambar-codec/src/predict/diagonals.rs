//! Diagonals: the points of earlier phases that are next to a point in two dimensions, and their part in its prediction.

use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::{VECTOR_POINTS, finite_or_zero};
use crate::predict::interpolation::Interpolation;
use crate::predict::presence::{Neighbour, Presence};
use crate::simd::dispatch::vectorised;

/// The four nearest points on the diagonals of a pair of dimensions, which one phase has for each point of another.
struct Diagonal<'a, T> {
    /// The values of that phase.
    values: &'a [T],
    /// The distance of each point's value in memory.
    offsets: [isize; 4],
    /// The weight of each point.
    weight: T,
}

/// The diagonals that predict the points of a phase, together with the interpolation along its odd dimensions.
pub(crate) struct Diagonals<'a, T> {
    diagonals: Vec<Diagonal<'a, T>>,
    interpolation_weight: T,
    /// The points whose points on diagonals are all present.
    presence: Presence<'a>,
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
        let (mut diagonals, mut neighbours) = (Vec::new(), Vec::new());
        let mut interpolation_weight = 1.0;
        for (pair, weight) in interpolation.diagonals(t) {
            if weight == 0.0 || pair.iter().any(|d| phases.fine[*d] < 2) {
                continue;
            }
            let phase = pair.iter().fold(t, |t, d| t ^ 1 << d);
            let four = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|after| {
                let mut step = [0; 3];
                for (d, after) in pair.into_iter().zip(after) {
                    // An odd dimension of the phase is an even one of the other, and vice versa.
                    let first = if t >> d & 1 == 1 { 0 } else { -1 };
                    step[d] = first + after;
                }
                Neighbour { phase, step }
            });
            interpolation_weight -= weight;
            diagonals.push(Diagonal {
                values: &values[phase],
                offsets: four.map(|point| point.offset(phases)),
                weight: T::from_f64(0.25 * weight),
            });
            neighbours.extend(four);
        }
        Self {
            diagonals,
            interpolation_weight: T::from_f64(interpolation_weight),
            presence: Presence::new(t, neighbours, phases, valid),
        }
    }

    /// Replaces the interpolated values of a batch, whose rows are `pitch` apart, by their weighted sums with the points on
    /// diagonals.
    pub(crate) fn blend_into(&self, batch: &Batch, pitch: usize, predictions: &mut [T]) {
        if self.diagonals.is_empty() {
            return;
        }
        self.presence.for_each_word(batch, pitch, |from, n, mask| {
            let (at, out) = (batch.at + from, &mut predictions[from..][..n]);
            match &self.diagonals[..] {
                [one] => self.blend::<1>([one], at, mask, out),
                [one, two] => self.blend::<2>([one, two], at, mask, out),
                [one, two, three, ..] => self.blend::<3>([one, two, three], at, mask, out),
                [] => {}
            }
        });
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
