//! Reads a directory container whose files are objects with a common prefix.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use super::super::directory::{self, FileRecord, List};
use super::super::read_ahead::{ReadAhead, Segment, SegmentCache};
use super::super::{
    CommitId, Container, Entry, EntryLocation, EntryRange, Usage, file, key, ranges,
};
use super::client::{self, JOINED_GAP, PIECE_BYTES, RangeRequest, Version};
use super::errors::replaced;
use super::service::Service;
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};
use crate::process::PerProcess;

/// The root's metadata: the last file that a commit moves to its key.
const ROOT: &str = "zarr.json";

/// One commit of a directory.
pub struct PrefixReader {
    service: Arc<Service>,
    /// The list of the commit; `None` if another program wrote the directory.
    list: Option<List>,
    /// The entries whose objects are not at their keys, by the names of the objects.
    staged: HashMap<String, (Box<str>, FileRecord)>,
    /// The time when `.ambar/commit` was written, and later the last time at which it was known to be current.
    known: AtomicI64,
    limits: Limits,
    /// The versions of the objects that have been read.
    versions: PerProcess<Mutex<HashMap<Arc<str>, Version>>>,
    cache: Arc<SegmentCache>,
}

impl PrefixReader {
    /// Opens the directory at the URL of `service`.
    ///
    /// # Errors
    /// `NotFound` if it does not exist; `Corrupt` if its list is damaged; `Busy` if a writer had
    /// not finished when it was uploaded; `Unsupported` if that cannot be determined; `Io`.
    pub fn open(service: Arc<Service>, limits: &Limits) -> Result<Self> {
        let found = client::whole(&service, directory::LIST, limits.directory_bytes)?;
        let (list, time) = match found {
            Some((text, version)) => {
                let list = List::parse(&text).map_err(|e| e.in_file(&service.location))?;
                (Some(list), version.modified)
            }
            None if client::look(&service, ROOT)?.is_some() => (None, 0),
            None => {
                let message = "expected a store, but neither `.ambar/commit` nor `zarr.json` exists below \
                               the URL; check it";
                return Err(Error::missing_file(message).in_file(&service.location));
            }
        };
        let reader = Self::of(service, list, time, limits);
        if let Some(list) = reader.list.as_ref().filter(|list| !list.is_of_objects) {
            reader
                .check_finished(list)
                .map_err(|error| error.in_file(reader.location()))?;
        }
        Ok(reader)
    }

    /// Reads the commit of `list`, which was written at the time `time`.
    pub fn of(service: Arc<Service>, list: Option<List>, time: i64, limits: &Limits) -> Self {
        let entries = list.iter().flat_map(|list| &list.entries);
        let staged = entries.filter(|(_, record)| record.is_staged);
        let staged = staged
            .map(|(key, record)| (directory::staged_key(record.number), (key.clone(), *record)))
            .collect();
        Self {
            service,
            list,
            staged,
            // Services return times in seconds: an object of the same time may be later.
            known: AtomicI64::new(time.saturating_sub(1)),
            limits: *limits,
            versions: PerProcess::new(),
            cache: Arc::default(),
        }
    }

    /// Checks that every entry of `list`, which was uploaded from files, is at its key, and not at its temporary name.
    fn check_finished(&self, list: &List) -> Result<()> {
        let last = list.entries.values().map(|record| record.number).max();
        let root = list.entries.get(ROOT).map(|record| record.number);
        let is_unfinished = match (last, root) {
            (None, _) => false,
            // The root's metadata is moved last, after all other entries.
            (Some(last), Some(root)) if last == root => {
                client::look(&self.service, &directory::staged_key(root))?.is_some()
            }
            _ => {
                let own = client::list(&self.service, directory::OWN).map_err(|error| {
                    Error::unsupported(format!(
                        "checking that the directory is complete needs a list of its files, which the server \
                         does not return ({}); store it as a single file",
                        error.message()
                    ))
                })?;
                let names = own.iter().map(|(key, _)| key.as_str());
                let numbers = list.entries.values().map(|record| record.number);
                let keys: Vec<String> = numbers.map(directory::staged_key).collect();
                names
                    .into_iter()
                    .any(|name| keys.iter().any(|key| key == name))
            }
        };
        if !is_unfinished {
            return Ok(());
        }
        Err(Error::busy(
            "a writer had not finished its commit when the directory was uploaded; let `ambar \
             repair` finish it, and upload it again",
        ))
    }

    fn known(&self, key: &str) -> Option<Version> {
        let versions = self.versions.lock();
        versions.get(key).cloned()
    }

    /// The key and the record of the entry whose object is `object`; `None` in directories of other programs.
    fn record(&self, object: &str) -> Option<(&str, FileRecord)> {
        if let Some((key, record)) = self.staged.get(object) {
            return Some((key, *record));
        }
        let (key, record) = self.list.as_ref()?.entries.get_key_value(object)?;
        Some((key, *record))
    }

    /// The key of the entry whose object is `object`, for messages.
    fn key_of<'a>(&'a self, object: &'a str) -> &'a str {
        self.record(object).map_or(object, |(key, _)| key)
    }

    /// Returns an error if a later commit has another entry for the key of `object`: then the object may have another
    /// content than the list says. Returns whether there is no later commit at all.
    fn check_current(&self, object: &str) -> Result<bool> {
        let (Some(list), Some((key, record))) = (&self.list, self.record(object)) else {
            return Ok(true);
        };
        if !list.is_of_objects {
            return Ok(true);
        }
        let found = client::whole(&self.service, directory::LIST, self.limits.directory_bytes)?;
        let (text, _) = found.ok_or_else(replaced)?;
        let last = List::parse(&text)?;
        match last.entries.get(key) == Some(&record) {
            true => Ok(last.commit_id() == list.commit_id()),
            false => Err(replaced()),
        }
    }

    /// Checks that the object agrees with the list, and stores its version.
    fn accept(&self, key: &Arc<str>, version: Version) -> Result<()> {
        let record = self.record(key).map(|(_, record)| record);
        // Objects below `.ambar` never change.
        let can_change = !self.staged.contains_key(&**key);
        let is_later = version.modified > self.known.load(Ordering::Relaxed);
        if can_change && record.is_some_and(|record| is_later || record.len != version.size) {
            // A later commit copies entries to keys.
            if self.check_current(key)? {
                self.known.fetch_max(version.modified, Ordering::Relaxed);
            }
        }
        if let Some(record) = record
            && record.len != version.size
        {
            return Err(Error::corrupt(format!(
                "the entry's object has {} bytes; expected {}: it was replaced, or not uploaded completely; \
                 open the store again, or upload it again",
                version.size, record.len
            )));
        }
        let mut versions = self.versions.lock();
        versions.insert(Arc::clone(key), version);
        Ok(())
    }

    fn fetch(&self, wanted: Vec<RangeRequest>) -> Result<Vec<Vec<u8>>> {
        let keys: Vec<Arc<str>> = wanted.iter().map(|part| Arc::clone(&part.key)).collect();
        let found = client::fetch(&self.service, wanted, client::SMALL_PIECE_BYTES);
        let found = found.map_err(|error| match error.kind() {
            crate::ErrorKind::NotFound | crate::ErrorKind::Corrupt => {
                if let Err(changed) = self.check_current(error.node()) {
                    let key = self.key_of(error.node());
                    return changed.at_node(key).in_file(self.location());
                }
                if error.kind() == crate::ErrorKind::Corrupt {
                    return error;
                }
                let message = "the entry's object is missing; upload the store again";
                Error::corrupt(message)
                    .at_node(error.node())
                    .in_file(error.file())
            }
            _ => error,
        })?;
        let checked = keys.iter().zip(found).map(|(key, (bytes, version))| {
            self.with_key(self.accept(key, version), key)?;
            Ok(bytes)
        });
        checked.collect()
    }

    fn request(&self, key: &Arc<str>, range: std::ops::Range<u64>) -> RangeRequest {
        RangeRequest {
            key: Arc::clone(key),
            range,
            version: self.known(key),
        }
    }

    fn located(&self, error: Error) -> Error {
        error.in_file(self.location())
    }

    fn with_key<T>(&self, result: Result<T>, object: &str) -> Result<T> {
        result.map_err(|error| error.at_node(self.key_of(object)).in_file(self.location()))
    }

    /// Checks the CRC-32 of the object of an entry.
    fn check_content(&self, object: &str, found: u32, expected: Option<u32>) -> Result<()> {
        file::check_crc32(found, expected).or_else(|error| {
            self.check_current(object)?;
            Err(error)
        })
    }
}

impl Container for PrefixReader {
    fn location(&self) -> &str {
        &self.service.location
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        let mut object = key.into();
        let (len, crc32, seal) = match &self.list {
            Some(list) => match list.entries.get(key) {
                Some(record) => {
                    if record.is_staged {
                        object = directory::staged_key(record.number).into();
                    }
                    (record.len, Some(record.crc32), record.seal)
                }
                None => return Ok(None),
            },
            None if key::broken_rule(key).is_some() => return Ok(None),
            None => match self.known(key) {
                Some(version) => (version.size, None, None),
                None => match client::look(&self.service, key)? {
                    Some(version) => {
                        let len = version.size;
                        self.accept(&key.into(), version)?;
                        (len, None, None)
                    }
                    None => return Ok(None),
                },
            },
        };
        let location = EntryLocation::Key(object);
        Ok(Some(Entry {
            len,
            crc32,
            seal,
            location,
        }))
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        let key = entry.key().map_err(|error| self.located(error))?;
        self.with_key(entry.check_range(offset, out.len()), key)?;
        if out.is_empty() || self.cache.fill(key, offset, out) {
            return Ok(());
        }
        let range = offset..offset + out.len() as u64;
        for bytes in self.fetch(vec![self.request(key, range)])? {
            out.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn read_ahead(&self, parts: &[EntryRange], gap: u64) -> Result<ReadAhead> {
        let mut ranges_of: HashMap<&Arc<str>, Vec<std::ops::Range<u64>>> = HashMap::new();
        for part in parts {
            let key = part.entry.key().map_err(|error| self.located(error))?;
            let len = usize::try_from(part.len).unwrap_or(usize::MAX);
            self.with_key(part.entry.check_range(part.offset, len), key)?;
            let range = part.offset..part.offset + part.len;
            if !self.cache.contains(key, &range) {
                ranges_of.entry(key).or_default().push(range);
            }
        }
        let mut wanted = Vec::new();
        for (key, parts) in ranges_of {
            let joined = ranges::join(&parts, JOINED_GAP.min(gap), PIECE_BYTES);
            wanted.extend(joined.into_iter().map(|range| self.request(key, range)));
        }
        let starts: Vec<(Arc<str>, u64)> = wanted
            .iter()
            .map(|part| (Arc::clone(&part.key), part.range.start))
            .collect();
        let found = self.fetch(wanted)?;
        let segments = starts.into_iter().zip(found);
        Ok(self
            .cache
            .insert(segments.map(|((name, offset), bytes)| Segment {
                name,
                offset,
                bytes,
            })))
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(key)? else {
            return Ok(None);
        };
        let read = || {
            let mut bytes = zeroed("the entry", Limits::check("the entry", entry.len, limit)?)?;
            self.read_at(&entry, 0, &mut bytes)?;
            self.check_content(object_of(&entry), crc32fast::hash(&bytes), entry.crc32)?;
            Ok(Some(bytes))
        };
        self.with_key(read(), key)
    }

    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let verified = self.entry(key).and_then(|entry| {
            let entry = entry.ok_or_else(|| Error::not_found("the entry does not exist"))?;
            let read = |at: u64, out: &mut [u8]| self.read_at(&entry, at, out);
            let found = file::stream_pieces(entry.len, PIECE_BYTES, &read, &mut |piece| {
                progress(piece.len() as u64);
                Ok(())
            })?;
            if entry.is_empty() {
                // The object was not read, so check here whether it exists.
                let missing =
                    || Error::corrupt("the entry's object is missing; upload the store again");
                let object = object_of(&entry);
                let version = client::look(&self.service, object)?.ok_or_else(missing)?;
                self.accept(&object.into(), version)?;
            }
            self.check_content(object_of(&entry), found, entry.crc32)
        });
        self.with_key(verified, key)
    }

    fn verify_records(&self) -> Result<u64> {
        // The list of entries was verified when it was read, and there is no other record.
        Ok(0)
    }

    fn keys(&self) -> Result<Vec<String>> {
        let mut keys: Vec<String> = match &self.list {
            Some(list) => list.entries.keys().map(|key| key.to_string()).collect(),
            None => {
                let found = client::list(&self.service, "")?.into_iter();
                let keys = found.map(|(key, _)| key);
                keys.filter(|key| key::broken_rule(key).is_none()).collect()
            }
        };
        keys.sort_unstable();
        Ok(keys)
    }

    fn entry_count(&self) -> Option<u64> {
        Some(self.list.as_ref()?.entries.len() as u64)
    }

    fn usage(&self) -> Result<Usage> {
        let Some(list) = &self.list else {
            let found = client::list(&self.service, "")?;
            let total = found
                .iter()
                .fold(0, |sum: u64, (_, len)| sum.saturating_add(*len));
            return Ok(Usage {
                total,
                live: total,
                entries: found.len() as u64,
                ..Usage::default()
            });
        };
        // Files of other programs are not counted: not every server can list them.
        let own = list.encode().len() as u64;
        let entries = list.entries.values().map(|record| record.len);
        let total = entries.fold(own, u64::saturating_add);
        Ok(Usage {
            total,
            live: total,
            dead: 0,
            entries: list.entries.len() as u64,
            commit: list.sequence,
        })
    }

    fn commit_id(&self) -> Option<CommitId> {
        self.list.as_ref().map(List::commit_id)
    }
}

/// The object of an entry of a directory.
fn object_of(entry: &Entry) -> &str {
    match &entry.location {
        EntryLocation::Key(object) => object,
        EntryLocation::Offset(_) => "",
    }
}

impl fmt::Debug for PrefixReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrefixReader({})", self.location())
    }
}
