//! Google Cloud Storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};

use super::super::errors::{Access, Hints};
use super::address::{
    Address, Connect, Features, WritableStore, bounds, invalid_options, resolve_aliases, retry,
    split_bucket, unknown_option,
};
use super::connector::SharedConnector;
use crate::error::Result;

const OPTIONS: &[&str] = &[
    "anonymous",
    "bearer_token",
    "endpoint",
    "service_account",
    "service_account_key",
];

const ALIASES: &[(&str, &str)] = &[
    ("anon", "skip_signature"),
    ("anonymous", "skip_signature"),
    ("endpoint", "base_url"),
    ("endpoint_url", "base_url"),
    ("token", "service_account"),
];

const HINTS: Hints = Hints {
    anonymous: "anonymous access is denied: give service_account, the path of a key file, as storage option, or set \
                GOOGLE_APPLICATION_CREDENTIALS",
    refused: "check the credentials (service account or token) and their permissions",
    missing: "no credentials were given: set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default \
              login`, or give service_account, the path of a key file, as storage option, or anonymous=true for public \
              data",
};

/// The address of `gs://` and `rest`.
///
/// # Errors
/// `Invalid` if the URL or an option is invalid.
pub fn address(rest: &str, options: &BTreeMap<String, String>) -> Result<Address> {
    let (bucket, base) = split_bucket(rest, "gs://BUCKET/KEY")?;
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    for (key, value) in bounds() {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    for (name, value) in resolve_aliases(options, ALIASES) {
        let key: GoogleConfigKey = name.parse().map_err(|_| unknown_option(&name, OPTIONS))?;
        builder = match (key, value) {
            // As gcsfs has it.
            (GoogleConfigKey::ServiceAccount, "anon") => {
                builder.with_config(GoogleConfigKey::SkipSignature, "true")
            }
            (key, value) => builder.with_config(key, value),
        };
    }
    let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl);
    let anonymous = builder.get_config_value(&GoogleConfigKey::SkipSignature);
    let access = Access::new(
        endpoint.unwrap_or_else(|| "Google Cloud Storage".to_owned()),
        anonymous.as_deref(),
        has_credentials(&builder),
        &HINTS,
    );
    let builder = builder
        .with_retry(retry())
        .with_http_connector(SharedConnector);
    let connect = move |_| {
        let store = builder.clone().build().map_err(invalid_options)?;
        Ok(Arc::new(store) as Arc<dyn WritableStore>)
    };
    Ok(Address {
        connect: Connect::Writable(Box::new(connect)),
        base,
        access,
        features: Features {
            // The interface for uploads in parts has no conditions.
            has_conditional_completion: false,
            starts_uploads: true,
            has_all_permissions: false,
        },
    })
}

fn has_credentials(builder: &GoogleCloudStorageBuilder) -> bool {
    use GoogleConfigKey as Key;
    let keys = [
        Key::ServiceAccount,
        Key::ServiceAccountKey,
        Key::ApplicationCredentials,
        Key::BearerToken,
    ];
    keys.iter()
        .any(|key| builder.get_config_value(key).is_some())
}
