//! Writing a directory: entries wait under other names, and a commit is the renaming of one list.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::state::{State, nothing_committed};
use super::super::{Container, ContainerWriter, CreateOptions, Durability, file, key};
use super::folder::Folder;
use super::list::{FileRecord, List};
use super::reader::DirectoryReader;
use super::{place, tree};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The writer of a directory; it holds the directory's lock.
pub struct DirectoryWriter {
    /// The directory; it has a temporary name until the first commit.
    root: Folder,
    path: PathBuf,
    durability: Durability,
    /// The directory that a new one may replace; `None` from the first commit on.
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
    limits: Limits,
}

/// The directory that a new one, without its final name yet, may replace.
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
            Ok(_) if !options.overwrite => return Err(file::already_exists(&path)),
            Ok(found) if found.is_dir() && tree::is_store(&Folder::open(&path)?) => {
                Some((lock_existing(&Folder::open(&path)?)?, found))
            }
            Ok(_) => {
                return Err(Error::invalid(
                    "the name is taken, and overwriting replaces only directory stores; \
                     choose another name",
                )
                .in_file(path.display()));
            }
        };
        let temporary = file::temporary(&path, ".ambar-new-folder")?;
        let metadata = replaced.as_ref().map(|(_, found)| found);
        let (root, lock) = create_temporary(&temporary, metadata)
            .map_err(|error| file::failed_creating(error, &temporary, &path))?;
        let mut writer = Self::new(root, path, lock, options.durability);
        writer.limits = options.limits;
        writer.changed = true;
        writer.new = Some(NewFolder {
            _replaced: replaced.and_then(|(lock, _)| lock),
            overwrite: options.overwrite,
        });
        tree::clear(&writer.root).map_err(|error| error.for_target(&temporary, &writer.path))?;
        Ok(writer)
    }

    /// Opens the directory `path` to write further commits. Entries that a killed writer committed are
    /// moved to their keys; entries that it did not commit are removed.
    pub fn append(path: &Path, durability: Durability, limits: &Limits) -> Result<Self> {
        let path = file::resolve(path);
        let root = Folder::open(&path)?;
        if !root.has_folder(tree::OWN) {
            DirectoryReader::open(&path, limits)?;
            return Err(Error::unsupported(
                "another program wrote this directory, so it cannot be appended to; copy its arrays into a new store",
            )
            .in_file(path.display()));
        }
        let lock = root.create_locked(tree::LOCK)?;
        let list = read_list(&root, limits)?;
        place::finish(&root, &list, durability)?;
        // Objects that were downloaded are files at their keys now.
        let list = list.of_files();
        let mut writer = Self::new(root, path, lock, durability);
        writer.limits = *limits;
        writer.last = list.clone();
        writer.list = list;
        Ok(writer)
    }

    fn new(root: Folder, path: PathBuf, lock: File, durability: Durability) -> Self {
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
                Some(_) => error.for_target(self.root.path(), &self.path),
                None => error,
            }
            .in_file(self.path.display())
        })
    }

    fn write_entry(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        let number = self.list.next;
        let name = tree::staged_key(number);
        let write = || -> io::Result<()> {
            let mut file = self.root.create_file(&name)?;
            parts.iter().try_for_each(|part| file.write_all(part))
        };
        write().map_err(|source| self.root.failed(source, &name, "writing"))?;
        let mut hasher = crc32fast::Hasher::new();
        parts.iter().for_each(|part| hasher.update(part));
        let record = FileRecord {
            len: parts.iter().map(|part| part.len() as u64).sum(),
            crc32: hasher.finalize(),
            seal,
            number,
            is_staged: false,
        };
        self.list.next += 1;
        if let Some(replaced) = self.list.entries.insert(key.into(), record) {
            self.drop_staged(replaced);
        }
        self.put.push(key.into());
        self.changed = true;
        Ok(())
    }

    /// The bytes of an entry, which may wait for the next commit under a temporary name.
    fn read_entry(&self, key: &str, record: FileRecord) -> Result<Vec<u8>> {
        let name = if record.number >= self.last.next {
            tree::staged_key(record.number)
        } else {
            key.to_owned()
        };
        let mut bytes = Vec::new();
        let file = self.root.open_file(&name);
        file.and_then(|file| file.take(record.len).read_to_end(&mut bytes))
            .map_err(|source| self.root.failed(source, &name, "reading back"))?;
        file::check_crc32(crc32fast::hash(&bytes), Some(record.crc32))
            .map_err(|error| error.at_node(key))?;
        Ok(bytes)
    }

    /// Removes the file of an entry that was put since the last commit, and then replaced or removed.
    fn drop_staged(&self, record: FileRecord) {
        if record.number >= self.last.next {
            // If this fails, the next writer removes the file.
            let _ = self.root.remove_file(&tree::staged_key(record.number));
        }
    }

    /// Writes the list of the next commit; once it is renamed, it is the last commit.
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
        let lock = self.root.path_of(tree::LOCK);
        file::check_named(&self.lock, &lock, self.root.path())?;
        place::write_list(&self.root, &self.list, self.durability)?;
        if self.new.is_none() {
            self.state.doubt();
        }
        place::name_list(&self.root, self.durability)?;
        place::finish(&self.root, &self.list, self.durability)?;
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
        if self.put.len() > place::MANY && self.root.sync_file_system()? {
            return Ok(());
        }
        for key in &self.put {
            let Some(record) = self.list.entries.get(key) else {
                continue;
            };
            let name = tree::staged_key(record.number);
            let file = self.root.open_file(&name);
            let file =
                file.map_err(|source| self.root.failed(source, &name, "opening to make durable"))?;
            file::sync(&file, &self.root.path_of(&name), self.durability)?;
        }
        Ok(())
    }

    /// Renames a new directory to its final name.
    fn name_folder(&mut self, overwrite: bool) -> Result<()> {
        let exists = self.path.symlink_metadata().is_ok();
        if exists && !overwrite {
            return Err(file::already_exists(&self.path));
        }
        // The names in the folder must be durable before it has its final name.
        self.root.sync("", self.durability)?;
        place::name_folder(self.root.path(), &self.path, exists)?;
        self.state.doubt();
        let temporary = self.root.path().to_path_buf();
        self.root.renamed(&self.path);
        self.new = None;
        file::sync_parent(&self.path, self.durability)?;
        if exists {
            fs::remove_dir_all(&temporary)
                .map_err(|source| Error::io(source, &temporary, "removing the old directory"))?;
        }
        Ok(())
    }
}

/// Creates the folder `temporary` with the lock of a writer. `replaced` is the folder that it will replace.
fn create_temporary(temporary: &Path, replaced: Option<&Metadata>) -> Result<(Folder, File)> {
    // The folder is cleared later, so neither it nor `.ambar` may be a link.
    let root = Folder::make(temporary)?;
    if let Some(found) = replaced {
        root.inherit(found)?;
    }
    match root.make_folder(tree::OWN) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(root.failed(source, tree::OWN, "making the folder"));
        }
        _ => {}
    }
    let lock = root.create_locked(tree::LOCK)?;
    Ok((root, lock))
}

impl ContainerWriter for DirectoryWriter {
    fn check(&self) -> Result<()> {
        self.state.check(&self.path)
    }

    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(self.path.display()))?;
        self.guarded(|writer| writer.write_entry(key, parts, seal))
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
            self.drop_staged(removed);
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
            return Err(nothing_committed(&self.path));
        }
        Ok(Arc::new(DirectoryReader::open(&self.path, &self.limits)?))
    }
}

impl Drop for DirectoryWriter {
    fn drop(&mut self) {
        if !self.state.is_owner() {
            return;
        }
        // Errors cannot be reported here, and do not affect later readers or writers.
        if self.new.is_some() {
            let _ = fs::remove_dir_all(self.root.path());
        } else if !self.state.is_in_doubt() {
            for number in self.last.next..self.list.next {
                let _ = self.root.remove_file(&tree::staged_key(number));
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

/// The lock of the directory; `None` if another program wrote it.
fn lock_existing(root: &Folder) -> Result<Option<File>> {
    if !root.has_folder(tree::OWN) {
        return Ok(None);
    }
    root.create_locked(tree::LOCK).map(Some)
}

/// The list of the last commit.
pub fn read_list(root: &Folder, limits: &Limits) -> Result<List> {
    let file = root.open_file(tree::LIST);
    let file = file.map_err(|source| root.failed(source, tree::LIST, "opening"))?;
    List::read(&file, &root.path_of(tree::LIST), limits)
}
