//! Differences of neighbours along the used dimensions, of which multiples are added to the prediction of a point: those with outer
//! points, and slopes.

use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::{Line, VECTOR_POINTS, finite_or_zero};
use crate::predict::presence::{Neighbour, Presence};
use crate::simd::dispatch::vectorised;

/// A multiple of the sum of differences along all lines of a phase, each of `K` neighbours.
pub(crate) struct Differences<'a, T, const N: usize, const K: usize> {
    lines: [Line<'a, T>; N],
    kernel: Kernel<T, N, K>,
    weight: T,
    /// The points that have all neighbours along all lines.
    presence: Presence<'a>,
}

/// A kind of differences.
pub(crate) struct Kernel<T, const N: usize, const K: usize> {
    /// The steps to the neighbours.
    steps: [isize; K],
    add: Add<T, N, K>,
}

/// Adds the sum of the differences of neighbours along each line, times a weight, to the values whose bit is set.
type Add<T, const N: usize, const K: usize> = fn([[&[T]; K]; N], T, u64, &mut [T]);

/// A phase, the dimensions along which it is interpolated, and the lines along them.
pub(crate) struct PhaseLines<'a, T, const N: usize> {
    pub t: usize,
    pub used: [usize; N],
    pub lines: [Line<'a, T>; N],
}

impl<T: Element, const N: usize> Kernel<T, N, 6> {
    /// The mean of the outer points, at -5 and +5, less three times that of the far ones, plus twice that of the near ones. It is 0
    /// for cubic values.
    pub(crate) fn outer_points() -> Self {
        Self {
            steps: [-2, -1, 0, 1, 2, 3],
            add: add_outer_points,
        }
    }
}

impl<T: Element, const N: usize> Kernel<T, N, 2> {
    /// Half the difference of the near points: with the weight -1, a point is predicted by those before it.
    pub(crate) fn slopes() -> Self {
        Self {
            steps: [0, 1],
            add: add_slopes,
        }
    }
}

impl<'a, T: Element, const N: usize, const K: usize> Differences<'a, T, N, K> {
    pub(crate) fn new(
        PhaseLines { t, used, lines }: PhaseLines<'a, T, N>,
        kernel: Kernel<T, N, K>,
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
        let along = |d: usize| kernel.steps.into_iter().map(move |k| neighbour(d, k));
        // Without a weight, presence does not matter.
        let neighbours = match weight {
            0.0 => Vec::new(),
            _ => used.into_iter().flat_map(along).collect(),
        };
        Self {
            lines,
            kernel,
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
            let neighbours = self.lines.map(|line| {
                self.kernel.steps.map(|k| {
                    let at = (batch.at + from).wrapping_add_signed(k * line.stride as isize);
                    &line.values[at..][..n]
                })
            });
            let out = &mut predictions[from..][..n];
            (self.kernel.add)(neighbours, self.weight, mask, out);
        });
    }
}

vectorised! {
    /// Adds a multiple of the differences of six neighbours along each line to the values whose bit is set.
    fn add_outer_points [T: Element, const N: usize] of [T, N] (
        neighbours: [[&[T]; 6]; N],
        weight: T,
        mask: u64,
        out: &mut [T],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (points, out) = (neighbours.map(|six| six.map(|points| &points[..n])), &mut out[..n]);
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

vectorised! {
    /// Adds a multiple of the differences of two neighbours along each line to the values whose bit is set.
    fn add_slopes [T: Element, const N: usize] of [T, N] (
        neighbours: [[&[T]; 2]; N],
        weight: T,
        mask: u64,
        out: &mut [T],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (points, out) = (neighbours.map(|two| two.map(|points| &points[..n])), &mut out[..n]);
        for k in 0..n {
            let mut sum = T::from_f64(-0.0);
            for [before, after] in points {
                sum = sum.plus(after[k].minus(before[k]));
            }
            let value = finite_or_zero(out[k].plus(sum.times(weight)));
            out[k] = if mask >> k & 1 == 1 { value } else { out[k] };
        }
    }
}
