//! What a URL and its storage options determine: the client of the service, the key, and strings for messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use super::super::errors;
use crate::error::{Error, Result};

/// Time limits of a request: to connect, without receiving bytes, and in total.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
const REQUEST: Duration = Duration::from_secs(180);

/// Maximum number of repetitions of a failed request, and the time after which it is not repeated.
const RETRIES: usize = 3;
const RETRY: Duration = Duration::from_secs(60);

/// The storage options of all services.
pub const CLIENT_OPTIONS: &[&str] = &[
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "read_timeout",
    "timeout",
    "user_agent",
];

/// A service that can be written to, in parts.
pub trait WritableStore: ObjectStore + MultipartStore {}

impl<T: ObjectStore + MultipartStore> WritableStore for T {}

/// Creates a client.
pub enum Connect {
    ReadOnly(Box<dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync>),
    Writable(Box<dyn Fn(Completion) -> Result<Arc<dyn WritableStore>> + Send + Sync>),
}

/// Whether completing an upload in parts replaces an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It does.
    Replace,
    /// It fails if the object exists, where the service has this condition.
    Create,
}

/// The differences between services that writers must know.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Whether `Completion::Create` is a condition that the service checks.
    pub has_conditional_completion: bool,
    /// Whether starting an upload in parts is a request, which fails without the bucket or the permission to write.
    pub starts_uploads: bool,
    /// Whether the credentials have all permissions, so that a service that denies one refuses the credentials.
    pub has_all_permissions: bool,
}

/// The address of a store.
pub struct Address {
    pub connect: Connect,
    /// The key of an object, or the prefix of keys.
    pub base: Path,
    pub access: errors::Access,
    pub features: Features,
}

/// The bucket or container, and the key, of a URL without its scheme.
///
/// # Errors
/// `Invalid` if there is no bucket, or the key is invalid.
pub fn split_bucket<'a>(rest: &'a str, expected: &str) -> Result<(&'a str, Path)> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        let message = format!("the URL has no bucket; expected {expected}");
        return Err(Error::invalid(message));
    }
    let base = Path::parse(key.trim_end_matches('/'));
    Ok((
        bucket,
        base.map_err(|error| Error::invalid(error.to_string()))?,
    ))
}

/// The error for an option that no service has, or not this one. `known` are those of the service.
pub fn unknown_option(name: &str, known: &[&str]) -> Error {
    let known = [known, CLIENT_OPTIONS].concat().join(", ");
    Error::invalid(format!(
        "storage option {name:?} does not exist for this service; available: {known}"
    ))
}

/// The error for options that the client refuses.
pub fn invalid_options(error: object_store::Error) -> Error {
    let found = errors::chain(&error);
    Error::invalid(format!("{found}; check URL and storage options"))
}

/// The options, in lower case, with this library's names in place of those of fsspec, which `aliases` lists.
pub fn resolve_aliases<'a>(
    options: &'a BTreeMap<String, String>,
    aliases: &'a [(&'a str, &'a str)],
) -> impl Iterator<Item = (String, &'a str)> {
    options.iter().map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let alias = aliases.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, name)| (*name).to_owned());
        (name, value.trim())
    })
}

/// The time limits of requests, as options of clients.
pub fn bounds() -> Vec<(ClientConfigKey, String)> {
    [
        (ClientConfigKey::ConnectTimeout, CONNECT),
        (ClientConfigKey::ReadTimeout, SILENCE),
        (ClientConfigKey::Timeout, REQUEST),
    ]
    .into_iter()
    .map(|(key, time)| (key, format!("{} seconds", time.as_secs())))
    .collect()
}

/// How failed requests are repeated.
pub fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 3.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY,
    }
}
