//! The steps of a commit: naming its list, bringing its entries to their places, naming a new folder.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::super::{Durability, file};
use super::list::List;
use super::tree::{self, is_absence};
use crate::error::{Error, Result};

/// The root's metadata gets its place last, for readers that know of no list.
const ROOT: &str = "zarr.json";

/// Writes `list` under a temporary name, which is returned, and makes it durable.
pub fn write_list(root: &Path, list: &List, durability: Durability) -> Result<PathBuf> {
    let path = tree::next_list(root);
    let file = fs::write(&path, list.encode()).and_then(|()| File::open(&path));
    let file = file.map_err(|source| Error::io(source, &path, "writing the list of entries"))?;
    file::sync(&file, &path, durability)?;
    // The entries' names must be on the disk before the list that speaks of them may be.
    file::sync_folder(&tree::own(root), durability)?;
    Ok(path)
}

/// Gives the list at `path` its name: this is the commit.
pub fn name_list(root: &Path, path: &Path, durability: Durability) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(path)?;
    fs::rename(path, tree::list(root))
        .map_err(|source| Error::io(source, path, "renaming the list of entries"))?;
    file::sync_folder(&tree::own(root), durability)
}

/// Brings the directory `root` into the form that the commit `list` describes: removes the files
/// of removed entries, moves waiting entries to their places, removes those of no commit. It can
/// be done again, from wherever it was broken off.
pub fn finish(root: &Path, list: &List) -> Result<()> {
    for key in &list.removed {
        remove(root, key)?;
    }
    let keys: HashMap<u64, &str> = list
        .entries
        .iter()
        .map(|(key, record)| (record.number, &**key))
        .collect();
    let mut last = None;
    for number in tree::all_waiting(root)? {
        let from = tree::waiting(root, number);
        match keys.get(&number) {
            Some(&ROOT) => last = Some(from),
            Some(key) => move_to(&from, &root.join(key))?,
            None => fs::remove_file(&from)
                .map_err(|source| Error::io(source, &from, "removing what was left behind"))?,
        }
    }
    match last {
        Some(from) => move_to(&from, &root.join(ROOT)),
        None => Ok(()),
    }
}

/// Moves a file, making the folders on the way.
fn move_to(from: &Path, to: &Path) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(to)?;
    let moved = match fs::rename(from, to) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            let folder = to.parent().unwrap_or(to);
            fs::create_dir_all(folder).and_then(|()| fs::rename(from, to))
        }
        // A folder that holds nothing any more, where another entry's file lay.
        Err(_) if is_folder(to) => fs::remove_dir(to).and_then(|()| fs::rename(from, to)),
        done => done,
    };
    moved.map_err(|source| Error::io(source, to, "bringing the entry to its place"))
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Removes the file of `key`, and the folders that become empty. It may be gone already, and a
/// newer entry's folder stand in its place, or a newer entry's file in that of its folder.
fn remove(root: &Path, key: &str) -> Result<()> {
    let path = root.join(key);
    match fs::remove_file(&path) {
        Err(source) if !is_absence(&source) && !is_folder(&path) => {
            return Err(Error::io(source, &path, "removing the entry"));
        }
        _ => {}
    }
    for (slash, _) in key.rmatch_indices('/') {
        // Folders that are not empty stay.
        if fs::remove_dir(root.join(&key[..slash])).is_err() {
            break;
        }
    }
    Ok(())
}

/// Gives the folder `from` the name `to`. Where that `exists`, the two change names, so that there
/// is a whole store of that name at any time.
pub fn name_folder(from: &Path, to: &Path, exists: bool) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(to)?;
    let named = if exists {
        exchange(from, to).or_else(|source| exchange_in_steps(from, to, source))
    } else {
        fs::rename(from, to)
    };
    named.map_err(|source| Error::io(source, to, "giving the directory its name"))
}

#[cfg(target_os = "linux")]
fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: both are NUL-terminated strings that live until the call returns.
    let result = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(target_os = "macos")]
fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: both are NUL-terminated strings that live until the call returns.
    let result = unsafe { libc::renamex_np(from.as_ptr(), to.as_ptr(), libc::RENAME_SWAP) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn c_path(path: &Path) -> io::Result<std::ffi::CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::CString::new(path.as_os_str().as_bytes())?)
}

/// For file systems that cannot exchange names; for a moment nothing has the name.
fn exchange_in_steps(from: &Path, to: &Path, source: io::Error) -> io::Result<()> {
    let cannot = [libc::EINVAL, libc::ENOSYS, libc::ENOTSUP];
    if !source
        .raw_os_error()
        .is_some_and(|number| cannot.contains(&number))
    {
        return Err(source);
    }
    let mut aside = PathBuf::from(from);
    aside.as_mut_os_string().push("-old");
    fs::rename(to, &aside)?;
    fs::rename(from, to)?;
    fs::rename(&aside, from)
}
