//! Writes a ZIP: entries are appended, and a commit is one small write of a slot after them.

use crc_fast::crc32_iscsi as crc32c;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::source::LocalFile;
use super::super::state::{State, nothing_committed};
use super::super::{
    Container, ContainerWriter, CreateOptions, Durability, SharedEntry, SharedFileInfo, file, key,
};
use super::appender::Appender;
use super::deflate;
use super::entry_record::EntryRecord;
use super::last_commit;
use super::reader::ZipReader;
use super::records::{self, DirectoryEntry, LocalHeader, ROOT};
use super::slot::{self, HEADER_LEN, SLOT_OFFSETS, Slot};
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};

/// The writer of a ZIP, which has locked the file.
pub struct ZipWriter {
    file: Arc<File>,
    path: PathBuf,
    durability: Durability,
    /// The state of a new file until its first commit.
    new: Option<NewFile>,
    out: Appender,
    /// The entries of the next commit, except `root`.
    live: HashMap<Box<str>, EntryRecord>,
    root: Option<Vec<u8>>,
    changed: bool,
    slot: Slot,
    state: State,
    limits: Limits,
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
        Self::resume(Arc::clone(&file), &path, durability, limits)
            .map_err(|error| error.in_file(path.display()))
    }

    fn resume(
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
        let reader = ZipReader::at(Arc::new(source), &last.slot, limits)?;
        restore_slots(&file, path, &last, durability)?;
        let end = last.slot.end().unwrap_or(u64::MAX);
        file.set_len(end).map_err(|source| {
            Error::io(source, path, "cutting off the bytes after the last commit")
        })?;
        let mut writer = Self::new(file, path.to_path_buf(), durability, end);
        writer.slot = last.slot;
        writer.limits = *limits;
        let entries = reader.entries().iter();
        writer.live = entries.map(|(key, record)| (key.into(), record)).collect();
        Ok(writer)
    }

    /// Continues the commit numbers of `reader`, whose file is replaced.
    pub fn replaces(&mut self, reader: &ZipReader) -> Result<()> {
        self.slot.sequence = reader.usage()?.commit;
        Ok(())
    }

    fn new(file: Arc<File>, path: PathBuf, durability: Durability, end: u64) -> Self {
        Self {
            out: Appender::new(Arc::clone(&file), path.clone(), durability, end),
            file,
            path,
            durability,
            new: None,
            live: HashMap::new(),
            root: None,
            changed: false,
            slot: Slot::default(),
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
            let mut header = Vec::new();
            LocalHeader {
                name: key,
                len: record.len,
                deflated: record.deflated,
                crc32: record.crc32,
            }
            .encode(&mut header);
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
            writer.live.insert(key.into(), record);
            writer.changed = true;
            Ok(())
        })
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

    /// Appends everything of the commit except its slot, which is returned.
    fn append_commit(&mut self) -> Result<Slot> {
        let mut tail = self.out.position();
        match self.root.take() {
            Some(root) => self.append_parts(ROOT, &[&root], None)?,
            None => tail = self.out.position(),
        }
        let mut order: Vec<_> = self.live.iter().collect();
        order.sort_unstable_by_key(|(_, record)| record.header_offset);
        let mut directory = Vec::new();
        for (name, record) in order {
            DirectoryEntry {
                name,
                len: record.len,
                deflated: record.deflated,
                crc32: record.crc32,
                header_offset: record.header_offset,
                data_offset: record.data_offset.unwrap_or_default(),
                seal: record.seal,
            }
            .encode(&mut directory);
        }
        // Readers would reject a larger directory.
        let limit = self.limits.directory_bytes.min(u32::MAX.into());
        Limits::check("the central directory", directory.len() as u64, limit)?;
        let slot = Slot {
            sequence: self.slot.sequence + 1,
            directory_offset: self.out.position(),
            directory_len: directory.len() as u64,
            directory_crc: crc32c(&directory),
            entries: self.live.len() as u64,
            tail,
        };
        self.out.write(&directory)?;
        self.out.write(&slot.trailer())?;
        self.out.flush()?;
        Ok(slot)
    }

    fn write_commit(&mut self) -> Result<()> {
        let slot = self.append_commit()?;
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
        self.changed = false;
        self.state.succeed();
        Ok(())
    }
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
        self.state.check(&self.path)?;
        self.root = Some(parts.concat());
        self.changed = true;
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
        let removed = self.live.remove(key).is_some();
        let dropped = key == ROOT && self.root.take().is_some();
        self.changed |= removed || dropped;
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

    fn adopt(&mut self, entries: Vec<SharedEntry>) -> Result<()> {
        for entry in &entries {
            key::validate_key(&entry.key).map_err(|error| error.in_file(self.path.display()))?;
        }
        self.guarded(|writer| {
            writer.out.flush()?;
            let ends = entries.iter().map(|entry| entry.data_offset + entry.len);
            let end = ends.max().unwrap_or(0).max(writer.out.position());
            for entry in entries {
                let record = EntryRecord {
                    header_offset: entry.header_offset,
                    data_offset: Some(entry.data_offset),
                    len: entry.len,
                    crc32: entry.crc32,
                    seal: entry.seal,
                    ..EntryRecord::default()
                };
                writer.live.insert(entry.key.into(), record);
                writer.changed = true;
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
        // Errors cannot be reported here, and do not affect later readers or writers.
        if let Some(new) = &self.new {
            let _ = fs::remove_file(&new.temporary);
        } else if !self.state.is_in_doubt()
            && let Some(end) = self.slot.end()
        {
            let _ = self.file.set_len(end);
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
