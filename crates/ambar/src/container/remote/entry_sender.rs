//! Sends the entries of a directory of objects, several at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error as Refusal, GetOptions, PutMode, PutPayload};

use super::super::directory::{self, FileRecord};
use super::client;
use super::errors;
use super::runtime::Task;
use super::service::{Service, WritableStore};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::random;

/// Most bytes and entries that are sent at the same time, unless one entry is longer.
const BYTES_IN_FLIGHT: usize = 64 << 20;
pub const ENTRIES_IN_FLIGHT: usize = 16;

/// Sends entries.
pub struct EntrySender {
    service: Arc<Service>,
    store: Arc<dyn WritableStore>,
    sending: VecDeque<SendingEntry>,
    bytes_in_flight: usize,
    sent: Vec<SentEntry>,
    /// A forked child has none of the threads.
    process: Process,
}

/// An entry to send.
pub struct EntryRequest<'a> {
    pub key: &'a str,
    pub bytes: Vec<u8>,
    pub seal: Option<u32>,
    /// Whether the last commit has no entry of this key.
    pub is_free: bool,
    /// Whether there is no commit yet.
    pub is_first_commit: bool,
}

/// An entry that is being sent. The result is whether it has a name below `.ambar`.
struct SendingEntry {
    key: Box<str>,
    number: u64,
    len: usize,
    task: Task<object_store::Result<bool>>,
}

/// An entry that is stored.
pub struct SentEntry {
    /// Its key.
    pub key: Box<str>,
    /// The number of the put.
    pub number: u64,
    /// Whether its object has a name below `.ambar`, instead of the key.
    pub is_staged: bool,
}

impl EntrySender {
    /// Sends entries to the prefix of `service`, with its writable client `store`.
    pub fn new(service: Arc<Service>, store: Arc<dyn WritableStore>) -> Self {
        Self {
            service,
            store,
            sending: VecDeque::new(),
            bytes_in_flight: 0,
            sent: Vec::new(),
            process: Process::current(),
        }
    }

    /// Starts to send an entry, and waits while too many are being sent. Returns its record; `take_sent` has the name of
    /// its object.
    ///
    /// # Errors
    /// Those of this entry and of earlier ones.
    pub fn send(&mut self, entry: EntryRequest<'_>) -> Result<FileRecord> {
        let len = entry.bytes.len();
        let is_full = |sender: &Self| {
            sender.sending.len() >= ENTRIES_IN_FLIGHT
                || sender.bytes_in_flight + len > BYTES_IN_FLIGHT
        };
        while !self.sending.is_empty() && is_full(self) {
            self.wait_for_one()?;
        }
        let number = new_number()?;
        let record = FileRecord {
            len: len as u64,
            crc32: crc32fast::hash(&entry.bytes),
            seal: entry.seal,
            number,
            is_staged: true,
        };
        let put = EntryPut {
            store: Arc::clone(&self.store),
            at: entry
                .is_free
                .then(|| self.service.object(entry.key))
                .transpose()?,
            staged: self.service.object(&directory::staged_key(number))?,
            is_first_commit: entry.is_first_commit,
            payload: PutPayload::from(entry.bytes),
        };
        let task = Task::start(put.run())?;
        self.bytes_in_flight += len;
        self.sending.push_back(SendingEntry {
            key: entry.key.into(),
            number,
            len,
            task,
        });
        Ok(record)
    }

    /// The entries that are stored since the last call.
    pub fn take_sent(&mut self) -> Vec<SentEntry> {
        std::mem::take(&mut self.sent)
    }

    /// Waits until all entries are stored.
    ///
    /// # Errors
    /// As `send`.
    pub fn wait_for_all(&mut self) -> Result<()> {
        while !self.sending.is_empty() {
            self.wait_for_one()?;
        }
        Ok(())
    }

    /// Waits until the entry is stored whose sending was started first.
    fn wait_for_one(&mut self) -> Result<()> {
        let Some(sending) = self.sending.pop_front() else {
            return Ok(());
        };
        self.bytes_in_flight -= sending.len;
        let is_staged = sending.task.wait()?;
        self.sent.push(SentEntry {
            is_staged: is_staged
                .map_err(|error| write_error(&self.service, &error, &sending.key))?,
            key: sending.key,
            number: sending.number,
        });
        Ok(())
    }
}

/// The error of a request that writes `key`.
pub fn write_error(service: &Service, error: &object_store::Error, key: &str) -> Error {
    if matches!(error, Refusal::NotImplemented { .. }) {
        let message = "a directory of objects needs conditional requests, which the option conditional_put \
                       disables; write one object, at a URL without `/` at its end";
        return Error::unsupported(message).in_file(&service.location);
    }
    errors::to_write_error(error, &service.access, &service.location, key)
}

impl Drop for EntrySender {
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget(std::mem::take(&mut self.sending));
        }
    }
}

/// The put of an entry.
struct EntryPut {
    store: Arc<dyn WritableStore>,
    /// The key, if the last commit has no entry there.
    at: Option<Path>,
    staged: Path,
    /// Whether the store has no commit yet.
    is_first_commit: bool,
    payload: PutPayload,
}

impl EntryPut {
    /// Puts the entry. Returns whether it has its name below `.ambar`.
    async fn run(self) -> object_store::Result<bool> {
        if let Some(at) = &self.at {
            match self.create(at).await {
                Ok(()) => return Ok(false),
                // Before the first commit, nothing but equal requests of interrupted writers changes an object.
                Err(Refusal::AlreadyExists { .. })
                    if self.is_first_commit && self.is_stored(at).await =>
                {
                    return Ok(false);
                }
                Err(Refusal::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match self.create(&self.staged).await {
            Ok(()) => Ok(true),
            // The client has repeated the request.
            Err(Refusal::AlreadyExists { .. }) if self.is_stored(&self.staged).await => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, path: &Path) -> object_store::Result<()> {
        let payload = self.payload.clone();
        let put = client::put_if(&*self.store, path, payload, PutMode::Create);
        put.await.map(drop)
    }

    /// Whether the object at `path` has the bytes of the entry.
    async fn is_stored(&self, path: &Path) -> bool {
        let Ok(found) = self.store.get_opts(path, GetOptions::default()).await else {
            return false;
        };
        if found.meta.size != self.payload.content_length() as u64 {
            return false;
        }
        let own = self.payload.iter().flat_map(|part| part.iter());
        found.bytes().await.is_ok_and(|bytes| bytes.iter().eq(own))
    }
}

/// A number of a put that no other writer uses: random, of 62 bits.
fn new_number() -> Result<u64> {
    Ok(random::number()? >> 2)
}
