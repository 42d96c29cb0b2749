//! The entries of a central directory by key, found in its bytes as they are.
//!
//! A store may have 100,000 entries of which a reader wants ten: so nothing is copied out of the
//! directory, and the table holds only where an entry begins.

use std::hash::{BuildHasher, RandomState};

use super::super::key;
use super::parse::{self, Maker, Record};
use super::records::DIRECTORY_LEN;
use crate::error::{Error, Result};

/// A place in the table that holds no entry.
const VACANT: u32 = u32::MAX;

/// The entries by key.
pub struct Index {
    directory: Vec<u8>,
    maker: Maker,
    /// Where in `directory` entries begin; open addressing, at most half full.
    table: Vec<u32>,
    /// Random, so that crafted names cannot all collide.
    hasher: RandomState,
    len: usize,
}

impl Index {
    /// The index of `directory`, which should hold `entries` entries, all of whose bytes lie before
    /// the file offset `end`.
    ///
    /// # Errors
    /// `Corrupt` where it contradicts itself or leaves the file, or holds unsafe names;
    /// `Unsupported` where an entry is compressed or encrypted.
    pub fn new(directory: Vec<u8>, entries: u64, end: u64, maker: Maker) -> Result<Self> {
        let most = directory.len() / DIRECTORY_LEN;
        if entries > most as u64 || u32::try_from(directory.len()).is_err() {
            return Err(Error::corrupt(format!(
                "the central directory of {} bytes cannot hold {entries} entries; restore the file \
                 from a copy",
                directory.len()
            )));
        }
        let places = (2 * entries as usize).next_power_of_two();
        let mut index = Self {
            directory,
            maker,
            table: vec![VACANT; places],
            hasher: RandomState::new(),
            len: 0,
        };
        let mut position = 0;
        for _ in 0..entries {
            position = index.insert(position, end)?;
        }
        match index.directory.len() - position {
            0 => Ok(index),
            rest => Err(Error::corrupt(format!(
                "{rest} bytes follow the last of the {entries} entries of the central directory; \
                 restore the file from a copy"
            ))),
        }
    }

    /// Checks and inserts the entry that begins at `position`; returns where the next one begins.
    fn insert(&mut self, position: usize, end: u64) -> Result<usize> {
        let entry = parse::entry(&self.directory[position..], self.maker)?;
        let next = position + entry.len;
        parse::check_place(&entry, end)?;
        if self.maker == Maker::Other && parse::is_hidden(&entry) {
            return Ok(next);
        }
        if let Some(rule) = key::broken_rule(entry.name) {
            return Err(Error::corrupt(format!(
                "the entry name {:?} {rule}: this is no file that ambar can read safely",
                entry.name
            )));
        }
        let place = self.find(entry.name);
        if self.table[place] != VACANT {
            return Err(Error::corrupt(format!(
                "the entry {:?} stands twice in the central directory; restore the file from a copy",
                entry.name
            )));
        }
        self.table[place] = position as u32;
        self.len += 1;
        Ok(next)
    }

    /// The place in the table where `key` is, or where it would have to be put.
    fn find(&self, key: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = self.hasher.hash_one(key) as usize & mask;
        // It ends, because at least half of the table is vacant.
        while self.entry_at(place).is_some_and(|(name, _)| name != key) {
            place = (place + 1) & mask;
        }
        place
    }

    fn entry_at(&self, place: usize) -> Option<(&str, Record)> {
        let position = self.table[place];
        let bytes = self.directory.get(position as usize..)?;
        let entry = parse::entry(bytes, self.maker).ok()?;
        Some((entry.name, entry.record))
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<Record> {
        let (_, record) = self.entry_at(self.find(key))?;
        Some(record)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Record)> {
        (0..self.table.len()).filter_map(|place| self.entry_at(place))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }
}
