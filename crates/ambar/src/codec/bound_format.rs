//! Error bounds as text for people, with four significant digits.

use ambar_codec::ErrorBound;

/// Relative difference that is due to the rounding of sums such as 0.01 + 0.05.
const ROUNDING: f64 = 1e-12;

/// An error bound for people. Its numbers have four significant digits and are rounded up: errors are within the bound
/// that is printed, too.
pub fn format_bound(bound: ErrorBound) -> String {
    match bound {
        ErrorBound::Lossless => "0".to_owned(),
        ErrorBound::Absolute(bound) => rounded_up(bound),
        ErrorBound::Relative(relative) => format!("{} relative", rounded_up(relative)),
        ErrorBound::RelativeAbove { relative, floor } => format!(
            "{} relative above {}",
            rounded_up(relative),
            rounded_up(floor)
        ),
        ErrorBound::Rms(root) => format!("{} rms", rounded_up(root)),
        ErrorBound::OfRange(part) => format!("{} of range", rounded_up(part)),
        ErrorBound::Bits(_) | ErrorBound::Psnr(_) => bound.to_string(),
    }
}

/// A positive number with four digits that is not below it, except by `ROUNDING`.
fn rounded_up(value: f64) -> String {
    let nearest = four_digits(value);
    if number(&nearest) >= value * (1.0 - ROUNDING) {
        return nearest;
    }
    let (mantissa, exponent) = parts(value);
    four_digits(number(&format!("{}e{exponent}", number(&mantissa) + 0.001)))
}

/// A number as `%.4g` prints it in C and Python.
fn four_digits(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    if let Ok(decimals @ 0..=7) = usize::try_from(3 - exponent) {
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    format!("{}e{sign}{exponent:02}", without_zeros(&mantissa))
}

/// The mantissa, with four digits, and the exponent of a number that is rounded to four digits.
fn parts(value: f64) -> (String, i32) {
    let text = format!("{value:.3e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// The number that a text of this module represents.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_four_digits_and_are_never_smaller() {
        for (bound, text) in [
            ("0", "0"),
            ("0.5", "0.5"),
            ("7637.3", "7638"),
            ("9999.3", "1e+04"),
            ("12345", "1.235e+04"),
            ("264760752.69421262", "2.648e+08"),
            ("1e-4", "0.0001"),
            ("1.00001e-4", "0.0001001"),
            ("9.9991e-5", "0.0001"),
            ("2.5e-7", "2.5e-07"),
            ("0.0110012 relative", "0.01101 relative"),
            ("1e-3 relative above 1e-10", "0.001 relative above 1e-10"),
            ("0.1234567 rms", "0.1235 rms"),
            ("1e-3 of range", "0.001 of range"),
            ("12 bits", "12 bits"),
            ("62.5 dB", "62.5 dB"),
        ] {
            assert_eq!(format_bound(bound.parse().unwrap()), text);
        }
        let rounded_sum = ErrorBound::Absolute(0.01 + 0.05);
        assert_eq!(format_bound(rounded_sum), "0.06");
        assert_eq!(format_bound(ErrorBound::Absolute(f64::MAX)), "1.798e+308");
    }
}
