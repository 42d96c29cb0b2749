//! The grammar of error bounds.

use super::ErrorBound;
use std::str::FromStr;

/// A string is not a valid error bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid error bound: {given:?}; {reason}. {advice}")]
pub struct InvalidBound {
    given: String,
    reason: String,
    advice: String,
}

/// The valid forms.
const FORMS: &str = "Write one of: \"0.5\" (absolute), \"1e-3 of range\", \"1e-3 relative\", \
    \"1e-3 relative above 1e-10\", \"12 bits\", \"80 dB\", \"0.01 rms\", \"lossless\"";

/// The words of the forms.
const WORDS: [&str; 8] = [
    "lossless", "bits", "dB", "rms", "relative", "of", "range", "above",
];

/// A string with blanks between numbers and words, and with words as they are written here.
fn respelled(given: &str) -> String {
    let mut pieces = Vec::new();
    for piece in given.split_whitespace() {
        let split = |word: &&'static str| {
            let (number, end) = piece.split_at_checked(piece.len().checked_sub(word.len())?)?;
            let is_number = number.is_empty() || number.parse::<f64>().is_ok();
            (is_number && end.eq_ignore_ascii_case(word)).then_some([number, word])
        };
        let [number, word] = WORDS.iter().find_map(split).unwrap_or(["", piece]);
        pieces.extend([number, word].into_iter().filter(|piece| !piece.is_empty()));
    }
    pieces.join(" ")
}

impl FromStr for ErrorBound {
    type Err = InvalidBound;

    fn from_str(given: &str) -> Result<Self, InvalidBound> {
        parse(given).map_err(|reason| {
            let other = respelled(given);
            let is_meant = other != given && parse(&other).is_ok();
            InvalidBound {
                given: given.to_owned(),
                reason,
                advice: if is_meant {
                    format!("Did you mean {other:?}?")
                } else {
                    FORMS.to_owned()
                },
            }
        })
    }
}

/// The bound that a string states, or the reason why it is invalid.
fn parse(given: &str) -> Result<ErrorBound, String> {
    let number = |word: &str| {
        word.parse::<f64>()
            .map_err(|_| format!("expected a number, found {word:?}"))
    };
    let words: Vec<&str> = given.split_whitespace().collect();
    let bound = match words[..] {
        ["lossless"] => ErrorBound::Lossless,
        [bound] => ErrorBound::from(number(bound)?),
        [part, "of", "range"] => ErrorBound::OfRange(number(part)?),
        [relative, "relative"] => ErrorBound::Relative(number(relative)?),
        [relative, "relative", "above", floor] => ErrorBound::RelativeAbove {
            relative: number(relative)?,
            floor: number(floor)?,
        },
        [bits, "bits"] => ErrorBound::Bits(bits.parse().map_err(|_| {
            format!("expected a whole number of bits from 1 to 52, found {bits:?}")
        })?),
        [decibels, "dB"] => ErrorBound::Psnr(number(decibels)?),
        [root, "rms"] => ErrorBound::Rms(number(root)?),
        _ => return Err("unknown form".to_owned()),
    };
    match bound.expectation() {
        None => Ok(bound),
        Some(expected) => Err(format!("expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_round_trip_as_strings() {
        for (text, bound) in [
            ("0.5", ErrorBound::Absolute(0.5)),
            ("0", ErrorBound::Lossless),
            ("lossless", ErrorBound::Lossless),
            (" 1e-3  of \t range", ErrorBound::OfRange(1e-3)),
            ("1e-3 relative", ErrorBound::Relative(1e-3)),
            (
                "1e-3 relative above 1e-10",
                ErrorBound::RelativeAbove {
                    relative: 1e-3,
                    floor: 1e-10,
                },
            ),
            ("12 bits", ErrorBound::Bits(12)),
            ("80 dB", ErrorBound::Psnr(80.0)),
            ("0.01 rms", ErrorBound::Rms(0.01)),
        ] {
            assert_eq!(text.parse(), Ok(bound), "{text}");
            assert_eq!(bound.to_string().parse(), Ok(bound), "{text}");
        }
        for wrong in [
            "",
            "-1",
            "nan",
            "inf",
            "of range",
            "1e-3 of",
            "x of range",
            "0 of range",
            "1 relative",
            "0 relative",
            "1e-3 relative above 0",
            "1e-3 relative above",
            "0 bits",
            "53 bits",
            "1.5 bits",
            "-3 dB",
            "nan dB",
            "0 rms",
        ] {
            assert!(wrong.parse::<ErrorBound>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_state_found_and_expected_strings() {
        let error = "1e-3 of rnage"
            .parse::<ErrorBound>()
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("invalid error bound: \"1e-3 of rnage\"; "),
            "{error}"
        );
        assert!(error.contains("\"1e-3 of range\""));
        for (given, meant) in [
            ("80dB", "80 dB"),
            (" 80  db", "80 dB"),
            ("1e-3relative above 2", "1e-3 relative above 2"),
            ("1e-3  Of Range", "1e-3 of range"),
            ("Lossless", "lossless"),
        ] {
            let error = given.parse::<ErrorBound>().unwrap_err().to_string();
            assert!(
                error.ends_with(&format!(". Did you mean {meant:?}?")),
                "{error}"
            );
        }
    }

    #[test]
    fn long_strings_are_parsed_in_linear_time() {
        // A quadratic parser would take minutes.
        for word in ["inf", "1", "dB", "1e-3 relative ", "é"] {
            assert!(word.repeat(100_000).parse::<ErrorBound>().is_err());
        }
    }

    #[test]
    fn ranges_resolve_bounds() {
        let none = [f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(
            ErrorBound::OfRange(0.1).resolve([-2.0, 8.0]),
            ErrorBound::Absolute(1.0)
        );
        assert_eq!(ErrorBound::OfRange(0.1).resolve(none), ErrorBound::Lossless);
        assert_eq!(
            ErrorBound::Absolute(0.5).resolve(none),
            ErrorBound::Lossless
        );
        assert_eq!(
            ErrorBound::Absolute(0.5).resolve([1.0, 1.0]),
            ErrorBound::Absolute(0.5)
        );
        assert_eq!(
            ErrorBound::OfRange(0.5).resolve([1.0, 1.0]),
            ErrorBound::Lossless
        );
        assert_eq!(
            ErrorBound::Psnr(20.0).resolve([0.0, 10.0]),
            ErrorBound::Rms(1.0)
        );
        let huge = ErrorBound::OfRange(0.9).resolve([f64::MIN, f64::MAX]);
        assert_eq!(huge, ErrorBound::Absolute(f64::MAX));
        let half = ErrorBound::Psnr(20.0).resolve([-f64::MAX, f64::MAX]);
        assert_eq!(half, ErrorBound::Rms(f64::MAX * (2.0 * 0.1)));
        assert!(huge.check().is_ok());
    }
}
