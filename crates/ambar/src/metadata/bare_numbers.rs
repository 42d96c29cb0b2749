//! `NaN`, `Infinity` and `-Infinity` without quotes, which Python's `json` writes and JSON does not have.

/// What Python writes, and the value of the same number in attributes.
const TOKENS: [(&str, &str); 3] = [
    ("NaN", r#"{"float":"nan"}"#),
    ("Infinity", r#"{"float":"inf"}"#),
    ("-Infinity", r#"{"float":"-inf"}"#),
];

/// Replaces these tokens in a JSON document by objects, as in attributes that this library writes.
pub(super) fn replace_bare_numbers(document: String) -> String {
    let may_be_bare = |(at, _): (usize, &str)| {
        let before = document[..at].trim_end();
        before.ends_with([':', '[', ',', '-'])
    };
    if !["NaN", "Infinity"]
        .iter()
        .any(|name| document.match_indices(name).any(may_be_bare))
    {
        return document;
    }
    let mut out = String::with_capacity(document.len());
    let mut is_string = false;
    let mut rest = &*document;
    while let Some(first) = rest.chars().next() {
        let token = TOKENS
            .iter()
            .find(|(token, _)| !is_string && rest.starts_with(token));
        let length = match (token, first) {
            (Some((token, _)), _) => token.len(),
            // An escaped quote does not end a string.
            (None, '\\') if rest[1..].starts_with(['\\', '"']) => 2,
            _ => first.len_utf8(),
        };
        is_string ^= first == '"';
        out.push_str(token.map_or(&rest[..length], |(_, value)| value));
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_outside_of_strings_are_replaced() {
        for (document, expected) in [
            (
                r#"{"a": NaN, "b": [Infinity, -Infinity, 1]}"#,
                r#"{"a": {"float":"nan"}, "b": [{"float":"inf"}, {"float":"-inf"}, 1]}"#,
            ),
            (
                r#"{"NaN": "NaN", "\"NaN": "é\\", "x": NaN}"#,
                r#"{"NaN": "NaN", "\"NaN": "é\\", "x": {"float":"nan"}}"#,
            ),
            (r#"{"fill_value": "NaN"}"#, r#"{"fill_value": "NaN"}"#),
            ("[\"NaN", "[\"NaN"),
            ("[NaN\\", "[{\"float\":\"nan\"}\\"),
        ] {
            assert_eq!(replace_bare_numbers(document.into()), expected);
        }
    }
}
