//! HTTP clients, shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are reused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::azure::{AzureAuthorizer, AzureCredential};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

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
    fn add_condition(&self, request: &mut HttpRequest) {
        let is_signed = |request: &HttpRequest| {
            let header = request.headers().get("authorization");
            header.is_some_and(|value| value.as_bytes().starts_with(b"SharedKey "))
        };
        let Ok(any) = "*".parse() else { return };
        match self {
            // The signature of S3 does not include the header.
            Self::S3 => {
                request.headers_mut().insert("if-none-match", any);
            }
            Self::Azure {
                account,
                credential,
            } if is_signed(request) => {
                let Some(credential) = credential else { return };
                let mut signed = request.clone();
                signed.headers_mut().remove("authorization");
                signed.headers_mut().insert("if-none-match", any);
                let authorizer = AzureAuthorizer::new(credential, account);
                if authorizer.try_authorize(&mut signed).is_ok() {
                    *request = signed;
                }
            }
            Self::Azure { .. } => {
                request.headers_mut().insert("if-none-match", any);
            }
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
            self.completion.add_condition(&mut request);
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
