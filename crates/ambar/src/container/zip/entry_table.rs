//! The entries of a central directory, found by key.
//!
//! A store can have 1,000,000 entries of which a reader needs ten. So nothing is copied from the directory: the table
//! contains only the offsets of its entries, in the order of their keys. An entry is checked when it is requested.

use super::super::key;
use super::entry_record::{self, EntryRecord, ParsedEntry, Producer};
use super::records::{DIRECTORY_LEN, u16_at};
use crate::error::{Error, Result};

/// The entries by key.
pub struct EntryTable {
    bytes: Vec<u8>,
    producer: Producer,
    /// Offset in the file of the end of the last entry's content at most.
    end: u64,
    /// Offsets of entries in `bytes`, sorted by key.
    offsets: Vec<u32>,
}

impl EntryTable {
    /// The entries of a central directory that ambar wrote, sorted by key: the bytes from `start` on. There must be
    /// `entries` of them, all of whose content is before the file offset `end`.
    ///
    /// # Errors
    /// `Corrupt` if their number or lengths are inconsistent, or names are not in order or occur twice.
    pub fn of_sorted(bytes: Vec<u8>, start: usize, entries: u64, end: u64) -> Result<Self> {
        let mut table = Self::new(bytes, start, entries, end, Producer::Ambar)?;
        let mut position = start;
        let mut previous: &[u8] = &[];
        for _ in 0..entries {
            let fixed = table.bytes.get(position..position + DIRECTORY_LEN);
            let fixed = fixed.ok_or_else(entry_record::cut)?;
            let [name_len, extra_len, comment_len] =
                [28, 30, 32].map(|at| usize::from(u16_at(fixed, at)));
            let name = table.bytes[position + DIRECTORY_LEN..].get(..name_len);
            let name = name.ok_or_else(entry_record::cut)?;
            if !table.offsets.is_empty() && previous >= name {
                return Err(out_of_order(previous, name));
            }
            previous = name;
            table.offsets.push(position as u32);
            position += DIRECTORY_LEN + name_len + extra_len + comment_len;
        }
        table.check_end(position)?;
        Ok(table)
    }

    /// The entries of a central directory in any order.
    ///
    /// # Errors
    /// `Corrupt` if it is inconsistent, exceeds the file, has unsafe names or one name twice;
    /// `Unsupported` if an entry is compressed or encrypted.
    pub fn of_unsorted(
        directory: Vec<u8>,
        entries: u64,
        end: u64,
        producer: Producer,
    ) -> Result<Self> {
        let mut table = Self::new(directory, 0, entries, end, producer)?;
        let mut position = 0;
        for _ in 0..entries {
            let entry = entry_record::entry(&table.bytes[position..], producer)?;
            entry_record::check_location(&entry, end)?;
            let next = position + entry.len;
            if producer == Producer::Ambar || !entry_record::is_hidden(&entry) {
                check_name(entry.name)?;
                table.offsets.push(position as u32);
            }
            position = next;
        }
        table.check_end(position)?;
        let mut offsets = std::mem::take(&mut table.offsets);
        offsets.sort_unstable_by(|a, b| table.name(*a).cmp(table.name(*b)));
        table.offsets = offsets;
        table.check_order()?;
        Ok(table)
    }

    /// A table without offsets of entries yet.
    fn new(
        bytes: Vec<u8>,
        start: usize,
        entries: u64,
        end: u64,
        producer: Producer,
    ) -> Result<Self> {
        let most = (bytes.len() - start) / DIRECTORY_LEN;
        if entries > most as u64 || u32::try_from(bytes.len()).is_err() {
            return Err(Error::corrupt(format!(
                "the central directory of {} bytes cannot have {entries} entries; restore the file from a copy",
                bytes.len() - start
            )));
        }
        Ok(Self {
            bytes,
            producer,
            end,
            offsets: Vec::with_capacity(entries as usize),
        })
    }

    /// Checks that the last entry ends at `position`, the end of the directory.
    fn check_end(&self, position: usize) -> Result<()> {
        if position == self.bytes.len() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the {} entries of the central directory end {} bytes from its end; restore the file from a copy",
            self.offsets.len(),
            self.bytes.len().abs_diff(position)
        )))
    }

    fn check_order(&self) -> Result<()> {
        for pair in self.offsets.windows(2) {
            let [name, next] = [self.name(pair[0]), self.name(pair[1])];
            if name >= next {
                return Err(out_of_order(name.as_bytes(), next.as_bytes()));
            }
        }
        Ok(())
    }

    /// Checks all entries and their order.
    ///
    /// # Errors
    /// As [`Self::of_unsorted`].
    pub fn check(&self) -> Result<()> {
        self.iter().try_for_each(|entry| entry.map(|_| ()))?;
        self.check_order()
    }

    /// The name of the entry at `offset`, unchecked; empty if it is not UTF-8.
    fn name(&self, offset: u32) -> &str {
        let start = offset as usize + DIRECTORY_LEN;
        let len = usize::from(u16_at(&self.bytes, offset as usize + 28));
        let name = self.bytes.get(start..start + len).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    fn checked(&self, offset: u32) -> Result<(&str, EntryRecord)> {
        let entry = entry_record::entry(&self.bytes[offset as usize..], self.producer)?;
        entry_record::check_location(&entry, self.end)?;
        check_name(entry.name)?;
        let ParsedEntry { name, record, .. } = entry;
        Ok((name, record))
    }

    /// Index of the first entry whose key is not less than `key`.
    fn first_from(&self, key: &str) -> usize {
        self.offsets
            .partition_point(|offset| self.name(*offset) < key)
    }

    /// The entry of `key`; `None` if it does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn get(&self, key: &str) -> Result<Option<EntryRecord>> {
        let found = self.offsets.get(self.first_from(key));
        match found.filter(|offset| self.name(**offset) == key) {
            Some(offset) => Ok(Some(self.checked(*offset)?.1)),
            None => Ok(None),
        }
    }

    /// All entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&str, EntryRecord)>> {
        self.offsets.iter().map(|offset| self.checked(*offset))
    }

    /// All keys that begin with `prefix`, sorted and unchecked.
    pub fn keys(&self, prefix: &str) -> impl Iterator<Item = &str> {
        // An empty prefix is not compared: masked vector loads from the address of an empty string are slow.
        self.offsets[self.first_from(prefix)..]
            .iter()
            .map(|offset| self.name(*offset))
            .take_while(move |name| prefix.is_empty() || name.starts_with(prefix))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }
}

/// The error of an entry whose name is not after that of the entry before.
fn out_of_order(previous: &[u8], name: &[u8]) -> Error {
    let name_text = String::from_utf8_lossy(name);
    let what = match previous == name {
        true => "occurs twice in the central directory",
        false => "of the central directory is not in the order of names",
    };
    Error::corrupt(format!(
        "the entry {name_text:?} {what}; restore the file from a copy"
    ))
}

/// Checks the name of an entry.
///
/// # Errors
/// `Corrupt` if it is not a valid key.
pub fn check_name(name: &str) -> Result<()> {
    match key::broken_rule(name) {
        None => Ok(()),
        Some(rule) => Err(Error::corrupt(format!(
            "the entry name {name:?} {rule}: ambar cannot read this file safely; write it again"
        ))),
    }
}
