//! Error bounds as users say them: absolute, or as a part of a field's value range.

use std::fmt;

use crate::codec::Profile;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::numbers;

/// How far values may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// By this much, in the field's own unit.
    Absolute(f64),
    /// By this part of the range of the field's finite values.
    OfRange(f64),
}

impl ErrorBound {
    /// The bound that a text says: `0.5`, or `1e-3 of range`.
    ///
    /// # Errors
    /// `Invalid`, saying what is expected.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (number, relative) = match words[..] {
            [number, "of", "range"] => (number, true),
            [number] => (number, false),
            _ => ("", false),
        };
        match number.parse::<f64>() {
            Ok(bound) if bound > 0.0 && bound.is_finite() => Ok(if relative {
                Self::OfRange(bound)
            } else {
                Self::Absolute(bound)
            }),
            _ => Err(Error::invalid(format!(
                "{text:?} is no error bound: give a number above 0, or a part of the value range \
                 such as \"1e-3 of range\""
            ))),
        }
    }

    /// The absolute bound for a field whose finite values go from `lo` to `hi`; 0, which is lossless,
    /// where there are none.
    pub fn absolute(self, [lo, hi]: [f64; 2]) -> f64 {
        match self {
            // Values that are not finite are stored verbatim: without loss they take less room.
            Self::Absolute(_) if lo > hi => 0.0,
            Self::Absolute(bound) => bound,
            Self::OfRange(part) => {
                // Halves, for a range can be larger than the largest number.
                let bound = 2.0 * part * (hi / 2.0 - lo / 2.0);
                if bound > 0.0 {
                    bound.min(f64::MAX)
                } else {
                    0.0
                }
            }
        }
    }
}

impl ErrorBound {
    /// The absolute bound for values of a type, native byte order.
    pub fn of_values(self, dtype: &DataType, bytes: &[u8]) -> f64 {
        match self {
            Self::Absolute(_) if !numbers::any_finite(dtype, bytes) => 0.0,
            Self::Absolute(bound) => bound,
            Self::OfRange(_) => self.absolute(numbers::finite_range(dtype, bytes)),
        }
    }
}

impl fmt::Display for ErrorBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(bound) => write!(f, "{bound:e}"),
            Self::OfRange(part) => write!(f, "{part:e} of range"),
        }
    }
}

/// How the fields of a group are to be compressed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compression {
    /// What is lossless is compressed like this.
    pub profile: Profile,
    /// Error bounds of fields by name; `*` stands for all other fields of float32 or float64.
    pub error_bounds: Vec<(String, ErrorBound)>,
}

impl From<Profile> for Compression {
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            error_bounds: Vec::new(),
        }
    }
}

impl Compression {
    /// The bound of a field; `None` where it is lossless.
    ///
    /// # Errors
    /// `Invalid` where the field is named, but its values are no floats.
    pub fn bound(&self, field: &str, dtype: &DataType) -> Result<Option<ErrorBound>> {
        let float = matches!(dtype, DataType::Float32 | DataType::Float64);
        let named = |name: &str| {
            let mut bounds = self.error_bounds.iter();
            bounds
                .find(|(other, _)| other == name)
                .map(|(_, bound)| *bound)
        };
        match named(field) {
            Some(_) if !float => Err(Error::invalid(format!(
                "an error bound is for float32 and float64 values, {field:?} holds {dtype}: leave it \
                 out"
            ))),
            Some(bound) => Ok(Some(bound)),
            None => Ok(named("*").filter(|_| float)),
        }
    }

    /// Checks that every bound is that of a field there is, or of `*`.
    ///
    /// # Errors
    /// `NotFound`, naming the fields.
    pub fn check_names(&self, fields: &[String]) -> Result<()> {
        let mut names = self.error_bounds.iter().map(|(name, _)| name);
        match names.find(|name| *name != "*" && !fields.contains(name)) {
            None => Ok(()),
            Some(name) => Err(Error::not_found(format!(
                "an error bound is given for {name:?}, but there is no such field; there are: {}",
                fields.join(", ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_parsed_and_resolved() {
        assert_eq!(ErrorBound::parse("0.5").unwrap(), ErrorBound::Absolute(0.5));
        assert_eq!(
            ErrorBound::parse(" 1e-3 of range").unwrap(),
            ErrorBound::OfRange(1e-3)
        );
        assert_eq!(
            ErrorBound::parse("1e-3  of \t range").unwrap(),
            ErrorBound::OfRange(1e-3)
        );
        for wrong in [
            "",
            "0",
            "-1",
            "nan",
            "inf",
            "of range",
            "1e-3 of",
            "x of range",
        ] {
            assert!(ErrorBound::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ErrorBound::OfRange(0.1).absolute([-2.0, 8.0]), 1.0);
        assert_eq!(
            ErrorBound::OfRange(0.1).absolute([f64::INFINITY, f64::NEG_INFINITY]),
            0.0
        );
        let bound = ErrorBound::Absolute(0.5);
        let values = [f64::INFINITY, f64::NAN, f64::NEG_INFINITY, 1.0].map(f64::to_ne_bytes);
        let bytes = values.as_flattened();
        assert_eq!(bound.of_values(&DataType::Float64, &bytes[..24]), 0.0);
        assert_eq!(bound.of_values(&DataType::Float64, bytes), 0.5);
        assert_eq!(bound.absolute([f64::INFINITY, f64::NEG_INFINITY]), 0.0);
        assert_eq!(bound.absolute([1.0, 1.0]), 0.5);
        assert!(
            ErrorBound::OfRange(0.1)
                .absolute([f64::MIN, f64::MAX])
                .is_finite()
        );
    }

    #[test]
    fn a_star_stands_for_all_other_floats() {
        let bounds = [("*", 1.0), ("x", 2.0)];
        let bounds = bounds.map(|(name, bound)| (name.to_owned(), ErrorBound::Absolute(bound)));
        let compression = Compression {
            error_bounds: bounds.to_vec(),
            ..Compression::default()
        };
        let bound = |field: &str, dtype| compression.bound(field, &dtype).map_err(|_| ());
        assert_eq!(
            bound("x", DataType::Float32),
            Ok(Some(ErrorBound::Absolute(2.0)))
        );
        assert_eq!(
            bound("y", DataType::Float64),
            Ok(Some(ErrorBound::Absolute(1.0)))
        );
        assert_eq!(bound("y", DataType::Int32), Ok(None));
        assert_eq!(bound("x", DataType::Int32), Err(()));
        assert!(compression.check_names(&["y".into()]).is_err());
        assert!(compression.check_names(&["y".into(), "x".into()]).is_ok());
    }
}
