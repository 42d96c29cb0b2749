//! HTTP clients shared by all stores that are opened with the same options: reading the system's
//! certificates takes a tenth of a second, and open connections are used again.

use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};

/// Sets of options whose clients are kept.
const KEPT: usize = 8;

/// Clients by process (a forked child has none of its parent's threads) and options.
type Clients = Mutex<Option<HashMap<(u32, String), HttpClient>>>;

static CLIENTS: Clients = Mutex::new(None);

/// Gives the client that an earlier store has used, where there is one.
#[derive(Debug)]
pub struct Shared;

impl HttpConnector for Shared {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        install_tls();
        let key = (std::process::id(), format!("{options:?}"));
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = clients.get_or_insert_default();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = ReqwestConnector::default().connect(options)?;
        if clients.len() >= KEPT {
            // Those of a parent process belong to threads that are not there: they are left alone.
            for ((process, _), old) in clients.drain() {
                if process != key.0 {
                    std::mem::forget(old);
                }
            }
        }
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Chooses what TLS computes with, unless the program has chosen already.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It fails where there is one already, and that one is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
