//! Formatting of numbers as in C++ streams and in JSON.

/// A number as a stream with `precision` digits writes it (C's `%.*g`).
pub fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let digits = precision.max(1);
    let rounded = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = rounded.split_once('e') else {
        return rounded;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent) as usize;
        return trim_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    format!("{}{}", trim_zeros(mantissa), exponent_text(exponent))
}

/// A number in scientific notation with `precision` decimals (C's `%.*e`).
pub fn scientific(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let rounded = format!("{value:.precision$e}");
    match rounded.split_once('e') {
        Some((mantissa, exponent)) => {
            format!("{mantissa}{}", exponent_text(exponent.parse().unwrap_or(0)))
        }
        None => rounded,
    }
}

/// A number in JSON. Numbers that are not finite become strings with a sign, as in Zarr metadata.
pub fn json(value: f64) -> serde_json::Value {
    if value.is_finite() {
        return value.into();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let name = if value.is_nan() { "NaN" } else { "Infinity" };
    format!("{sign}{name}").into()
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

fn non_finite(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let name = if value.is_nan() { "nan" } else { "inf" };
    format!("{sign}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_c() {
        for (value, precision, text) in [
            (0.0, 17, "0"),
            (-0.0, 17, "-0"),
            (1.0, 17, "1"),
            (0.5625, 17, "0.5625"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 15, "0.1"),
            (3.33333e-5, 17, "3.3333300000000002e-05"),
            (0.0001, 6, "0.0001"),
            (0.00001, 6, "1e-05"),
            (123456789.0, 6, "1.23457e+08"),
            (999999.5, 6, "1e+06"),
            (1e100, 17, "1e+100"),
            (2.980_232_238_769_531_2e-8, 17, "2.9802322387695312e-08"),
            (f64::INFINITY, 17, "inf"),
            (f64::NEG_INFINITY, 17, "-inf"),
            (f64::NAN, 17, "nan"),
        ] {
            assert_eq!(general(value, precision), text);
        }
        assert_eq!(
            scientific(0.992_553_903_659_374_1, 17),
            "9.92553903659374126e-01"
        );
        assert_eq!(scientific(0.0, 17), "0.00000000000000000e+00");
        assert_eq!(scientific(-7.5e120, 2), "-7.50e+120");
    }
}
