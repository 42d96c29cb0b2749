//! Repairs and adopts directories: makes a new list of entries from the existing files.

use std::path::Path;

use super::super::{CompactReport, Container, Durability, RepairReport, file};
use super::folder::Folder;
use super::list::{FileRecord, List};
use super::place;
use super::reader::DirectoryReader;
use super::tree::{self, Others};
use super::writer::{DirectoryWriter, read_list};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Finishes the last commit of a killed writer, and adopts changes by other programs.
pub fn repair(path: &Path, limits: &Limits) -> Result<RepairReport> {
    let path = file::resolve(path);
    let root = Folder::open(&path)?;
    if !root.has_folder(tree::OWN) {
        // Another program's directory needs no repair, if it is a store at all.
        DirectoryReader::open(&path, limits)?;
        return Ok(RepairReport::default());
    }
    let _lock = root.create_locked(tree::LOCK)?;
    let before = tree::own_bytes(&root)?;
    let mut notes = Vec::new();
    let old = match read_list(&root, limits) {
        Ok(list) => {
            place::finish(&root, &list, Durability::Full)?;
            Some(list)
        }
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
            notes.push("the list of entries was damaged or missing".to_owned());
            None
        }
        Err(error) => return Err(error),
    };
    let list = take_over(&root, old, &mut notes)?;
    Ok(RepairReport {
        commit: list.sequence,
        cut: before.saturating_sub(tree::own_bytes(&root)?),
        notes,
    })
}

/// Verifies every entry, and adopts a directory that another program wrote.
pub fn compact(path: &Path, limits: &Limits) -> Result<CompactReport> {
    let path = file::resolve(path);
    let root = Folder::open(&path)?;
    let before = DirectoryReader::open(&path, limits)?.usage()?.total;
    if !root.has_folder(tree::OWN) {
        root.make_folder(tree::OWN)
            .map_err(|source| root.failed(source, tree::OWN, "making the folder"))?;
        let _lock = root.create_locked(tree::LOCK)?;
        root.sync("", Durability::Full)?;
        take_over(&root, None, &mut Vec::new())?;
    }
    // A writer moves entries to their keys and removes the leftover files of a killed writer.
    let _writer = DirectoryWriter::append(&path, Durability::Full, limits)?;
    let reader = DirectoryReader::open(&path, limits)?;
    for key in reader.keys()? {
        reader.verify(&key, &mut |_| {})?;
    }
    let after = reader.usage()?.total;
    Ok(CompactReport { before, after })
}

/// Commits a list of the existing files if it differs from `old`; adds the differences to `notes`.
fn take_over(root: &Folder, old: Option<List>, notes: &mut Vec<String>) -> Result<List> {
    let known = old.is_some();
    let old = old.unwrap_or_default().of_files();
    if !known && !tree::staged_keys(root)?.is_empty() {
        return Err(Error::corrupt(
            "the list of entries is damaged, and `.ambar` has entries whose keys are only in the list; \
             restore the list from a copy",
        )
        .in_file(root.path().display()));
    }
    let mut new = List {
        sequence: old.sequence + 1,
        next: old.next,
        ..List::default()
    };
    for (key, len) in tree::walk(root, Others::Refuse)? {
        let crc32 = checksum(root, &key)?;
        let same = old.entries.get(&*key).copied();
        let same = same.filter(|record| (record.len, record.crc32) == (len, crc32));
        let record = same.unwrap_or(FileRecord {
            len,
            crc32,
            seal: None,
            number: new.next,
            is_staged: false,
        });
        if same.is_none() {
            new.next += 1;
            if known {
                notes.push(format!("another program has written {key}"));
            }
        }
        new.entries.insert(key.into(), record);
    }
    if let Some(lost) = old
        .entries
        .keys()
        .find(|key| !new.entries.contains_key(*key))
    {
        return Err(
            Error::corrupt("the entry's file is missing; restore it from a copy")
                .at_node(lost)
                .in_file(root.path().display()),
        );
    }
    if known && new.entries == old.entries {
        return Ok(old);
    }
    place::write_list(root, &new, Durability::Full)?;
    place::name_list(root, Durability::Full)?;
    Ok(new)
}

/// The CRC-32 of a file.
fn checksum(root: &Folder, key: &str) -> Result<u32> {
    let file = root.open_file(key);
    let file = file.map_err(|source| root.failed(source, key, "opening"))?;
    let path = root.path_of(key);
    let len = file::length(&file, &path)?;
    file::stream(&file, &path, 0, len, &mut |_| Ok(()))
}
