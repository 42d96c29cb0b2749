//! Reads one commit of a ZIP: opening takes two reads, and each entry or part of an entry one.

use crc_fast::crc32_iscsi as crc32c;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::super::read_ahead::ReadAhead;
use super::super::source::{self, ByteSource, LocalFile};
use super::super::{CommitId, Container, Entry, EntryLocation, EntryRange, Usage, file};
use super::entry_record::{EntryRecord, Producer};
use super::entry_table::EntryTable;
use super::last_commit::{self, LastCommit};
use super::records::ROOT;
use super::records::{self, LOCAL_LEN, LocalHeader, u16_at, u32_at};
use super::slot::{self, HEADER_LEN, Slot, TRAILER_LEN};
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};
use crate::process::PerProcess;

/// Maximum length of the root's `zarr.json` and the central directory that are read with one call; a
/// damaged or hostile slot could claim the length of the file.
const MOST_READ_TOGETHER: u64 = 256 << 20;

/// Bytes of the file from `start` on, which contain the root's metadata.
struct RootBytes {
    start: u64,
    bytes: Vec<u8>,
}

/// One commit of a ZIP.
pub struct ZipReader {
    source: Arc<dyn ByteSource>,
    entries: EntryTable,
    /// The commit; `None` in a ZIP that another program wrote.
    slot: Option<Slot>,
    /// Length of the central directory and the end records.
    directory_len: u64,
    /// Maximum length of a document.
    metadata_bytes: u64,
    /// The root's `zarr.json`, which was read together with the central directory, until it is requested.
    root: PerProcess<Mutex<Option<RootBytes>>>,
}

impl ZipReader {
    /// Opens the last commit of the ZIP at `path`.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self> {
        Self::of(Arc::new(LocalFile::open(path)?), limits)
    }

    /// Opens the last commit of the ZIP in `source`.
    pub fn of(source: Arc<dyn ByteSource>, limits: &Limits) -> Result<Self> {
        let location = source.location().to_owned();
        Self::last_of(source, limits).map_err(|error| error.in_file(location))
    }

    fn last_of(source: Arc<dyn ByteSource>, limits: &Limits) -> Result<Self> {
        // Objects are written whole, so the trailer at the end determines the last commit, without a request
        // for the slots. Files can be damaged, and can be written while they are read.
        if source.is_remote()
            && let Some(slot) = last_commit::trailer_at(&*source, source.length()?)?
        {
            return Self::with_root(source, &slot, limits);
        }
        let header = last_commit::read_header(&*source)?;
        if !slot::is_header(&header) {
            return Self::foreign(source, limits);
        }
        let last = last_commit::find(&*source, &header)?;
        Self::with_root(source, &last.slot, limits)
    }

    /// Opens the commit `slot` of `source`, and reads the root's metadata with the same call if it is
    /// before the central directory.
    pub fn with_root(source: Arc<dyn ByteSource>, slot: &Slot, limits: &Limits) -> Result<Self> {
        let end = slot.directory_offset.checked_add(slot.directory_len);
        let length = end.and_then(|end| end.checked_sub(slot.tail));
        match length {
            Some(length) if length <= MOST_READ_TOGETHER && slot.tail <= slot.directory_offset => {
                Self::read(source, slot, slot.tail, limits)
            }
            _ => Self::at(source, slot, limits),
        }
    }

    /// Opens the commit `slot` of `source`.
    pub fn at(source: Arc<dyn ByteSource>, slot: &Slot, limits: &Limits) -> Result<Self> {
        Self::read(source, slot, slot.directory_offset, limits)
    }

    /// Opens the commit `slot`, reading from `start` to the end of its central directory.
    fn read(source: Arc<dyn ByteSource>, slot: &Slot, start: u64, limits: &Limits) -> Result<Self> {
        let len = Limits::check(
            "the central directory",
            slot.directory_len,
            limits.directory_bytes,
        )?;
        let before = (slot.directory_offset - start) as usize;
        let mut root = zeroed("the central directory", before + len)?;
        source.read_exact(start, &mut root)?;
        let directory = match before {
            0 => std::mem::take(&mut root),
            _ => root.split_off(before),
        };
        if crc32c(&directory) != slot.directory_crc {
            return Err(Error::corrupt(format!(
                "the checksum of the central directory of commit {} differs: it is damaged; restore the file \
                 from a copy",
                slot.sequence
            )));
        }
        let entries = EntryTable::new(
            directory,
            slot.entries,
            slot.directory_offset,
            Producer::Ambar,
        )?;
        let kept_root = PerProcess::new();
        *kept_root.lock() = (before > 0).then_some(RootBytes { start, bytes: root });
        Ok(Self {
            source,
            entries,
            slot: Some(*slot),
            directory_len: slot.directory_len + TRAILER_LEN as u64,
            metadata_bytes: limits.metadata_bytes,
            root: kept_root,
        })
    }

    /// Opens a ZIP that another program wrote.
    fn foreign(source: Arc<dyn ByteSource>, limits: &Limits) -> Result<Self> {
        let length = source.length()?;
        if last_commit::trailer_at(&*source, length)?.is_some() {
            return Err(slot::damaged_header());
        }
        let found = last_commit::foreign_directory(&*source)?;
        let len = Limits::check("the central directory", found.len, limits.directory_bytes)?;
        let mut directory = zeroed("the central directory", len)?;
        source.read_exact(found.offset, &mut directory)?;
        let entries = EntryTable::new(directory, found.entries, found.offset, Producer::Other)?;
        Ok(Self {
            directory_len: length - found.offset,
            metadata_bytes: limits.metadata_bytes,
            source,
            entries,
            slot: None,
            root: PerProcess::new(),
        })
    }

    /// The root's metadata in `entry`, if it was read when the container was opened; returned only once.
    fn take_root(&self, entry: &Entry) -> Option<Vec<u8>> {
        let EntryLocation::Offset(offset) = entry.location else {
            return None;
        };
        let RootBytes { start, mut bytes } = self.root.lock().take()?;
        let skipped = usize::try_from(offset.checked_sub(start)?).ok()?;
        let end = skipped.checked_add(usize::try_from(entry.len).ok()?)?;
        if end > bytes.len() {
            return None;
        }
        bytes.truncate(end);
        bytes.drain(..skipped);
        Some(bytes)
    }

    /// All entries.
    pub fn entries(&self) -> &EntryTable {
        &self.entries
    }

    /// The file offset of the content of `record`; in ZIPs of other programs its local header is read.
    fn data_offset(&self, key: &str, record: &EntryRecord) -> Result<u64> {
        if let Some(offset) = record.data_offset {
            return Ok(offset);
        }
        let mut header = [0; LOCAL_LEN];
        self.source.read_exact(record.header_offset, &mut header)?;
        let variable = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let offset = record.header_offset + LOCAL_LEN as u64 + variable;
        let file_len = self.source.length()?;
        let inside = offset
            .checked_add(record.stored_len())
            .is_some_and(|end| end <= file_len);
        if u32_at(&header, 0) != records::LOCAL_SIGNATURE || !inside {
            return Err(local_header_differs(key));
        }
        Ok(offset)
    }

    /// Checks that the local header agrees with the central directory.
    fn verify_local_header(&self, key: &str, record: &EntryRecord) -> Result<()> {
        let mut expected = Vec::new();
        let header = LocalHeader {
            name: key,
            len: record.len,
            deflated: record.deflated,
            crc32: record.crc32,
        };
        header.encode(&mut expected);
        let fixed = LOCAL_LEN + key.len();
        let known = match self.slot {
            Some(_) => expected.len(),
            None => fixed,
        };
        let mut found = vec![0; known];
        self.source.read_exact(record.header_offset, &mut found)?;
        let same = match self.slot {
            Some(_) => found == expected,
            // Other programs choose other flags, times and extra fields.
            None => {
                u32_at(&found, 0) == records::LOCAL_SIGNATURE
                    && found[LOCAL_LEN..] == expected[LOCAL_LEN..fixed]
                    && (record.streamed || found[14..18] == expected[14..18])
            }
        };
        if same {
            Ok(())
        } else {
            Err(local_header_differs(key))
        }
    }

    /// Calls `consume` with the content of `record`, which is not deflated, piece by piece, and verifies its
    /// CRC-32.
    pub fn stream(
        &self,
        key: &str,
        record: &EntryRecord,
        consume: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let start = self.data_offset(key, record)?;
        let found = source::stream(&*self.source, start, record.len, consume)?;
        file::check_crc32(found, Some(record.crc32)).map_err(|error| error.at_node(key))
    }

    /// Reads the content of `record`, of at most `limit` bytes, and verifies its CRC-32.
    fn content(&self, key: &str, record: &EntryRecord, limit: u64) -> Result<Vec<u8>> {
        Limits::check("the entry", record.len, limit)?;
        let entry = self.locate(key, record)?;
        let kept = (key == ROOT).then(|| self.take_root(&entry)).flatten();
        let stored = match kept {
            Some(bytes) => bytes,
            None => {
                let len = Limits::check("the entry", entry.len, limit)?;
                let mut bytes = zeroed("the entry", len)?;
                self.read_at(&entry, 0, &mut bytes)?;
                bytes
            }
        };
        record.content(stored)
    }

    fn locate(&self, key: &str, record: &EntryRecord) -> Result<Entry> {
        Ok(Entry {
            len: record.stored_len(),
            crc32: Some(record.crc32),
            seal: record.seal,
            location: EntryLocation::Offset(self.data_offset(key, record)?),
        })
    }

    fn with_key<T>(&self, result: Result<T>, key: &str) -> Result<T> {
        result.map_err(|error| error.at_node(key).in_file(self.source.location()))
    }

    fn verify_entry(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let record = self
            .entries
            .get(key)
            .ok_or_else(|| Error::not_found("the entry does not exist"))?;
        self.verify_local_header(key, &record)?;
        if record.deflated.is_some() {
            self.content(key, &record, self.metadata_bytes)?;
            progress(record.stored_len());
            return Ok(());
        }
        self.stream(key, &record, &mut |piece| {
            progress(piece.len() as u64);
            Ok(())
        })
    }

    /// Checks header, slots and trailer of a ZIP that ambar wrote.
    fn verify_own_records(&self, slot: &Slot) -> Result<()> {
        let header = last_commit::read_header(&*self.source)?;
        let LastCommit { slots, .. } = last_commit::find(&*self.source, &header)?;
        if slots.iter().any(Option::is_none) {
            return Err(Error::corrupt(
                "one of the two commit slots is damaged; let `ambar repair` restore it",
            ));
        }
        let position = slot.directory_offset + slot.directory_len;
        let mut trailer = [0; TRAILER_LEN];
        self.source.read_exact(position, &mut trailer)?;
        if slot.trailer() != trailer {
            return Err(Error::corrupt(
                "the end of central directory is damaged, other ZIP readers cannot open the file; \
                 let `ambar repair` restore it",
            ));
        }
        Ok(())
    }

    /// Where in the file `len` bytes of `entry` from `offset` on begin.
    fn start_of(&self, entry: &Entry, offset: u64, len: usize) -> Result<u64> {
        let EntryLocation::Offset(start) = entry.location else {
            return Err(Error::invalid(
                "the entry belongs to another container; look it up in this one",
            )
            .in_file(self.location()));
        };
        entry
            .check_range(offset, len)
            .map_err(|error| error.in_file(self.location()))?;
        // Entries are inside of the file, so offsets do not overflow.
        Ok(start + offset)
    }
}

impl Container for ZipReader {
    fn location(&self) -> &str {
        self.source.location()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        let Some(record) = self.entries.get(key) else {
            return Ok(None);
        };
        self.with_key(self.locate(key, &record), key).map(Some)
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = self.start_of(entry, offset, out.len())?;
        self.source.read_exact(start, out)
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(record) = self.entries.get(key) else {
            return Ok(None);
        };
        let content = self.content(key, &record, limit);
        self.with_key(content, key).map(Some)
    }

    fn read_ahead(&self, parts: &[EntryRange], gap: u64) -> Result<ReadAhead> {
        let mut ranges = Vec::with_capacity(parts.len());
        for part in parts {
            let len = usize::try_from(part.len).unwrap_or(usize::MAX);
            let start = self.start_of(&part.entry, part.offset, len)?;
            ranges.push(start..start + part.len);
        }
        self.source.read_ahead(&ranges, gap)
    }

    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.with_key(self.verify_entry(key, progress), key)
    }

    fn verify_records(&self) -> Result<()> {
        match &self.slot {
            None => Ok(()),
            Some(slot) => self
                .verify_own_records(slot)
                .map_err(|error| error.in_file(self.source.location())),
        }
    }

    fn keys(&self) -> Result<Vec<String>> {
        let mut keys: Vec<String> = self.entries.iter().map(|(key, _)| key.to_owned()).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn entry_count(&self) -> Option<u64> {
        Some(self.entries.len() as u64)
    }

    fn usage(&self) -> Result<Usage> {
        let total = self.source.length()?;
        let header = self.slot.map_or(0, |_| HEADER_LEN as u64);
        let entries = self.entries.iter().map(|(key, record)| {
            let least = (LOCAL_LEN + key.len()) as u64;
            let header = record
                .data_offset
                .map_or(least, |data| data - record.header_offset);
            header + record.stored_len()
        });
        // Entries of a hostile file can share bytes.
        let live = entries.fold(header + self.directory_len, u64::saturating_add);
        Ok(Usage {
            total,
            live,
            dead: total.saturating_sub(live),
            entries: self.entries.len() as u64,
            commit: self.slot.map_or(0, |slot| slot.sequence),
        })
    }

    fn commit_id(&self) -> Option<CommitId> {
        self.slot.map(|slot| CommitId {
            number: slot.sequence,
            checksum: slot.directory_crc,
        })
    }
}

impl std::fmt::Debug for ZipReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ZipReader({}, {} entries)",
            self.source.location(),
            self.entries.len()
        )
    }
}

fn local_header_differs(key: &str) -> Error {
    Error::corrupt(
        "the entry's local header differs from the central directory; restore the file from a copy",
    )
    .at_node(key)
}
