//! HTTP clients, shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are reused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::azure::{AzureAuthorizer, AzureCredential};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::error::Error;
use crate::process::PerProcess;

/// Maximum number of cached clients.
const CACHED: usize = 8;

/// Clients by options. A forked child has none of its parent's threads, so it makes its own.
static CLIENTS: PerProcess<Mutex<HashMap<String, HttpClient>>> = PerProcess::new();

/// Returns the client of an earlier store with the same options.
#[derive(Debug)]
pub struct SharedConnector;

impl HttpConnector for SharedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        install_tls();
        let key = format!("{options:?}");
        let mut clients = CLIENTS.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = ReqwestConnector::default().connect(options)?;
        if clients.len() >= CACHED {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// The request that completes an upload of several parts.
#[derive(Clone, Debug)]
pub enum CompletionRequest {
    S3,
    Azure {
        account: String,
        /// The key of the account, which signs the condition, too.
        credential: Option<Arc<AzureCredential>>,
    },
}

impl CompletionRequest {
    /// Whether `request` completes an upload.
    fn is(&self, request: &HttpRequest) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let has = |start| query.split('&').any(|part| part.starts_with(start));
        match self {
            Self::S3 => request.method().as_str() == "POST" && has("uploadId="),
            Self::Azure { .. } => request.method().as_str() == "PUT" && has("comp=blocklist"),
        }
    }

    /// Lets `request` fail if the object exists.
    ///
    /// # Errors
    /// If the request cannot be signed again: without the condition, it would replace an object.
    fn add_condition(&self, request: &mut HttpRequest) -> Result<(), HttpError> {
        let any = "*".parse();
        let any = any.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        request.headers_mut().insert("if-none-match", any);
        let authorization = request.headers().get("authorization");
        let has_key =
            authorization.is_some_and(|value| value.as_bytes().starts_with(b"SharedKey "));
        match self {
            // Only signatures with the key of an Azure account include the header.
            Self::Azure {
                account,
                credential,
            } if has_key => {
                let credential = credential.as_ref().ok_or_else(|| {
                    let message = "the key that signs the condition of the upload is unknown; give account_key";
                    HttpError::new(HttpErrorKind::Unknown, Error::invalid(message))
                })?;
                request.headers_mut().remove("authorization");
                let authorizer = AzureAuthorizer::new(credential, account);
                let signed = authorizer.try_authorize(request);
                signed.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
            }
            _ => Ok(()),
        }
    }
}

/// As [`SharedConnector`]; uploads of several parts are completed only if the object does not exist. `object_store`
/// has this condition for objects of one part alone.
#[derive(Debug)]
pub struct CreatingConnector(pub CompletionRequest);

impl HttpConnector for CreatingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = SharedConnector.connect(options)?;
        let completion = self.0.clone();
        Ok(HttpClient::new(CreatingService { client, completion }))
    }
}

#[derive(Debug)]
struct CreatingService {
    client: HttpClient,
    completion: CompletionRequest,
}

#[async_trait]
impl HttpService for CreatingService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if self.completion.is(&request) {
            self.completion.add_condition(&mut request)?;
        }
        self.client.execute(request).await
    }
}

/// Installs the cryptography provider of TLS, unless the program has installed one.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread has installed a provider, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use object_store::azure::AzureAccessKey;
    use object_store::client::HttpRequestBody;

    use super::*;

    #[test]
    fn a_condition_is_signed_or_the_request_fails() {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = "https://host/container/x?comp=blocklist".parse().unwrap();
        let headers = request.headers_mut();
        headers.insert("authorization", "SharedKey ours:signature".parse().unwrap());
        let azure = |credential| CompletionRequest::Azure {
            account: "ours".to_owned(),
            credential,
        };
        let error = azure(None).add_condition(&mut request.clone()).unwrap_err();
        assert!(error.to_string().contains("give account_key"), "{error}");
        let key = AzureCredential::AccessKey(AzureAccessKey::try_new("a2V5").unwrap());
        for (completion, is_signed) in [
            (CompletionRequest::S3, false),
            (azure(Some(Arc::new(key))), true),
        ] {
            let mut changed = request.clone();
            completion.add_condition(&mut changed).unwrap();
            assert_eq!(changed.headers()["if-none-match"], "*");
            let found: Vec<_> = changed.headers().get_all("authorization").iter().collect();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0] != "SharedKey ours:signature", is_signed);
        }
    }
}
