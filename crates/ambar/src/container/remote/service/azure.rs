//! Azure Blob Storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::azure::{AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};

use super::super::errors::{Access, Hints};
use super::address::{
    Address, Completion, Connect, Features, WritableStore, bounds, invalid_options,
    resolve_aliases, retry, split_bucket, unknown_option,
};
use super::connector::{CompletionRequest, CreatingConnector, SharedConnector};
use crate::error::{Error, Result};

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

const HINTS: Hints = Hints {
    anonymous: "anonymous access is denied: give account_key or sas_token as storage_options, or set \
                AZURE_STORAGE_ACCOUNT_KEY",
    refused: "check the credentials (account name, and key or token) and their permissions",
    missing: "no credentials were given: give account_key, sas_token, or use_azure_cli=true after `az login`, as \
              storage_options, or set AZURE_STORAGE_ACCOUNT_KEY, or give anonymous=true for public data",
};

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
    for (name, value) in resolve_aliases(options, ALIASES) {
        let key: AzureConfigKey = name.parse().map_err(|_| unknown_option(&name, OPTIONS))?;
        builder = builder.with_config(key, value);
    }
    // Its account and key are those of the client alone, so that conditions could not be signed.
    let emulator = builder.get_config_value(&AzureConfigKey::UseEmulator);
    let disabled = ["0", "false", "off", "no", "n"];
    if emulator.is_some_and(|value| !disabled.contains(&&*value.to_ascii_lowercase())) {
        return Err(Error::invalid(
            "use_emulator (AZURE_STORAGE_USE_EMULATOR) is not supported; remove it, and give endpoint, \
             http://127.0.0.1:10000/devstoreaccount1, account_name and account_key of the emulator",
        ));
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
    let anonymous = builder.get_config_value(&AzureConfigKey::SkipSignature);
    let access = Access::new(
        endpoint.unwrap_or_else(|| "Azure Blob Storage".to_owned()),
        anonymous.as_deref(),
        has_credentials(&builder),
        &HINTS,
    );
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

fn has_credentials(builder: &MicrosoftAzureBuilder) -> bool {
    use AzureConfigKey as Key;
    let keys = [
        Key::AccessKey,
        Key::SasKey,
        Key::Token,
        Key::ClientId,
        Key::UseAzureCli,
    ];
    keys.iter().any(|key| {
        let value = builder.get_config_value(key);
        value.is_some_and(|value| value != "false")
    })
}
