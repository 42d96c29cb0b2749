//! Error bounds: how far decoded values may differ from the originals, and the grammar that states it.

pub(crate) mod exact;
pub(crate) mod mapping;
mod parse;
pub(crate) mod rounding;

pub use parse::InvalidBound;

use crate::element::Element;
use crate::error::{Result, invalid};
use std::fmt;

/// How far decoded values may differ from the originals. NaN and infinities are always preserved bit for bit.
///
/// Every kind is strict, without exceptions for rounding: [`Rms`](Self::Rms) and [`Psnr`](Self::Psnr) hold for each chunk, all
/// others for each value. Parse it from a string, such as `"1e-3 relative above 1e-10"`:
///
/// ```
/// use ambar_codec::ErrorBound;
/// let bound: ErrorBound = "1e-3 of range".parse()?;
/// assert_eq!(bound.resolve([-1.0, 3.0]), ErrorBound::Absolute(0.004));
/// # Ok::<(), ambar_codec::InvalidBound>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// No difference at all.
    Lossless,
    /// `|x' - x| <= bound`.
    Absolute(f64),
    /// `|x' - x| <= relative |x|`: signs and zeros are preserved. Where the bound is close to the resolution of the type
    /// (float32: below about 1e-5 to 1e-6, the more decades the values span the sooner), values are rounded as by
    /// [`Bits`](Self::Bits) and stored without loss, which is smaller there.
    Relative(f64),
    /// `|x' - x| <= relative max(|x|, floor)`.
    RelativeAbove {
        /// The relative bound.
        relative: f64,
        /// The magnitude below which the bound is absolute, `relative * floor`.
        floor: f64,
    },
    /// Values are rounded to this many explicit bits of the mantissa, to nearest, ties to even.
    Bits(u32),
    /// The root of the mean squared difference of all finite values of a chunk is at most this.
    Rms(f64),
    /// `|x' - x| <= part * range`, where the range is that of the finite values of the whole array.
    OfRange(f64),
    /// The peak signal-to-noise ratio in dB is at least this: `20 log10(range / rms)`.
    Psnr(f64),
}

/// Zero is lossless, all other numbers are absolute bounds.
impl From<f64> for ErrorBound {
    fn from(bound: f64) -> Self {
        if bound == 0.0 {
            Self::Lossless
        } else {
            Self::Absolute(bound)
        }
    }
}

impl ErrorBound {
    /// Checks the numbers.
    ///
    /// # Errors
    /// `Invalid` where a number is not finite or out of range.
    pub fn check(self) -> Result<()> {
        match self.expectation() {
            None => Ok(()),
            Some(expected) => Err(invalid!("invalid error bound: {self}; expected {expected}")),
        }
    }

    /// If the numbers are invalid, a description of valid ones.
    fn expectation(self) -> Option<&'static str> {
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        let is_part = |x: f64| x > 0.0 && x < 1.0;
        let (is_valid, expected) = match self {
            Self::Lossless => (true, ""),
            Self::Absolute(bound) | Self::Rms(bound) => (
                is_positive(bound),
                "a finite number above 0, or 0 for lossless",
            ),
            Self::Relative(relative) => (is_part(relative), "a relative bound above 0 and below 1"),
            Self::RelativeAbove { relative, floor } => (
                is_part(relative) && is_positive(floor),
                "a relative bound above 0 and below 1, and a floor that is a finite number above 0",
            ),
            Self::Bits(bits) => ((1..=52).contains(&bits), "1 to 52 bits of the mantissa"),
            Self::OfRange(part) => (
                is_positive(part),
                "a part of the value range that is a finite number above 0",
            ),
            Self::Psnr(decibels) => (
                is_positive(decibels) && decibels <= 1000.0,
                "a PSNR above 0 dB and at most 1000 dB",
            ),
        };
        (!is_valid).then_some(expected)
    }

    /// Whether the bound depends on the value range of the whole array; then [`resolve`](Self::resolve) it.
    #[must_use]
    pub fn needs_range(self) -> bool {
        matches!(self, Self::OfRange(_) | Self::Psnr(_))
    }

    /// The bound for each chunk of an array whose finite values range from `low` to `high`; lossless if `low > high`, which
    /// means that no value is finite.
    #[must_use]
    pub fn resolve(self, [low, high]: [f64; 2]) -> Self {
        if low > high {
            return Self::Lossless;
        }
        // Half of the range, because the range may overflow.
        let half = high / 2.0 - low / 2.0;
        let bound = match self {
            Self::OfRange(part) => Self::Absolute((2.0 * part * half).min(f64::MAX)),
            Self::Psnr(decibels) => {
                Self::Rms((half * (2.0 * 10f64.powf(-decibels / 20.0))).min(f64::MAX))
            }
            other => return other,
        };
        match bound {
            Self::Absolute(bound) | Self::Rms(bound) if bound > 0.0 => {}
            _ => return Self::Lossless,
        }
        bound
    }

    /// The bound of a chunk of which `finite` finite values count, and `padding` further ones do not: a root mean
    /// squared error of the former alone. All other bounds stay the same, as they hold for each value.
    #[must_use]
    pub fn with_padding(self, finite: usize, padding: usize) -> Self {
        let Self::Rms(root) = self else {
            return self;
        };
        match (finite, padding) {
            (_, 0) => self,
            // It is unknown how many count.
            (0, _) => Self::Absolute(root),
            (finite, padding) => {
                let part = finite as f64 / (finite + padding) as f64;
                match root * part.sqrt() {
                    0.0 => Self::Lossless,
                    root => Self::Rms(root),
                }
            }
        }
    }

    /// The bound of a chunk that may be padded, by one value over and over at the end of each dimension: values
    /// equal to the last one do not count.
    #[must_use]
    pub fn of_padded<T: Element>(self, values: &[T]) -> Self {
        let Some(last) = values.last().map(|last| last.to_word()) else {
            return self;
        };
        if !matches!(self, Self::Rms(_)) {
            return self;
        }
        let finite = values.iter().filter(|x| x.to_f64().is_finite());
        let (padding, others) =
            finite.fold((0, 0), |(padding, others), x| match x.to_word() == last {
                true => (padding + 1, others),
                false => (padding, others + 1),
            });
        self.with_padding(others, padding)
    }

    /// Whether values are equal to the originals.
    #[must_use]
    pub fn is_lossless(self) -> bool {
        self == Self::Lossless
    }

    /// Whether a decoded value satisfies the bound, without rounding errors in its favour. True for the kinds that do not
    /// bound single values.
    #[must_use]
    pub fn is_satisfied(self, original: f64, decoded: f64) -> bool {
        if original.to_bits() == decoded.to_bits() || original.is_nan() && decoded.is_nan() {
            return true;
        }
        match self {
            Self::Lossless => original == decoded,
            Self::Absolute(bound) => exact::within(original, decoded, bound),
            Self::Relative(relative) => {
                exact::within_product(original, decoded, relative, original.abs())
            }
            Self::RelativeAbove { relative, floor } => {
                exact::within_product(original, decoded, relative, original.abs().max(floor))
            }
            Self::Bits(_) | Self::Rms(_) | Self::OfRange(_) | Self::Psnr(_) => true,
        }
    }
}

impl fmt::Display for ErrorBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lossless => f.write_str("lossless"),
            Self::Absolute(bound) => write!(f, "{bound:e}"),
            Self::Relative(relative) => write!(f, "{relative:e} relative"),
            Self::RelativeAbove { relative, floor } => {
                write!(f, "{relative:e} relative above {floor:e}")
            }
            Self::Bits(bits) => write!(f, "{bits} bits"),
            Self::Rms(root) => write!(f, "{root:e} rms"),
            Self::OfRange(part) => write!(f, "{part:e} of range"),
            Self::Psnr(decibels) => write!(f, "{decibels} dB"),
        }
    }
}
