//! Writes a ZIP: entries are appended, and a commit is one small write of a slot after them.

use crc_fast::crc32_iscsi as crc32c;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::super::claims;
use super::super::interface::existing_content;
use super::super::source::{ByteSource, LocalFile};
use super::super::state::{State, nothing_committed};
use super::super::{
    CommitInfo, Container, ContainerWriter, CreateOptions, Durability, Entry, SharedEntry,
    SharedFileInfo, file, key,
};
use super::appender::Appender;
use super::commit_record::{self, Changes, CommitRecord, MOST_MESSAGE, RecordBody};
use super::deflate;
use super::entry_record::EntryRecord;
use super::last_commit;
use super::reader::ZipReader;
use super::records::{self, CentralDirectory, DirectoryEntry, ROOT};
use super::slot::{self, HEADER_LEN, SLOT_OFFSETS, Slot};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{Limits, zeroed};

/// The writer of a ZIP, which has locked the file.
pub struct ZipWriter {
    file: Arc<File>,
    path: PathBuf,
    durability: Durability,
    /// The state of a new file until its first commit.
    new: Option<NewFile>,
    out: Appender,
    /// The entries of the next commit, except the root's document.
    live: BTreeMap<Box<str>, EntryRecord>,
    root: Option<RootDocument>,
    /// Keys that were written or removed since the last commit.
    changed_keys: BTreeSet<Box<str>>,
    changed: bool,
    /// Whether the next commit is full in any case.
    is_full: bool,
    message: String,
    slot: Slot,
    /// Bytes of the records since the last full commit.
    log_len: u64,
    /// The tail of the last commit, if it is to be restored where nothing is committed.
    temporary_tail: Option<Vec<u8>>,
    /// Whether bytes after the last commit's record may have been written.
    is_tail_overwritten: bool,
    state: State,
    limits: Limits,
}

/// The root's `zarr.json`.
struct RootDocument {
    document: Vec<u8>,
    /// Without the documents of other nodes.
    alone: Vec<u8>,
}

/// A file that has a temporary name until the first commit.
struct NewFile {
    temporary: PathBuf,
    /// The file to replace, locked so that no other writer appends to a file that will be deleted.
    _replaced: Option<File>,
    overwrite: bool,
}

impl ZipWriter {
    /// Creates the ZIP `path`, under its temporary name.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Self> {
        let path = file::resolve(path);
        let replaced = match fs::symlink_metadata(&path) {
            Err(_) => None,
            Ok(_) if !options.overwrite => return Err(file::already_exists(&path)),
            Ok(found) if found.is_file() => Some((file::open_locked(&path)?, found)),
            Ok(found) => {
                let found = if found.is_dir() {
                    "folder"
                } else {
                    "FIFO, socket or device"
                };
                return Err(Error::invalid(format!(
                    "expected a file to replace, found a {found}; choose another name, or remove it"
                ))
                .in_file(path.display()));
            }
        };
        let temporary = file::temporary(&path, ".ambar-new")?;
        let new = file::create_locked(&temporary)?;
        let header = slot::header();
        let started = match &replaced {
            Some((_, found)) => file::inherit(&new, found, &path),
            None => Ok(()),
        };
        let started = started.and_then(|()| claims::remove_of(&path));
        let started = started.and_then(|()| {
            new.set_len(0)
                .and_then(|()| new.write_all_at(&header, 0))
                .map_err(|source| Error::io(source, &temporary, "writing"))
        });
        if let Err(error) = started {
            // The first error is reported.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        let mut writer = Self::new(Arc::new(new), path, options.durability, HEADER_LEN as u64);
        writer.limits = options.limits;
        writer.changed = true;
        writer.new = Some(NewFile {
            temporary,
            _replaced: replaced.map(|(file, _)| file),
            overwrite: options.overwrite,
        });
        Ok(writer)
    }

    /// Opens the ZIP `path` to append after its last commit.
    pub fn append(path: &Path, durability: Durability, limits: &Limits) -> Result<Self> {
        let path = file::resolve(path);
        let file = Arc::new(file::open_locked(&path)?);
        claims::remove_of(&path)?;
        Self::resume(Arc::clone(&file), &path, durability, limits)
            .map_err(|error| error.in_file(path.display()))
    }

    /// Continues `file`, which has the path `path` and is locked.
    pub fn resume(
        file: Arc<File>,
        path: &Path,
        durability: Durability,
        limits: &Limits,
    ) -> Result<Self> {
        let source = LocalFile::new(Arc::clone(&file), path);
        let header = last_commit::read_header(&source)?;
        if !slot::is_header(&header) {
            // `Corrupt` if this is not a ZIP file at all.
            last_commit::foreign_directory(&source)?;
            return Err(Error::unsupported(
                "another program wrote this ZIP, so it cannot be appended to; copy its arrays into a new store",
            ));
        }
        let last = last_commit::find(&source, &header)?;
        let file_len = source.length()?;
        let source: Arc<dyn ByteSource> = Arc::new(source);
        let reader = ZipReader::with_root(Arc::clone(&source), &last.slot, limits)?;
        let record = match commit_record::check_restorable(&*source, &last.slot, limits) {
            Ok(record) => Some(record),
            // The tail is the only intact copy of the commit's directory: it is kept.
            Err(error) if error.kind() == ErrorKind::Corrupt && reader.has_tail() => None,
            Err(error) => return Err(error),
        };
        let slot = Slot {
            has_temporary_tail: last.slot.has_temporary_tail && record.is_some(),
            ..last.slot
        };
        restore_slots(&file, path, &last, durability)?;
        let (end, kept) = match reader.has_tail() {
            true => (slot.end(), slot.permanent_end()),
            false => (slot.permanent_end(), slot.permanent_end()),
        };
        file.set_len(end.unwrap_or(u64::MAX)).map_err(|source| {
            Error::io(source, path, "cutting off the bytes after the last commit")
        })?;
        let kept = kept.unwrap_or(u64::MAX);
        let mut writer = Self::new(file, path.to_path_buf(), durability, kept);
        writer.temporary_tail = match slot.has_temporary_tail && reader.has_tail() {
            true => Some(read_tail(&*source, &slot, limits)?),
            false => None,
        };
        writer.slot = slot;
        writer.is_tail_overwritten = slot.end() > Some(file_len);
        writer.is_full = record.is_none();
        writer.log_len = record.as_ref().map_or(0, |record| record.log_len);
        writer.limits = *limits;
        if let Some(document) = reader.read_whole(ROOT, limits.metadata_bytes)? {
            let alone = record
                .and_then(|record| record.changes)
                .map_or_else(|| document.clone(), |changes| changes.root);
            writer.root = Some(RootDocument { document, alone });
        }
        writer.live = live_entries(&reader)?;
        Ok(writer)
    }

    /// Continues the commit numbers of `reader`, whose file is replaced.
    pub fn replaces(&mut self, reader: &ZipReader) -> Result<()> {
        self.slot.sequence = reader.usage()?.commit;
        Ok(())
    }

    /// Appends all entries as the commit `info`, to which the slots do not refer, and forgets them.
    pub fn append_earlier_commit(&mut self, info: &CommitInfo) -> Result<()> {
        self.guarded(|writer| {
            writer.slot.sequence = info.number - 1;
            writer.is_full = true;
            writer.message.clone_from(&info.message);
            writer.slot = writer.append_commit(info.time)?.slot;
            writer.live.clear();
            writer.changed_keys.clear();
            writer.root = None;
            Ok(())
        })
    }

    /// The record of the entry `key`.
    pub fn record(&self, key: &str) -> Option<EntryRecord> {
        self.live.get(key).copied()
    }

    /// Adds an entry whose bytes are in the file.
    pub fn add_record(&mut self, key: &str, record: EntryRecord) {
        self.insert(key, record);
    }

    /// Commits all entries again, with a tail that is kept.
    pub fn commit_tail(&mut self, message: &str) -> Result<()> {
        (self.changed, self.is_full) = (true, true);
        self.set_message(message)?;
        self.commit()
    }

    fn new(file: Arc<File>, path: PathBuf, durability: Durability, end: u64) -> Self {
        Self {
            out: Appender::new(Arc::clone(&file), path.clone(), durability, end),
            file,
            path,
            durability,
            new: None,
            live: BTreeMap::new(),
            root: None,
            changed_keys: BTreeSet::new(),
            changed: false,
            is_full: false,
            message: String::new(),
            slot: Slot::default(),
            log_len: 0,
            temporary_tail: None,
            is_tail_overwritten: false,
            state: State::new(),
            limits: Limits::default(),
        }
    }

    /// Runs `action`; after an error the writer is poisoned.
    fn guarded<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.state.check(&self.path)?;
        let result = action(self);
        if result.is_err() {
            self.state.fail();
        }
        result.map_err(|error| error.in_file(self.path.display()))
    }

    /// Appends an entry with the properties of `record` except its offsets, whose bytes `write` appends.
    pub fn append_entry(
        &mut self,
        key: &str,
        record: EntryRecord,
        write: impl FnOnce(&mut Appender) -> Result<()>,
    ) -> Result<()> {
        self.guarded(|writer| {
            writer.is_tail_overwritten = true;
            let header = record.local_header(key);
            let header_offset = writer.out.position();
            writer.out.write(&header)?;
            let data_offset = writer.out.position();
            write(&mut writer.out)?;
            debug_assert_eq!(writer.out.position(), data_offset + record.stored_len());
            let record = EntryRecord {
                header_offset,
                data_offset: Some(data_offset),
                streamed: false,
                ..record
            };
            writer.insert(key, record);
            Ok(())
        })
    }

    fn insert(&mut self, key: &str, record: EntryRecord) {
        self.live.insert(key.into(), record);
        self.changed_keys.insert(key.into());
        self.changed = true;
    }

    fn append_parts(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
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
            return self.append_entry(key, record, |out| out.write(&deflated));
        }
        self.append_entry(key, record, |out| out.write_parts(parts))
    }

    /// Reads the bytes of an entry, after writing the buffered ones.
    fn read_entry(&mut self, key: &str, record: EntryRecord) -> Result<Vec<u8>> {
        self.out.flush()?;
        let offset = record.data_offset.ok_or_else(|| {
            Error::corrupt("the offset of the entry is unknown; open the store again").at_node(key)
        })?;
        let mut bytes = zeroed("an entry", record.stored_len() as usize)?;
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(|source| Error::io(source, &self.path, "reading back"))?;
        record.content(bytes).map_err(|error| error.at_node(key))
    }

    /// Appends the record and the tail of the commit. Returns its slot, the new length of the log, and the tail if
    /// it is temporary.
    fn append_commit(&mut self, time: i64) -> Result<NewCommit> {
        let (mut entries, mut removed) = (Vec::new(), Vec::new());
        for key in &self.changed_keys {
            match self.live.get(key) {
                Some(record) => encode_entry(key, record, &mut entries),
                None => removed.push(key.clone()),
            }
        }
        let counts = (self.changed_keys.len() - removed.len(), removed.len());
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
        let is_full = self.slot.record == 0 || self.is_full || log_len >= self.slot.tail_len();
        if is_full {
            body = RecordBody::new(&self.message, None);
            log_len = 0;
        }
        self.is_tail_overwritten = true;
        let record_offset = self.out.position();
        let tail_offset = record_offset + body.record_len() as u64;
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
        let limit = self.limits.directory_bytes.min(u32::MAX.into());
        Limits::check("the central directory", directory.len() as u64, limit)?;
        let slot = Slot {
            sequence: self.slot.sequence + 1,
            directory_offset: tail_offset + tail.len() as u64,
            directory_len: directory.len() as u64,
            directory_crc: crc32c(&directory),
            entries: (self.live.len() + usize::from(self.root.is_some())) as u64,
            tail: tail_offset,
            record: record_offset,
            has_temporary_tail: !is_full,
        };
        let previous = (self.slot.record > 0).then(|| self.slot.record_extent());
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
        self.out.write(&record.encode(&body))?;
        self.out.write(&tail)?;
        self.out.flush()?;
        // The last tail may be longer: the file must end with this one.
        let end = slot.end().unwrap_or(u64::MAX);
        self.file.set_len(end).map_err(|source| {
            Error::io(source, &self.path, "cutting off the bytes after the commit")
        })?;
        Ok(NewCommit {
            slot,
            log_len,
            temporary_tail: (!is_full).then_some(tail),
        })
    }

    fn write_commit(&mut self) -> Result<()> {
        let commit = self.append_commit(now())?;
        let slot = commit.slot;
        match &self.new {
            None => {
                // The commit must be on the disk before its slot.
                file::sync(&self.file, &self.path, self.durability)?;
                self.state.doubt();
                write_slot(&self.file, &self.path, slot.index(), &slot)?;
                file::sync(&self.file, &self.path, self.durability)?;
            }
            Some(new) => {
                // No process reads the file yet, so the order is arbitrary.
                write_slot(&self.file, &new.temporary, slot.index(), &slot)?;
                file::sync(&self.file, &new.temporary, self.durability)?;
                if !new.overwrite && self.path.symlink_metadata().is_ok() {
                    return Err(file::already_exists(&self.path));
                }
                #[cfg(test)]
                super::super::faults::step(&self.path)?;
                fs::rename(&new.temporary, &self.path).map_err(|source| {
                    Error::io(source, &self.path, "renaming the temporary file")
                })?;
                self.state.doubt();
                self.new = None;
                file::sync_parent(&self.path, self.durability)?;
            }
        }
        self.slot = slot;
        self.log_len = commit.log_len;
        self.temporary_tail = commit.temporary_tail;
        self.is_tail_overwritten = false;
        self.out.restart(slot.permanent_end().unwrap_or(u64::MAX));
        (self.changed, self.is_full) = (false, false);
        self.changed_keys.clear();
        self.message.clear();
        self.state.succeed();
        Ok(())
    }

    /// Restores the tail of the last commit, and cuts the file at its end.
    fn roll_back(&self) {
        if !self.is_tail_overwritten {
            return;
        }
        // Errors cannot be reported, and do not affect later readers or writers.
        if let Some(tail) = &self.temporary_tail {
            let _ = self.file.write_all_at(tail, self.slot.tail);
        }
        let end = match self.slot.has_temporary_tail && self.temporary_tail.is_none() {
            true => self.slot.permanent_end(),
            false => self.slot.end(),
        };
        if let Some(end) = end {
            let _ = self.file.set_len(end);
        }
    }
}

/// The result of [`ZipWriter::append_commit`].
struct NewCommit {
    slot: Slot,
    log_len: u64,
    temporary_tail: Option<Vec<u8>>,
}

impl ContainerWriter for ZipWriter {
    fn check(&self) -> Result<()> {
        self.state.check(&self.path)
    }

    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        if key != ROOT {
            return self.append_parts(key, parts, seal);
        }
        let document = parts.concat();
        self.put_root(&document, &document)
    }

    fn put_copy(
        &mut self,
        key: &str,
        source: &dyn Container,
        from: &str,
        entry: &Entry,
    ) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        let Some(crc32) = entry.crc32 else {
            let content = existing_content(source, from)?;
            return self.put_sealed(key, &[&content], entry.seal);
        };
        let record = EntryRecord {
            len: entry.len,
            crc32,
            seal: entry.seal,
            ..EntryRecord::default()
        };
        self.append_entry(key, record, |out| {
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

    fn put_root(&mut self, document: &[u8], alone: &[u8]) -> Result<()> {
        self.state.check(&self.path)?;
        let old = self.root.as_ref().map(|root| &root.document[..]);
        self.changed |= old != Some(document);
        self.root = Some(RootDocument {
            document: document.to_vec(),
            alone: alone.to_vec(),
        });
        Ok(())
    }

    fn restore(&mut self, number: u64) -> Result<()> {
        if self.new.is_some() {
            return Err(nothing_committed(&self.path));
        }
        self.guarded(|writer| {
            let source = LocalFile::new(Arc::clone(&writer.file), &writer.path);
            let last = ZipReader::with_root(Arc::new(source), &writer.slot, &writer.limits)?;
            let reader = last.commit_of_number(number)?;
            let replaced = std::mem::replace(&mut writer.live, live_entries(&reader)?);
            let both = replaced.keys().chain(writer.live.keys());
            let changed = both.filter(|key| replaced.get(*key) != writer.live.get(*key));
            writer.changed_keys = changed.cloned().collect();
            writer.root = reader
                .read_whole(ROOT, writer.limits.metadata_bytes)?
                .map(|document| {
                    let alone = document.clone();
                    RootDocument { document, alone }
                });
            // The entries are in other places than those of the log.
            (writer.changed, writer.is_full) = (true, true);
            Ok(())
        })
    }

    fn set_message(&mut self, message: &str) -> Result<()> {
        if message.len() > MOST_MESSAGE {
            let error = Error::invalid(format!(
                "the message of the commit has {} bytes; expected at most {MOST_MESSAGE}",
                message.len()
            ));
            return Err(error.in_file(self.path.display()));
        }
        message.clone_into(&mut self.message);
        Ok(())
    }

    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.state.check(&self.path)?;
        let Some(record) = self.live.get(key).copied() else {
            return Ok(None);
        };
        Limits::check("an entry", record.len, limit)
            .map_err(|error| error.at_node(key).in_file(self.path.display()))?;
        self.guarded(|writer| writer.read_entry(key, record))
            .map(Some)
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        self.state.check(&self.path)?;
        if self.live.remove(key).is_some() {
            self.changed_keys.insert(key.into());
            self.changed = true;
        }
        self.changed |= key == ROOT && self.root.take().is_some();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.state.check(&self.path)?;
        if !self.changed {
            return Ok(());
        }
        self.guarded(Self::write_commit)
    }

    fn share(&mut self) -> Result<SharedFileInfo> {
        self.guarded(|writer| {
            writer.is_tail_overwritten = true;
            writer.out.flush()?;
            let name = match &writer.new {
                Some(new) => new.temporary.clone(),
                None => writer.path.clone(),
            };
            let end = writer.out.position();
            SharedFileInfo::new(
                &writer.file,
                name,
                writer.path.clone(),
                end,
                writer.durability,
            )
        })
    }

    fn adopt(&mut self, entries: Vec<SharedEntry>, end: u64) -> Result<()> {
        for entry in &entries {
            key::validate_key(&entry.key).map_err(|error| error.in_file(self.path.display()))?;
        }
        self.guarded(|writer| {
            writer.out.flush()?;
            let ends = entries.iter().map(|entry| entry.data_offset + entry.len);
            let end = ends.max().unwrap_or(0).max(writer.out.position()).max(end);
            for entry in entries {
                let record = EntryRecord {
                    header_offset: entry.header_offset,
                    data_offset: Some(entry.data_offset),
                    len: entry.len,
                    crc32: entry.crc32,
                    seal: entry.seal,
                    ..EntryRecord::default()
                };
                writer.insert(&entry.key, record);
            }
            let (file, path) = (Arc::clone(&writer.file), writer.path.clone());
            writer.out = Appender::new(file, path, writer.durability, end);
            Ok(())
        })
    }

    fn reader(&self) -> Result<Arc<dyn Container>> {
        self.state.check(&self.path)?;
        if self.new.is_some() {
            return Err(nothing_committed(&self.path));
        }
        let source = LocalFile::new(Arc::clone(&self.file), &self.path);
        let reader = ZipReader::with_root(Arc::new(source), &self.slot, &self.limits)?;
        Ok(Arc::new(reader))
    }
}

impl Drop for ZipWriter {
    fn drop(&mut self) {
        if !self.state.is_owner() {
            return;
        }
        if let Some(new) = &self.new {
            // Errors cannot be reported here, and do not affect later readers or writers.
            let _ = fs::remove_file(&new.temporary);
        } else if !self.state.is_in_doubt() {
            self.roll_back();
        }
        // A forked child may hold a copy of the descriptor, which would keep the lock.
        let _ = self.file.unlock();
    }
}

impl std::fmt::Debug for ZipWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ZipWriter({}, commit {})",
            self.path.display(),
            self.slot.sequence
        )
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
        data_offset: record.data_offset.unwrap_or_default(),
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

/// Reads the tail of the commit `slot`, whose trailer may be damaged.
fn read_tail(source: &dyn ByteSource, slot: &Slot, limits: &Limits) -> Result<Vec<u8>> {
    let mut tail = slot.read_directory(source, slot.tail, limits)?;
    tail.extend_from_slice(&slot.trailer());
    Ok(tail)
}

/// The time in microseconds since 1970-01-01 UTC, or the seconds in the environment variable `SOURCE_DATE_EPOCH`, by
/// which the bytes of a store become reproducible.
fn now() -> i64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok();
    if let Some(seconds) = fixed.and_then(|text| text.parse::<i64>().ok()) {
        return seconds.saturating_mul(1_000_000);
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

/// Writes `slot` as the header's slot number `index`.
pub fn write_slot(file: &File, path: &Path, index: usize, slot: &Slot) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(path)?;
    file.write_all_at(&slot.encode(), SLOT_OFFSETS[index] as u64)
        .map_err(|source| Error::io(source, path, "writing the commit slot"))
}

/// Restores damaged slots, so that the slot of the next commit is never the only intact one. Returns the
/// number of slots written.
pub fn restore_slots(
    file: &File,
    path: &Path,
    last: &last_commit::LastCommit,
    durability: Durability,
) -> Result<usize> {
    let own = last.slot.index();
    let older = last.slots[1 - own].filter(|slot| slot.sequence < last.slot.sequence);
    let mut written = 0;
    // The last commit's slot comes first: until then only the trailer has its record.
    for (index, slot) in [(own, last.slot), (1 - own, older.unwrap_or_default())] {
        if last.slots[index] != Some(slot) {
            write_slot(file, path, index, &slot)?;
            file::sync(file, path, durability)?;
            written += 1;
        }
    }
    Ok(written)
}
