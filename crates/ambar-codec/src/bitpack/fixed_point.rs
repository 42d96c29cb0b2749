//! Exact integers of values: fixed-point numbers, or bits in the order of the values.

use crate::element::Element;
use crate::simd::dispatch::vectorised;

const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
const FIRST: u64 = 1 << MANTISSA;
const SIGN: u64 = 1 << 63;
const BIAS: i32 = f64::MAX_EXP - 1;
/// The highest bit of the largest integers.
const TOP: u32 = 62;
/// Exponents of fixed-point numbers: these powers of two and their inverses are normal numbers.
pub(super) const EXPONENTS: std::ops::RangeInclusive<i32> = -960..=960;

/// Whether a value is not a fixed-point number for any exponent: NaN, infinities, -0, denormals.
pub(super) fn is_exceptional(value: f64) -> bool {
    !(value.is_normal() || value.to_bits() == 0)
}

vectorised! {
    /// Converts values to integers with as few bits as possible. The values are the integers times a power of two, whose
    /// exponent is returned; `None` if no exponent represents all values exactly.
    pub(super) fn fix [] of [] (values: &[f64], words: &mut [u64]) -> Option<i32> {
        let (mut largest, mut odd) = (0, false);
        for value in values {
            let size = (value.to_bits() & !SIGN) as i64;
            largest = if size > largest { size } else { largest };
            odd |= value.to_bits() == SIGN;
        }
        let highest = (largest as u64) >> MANTISSA;
        if odd || largest >= f64::INFINITY.to_bits() as i64 {
            return None;
        }
        // Align all values to the exponent of the largest, and detect bits that are shifted out.
        let (mut all, mut lost) = (0, 0);
        for (word, value) in words.iter_mut().zip(values) {
            let bits = value.to_bits();
            let own = (bits & !SIGN) >> MANTISSA;
            let first = if own == 0 { 0 } else { FIRST };
            let size = (bits & (FIRST - 1) | first) << (TOP - MANTISSA);
            let down = highest - own;
            let down = if down < 63 { down } else { 63 };
            let kept = size >> down;
            lost |= kept << down ^ size;
            all |= kept;
            *word = kept;
        }
        if all == 0 {
            return (lost == 0).then_some(0);
        }
        let down = all.trailing_zeros();
        let exponent = highest as i32 - BIAS - TOP as i32 + down as i32;
        if lost != 0 || !is_exponent(exponent) {
            return None;
        }
        for (word, value) in words.iter_mut().zip(values) {
            let sign = (value.to_bits() as i64 >> 63) as u64;
            *word = (*word >> down ^ sign).wrapping_sub(sign);
        }
        Some(exponent)
    }
}

/// Whether an exponent is valid.
pub(super) fn is_exponent(exponent: i32) -> bool {
    EXPONENTS.contains(&exponent)
}

vectorised! {
    /// Undoes [`fix`], for valid exponents.
    pub(super) fn unfix [T: Element] of [T] (words: &[u64], exponent: i32, values: &mut [T]) {
        let scale = f64::from_bits(((exponent + BIAS) as u64) << MANTISSA);
        for (word, value) in words.iter().zip(values) {
            *value = T::from_f64(*word as i64 as f64 * scale);
        }
    }
}

/// The bits of a value as an integer: signed integers have the order of the values.
#[inline(always)]
pub(super) fn bits_in_order<T: Element>(value: T) -> u64 {
    let unused = 64 - 8 * T::SIZE as u32;
    let bits = (value.to_word() << unused) as i64;
    ((bits ^ (bits >> 63) as u64 as i64 & i64::MAX) >> unused) as u64
}

/// Undoes [`bits_in_order`].
#[inline(always)]
pub(super) fn from_bits_in_order<T: Element>(word: u64) -> T {
    let unused = 64 - 8 * T::SIZE as u32;
    let word = (word << unused) as i64;
    let bits = word ^ (word >> 63) & i64::MAX;
    T::from_word(bits as u64 >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_in_order_are_in_order() {
        let values = [
            -f32::INFINITY,
            -2.5,
            -1e-40,
            -0.0,
            0.0,
            1e-40,
            2.5,
            f32::INFINITY,
        ];
        let words = values.map(|x| bits_in_order(x) as i64);
        assert!(words.is_sorted());
        for (value, word) in values.iter().zip(words) {
            let back: f32 = from_bits_in_order(word as u64);
            assert_eq!(back.to_bits(), value.to_bits());
        }
        for value in [-0.0, f64::NAN, -1.5] {
            let back: f64 = from_bits_in_order(bits_in_order(value));
            assert_eq!(back.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn integers_have_the_fewest_bits() {
        let mut words = [0; 3];
        assert_eq!(fix(&[0.75, -1.5, 0.0], &mut words), Some(-2));
        assert_eq!(words.map(|word| word as i64), [3, -6, 0]);
        assert_eq!(fix(&[48.0, 16.0, -80.0], &mut words), Some(4));
        assert_eq!(fix(&[0.0; 3], &mut words), Some(0));
        assert_eq!(words, [0; 3]);
        let span = |bits: i32| [2f64.powi(bits), 1.0, 0.0];
        assert_eq!(fix(&span(62), &mut words), Some(0));
        assert_eq!(words, [1 << 62, 1, 0]);
        for values in [span(63), span(-980), [1.0, -0.0, 0.0], [1.0, 1e-310, 0.0]] {
            assert_eq!(fix(&values, &mut words), None, "{values:?}");
        }
        assert_eq!(fix(&[f64::NAN, 1.0, 2.0], &mut words), None);
    }
}
