//! A hash table of the entries of a central directory by key.
//!
//! A store can have 100,000 entries of which a reader needs ten. So nothing is copied from the
//! directory, and the table contains only the offsets of entries.

use std::hash::{BuildHasher, RandomState};

use super::super::key;
use super::entry_record::{self, EntryRecord, Producer};
use super::records::DIRECTORY_LEN;
use crate::error::{Error, Result};

/// An empty slot of the table.
const VACANT: u32 = u32::MAX;

/// The entries by key.
pub struct EntryTable {
    directory: Vec<u8>,
    producer: Producer,
    /// Offsets of entries in `directory`; open addressing, at most half full.
    table: Vec<u32>,
    /// Random, so that names cannot be chosen to collide.
    hasher: RandomState,
    len: usize,
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
        let slots = (2 * entries as usize).next_power_of_two();
        let mut this = Self {
            directory,
            producer,
            table: vec![VACANT; slots],
            hasher: RandomState::new(),
            len: 0,
        };
        let mut position = 0;
        for _ in 0..entries {
            position = this.insert(position, end)?;
        }
        match this.directory.len() - position {
            0 => Ok(this),
            rest => Err(Error::corrupt(format!(
                "{rest} bytes follow the last of the {entries} entries of the central directory; \
                 restore the file from a copy"
            ))),
        }
    }

    /// Checks and inserts the entry at `position`; returns the position of the next one.
    fn insert(&mut self, position: usize, end: u64) -> Result<usize> {
        let entry = entry_record::entry(&self.directory[position..], self.producer)?;
        let next = position + entry.len;
        entry_record::check_location(&entry, end)?;
        if self.producer == Producer::Other && entry_record::is_hidden(&entry) {
            return Ok(next);
        }
        if let Some(rule) = key::broken_rule(entry.name) {
            return Err(Error::corrupt(format!(
                "the entry name {:?} {rule}: ambar cannot read this file safely; write it again",
                entry.name
            )));
        }
        let slot = self.find(entry.name);
        if self.table[slot] != VACANT {
            return Err(Error::corrupt(format!(
                "the entry {:?} occurs twice in the central directory; restore the file from a copy",
                entry.name
            )));
        }
        self.table[slot] = position as u32;
        self.len += 1;
        Ok(next)
    }

    /// The slot of `key`, or the empty slot to insert it in.
    fn find(&self, key: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(key) as usize & mask;
        // Terminates, because at least half of the table is empty.
        while self.entry_at(slot).is_some_and(|(name, _)| name != key) {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn entry_at(&self, slot: usize) -> Option<(&str, EntryRecord)> {
        let position = self.table[slot];
        let bytes = self.directory.get(position as usize..)?;
        let entry = entry_record::entry(bytes, self.producer).ok()?;
        Some((entry.name, entry.record))
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<EntryRecord> {
        let (_, record) = self.entry_at(self.find(key))?;
        Some(record)
    }

    /// All entries, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, EntryRecord)> {
        (0..self.table.len()).filter_map(|slot| self.entry_at(slot))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }
}
