//! Entries of a directory of objects that tasks in other processes put, for the commit of one of them.
//!
//! A task puts objects as the writer of the directory does, so objects of tasks whose commit fails change nothing. The
//! object `.ambar/task-<id>` exists until the commit ends, so that tasks stop then.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::{PutMode, PutPayload};

use super::super::directory::FileRecord;
use super::super::{EntryPutter, NewEntry, SharedEntry, SharedLocation, SharedObjectsInfo};
use super::client;
use super::entry_sender::{EntryRequest, EntrySender, write_error};
use super::errors;
use super::runtime;
use super::service::{Completion, Service, WritableStore};
use crate::error::{Error, Result};

/// Puts the object that exists until the commit ends.
///
/// # Errors
/// `Io`.
pub fn begin(
    service: &Arc<Service>,
    store: &Arc<dyn WritableStore>,
    info: &SharedObjectsInfo,
) -> Result<()> {
    let path = service.object(&marker(info))?;
    let store = Arc::clone(store);
    let put = runtime::wait(async move {
        let put = store.put_opts(&path, PutPayload::new(), PutMode::Overwrite.into());
        put.await
    })?;
    put.map(drop)
        .map_err(|error| write_error(service, &error, ""))
}

/// Removes the object that exists until the commit ends.
///
/// # Errors
/// `Io`, unless the object does not exist or may not be deleted: then it stays, which is harmless.
pub fn end(service: &Service, info: &SharedObjectsInfo) -> Result<()> {
    let (path, store) = (
        service.object(&marker(info))?,
        service.writable(Completion::Replace)?,
    );
    let deleted = runtime::wait(async move { client::delete(&*store, &path).await })?;
    match deleted {
        Err(error) if !errors::is_absence(&error) && !errors::is_denial(&error) => {
            Err(write_error(service, &error, ""))
        }
        _ => Ok(()),
    }
}

fn marker(info: &SharedObjectsInfo) -> String {
    format!(".ambar/task-{}", info.id)
}

/// Puts entries in a task.
pub struct TaskEntries {
    service: Arc<Service>,
    info: SharedObjectsInfo,
    sender: EntrySender,
    /// The entries since the last call of `finish`, by the numbers of their puts.
    records: HashMap<u64, FileRecord>,
}

impl TaskEntries {
    /// Joins a commit.
    ///
    /// # Errors
    /// `Unsupported` if the service cannot be written to; `Invalid` for wrong options.
    pub fn join(service: Arc<Service>, info: SharedObjectsInfo) -> Result<Self> {
        let store = service.writable(Completion::Replace)?;
        Ok(Self {
            sender: EntrySender::new(Arc::clone(&service), store),
            service,
            info,
            records: HashMap::new(),
        })
    }
}

impl EntryPutter for TaskEntries {
    fn location(&self) -> &str {
        &self.service.location
    }

    fn check(&self) -> Result<()> {
        match client::look(&self.service, &marker(&self.info))? {
            Some(_) => Ok(()),
            None => {
                let message = "the commit has ended or was cancelled, or the credentials of this task do not permit \
                               reading; open another commit and use its invitation, or check the credentials";
                Err(Error::invalid(message).in_file(&self.service.location))
            }
        }
    }

    fn put(&mut self, entry: NewEntry<'_>, _following: u64) -> Result<()> {
        let existing = self.info.existing.iter();
        let is_free = !existing.into_iter().any(|name| {
            let rest = entry.key.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        let sent = self.sender.send(EntryRequest {
            key: &entry.key,
            bytes: entry.parts.concat(),
            seal: entry.seal,
            is_free,
            is_first_commit: self.info.is_new,
        });
        let record = sent.map_err(|error| error.in_file(&self.service.location))?;
        self.records.insert(record.number, record);
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<SharedEntry>> {
        let sent = self.sender.wait_for_all();
        sent.map_err(|error| error.in_file(&self.service.location))?;
        let mut entries = Vec::new();
        for sent in self.sender.take_sent() {
            if let Some(record) = self.records.remove(&sent.number) {
                entries.push(SharedEntry {
                    key: sent.key.into(),
                    location: SharedLocation::Object {
                        number: sent.number,
                        is_staged: sent.is_staged,
                    },
                    len: record.len,
                    crc32: record.crc32,
                    seal: record.seal,
                });
            }
        }
        Ok(entries)
    }
}
