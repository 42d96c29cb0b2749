//! Slots, which locate the last commits: two in the header, and a copy in the trailer.
//!
//! The header is a ZIP entry named `ambar` that no central directory lists, so that
//! other readers skip it like a replaced entry. The extra field of its local header, which no checksum of
//! ZIP covers, contains the two slots, to which commits are written alternately.

use super::records::{self, EXTRA_ID, LocalHeader, u32_at, u64_at};
use crate::error::{Error, Result};
use crc_fast::crc32_iscsi as crc32c;

/// Name of the header's entry.
const MARKER: &str = "ambar";

/// Content of that entry.
const MARKER_TEXT: &[u8] = b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n\
      zarr.storage.ZipStore of zarr-python opens it, too.\n";

/// Offsets of the slots: in different sectors, so that a torn write damages only one.
pub const SLOT_OFFSETS: [usize; 2] = [512, 1024];

/// Length of a slot in bytes.
pub const SLOT_LEN: usize = 72;

/// Offset of a slot's checksum, which covers the bytes before it.
const CHECKSUM: usize = SLOT_LEN - 4;

/// Offset of the content.
const MARKER_DATA: usize = 1536;

/// Length of the header: local header and content of the entry.
pub const HEADER_LEN: usize = MARKER_DATA + MARKER_TEXT.len();

/// First bytes of a slot.
const SLOT_MAGIC: &[u8; 8] = b"ambarcmt";

/// The version of the container's format that this code writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// Length of the trailer in bytes: ZIP64 end record, its locator, end record, comment.
pub const TRAILER_LEN: usize = records::END_LEN + COMMENT_LEN;

const COMMENT_LEN: usize = 118;

/// The flag of a slot whose tail the next commit overwrites.
const TEMPORARY_TAIL: u32 = 1;

/// A commit: locations of its record and its central directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The commit's number, counted from 1; 0 in an unused slot.
    pub sequence: u64,
    /// File offset of the central directory.
    pub directory_offset: u64,
    /// Length of the central directory in bytes.
    pub directory_len: u64,
    /// CRC-32C of the central directory.
    pub directory_crc: u32,
    /// Number of entries in the central directory.
    pub entries: u64,
    /// File offset of the tail, which opening reads: the root's `zarr.json`, the central directory, the trailer.
    pub tail: u64,
    /// File offset of the commit's record, which ends at the tail.
    pub record: u64,
    /// Whether the next commit overwrites the tail. The record then contains all that a reader needs.
    pub has_temporary_tail: bool,
}

impl Slot {
    /// The index of the slot of this commit.
    pub fn index(&self) -> usize {
        usize::from(self.sequence % 2 == 1)
    }

    /// File offset after the commit's last byte; `None` if it exceeds 64 bits.
    pub fn end(&self) -> Option<u64> {
        self.directory_offset
            .checked_add(self.directory_len)?
            .checked_add(TRAILER_LEN as u64)
    }

    /// File offset after the bytes of the commit that no later commit changes; `None` if it exceeds 64 bits.
    pub fn permanent_end(&self) -> Option<u64> {
        match self.has_temporary_tail {
            true => Some(self.tail),
            false => self.end(),
        }
    }

    /// Length of the tail in bytes.
    pub fn tail_len(&self) -> u64 {
        self.end().unwrap_or(u64::MAX).saturating_sub(self.tail)
    }

    /// The slot's bytes.
    pub fn encode(&self) -> [u8; SLOT_LEN] {
        let mut out = [0; SLOT_LEN];
        out[..8].copy_from_slice(SLOT_MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[12..16].copy_from_slice(&self.directory_crc.to_le_bytes());
        let words = [
            self.sequence,
            self.directory_offset,
            self.directory_len,
            self.entries,
            self.tail,
            self.record,
        ];
        for (field, word) in out[16..64].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        out[64..68].copy_from_slice(&self.flags().to_le_bytes());
        let crc = crc32c(&out[..CHECKSUM]);
        out[CHECKSUM..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn flags(&self) -> u32 {
        match self.has_temporary_tail {
            true => TEMPORARY_TAIL,
            false => 0,
        }
    }

    /// Whether a writer can have written these numbers.
    pub fn is_valid(&self) -> bool {
        self.sequence > 0
            && self.record < self.tail
            && self.tail <= self.directory_offset
            && self.end().is_some()
    }

    /// Parses a slot; `None` if it is damaged.
    ///
    /// # Errors
    /// `Unsupported` if it is intact, but of a newer format; `Corrupt` if its checksum is valid, but its
    /// numbers are not: that is not accidental damage, so the other slot must not replace it.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.len() != SLOT_LEN
            || !bytes.starts_with(SLOT_MAGIC)
            || u32_at(bytes, CHECKSUM) != crc32c(&bytes[..CHECKSUM])
        {
            return Ok(None);
        }
        let format = u32_at(bytes, 8);
        if format > FORMAT {
            return Err(Error::unsupported(format!(
                "the container has format {format}, but this version of ambar reads up to {FORMAT}; \
                 use a newer version"
            )));
        }
        let slot = Self {
            sequence: u64_at(bytes, 16),
            directory_offset: u64_at(bytes, 24),
            directory_len: u64_at(bytes, 32),
            directory_crc: u32_at(bytes, 12),
            entries: u64_at(bytes, 40),
            tail: u64_at(bytes, 48),
            record: u64_at(bytes, 56),
            has_temporary_tail: u32_at(bytes, 64) == TEMPORARY_TAIL,
        };
        // Encoding it again detects flags that do not exist.
        if slot.encode() == bytes && (slot.is_valid() || slot == Self::default()) {
            return Ok(Some(slot));
        }
        Err(Error::corrupt(
            "a commit slot has a valid checksum, but numbers that ambar never writes; \
             restore the file from a copy",
        ))
    }

    /// The trailer: the end records that other ZIP readers need, with a comment that makes it a
    /// third copy of the slot.
    pub fn trailer(&self) -> Vec<u8> {
        let mut out = records::end_records(
            self.entries,
            self.directory_len,
            self.directory_offset,
            COMMENT_LEN as u16,
        );
        let slot = self.encode();
        let comment = format!(
            "ambar {FORMAT:03} commit {:020} record {:020} tail {:020} {} crc32c {:08x} {:08x}",
            self.sequence,
            self.record,
            self.tail,
            self.flags(),
            self.directory_crc,
            u32_at(&slot, CHECKSUM)
        );
        out.extend_from_slice(comment.as_bytes());
        out
    }

    /// Parses the trailer of a commit from `bytes` (of length [`TRAILER_LEN`]) at the file offset
    /// `position`; `None` if they are not a trailer, or a damaged or moved one.
    pub fn from_trailer(bytes: &[u8], position: u64) -> Option<Self> {
        let comment = bytes.get(records::END_LEN..)?;
        let text = std::str::from_utf8(comment).ok()?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [
            "ambar",
            _,
            "commit",
            sequence,
            "record",
            record,
            "tail",
            tail,
            flags,
            "crc32c",
            crc,
            _,
        ] = words[..]
        else {
            return None;
        };
        let directory = records::parse_zip64_end(bytes)?;
        let slot = Self {
            sequence: sequence.parse().ok()?,
            directory_offset: directory.offset,
            directory_len: directory.len,
            directory_crc: u32::from_str_radix(crc, 16).ok()?,
            entries: directory.entries,
            tail: tail.parse().ok()?,
            record: record.parse().ok()?,
            has_temporary_tail: flags == "1",
        };
        let is_here = slot.end()?.checked_sub(TRAILER_LEN as u64)? == position;
        (is_here && slot.is_valid() && slot.trailer() == bytes).then_some(slot)
    }
}

/// The header with two unused slots.
pub fn header() -> Vec<u8> {
    let mut out = LocalHeader {
        name: MARKER,
        len: MARKER_TEXT.len() as u64,
        deflated: None,
        crc32: crc32fast::hash(MARKER_TEXT),
    }
    .encode_with_extra(EXTRA_ID, MARKER_DATA - 30 - MARKER.len() - 4);
    for offset in SLOT_OFFSETS {
        out[offset..offset + SLOT_LEN].copy_from_slice(&Slot::default().encode());
    }
    out.extend_from_slice(MARKER_TEXT);
    out
}

/// Whether `bytes`, the first of a file, are the start of ambar's header.
pub fn is_header(bytes: &[u8]) -> bool {
    bytes.len() >= 39
        && bytes.starts_with(b"PK\x03\x04")
        && &bytes[30..35] == MARKER.as_bytes()
        && bytes[35..37] == EXTRA_ID.to_le_bytes()
}

/// Parses the slots of an intact header; `None` for a damaged slot.
///
/// # Errors
/// `Corrupt` if anything except the slots differs from the constant header, or a slot was forged;
/// `Unsupported` if a slot is of a newer format.
pub fn parse_header(bytes: &[u8]) -> Result<[Option<Slot>; 2]> {
    let mut rest = bytes.to_vec();
    if bytes.len() == HEADER_LEN {
        for offset in SLOT_OFFSETS {
            rest[offset..offset + SLOT_LEN].copy_from_slice(&Slot::default().encode());
        }
    }
    if rest != header() {
        return Err(damaged_header());
    }
    let mut slots = [None; 2];
    for (index, offset) in SLOT_OFFSETS.into_iter().enumerate() {
        slots[index] = Slot::decode(&bytes[offset..offset + SLOT_LEN])?
            .filter(|slot| slot.sequence == 0 || slot.index() == index);
    }
    Ok(slots)
}

/// The error for a store with a damaged header.
pub fn damaged_header() -> Error {
    Error::corrupt(
        "the header at the start of the file is damaged; restore the file from a copy, or let \
         `ambar repair` restore the header",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot {
            sequence: 7,
            directory_offset: 5 << 32,
            directory_len: 1234,
            directory_crc: 0x0102_0304,
            entries: 70_000,
            tail: (5 << 32) - 99,
            record: (5 << 32) - 300,
            has_temporary_tail: true,
        }
    }

    #[test]
    fn slots_round_trip_and_detect_flipped_bits() {
        let bytes = slot().encode();
        assert_eq!(Slot::decode(&bytes).unwrap(), Some(slot()));
        for bit in 0..SLOT_LEN * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::decode(&flipped).unwrap(), None, "bit {bit}");
        }
    }

    #[test]
    fn trailers_round_trip_and_detect_flipped_bits() {
        let bytes = slot().trailer();
        let position = slot().directory_offset + slot().directory_len;
        assert_eq!(bytes.len(), TRAILER_LEN);
        assert_eq!(Slot::from_trailer(&bytes, position), Some(slot()));
        assert_eq!(Slot::from_trailer(&bytes, position + 1), None);
        for bit in 0..TRAILER_LEN * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::from_trailer(&flipped, position), None, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_unsupported_not_corrupt() {
        let mut bytes = slot().encode();
        bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        let crc = crc32c(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&crc.to_le_bytes());
        let error = Slot::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }

    #[test]
    fn slots_that_no_writer_writes_are_corrupt() {
        let unused = Slot::default().encode();
        for (whole, place, byte) in [
            (slot().encode(), 8, 0),
            (slot().encode(), 55, 1),
            (slot().encode(), 61, 9),
            (slot().encode(), 64, 2),
            (slot().encode(), 67, 1),
            (unused, 24, 1),
        ] {
            let mut bytes = whole;
            bytes[place] = byte;
            let crc = crc32c(&bytes[..CHECKSUM]);
            bytes[CHECKSUM..].copy_from_slice(&crc.to_le_bytes());
            let error = Slot::decode(&bytes).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "byte {place}");
        }
    }

    #[test]
    fn incomplete_headers_are_corrupt() {
        let bytes = header();
        assert_eq!(bytes.len(), HEADER_LEN);
        assert!(is_header(&bytes));
        assert_eq!(
            parse_header(&bytes).unwrap(),
            [Some(Slot::default()), Some(Slot::default())]
        );
        for len in 0..HEADER_LEN {
            assert!(parse_header(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
