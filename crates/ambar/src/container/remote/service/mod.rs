//! Object stores and HTTP servers: parses URLs and storage options, and connects.

mod address;
mod azure;
mod connector;
mod google;
mod http;
mod profile;
mod s3;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use object_store::ObjectStore;
use object_store::path::Path;

pub use address::{Completion, Features, WritableStore};

use address::Connect;

use super::errors::{self, without_secrets};
use crate::error::{Error, Result};
use crate::process::PerProcess;

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
    pub access: errors::Access,
    /// What writers must know of the service.
    pub features: Features,
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
            Some(("s3" | "s3a", rest)) => s3::address(rest, options),
            Some(("gs" | "gcs", rest)) => google::address(rest, options),
            Some(("az" | "abfs", rest)) => azure::address(rest, options),
            Some(("http" | "https", _)) => http::address(url, options),
            _ => Err(Error::unsupported(
                "the scheme of the URL is not supported; expected s3://, gs://, az://, http:// or https://",
            )),
        };
        let address = result.map_err(|error| error.in_file(&location))?;
        let service = Self {
            connect: address.connect,
            client: PerProcess::new(),
            base: address.base,
            location,
            access: address.access,
            features: address.features,
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
            access: errors::Access::default(),
            features: Features {
                has_conditional_completion: true,
                starts_uploads: true,
                has_all_permissions: false,
            },
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
                 `endpoint` for a service other than Amazon's, gs://BUCKET/KEY or az://CONTAINER/KEY",
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
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({})", self.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The options that the error for an unknown one lists, by a URL of each service.
    fn listed(url: &str) -> Vec<String> {
        let options = BTreeMap::from([("colour".to_owned(), "red".to_owned())]);
        let error = Service::new(url, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let (_, names) = error.message().split_once("available: ").unwrap();
        names.split(", ").map(str::to_owned).collect()
    }

    #[test]
    fn listed_options_exist() {
        for url in [
            "s3://bucket/x",
            "gs://bucket/x",
            "az://container/x",
            "https://host/x",
        ] {
            for name in listed(url) {
                let options = BTreeMap::from([(name.clone(), "false".to_owned())]);
                if let Err(error) = Service::new(url, &options) {
                    let text = error.message();
                    assert!(!text.contains("does not exist for this"), "{name}: {text}");
                }
            }
        }
    }

    #[test]
    fn the_emulator_is_refused() {
        let service = |value: &str| {
            let options = [("account_name", "ours"), ("use_emulator", value)];
            let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Service::new("az://container/x", &BTreeMap::from(options))
        };
        service("False").unwrap();
        let error = service("true").unwrap_err();
        assert!(error.message().contains("give endpoint"), "{error}");
    }

    #[test]
    fn urls_without_buckets_and_of_other_services_are_refused() {
        for (url, expected) in [
            ("s3:///x", "s3://BUCKET/KEY"),
            ("gs:///x", "gs://BUCKET/KEY"),
            ("az:///x", "az://CONTAINER/KEY"),
            ("ftp://host/x", "expected s3://, gs://, az://"),
        ] {
            let error = Service::new(url, &BTreeMap::new()).unwrap_err();
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }
}
