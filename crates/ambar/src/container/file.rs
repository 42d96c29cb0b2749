//! What both containers need of the file system: exact reads, locks, temporary names, fsyncs.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Durability;
use crate::error::{Error, Result};

/// Fills `out` from `offset` of `file`; an end of the file before that is `Corrupt`.
pub fn read_exact(file: &File, path: &Path, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, offset)
        .map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Error::corrupt(format!(
                "the file ends before byte {}, where an entry should reach to: it was cut short; \
                 restore it from a copy",
                offset.saturating_add(out.len() as u64)
            ))
            .in_file(path.display()),
            _ => Error::io(source, path, "reading"),
        })
}

/// The length of `file` in bytes.
pub fn length(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata();
    Ok(metadata
        .map_err(|source| Error::io(source, path, "asking for the length"))?
        .len())
}

/// Opens the file at `path` for writing, with its lock held.
///
/// # Errors
/// `Busy` where another writer holds it.
pub fn open_locked(path: &Path) -> Result<File> {
    lock_current(path, OpenOptions::new().read(true).write(true))
}

/// Opens or makes the file at `path`, with its lock held. Links are not followed.
///
/// # Errors
/// `Busy` where another writer holds it.
pub fn create_locked(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    lock_current(path, options.custom_flags(libc::O_NOFOLLOW))
}

/// Whoever held the lock before may have renamed the file, or put another in its place: a lock
/// counts only if the file still has its name.
fn lock_current(path: &Path, options: &OpenOptions) -> Result<File> {
    loop {
        let file = options
            .open(path)
            .map_err(|source| Error::io(source, path, "opening for writing"))?;
        lock(&file, path)?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Takes the lock of `file`; it is released with the last copy of the descriptor.
///
/// # Errors
/// `Busy` where another writer holds it.
pub fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::busy(
            "another writer is at work on it; wait until it has finished",
        )
        .in_file(path.display())),
        Err(TryLockError::Error(source)) => Err(Error::io(source, path, "locking")),
    }
}

/// Whether `path` names the very file that `file` has open.
pub fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// The path with links resolved if there is something, so that a link's target is replaced and
/// not the link.
pub fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The name under which a store is made before it gets the name `path`: always the same one, so
/// that the next writer finds and removes what a killed one left behind.
///
/// # Errors
/// `Invalid` where the path has no last segment.
pub fn temporary(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        Error::invalid("the path names no file; append a name").in_file(path.display())
    })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".ambar-new");
    Ok(path.with_file_name(hidden))
}

/// Makes the names in the folder of `path` durable.
pub fn sync_parent(path: &Path, durability: Durability) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    sync_folder(parent, durability)
}

/// Makes the names in `folder` durable.
pub fn sync_folder(folder: &Path, durability: Durability) -> Result<()> {
    if durability == Durability::None {
        return Ok(());
    }
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| Error::io(source, folder, "making the folder durable"))
}

/// Makes the content of `file` durable, and as much of its metadata as reading it needs.
pub fn sync(file: &File, path: &Path, durability: Durability) -> Result<()> {
    if durability == Durability::None {
        return Ok(());
    }
    file.sync_data()
        .map_err(|source| Error::io(source, path, "making what was written durable"))
}
