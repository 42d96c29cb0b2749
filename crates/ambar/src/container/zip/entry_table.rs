//! The entries of a central directory, found by key.
//!
//! A store can have 1,000,000 entries of which a reader needs ten. So nothing is copied from the
//! directory: the table contains only the offsets of its entries, in the order of their keys.

use super::super::key;
use super::entry_record::{self, EntryRecord, Producer};
use super::records::DIRECTORY_LEN;
use crate::error::{Error, Result};

/// The entries by key.
pub struct EntryTable {
    directory: Vec<u8>,
    producer: Producer,
    /// Offsets of entries in `directory`, sorted by key.
    offsets: Vec<u32>,
}

impl EntryTable {
    /// Parses `directory`, which must have `entries` entries, all of whose bytes are before
    /// the file offset `end`.
    ///
    /// # Errors
    /// `Corrupt` if it is inconsistent, exceeds the file, or has unsafe names;
    /// `Unsupported` if an entry is compressed or encrypted.
    pub fn new(directory: Vec<u8>, entries: u64, end: u64, producer: Producer) -> Result<Self> {
        let most = directory.len() / DIRECTORY_LEN;
        if entries > most as u64 || u32::try_from(directory.len()).is_err() {
            return Err(Error::corrupt(format!(
                "the central directory of {} bytes cannot have {entries} entries; restore the file \
                 from a copy",
                directory.len()
            )));
        }
        let mut offsets = Vec::with_capacity(entries as usize);
        let mut position = 0;
        let mut previous = "";
        let mut is_sorted = true;
        for _ in 0..entries {
            let entry = entry_record::entry(&directory[position..], producer)?;
            entry_record::check_location(&entry, end)?;
            if producer == Producer::Ambar || !entry_record::is_hidden(&entry) {
                if let Some(rule) = key::broken_rule(entry.name) {
                    return Err(Error::corrupt(format!(
                        "the entry name {:?} {rule}: ambar cannot read this file safely; write it again",
                        entry.name
                    )));
                }
                is_sorted &= previous < entry.name;
                previous = entry.name;
                offsets.push(position as u32);
            }
            position += entry.len;
        }
        let rest = directory.len() - position;
        if rest > 0 {
            return Err(Error::corrupt(format!(
                "{rest} bytes follow the last of the {entries} entries of the central directory; \
                 restore the file from a copy"
            )));
        }
        let mut table = Self {
            directory,
            producer,
            offsets,
        };
        if !is_sorted {
            table.sort()?;
        }
        Ok(table)
    }

    /// Sorts the entries, as of ZIPs of other programs and of restored commits.
    fn sort(&mut self) -> Result<()> {
        let mut offsets = std::mem::take(&mut self.offsets);
        offsets.sort_unstable_by(|a, b| self.name(*a).cmp(self.name(*b)));
        let twice = |pair: &[u32]| self.name(pair[0]) == self.name(pair[1]);
        if let Some(pair) = offsets.windows(2).find(|pair| twice(pair)) {
            return Err(Error::corrupt(format!(
                "the entry {:?} occurs twice in the central directory; restore the file from a copy",
                self.name(pair[0])
            )));
        }
        self.offsets = offsets;
        Ok(())
    }

    /// The name of the entry at `offset`, which was parsed before.
    fn name(&self, offset: u32) -> &str {
        self.entry_at(offset).map_or("", |(name, _)| name)
    }

    fn entry_at(&self, offset: u32) -> Option<(&str, EntryRecord)> {
        let bytes = self.directory.get(offset as usize..)?;
        let entry = entry_record::entry(bytes, self.producer).ok()?;
        Some((entry.name, entry.record))
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<EntryRecord> {
        let found = self
            .offsets
            .binary_search_by(|offset| self.name(*offset).cmp(key));
        let (_, record) = self.entry_at(self.offsets[found.ok()?])?;
        Some(record)
    }

    /// All entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, EntryRecord)> {
        self.offsets
            .iter()
            .filter_map(|offset| self.entry_at(*offset))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }
}
