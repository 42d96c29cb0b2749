//! Outer points: the neighbours at -5 and +5 along the odd dimensions, and their part in the prediction of a point.

use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::{Line, VECTOR_POINTS, finite_or_zero};
use crate::predict::presence::{Neighbour, Presence};
use crate::simd::dispatch::vectorised;

/// The steps to the neighbours at -5, -3, -1, +1, +3 and +5.
const STEPS: [isize; 6] = [-2, -1, 0, 1, 2, 3];

/// What outer points change in the predictions of a phase: a multiple of the mean of the outer points, less three times that of
/// the far ones, plus twice that of the near ones. It is 0 for cubic values.
pub(crate) struct OuterPoints<'a, T, const N: usize> {
    lines: [Line<'a, T>; N],
    weight: T,
    /// The points that have all six neighbours along all lines.
    presence: Presence<'a>,
}

impl<'a, T: Element, const N: usize> OuterPoints<'a, T, N> {
    /// Of phase `t` with `lines` along the dimensions `odd`; `weight` is that of the outer points.
    pub(crate) fn new(
        t: usize,
        (odd, lines): ([usize; N], [Line<'a, T>; N]),
        weight: f64,
        phases: &Phases,
        valid: Option<&'a [Bitmap; 8]>,
    ) -> Self {
        let neighbour = |d: usize, k: isize| {
            let mut step = [0; 3];
            step[d] = k;
            let phase = t ^ 1 << d;
            Neighbour { phase, step }
        };
        let along = |d: usize| STEPS.into_iter().map(move |k| neighbour(d, k));
        // Without a weight, presence does not matter.
        let used = odd.into_iter().filter(|_| weight != 0.0);
        let neighbours = used.flat_map(along).collect();
        Self {
            lines,
            weight: T::from_f64(weight / (2 * N) as f64),
            presence: Presence::new(t, neighbours, phases, valid),
        }
    }

    /// Adds the multiple to the predictions of a batch, whose rows are `pitch` apart.
    pub(crate) fn add_to(&self, batch: &Batch, pitch: usize, predictions: &mut [T]) {
        if self.weight == T::default() {
            return;
        }
        self.presence.for_each_word(batch, pitch, |from, n, mask| {
            let points = self.lines.map(|line| {
                STEPS.map(|k| {
                    let at = (batch.at + from).wrapping_add_signed(k * line.stride as isize);
                    &line.values[at..][..n]
                })
            });
            let out = &mut predictions[from..][..n];
            add_differences::<T, N>(points, self.weight, mask, out);
        });
    }
}

vectorised! {
    /// Adds a multiple of the differences of six neighbours along each line to the values whose bit is set.
    fn add_differences [T: Element, const N: usize] of [T, N] (
        points: [[&[T]; 6]; N],
        weight: T,
        mask: u64,
        out: &mut [T],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (points, out) = (points.map(|six| six.map(|points| &points[..n])), &mut out[..n]);
        let (two, three) = (T::from_f64(2.0), T::from_f64(3.0));
        for k in 0..n {
            let mut sum = T::from_f64(-0.0);
            for j in 0..N {
                let [a, b, c, d, e, f] = points[j].map(|points| points[k]);
                let difference = a.plus(f).minus(b.plus(e).times(three)).plus(c.plus(d).times(two));
                sum = sum.plus(difference);
            }
            let value = finite_or_zero(out[k].plus(sum.times(weight)));
            out[k] = if mask >> k & 1 == 1 { value } else { out[k] };
        }
    }
}
