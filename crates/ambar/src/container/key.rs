//! Which keys a container takes.

use crate::error::{Error, Result};

/// Longest key in bytes: what a ZIP name field could hold is 65,535, what file systems take is less.
const MAX_KEY: usize = 4096;

/// Longest segment in bytes that the common file systems take.
const MAX_SEGMENT: usize = 255;

/// Checks that `key` is a relative path that means the same in a ZIP and on every file system.
///
/// Segments are separated by `/`, none is empty, `.` or `..` or longer than 255 bytes, and none
/// holds a control character or a backslash. At the root, the name `.ambar` is the directory
/// container's own; it and `zarr.json` are refused in other spellings, too, because file systems
/// that ignore case would take them for the same name.
///
/// # Errors
/// `Invalid`, saying which rule is broken.
pub fn validate_key(key: &str) -> Result<()> {
    match broken_rule(key) {
        None => Ok(()),
        Some(rule) => Err(Error::invalid(format!(
            "key {key:?} {rule}; choose another name"
        ))),
    }
}

/// What is wrong with `key`, as the end of a sentence; `None` where it is valid.
pub(crate) fn broken_rule(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        return Some("is empty");
    }
    if key.len() > MAX_KEY {
        return Some("is longer than 4096 bytes");
    }
    // Opening checks every key, so this goes over the bytes once and compares only what may match.
    for (n, segment) in key.as_bytes().split(|byte| *byte == b'/').enumerate() {
        match segment {
            [] => return Some("has an empty segment"),
            b"." | b".." => return Some("has a segment `.` or `..`"),
            _ => {}
        }
        if segment
            .iter()
            .any(|b| *b < 0x20 || *b == 0x7f || *b == b'\\')
        {
            return Some("holds a control character or a backslash");
        }
        if segment.len() > MAX_SEGMENT {
            return Some("has a segment longer than 255 bytes");
        }
        if n == 0 && is_reserved(segment) {
            return Some("begins with a name that directory containers keep for themselves");
        }
        if segment.eq_ignore_ascii_case(b"zarr.json") && segment != b"zarr.json" {
            return Some("is a spelling of zarr.json in another case");
        }
    }
    None
}

/// Whether `segment`, at the root, is a name of the directory container's own.
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
    fn keys_that_leave_the_store_or_collide_are_refused() {
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
