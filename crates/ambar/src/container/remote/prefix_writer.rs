//! Writes a directory container as objects with a common prefix, safely beside other writers.
//!
//! An entry is put at its key if no object is there, otherwise below `.ambar`. The list of entries, `.ambar/commit`,
//! says where each entry is, and a commit replaces it with one conditional request: of two writers that started from
//! the same commit, the second one fails. `docs/format.md`, section 1.7, argues why nothing is lost.

use std::collections::{BTreeMap, HashSet};
use std::path::Path as FilePath;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{CopyOptions, Error as Refusal, PutMode, PutPayload, PutResult, UpdateVersion};

use super::super::directory::{self, FileRecord, List};
use super::super::state::{State, nothing_committed};
use super::super::{
    Container, ContainerWriter, CreateOptions, SharedEntry, SharedLocation, SharedObjectsInfo,
    file, key,
};
use super::client;
use super::entry_sender::{ENTRIES_IN_FLIGHT, EntryRequest, EntrySender, write_error};
use super::prefix::PrefixReader;
use super::runtime;
use super::service::{Completion, Service, WritableStore};
use super::task_entries;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::random;

/// The root's metadata, which makes the directory a Zarr hierarchy: never put before the commit.
const ROOT: &str = "zarr.json";

/// An empty object that exists before a new store has other ones: its writer may replace them.
const MARKER: &str = ".ambar/objects";

/// Most entries of earlier writers that the first commit of a writer copies to their keys.
const MAX_COPIED: usize = 256;

/// The writer of a directory of objects.
pub struct PrefixWriter {
    service: Arc<Service>,
    store: Arc<dyn WritableStore>,
    /// The last commit.
    last: List,
    /// The version of its list; `None` before the first commit.
    version: Option<UpdateVersion>,
    /// The time when the list was read, as the service says.
    time: i64,
    /// The next commit.
    list: List,
    changed: bool,
    /// Whether this writer has committed.
    has_committed: bool,
    sender: EntrySender,
    /// The URL and the options of the service, for other processes.
    address: Option<(String, BTreeMap<String, String>)>,
    state: State,
    limits: Limits,
}

impl PrefixWriter {
    /// A new directory at the URL of `service`.
    ///
    /// # Errors
    /// `Exists` if there is a store, and it is not to be overwritten; `Unsupported` if the service cannot be written to.
    pub fn create(service: Arc<Service>, options: &CreateOptions) -> Result<Self> {
        let mut writer = Self::open(service, &options.limits)?;
        let exists = writer.version.is_some();
        // Copies after the commit would replace the objects of other programs.
        let is_own = exists || client::look(&writer.service, MARKER)?.is_some();
        if !is_own && !client::is_empty(&writer.service)? {
            let message = "other objects are below the URL; choose another URL, or remove them";
            return Err(Error::exists(message).in_file(&writer.service.location));
        }
        if exists && !options.overwrite {
            let message = "the store exists; choose another URL, or replace it with `overwrite`";
            return Err(Error::exists(message).in_file(&writer.service.location));
        }
        if !writer.last.is_of_objects {
            writer.check_conditions()?;
        }
        writer.list.entries.clear();
        writer.changed = true;
        Ok(writer)
    }

    /// The directory at the URL of `service`, to write further commits.
    ///
    /// # Errors
    /// `NotFound` if there is no store; `Unsupported` if another program wrote it; `Corrupt`, `Io`.
    pub fn append(service: Arc<Service>, limits: &Limits) -> Result<Self> {
        let mut writer = Self::open(Arc::clone(&service), limits)?;
        if writer.version.is_some() {
            if !writer.last.is_of_objects {
                writer.check_conditions()?;
            }
            return Ok(writer);
        }
        let location = service.location.clone();
        // `NotFound` if there is nothing at all.
        PrefixReader::open(service, limits)?;
        let message = "another program wrote this directory, so it cannot be appended to; copy its arrays into a new store";
        Err(Error::unsupported(message).in_file(location))
    }

    fn open(service: Arc<Service>, limits: &Limits) -> Result<Self> {
        let store = service.writable(Completion::Replace)?;
        let found = client::whole(&service, directory::LIST, limits.directory_bytes)?;
        let mut time = 0;
        let mut version = None;
        let mut last = List::default();
        if let Some((text, found)) = found {
            last = List::parse(&text).map_err(|error| error.in_file(&service.location))?;
            if !last.is_of_objects {
                // Entries may be at both of their names.
                PrefixReader::open(Arc::clone(&service), limits)?;
            }
            time = found.modified;
            version = Some(UpdateVersion {
                e_tag: found.tag,
                version: found.version,
            });
        }
        Ok(Self {
            sender: EntrySender::new(Arc::clone(&service), Arc::clone(&store)),
            service,
            store,
            list: last.clone(),
            last,
            version,
            time,
            changed: false,
            has_committed: false,
            address: None,
            state: State::new(),
            limits: *limits,
        })
    }

    /// Puts the marker, and checks that the service obeys conditions: one that ignores them would lose commits.
    fn check_conditions(&mut self) -> Result<()> {
        let store = Arc::clone(&self.store);
        let path = self.service.object(MARKER)?;
        let found = runtime::wait(async move {
            let put = |mode| client::put_if(&*store, &path, PutPayload::new(), mode);
            // The client may have repeated the request, and an interrupted writer may have left the marker.
            is_refused(put(PutMode::Create).await)?;
            // Services compare one of the two.
            let other = UpdateVersion {
                e_tag: Some(format!("\"{:032x}\"", u128::MAX)),
                version: Some("1".to_owned()),
            };
            let obeys_none = is_refused(put(PutMode::Create).await)?;
            Ok(obeys_none && is_refused(put(PutMode::Update(other)).await)?)
        })?;
        match found.map_err(|error: Refusal| write_error(&self.service, &error, ""))? {
            true => Ok(()),
            false => {
                let message = "the service ignores the conditions If-Match and If-None-Match of requests that put objects, \
                               so several writers could lose commits; write one object, at a URL without `/` at its \
                               end";
                Err(Error::unsupported(message).in_file(&self.service.location))
            }
        }
    }

    /// The same writer; tasks in other processes reach the service by `url` and `storage`.
    pub fn shared_at(mut self, url: &str, storage: &BTreeMap<String, String>) -> Self {
        self.address = Some((url.to_owned(), storage.clone()));
        self
    }

    fn location(&self) -> &FilePath {
        FilePath::new(&self.service.location)
    }

    /// Runs `action`; after an error the writer is poisoned.
    fn guarded<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check()?;
        let result = action(self);
        if result.is_err() {
            self.state.fail();
        }
        result.map_err(|error| error.in_file(&self.service.location))
    }

    fn start_entry(&mut self, key: &str, bytes: Vec<u8>, seal: Option<u32>) -> Result<()> {
        let record = self.sender.send(EntryRequest {
            key,
            bytes,
            seal,
            is_free: key != ROOT && !self.last.entries.contains_key(key),
            is_first_commit: self.version.is_none(),
        })?;
        self.list.entries.insert(key.into(), record);
        self.changed = true;
        self.note_sent();
        Ok(())
    }

    /// Notes the names of the objects that are stored.
    fn note_sent(&mut self) {
        for sent in self.sender.take_sent() {
            // A later put may have replaced the entry.
            let record = self.list.entries.get_mut(&sent.key);
            if let Some(record) = record.filter(|record| record.number == sent.number) {
                record.is_staged = sent.is_staged;
            }
        }
    }

    fn wait_for_all(&mut self) -> Result<()> {
        self.sender.wait_for_all()?;
        self.note_sent();
        Ok(())
    }

    fn read_entry(&mut self, key: &str) -> Result<Vec<u8>> {
        self.wait_for_all()?;
        let record = self.list.entries[key];
        let object = match record.is_staged {
            true => directory::staged_key(record.number),
            false => key.to_owned(),
        };
        let found = client::whole(&self.service, &object, record.len)?;
        let missing = || Error::corrupt("the entry's object is missing; open the store again");
        let (bytes, _) = found.ok_or_else(missing)?;
        file::check_crc32(crc32fast::hash(&bytes), Some(record.crc32))
            .map_err(|error| error.at_node(key))?;
        Ok(bytes)
    }

    fn write_commit(&mut self) -> Result<()> {
        self.wait_for_all()?;
        let (now, before) = (&self.list.entries, &self.last.entries);
        let removed = before.keys().filter(|key| !now.contains_key(*key));
        let mut removed: Vec<_> = removed.cloned().collect();
        removed.sort_unstable();
        let numbers = now.values().map(|record| record.number);
        self.list.next = numbers.max().map_or(self.last.next, |last| last + 1);
        self.list.removed = removed;
        self.list.sequence = self.last.sequence + 1;
        self.list.is_of_objects = true;
        let text = self.list.encode();
        Limits::check(
            "the list of entries",
            text.len() as u64,
            self.limits.directory_bytes,
        )?;
        self.state.doubt();
        self.version = Some(self.put_list(text)?);
        self.state.succeed();
        self.copy_to_keys();
        self.last = self.list.clone();
        // The time of the list is unknown: the first read looks for later commits.
        self.time = 0;
        (self.changed, self.has_committed) = (false, true);
        Ok(())
    }

    /// Replaces the list of entries by `text`, if it is still that of the last commit. Returns its version.
    fn put_list(&self, text: Vec<u8>) -> Result<UpdateVersion> {
        let mode = match &self.version {
            Some(version) => PutMode::Update(version.clone()),
            None => PutMode::Create,
        };
        let (store, path) = (
            Arc::clone(&self.store),
            self.service.object(directory::LIST)?,
        );
        let payload = PutPayload::from(text.clone());
        let put =
            runtime::wait(async move { client::put_if(&*store, &path, payload, mode).await })?;
        match put {
            Ok(PutResult {
                e_tag: Some(e_tag),
                version,
                ..
            }) => Ok(UpdateVersion {
                e_tag: Some(e_tag),
                version,
            }),
            put => self.find_list(&text, put.map(drop)),
        }
    }

    /// Looks up whether the list is `text`, whose writing has the result `put`: the answer may have been lost, or the
    /// client may have repeated the request. The numbers of its entries make it different from those of other writers.
    fn find_list(&self, text: &[u8], put: object_store::Result<()>) -> Result<UpdateVersion> {
        let limit = self.limits.directory_bytes;
        let found = client::whole(&self.service, directory::LIST, limit);
        match (found, put) {
            (Ok(Some((bytes, found))), _) if bytes == text => Ok(UpdateVersion {
                e_tag: found.tag,
                version: found.version,
            }),
            (Err(error), _) => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "it is unknown whether the commit has succeeded: the answer of the service was lost, and the list of \
                     entries cannot be read ({}); open the store again, and look for the changes before repeating them",
                    error.message()
                ),
            )),
            (Ok(_), Err(Refusal::AlreadyExists { .. } | Refusal::Precondition { .. }) | Ok(())) => {
                let message = "another writer has committed since this one opened the store; open it again and repeat \
                               the changes";
                Err(Error::busy(message))
            }
            (Ok(_), Err(error)) => Err(write_error(&self.service, &error, "")),
        }
    }

    /// Copies entries that are below `.ambar` to their keys, for readers of other programs. Errors do not matter: the
    /// list says where the entries are.
    fn copy_to_keys(&self) {
        let staged = self
            .list
            .entries
            .iter()
            .filter(|(_, record)| record.is_staged);
        let is_known = |key: &str, record: &FileRecord| {
            self.last
                .entries
                .get(key)
                .is_some_and(|last| last.number == record.number)
        };
        let (old, mut copied): (Vec<_>, Vec<_>) = staged
            .map(|(key, record)| (&**key, record))
            .partition(|(key, record)| is_known(key, record));
        // The last writer may have been killed before it had copied all.
        if !self.has_committed && old.len() <= MAX_COPIED {
            copied.extend(old);
        }
        copied.sort_unstable_by_key(|(key, _)| *key == ROOT);
        let paths = copied.into_iter().filter_map(|(key, record)| {
            let from = self.service.object(&directory::staged_key(record.number));
            Some((from.ok()?, self.service.object(key).ok()?, key == ROOT))
        });
        let (root, others): (Vec<_>, Vec<_>) = paths.partition(|(_, _, is_root)| *is_root);
        let store = Arc::clone(&self.store);
        let copy = move |(from, to, _): (Path, Path, bool)| {
            let store = Arc::clone(&store);
            async move {
                let _ = store.copy_opts(&from, &to, CopyOptions::default()).await;
            }
        };
        let _ = runtime::wait(async move {
            stream::iter(others)
                .for_each_concurrent(ENTRIES_IN_FLIGHT, &copy)
                .await;
            stream::iter(root).for_each(copy).await;
        });
    }
}

/// The beginnings of a key that end before a `/`.
fn parents(key: &str) -> impl Iterator<Item = &str> {
    key.match_indices('/').map(|(at, _)| &key[..at])
}

/// Whether the condition of a put was not satisfied.
fn is_refused(answer: object_store::Result<PutResult>) -> object_store::Result<bool> {
    match answer {
        Ok(_) => Ok(false),
        Err(Refusal::AlreadyExists { .. } | Refusal::Precondition { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

impl ContainerWriter for PrefixWriter {
    fn check(&self) -> Result<()> {
        self.state.check(self.location())
    }

    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(&self.service.location))?;
        self.guarded(|writer| writer.start_entry(key, parts.concat(), seal))
    }

    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.check()?;
        let Some(record) = self.list.entries.get(key) else {
            return Ok(None);
        };
        Limits::check("an entry", record.len, limit)
            .map_err(|error| error.at_node(key).in_file(&self.service.location))?;
        self.guarded(|writer| writer.read_entry(key)).map(Some)
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(&self.service.location))?;
        self.check()?;
        self.changed |= self.list.entries.remove(key).is_some();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.check()?;
        if !self.changed {
            return Ok(());
        }
        self.guarded(Self::write_commit)
    }

    fn share_objects(&mut self, names: &[&str]) -> Result<Option<SharedObjectsInfo>> {
        self.check()?;
        let Some((url, storage)) = self.address.clone() else {
            return Ok(None);
        };
        let keys = self.last.entries.keys();
        let nodes: HashSet<&str> = keys.flat_map(|key| parents(key)).collect();
        let existing = names.iter().filter(|name| nodes.contains(*name));
        let info = SharedObjectsInfo {
            id: format!("{:016x}{:016x}", random::number()?, random::number()?),
            is_new: self.version.is_none(),
            existing: existing.map(|name| (*name).to_owned()).collect(),
            url,
            storage,
        };
        task_entries::begin(&self.service, &self.store, &info)?;
        Ok(Some(info))
    }

    fn adopt(&mut self, entries: Vec<SharedEntry>, _end: u64) -> Result<()> {
        self.check()?;
        for entry in entries {
            key::validate_key(&entry.key).map_err(|error| error.in_file(&self.service.location))?;
            let SharedLocation::Object { number, is_staged } = entry.location else {
                let message = "the entry is in a file; adopt it in a single file";
                return Err(Error::invalid(message).at_node(&entry.key));
            };
            let record = FileRecord {
                len: entry.len,
                crc32: entry.crc32,
                seal: entry.seal,
                number,
                is_staged,
            };
            self.list.entries.insert(entry.key.into(), record);
            self.changed = true;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Arc<dyn Container>> {
        self.check()?;
        if self.last.sequence == 0 {
            return Err(nothing_committed(self.location()));
        }
        let (service, list) = (Arc::clone(&self.service), self.last.clone());
        let reader = PrefixReader::of(service, Some(list), self.time, &self.limits);
        Ok(Arc::new(reader))
    }
}

impl std::fmt::Debug for PrefixWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (location, commit) = (&self.service.location, self.last.sequence);
        write!(f, "PrefixWriter({location}, commit {commit})")
    }
}
