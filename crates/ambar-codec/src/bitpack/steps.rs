//! Quantized values: integer numbers of steps, within an error bound.

use crate::element::Element;
use crate::simd::dispatch::vectorised;

/// Adding and subtracting this rounds a number below 2^51. Between the two, the lowest bits are the integer.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// Maximum magnitude of a value in steps.
const MAX_STEPS: f64 = (1u64 << 30) as f64;

/// The step of quantized values: smaller than twice the bound by a margin for rounding errors in float64.
pub(super) fn step(bound: f64) -> f64 {
    bound * (2.0 - 1.0 / (1u64 << 19) as f64)
}

/// The value of a number of steps.
#[inline(always)]
pub(super) fn value<T: Element>(word: u32, step: f64) -> T {
    T::from_f64(f64::from(word as i32) * step)
}

/// Rounds a value to a number of steps. Returns also whether that is within the bound.
#[inline(always)]
fn quantize<T: Element>(value: T, inverse: f64, step: f64, bound: f64) -> (u32, bool) {
    let x = value.to_f64();
    let shifted = x * inverse + ROUNDING;
    let steps = shifted - ROUNDING;
    let back = T::from_f64(steps * step).to_f64();
    // False for NaN. A rounded error below the bound is below the bound, because rounding is monotonic.
    let is_within_bound = ((x - back).abs() < bound) & (steps.abs() <= MAX_STEPS);
    (shifted.to_bits() as u32, is_within_bound)
}

vectorised! {
    /// Quantizes values. Returns whether all are within the bound.
    fn quantize_part [T: Element] of [T] (
        values: &[T],
        inverse: f64,
        step: f64,
        bound: f64,
        words: &mut [u32],
    ) -> bool {
        let mut all = true;
        for (word, value) in words.iter_mut().zip(values) {
            let (steps, is_within_bound) = quantize(*value, inverse, step, bound);
            *word = steps;
            all &= is_within_bound;
        }
        all
    }
}

/// Quantizes values. Calls `except` with the index of each value that cannot be quantized, which gets the steps of the
/// value before.
pub(super) fn quantize_all<T: Element>(
    values: &[T],
    bound: f64,
    words: &mut [u32],
    mut except: impl FnMut(usize),
) {
    let step = step(bound);
    let inverse = 1.0 / step;
    let mut last = 0;
    for (number, values) in values.chunks(PART).enumerate() {
        let first = number * PART;
        let words = &mut words[first..first + values.len()];
        if !quantize_part(values, inverse, step, bound, words) {
            for (at, value) in values.iter().enumerate() {
                if !quantize(*value, inverse, step, bound).1 {
                    words[at] = last;
                    except(first + at);
                }
                last = words[at];
            }
        }
        last = words.last().copied().unwrap_or(last);
    }
}

/// Values that are quantized in one call.
const PART: usize = 1024;
