//! The next commit of a ZIP: its entries, and the bytes that end it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use crc_fast::crc32_iscsi as crc32c;

use super::super::{Container, Entry, file};
use super::commit_record::{Changes, CommitRecord, MAX_MESSAGE, RecordBody};
use super::deflate;
use super::entry_record::EntryRecord;
use super::reader::ZipReader;
use super::records::{self, CentralDirectory, DirectoryEntry, ROOT};
use super::slot::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// The bytes of a ZIP, to which entries are appended.
pub trait Output {
    /// File offset of the next byte.
    fn position(&self) -> u64;

    /// Appends `bytes`.
    ///
    /// # Errors
    /// `Io`.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Appends consecutive `parts`.
    ///
    /// # Errors
    /// As `write`.
    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        parts.iter().try_for_each(|part| self.write(part))
    }
}

/// The root's `zarr.json`.
struct RootDocument {
    document: Vec<u8>,
    /// Without the documents of other nodes.
    alone: Vec<u8>,
}

/// The next commit.
#[derive(Default)]
pub struct NextCommit {
    /// Its entries, except the root's document.
    live: BTreeMap<Box<str>, EntryRecord>,
    root: Option<Arc<RootDocument>>,
    /// The root's document in the last commit.
    last_root: Option<Arc<RootDocument>>,
    /// Keys that were written or removed since the last commit, with their entries in the last commit.
    changed: BTreeMap<Box<str>, Option<EntryRecord>>,
    has_changes: bool,
    /// Whether it is full in any case.
    is_full: bool,
    message: String,
    /// The last commit.
    last: Slot,
    /// Bytes of the records since the last full commit.
    log_len: u64,
}

/// The bytes that end a commit, from the position where it was encoded.
pub struct EncodedCommit {
    /// The commit.
    pub slot: Slot,
    /// The record, which is never overwritten.
    pub record: Vec<u8>,
    /// The tail, which the next commit overwrites if the slot says so.
    pub tail: Vec<u8>,
    log_len: u64,
}

impl NextCommit {
    /// The next commit after `last`, whose reader is `reader`. Without its `record` the next commit is full.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn after(
        last: Slot,
        reader: &ZipReader,
        record: Option<CommitRecord>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut next = Self {
            last,
            is_full: record.is_none(),
            log_len: record.as_ref().map_or(0, |record| record.log_len),
            live: live_entries(reader)?,
            ..Self::default()
        };
        if let Some(document) = reader.read_whole(ROOT, limits.metadata_bytes)? {
            let alone = record
                .and_then(|record| record.changes)
                .map_or_else(|| document.clone(), |changes| changes.root);
            next.root = Some(Arc::new(RootDocument { document, alone }));
            next.last_root.clone_from(&next.root);
        }
        Ok(next)
    }

    /// The last commit.
    pub fn last(&self) -> &Slot {
        &self.last
    }

    /// Whether there is anything to commit.
    pub fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// Commits in any case, with a tail that is kept.
    pub fn require_full(&mut self) {
        (self.has_changes, self.is_full) = (true, true);
    }

    /// Commits even without entries.
    pub fn require(&mut self) {
        self.has_changes = true;
    }

    /// Continues the commit numbers after `number`.
    pub fn follow(&mut self, number: u64) {
        self.last.sequence = number;
    }

    /// Forgets all entries, and the changes.
    pub fn clear(&mut self) {
        self.live.clear();
        self.changed.clear();
        self.root = None;
    }

    /// The entry `key`.
    pub fn get(&self, key: &str) -> Option<EntryRecord> {
        self.live.get(key).copied()
    }

    /// Adds an entry whose bytes are in the file.
    pub fn insert(&mut self, key: &str, record: EntryRecord) {
        let replaced = self.live.insert(key.into(), record);
        self.changed.entry(key.into()).or_insert(replaced);
        self.has_changes = true;
    }

    /// Removes the entry `key`.
    pub fn remove(&mut self, key: &str) {
        if let Some(removed) = self.live.remove(key) {
            self.changed.entry(key.into()).or_insert(Some(removed));
            self.has_changes = true;
        }
        self.has_changes |= key == ROOT && self.root.take().is_some();
    }

    /// Sets the root's document.
    pub fn put_root(&mut self, document: &[u8], alone: &[u8]) {
        let old = self.root.as_ref().map(|root| &root.document[..]);
        self.has_changes |= old != Some(document);
        self.root = Some(Arc::new(RootDocument {
            document: document.to_vec(),
            alone: alone.to_vec(),
        }));
    }

    /// Sets the message.
    ///
    /// # Errors
    /// `Invalid` if it is too long.
    pub fn set_message(&mut self, message: &str) -> Result<()> {
        if message.len() > MAX_MESSAGE {
            return Err(Error::invalid(format!(
                "the message of the commit has {} bytes; expected at most {MAX_MESSAGE}",
                message.len()
            )));
        }
        message.clone_into(&mut self.message);
        Ok(())
    }

    /// Replaces all entries by those of `reader`, whose bytes are in the file.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn replace_all(&mut self, reader: &ZipReader, limits: &Limits) -> Result<()> {
        let replaced = std::mem::replace(&mut self.live, live_entries(reader)?);
        let both = replaced.keys().chain(self.live.keys());
        let changed = both.filter(|key| replaced.get(*key) != self.live.get(*key));
        self.changed = changed
            .map(|key| (key.clone(), replaced.get(key).copied()))
            .collect();
        self.root = reader
            .read_whole(ROOT, limits.metadata_bytes)?
            .map(|document| {
                let alone = document.clone();
                Arc::new(RootDocument { document, alone })
            });
        // The entries are in other places than those of the log.
        self.require_full();
        Ok(())
    }

    /// Appends an entry with the properties of `record` except its offsets, whose bytes `write` appends.
    ///
    /// # Errors
    /// Those of `out` and `write`.
    pub fn append<O: Output>(
        &mut self,
        out: &mut O,
        key: &str,
        record: EntryRecord,
        write: impl FnOnce(&mut O) -> Result<()>,
    ) -> Result<()> {
        let header_offset = out.position();
        out.write(&record.local_header(key))?;
        let data_offset = out.position();
        write(out)?;
        debug_assert_eq!(out.position(), data_offset + record.stored_len());
        let record = EntryRecord {
            header_offset,
            data_offset: Some(data_offset),
            streamed: false,
            ..record
        };
        self.insert(key, record);
        Ok(())
    }

    /// Appends the entry `key` with the bytes of `parts`. Documents are deflated.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn append_parts<O: Output>(
        &mut self,
        out: &mut O,
        key: &str,
        parts: &[&[u8]],
        seal: Option<u32>,
    ) -> Result<()> {
        let mut hasher = crc32fast::Hasher::new();
        parts.iter().for_each(|part| hasher.update(part));
        let mut record = EntryRecord {
            len: parts.iter().map(|part| part.len() as u64).sum(),
            crc32: hasher.finalize(),
            seal,
            ..EntryRecord::default()
        };
        if records::is_document(key)
            && let Some(deflated) = deflate::deflate(&parts.concat())
            && let Ok(len) = u32::try_from(deflated.len())
        {
            record.deflated = Some(len);
            return self.append(out, key, record, |out| out.write(&deflated));
        }
        self.append(out, key, record, |out| out.write_parts(parts))
    }

    /// Appends a copy of `entry` of another container, whose key there is `from` and whose checksum is `crc32`.
    ///
    /// # Errors
    /// `Corrupt` if the entry is damaged; `Io`; those of `out`.
    pub fn append_copy<O: Output>(
        &mut self,
        out: &mut O,
        key: &str,
        (source, from): (&dyn Container, &str),
        (entry, crc32): (&Entry, u32),
    ) -> Result<()> {
        let record = EntryRecord {
            len: entry.len,
            crc32,
            seal: entry.seal,
            ..EntryRecord::default()
        };
        self.append(out, key, record, |out| {
            let read = |at: u64, piece: &mut [u8]| source.read_at(entry, at, piece);
            let write = &mut |piece: &[u8]| out.write(piece);
            let copied = file::stream_pieces(entry.len, file::PIECE, &read, write)
                .and_then(|found| file::check_crc32(found, Some(crc32)));
            copied.map_err(|error| match error.kind() {
                ErrorKind::Corrupt => error.at_node(from).in_file(source.location()),
                _ => error,
            })
        })
    }

    /// Encodes the bytes that end the commit at the file offset `position`.
    ///
    /// # Errors
    /// `Limit` if readers would reject the central directory.
    pub fn encode(&self, time: i64, position: u64, limits: &Limits) -> Result<EncodedCommit> {
        let (mut entries, mut removed) = (Vec::new(), Vec::new());
        for key in self.changed.keys() {
            match self.live.get(key) {
                Some(record) => encode_entry(key, record, &mut entries),
                None => removed.push(key.clone()),
            }
        }
        let counts = (self.changed.len() - removed.len(), removed.len());
        let changes = Changes {
            root: self
                .root
                .as_ref()
                .map(|root| root.alone.clone())
                .unwrap_or_default(),
            removed,
            entries,
        };
        let mut body = RecordBody::new(&self.message, Some(&changes));
        let mut log_len = self.log_len + body.record_len() as u64;
        // The last tail is about as long as this one. With a kept tail whenever the records are as long
        // as a tail, the central directories of a growing store take bytes in proportion to the last one.
        let is_full = self.last.record == 0 || self.is_full || log_len >= self.last.tail_len();
        if is_full {
            body = RecordBody::new(&self.message, None);
            log_len = 0;
        }
        let tail_offset = position + body.record_len() as u64;
        let mut tail = Vec::new();
        let mut root = self.root.as_ref().map(|root| {
            let (record, content) = root_entry(&root.document, tail_offset);
            tail.extend_from_slice(&record.local_header(ROOT));
            tail.extend_from_slice(&content);
            record
        });
        // Readers search the directory, so it is sorted by key.
        let mut directory = Vec::new();
        for (key, record) in &self.live {
            if **key > *ROOT
                && let Some(root) = root.take()
            {
                encode_entry(ROOT, &root, &mut directory);
            }
            encode_entry(key, record, &mut directory);
        }
        if let Some(root) = root {
            encode_entry(ROOT, &root, &mut directory);
        }
        // Readers would reject a larger directory.
        let limit = limits.directory_bytes.min(u32::MAX.into());
        Limits::check("the central directory", directory.len() as u64, limit)?;
        let slot = Slot {
            sequence: self.last.sequence + 1,
            directory_offset: tail_offset + tail.len() as u64,
            directory_len: directory.len() as u64,
            directory_crc: crc32c(&directory),
            entries: (self.live.len() + usize::from(self.root.is_some())) as u64,
            tail: tail_offset,
            record: position,
            has_temporary_tail: !is_full,
        };
        let previous = (self.last.record > 0).then(|| self.last.record_extent());
        let record = CommitRecord {
            extent: slot.record_extent(),
            number: slot.sequence,
            time,
            message: self.message.clone(),
            previous,
            log_len,
            written: counts.0 as u64,
            removed: counts.1 as u64,
            directory: CentralDirectory {
                offset: slot.directory_offset,
                len: slot.directory_len,
                entries: slot.entries,
            },
            directory_crc: slot.directory_crc,
            changes: (!is_full).then_some(changes),
        };
        tail.extend_from_slice(&directory);
        tail.extend_from_slice(&slot.trailer());
        Ok(EncodedCommit {
            slot,
            record: record.encode(&body),
            tail,
            log_len,
        })
    }

    /// Records that `commit` is the last commit now.
    pub fn committed(&mut self, commit: &EncodedCommit) {
        self.last = commit.slot;
        self.log_len = commit.log_len;
        (self.has_changes, self.is_full) = (false, false);
        self.changed.clear();
        self.last_root.clone_from(&self.root);
        self.message.clear();
    }

    /// Discards the changes since the last commit.
    #[cfg(feature = "object-store")]
    pub fn discard(&mut self) {
        for (key, record) in std::mem::take(&mut self.changed) {
            match record {
                Some(record) => self.live.insert(key, record),
                None => self.live.remove(&key),
            };
        }
        self.root.clone_from(&self.last_root);
        self.message.clear();
        self.has_changes = false;
    }
}

/// The entries of `reader` except the root's document.
fn live_entries(reader: &ZipReader) -> Result<BTreeMap<Box<str>, EntryRecord>> {
    reader.entries().check()?;
    let mut live = BTreeMap::new();
    for entry in reader.entries().iter() {
        let (key, record) = entry?;
        if key != ROOT {
            live.insert(key.into(), record);
        }
    }
    Ok(live)
}

/// Appends the entry `key` of a central directory.
fn encode_entry(key: &str, record: &EntryRecord, directory: &mut Vec<u8>) {
    DirectoryEntry {
        name: key,
        len: record.len,
        deflated: record.deflated,
        crc32: record.crc32,
        header_offset: record.header_offset,
        seal: record.seal,
    }
    .encode(directory);
}

/// The entry of the root's `document` at the file offset `offset`, and its stored content.
fn root_entry(document: &[u8], offset: u64) -> (EntryRecord, Vec<u8>) {
    let mut record = EntryRecord {
        header_offset: offset,
        len: document.len() as u64,
        crc32: crc32fast::hash(document),
        ..EntryRecord::default()
    };
    let mut content = document.to_vec();
    if let Some(deflated) = deflate::deflate(document)
        && let Ok(len) = u32::try_from(deflated.len())
    {
        (record.deflated, content) = (Some(len), deflated);
    }
    record.data_offset = Some(offset + record.local_header(ROOT).len() as u64);
    (record, content)
}

/// The time in microseconds since 1970-01-01 UTC, or the seconds in the environment variable `SOURCE_DATE_EPOCH`, by
/// which the bytes of a store become reproducible.
pub fn now() -> i64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok();
    if let Some(seconds) = fixed.and_then(|text| text.parse::<i64>().ok()) {
        return seconds.saturating_mul(1_000_000);
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}
