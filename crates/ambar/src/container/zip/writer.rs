//! Writes a ZIP: entries are appended, and a commit is one small write of a slot after them.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::claims;
use super::super::interface::existing_content;
use super::super::source::{ByteSource, LocalFile};
use super::super::state::{State, nothing_committed};
use super::super::{
    CommitInfo, Container, ContainerWriter, CreateOptions, Durability, Entry, SharedEntry,
    SharedFileInfo, SharedLocation, file, key,
};
use super::appender::Appender;
use super::commit_record;
use super::entry_record::EntryRecord;
use super::last_commit;
use super::next_commit::{EncodedCommit, NextCommit, Output, now};
use super::reader::ZipReader;
use super::records::ROOT;
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
    next: NextCommit,
    /// The tail of the last commit, if it is to be restored where nothing is committed.
    temporary_tail: Option<Vec<u8>>,
    /// Whether bytes after the last commit's record may have been written.
    is_tail_overwritten: bool,
    /// Whether there may be claims on the file, by other processes that write into it.
    has_claims: bool,
    state: State,
    limits: Limits,
}

/// A file that has a temporary name until the first commit.
struct NewFile {
    temporary: PathBuf,
    /// The file to replace, locked so that no other writer appends to a file that will be deleted.
    replaced: Option<File>,
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
        let metadata = replaced.as_ref().map(|(_, found)| found);
        let (new, has_claims) = create_temporary(&temporary, &path, metadata)
            .map_err(|error| file::failed_creating(error, &temporary, &path))?;
        let mut writer = Self::new(Arc::new(new), path, options.durability, HEADER_LEN as u64);
        writer.limits = options.limits;
        writer.has_claims = has_claims;
        writer.next.require();
        writer.new = Some(NewFile {
            temporary,
            replaced: replaced.map(|(file, _)| file),
            overwrite: options.overwrite,
        });
        Ok(writer)
    }

    /// Opens the ZIP `path` to append after its last commit.
    pub fn append(path: &Path, durability: Durability, limits: &Limits) -> Result<Self> {
        let path = file::resolve(path);
        let file = Arc::new(file::open_locked(&path)?);
        let claimed = claims::end_of(&path)?;
        let mut writer = Self::resume(Arc::clone(&file), &path, durability, limits)
            .map_err(|error| error.in_file(path.display()))?;
        if let Some(claimed) = claimed {
            writer.has_claims = true;
            writer.out.restart(writer.out.position().max(claimed));
        }
        Ok(writer)
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
        writer.is_tail_overwritten = slot.end() > Some(file_len);
        writer.limits = *limits;
        writer.next = NextCommit::after(slot, &reader, record, limits)?;
        Ok(writer)
    }

    /// Continues the commit numbers of `reader`, whose file is replaced.
    pub fn replaces(&mut self, reader: &ZipReader) -> Result<()> {
        self.next.follow(reader.usage()?.commit);
        Ok(())
    }

    /// Appends all entries as the commit `info`, to which the slots do not refer, and forgets them.
    pub fn append_earlier_commit(&mut self, info: &CommitInfo) -> Result<()> {
        self.guarded(|writer| {
            writer.next.follow(info.number - 1);
            writer.next.require_full();
            writer.next.set_message(&info.message)?;
            let commit = writer.append_commit(info.time)?;
            writer.next.committed(&commit);
            writer.next.clear();
            writer.next.require_full();
            Ok(())
        })
    }

    /// The record of the entry `key`.
    pub fn record(&self, key: &str) -> Option<EntryRecord> {
        self.next.get(key)
    }

    /// Adds an entry whose bytes are in the file.
    pub fn add_record(&mut self, key: &str, record: EntryRecord) {
        self.next.insert(key, record);
    }

    /// Commits all entries again, with a tail that is kept.
    pub fn commit_tail(&mut self, message: &str) -> Result<()> {
        self.next.require_full();
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
            next: NextCommit::default(),
            temporary_tail: None,
            is_tail_overwritten: false,
            has_claims: false,
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
        result.map_err(|error| {
            match &self.new {
                Some(new) => error.for_target(&new.temporary, &self.path),
                None => error,
            }
            .in_file(self.path.display())
        })
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
            writer.next.append(&mut writer.out, key, record, write)
        })
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

    /// Appends the record and the tail of the commit.
    fn append_commit(&mut self, time: i64) -> Result<EncodedCommit> {
        let commit = self.next.encode(time, self.out.position(), &self.limits)?;
        self.is_tail_overwritten = true;
        self.out.write(&commit.record)?;
        self.out.write(&commit.tail)?;
        self.out.flush()?;
        // The last tail may be longer: the file must end with this one.
        let end = commit.slot.end().unwrap_or(u64::MAX);
        self.file.set_len(end).map_err(|source| {
            Error::io(source, &self.path, "cutting off the bytes after the commit")
        })?;
        Ok(commit)
    }

    /// Checks that the file still has its name.
    fn check_named(&self) -> Result<()> {
        let path = self.new.as_ref().map_or(&self.path, |new| &new.temporary);
        file::check_named(&self.file, path, &self.path)
    }

    /// Checks that the file still has all bytes that this writer wrote, and those of the last commit.
    fn check_length(&mut self) -> Result<()> {
        let committed = match &self.new {
            Some(_) => Some(HEADER_LEN as u64),
            // The tail is overwritten by the next entries.
            None => self.next.last().permanent_end(),
        };
        let len = self.out.flushed().max(committed.unwrap_or(0));
        let checked = file::check_length(&self.file, &self.path, len);
        if checked.is_err() {
            // Writing a tail into a truncated file would hide that it was cut short.
            self.is_tail_overwritten = false;
        }
        checked
    }

    fn write_commit(&mut self) -> Result<()> {
        self.check_named()?;
        self.check_length()?;
        let commit = self.append_commit(now())?;
        let slot = commit.slot;
        match &self.new {
            None => {
                // The commit must be on the disk before its slot.
                file::sync(&self.file, &self.path, self.durability)?;
                // The flush can take long.
                self.check_named()?;
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
        self.next.committed(&commit);
        self.temporary_tail = slot.has_temporary_tail.then_some(commit.tail);
        self.is_tail_overwritten = false;
        self.out.restart(slot.permanent_end().unwrap_or(u64::MAX));
        self.state.succeed();
        if std::mem::take(&mut self.has_claims) {
            // All claimed bytes are before the end of the commit. A folder that remains does no harm.
            let _ = claims::remove_of(&self.path);
        }
        Ok(())
    }

    /// Restores the tail of the last commit, and cuts the file at its end.
    fn roll_back(&self) {
        if !self.is_tail_overwritten {
            return;
        }
        // Errors cannot be reported, and do not affect later readers or writers.
        let slot = self.next.last();
        if let Some(tail) = &self.temporary_tail {
            let _ = self.file.write_all_at(tail, slot.tail);
        }
        let end = match slot.has_temporary_tail && self.temporary_tail.is_none() {
            true => slot.permanent_end(),
            false => slot.end(),
        };
        if let Some(end) = end {
            let _ = self.file.set_len(end);
        }
    }
}

/// Creates the file `temporary`, which becomes the ZIP `path`, with its header and the lock. `replaced` is the file at
/// `path`. Returns whether there are claims on the file, too.
fn create_temporary(
    temporary: &Path,
    path: &Path,
    replaced: Option<&Metadata>,
) -> Result<(File, bool)> {
    let mut new = file::create_locked(temporary)?;
    let has_claims = claims::end_of(path)?.is_some();
    if has_claims {
        // Processes of a killed commit may still be writing into this file.
        let removed = fs::remove_file(temporary);
        removed.map_err(|source| Error::io(source, temporary, "removing"))?;
        new = file::create_locked(temporary)?;
    }
    let started = match replaced {
        Some(found) => file::inherit(&new, found, path),
        None => Ok(()),
    };
    let started = started.and_then(|()| {
        new.set_len(0)
            .and_then(|()| new.write_all_at(&slot::header(), 0))
            .map_err(|source| Error::io(source, temporary, "writing"))
    });
    match started {
        Ok(()) => Ok((new, has_claims)),
        Err(error) => {
            // The first error is reported.
            let _ = fs::remove_file(temporary);
            Err(error)
        }
    }
}

impl ContainerWriter for ZipWriter {
    fn check(&self) -> Result<()> {
        self.state.check(&self.path)
    }

    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        if key != ROOT {
            return self.guarded(|writer| {
                writer.is_tail_overwritten = true;
                writer.next.append_parts(&mut writer.out, key, parts, seal)
            });
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
        self.guarded(|writer| {
            writer.is_tail_overwritten = true;
            let source = (source, from);
            writer
                .next
                .append_copy(&mut writer.out, key, source, (entry, crc32))
        })
    }

    fn put_root(&mut self, document: &[u8], alone: &[u8]) -> Result<()> {
        self.state.check(&self.path)?;
        self.next.put_root(document, alone);
        Ok(())
    }

    fn restore(&mut self, number: u64) -> Result<()> {
        if self.new.is_some() {
            return Err(nothing_committed(&self.path));
        }
        self.guarded(|writer| {
            let source = LocalFile::new(Arc::clone(&writer.file), &writer.path);
            let last = writer.next.last();
            let last = ZipReader::with_root(Arc::new(source), last, &writer.limits)?;
            let reader = last.commit_of_number(number)?;
            writer.next.replace_all(&reader, &writer.limits)
        })
    }

    fn set_message(&mut self, message: &str) -> Result<()> {
        let set = self.next.set_message(message);
        set.map_err(|error| error.in_file(self.path.display()))
    }

    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.state.check(&self.path)?;
        let Some(record) = self.next.get(key) else {
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
        self.next.remove(key);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.state.check(&self.path)?;
        if !self.next.has_changes() {
            return Ok(());
        }
        self.guarded(Self::write_commit)
    }

    fn share(&mut self) -> Result<SharedFileInfo> {
        self.guarded(|writer| {
            writer.is_tail_overwritten = true;
            writer.has_claims = true;
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
            let mut end = end.max(writer.out.position());
            for entry in entries {
                let SharedLocation::File { header, data } = entry.location else {
                    let message = "the entry is an object; adopt it in a directory of objects";
                    return Err(Error::invalid(message).at_node(&entry.key));
                };
                end = end.max(data + entry.len);
                let record = EntryRecord {
                    header_offset: header,
                    data_offset: Some(data),
                    len: entry.len,
                    crc32: entry.crc32,
                    seal: entry.seal,
                    ..EntryRecord::default()
                };
                writer.next.insert(&entry.key, record);
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
        let reader = ZipReader::with_root(Arc::new(source), self.next.last(), &self.limits)?;
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
            if self.has_claims && new.replaced.is_none() {
                let _ = claims::remove_of(&self.path);
            }
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
            self.next.last().sequence
        )
    }
}

/// Reads the tail of the commit `slot`, whose trailer may be damaged.
fn read_tail(source: &dyn ByteSource, slot: &Slot, limits: &Limits) -> Result<Vec<u8>> {
    let mut tail = slot.read_directory(source, slot.tail, limits)?;
    tail.extend_from_slice(&slot.trailer());
    Ok(tail)
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
