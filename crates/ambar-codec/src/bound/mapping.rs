//! The mapping that turns a relative bound into an absolute one: linear near zero, logarithmic beyond.
//!
//! A value `x` is coded as `y`. Decoders compute `x = unit * sign(y) * E(|y| - BEND)` where `|y| > BEND`, and
//! `x = unit * A * y` below. `E` approximates `2^t` by a power of two in each interval of length 1, times a cubic, which
//! needs no functions of a mathematical library, whose rounding depends on the machine.

use crate::element::Element;

/// Coefficients of the cubic `1 + f (A + f (B + f C))`: 1 at 0, 2 at 1, and the slope at 1 twice that at 0.
const C: f64 = 0.07695;
const B: f64 = (1.0 - 4.0 * C) / 3.0;
const A: f64 = 1.0 - B - C;
/// The end of the linear part.
pub(crate) const BEND: f64 = 1.0 / A;
/// An upper limit of `E'(t) / E(t)`.
const MAX_SLOPE: f64 = 0.6950;
/// The largest exponent: that of the quotient of the largest and the smallest normal number.
const MAX_EXPONENT: f64 = 2046.0;

/// The mapping of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mapping {
    /// The magnitude at which the logarithmic part begins; a normal number.
    pub unit: f64,
    /// Whether values whose magnitude is below half of `unit` decode to 0.
    pub snaps_to_zero: bool,
}

/// A lower limit of the natural logarithm of `1 + x`, `x` from 0 to 1: the beginning of its series. Independent of the
/// mathematical library, so that streams are the same on all machines.
fn ln_1p(x: f64) -> f64 {
    let z = x / (2.0 + x);
    let (mut power, mut sum) = (z, 0.0);
    for k in (1..40).step_by(2) {
        sum += power / f64::from(k);
        power *= z * z;
    }
    2.0 * sum
}

/// `2^exponent`, for exponents of normal numbers.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Mapping {
    /// The value of a coded value, by IEEE 754 operations in the order written.
    #[inline(always)]
    pub(crate) fn decode<T: Element>(self, coded: T) -> T {
        let y = coded.to_f64();
        let size = y.abs();
        // NaN and infinities are stored verbatim.
        if !size.is_finite() {
            return coded;
        }
        if size <= BEND {
            let value = if self.snaps_to_zero && size < 0.5 * BEND {
                0.0
            } else {
                y * A * self.unit
            };
            return T::from_f64(value);
        }
        let t = (size - BEND).min(MAX_EXPONENT);
        let whole = t as i32;
        let f = t - f64::from(whole);
        let cubic = 1.0 + f * (A + f * (B + f * C));
        let half = whole / 2;
        let value = self.unit * cubic * power(half) * power(whole - half);
        T::from_f64(value.copysign(y))
    }

    /// A coded value that decodes to approximately this value. Encoders may compute it in any way.
    pub(crate) fn encode<T: Element>(self, value: T) -> T {
        let x = value.to_f64();
        let size = x.abs();
        if !size.is_finite() {
            return value;
        }
        if size <= self.unit {
            return T::from_f64(x / self.unit * BEND);
        }
        // The exponent and the mantissa of the quotient, which is scaled if it overflows.
        let mut quotient = size / self.unit;
        let mut scale = 0;
        if quotient > f64::MAX {
            quotient = (size * power(-512)) / (self.unit * power(512));
            scale = 1024;
        }
        let bits = quotient.to_bits();
        let exponent = (bits >> 52) as i32 - 1023 + scale;
        let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        let d = m - 1.0;
        // Newton's method.
        let mut f = d + 0.34 * d * (1.0 - d);
        for _ in 0..3 {
            let cubic = 1.0 + f * (A + f * (B + f * C));
            let slope = A + f * (2.0 * B + f * 3.0 * C);
            f -= (cubic - m) / slope;
        }
        T::from_f64((BEND + f64::from(exponent) + f).copysign(x))
    }

    /// The absolute bound of coded values, at most `largest`, that guarantees the relative bound of values; `None` if the
    /// type does not resolve it.
    pub(crate) fn coded_bound<T: Element>(relative: f64, largest: f64) -> Option<f64> {
        let epsilon = if T::SIZE == 4 {
            f64::from(f32::EPSILON)
        } else {
            f64::EPSILON
        };
        // A margin for the rounding of the decoded value, and of the operations that compute it.
        let left = relative - 0.6 * epsilon - 16.0 * f64::EPSILON;
        if left <= 0.0 {
            return None;
        }
        let full = ln_1p(left) / MAX_SLOPE;
        // A margin for the rounding of the coded value.
        let above = ((largest + 1.0).next_down().to_bits() >> 52) as i32 - 1022;
        let coded = full - 0.5 * epsilon * power(above);
        (coded > 0.7 * full).then_some(coded * (1.0 - 1e-12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_round_trips_and_is_monotonic() {
        for unit in [1.0, 1e-10, f64::MIN_POSITIVE, 1e300, 3e-7] {
            let mapping = Mapping {
                unit,
                snaps_to_zero: false,
            };
            let mut last = 0.0f64;
            for i in 0..200_000 {
                let y = f64::from(i) * 1e-2 + 1e-3;
                let x = mapping.decode(y);
                assert!(x >= last, "{unit} {y}");
                last = x;
                if x > f64::MAX {
                    break;
                }
                let back: f64 = mapping.encode(x);
                assert!((back - y).abs() < 1e-11, "{unit} {y} {back}");
                assert_eq!(mapping.decode(-y), -x);
            }
        }
    }

    #[test]
    fn the_slope_is_limited() {
        for i in 0..=1000 {
            let f = f64::from(i) / 1000.0;
            let slope = A + f * (2.0 * B + f * 3.0 * C);
            assert!(slope / (1.0 + f * (A + f * (B + f * C))) < MAX_SLOPE);
        }
    }

    #[test]
    fn hostile_values_do_not_panic() {
        for unit in [f64::MIN_POSITIVE, f64::MAX] {
            for y in [1e9, -1e300, f64::NAN, f64::INFINITY, f64::MAX, -0.0] {
                let _ = Mapping {
                    unit,
                    snaps_to_zero: true,
                }
                .decode(y);
            }
        }
    }
}
