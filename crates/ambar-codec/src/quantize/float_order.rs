//! Values as whole numbers in the same order, for coding differences without loss.

use crate::element::Element;
use crate::entropy::token;

/// A value as a whole number, in an order that is that of the values: neighbours differ by one.
#[inline(always)]
fn ordered<T: Element>(x: T) -> u64 {
    let (word, bits) = (x.to_word(), 8 * T::SIZE as u32);
    let top = 1 << (bits - 1);
    if word & top != 0 {
        !word & mask(bits)
    } else {
        word | top
    }
}

/// Undoes [`ordered`].
#[inline(always)]
fn unordered(word: u64, bits: u32) -> u64 {
    let top = 1 << (bits - 1);
    if word & top == 0 {
        !word & mask(bits)
    } else {
        word & !top
    }
}

/// How much larger a value is than its prediction, folded: in units of 2^`shift` of the last place,
/// of which the value is a multiple.
#[inline(always)]
pub(crate) fn difference<T: Element>(x: T, prediction: T, shift: u32) -> u64 {
    let width = 8 * T::SIZE as u32 - shift;
    let near = rounded(prediction, shift);
    token::fold(signed((ordered(x) >> shift).wrapping_sub(near), width))
}

/// The value that differs so much from its prediction.
#[inline(always)]
pub(crate) fn sum<T: Element>(prediction: T, folded: u64, shift: u32) -> T {
    let bits = 8 * T::SIZE as u32;
    let near = rounded(prediction, shift);
    let word = near.wrapping_add(token::unfold(folded) as u64) << shift & mask(bits);
    // The order of negative values is that of the inverted bits.
    T::from_word(unordered(word, bits) & !((1 << shift) - 1))
}

/// The multiple of 2^`shift` next to a prediction, in the order of values; behind the last one, that is
/// where the prediction is no number, comes the first.
#[inline(always)]
fn rounded<T: Element>(prediction: T, shift: u32) -> u64 {
    (ordered(prediction).wrapping_add(1 << shift >> 1)) >> shift
}

/// The lowest bits set.
#[inline(always)]
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The number with `bits` bits as one with a sign.
#[inline(always)]
fn signed(word: u64, bits: u32) -> i64 {
    (word << (64 - bits)) as i64 >> (64 - bits)
}
