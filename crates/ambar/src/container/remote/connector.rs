//! HTTP clients, shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are reused.

use std::collections::HashMap;
use std::sync::Mutex;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};

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

/// Installs the cryptography provider of TLS, unless the program has installed one.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread has installed a provider, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
