//! The rules for names of nodes.

use crate::container::broken_rule as broken_rule_of_keys;

/// The suffix that makes a node's name the key of its document.
const DOCUMENT: &str = "/zarr.json";

/// Longest name in bytes: that of a key without the suffix.
const MAX_NAME: usize = 4096 - DOCUMENT.len();

/// The rule that the name `name` (such as `amr/density`) of a node below the root breaks, as the end of
/// a sentence; `None` if the name is valid.
pub(crate) fn broken_rule(name: &str) -> Option<&'static str> {
    // Opening checks every name, so nothing is copied.
    if let Some(rule) = broken_rule_of_keys(name) {
        return Some(rule);
    }
    if name.len() > MAX_NAME {
        return Some("is longer than 4086 bytes");
    }
    let mut segments = name.split('/');
    if segments.clone().any(|segment| segment == "zarr.json") {
        return Some("has a segment `zarr.json`, which no node may be called");
    }
    // The header of a ZIP is an entry of this name.
    if segments.next()?.eq_ignore_ascii_case("ambar") {
        return Some("begins with `ambar`, a name that stores keep for themselves");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_or_say_why_not() {
        let longest = "x/".repeat(MAX_NAME / 2 - 1) + "xy";
        for name in ["a", "amr/ambar", "ambar2", "a/c/0", "...", &longest] {
            assert_eq!(broken_rule(name), None, "{name}");
        }
        let long = format!("{longest}z");
        for name in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/./b",
            "a\n",
            "zarr.json",
            "a/zarr.json/b",
            "Zarr.json",
            "ambar",
            "AMBAR/a",
            ".ambar",
            &long,
        ] {
            assert!(broken_rule(name).is_some(), "{name}");
        }
    }
}
