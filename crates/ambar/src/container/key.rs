//! The rules for keys of a container.

use crate::error::{Error, Result};

/// Longest key in bytes: ZIP allows 65,535, file systems fewer.
const MAX_KEY: usize = 4096;

/// Longest segment in bytes that common file systems allow.
const MAX_SEGMENT: usize = 255;

/// Checks that `key` is a relative path that is valid in a ZIP and on every file system.
///
/// Segments are separated by `/`. They are not empty, `.`, `..` or longer than 255 bytes, and have no
/// control character or backslash. At the root, directory containers reserve the name `.ambar`. Other
/// spellings of `.ambar` and `zarr.json` are invalid too, because some file systems ignore case.
///
/// # Errors
/// `Invalid` with the broken rule.
pub fn validate_key(key: &str) -> Result<()> {
    match broken_rule(key) {
        None => Ok(()),
        Some(rule) => Err(Error::invalid(format!(
            "key {key:?} {rule}; choose another name"
        ))),
    }
}

/// The rule that `key` breaks, as the end of a sentence; `None` if the key is valid.
pub(crate) fn broken_rule(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        return Some("is empty");
    }
    if key.len() > MAX_KEY {
        return Some("is longer than 4096 bytes");
    }
    // Without an early end, so that the compiler uses vectors: listing checks every key.
    let is_bad = |byte: &u8| *byte < 0x20 || *byte == 0x7f || *byte == b'\\';
    if key
        .as_bytes()
        .iter()
        .fold(false, |bad, byte| bad | is_bad(byte))
    {
        return Some("has a control character or a backslash");
    }
    for (n, segment) in key.as_bytes().split(|byte| *byte == b'/').enumerate() {
        match segment {
            [] => return Some("has an empty segment"),
            b"." | b".." => return Some("has a segment `.` or `..`"),
            _ => {}
        }
        if segment.len() > MAX_SEGMENT {
            return Some("has a segment longer than 255 bytes");
        }
        if n == 0 && is_reserved(segment) {
            return Some("begins with `.ambar`, a name that directory containers reserve");
        }
        if segment.eq_ignore_ascii_case(b"zarr.json") && segment != b"zarr.json" {
            return Some("is a spelling of zarr.json in another case");
        }
    }
    None
}

/// Whether directory containers reserve the name `segment` at the root.
pub(super) fn is_reserved(segment: &[u8]) -> bool {
    segment.eq_ignore_ascii_case(b".ambar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zarr_keys_are_valid() {
        for key in [
            "zarr.json",
            "amr/density/zarr.json",
            "amr/density/c/0",
            "a/c/0/1/2",
            "température/T",
            "ambar/zarr.json",
            "amr/.ambar",
            "a b/c",
            "...",
        ] {
            assert!(validate_key(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn keys_that_leave_the_store_or_collide_are_invalid() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(2048) + "x";
        for key in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a\0b",
            "a\nb",
            "a\\b",
            ".ambar",
            ".Ambar/x",
            ".ambar/commit",
            "ZARR.JSON",
            "a/Zarr.json",
            &long,
            &deep,
        ] {
            assert!(validate_key(key).is_err(), "{key:?}");
        }
    }
}
