//! What object stores and HTTP servers answer, as the library's errors.

use std::error::Error as _;

use crate::error::{Error, ErrorKind};

/// The library's error for `error`, which reading `key` of a service returned. `hint` says how its
/// credentials are given.
pub fn explained(error: &object_store::Error, hint: &str, location: &str, key: &str) -> Error {
    use object_store::Error as Refusal;
    let explained = match error {
        Refusal::NotFound { .. } => Error::missing_file(
            "the object does not exist; check the bucket and the path of the URL",
        ),
        Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. } => Error::new(
            ErrorKind::Io,
            format!("the server refuses to give it; {}", hint),
        ),
        Refusal::Precondition { .. } => replaced(),
        Refusal::NotSupported { .. } => Error::unsupported(
            "the server does not serve parts of files (HTTP range requests); download the file, or \
             use another server",
        ),
        Refusal::InvalidPath { .. } => Error::invalid(chain(error)),
        _ => {
            let unknown = hint.starts_with("no credentials");
            let hint = if unknown {
                hint
            } else {
                "check the address and the network"
            };
            let found = chain(error);
            Error::new(ErrorKind::Io, format!("reading it failed: {found}; {hint}"))
        }
    };
    let explained = match key {
        "" => explained,
        key => explained.at_node(key),
    };
    explained.in_file(location)
}

/// The error for an object that is not the one that was opened.
pub fn replaced() -> Error {
    Error::busy("the object has been replaced since the store was opened; open it again")
}

/// The words of `error` and of what caused it, each said once, without secrets in URLs.
pub fn chain(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    without_secrets(&text)
}

/// `text` without what is secret in the URLs in it: user and password, and what follows a `?`, which may be
/// a signature.
pub fn without_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        // Where the URL ends: messages put URLs in quotes and brackets.
        let is_end = |c: char| c.is_whitespace() || "\"'`()<>[]{}".contains(c);
        let (url, behind) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        let (place, query) = match url.find(['?', '#']) {
            Some(at) => (&url[..at], "?..."),
            None => (url, ""),
        };
        let host = place.find('/').unwrap_or(place.len());
        let user = place[..host].rfind('@').map_or(0, |at| at + 1);
        out.push_str(&place[user..]);
        out.push_str(query);
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_signatures_are_kept_out_of_messages() {
        for (text, expected) in [
            (
                "GET https://a/b?X-Amz-Signature=1 in 3s, why? - https://a/c",
                "GET https://a/b?... in 3s, why? - https://a/c",
            ),
            (
                "error sending request for url (http://me:p@ss@host:80/x?key=1#2): refused",
                "error sending request for url (http://host:80/x?...): refused",
            ),
            ("http://token@host", "http://host"),
            (
                "http://host/a@b \"https://u:p@h/\"",
                "http://host/a@b \"https://h/\"",
            ),
            ("no URL? here", "no URL? here"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
    }
}
