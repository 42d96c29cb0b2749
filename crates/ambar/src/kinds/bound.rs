//! Error bounds as users say them: absolute, or as a part of a field's value range.

use std::fmt;

use crate::error::{Error, Result};

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
        let (number, relative) = match text.trim().strip_suffix("of range") {
            Some(number) => (number, true),
            None => (text, false),
        };
        match number.trim().parse::<f64>() {
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

impl fmt::Display for ErrorBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(bound) => write!(f, "{bound:e}"),
            Self::OfRange(part) => write!(f, "{part:e} of range"),
        }
    }
}

/// The bound that a list of bounds has for a field: its own, or that of `*`, which stands for all
/// that are not named.
pub fn bound_of(bounds: &[(String, ErrorBound)], field: &str) -> Option<ErrorBound> {
    let named = |name: &str| bounds.iter().find(|(other, _)| other == name);
    named(field).or_else(|| named("*")).map(|(_, bound)| *bound)
}

/// Checks that every bound is that of a field there is, or of `*`.
///
/// # Errors
/// `NotFound`, naming the fields.
pub fn check_names(bounds: &[(String, ErrorBound)], fields: &[String]) -> Result<()> {
    let unknown = bounds
        .iter()
        .find(|(name, _)| name != "*" && !fields.contains(name));
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(Error::not_found(format!(
            "an error bound is given for {name:?}, but there is no such field; there are: {}",
            fields.join(", ")
        ))),
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
        assert!(
            ErrorBound::OfRange(0.1)
                .absolute([f64::MIN, f64::MAX])
                .is_finite()
        );
        let bounds = vec![
            ("*".to_owned(), ErrorBound::Absolute(1.0)),
            ("x".into(), ErrorBound::Absolute(2.0)),
        ];
        assert_eq!(bound_of(&bounds, "x"), Some(ErrorBound::Absolute(2.0)));
        assert_eq!(bound_of(&bounds, "y"), Some(ErrorBound::Absolute(1.0)));
        assert!(check_names(&bounds, &["y".into()]).is_err());
    }
}
