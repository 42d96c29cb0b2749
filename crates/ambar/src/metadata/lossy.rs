//! Attributes that state the loss of an array, in the style of the CF conventions (section 8.4). They are derived from
//! the codecs, written into the document of every lossy array, and left out of the attributes that ambar returns.

use ambar_codec::ErrorBound;
use serde_json::{Value, json};

use super::Attributes;

/// The algorithm: `bitround`, or `ambar` for all other bounds.
const ALGORITHM: &str = "lossy_compression";
/// The error bound as a string that `ErrorBound` parses.
const BOUND: &str = "lossy_compression_error_bound";
/// Number of explicit bits of the mantissa that are kept.
const SIGNIFICANT_BITS: &str = "lossy_compression_nsb";
const ABSOLUTE_ERROR: &str = "lossy_compression_maximum_absolute_error";
const RELATIVE_ERROR: &str = "lossy_compression_maximum_relative_error";
const SQUARED_ERROR: &str = "lossy_compression_root_mean_square_error";

const NAMES: [&str; 6] = [
    ALGORITHM,
    BOUND,
    SIGNIFICANT_BITS,
    ABSOLUTE_ERROR,
    RELATIVE_ERROR,
    SQUARED_ERROR,
];

/// The attributes of an array whose values are within `bound`; empty without a bound.
pub fn lossy_attributes(bound: Option<ErrorBound>) -> Attributes {
    let mut own = Attributes::new();
    let Some(bound) = bound.filter(|bound| !bound.is_lossless()) else {
        return own;
    };
    let mut put = |name: &str, value: Value| {
        own.insert(name.to_owned(), value);
    };
    let algorithm = match bound {
        ErrorBound::Bits(_) => "bitround",
        _ => "ambar",
    };
    put(ALGORITHM, json!(algorithm));
    put(BOUND, json!(bound.to_string()));
    match bound {
        ErrorBound::Bits(bits) => put(SIGNIFICANT_BITS, json!(bits)),
        ErrorBound::Absolute(bound) => put(ABSOLUTE_ERROR, json!(bound)),
        ErrorBound::Relative(relative) => put(RELATIVE_ERROR, json!(relative)),
        ErrorBound::Rms(root) => put(SQUARED_ERROR, json!(root)),
        // With a floor, neither the absolute nor the relative error has one maximum. Stored values never have the other
        // kinds.
        ErrorBound::RelativeAbove { .. }
        | ErrorBound::Lossless
        | ErrorBound::OfRange(_)
        | ErrorBound::Psnr(_) => {}
    }
    own
}

/// The attributes in the document of an array with this bound.
pub(crate) fn with_loss(attributes: &Attributes, bound: Option<ErrorBound>) -> Attributes {
    let mut stored = without_loss(attributes.clone(), bound);
    stored.extend(lossy_attributes(bound));
    stored
}

/// The attributes of the document of an array with this bound, without the attributes that state the loss. A lossless
/// array keeps such attributes: they describe an earlier loss of its values.
pub(crate) fn without_loss(mut attributes: Attributes, bound: Option<ErrorBound>) -> Attributes {
    if bound.is_some() {
        attributes.retain(|name, _| !NAMES.contains(&name.as_str()));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_state_the_loss_and_leave_others_alone() {
        let mut own = Attributes::new();
        own.insert("units".into(), json!("K"));
        own.insert(ABSOLUTE_ERROR.into(), json!(7.0));
        assert_eq!(with_loss(&own, None), own);
        assert_eq!(without_loss(own.clone(), None), own);
        for (bound, name, value) in [
            ("0.5", ABSOLUTE_ERROR, json!(0.5)),
            ("1e-3 relative", RELATIVE_ERROR, json!(1e-3)),
            ("12 bits", SIGNIFICANT_BITS, json!(12)),
            ("0.1 rms", SQUARED_ERROR, json!(0.1)),
            (
                "1e-3 relative above 2",
                BOUND,
                json!("1e-3 relative above 2e0"),
            ),
        ] {
            let bound: ErrorBound = bound.parse().unwrap();
            let stored = with_loss(&own, Some(bound));
            assert_eq!(stored[name], value);
            assert_eq!(stored[BOUND].as_str().unwrap().parse(), Ok(bound));
            let again = without_loss(stored, Some(bound));
            assert_eq!(again.len(), 1);
            assert_eq!(again["units"], json!("K"));
        }
    }
}
