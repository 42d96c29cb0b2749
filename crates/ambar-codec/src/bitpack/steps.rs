//! Values as whole numbers of steps, within an error bound.

use crate::element::Element;
use crate::simd::dispatch::vectorised;

/// Added to a number below 2^51 and taken away again, it rounds; in between, the lowest bits are the integer.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// Values are at most so many steps from 0.
const MOST: f64 = (1u64 << 30) as f64;

/// The distance of the values that there are: so much below twice the bound that what is rounded in
/// between never leads beyond it, in float64.
pub(super) fn step(bound: f64) -> f64 {
    bound * (2.0 - 1.0 / (1u64 << 19) as f64)
}

/// What a number of steps stands for.
#[inline(always)]
pub(super) fn value<T: Element>(word: u32, step: f64) -> T {
    T::from_f64(f64::from(word as i32) * step)
}

/// The nearest number of steps of a value, and whether it stands for the value.
#[inline(always)]
fn steps_of<T: Element>(value: T, inverse: f64, step: f64, bound: f64) -> (u32, bool) {
    let x = value.to_f64();
    let shifted = x * inverse + ROUNDING;
    let steps = shifted - ROUNDING;
    let back = T::from_f64(steps * step).to_f64();
    // False for NaN, too. What is below the bound when it was rounded was below it before.
    let kept = ((x - back).abs() < bound) & (steps.abs() <= MOST);
    (shifted.to_bits() as u32, kept)
}

vectorised! {
    /// Makes steps of values; says whether these stand for all of them.
    fn make_part [T: Element] of [T] (
        values: &[T],
        inverse: f64,
        step: f64,
        bound: f64,
        words: &mut [u32],
    ) -> bool {
        let mut all = true;
        for (word, value) in words.iter_mut().zip(values) {
            let (steps, kept) = steps_of(*value, inverse, step, bound);
            *word = steps;
            all &= kept;
        }
        all
    }
}

/// Makes steps of values; calls `except` with the places of those for which there are none, which get those
/// of the value before.
pub(super) fn make<T: Element>(
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
        if !make_part(values, inverse, step, bound, words) {
            for (at, value) in values.iter().enumerate() {
                if !steps_of(*value, inverse, step, bound).1 {
                    words[at] = last;
                    except(first + at);
                }
                last = words[at];
            }
        }
        last = words.last().copied().unwrap_or(last);
    }
}

/// Values that are made at once.
const PART: usize = 1024;
