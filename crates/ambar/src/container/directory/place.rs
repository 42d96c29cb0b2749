//! The steps of a commit: renames its list, moves its entries to their keys, and renames a new folder.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::super::{Durability, file};
use super::folder::is_absence;
use super::folder::{Folder, Kind};
use super::list::List;
use super::tree;
use crate::error::{Error, Result};

/// The root's metadata is moved last, for readers that do not know the list of entries.
const ROOT: &str = "zarr.json";

/// Above this number of files or folders, one call for the whole file system is cheaper than a call for each.
pub const MANY: usize = 64;

/// Writes `list` under a temporary name, and makes it durable.
pub fn write_list(root: &Folder, list: &List, durability: Durability) -> Result<()> {
    let name = tree::NEXT_LIST;
    let failed = |source| root.failed(source, name, "writing the list of entries");
    match root.remove_file(name) {
        Err(source) if !is_absence(&source) => return Err(failed(source)),
        _ => {}
    }
    let written = root.create_file(name).and_then(|mut file| {
        file.write_all(&list.encode())?;
        Ok(file)
    });
    file::sync(&written.map_err(failed)?, &root.path_of(name), durability)?;
    // The names of the entries must be durable before the list that refers to them gets its final name.
    root.sync(tree::OWN, durability)
}

/// Renames the list to its final name: this is the commit.
pub fn name_list(root: &Folder, durability: Durability) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(&root.path_of(tree::NEXT_LIST))?;
    root.rename(tree::NEXT_LIST, tree::LIST)
        .map_err(|source| root.failed(source, tree::NEXT_LIST, "renaming the list of entries"))?;
    root.sync(tree::OWN, durability)
}

/// Makes the directory `root` match the commit `list`: removes the files of removed entries, moves waiting
/// entries to their keys, and removes waiting entries that are not in the list. After an interruption at any
/// step, it can be repeated.
///
/// New folders are durable before an entry is moved into one of them, and the folders that got entries
/// are durable when this returns. So an entry has a durable name at any time.
pub fn finish(root: &Folder, list: &List, durability: Durability) -> Result<()> {
    for key in &list.removed {
        remove(root, key)?;
    }
    let keys: HashMap<u64, &str> = list
        .entries
        .iter()
        .map(|(key, record)| (record.number, &**key))
        .collect();
    let mut moves = Vec::new();
    for number in tree::staged_keys(root)? {
        let from = tree::staged_key(number);
        match keys.get(&number) {
            Some(key) => moves.push((from, *key)),
            None => root
                .remove_file(&from)
                .map_err(|source| root.failed(source, &from, "removing a leftover file"))?,
        }
    }
    moves.sort_unstable_by_key(|(_, key)| (*key == ROOT, *key));
    let folders: BTreeSet<&str> = moves.iter().map(|(_, key)| folder_of(key)).collect();
    let mut grown = BTreeSet::new();
    for folder in &folders {
        make_folders(root, folder, &mut grown)?;
    }
    sync_folders(root, &grown, durability)?;
    for (from, to) in &moves {
        move_to(root, from, to)?;
    }
    sync_folders(root, &folders, durability)
}

/// The folder of a name, empty for the root.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Makes a folder and its missing parents; adds each folder that got a new one to `grown`.
fn make_folders<'a>(root: &Folder, folder: &'a str, grown: &mut BTreeSet<&'a str>) -> Result<()> {
    if folder.is_empty() {
        return Ok(());
    }
    let kind = root.kind(folder);
    match kind.map_err(|source| root.failed(source, folder, "looking up"))? {
        Some(Kind::Folder) => return Ok(()),
        Some(Kind::Link) => return Err(file::refused_link(&root.path_of(folder))),
        _ => {}
    }
    let parent = folder_of(folder);
    make_folders(root, parent, grown)?;
    root.make_folder(folder)
        .map_err(|source| root.failed(source, folder, "making the folder"))?;
    grown.insert(parent);
    Ok(())
}

fn sync_folders(root: &Folder, folders: &BTreeSet<&str>, durability: Durability) -> Result<()> {
    let is_one_call = durability == Durability::Full && folders.len() > MANY;
    if is_one_call && root.sync_file_system()? {
        return Ok(());
    }
    folders
        .iter()
        .try_for_each(|folder| root.sync(folder, durability))
}

/// Moves a file into a folder that exists.
fn move_to(root: &Folder, from: &str, to: &str) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(&root.path_of(to))?;
    let moved = match root.rename(from, to) {
        // `to` is an empty folder that remains of an entry with a longer key.
        Err(_) if root.has_folder(to) => {
            root.remove_folder(to).and_then(|()| root.rename(from, to))
        }
        done => done,
    };
    moved.map_err(|source| root.failed(source, to, "moving the entry to its key"))
}

/// Removes the file of `key`, and the folders that become empty. The file may be gone already, and a newer
/// entry may have a folder of that name, or a file with the name of one of its folders.
fn remove(root: &Folder, key: &str) -> Result<()> {
    match root.remove_file(key) {
        Err(source) if !is_absence(&source) && !root.has_folder(key) => {
            return Err(root.failed(source, key, "removing the entry"));
        }
        _ => {}
    }
    for (slash, _) in key.rmatch_indices('/') {
        // Folders that are not empty stay.
        if root.remove_folder(&key[..slash]).is_err() {
            break;
        }
    }
    Ok(())
}

/// Renames the folder `from` to `to`. If `to` `exists`, the two exchange names, so that a complete store has
/// the name `to` at any time.
pub fn name_folder(from: &Path, to: &Path, exists: bool) -> Result<()> {
    #[cfg(test)]
    super::super::faults::step(to)?;
    let named = if exists {
        exchange(from, to).or_else(|source| exchange_in_steps(from, to, source))
    } else {
        fs::rename(from, to)
    };
    #[cfg(test)]
    super::super::faults::record(super::super::faults::Event::Rename(from.into(), to.into()));
    named.map_err(|source| Error::io(source, to, "renaming the directory"))
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

/// For file systems that cannot exchange names; for a moment no folder has the name `to`.
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
