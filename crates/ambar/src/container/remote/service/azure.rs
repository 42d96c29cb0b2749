//! Azure Blob Storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::azure::{AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};

use super::super::errors::Access;
use super::address::{
    Address, Completion, Connect, Features, WritableStore, bounds, invalid_options, renamed, retry,
    split_bucket, unknown_option,
};
use super::connector::{CompletionRequest, CreatingConnector, SharedConnector};
use crate::error::Result;

const OPTIONS: &[&str] = &[
    "account_key",
    "account_name",
    "anonymous",
    "bearer_token",
    "client_id",
    "client_secret",
    "endpoint",
    "sas_token",
    "tenant_id",
    "use_azure_cli",
];

const ALIASES: &[(&str, &str)] = &[
    ("anon", "skip_signature"),
    ("anonymous", "skip_signature"),
    ("endpoint_url", "endpoint"),
];

/// The address of `az://` and `rest`.
///
/// # Errors
/// `Invalid` if the URL or an option is invalid.
pub fn address(rest: &str, options: &BTreeMap<String, String>) -> Result<Address> {
    let (container, base) = split_bucket(rest, "az://CONTAINER/KEY")?;
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
    for (key, value) in bounds() {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    for (name, value) in renamed(options, ALIASES) {
        let key: AzureConfigKey = name.parse().map_err(|_| unknown_option(&name, OPTIONS))?;
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    if endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"))
    {
        builder = builder.with_allow_http(true);
    }
    let account = builder
        .get_config_value(&AzureConfigKey::AccountName)
        .unwrap_or_default();
    let key = builder.get_config_value(&AzureConfigKey::AccessKey);
    let key = key.and_then(|key| AzureAccessKey::try_new(&key).ok());
    let credential = key.map(|key| Arc::new(AzureCredential::AccessKey(key)));
    let has_key = credential.is_some();
    let access = Access {
        hint: hint(&builder),
        server: endpoint.unwrap_or_else(|| "Azure Blob Storage".to_owned()),
    };
    let builder = builder.with_retry(retry());
    let connect = move |completion| {
        let builder = builder.clone();
        let builder = match completion {
            Completion::Create => {
                let (account, credential) = (account.clone(), credential.clone());
                let request = CompletionRequest::Azure {
                    account,
                    credential,
                };
                builder.with_http_connector(CreatingConnector(request))
            }
            Completion::Replace => builder.with_http_connector(SharedConnector),
        };
        let store = builder.build().map_err(invalid_options)?;
        Ok(Arc::new(store) as Arc<dyn WritableStore>)
    };
    Ok(Address {
        connect: Connect::Writable(Box::new(connect)),
        base,
        access,
        features: Features {
            has_conditional_completion: true,
            starts_uploads: false,
            has_all_permissions: has_key,
        },
    })
}

fn hint(builder: &MicrosoftAzureBuilder) -> &'static str {
    use AzureConfigKey as Key;
    let anonymous = builder.get_config_value(&Key::SkipSignature);
    if anonymous.as_deref() == Some("true") {
        return "anonymous access is denied: give account_key or sas_token as storage_options, or set \
                AZURE_STORAGE_ACCOUNT_KEY";
    }
    let keys = [
        Key::AccessKey,
        Key::SasKey,
        Key::Token,
        Key::ClientId,
        Key::UseAzureCli,
    ];
    let is_given = keys.iter().any(|key| {
        let value = builder.get_config_value(key);
        value.is_some_and(|value| value != "false")
    });
    match is_given {
        true => "check the credentials (account name, and key or token) and their permissions",
        false => {
            "no credentials were given: give account_key, sas_token, or use_azure_cli=true after `az login`, as \
             storage_options, or set AZURE_STORAGE_ACCOUNT_KEY, or give anonymous=true for public data"
        }
    }
}
