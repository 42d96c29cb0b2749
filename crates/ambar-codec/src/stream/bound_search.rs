//! The search for the largest absolute bound whose root mean squared error is small enough.

use crate::entropy::tables::log2;
use crate::error::Result;

/// Maximum number of absolute bounds to try for a root mean squared error.
pub(crate) const MAX_TRIALS: usize = 6;
/// Maximum bound to try. Bins are twice as wide, which must not overflow.
const MAX_BOUND: f64 = f64::MAX / 4.0;
/// The search ends if the measured error is at least this part of the allowed one.
const CLOSE_ENOUGH: f64 = 0.98;
/// The part of the allowed error that the search aims at.
const AIM: f64 = 0.5 * (1.0 + CLOSE_ENOUGH);
/// Ratio of the allowed error to the measured one from which the bound first changes more than the error.
const FAR: f64 = 1.1;

/// The bound of uniform errors whose root mean square is `root`, at most [`MAX_BOUND`].
pub(crate) fn uniform_bound(root: f64) -> f64 {
    (root * 3f64.sqrt()).min(MAX_BOUND)
}

/// A bound, and the error that was measured with it, relative to the allowed one.
#[derive(Clone, Copy)]
struct Trial {
    bound: f64,
    measured: f64,
}

/// The trials of a search: the largest bound whose error is small enough, and the smallest bound whose error is not.
pub(crate) struct BoundSearch {
    low: Trial,
    high: Option<Trial>,
    /// The trial that was the largest before `low`.
    lower: Option<Trial>,
}

impl BoundSearch {
    /// A search above `least`; smaller bounds are not tried.
    pub(crate) fn new(least: f64) -> Self {
        Self {
            low: Trial {
                bound: least,
                measured: 0.0,
            },
            high: None,
            lower: None,
        }
    }

    /// Starts at the bound `first`. Returns the largest bound tried whose error is allowed, and the last one tried. `measure`
    /// returns the relative error of a bound.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(crate) fn widest(
        mut self,
        first: f64,
        mut measure: impl FnMut(f64) -> Result<f64>,
    ) -> Result<(Option<f64>, f64)> {
        let first = first.min(MAX_BOUND);
        let (mut best, mut last, mut next) = (None, first, Some(first));
        for _ in 0..MAX_TRIALS {
            let Some(bound) = next else {
                break;
            };
            let measured = measure(bound)?;
            if measured <= 1.0 {
                best = Some(bound);
            }
            last = bound;
            next = self.next(bound, measured);
        }
        Ok((best, last))
    }

    /// The bound to try after `bound`, with which the relative error `measured` was found; `None` if that is close enough.
    pub(crate) fn next(&mut self, bound: f64, measured: f64) -> Option<f64> {
        let trial = Trial { bound, measured };
        if measured > 1.0 {
            self.high = Some(trial);
        } else {
            self.lower = Some(self.low).filter(|low| low.measured > 0.0);
            self.low = trial;
            if measured > CLOSE_ENOUGH || measured == 0.0 {
                return None;
            }
        }
        let next = match (self.high, self.lower) {
            // The error is nearly proportional to a power of the bound.
            (Some(high), _) if self.low.measured > 0.0 => {
                let [aim, width] = [AIM, high.measured].map(|x| log2(x / self.low.measured));
                let parts = (32.0 * aim / width).round().clamp(1.0, 31.0);
                power(self.low.bound, high.bound / self.low.bound, parts)
            }
            (None, Some(lower)) => {
                let [aim, width] = [AIM / measured, measured / lower.measured].map(log2);
                let parts = (32.0 * aim / width).round().clamp(1.0, 64.0);
                power(bound, bound / lower.bound, parts)
            }
            // The error is nearly proportional to the bound. Where it is far from the allowed one, most points are coded exactly
            // or predicted well, and it grows more slowly.
            _ => {
                let ratio = AIM / measured.max(1e-3);
                let is_far = !(1.0 / FAR..FAR).contains(&ratio);
                bound * ratio * if is_far { ratio.sqrt().sqrt() } else { 1.0 }
            }
        };
        let high = self.high.map_or(f64::INFINITY, |high| high.bound);
        let next = if next > self.low.bound && next < high {
            next
        } else if high.is_finite() {
            0.5 * (self.low.bound + high)
        } else {
            2.0 * self.low.bound
        };
        (next <= MAX_BOUND).then_some(next)
    }
}

/// `factor` times the power of `base` whose exponent is `parts` / 32, by square roots, which all machines round equally.
pub(crate) fn power(factor: f64, base: f64, parts: f64) -> f64 {
    let root = (0..5).fold(base, |base, _| base.sqrt());
    (0..parts as u32).fold(factor, |product, _| product * root)
}
