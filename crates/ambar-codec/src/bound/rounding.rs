//! Rounding to a number of mantissa bits, as in numcodecs' `BitRound`.

use crate::element::Element;

/// The number of explicit bits of the mantissa.
fn mantissa_bits<T: Element>() -> u32 {
    if T::SIZE == 4 { 23 } else { 52 }
}

/// Rounds a value to `bits` explicit bits of the mantissa, to nearest, ties to even. Infinities, NaN, and finite values
/// that would become infinite are unchanged.
pub(crate) fn round<T: Element>(value: T, bits: u32) -> T {
    let all = mantissa_bits::<T>();
    let Some(dropped) = all.checked_sub(bits).filter(|dropped| *dropped > 0) else {
        return value;
    };
    let exponent = ((1u64 << (8 * T::SIZE as u32 - 1)) - 1) >> all << all;
    let word = value.to_word();
    let half = (1u64 << (dropped - 1)) - 1 + (word >> dropped & 1);
    let rounded = (word.wrapping_add(half)) >> dropped << dropped;
    if word & exponent == exponent || rounded & exponent == exponent {
        value
    } else {
        T::from_word(rounded)
    }
}

/// The fewest bits that keep normal values within a relative bound.
pub(crate) fn bits_within(relative: f64) -> u32 {
    // Half a unit of the last kept bit is 2^-(bits + 1) times the power of two below the value.
    let mut bits = 0;
    let mut error = 0.5;
    while error > relative && bits < 52 {
        error *= 0.5;
        bits += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_even() {
        assert_eq!(round(1.0f32 + 0.25, 1), 1.0);
        assert_eq!(round(1.0f32 + 0.75, 1), 2.0);
        assert_eq!(round(-1.26f64, 1), -1.5);
        assert_eq!(round(f32::MAX, 3), f32::MAX);
        assert_eq!(round(f32::INFINITY, 3), f32::INFINITY);
        assert_eq!(round(1.1f32, 23), 1.1);
        assert_eq!(round(1.1f32, 52), 1.1);
        let nan = f64::from_bits(0x7ff0_0000_0000_0001);
        assert_eq!(round(nan, 1).to_bits(), nan.to_bits());
    }

    #[test]
    fn bits_are_enough() {
        assert_eq!(bits_within(0.5), 0);
        assert_eq!(bits_within(0.25), 1);
        assert_eq!(bits_within(0.24), 2);
        assert_eq!(bits_within(1e-300), 52);
    }
}
