//! Lossless residuals: differences of floats as integers in the same order.

use crate::element::Element;
use crate::entropy::token;

/// A value as an integer, in the order of the values: adjacent floats differ by 1.
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

/// The folded difference of a value and its prediction, in units of 2^`shift` of the last place, of which the value is a
/// multiple.
#[inline(always)]
pub(crate) fn difference<T: Element>(x: T, prediction: T, shift: u32) -> u64 {
    let width = 8 * T::SIZE as u32 - shift;
    let near = rounded(prediction, shift);
    token::fold(signed((ordered(x) >> shift).wrapping_sub(near), width))
}

/// The value with this folded difference from its prediction.
#[inline(always)]
pub(crate) fn sum<T: Element>(prediction: T, folded: u64, shift: u32) -> T {
    let bits = 8 * T::SIZE as u32;
    let near = rounded(prediction, shift);
    let word = near.wrapping_add(token::unfold(folded) as u64) << shift & mask(bits);
    // The order of negative values is that of the inverted bits.
    T::from_word(unordered(word, bits) & !((1 << shift) - 1))
}

/// The nearest multiple of 2^`shift` to a prediction, in the order of values. After the largest, which only NaN exceed,
/// the order wraps around.
#[inline(always)]
fn rounded<T: Element>(prediction: T, shift: u32) -> u64 {
    (ordered(prediction).wrapping_add(1 << shift >> 1)) >> shift
}

/// A word whose lowest bits are set.
#[inline(always)]
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Sign-extends a number of `bits` bits.
#[inline(always)]
fn signed(word: u64, bits: u32) -> i64 {
    (word << (64 - bits)) as i64 >> (64 - bits)
}
