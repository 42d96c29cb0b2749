//! Writing a directory: entries wait under other names, and a commit is the renaming of one list.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::state::State;
use super::super::{Container, ContainerWriter, CreateOptions, Durability, file, key};
use super::list::{List, Record};
use super::reader::DirectoryReader;
use super::{place, tree};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// From so many entries on, one call for all of the file system is cheaper than one for each file.
const MANY: usize = 64;

/// The writer of a directory; it holds the directory's lock.
pub struct DirectoryWriter {
    /// Where the directory is now: until the first commit its temporary name.
    root: PathBuf,
    path: PathBuf,
    durability: Durability,
    /// What a new directory may replace; `None` from its first commit on.
    new: Option<NewFolder>,
    lock: File,
    /// The last commit.
    last: List,
    /// The next commit.
    list: List,
    /// The keys put since the last commit.
    put: Vec<Box<str>>,
    changed: bool,
    state: State,
}

/// What a directory that has not got its name yet may replace.
struct NewFolder {
    /// The lock of the directory to be replaced.
    _replaced: Option<File>,
    overwrite: bool,
}

impl DirectoryWriter {
    /// Creates the directory `path`, under its temporary name.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Self> {
        let path = file::resolve(path);
        let replaced = match fs::symlink_metadata(&path) {
            Err(_) => None,
            Ok(_) if !options.overwrite => return Err(file::taken(&path)),
            Ok(found) if found.is_dir() && tree::is_store(&path) => lock_existing(&path)?,
            Ok(_) => {
                return Err(Error::invalid(
                    "a directory is to be created, but what is there is no directory store; \
                     choose another name",
                )
                .in_file(path.display()));
            }
        };
        let root = file::temporary(&path, ".ambar-new-folder")?;
        for folder in [&root, &tree::own(&root)] {
            match fs::create_dir(folder) {
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io(source, folder, "making the folder"));
                }
                _ => {}
            }
            // What is here will be cleared: it must not be a link to somewhere else.
            if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
                return Err(Error::busy(
                    "this name is needed for a moment, but taken; remove what has it",
                )
                .in_file(folder.display()));
            }
        }
        let lock = file::create_locked(&tree::lock(&root))?;
        let mut writer = Self::new(root, path, lock, options.durability);
        writer.changed = true;
        writer.new = Some(NewFolder {
            _replaced: replaced,
            overwrite: options.overwrite,
        });
        tree::clear(&writer.root)?;
        Ok(writer)
    }

    /// Goes on writing the directory `path`. Entries that a killed writer has committed but not
    /// brought to their places get there; those it has not committed are removed.
    pub fn append(path: &Path, durability: Durability) -> Result<Self> {
        let path = file::resolve(path);
        if !tree::own(&path).exists() {
            DirectoryReader::open(&path)?;
            return Err(Error::unsupported(
                "another program made this directory; let `ambar compact` adopt it first",
            )
            .in_file(path.display()));
        }
        let lock = file::create_locked(&tree::lock(&path))?;
        let list_path = tree::list(&path);
        let list = File::open(&list_path)
            .map_err(|source| Error::io(source, &list_path, "opening"))
            .and_then(|file| List::read(&file, &list_path))?;
        place::finish(&path, &list)?;
        let mut writer = Self::new(path.clone(), path, lock, durability);
        writer.last = list.clone();
        writer.list = list;
        Ok(writer)
    }

    fn new(root: PathBuf, path: PathBuf, lock: File, durability: Durability) -> Self {
        Self {
            root,
            path,
            durability,
            new: None,
            lock,
            last: List::default(),
            list: List::default(),
            put: Vec::new(),
            changed: false,
            state: State::new(),
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

    fn write_entry(&mut self, key: &str, parts: &[&[u8]]) -> Result<()> {
        let number = self.list.next;
        let path = tree::waiting(&self.root, number);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            parts.iter().try_for_each(|part| file.write_all(part))
        };
        write().map_err(|source| Error::io(source, &path, "writing"))?;
        let mut hasher = crc32fast::Hasher::new();
        parts.iter().for_each(|part| hasher.update(part));
        let record = Record {
            len: parts.iter().map(|part| part.len() as u64).sum(),
            crc32: hasher.finalize(),
            number,
        };
        self.list.next += 1;
        if let Some(replaced) = self.list.entries.insert(key.into(), record) {
            self.drop_waiting(replaced);
        }
        self.put.push(key.into());
        self.changed = true;
        Ok(())
    }

    /// The bytes of an entry, at its place or waiting for the next commit.
    fn read_entry(&self, key: &str, record: Record) -> Result<Vec<u8>> {
        let path = if record.number >= self.last.next {
            tree::waiting(&self.root, record.number)
        } else {
            self.root.join(key)
        };
        let bytes = fs::read(&path).map_err(|source| Error::io(source, &path, "reading back"))?;
        file::check_crc32(crc32fast::hash(&bytes), Some(record.crc32))
            .map_err(|error| error.at_node(key))?;
        Ok(bytes)
    }

    /// Removes the file of an entry that was put since the last commit, and put again or removed.
    fn drop_waiting(&self, record: Record) {
        if record.number >= self.last.next {
            // The next writer removes it where this fails.
            let _ = fs::remove_file(tree::waiting(&self.root, record.number));
        }
    }

    /// Brings the list of the next commit to the disk; from the renaming on it is the last one.
    fn write_commit(&mut self) -> Result<()> {
        self.list.sequence = self.last.sequence + 1;
        let now = &self.list.entries;
        let removed = self.last.entries.keys();
        let removed: Vec<_> = removed
            .filter(|key| !now.contains_key(*key))
            .cloned()
            .collect();
        self.list.removed = removed;
        self.list.removed.sort_unstable();
        self.sync_entries()?;
        let list = place::write_list(&self.root, &self.list, self.durability)?;
        if self.new.is_none() {
            self.state.doubt();
        }
        place::name_list(&self.root, &list, self.durability)?;
        place::finish(&self.root, &self.list)?;
        if let Some(new) = &self.new {
            let overwrite = new.overwrite;
            self.name_folder(overwrite)?;
        }
        self.last = self.list.clone();
        self.put.clear();
        self.changed = false;
        self.state.succeed();
        Ok(())
    }

    /// Makes the entries put since the last commit durable.
    fn sync_entries(&self) -> Result<()> {
        if self.durability == Durability::None {
            return Ok(());
        }
        if self.put.len() > MANY && file::sync_file_system(&self.root)? {
            return Ok(());
        }
        for key in &self.put {
            let Some(record) = self.list.entries.get(key) else {
                continue;
            };
            let path = tree::waiting(&self.root, record.number);
            let file = File::open(&path);
            let file =
                file.map_err(|source| Error::io(source, &path, "opening to make durable"))?;
            file::sync(&file, &path, self.durability)?;
        }
        Ok(())
    }

    /// Gives a new directory its name.
    fn name_folder(&mut self, overwrite: bool) -> Result<()> {
        let exists = self.path.symlink_metadata().is_ok();
        if exists && !overwrite {
            return Err(file::taken(&self.path));
        }
        place::name_folder(&self.root, &self.path, exists)?;
        self.state.doubt();
        let temporary = std::mem::replace(&mut self.root, self.path.clone());
        self.new = None;
        file::sync_parent(&self.path, self.durability)?;
        if exists {
            fs::remove_dir_all(&temporary)
                .map_err(|source| Error::io(source, &temporary, "removing what was replaced"))?;
        }
        Ok(())
    }
}

impl ContainerWriter for DirectoryWriter {
    fn put(&mut self, key: &str, parts: &[&[u8]]) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        self.guarded(|writer| writer.write_entry(key, parts))
    }

    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.state.check(&self.path)?;
        let Some(record) = self.list.entries.get(key).copied() else {
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
        if let Some(removed) = self.list.entries.remove(key) {
            self.drop_waiting(removed);
            self.changed = true;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.state.check(&self.path)?;
        if !self.changed {
            return Ok(());
        }
        self.guarded(Self::write_commit)
    }

    fn reader(&self) -> Result<Arc<dyn Container>> {
        self.state.check(&self.path)?;
        if self.new.is_some() {
            return Err(
                Error::invalid("nothing has been committed yet; commit first")
                    .in_file(self.path.display()),
            );
        }
        Ok(Arc::new(DirectoryReader::open(&self.path)?))
    }
}

impl Drop for DirectoryWriter {
    fn drop(&mut self) {
        if !self.state.is_owner() {
            return;
        }
        // Nothing of this can be reported, and none of it matters to a later reader or writer.
        if self.new.is_some() {
            let _ = fs::remove_dir_all(&self.root);
        } else if !self.state.is_in_doubt() {
            for number in self.last.next..self.list.next {
                let _ = fs::remove_file(tree::waiting(&self.root, number));
            }
        }
        // A forked child may hold a copy of the descriptor, which would keep the lock.
        let _ = self.lock.unlock();
    }
}

impl std::fmt::Debug for DirectoryWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "DirectoryWriter({}, commit {})",
            self.path.display(),
            self.last.sequence
        )
    }
}

/// The lock of the directory at `path`; `None` where another program made it.
fn lock_existing(path: &Path) -> Result<Option<File>> {
    if !tree::own(path).is_dir() {
        return Ok(None);
    }
    file::create_locked(&tree::lock(path)).map(Some)
}
