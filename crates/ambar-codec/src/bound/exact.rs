//! Comparisons of a decoded value with a bound that are exact, without rounding errors.

/// Whether `|decoded - original| <= bound`, exactly.
pub(crate) fn within(original: f64, decoded: f64, bound: f64) -> bool {
    let error = decoded - original;
    if error.abs() != bound {
        return error.abs() < bound;
    }
    // The rounding error of the difference. Source: D. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
    let part = error - decoded;
    let rest = (decoded - (error - part)) - (original + part);
    rest == 0.0 || (rest < 0.0) == (error > 0.0) && !rest.is_nan()
}

/// Relative margin that covers the rounding of a difference, a product and their comparison.
const MARGIN: f64 = 1e-15;
/// Products below may be denormal, whose rounding is not relative.
const SMALLEST: f64 = 1e-290;

/// Whether `|decoded - original| <= factor * size` holds even if every operation was rounded in its favour: never true if the
/// bound is broken, false in rare cases where it is just met.
pub(crate) fn is_surely_within(original: f64, decoded: f64, factor: f64, size: f64) -> bool {
    let limit = factor * size;
    let error = (decoded - original).abs();
    error == 0.0 || limit > SMALLEST && error <= limit * (1.0 - MARGIN)
}

/// Whether `|decoded - original| <= factor * size`, exactly.
pub(crate) fn within_product(original: f64, decoded: f64, factor: f64, size: f64) -> bool {
    if is_surely_within(original, decoded, factor, size) {
        return true;
    }
    if !decoded.is_finite() || !original.is_finite() {
        return false;
    }
    // Scaled, so that neither the product nor its rounding error is denormal.
    let (scale, original, decoded, size) = if size < 1e-100 {
        (2f64.powi(600), original, decoded, size)
    } else if size > 1e100 {
        (2f64.powi(-600), original, decoded, size)
    } else {
        (1.0, original, decoded, size)
    };
    let (original, decoded, size) = (original * scale, decoded * scale, size * scale);
    let product = factor * size;
    let product_rest = factor.mul_add(size, -product);
    let error = decoded - original;
    let part = error - decoded;
    let error_rest = (decoded - (error - part)) - (original + part);
    let (error, error_rest) = if error < 0.0 {
        (-error, -error_rest)
    } else {
        (error, error_rest)
    };
    // Both sides as unevaluated sums of two numbers that do not overlap.
    match error.partial_cmp(&product) {
        Some(std::cmp::Ordering::Less) => true,
        Some(std::cmp::Ordering::Equal) => error_rest <= product_rest,
        _ => false,
    }
}
