//! Commit records: number, time and message of each commit, and the entries that it changed.
//!
//! A record is directly before the commit's tail and is never overwritten, so that every commit can be found by
//! following the records backwards. The record of a *full* commit refers to a central directory that is kept.
//! The record of any other commit has the changed entries, so that its tail can be overwritten.

use std::collections::HashSet;

use crc_fast::crc32_iscsi as crc32c;

use super::super::key;
use super::super::source::ByteSource;
use super::deflate;
use super::entry_record::{self, Producer};
use super::records::{CentralDirectory, ROOT, u16_at, u32_at, u64_at};
use super::slot::Slot;
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};
use crate::memory::advise_huge_pages;

/// First bytes of a record.
const MAGIC: &[u8; 8] = b"ambarlog";

/// Length of the fixed part of a record.
pub const FIXED_LEN: usize = 120;

/// Maximum length of a message in bytes.
pub const MAX_MESSAGE: usize = 4096;

/// A range of bytes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub offset: u64,
    pub len: u64,
}

/// The record of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRecord {
    /// Its location: a copy elsewhere in the file is not a record.
    pub extent: Extent,
    /// The commit's number.
    pub number: u64,
    /// Microseconds since 1970-01-01 UTC.
    pub time: i64,
    /// The user's message.
    pub message: String,
    /// The record of the commit before; `None` for the first of the file.
    pub previous: Option<Extent>,
    /// Bytes of the records since the last full commit, including this one; 0 in a full commit.
    pub log_len: u64,
    /// The numbers of entries that were written and removed.
    pub written: u64,
    pub removed: u64,
    /// The commit's central directory, and its CRC-32C.
    pub directory: CentralDirectory,
    pub directory_crc: u32,
    /// What a commit changed that is not full.
    pub changes: Option<Changes>,
}

/// The difference between a commit and the commit before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The root's `zarr.json` without the documents of other nodes; empty if the root has no document.
    pub root: Vec<u8>,
    /// Keys of removed entries.
    pub removed: Vec<Box<str>>,
    /// The central directory's entries of written entries.
    pub entries: Vec<u8>,
}

impl Changes {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.root.len() + self.entries.len() + 8);
        out.extend_from_slice(&(self.root.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.root);
        out.extend_from_slice(&(self.removed.len() as u32).to_le_bytes());
        for key in &self.removed {
            out.extend_from_slice(&(key.len() as u16).to_le_bytes());
            out.extend_from_slice(key.as_bytes());
        }
        out.extend_from_slice(&self.entries);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let root_len = u32_at(take(&mut rest, 4)?, 0) as usize;
        let root = take(&mut rest, root_len)?.to_vec();
        let mut removed = Vec::new();
        for _ in 0..u32_at(take(&mut rest, 4)?, 0) {
            let len = usize::from(u16_at(take(&mut rest, 2)?, 0));
            let key = std::str::from_utf8(take(&mut rest, len)?).ok()?;
            if key::broken_rule(key).is_some() {
                return None;
            }
            removed.push(key.into());
        }
        Some(Self {
            root,
            removed,
            entries: rest.to_vec(),
        })
    }
}

/// Takes `len` bytes from the front of `rest`; `None` if it has fewer.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, remaining) = rest.split_at_checked(len)?;
    *rest = remaining;
    Some(taken)
}

/// The message and the changes of a record as stored: their length does not depend on the other fields.
pub struct RecordBody {
    message: String,
    changes_len: usize,
    changes: Vec<u8>,
}

impl RecordBody {
    pub fn new(message: &str, changes: Option<&Changes>) -> Self {
        let changes = changes.map(Changes::encode).unwrap_or_default();
        let changes_len = changes.len();
        Self {
            message: message.to_owned(),
            changes_len,
            changes: deflate::deflate(&changes).unwrap_or(changes),
        }
    }

    /// Length of the record in bytes.
    pub fn record_len(&self) -> usize {
        FIXED_LEN + self.message.len() + self.changes.len()
    }
}

impl CommitRecord {
    /// The record's bytes. Message and changes are those of `body`.
    pub fn encode(&self, body: &RecordBody) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.record_len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&(body.record_len() as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let previous = self.previous.unwrap_or_default();
        for word in [
            self.extent.offset,
            self.number,
            self.time as u64,
            previous.offset,
            previous.len,
            self.log_len,
            self.written,
            self.removed,
            self.directory.offset,
            self.directory.len,
            self.directory.entries,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for word in [
            self.directory_crc,
            body.message.len() as u32,
            body.changes_len as u32,
            body.changes.len() as u32,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(body.message.as_bytes());
        out.extend_from_slice(&body.changes);
        let checksum = crc32c(&out[16..]);
        out[12..16].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Parses a record; `None` if it is damaged or not a record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let is_intact = bytes.len() >= FIXED_LEN
            && bytes.starts_with(MAGIC)
            && u32_at(bytes, 8) as usize == bytes.len()
            && u32_at(bytes, 12) == crc32c(&bytes[16..]);
        if !is_intact {
            return None;
        }
        let word = |index: usize| u64_at(bytes, 16 + 8 * index);
        let number = |index: usize| u32_at(bytes, 104 + 4 * index);
        let mut rest = &bytes[FIXED_LEN..];
        let message = std::str::from_utf8(take(&mut rest, number(1) as usize)?).ok()?;
        let (len, stored_len) = (number(2), number(3) as usize);
        let is_valid = rest.len() == stored_len
            && stored_len as u64 <= u64::from(len)
            && u64::from(len) <= stored_len as u64 * deflate::MAX_TIMES;
        if !is_valid {
            return None;
        }
        let changes = match len as usize {
            0 => None,
            len if len == stored_len => Some(Changes::decode(rest)?),
            len => Some(Changes::decode(&deflate::inflate(rest, len as u64).ok()?)?),
        };
        Some(Self {
            extent: Extent {
                offset: word(0),
                len: bytes.len() as u64,
            },
            number: word(1),
            time: word(2) as i64,
            message: message.to_owned(),
            previous: (word(3) > 0).then_some(Extent {
                offset: word(3),
                len: word(4),
            }),
            log_len: word(5),
            written: word(6),
            removed: word(7),
            directory: CentralDirectory {
                offset: word(8),
                len: word(9),
                entries: word(10),
            },
            directory_crc: number(0),
            changes,
        })
    }

    /// Reads the record at `extent`.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record, `Limit`, `Io`.
    pub fn read(source: &dyn ByteSource, extent: Extent, limits: &Limits) -> Result<Self> {
        let len = Limits::check("a commit record", extent.len, limits.directory_bytes)?;
        let end = extent.offset.checked_add(extent.len);
        if end.is_none_or(|end| source.length().is_ok_and(|length| end > length)) {
            return Err(damaged(extent));
        }
        let mut bytes = zeroed("a commit record", len)?;
        source.read_exact(extent.offset, &mut bytes)?;
        let changes_len = bytes.get(..FIXED_LEN).map_or(0, |fixed| u32_at(fixed, 112));
        let what = "the changes of a commit";
        Limits::check(what, changes_len.into(), limits.directory_bytes)?;
        let record = Self::decode(&bytes).ok_or_else(|| damaged(extent))?;
        let is_after = |previous: Extent| {
            let end = previous.offset.checked_add(previous.len);
            end.is_some_and(|end| end <= extent.offset)
        };
        let is_valid = record.extent == extent && record.slot().is_valid();
        if is_valid && record.previous.is_none_or(is_after) {
            return Ok(record);
        }
        Err(damaged(extent))
    }

    /// The location that a record which begins with `bytes` states; `None` if they are not the start of a record, or if
    /// the record is a copy from elsewhere.
    pub fn claimed_extent(bytes: &[u8], offset: u64) -> Option<Extent> {
        let is_here =
            bytes.len() >= FIXED_LEN && bytes.starts_with(MAGIC) && u64_at(bytes, 16) == offset;
        is_here.then(|| Extent {
            offset,
            len: u64::from(u32_at(bytes, 8)),
        })
    }

    /// The slot of the commit.
    pub fn slot(&self) -> Slot {
        Slot {
            sequence: self.number,
            directory_offset: self.directory.offset,
            directory_len: self.directory.len,
            directory_crc: self.directory_crc,
            entries: self.directory.entries,
            tail: self.extent.offset.saturating_add(self.extent.len),
            record: self.extent.offset,
            has_temporary_tail: self.changes.is_some(),
        }
    }
}

impl Slot {
    /// The location of the commit's record.
    pub fn record_extent(&self) -> Extent {
        Extent {
            offset: self.record,
            len: self.tail.saturating_sub(self.record),
        }
    }

    /// Reads the bytes from `start` to the end of the central directory, and checks the central directory.
    ///
    /// # Errors
    /// `Corrupt` if its checksum differs, `Limit`, `Io`.
    pub fn read_directory(
        &self,
        source: &dyn ByteSource,
        start: u64,
        limits: &Limits,
    ) -> Result<Vec<u8>> {
        let len = Limits::check(
            "the central directory",
            self.directory_len,
            limits.directory_bytes,
        )?;
        let end = self.directory_offset.checked_add(self.directory_len);
        if end.is_none_or(|end| source.length().is_ok_and(|length| end > length)) {
            return Err(Error::corrupt(format!(
                "the file ends before the central directory of commit {}; restore it from a copy",
                self.sequence
            )));
        }
        let before = (self.directory_offset - start) as usize;
        let mut bytes = zeroed("the central directory", before + len)?;
        advise_huge_pages(&bytes);
        source.read_exact(start, &mut bytes)?;
        if crc32c(&bytes[before..]) == self.directory_crc {
            return Ok(bytes);
        }
        Err(Error::corrupt(format!(
            "the checksum of the central directory of commit {} differs: it is damaged; restore the file \
             from a copy",
            self.sequence
        )))
    }
}

fn damaged(extent: Extent) -> Error {
    Error::corrupt(format!(
        "the commit record of {} bytes at {} is damaged; restore the file from a copy",
        extent.len, extent.offset
    ))
}

/// Reads the record of the commit `slot`, and checks that the records before it and the last full commit can restore
/// its entries.
///
/// # Errors
/// `Corrupt`, `Limit`, `Io`.
pub fn check_restorable(
    source: &dyn ByteSource,
    slot: &Slot,
    limits: &Limits,
) -> Result<CommitRecord> {
    let last = CommitRecord::read(source, slot.record_extent(), limits)?;
    let mut extent = last.extent;
    let mut previous = last.changes.is_some().then_some(last.previous);
    while let Some(found) = previous {
        extent = found.ok_or_else(|| damaged(extent))?;
        let record = CommitRecord::read(source, extent, limits)?;
        previous = record.changes.is_some().then_some(record.previous);
        if previous.is_none() {
            let full = record.slot();
            full.read_directory(source, full.directory_offset, limits)?;
        }
    }
    Ok(last)
}

/// The central directory of a commit whose tail may have been overwritten.
pub struct RestoredDirectory {
    /// Its entries except the root's document, in arbitrary order.
    pub directory: Vec<u8>,
    pub entries: u64,
    /// The root's document without the documents of other nodes.
    pub root: Vec<u8>,
}

/// Restores the central directory of the commit `slot`, from the records up to the last full commit before.
///
/// # Errors
/// `Corrupt`, `Limit`, `Io`.
pub fn restore_directory(
    source: &dyn ByteSource,
    slot: &Slot,
    limits: &Limits,
) -> Result<RestoredDirectory> {
    let mut restored = RestoredDirectory {
        directory: Vec::new(),
        entries: 0,
        root: Vec::new(),
    };
    let mut known: HashSet<Box<str>> = HashSet::from([ROOT.into()]);
    let mut extent = slot.record_extent();
    let mut record = CommitRecord::read(source, extent, limits)?;
    if record.slot() != *slot {
        return Err(damaged(extent));
    }
    let (number, expected) = (record.number, record.directory.entries);
    if let Some(changes) = &mut record.changes {
        restored.root = std::mem::take(&mut changes.root);
    }
    loop {
        let Some(changes) = record.changes else {
            let full = record.slot();
            let directory = full.read_directory(source, full.directory_offset, limits)?;
            restored.add_unknown(&directory, &mut known, limits)?;
            let found = restored.entries + u64::from(!restored.root.is_empty());
            if found == expected {
                return Ok(restored);
            }
            return Err(Error::corrupt(format!(
                "expected {expected} entries in the records of commit {number}, found {found}; restore the file from \
                 a copy"
            )));
        };
        restored.add_unknown(&changes.entries, &mut known, limits)?;
        known.extend(changes.removed);
        extent = record.previous.ok_or_else(|| damaged(extent))?;
        record = CommitRecord::read(source, extent, limits)?;
    }
}

impl RestoredDirectory {
    /// Adds those entries of `directory` whose keys are not `known` yet.
    fn add_unknown(
        &mut self,
        directory: &[u8],
        known: &mut HashSet<Box<str>>,
        limits: &Limits,
    ) -> Result<()> {
        let mut rest = directory;
        while !rest.is_empty() {
            let entry = entry_record::entry(rest, Producer::Ambar)?;
            let (bytes, remaining) = rest.split_at(entry.len);
            rest = remaining;
            if known.insert(entry.name.into()) {
                self.directory.extend_from_slice(bytes);
                self.entries += 1;
            }
        }
        let len = self.directory.len() as u64;
        Limits::check("the central directory", len, limits.directory_bytes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> CommitRecord {
        CommitRecord {
            extent: Extent {
                offset: 8 << 32,
                len: 0,
            },
            number: 7,
            time: -5,
            message: "two levels more".to_owned(),
            previous: Some(Extent {
                offset: 4000,
                len: 99,
            }),
            log_len: 812,
            written: 3,
            removed: 1,
            directory: CentralDirectory {
                offset: 9 << 32,
                len: 500,
                entries: 4,
            },
            directory_crc: 0x0102_0304,
            changes: Some(Changes {
                root: b"{\"a\": 1}".to_vec(),
                removed: vec!["a/c/0".into(), "b".into()],
                entries: vec![0; 300],
            }),
        }
    }

    fn encoded(record: &CommitRecord) -> Vec<u8> {
        record.encode(&RecordBody::new(&record.message, record.changes.as_ref()))
    }

    #[test]
    fn records_round_trip_and_detect_flipped_bits() {
        let full = CommitRecord {
            previous: None,
            changes: None,
            ..record()
        };
        for mut record in [record(), full] {
            let bytes = encoded(&record);
            record.extent.len = bytes.len() as u64;
            assert_eq!(CommitRecord::decode(&bytes), Some(record));
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(CommitRecord::decode(&flipped), None, "bit {bit}");
            }
            for len in 0..bytes.len() {
                assert_eq!(CommitRecord::decode(&bytes[..len]), None);
            }
        }
    }

    #[test]
    fn records_with_valid_checksums_and_wrong_lengths_are_damaged() {
        for (index, value) in [(1, 1 << 20), (2, 1), (2, u32::MAX), (3, 0)] {
            let mut bytes = encoded(&record());
            bytes[104 + 4 * index..][..4].copy_from_slice(&u32::to_le_bytes(value));
            let checksum = crc32c(&bytes[16..]);
            bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(CommitRecord::decode(&bytes), None, "{index} {value}");
        }
    }
}
