//! Real numbers as Fortran writes them.

/// Parses a real: `1.5E+01`, `1.5D+01`, or `1.5-101`, which has no letter because its exponent has three
/// digits.
pub fn parse_real(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let sign = text
        .bytes()
        .skip(1)
        .rposition(|b| b == b'+' || b == b'-')
        .map(|at| at + 1);
    let letter = text.bytes().position(|b| b"dDeEqQ".contains(&b));
    let (mantissa, exponent) = match (letter, sign) {
        (Some(at), _) => (&text[..at], &text[at + 1..]),
        (None, Some(at)) => (&text[..at], &text[at..]),
        (None, None) => return None,
    };
    let exponent: i32 = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    format!("{mantissa}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_notations_of_reals_are_read() {
        for (text, value) in [
            ("  0.150000000000000E+02", Some(15.0)),
            ("1.5D-03", Some(0.0015)),
            ("-1.5-101", Some(-1.5e-101)),
            ("1.5+101", Some(1.5e101)),
            ("7", Some(7.0)),
            ("NaN", None),
            ("*****", None),
            ("", None),
            ("1.5E", None),
            ("é-3", None),
        ] {
            let read = parse_real(text);
            if text == "NaN" {
                assert!(read.is_some_and(f64::is_nan));
            } else {
                assert_eq!(read, value, "{text}");
            }
        }
    }
}
