//! What object stores and HTTP servers answer, as the library's errors.

use std::error::Error as _;

use super::service::Service;
use crate::error::{Error, ErrorKind};

/// The library's error for `error`, met while reading `key` of `service`.
pub fn explained(error: &object_store::Error, service: &Service, key: &str) -> Error {
    use object_store::Error as Refusal;
    let explained = match error {
        Refusal::NotFound { .. } => {
            Error::not_found("there is no such object; check bucket and path of the URL")
        }
        Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. } => Error::new(
            ErrorKind::Io,
            format!("the server refuses to give it; {}", service.hint),
        ),
        Refusal::Precondition { .. } => replaced(),
        Refusal::NotSupported { .. } => Error::unsupported(
            "the server does not serve parts of files (HTTP range requests); download the file, or \
             use another server",
        ),
        Refusal::InvalidPath { .. } => Error::invalid(chain(error)),
        _ => {
            let unknown = service.hint.starts_with("no credentials");
            let hint = if unknown {
                service.hint
            } else {
                "check the address and the network"
            };
            let found = without_query(&chain(error));
            Error::new(ErrorKind::Io, format!("reading it failed: {found}; {hint}"))
        }
    };
    let explained = match key {
        "" => explained,
        key => explained.at_node(key),
    };
    explained.in_file(&service.location)
}

/// The error for an object that is not the one that was opened.
pub fn replaced() -> Error {
    Error::busy("the object has been replaced since the store was opened; open it again")
}

/// The words of `error` and of what caused it, each said once.
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
    text
}

/// `text` with what follows `?` in its URLs left out: it may be a signature.
fn without_query(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((url, _)) if url.contains("://") => format!("{url}?..."),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_kept_out_of_messages() {
        assert_eq!(
            without_query("GET https://a/b?X-Amz-Signature=1 in 3s, why? - https://a/c"),
            "GET https://a/b?... in 3s, why? - https://a/c"
        );
    }
}
