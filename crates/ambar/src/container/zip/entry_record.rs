//! Parses the entries of a central directory; the input is untrusted.

use super::super::{file, key};
use super::deflate;
use super::records::{self, DIRECTORY_LEN, ExtraFields, LocalHeader, u16_at, u32_at};
use super::slot;
use crate::error::{Error, Result};

/// The properties of an entry of the central directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRecord {
    /// File offset of the local header.
    pub header_offset: u64,
    /// File offset of the content; `None` if only the local header determines it.
    pub data_offset: Option<u64>,
    /// Length of the content in bytes.
    pub len: u64,
    /// Bytes in the file of a deflated content; `None` if it is stored uncompressed.
    pub deflated: Option<u32>,
    /// CRC-32 of the content.
    pub crc32: u32,
    /// The entry's seal, if it has one.
    pub seal: Option<u32>,
    /// Whether sizes and checksum follow the content instead of being in the local header.
    pub streamed: bool,
}

impl EntryRecord {
    /// Bytes of the content in the file.
    pub fn stored_len(&self) -> u64 {
        self.deflated.map_or(self.len, u64::from)
    }

    /// The local header of the entry `key`.
    pub fn local_header(&self, key: &str) -> Vec<u8> {
        let mut header = Vec::new();
        self.header_of(key).encode(&mut header);
        header
    }

    fn header_of<'a>(&self, key: &'a str) -> LocalHeader<'a> {
        LocalHeader {
            name: key,
            len: self.len,
            deflated: self.deflated,
            crc32: self.crc32,
        }
    }

    /// The content, whose bytes in the file are `stored`, with its CRC-32 verified.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn content(&self, stored: Vec<u8>) -> Result<Vec<u8>> {
        let content = match self.deflated {
            None => stored,
            Some(_) => deflate::inflate(&stored, self.len)?,
        };
        file::check_crc32(crc32fast::hash(&content), Some(self.crc32))?;
        Ok(content)
    }
}

/// A parsed entry of the central directory.
pub struct ParsedEntry<'a> {
    /// The name.
    pub name: &'a str,
    /// Further properties.
    pub record: EntryRecord,
    /// Its length in the central directory in bytes.
    pub len: usize,
}

/// The program that wrote the ZIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producer {
    /// ambar, whose local headers have a known length.
    Ambar,
    /// Another program.
    Other,
}

/// Whether the entry of another program's ZIP is not a key: a folder, or a name that directory
/// containers reserve.
pub fn is_hidden(entry: &ParsedEntry<'_>) -> bool {
    let folder = entry.name.ends_with('/') && entry.record.len == 0;
    let first = entry.name.as_bytes().split(|byte| *byte == b'/').next();
    folder || first.is_some_and(key::is_reserved)
}

/// The error of a central directory that does not contain whole entries.
pub fn cut() -> Error {
    Error::corrupt("the central directory is cut short or damaged; restore the file from a copy")
}

/// Parses the entry at the start of `bytes`.
///
/// # Errors
/// `Corrupt` if it is inconsistent; `Unsupported` if it is encrypted, or compressed and not a document.
pub fn entry(bytes: &[u8], producer: Producer) -> Result<ParsedEntry<'_>> {
    if bytes.len() < DIRECTORY_LEN || u32_at(bytes, 0) != records::DIRECTORY_SIGNATURE {
        return Err(cut());
    }
    let name_end = DIRECTORY_LEN + usize::from(u16_at(bytes, 28));
    let extra_end = name_end + usize::from(u16_at(bytes, 30));
    let end = extra_end + usize::from(u16_at(bytes, 32));
    let (Some(name), Some(extra), Some(_)) = (
        bytes.get(DIRECTORY_LEN..name_end),
        bytes.get(name_end..extra_end),
        bytes.get(extra_end..end),
    ) else {
        return Err(cut());
    };
    let name = std::str::from_utf8(name)
        .map_err(|_| Error::unsupported("an entry's name is not UTF-8; write the ZIP again"))?;
    let (flags, method) = (u16_at(bytes, 8), u16_at(bytes, 10));
    let deflated = method == records::DEFLATED && records::is_document(name);
    if flags & 1 != 0 || (method != records::STORED && !deflated && !name.ends_with('/')) {
        return Err(Error::unsupported(format!(
            "the entry {name:?} is compressed or encrypted by ZIP; write the ZIP again without \
             (`zip -0`)"
        )));
    }
    let extras = ExtraFields {
        len: u64::from(u32_at(bytes, 24)),
        stored_len: u64::from(u32_at(bytes, 20)),
        header_offset: u64::from(u32_at(bytes, 42)),
        seal: None,
    }
    .complete(extra)
    .ok_or_else(cut)?;
    let deflated = match deflated {
        true => Some(u32::try_from(extras.stored_len).map_err(|_| cut())?),
        false => None,
    };
    if deflated.is_some_and(|len| extras.len > u64::from(len) * deflate::MAX_TIMES) {
        return Err(Error::corrupt(format!(
            "the document {name:?} claims {} bytes, more than {} times its {} bytes in the file; restore the \
             file from a copy",
            extras.len,
            deflate::MAX_TIMES,
            extras.stored_len
        )));
    }
    if extras.len != extras.stored_len && method == records::STORED {
        return Err(Error::corrupt(format!(
            "the entry {name:?} has two different lengths, {} and {}; restore the file from a copy",
            extras.len, extras.stored_len
        )));
    }
    if producer == Producer::Other && extras.seal.is_some() {
        // The header was not recognised, but ambar has written this entry.
        return Err(slot::damaged_header());
    }
    let mut record = EntryRecord {
        header_offset: extras.header_offset,
        data_offset: None,
        len: extras.len,
        deflated,
        crc32: u32_at(bytes, 16),
        seal: extras.seal,
        streamed: flags & 8 != 0,
    };
    if producer == Producer::Ambar {
        // ambar writes no other extra fields into local headers than those that follow from the length.
        let header_len = record.header_of(name).encoded_len() as u64;
        record.data_offset = record.header_offset.checked_add(header_len);
    }
    Ok(ParsedEntry {
        name,
        record,
        len: end,
    })
}

/// Checks that the entry's bytes are after its local header and before the file offset `end`.
///
/// # Errors
/// `Corrupt`.
pub fn check_location(entry: &ParsedEntry<'_>, end: u64) -> Result<()> {
    let ParsedEntry { name, record, .. } = entry;
    let least = (records::LOCAL_LEN + name.len()) as u64;
    let earliest = || record.header_offset.checked_add(least);
    let inside = record
        .data_offset
        .or_else(earliest)
        .and_then(|data| data.checked_add(record.stored_len()))
        .is_some_and(|last| last <= end);
    if inside {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the entry {name:?} ({} bytes at {}) is not before byte {end}; restore the file from \
         a copy",
        record.stored_len(),
        record.header_offset
    )))
}
