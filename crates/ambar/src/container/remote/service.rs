//! Object stores and HTTP servers: parses URLs and storage options, and connects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use super::connector::{CreatingConnector, SharedConnector};
use super::errors::without_secrets;
use crate::error::{Error, Result};
use crate::process::PerProcess;

/// Time limits of a request: to connect, without receiving bytes, and in total.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
const REQUEST: Duration = Duration::from_secs(180);

/// Failed requests are made again so often, and not after that time.
const RETRIES: usize = 3;
const RETRY: Duration = Duration::from_secs(60);

/// A service that can be written to, in parts.
pub trait WritableStore: ObjectStore + MultipartStore {}

impl<T: ObjectStore + MultipartStore> WritableStore for T {}

/// Creates a client.
enum Connect {
    ReadOnly(Box<dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync>),
    Writable(Box<dyn Fn(Completion) -> Result<Arc<dyn WritableStore>> + Send + Sync>),
}

/// Whether completing an upload in parts replaces an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It does.
    Replace,
    /// It fails if the object exists.
    Create,
}

/// An object store or HTTP server, with the key or prefix of a URL.
pub struct Service {
    connect: Connect,
    /// The client. A forked child cannot use its connections and creates another one.
    client: PerProcess<Mutex<Option<Arc<dyn ObjectStore>>>>,
    /// The key of an object, or the prefix of keys.
    pub base: Path,
    /// The URL for messages, without secrets.
    pub location: String,
    /// How to get access, for messages.
    pub hint: &'static str,
}

impl Service {
    /// The service of `url`. Sends no request.
    ///
    /// # Errors
    /// `Invalid` if the URL or an option is invalid; `Unsupported` for other services.
    pub fn new(url: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let location = without_secrets(url);
        let location = location.trim_end_matches("?...").to_owned();
        let result = match url.split_once("://") {
            Some(("s3" | "s3a", rest)) => Self::s3(rest, options),
            Some(("http" | "https", _)) => Self::http(url, options),
            _ => Err(Error::unsupported(
                "the scheme of the URL is not supported; expected s3://, http:// or https://, which most \
                 services offer",
            )),
        };
        let address = result.map_err(|error| error.in_file(&location))?;
        let service = Self {
            connect: address.connect,
            client: PerProcess::new(),
            base: address.base,
            location,
            hint: address.hint,
        };
        // Report invalid options here, before the first request fails for another reason.
        service.client()?;
        Ok(service)
    }

    /// A service for tests.
    #[cfg(test)]
    pub fn of(store: Arc<dyn WritableStore>, base: &str, location: &str) -> Self {
        Self {
            connect: Connect::Writable(Box::new(move |_| Ok(Arc::clone(&store)))),
            client: PerProcess::new(),
            base: Path::from(base),
            location: location.to_owned(),
            hint: "",
        }
    }

    /// The client of this process.
    pub fn client(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut client = self.client.lock();
        if let Some(client) = &*client {
            return Ok(Arc::clone(client));
        }
        let new = match &self.connect {
            Connect::ReadOnly(connect) => connect(),
            Connect::Writable(connect) => connect(Completion::Replace).map(|store| store as _),
        };
        let new = new.map_err(|error| error.in_file(&self.location))?;
        *client = Some(Arc::clone(&new));
        Ok(new)
    }

    /// A new client for writing.
    ///
    /// # Errors
    /// `Unsupported` if the service cannot be written to.
    pub fn writable(&self, completion: Completion) -> Result<Arc<dyn WritableStore>> {
        let connected = match &self.connect {
            Connect::Writable(connect) => connect(completion),
            Connect::ReadOnly(_) => Err(Error::unsupported(
                "stores cannot be written to http:// and https://; expected s3://BUCKET/KEY, with the option \
                 `endpoint` for a service other than Amazon's",
            )),
        };
        connected.map_err(|error| error.in_file(&self.location))
    }

    /// The path of the object `key` below the prefix; the prefix if the key is empty.
    pub fn object(&self, key: &str) -> Result<Path> {
        let path = match (self.base.as_ref(), key) {
            (_, "") => return Ok(self.base.clone()),
            ("", key) => Path::parse(key),
            (base, key) => Path::parse(format!("{base}/{key}")),
        };
        path.map_err(|error| Error::invalid(error.to_string()).in_file(&self.location))
    }

    fn s3(rest: &str, options: &BTreeMap<String, String>) -> Result<Address> {
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Error::invalid(
                "the URL has no bucket; expected s3://BUCKET/KEY",
            ));
        }
        let base = Path::parse(key.trim_end_matches('/'))
            .map_err(|error| Error::invalid(error.to_string()))?;
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        for (key, value) in bounds() {
            builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
        }
        for (name, value) in options {
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            let name = match &*name {
                "anonymous" | "anon" => "skip_signature",
                other => other,
            };
            let key: AmazonS3ConfigKey = name.parse().map_err(|_| unknown(name, S3_OPTIONS))?;
            builder = builder.with_config(key, value);
        }
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint);
        let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
        let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        if plain {
            builder = builder.with_allow_http(true);
        }
        let anonymous = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature);
        let keys = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId);
        let hint = match (anonymous.as_deref() == Some("true"), keys) {
            (true, _) => {
                "anonymous access is denied: give access_key_id and secret_access_key as \
                 storage_options, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            }
            (false, None) => {
                "no credentials were given: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give \
                 access_key_id and secret_access_key as storage_options, or anonymous=true for \
                 public data"
            }
            (false, Some(_)) => {
                "check the credentials (access key, secret key, session token), their permissions, and \
                 the region"
            }
        };
        let conditions = builder.get_config_value(&AmazonS3ConfigKey::ConditionalPut);
        let has_conditions = conditions.as_deref() != Some("disabled");
        let builder = builder.with_retry(retry());
        let connect = move |completion| {
            let builder = builder.clone();
            let builder = match completion {
                Completion::Create if has_conditions => {
                    builder.with_http_connector(CreatingConnector)
                }
                _ => builder.with_http_connector(SharedConnector),
            };
            let store = builder.build().map_err(invalid_options)?;
            Ok(Arc::new(store) as Arc<dyn WritableStore>)
        };
        Ok(Address {
            connect: Connect::Writable(Box::new(connect)),
            base,
            hint,
        })
    }

    fn http(url: &str, options: &BTreeMap<String, String>) -> Result<Address> {
        let mut client = ClientOptions::new();
        for (key, value) in bounds() {
            client = client.with_config(key, value);
        }
        for (name, value) in options {
            let key: ClientConfigKey = name
                .to_ascii_lowercase()
                .parse()
                .map_err(|_| unknown(name, HTTP_OPTIONS))?;
            client = client.with_config(key, value.trim());
        }
        if url.starts_with("http://") {
            client = client.with_allow_http(true);
        }
        // The URL is the object, including everything after a `?`; keys are appended to it.
        let url = url.trim_end_matches('/').to_owned();
        let builder = HttpBuilder::new()
            .with_url(url)
            .with_client_options(client)
            .with_retry(retry());
        let connect = move || {
            let store = builder
                .clone()
                .with_http_connector(SharedConnector)
                .build()
                .map_err(invalid_options)?;
            Ok(Arc::new(store) as Arc<dyn ObjectStore>)
        };
        let hint = "ambar sends only the credentials in the URL, such as a signature; check them";
        Ok(Address {
            connect: Connect::ReadOnly(Box::new(connect)),
            base: Path::default(),
            hint,
        })
    }
}

/// The parts of a service that a URL determines.
struct Address {
    connect: Connect,
    base: Path,
    hint: &'static str,
}

const S3_OPTIONS: &str = "endpoint, region, access_key_id, secret_access_key, session_token, \
                          anonymous, allow_http, virtual_hosted_style_request, conditional_put, \
                          timeout, connect_timeout, proxy_url";
const HTTP_OPTIONS: &str = "allow_http, allow_invalid_certificates, timeout, connect_timeout, \
                            read_timeout, proxy_url, user_agent";

fn unknown(name: &str, known: &str) -> Error {
    Error::invalid(format!(
        "storage option {name:?} does not exist for this service; available: {known}"
    ))
}

fn invalid_options(error: object_store::Error) -> Error {
    Error::invalid(format!(
        "{}; check URL and storage options",
        super::errors::chain(&error)
    ))
}

fn bounds() -> Vec<(ClientConfigKey, String)> {
    [
        (ClientConfigKey::ConnectTimeout, CONNECT),
        (ClientConfigKey::ReadTimeout, SILENCE),
        (ClientConfigKey::Timeout, REQUEST),
    ]
    .into_iter()
    .map(|(key, time)| (key, format!("{} seconds", time.as_secs())))
    .collect()
}

fn retry() -> RetryConfig {
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

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({})", self.location)
    }
}
