//! HTTP servers, which are only read.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore};

use super::super::errors::{Access, without_secrets};
use super::address::{
    Address, Connect, Features, bounds, invalid_options, resolve_aliases, retry, unknown_option,
};
use super::connector::SharedConnector;
use crate::error::Result;

/// The address of `url`.
///
/// # Errors
/// `Invalid` if an option is invalid.
pub fn address(url: &str, options: &BTreeMap<String, String>) -> Result<Address> {
    let mut client = ClientOptions::new();
    for (key, value) in bounds() {
        client = client.with_config(key, value);
    }
    for (name, value) in resolve_aliases(options, &[]) {
        let key: ClientConfigKey = name.parse().map_err(|_| unknown_option(&name, &[]))?;
        client = client.with_config(key, value);
    }
    if url.starts_with("http://") {
        client = client.with_allow_http(true);
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let server = without_secrets(&format!("{scheme}://{host}"));
    // The URL is the object, including everything after a `?`; keys are appended to it.
    let builder = HttpBuilder::new()
        .with_url(url.trim_end_matches('/'))
        .with_client_options(client)
        .with_retry(retry())
        .with_http_connector(SharedConnector);
    let connect = move || {
        let store = builder.clone().build().map_err(invalid_options)?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    };
    let hint = "ambar sends only the credentials in the URL, such as a signature; check them";
    Ok(Address {
        connect: Connect::ReadOnly(Box::new(connect)),
        base: Path::default(),
        access: Access {
            hint,
            lacks_credentials: false,
            server,
        },
        features: Features {
            has_conditional_completion: false,
            starts_uploads: false,
            has_all_permissions: false,
        },
    })
}
