//! Converts errors of object stores and HTTP servers to errors of this library.

use std::error::Error as _;

use crate::error::{Error, ErrorKind};

/// Converts an error of reading `key` of a service. `hint` describes how to give credentials.
pub fn to_error(error: &object_store::Error, hint: &str, location: &str, key: &str) -> Error {
    use object_store::Error as Refusal;
    let converted = match error {
        Refusal::NotFound { .. } => Error::missing_file(
            "the object does not exist; check the bucket and the path of the URL",
        ),
        Refusal::Precondition { .. } => replaced(),
        Refusal::NotSupported { .. } => Error::unsupported(
            "the server does not serve parts of files (HTTP range requests); download the file, or \
             use another server",
        ),
        _ => other(error, "reading", hint),
    };
    located(converted, location, key)
}

/// Converts an error of writing `key` of a service.
pub fn to_write_error(error: &object_store::Error, hint: &str, location: &str, key: &str) -> Error {
    use object_store::Error as Refusal;
    let converted = match error {
        Refusal::NotFound { .. } => Error::missing_file(
            "the bucket does not exist, or the upload was aborted; check the bucket of the URL",
        ),
        Refusal::NotSupported { .. } | Refusal::NotImplemented { .. } => {
            Error::unsupported(format!(
                "the service does not support the request ({}); write a local file and upload it",
                chain(error)
            ))
        }
        _ => other(error, "writing", hint),
    };
    located(converted, location, key)
}

fn other(error: &object_store::Error, action: &str, hint: &str) -> Error {
    use object_store::Error as Refusal;
    match error {
        Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. } => {
            Error::new(ErrorKind::Io, format!("the server denies access; {hint}"))
        }
        Refusal::InvalidPath { .. } => Error::invalid(chain(error)),
        _ => {
            let lacks_credentials = hint.starts_with("no credentials");
            let hint = if lacks_credentials {
                hint
            } else {
                "check the address and the network"
            };
            let found = chain(error);
            Error::new(ErrorKind::Io, format!("{action} failed: {found}; {hint}"))
        }
    }
}

fn located(error: Error, location: &str, key: &str) -> Error {
    let error = match key {
        "" => error,
        key => error.at_node(key),
    };
    error.in_file(location)
}

/// The error for an object whose version differs from the opened one.
pub fn replaced() -> Error {
    Error::busy("the object has been replaced since the store was opened; open it again")
}

/// The messages of `error` and its causes, without repetitions and without secrets in URLs.
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

/// Removes secrets from the URLs in `text`: user and password, and everything after a `?`, which may be
/// a signature.
pub fn without_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        // The end of the URL: messages put URLs in quotes and brackets.
        let is_end = |c: char| c.is_whitespace() || "\"'`()<>[]{}".contains(c);
        let (url, tail) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        let (address, query) = match url.find(['?', '#']) {
            Some(at) => (&url[..at], "?..."),
            None => (url, ""),
        };
        let host = address.find('/').unwrap_or(address.len());
        let user = address[..host].rfind('@').map_or(0, |at| at + 1);
        out.push_str(&address[user..]);
        out.push_str(query);
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_contain_passwords_and_signatures() {
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
