//! Writes a directory container as objects with a common prefix, safely beside other writers.
//!
//! An entry is put at its key if no object is there, otherwise below `.ambar`. The list of entries, `.ambar/commit`,
//! says where each entry is, and a commit replaces it with one conditional request: of two writers that started from
//! the same commit, the second one fails. `docs/format.md`, section 1.7, argues why nothing is lost.

use std::collections::VecDeque;
use std::path::Path as FilePath;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as Refusal, GetOptions, PutMode, PutPayload, PutResult, UpdateVersion,
};

use super::super::directory::{self, FileRecord, List};
use super::super::state::{State, nothing_committed};
use super::super::{Container, ContainerWriter, CreateOptions, file, key};
use super::client;
use super::errors;
use super::prefix::PrefixReader;
use super::runtime::{self, Task};
use super::service::{Completion, Service, WritableStore};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::random;

/// The root's metadata, which makes the directory a Zarr hierarchy: never put before the commit.
const ROOT: &str = "zarr.json";

/// An empty object that exists before a new store has other ones: its writer may replace them.
const MARKER: &str = ".ambar/objects";

/// Most bytes and entries that are sent at the same time, unless one entry is longer.
const BYTES_IN_FLIGHT: usize = 64 << 20;
const ENTRIES_IN_FLIGHT: usize = 16;

/// Most entries of earlier writers that the first commit of a writer copies to their keys.
const MOST_COPIED: usize = 256;

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
    sending: VecDeque<SendingEntry>,
    bytes_in_flight: usize,
    state: State,
    limits: Limits,
}

/// An entry that is being sent. The result is whether it has a name below `.ambar`.
struct SendingEntry {
    key: Box<str>,
    number: u64,
    len: usize,
    task: Task<object_store::Result<bool>>,
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
            service,
            store,
            list: last.clone(),
            last,
            version,
            time,
            changed: false,
            has_committed: false,
            sending: VecDeque::new(),
            bytes_in_flight: 0,
            state: State::new(),
            limits: *limits,
        })
    }

    /// Puts the marker, and checks that the service obeys conditions: one that ignores them would lose commits.
    fn check_conditions(&mut self) -> Result<()> {
        let store = Arc::clone(&self.store);
        let path = self.service.object(MARKER)?;
        let found = runtime::wait(async move {
            let put = |mode: PutMode| store.put_opts(&path, PutPayload::new(), mode.into());
            // The client may have repeated the request, and an interrupted writer may have left the marker.
            is_refused(put(PutMode::Create).await)?;
            let other = UpdateVersion {
                e_tag: Some(format!("\"{:032x}\"", u128::MAX)),
                version: None,
            };
            let obeys_none = is_refused(put(PutMode::Create).await)?;
            Ok(obeys_none && is_refused(put(PutMode::Update(other)).await)?)
        })?;
        match found.map_err(|error: Refusal| self.failed(&error, ""))? {
            true => Ok(()),
            false => {
                let message = "the service ignores the conditions If-Match and If-None-Match of requests that put objects, \
                               so several writers could lose commits; write one object, at a URL without `/` at its \
                               end";
                Err(Error::unsupported(message).in_file(&self.service.location))
            }
        }
    }

    fn location(&self) -> &FilePath {
        FilePath::new(&self.service.location)
    }

    fn failed(&self, error: &object_store::Error, key: &str) -> Error {
        if matches!(error, Refusal::NotImplemented { .. }) {
            let message = "a directory of objects needs conditional requests, which the option conditional_put \
                           disables; write one object, at a URL without `/` at its end";
            return Error::unsupported(message).in_file(&self.service.location);
        }
        errors::to_write_error(error, self.service.hint, &self.service.location, key)
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
        let len = bytes.len();
        let is_full = |writer: &Self| {
            writer.sending.len() >= ENTRIES_IN_FLIGHT
                || writer.bytes_in_flight + len > BYTES_IN_FLIGHT
        };
        while !self.sending.is_empty() && is_full(self) {
            self.wait_for_one()?;
        }
        let number = new_number()?;
        let record = FileRecord {
            len: len as u64,
            crc32: crc32fast::hash(&bytes),
            seal,
            number,
            is_staged: true,
        };
        let is_free = key != ROOT && !self.last.entries.contains_key(key);
        let put = EntryPut {
            store: Arc::clone(&self.store),
            at: is_free.then(|| self.service.object(key)).transpose()?,
            staged: self.service.object(&directory::staged_key(number))?,
            is_new: self.version.is_none(),
            payload: PutPayload::from(bytes),
        };
        let task = Task::start(put.run())?;
        self.bytes_in_flight += len;
        self.sending.push_back(SendingEntry {
            key: key.into(),
            number,
            len,
            task,
        });
        self.list.entries.insert(key.into(), record);
        self.changed = true;
        Ok(())
    }

    /// Waits until the entry is stored whose sending was started first.
    fn wait_for_one(&mut self) -> Result<()> {
        let Some(sent) = self.sending.pop_front() else {
            return Ok(());
        };
        self.bytes_in_flight -= sent.len;
        let is_staged = sent.task.wait()?;
        let is_staged = is_staged.map_err(|error| self.failed(&error, &sent.key))?;
        // A later put may have replaced the entry.
        let record = self.list.entries.get_mut(&sent.key);
        if let Some(record) = record.filter(|record| record.number == sent.number) {
            record.is_staged = is_staged;
        }
        Ok(())
    }

    fn wait_for_all(&mut self) -> Result<()> {
        while !self.sending.is_empty() {
            self.wait_for_one()?;
        }
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
        let put = runtime::wait(async move { store.put_opts(&path, payload, mode.into()).await })?;
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
            (Ok(_), Err(error)) => Err(self.failed(&error, "")),
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
        if !self.has_committed && old.len() <= MOST_COPIED {
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

/// Whether the condition of a put was not satisfied.
fn is_refused(answer: object_store::Result<PutResult>) -> object_store::Result<bool> {
    match answer {
        Ok(_) => Ok(false),
        Err(Refusal::AlreadyExists { .. } | Refusal::Precondition { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The put of an entry.
struct EntryPut {
    store: Arc<dyn WritableStore>,
    /// The key, if the last commit has no entry there.
    at: Option<Path>,
    staged: Path,
    /// Whether the store has no commit yet.
    is_new: bool,
    payload: PutPayload,
}

impl EntryPut {
    /// Puts the entry. Returns whether it has its name below `.ambar`.
    async fn run(self) -> object_store::Result<bool> {
        if let Some(at) = &self.at {
            match self.create(at).await {
                Ok(()) => return Ok(false),
                // Before the first commit, nothing but equal requests of interrupted writers changes an object.
                // Before the first commit, nothing but equal requests of interrupted writers changes an object.
                Err(Refusal::AlreadyExists { .. }) if self.is_new && self.is_stored(at).await => {
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
        let put = self.store.put_opts(path, payload, PutMode::Create.into());
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

impl Drop for PrefixWriter {
    fn drop(&mut self) {
        if !self.state.is_owner() {
            // A forked child has none of the threads.
            std::mem::forget(std::mem::take(&mut self.sending));
        }
    }
}

impl std::fmt::Debug for PrefixWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (location, commit) = (&self.service.location, self.last.sequence);
        write!(f, "PrefixWriter({location}, commit {commit})")
    }
}

/// A number of a put that no other writer uses: random, of 62 bits.
fn new_number() -> Result<u64> {
    Ok(random::number()? >> 2)
}
