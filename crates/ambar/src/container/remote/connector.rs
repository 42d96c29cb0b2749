//! HTTP clients shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are used again.

use std::collections::HashMap;
use std::sync::Mutex;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};

use crate::process::PerProcess;

/// Sets of options whose clients are kept.
const KEPT: usize = 8;

/// Clients by options. A forked child has none of its parent's threads, so it makes its own.
static CLIENTS: PerProcess<Mutex<HashMap<String, HttpClient>>> = PerProcess::new();

/// Gives the client that an earlier store has used, where there is one.
#[derive(Debug)]
pub struct Shared;

impl HttpConnector for Shared {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        install_tls();
        let key = format!("{options:?}");
        let mut clients = CLIENTS.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = ReqwestConnector::default().connect(options)?;
        if clients.len() >= KEPT {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Chooses what TLS computes with, unless the program has chosen already.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails where another thread was faster, and that one's is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
