//! Amazon S3, and services with its interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use super::super::errors::{Access, Hints};
use super::address::{
    Address, Completion, Connect, Features, WritableStore, bounds, invalid_options,
    resolve_aliases, retry, split_bucket, unknown_option,
};
use super::connector::{CompletionRequest, CreatingConnector, SharedConnector};
use super::profile;
use crate::error::Result;

const OPTIONS: &[&str] = &[
    "access_key_id",
    "anonymous",
    "conditional_put",
    "endpoint",
    "profile",
    "region",
    "secret_access_key",
    "session_token",
    "virtual_hosted_style_request",
];

const ALIASES: &[(&str, &str)] = &[
    ("anon", "skip_signature"),
    ("anonymous", "skip_signature"),
    ("key", "access_key_id"),
    ("secret", "secret_access_key"),
];

const HINTS: Hints = Hints {
    anonymous: "anonymous access is denied: give access_key_id and secret_access_key as storage_options, or set \
                AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    refused: "check the credentials (access key, secret key, session token), their permissions, and the region",
    missing: "no credentials were given: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give access_key_id and \
              secret_access_key, or profile, as storage_options, or anonymous=true for public data",
};

/// The address of `s3://` and `rest`.
///
/// # Errors
/// `Invalid` if the URL or an option is invalid.
pub fn address(rest: &str, options: &BTreeMap<String, String>) -> Result<Address> {
    let (bucket, base) = split_bucket(rest, "s3://BUCKET/KEY")?;
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    for (key, value) in bounds() {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let mut profile = None;
    let mut given = Vec::new();
    for (name, value) in resolve_aliases(options, ALIASES) {
        if name == "profile" {
            profile = Some(value);
            continue;
        }
        let key: AmazonS3ConfigKey = name.parse().map_err(|_| unknown_option(&name, OPTIONS))?;
        given.push((key, value));
    }
    // What is given replaces what the profile says.
    let has_keys = |builder: &AmazonS3Builder| {
        use AmazonS3ConfigKey as Key;
        [
            Key::AccessKeyId,
            Key::SkipSignature,
            Key::WebIdentityTokenFile,
        ]
        .iter()
        .any(|key| {
            builder
                .get_config_value(key)
                .is_some_and(|value| value != "false")
        })
    };
    let gives_keys = given.iter().any(|(key, _)| {
        matches!(
            key,
            AmazonS3ConfigKey::AccessKeyId | AmazonS3ConfigKey::SkipSignature
        )
    });
    let settings = match profile {
        Some(name) => profile::read_profile(name)?,
        None if gives_keys || has_keys(&builder) => Vec::new(),
        None => profile::read_default_profile()?,
    };
    for (key, value) in settings {
        builder = builder.with_config(key, value);
    }
    for (key, value) in given {
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint);
    let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    if endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"))
    {
        builder = builder.with_allow_http(true);
    }
    let anonymous = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature);
    let keys = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId);
    let access = Access::new(
        endpoint.unwrap_or_else(|| "Amazon S3".to_owned()),
        anonymous.as_deref(),
        keys.is_some(),
        &HINTS,
    );
    let conditions = builder.get_config_value(&AmazonS3ConfigKey::ConditionalPut);
    let has_conditions = conditions.as_deref() != Some("disabled");
    let builder = builder.with_retry(retry());
    let connect = move |completion| {
        let builder = builder.clone();
        let builder = match completion {
            Completion::Create if has_conditions => {
                builder.with_http_connector(CreatingConnector(CompletionRequest::S3))
            }
            _ => builder.with_http_connector(SharedConnector),
        };
        let store = builder.build().map_err(invalid_options)?;
        Ok(Arc::new(store) as Arc<dyn WritableStore>)
    };
    Ok(Address {
        connect: Connect::Writable(Box::new(connect)),
        base,
        access,
        features: Features {
            has_conditional_completion: has_conditions,
            starts_uploads: true,
            has_all_permissions: false,
        },
    })
}
