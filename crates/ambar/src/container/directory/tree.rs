//! The files of a directory: their names, and walks over them.

use super::super::{file, key};
use super::folder::{Folder, Kind};
use crate::error::{Error, ErrorKind, Result};

/// The folder of ambar's own files.
pub const OWN: &str = ".ambar";

/// The list of the last commit.
pub const LIST: &str = ".ambar/commit";

/// The list of the next commit, while it is written.
pub const NEXT_LIST: &str = ".ambar/commit-next";

/// The file that a writer holds locked.
pub const LOCK: &str = ".ambar/lock";

/// Prefix of the temporary names of entries.
const NEW: &str = "new-";

/// The temporary name of the entry that `put` number `number` wrote, relative to the directory.
pub fn staged_key(number: u64) -> String {
    format!("{OWN}/{NEW}{number}")
}

/// Whether the folder holds a Zarr hierarchy, ambar's or another program's.
pub fn is_store(root: &Folder) -> bool {
    root.has_folder(OWN) || matches!(root.kind("zarr.json"), Ok(Some(Kind::File(_))))
}

/// The numbers of the entries that still have temporary names.
pub fn staged_keys(root: &Folder) -> Result<Vec<u64>> {
    let numbers = root.list(OWN)?.into_iter().filter_map(|(name, _)| {
        let name = name.to_str()?;
        let number: u64 = name.strip_prefix(NEW)?.parse().ok()?;
        // Only the spelling that `staged_key` returns.
        (format!("{NEW}{number}") == name).then_some(number)
    });
    Ok(numbers.collect())
}

/// How a walk treats names that are valid keys, but neither files nor folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Refuses them: an entry may be missing.
    Refuse,
    /// Skips them.
    Ignore,
}

/// All files below the folder whose paths are valid keys, with their lengths, except ambar's own files.
pub fn walk(root: &Folder, others: Others) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let listed = match root.list(&folder) {
            // A writer removes folders that have become empty.
            Err(error) if !folder.is_empty() && error.kind() == ErrorKind::NotFound => continue,
            listed => listed?,
        };
        for (name, kind) in listed {
            let Ok(name) = name.into_string() else {
                continue;
            };
            let key = match &*folder {
                "" => name,
                folder => format!("{folder}/{name}"),
            };
            if key::broken_rule(&key).is_some() {
                continue;
            }
            match (kind, others) {
                (Kind::Folder, _) => folders.push(key),
                (Kind::File(len), _) => files.push((key, len)),
                (Kind::Link, Others::Refuse) => {
                    return Err(file::refused_link(&root.path_of(&key)));
                }
                (Kind::Special, Others::Refuse) => {
                    return Err(file::not_regular(&root.path_of(&key)));
                }
                (Kind::Link | Kind::Special, Others::Ignore) => {}
            }
        }
    }
    Ok(files)
}

/// The bytes of ambar's own files.
pub fn own_bytes(root: &Folder) -> Result<u64> {
    let lens = root.list(OWN)?.into_iter().map(|(_, kind)| match kind {
        Kind::File(len) => len,
        _ => 0,
    });
    Ok(lens.fold(0, u64::saturating_add))
}

/// Removes everything in the folder except the lock.
pub fn clear(root: &Folder) -> Result<()> {
    clear_below(root, "")
}

fn clear_below(root: &Folder, folder: &str) -> Result<()> {
    for (name, kind) in root.list(folder)? {
        let name = name.into_string().map_err(|name| {
            Error::busy(format!(
                "the folder contains {name:?}, whose name is not UTF-8, so ambar did not write \
                 it; remove it"
            ))
            .in_file(root.path_of(folder).display())
        })?;
        let name = match folder {
            "" => name,
            folder => format!("{folder}/{name}"),
        };
        let removed = match kind {
            _ if name == LOCK => continue,
            Kind::Folder => {
                clear_below(root, &name)?;
                match &*name {
                    OWN => continue,
                    name => root.remove_folder(name),
                }
            }
            _ => root.remove_file(&name),
        };
        removed.map_err(|source| root.failed(source, &name, "removing a leftover file"))?;
    }
    Ok(())
}
