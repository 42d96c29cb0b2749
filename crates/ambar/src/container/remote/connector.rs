//! HTTP clients, shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are reused.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use object_store::ClientOptions;
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

/// As [`SharedConnector`]; uploads of several parts are completed only if the object does not exist. `object_store`
/// has this condition for objects of one part alone.
#[derive(Debug)]
pub struct CreatingConnector;

impl HttpConnector for CreatingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = SharedConnector.connect(options)?;
        Ok(HttpClient::new(CreatingService(client)))
    }
}

#[derive(Debug)]
struct CreatingService(HttpClient);

#[async_trait]
impl HttpService for CreatingService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let query = request.uri().query().unwrap_or_default();
        let completes = query.split('&').any(|part| part.starts_with("uploadId="));
        if request.method().as_str() == "POST"
            && completes
            && let Ok(any) = "*".parse()
        {
            request.headers_mut().insert("if-none-match", any);
        }
        self.0.execute(request).await
    }
}

/// Installs the cryptography provider of TLS, unless the program has installed one.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread has installed a provider, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
