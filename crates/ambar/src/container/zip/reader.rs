//! Reads one commit of a ZIP: opening takes two reads, and each entry or part of an entry one.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::super::interface::without_history;
use super::super::read_ahead::ReadAhead;
use super::super::source::{self, ByteSource, LocalFile};
use super::super::{
    CommitId, CommitInfo, Container, Entry, EntryLocation, EntryRange, Usage, file,
};
use super::commit_record::{self, CommitRecord};
use super::entry_record::{EntryRecord, Producer};
use super::entry_table::{self, EntryTable};
use super::last_commit::{self, LastCommit};
use super::records::{self, LOCAL_LEN, ROOT, u16_at, u32_at};
use super::slot::{self, HEADER_LEN, Slot, TRAILER_LEN};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{Limits, zeroed};
use crate::process::PerProcess;

/// Maximum length of the root's `zarr.json` and the central directory that are read with one call; a
/// damaged or hostile slot could claim the length of the file.
const MAX_READ_TOGETHER: u64 = 256 << 20;

/// One commit of a ZIP.
pub struct ZipReader {
    source: Arc<dyn ByteSource>,
    entries: EntryTable,
    /// The commit; `None` in a ZIP that another program wrote.
    slot: Option<Slot>,
    /// Length of the commit's record, the central directory and the end records.
    records_len: u64,
    limits: Limits,
    /// The root's `zarr.json`, which was read together with the central directory, until it is requested.
    root: PerProcess<Mutex<Option<Vec<u8>>>>,
    /// The root's `zarr.json`, if a writer can overwrite it.
    kept_root: Option<Vec<u8>>,
    /// Whether the tail is intact.
    has_tail: bool,
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

    /// Opens the commit `slot` of `source`, and reads the root's metadata with the same call.
    pub fn with_root(source: Arc<dyn ByteSource>, slot: &Slot, limits: &Limits) -> Result<Self> {
        if !slot.has_temporary_tail {
            return Self::of_tail(source, slot, limits);
        }
        match Self::of_tail(Arc::clone(&source), slot, limits) {
            Ok(reader) => Ok(reader),
            // A writer overwrites the tail, or was killed when it had.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                Self::of_records(source, slot, limits)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the commit `slot` of `source` by its tail.
    fn of_tail(source: Arc<dyn ByteSource>, slot: &Slot, limits: &Limits) -> Result<Self> {
        let end = slot.directory_offset.saturating_add(slot.directory_len);
        let start = match end - slot.tail <= MAX_READ_TOGETHER {
            true => slot.tail,
            false => slot.directory_offset,
        };
        let bytes = slot.read_directory(&*source, start, limits)?;
        let before = (slot.directory_offset - start) as usize;
        let root = bytes[..before].to_vec();
        let entries = EntryTable::of_sorted(bytes, before, slot.entries, slot.directory_offset)?;
        let mut reader = Self::new(source, entries, Some(*slot), limits);
        let Some(record) = reader.entries.get(ROOT)? else {
            return Ok(reader);
        };
        let content = match part(&root, start, &record) {
            Some((header, stored)) if header == record.local_header(ROOT) => {
                record.content(stored.to_vec())
            }
            Some(_) => Err(local_header_differs(ROOT)),
            None if !slot.has_temporary_tail => return Ok(reader),
            None => reader.content(ROOT, &record, limits.metadata_bytes),
        };
        if slot.has_temporary_tail {
            reader.kept_root = Some(content?);
        } else {
            // Damage is reported when the document is requested.
            *reader.root.lock() = content.ok();
        }
        Ok(reader)
    }

    /// Opens the commit `slot` of `source` by the records of commits. The root's document is without the documents
    /// of other nodes.
    fn of_records(source: Arc<dyn ByteSource>, slot: &Slot, limits: &Limits) -> Result<Self> {
        let restored = commit_record::restore_directory(&*source, slot, limits)?;
        let entries = EntryTable::of_unsorted(
            restored.directory,
            restored.entries,
            slot.record,
            Producer::Ambar,
        )?;
        let mut reader = Self::new(source, entries, Some(*slot), limits);
        reader.kept_root = (!restored.root.is_empty()).then_some(restored.root);
        reader.has_tail = false;
        Ok(reader)
    }

    fn new(
        source: Arc<dyn ByteSource>,
        entries: EntryTable,
        slot: Option<Slot>,
        limits: &Limits,
    ) -> Self {
        Self {
            source,
            entries,
            slot,
            records_len: slot.map_or(0, |slot| {
                slot.directory_len + TRAILER_LEN as u64 + slot.record_extent().len
            }),
            limits: *limits,
            root: PerProcess::new(),
            kept_root: None,
            has_tail: true,
        }
    }

    /// Whether the commit was opened by its tail, not by the records of commits.
    pub fn has_tail(&self) -> bool {
        self.has_tail
    }

    /// Records of this commit and all commits before, the newest first.
    fn records(&self) -> impl Iterator<Item = Result<CommitRecord>> {
        let mut next = self.slot.map(|slot| slot.record_extent());
        std::iter::from_fn(move || {
            let extent = next.take()?;
            let record = CommitRecord::read(&*self.source, extent, &self.limits);
            next = record.as_ref().ok().and_then(|record| record.previous);
            Some(record)
        })
    }

    /// Opens an earlier commit of the same file.
    pub fn commit_of_number(&self, number: u64) -> Result<Self> {
        for found in self.records() {
            let record = found?;
            if record.number <= number {
                if record.number < number {
                    break;
                }
                return Self::with_root(Arc::clone(&self.source), &record.slot(), &self.limits);
            }
        }
        Err(Error::not_found(format!(
            "commit {number} is not in the file; `ambar log` lists the commits"
        )))
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
        let entries =
            EntryTable::of_unsorted(directory, found.entries, found.offset, Producer::Other)?;
        let mut reader = Self::new(source, entries, None, limits);
        reader.records_len = length - found.offset;
        Ok(reader)
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
        let expected = record.local_header(key);
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
        let len = Limits::check("the entry", entry.len, limit)?;
        let mut stored = zeroed("the entry", len)?;
        self.read_at(&entry, 0, &mut stored)?;
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
        if key == ROOT
            && let Some(root) = &self.kept_root
        {
            // It was verified when the container was opened; by now a writer can have overwritten it.
            progress(root.len() as u64);
            return Ok(());
        }
        let record = self
            .entries
            .get(key)?
            .ok_or_else(|| Error::not_found("the entry does not exist"))?;
        self.verify_local_header(key, &record)?;
        if record.deflated.is_some() {
            self.content(key, &record, self.limits.metadata_bytes)?;
            progress(record.stored_len());
            return Ok(());
        }
        self.stream(key, &record, &mut |piece| {
            progress(piece.len() as u64);
            Ok(())
        })
    }

    /// Checks header, slots and trailer of a ZIP that ambar wrote.
    fn verify_own_records(&self, slot: &Slot) -> Result<u64> {
        let header = last_commit::read_header(&*self.source)?;
        let LastCommit { slot: last, slots } = last_commit::find(&*self.source, &header)?;
        if slots.iter().any(Option::is_none) {
            return Err(Error::corrupt(
                "one of the two commit slots is damaged; let `ambar repair` restore it",
            ));
        }
        self.entries.check()?;
        for record in self.records() {
            record?;
        }
        let is_last = slot.sequence == last.sequence;
        if slot.has_temporary_tail && !is_last {
            return Ok(0);
        }
        let position = slot.directory_offset + slot.directory_len;
        let mut trailer = [0; TRAILER_LEN];
        let read = self.source.read_exact(position, &mut trailer);
        // A writer that is at work overwrites a temporary tail, and writes another one when it commits.
        let is_intact = read.is_ok() && slot.trailer() == trailer;
        let after = |end: Option<u64>| -> Result<u64> {
            let length = self.source.length()?;
            Ok(length.saturating_sub(end.unwrap_or(length)))
        };
        if self.source.is_locked() && (is_intact || slot.has_temporary_tail) {
            return Ok(0);
        }
        if is_intact {
            return if is_last { after(slot.end()) } else { Ok(0) };
        }
        // Bytes of a killed writer begin where the temporary tail was.
        let unfinished = after(slot.permanent_end())?;
        if slot.has_temporary_tail && unfinished > 0 && unfinished != slot.tail_len() {
            return Ok(unfinished);
        }
        Err(Error::corrupt(
            "the end of central directory is damaged, so that other ZIP readers cannot open the file; let \
             `ambar repair` restore it",
        ))
    }

    /// Where in the file `len` bytes of `entry` from `offset` on begin.
    fn start_of(&self, entry: &Entry, offset: u64, len: usize) -> Result<u64> {
        let start = entry.file_offset().ok_or_else(Entry::foreign);
        // Entries are inside of the file, so offsets do not overflow.
        start
            .and_then(|start| entry.check_range(offset, len).map(|()| start + offset))
            .map_err(|error| error.in_file(self.location()))
    }
}

impl Container for ZipReader {
    fn location(&self) -> &str {
        self.source.location()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        let Some(record) = self.with_key(self.entries.get(key), key)? else {
            return Ok(None);
        };
        self.with_key(self.locate(key, &record), key).map(Some)
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = self.start_of(entry, offset, out.len())?;
        self.source.read_exact(start, out)
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        if key == ROOT
            && let Some(root) = self.kept_root.clone().or_else(|| self.root.lock().take())
        {
            let fits = Limits::check("the entry", root.len() as u64, limit);
            return self.with_key(fits, key).map(|_| Some(root));
        }
        let Some(record) = self.with_key(self.entries.get(key), key)? else {
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

    fn verify_records(&self) -> Result<u64> {
        match &self.slot {
            None => Ok(0),
            Some(slot) => self
                .verify_own_records(slot)
                .map_err(|error| error.in_file(self.source.location())),
        }
    }

    fn keys(&self) -> Result<Vec<String>> {
        let mut keys = Vec::with_capacity(self.entries.len());
        self.for_each_key("", &mut |key| {
            let checked = entry_table::check_name(key);
            self.with_key(checked, key)?;
            keys.push(key.to_owned());
            Ok(())
        })?;
        Ok(keys)
    }

    fn for_each_key(
        &self,
        prefix: &str,
        consume: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        // The root's document of a restored commit is not in the table.
        let is_missing = !self.has_tail && self.kept_root.is_some();
        let mut root = (is_missing && ROOT.starts_with(prefix)).then_some(ROOT);
        for key in self.entries.keys(prefix) {
            if let Some(root) = root.take_if(|root| key > *root) {
                consume(root)?;
            }
            consume(key)?;
        }
        root.map_or(Ok(()), consume)
    }

    fn has_sorted_keys(&self) -> bool {
        true
    }

    fn entry_count(&self) -> Option<u64> {
        Some(self.entries.len() as u64)
    }

    fn usage(&self) -> Result<Usage> {
        let total = self.source.length()?;
        let header = self.slot.map_or(0, |_| HEADER_LEN as u64);
        let mut live = header + self.records_len;
        for entry in self.entries.iter() {
            let (key, record) = entry.map_err(|error| error.in_file(self.location()))?;
            let least = (LOCAL_LEN + key.len()) as u64;
            let header = record
                .data_offset
                .map_or(least, |data| data - record.header_offset);
            // Entries of a hostile file can share bytes.
            live = live.saturating_add(header + record.stored_len());
        }
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

    fn commits(&self) -> Result<Vec<CommitInfo>> {
        if self.slot.is_none() {
            return Err(without_history(self.location()));
        }
        let infos = self.records().map(|found| {
            let record = found?;
            let slot = record.slot();
            Ok(CommitInfo {
                number: record.number,
                time: record.time,
                message: record.message,
                written: record.written,
                removed: record.removed,
                end: slot.permanent_end().unwrap_or(u64::MAX),
            })
        });
        let infos: Result<Vec<_>> = infos.collect();
        infos.map_err(|error| error.in_file(self.location()))
    }

    fn at_commit(&self, number: u64) -> Result<Arc<dyn Container>> {
        if self.slot.is_none() {
            return Err(without_history(self.location()));
        }
        match self.commit_of_number(number) {
            Ok(reader) => Ok(Arc::new(reader)),
            Err(error) => Err(error.in_file(self.location())),
        }
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

/// Local header and content of `record` in `bytes`, which begin at the file offset `start`; `None` if they are not all
/// there.
fn part<'a>(bytes: &'a [u8], start: u64, record: &EntryRecord) -> Option<(&'a [u8], &'a [u8])> {
    let data = record.data_offset?;
    let [header, data, end] = [
        record.header_offset,
        data,
        data.checked_add(record.stored_len())?,
    ]
    .map(|offset| usize::try_from(offset.checked_sub(start)?).ok());
    Some((bytes.get(header?..data?)?, bytes.get(data?..end?)?))
}

fn local_header_differs(key: &str) -> Error {
    Error::corrupt(
        "the entry's local header differs from the central directory; restore the file from a copy",
    )
    .at_node(key)
}
