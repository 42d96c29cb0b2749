//! Converts errors of object stores and HTTP servers to errors of this library.

use std::error::Error as _;

use object_store::client::{HttpError, HttpErrorKind};

use crate::error::{Error, ErrorKind};

/// How to reach a service, for messages.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// How to give credentials.
    pub hint: &'static str,
    /// Whether no credentials were given: the client asks the machine for them, which may have none.
    pub lacks_credentials: bool,
    /// The name or the address of the service.
    pub server: String,
}

/// How to give credentials to a service, for messages.
pub struct Hints {
    /// After anonymous access.
    pub anonymous: &'static str,
    /// After access with credentials.
    pub refused: &'static str,
    /// Without credentials.
    pub missing: &'static str,
}

impl Access {
    /// The access to `server` by a client with these options: `skip_signature`, and whether it has credentials.
    pub fn new(
        server: String,
        skip_signature: Option<&str>,
        has_credentials: bool,
        hints: &Hints,
    ) -> Self {
        let is_anonymous = skip_signature == Some("true");
        let hint = match (is_anonymous, has_credentials) {
            (true, _) => hints.anonymous,
            (false, true) => hints.refused,
            (false, false) => hints.missing,
        };
        Self {
            hint,
            lacks_credentials: !is_anonymous && !has_credentials,
            server,
        }
    }
}

/// Converts an error of reading `key` of a service.
pub fn to_error(error: &object_store::Error, access: &Access, location: &str, key: &str) -> Error {
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
        _ => other(error, "reading", access),
    };
    located(converted, location, key)
}

/// Converts an error of writing `key` of a service.
pub fn to_write_error(
    error: &object_store::Error,
    access: &Access,
    location: &str,
    key: &str,
) -> Error {
    use object_store::Error as Refusal;
    let converted = match error {
        error if is_absence(error) => missing_bucket(),
        Refusal::NotSupported { .. } | Refusal::NotImplemented { .. } => {
            Error::unsupported(format!(
                "the service does not support the request ({}); write a local file and upload it",
                chain(error)
            ))
        }
        _ => other(error, "writing", access),
    };
    located(converted, location, key)
}

/// The error for a bucket that does not exist.
pub fn missing_bucket() -> Error {
    Error::missing_file(
        "the bucket does not exist, or the upload was aborted; check the bucket of the URL",
    )
}

/// Whether the service has answered that the object, upload or bucket does not exist.
pub fn is_absence(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. }) || status(error) == Some(404)
}

/// Whether the service has denied access.
pub fn is_denial(error: &object_store::Error) -> bool {
    use object_store::Error as Refusal;
    matches!(
        error,
        Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. }
    ) || matches!(status(error), Some(401 | 403))
}

/// Whether the connection broke before an answer: the request may have had an effect.
pub fn is_interruption(error: &object_store::Error) -> bool {
    matches!(
        connection_error(error),
        Some((HttpErrorKind::Interrupted, _))
    )
}

/// The status of the answer. `object_store` has it for some requests in the message alone.
fn status(error: &object_store::Error) -> Option<u16> {
    let text = chain(error);
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

fn other(error: &object_store::Error, action: &str, access: &Access) -> Error {
    let Access {
        hint,
        lacks_credentials,
        server,
    } = access;
    if let object_store::Error::InvalidPath { .. } = error {
        return Error::invalid(chain(error));
    }
    // The request that failed may be the one for the credentials of the machine.
    let server = match lacks_credentials {
        true => format!("{server} or the machine's service of credentials"),
        false => server.clone(),
    };
    let message = match connection_error(error) {
        _ if is_denial(error) => format!("the server denies access; {hint}"),
        Some((HttpErrorKind::Timeout, _)) => format!(
            "{action} failed: {server} has not answered in time; check the address and the network"
        ),
        Some((HttpErrorKind::Connect, cause)) => format!(
            "{action} failed: no connection to {server} ({cause}); check the address and the network"
        ),
        _ => format!(
            "{action} failed: {}; check the address and the network",
            cause(error)
        ),
    };
    let message = match status(error) {
        None if *lacks_credentials => format!("{message}; {hint}"),
        _ => message,
    };
    Error::new(ErrorKind::Io, message)
}

/// How a connection failed, and its first cause.
fn connection_error(error: &object_store::Error) -> Option<(HttpErrorKind, String)> {
    let mut kind = None;
    let mut last: &dyn std::error::Error = error;
    while let Some(inner) = last.source() {
        kind = kind.or_else(|| Some(inner.downcast_ref::<HttpError>()?.kind()));
        last = inner;
    }
    Some((kind?, without_secrets(&last.to_string())))
}

/// The message of an error, without the statistics of the client's repetitions.
fn cause(error: &object_store::Error) -> String {
    let text = chain(error);
    let after = text.split_once("Error performing ");
    match after.and_then(|(_, after)| after.split_once(" - ")) {
        Some((_, cause)) => cause.to_owned(),
        None => text,
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
    fn connection_errors_come_first_and_mention_missing_credentials() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = |kind| object_store::Error::Generic {
            store: "S3",
            source: Box::new(HttpError::new(kind, refused())),
        };
        let message = |kind, lacks_credentials| {
            let access = Access {
                hint: "set the variables",
                lacks_credentials,
                server: "host".to_owned(),
            };
            let error = to_error(&error(kind), &access, "s3://bucket/x", "");
            error.message().to_owned()
        };
        let advice = "check the address and the network";
        assert_eq!(
            message(HttpErrorKind::Connect, false),
            format!("reading failed: no connection to host (connection refused); {advice}")
        );
        assert_eq!(
            message(HttpErrorKind::Connect, true),
            format!(
                "reading failed: no connection to host or the machine's service of credentials (connection refused); \
                 {advice}; set the variables"
            )
        );
        let slow = message(HttpErrorKind::Timeout, false);
        assert_eq!(
            slow,
            format!("reading failed: host has not answered in time; {advice}")
        );
        assert!(message(HttpErrorKind::Decode, true).ends_with("; set the variables"));
    }

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
