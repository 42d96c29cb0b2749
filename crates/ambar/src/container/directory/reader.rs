//! Reading one commit of a directory, or a directory that another program made.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use super::super::{CommitId, Container, Entry, EntryLocation, Usage, file, key};
use super::folder::is_absence;
use super::folder::{Folder, Kind};
use super::list::{FileRecord, List};
use super::tree::{self, Others};
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};

/// A directory.
pub struct DirectoryReader {
    root: Folder,
    location: String,
    /// The commit; `None` if another program made the directory.
    commit: Option<Commit>,
}

struct Commit {
    list: List,
    /// The limits that the list was read with.
    limits: Limits,
    /// Held open, so that no later list can have the same identity.
    file: File,
    identity: (u64, u64),
    /// The numbers of the entries that were not at their keys yet when the list was read.
    waiting: HashSet<u64>,
}

impl DirectoryReader {
    /// Opens the directory at `path`.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self> {
        // Files are opened when they are read; the process may have changed its working directory by then.
        let root = Folder::open(&file::resolve(path))?;
        let commit = match root.open_file(tree::LIST) {
            Ok(file) => Some(Commit::read(&root, file, limits)?),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(root.failed(source, tree::LIST, "opening"));
            }
            Err(_) if root.has_folder(tree::OWN) => {
                return Err(Error::corrupt(
                    "the list of entries `.ambar/commit` is missing; restore it from a copy, or \
                     recreate it with `ambar repair`",
                )
                .in_file(path.display()));
            }
            Err(_) if tree::is_store(&root) => None,
            Err(_) => {
                return Err(Error::not_found(
                    "the folder contains no zarr.json, so it is not a store; check the path",
                )
                .in_file(path.display()));
            }
        };
        Ok(Self {
            root,
            location: path.display().to_string(),
            commit,
        })
    }

    /// The commit's list; `None` if another program made the directory.
    pub fn list(&self) -> Option<&List> {
        self.commit.as_ref().map(|commit| &commit.list)
    }

    fn record(&self, key: &str) -> Option<FileRecord> {
        self.list()?.entries.get(key).copied()
    }

    /// Opens the file of `key`, which may still have its temporary name.
    fn open_file(&self, key: &str) -> Result<File> {
        let Some((commit, record)) = self.commit.as_ref().zip(self.record(key)) else {
            return (self.root.open_file(key))
                .map_err(|source| self.root.failed(source, key, "opening"));
        };
        let waiting = commit.waiting.contains(&record.number);
        let first = waiting.then(|| self.root.open_file(&tree::staged_key(record.number)));
        let file = match first {
            Some(Ok(file)) => Ok(file),
            _ => self.root.open_file(key),
        };
        // Files are moved after the list is renamed. So the right file was opened if the list is still
        // that of this commit, or still has the same entry.
        let found = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        if !commit.still_has(&self.root, key, record)? {
            return Err(Error::busy(
                "a later commit has replaced the entry since the store was opened; open it again",
            ));
        }
        let (len, file) = found.map_err(|source| match is_absence(&source) {
            true => Error::corrupt("the entry's file is missing; restore it from a copy"),
            false => self.root.failed(source, key, "opening"),
        })?;
        if len != record.len {
            return Err(Error::corrupt(format!(
                "the entry's file has {len} bytes, not {}: another program has changed it, or it \
                 was cut short; restore it from a copy",
                record.len
            )));
        }
        Ok(file)
    }

    fn verify_entry(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let entry = self
            .entry(key)?
            .ok_or_else(|| Error::not_found("the entry does not exist"))?;
        let file = self.open_file(key)?;
        let found = file::stream(&file, &self.root.path_of(key), 0, entry.len, &mut |piece| {
            progress(piece.len() as u64);
            Ok(())
        })?;
        file::check_crc32(found, entry.crc32)
    }

    fn with_key<T>(&self, result: Result<T>, key: &str) -> Result<T> {
        result.map_err(|error| error.at_node(key).in_file(&self.location))
    }
}

impl Commit {
    fn read(root: &Folder, file: File, limits: &Limits) -> Result<Self> {
        let list = List::read(&file, &root.path_of(tree::LIST), limits)?;
        // Listed after the list was read: entries that are missing here are at their keys.
        let waiting = tree::staged_keys(root)?.into_iter().collect();
        let identity = file::identity(&file)
            .map_err(|source| root.failed(source, tree::LIST, "looking up"))?;
        Ok(Self {
            list,
            limits: *limits,
            file,
            identity,
            waiting,
        })
    }

    /// Whether the directory's last commit still has `record` under `key`. False if the directory was
    /// replaced: the open folder then has no list.
    fn still_has(&self, root: &Folder, key: &str, record: FileRecord) -> Result<bool> {
        if root
            .identity(tree::LIST)
            .is_ok_and(|now| now == self.identity)
        {
            return Ok(true);
        }
        let now = match root.open_file(tree::LIST) {
            Ok(file) => List::read(&file, &root.path_of(tree::LIST), &self.limits)?,
            Err(source) if is_absence(&source) => return Ok(false),
            Err(source) => return Err(root.failed(source, tree::LIST, "opening")),
        };
        Ok(now.entries.get(key) == Some(&record))
    }
}

impl Container for DirectoryReader {
    fn location(&self) -> &str {
        &self.location
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        let (len, crc32, seal) = match (&self.commit, self.record(key)) {
            (Some(_), None) => return Ok(None),
            (Some(_), Some(record)) => (record.len, Some(record.crc32), record.seal),
            (None, _) if key::broken_rule(key).is_some() => return Ok(None),
            (None, _) => match self.root.kind(key) {
                Ok(Some(Kind::File(len))) => (len, None, None),
                Ok(None | Some(Kind::Folder)) => return Ok(None),
                Ok(Some(Kind::Link)) => return Err(file::refused_link(&self.root.path_of(key))),
                Ok(Some(Kind::Special)) => {
                    return Err(file::not_regular(&self.root.path_of(key)));
                }
                Err(source) => return Err(self.root.failed(source, key, "looking up")),
            },
        };
        let location = EntryLocation::Key(key.into());
        Ok(Some(Entry {
            len,
            crc32,
            seal,
            location,
        }))
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        let key = entry.key().map_err(|error| error.in_file(&self.location))?;
        let mut read = || {
            entry.check_range(offset, out.len())?;
            let file = self.open_file(key)?;
            file::read_exact(&file, &self.root.path_of(key), offset, out)
        };
        self.with_key(read(), key)
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(key)? else {
            return Ok(None);
        };
        let read = || {
            let mut bytes = zeroed("the entry", Limits::check("the entry", entry.len, limit)?)?;
            self.read_at(&entry, 0, &mut bytes)?;
            file::check_crc32(crc32fast::hash(&bytes), entry.crc32)?;
            Ok(Some(bytes))
        };
        self.with_key(read(), key)
    }

    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.with_key(self.verify_entry(key, progress), key)
    }

    fn verify_records(&self) -> Result<u64> {
        // The list of entries was verified when it was read, and there is no other record.
        Ok(0)
    }

    fn keys(&self) -> Result<Vec<String>> {
        let mut keys: Vec<String> = match self.list() {
            Some(list) => list.entries.keys().map(|key| key.to_string()).collect(),
            None => tree::walk(&self.root, Others::Refuse)?
                .into_iter()
                .map(|(key, _)| key)
                .collect(),
        };
        keys.sort_unstable();
        Ok(keys)
    }

    fn entry_count(&self) -> Option<u64> {
        Some(self.list()?.entries.len() as u64)
    }

    fn usage(&self) -> Result<Usage> {
        let files = tree::walk(&self.root, Others::Ignore)?;
        let lens = files.iter().map(|(_, len)| *len);
        let in_place = lens.fold(0, u64::saturating_add);
        let Some(commit) = &self.commit else {
            return Ok(Usage {
                total: in_place,
                live: in_place,
                dead: 0,
                entries: files.len() as u64,
                commit: 0,
            });
        };
        let total = in_place.saturating_add(tree::own_bytes(&self.root)?);
        let own = file::length(&commit.file, &self.root.path_of(tree::LIST))?;
        let entries = commit.list.entries.values().map(|record| record.len);
        let live = entries.fold(own, u64::saturating_add);
        Ok(Usage {
            total,
            live,
            dead: total.saturating_sub(live),
            entries: commit.list.entries.len() as u64,
            commit: commit.list.sequence,
        })
    }

    fn commit_id(&self) -> Option<CommitId> {
        self.list().map(List::commit_id)
    }
}

impl std::fmt::Debug for DirectoryReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DirectoryReader({})", self.location)
    }
}
