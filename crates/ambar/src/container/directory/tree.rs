//! The files of a directory: their paths, and walks over them.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use super::super::key;
use crate::error::{Error, Result};

/// The folder of ambar's own files.
pub const OWN: &str = ".ambar";

/// The name of the list of the last commit.
const LIST: &str = "commit";

/// What the name of an entry that has not got its place yet begins with.
const NEW: &str = "new-";

/// The folder of ambar's own files in the directory `root`.
pub fn own(root: &Path) -> PathBuf {
    root.join(OWN)
}

/// The list of the last commit.
pub fn list(root: &Path) -> PathBuf {
    own(root).join(LIST)
}

/// The list of the last commit, from the directory on.
#[cfg(feature = "object-store")]
pub fn list_key() -> String {
    format!("{OWN}/{LIST}")
}

/// The entry of the `put` of that number before it gets its place, from the directory on.
#[cfg(feature = "object-store")]
pub fn waiting_key(number: u64) -> String {
    format!("{OWN}/{NEW}{number}")
}

/// The list of the next commit, while it is written.
pub fn next_list(root: &Path) -> PathBuf {
    own(root).join("commit-next")
}

/// The file that a writer holds locked.
pub fn lock(root: &Path) -> PathBuf {
    own(root).join("lock")
}

/// The entry of the `put` of that number, before it gets its place.
pub fn waiting(root: &Path, number: u64) -> PathBuf {
    own(root).join(format!("{NEW}{number}"))
}

/// Whether `root` holds a Zarr hierarchy, ambar's or another program's.
pub fn is_store(root: &Path) -> bool {
    own(root).is_dir() || root.join("zarr.json").is_file()
}

/// The numbers of the entries that wait for their place.
pub fn all_waiting(root: &Path) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for item in read_folder(&own(root))? {
        let number = item.file_name().to_str().and_then(|name| {
            let number: u64 = name.strip_prefix(NEW)?.parse().ok()?;
            // Only the spelling that `waiting` gives.
            (format!("{NEW}{number}") == name).then_some(number)
        });
        numbers.extend(number);
    }
    Ok(numbers)
}

/// All files below `root` whose paths are valid keys, with their lengths; ambar's own left out.
/// Links to folders are not followed.
pub fn walk(root: &Path) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for item in read_folder(&root.join(&folder))? {
            let Ok(name) = item.file_name().into_string() else {
                continue;
            };
            let key = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            if key::broken_rule(&key).is_some() {
                continue;
            }
            let path = item.path();
            let describe = |source| Error::io(source, &path, "asking what it is");
            if item.file_type().map_err(describe)?.is_dir() {
                folders.push(key);
                continue;
            }
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_file() => files.push((key, metadata.len())),
                Ok(_) => {}
                // A link to nothing, or a file removed meanwhile.
                Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(describe(source)),
            }
        }
    }
    Ok(files)
}

/// The bytes of ambar's own files.
pub fn own_bytes(root: &Path) -> Result<u64> {
    let items = read_folder(&own(root))?;
    // What is removed meanwhile takes no space.
    let lens = items.iter().filter_map(|item| item.metadata().ok());
    let lens = lens.map(|metadata| metadata.len());
    Ok(lens.fold(0, u64::saturating_add))
}

/// Removes everything in `root` but the lock.
pub fn clear(root: &Path) -> Result<()> {
    for folder in [root.to_path_buf(), own(root)] {
        for item in read_folder(&folder)? {
            let path = item.path();
            if path == own(root) || path == lock(root) {
                continue;
            }
            let is_folder = item.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_folder {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(|source| Error::io(source, &path, "removing what was left behind"))?;
        }
    }
    Ok(())
}

/// Whether the error means that there is no such file, also where a file stands for a folder.
pub fn is_absence(source: &io::Error) -> bool {
    matches!(
        source.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn read_folder(folder: &Path) -> Result<Vec<DirEntry>> {
    fs::read_dir(folder)
        .and_then(Iterator::collect)
        .map_err(|source| Error::io(source, folder, "listing the folder"))
}
