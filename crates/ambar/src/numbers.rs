//! Values of any numeric type out of raw bytes: as f64, and their range.

use crate::dtype::DataType;
use crate::error::{Error, Result};

/// A number as it is in a column, native byte order, at any alignment.
pub(crate) trait Number: Copy + PartialOrd + Send + Sync {
    /// The values of `bytes`, whose length is a multiple of a value's size.
    fn all(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> + '_;
    /// The nearest f64.
    fn to_f64(self) -> f64;
    /// This integer, exactly; floats truncated.
    fn to_i128(self) -> i128;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn all(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> + '_ {
                bytes.as_chunks().0.iter().map(|raw| Self::from_ne_bytes(*raw))
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn to_i128(self) -> i128 {
                self as i128
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// IEEE 754 half precision, widened.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Half(f64);

impl Number for Half {
    fn all(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> + '_ {
        let words = bytes.as_chunks().0.iter();
        words.map(|raw| Self(half_to_f64(u16::from_ne_bytes(*raw))))
    }
    fn to_f64(self) -> f64 {
        self.0
    }
    fn to_i128(self) -> i128 {
        self.0 as i128
    }
}

fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = ((bits >> 10) & 31, f64::from(bits & 1023));
    match exponent {
        0 => sign * fraction * power_of_two(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * power_of_two(i32::from(exponent) - 15),
    }
}

/// `2^exponent`, exactly, for exponents from -1022 to 1023.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + i64::from(exponent)) as u64) << 52)
}

/// Evaluates one of two expressions with a type's name bound to the Rust type of a dtype: `int` for
/// integers and bool, `float` for floats, `other` for anything but real numbers.
macro_rules! with_number {
    ($dtype:expr, int $I:ident => $int:expr, float $F:ident => $float:expr, other => $other:expr) => {{
        use $crate::dtype::DataType as D;
        macro_rules! arm {
            ($alias:ident, $type:ty, $body:expr) => {{
                type $alias = $type;
                $body
            }};
        }
        match $dtype {
            D::Bool | D::UInt8 => arm!($I, u8, $int),
            D::UInt16 => arm!($I, u16, $int),
            D::UInt32 => arm!($I, u32, $int),
            D::UInt64 => arm!($I, u64, $int),
            D::Int8 => arm!($I, i8, $int),
            D::Int16 => arm!($I, i16, $int),
            D::Int32 => arm!($I, i32, $int),
            D::Int64 => arm!($I, i64, $int),
            D::Float16 => arm!($F, $crate::numbers::Half, $float),
            D::Float32 => arm!($F, f32, $float),
            D::Float64 => arm!($F, f64, $float),
            _ => $other,
        }
    }};
}
pub(crate) use with_number;

/// Whether values of the type are real numbers (bool counts as 0 and 1).
pub(crate) fn is_number(dtype: &DataType) -> bool {
    with_number!(dtype, int _T => true, float _T => true, other => false)
}

/// Whether values of the type can be NaN.
pub(crate) fn has_nan(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Float16 | DataType::Float32 | DataType::Float64
    )
}

/// The values of `bytes` as f64, each rounded to nearest, into `out` of as many values.
///
/// # Errors
/// `Invalid` if the type is not numeric; `name` says whose it is.
pub(crate) fn to_f64(name: &str, dtype: &DataType, bytes: &[u8], out: &mut [f64]) -> Result<()> {
    fn convert<T: Number>(bytes: &[u8], out: &mut [f64]) {
        for (to, value) in out.iter_mut().zip(T::all(bytes)) {
            *to = value.to_f64();
        }
    }
    with_number!(
        dtype,
        int T => convert::<T>(bytes, out),
        float T => convert::<T>(bytes, out),
        other => return Err(not_numeric(name, dtype))
    );
    Ok(())
}

/// `count` values of a column as f64: `read` fills their bytes, for which `bytes` makes room.
///
/// # Errors
/// What `read` returns; `Invalid` if the type is not numeric.
pub(crate) fn read_f64(
    (name, dtype): (&str, &DataType),
    count: usize,
    bytes: &mut Vec<u8>,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Vec<f64>> {
    let size = dtype.size().ok_or_else(|| not_numeric(name, dtype))?;
    bytes.resize(count * size, 0);
    read(bytes)?;
    let mut values = vec![0.0; count];
    to_f64(name, dtype, bytes, &mut values)?;
    Ok(values)
}

/// The error for a column of text, complex numbers or times where numbers are needed.
pub(crate) fn not_numeric(name: &str, dtype: &DataType) -> Error {
    Error::invalid(format!(
        "the values of {name:?} are {dtype}, real numbers are needed: name another field"
    ))
}

/// The smallest and the largest value of `bytes`, rounded outwards to f64, NaN left out: `[inf,
/// -inf]` where there is no number. Types that are not numeric have `[-inf, inf]`: anything.
pub fn range(dtype: &DataType, bytes: &[u8]) -> [f64; 2] {
    with_number!(
        dtype,
        int T => match extremes::<T>(bytes) {
            Some((lo, hi)) => [bounds(lo.to_i128())[0], bounds(hi.to_i128())[1]],
            None => [f64::INFINITY, f64::NEG_INFINITY],
        },
        float T => match extremes::<T>(bytes) {
            Some((lo, hi)) => [lo.to_f64(), hi.to_f64()],
            None => [f64::INFINITY, f64::NEG_INFINITY],
        },
        other => [f64::NEG_INFINITY, f64::INFINITY]
    )
}

/// The smallest and the largest finite value; `[inf, -inf]` if it does not exist.
pub(crate) fn finite_range(dtype: &DataType, bytes: &[u8]) -> [f64; 2] {
    let all = range(dtype, bytes);
    if all.iter().all(|end| end.is_finite()) {
        return all;
    }
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    with_number!(
        dtype,
        int _T => all,
        float T => T::all(bytes)
            .map(Number::to_f64)
            .filter(|value| value.is_finite())
            .fold(none, |[lo, hi], value| [lo.min(value), hi.max(value)]),
        other => none
    )
}

/// Most values that the median is computed from.
pub(crate) const SAMPLE: usize = 4096;

/// A value; `None` for types that are not numbers.
pub(crate) fn sampled(dtype: &DataType, bytes: &[u8]) -> Option<f64> {
    with_number!(
        dtype,
        int T => T::all(bytes).next().map(Number::to_f64),
        float T => T::all(bytes).next().map(Number::to_f64),
        other => None
    )
}

/// The median magnitude of the finite values of a sample.
pub(crate) fn median(sample: Vec<f64>) -> Option<f64> {
    let finite = sample.into_iter().filter(|value| value.is_finite());
    let mut magnitudes: Vec<f64> = finite.map(f64::abs).collect();
    let middle = magnitudes.len().checked_sub(1)? / 2;
    Some(*magnitudes.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Whether any value is finite.
pub(crate) fn any_finite(dtype: &DataType, bytes: &[u8]) -> bool {
    with_number!(
        dtype,
        int _T => true,
        float T => T::all(bytes).any(|value| value.to_f64().is_finite()),
        other => true
    )
}

/// Smallest and largest value; NaN is neither. Eight lanes, so that compilers use vectors.
#[allow(clippy::eq_op, reason = "a value differs from itself where it is NaN")]
fn extremes<T: Number>(bytes: &[u8]) -> Option<(T, T)> {
    let first = T::all(bytes).find(|value| value == value)?;
    let (mut lo, mut hi) = ([first; 8], [first; 8]);
    for (i, value) in T::all(bytes).enumerate() {
        let lane = i % 8;
        lo[lane] = if value < lo[lane] { value } else { lo[lane] };
        hi[lane] = if value > hi[lane] { value } else { hi[lane] };
    }
    let lo = lo.into_iter().reduce(|a, b| if b < a { b } else { a })?;
    let hi = hi.into_iter().reduce(|a, b| if b > a { b } else { a })?;
    Some((lo, hi))
}

/// The largest f64 not above `value` and the smallest not below it.
pub(crate) fn bounds(value: i128) -> [f64; 2] {
    let nearest = value as f64;
    // Saturation happens only far beyond the integers that columns hold.
    match (nearest as i128).cmp(&value) {
        std::cmp::Ordering::Less => [nearest, nearest.next_up()],
        std::cmp::Ordering::Equal => [nearest, nearest],
        std::cmp::Ordering::Greater => [nearest.next_down(), nearest],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in [-1022, -126, -1, 0, 1, 1023] {
            assert_eq!(power_of_two(exponent), 2f64.powi(exponent));
        }
    }

    #[test]
    fn halves_widen_exactly() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 2f64.powi(-24)),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.33325195),
            (0x7bff, 65504.0),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            let wide = half_to_f64(bits);
            assert!((wide - value).abs() < 1e-8 || wide == value, "{bits:x}");
        }
        assert!(half_to_f64(0x7e00).is_nan());
    }

    #[test]
    fn ranges_leave_nan_out_and_are_rounded_outwards() {
        let of = |values: &[f64]| range(&DataType::Float64, bytemuck::cast_slice(values));
        assert_eq!(of(&[f64::NAN, 2.0, -1.0, f64::NAN]), [-1.0, 2.0]);
        assert_eq!(of(&[f64::NAN]), [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(of(&[]), [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(of(&[f64::INFINITY; 9]), [f64::INFINITY; 2]);
        let odd = (1i64 << 53) + 1;
        let ints = range(&DataType::Int64, bytemuck::cast_slice(&[odd, -odd]));
        assert_eq!(
            ints,
            [-9_007_199_254_740_994.0, 9_007_199_254_740_994.0],
            "outwards on both sides"
        );
        let big = range(&DataType::UInt64, bytemuck::cast_slice(&[u64::MAX]));
        assert_eq!(big, [18446744073709549568.0, 18446744073709551616.0]);
        assert_eq!(range(&DataType::Bool, &[1, 0, 1]), [0.0, 1.0]);
        let complex = range(&DataType::Complex64, &[0; 8]);
        assert_eq!(complex, [f64::NEG_INFINITY, f64::INFINITY]);
    }

    #[test]
    fn every_lane_counts() {
        for n in 1..40u32 {
            let values: Vec<f32> = (0..n).map(|i| ((i * 7) % n) as f32).collect();
            let range = range(&DataType::Float32, bytemuck::cast_slice(&values));
            assert!(range[0] >= 0.0 && range[1] <= f64::from(n - 1));
            let slow = values
                .iter()
                .fold((f32::MAX, f32::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
            assert_eq!(range, [f64::from(slow.0), f64::from(slow.1)]);
        }
    }
}
