//! Repairing and adopting directories: the list of entries is made anew from the files that are there.

use std::fs::{self, File};
use std::path::Path;

use super::super::{Compacted, Container, Durability, Repaired, file};
use super::list::{List, Record};
use super::reader::DirectoryReader;
use super::writer::DirectoryWriter;
use super::{place, tree};
use crate::error::{Error, ErrorKind, Result};

/// Finishes what a killed writer has committed, and takes over what other programs have changed.
pub fn repair(path: &Path) -> Result<Repaired> {
    let root = file::resolve(path);
    if !tree::own(&root).is_dir() {
        // Another program's directory needs no repair, if it is a store at all.
        DirectoryReader::open(&root)?;
        return Ok(Repaired::default());
    }
    let _lock = file::create_locked(&tree::lock(&root))?;
    let before = tree::own_bytes(&root)?;
    let mut notes = Vec::new();
    let old = match read_list(&root) {
        Ok(list) => {
            place::finish(&root, &list)?;
            Some(list)
        }
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
            notes.push("the list of entries was damaged or missing".to_owned());
            None
        }
        Err(error) => return Err(error),
    };
    let list = take_over(&root, old, &mut notes)?;
    Ok(Repaired {
        commit: list.sequence,
        cut: before.saturating_sub(tree::own_bytes(&root)?),
        notes,
    })
}

/// Verifies every entry, and adopts a directory that another program made.
pub fn compact(path: &Path) -> Result<Compacted> {
    let root = file::resolve(path);
    let before = DirectoryReader::open(&root)?.usage()?.total;
    if !tree::own(&root).is_dir() {
        let own = tree::own(&root);
        fs::create_dir(&own).map_err(|source| Error::io(source, &own, "making the folder"))?;
        let _lock = file::create_locked(&tree::lock(&root))?;
        take_over(&root, None, &mut Vec::new())?;
    }
    // A writer brings entries to their places and removes what a killed one left behind.
    let _writer = DirectoryWriter::append(&root, Durability::Full)?;
    let reader = DirectoryReader::open(&root)?;
    for key in reader.keys()? {
        reader.verify(&key, &mut |_| {})?;
    }
    let after = reader.usage()?.total;
    Ok(Compacted { before, after })
}

fn read_list(root: &Path) -> Result<List> {
    let path = tree::list(root);
    let file = File::open(&path).map_err(|source| Error::io(source, &path, "opening"))?;
    List::read(&file, &path)
}

/// Commits a list of the files that are there, if it differs from `old`. What differs is noted.
fn take_over(root: &Path, old: Option<List>, notes: &mut Vec<String>) -> Result<List> {
    let known = old.is_some();
    let old = old.unwrap_or_default();
    if !known && !tree::all_waiting(root)?.is_empty() {
        return Err(Error::corrupt(
            "the list of entries is damaged, and `.ambar` holds entries whose keys only the list \
             tells; restore the list from a copy",
        )
        .in_file(root.display()));
    }
    let mut new = List {
        sequence: old.sequence + 1,
        next: old.next,
        ..List::default()
    };
    for (key, len) in tree::walk(root)? {
        let crc32 = checksum(&root.join(&key))?;
        let same = old.entries.get(&*key).copied();
        let same = same.filter(|record| (record.len, record.crc32) == (len, crc32));
        let record = same.unwrap_or(Record {
            len,
            crc32,
            number: new.next,
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
        return Err(Error::corrupt(
            "the entry's file is missing, and nothing else holds it; restore it from a copy",
        )
        .at_node(lost)
        .in_file(root.display()));
    }
    if known && new.entries == old.entries {
        return Ok(old);
    }
    let path = place::write_list(root, &new, Durability::Full)?;
    place::name_list(root, &path, Durability::Full)?;
    Ok(new)
}

/// The CRC-32 of a file.
fn checksum(path: &Path) -> Result<u32> {
    let file = File::open(path).map_err(|source| Error::io(source, path, "opening"))?;
    let len = file::length(&file, path)?;
    file::stream(&file, path, 0, len, &mut |_| Ok(()))
}
