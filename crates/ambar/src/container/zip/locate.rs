//! Where the central directory of a ZIP lies: by the slots of ambar, or as other ZIP readers do.

use std::thread;
use std::time::Duration;

use super::super::source::ByteSource;
use super::records::{self, END_LEN, LOCATOR_LEN, PLAIN_END_LEN, ZIP64_END_LEN, u16_at, u32_at};
use super::slot::{self, HEADER_LEN, Slot, TRAILER_LEN};
use crate::error::{Error, Result};

/// When the header is read again where a slot looks damaged: a writer may be at work on it.
const PAUSES: [Duration; 3] = [
    Duration::from_micros(20),
    Duration::from_micros(200),
    Duration::from_micros(1000),
];

/// The last commit of a ZIP that ambar made.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    /// The commit.
    pub slot: Slot,
    /// The slots of the header; `None` for a damaged one.
    pub slots: [Option<Slot>; 2],
}

/// The central directory of a ZIP that another program made.
#[derive(Clone, Copy, Debug)]
pub struct ForeignDirectory {
    /// File offset of the central directory.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its number of entries.
    pub entries: u64,
}

/// The first bytes of the file, as many as a header has, or as there are.
pub fn read_header(source: &dyn ByteSource) -> Result<Vec<u8>> {
    let len = source.length()?.min(HEADER_LEN as u64);
    let mut header = vec![0; len as usize];
    source.read_exact(0, &mut header)?;
    Ok(header)
}

/// Finds the last commit of a ZIP that ambar made and that begins with `header`.
///
/// With both slots whole it is the one of the higher number. With one damaged, the other may be
/// that of an older commit, so the trailer at the end of the file must vouch for it, or be newer.
///
/// # Errors
/// `Corrupt` where the header is damaged, or the last commit cannot be determined, or the file ends
/// before it; `Unsupported` where the format is newer.
pub fn last_commit(source: &dyn ByteSource, header: &[u8]) -> Result<Last> {
    if let Some(last) = decide(source, slot::parse_header(header)?)? {
        return Ok(last);
    }
    for pause in PAUSES {
        thread::sleep(pause);
        let header = read_header(source)?;
        if let Some(last) = decide(source, slot::parse_header(&header)?)? {
            return Ok(last);
        }
    }
    Err(Error::corrupt(
        "a commit slot is damaged, and the end of the file does not tell which commit is the last; \
         restore the file from a copy, or let `ambar repair` look for it",
    ))
}

/// The last commit by `slots`; `None` where they leave it open.
fn decide(source: &dyn ByteSource, slots: [Option<Slot>; 2]) -> Result<Option<Last>> {
    // Asked for after the slots were read: what they speak of was written before them.
    let file_len = source.length()?;
    let slot = match slots {
        [Some(even), Some(odd)] if even.sequence > odd.sequence => even,
        [Some(_), Some(odd)] => odd,
        [Some(whole), None] | [None, Some(whole)] => {
            let trailer = trailer_at(source, file_len)?;
            match trailer.filter(|trailer| trailer.sequence >= whole.sequence) {
                Some(trailer) => trailer,
                None => return Ok(None),
            }
        }
        [None, None] => return Ok(None),
    };
    if slot.sequence == 0 {
        return Err(Error::corrupt(
            "the file holds no commit: its writer was killed before the first one; delete it",
        ));
    }
    match slot.end() {
        Some(end) if end <= file_len => Ok(Some(Last { slot, slots })),
        _ => Err(Error::corrupt(format!(
            "commit {} reaches to byte {}, but the file has {file_len}: it was cut short; restore \
             it from a copy",
            slot.sequence,
            slot.end().unwrap_or(u64::MAX)
        ))),
    }
}

/// The commit whose trailer ends the file of `file_len` bytes, if there is one.
pub fn trailer_at(source: &dyn ByteSource, file_len: u64) -> Result<Option<Slot>> {
    let Some(position) = file_len.checked_sub(TRAILER_LEN as u64) else {
        return Ok(None);
    };
    let mut bytes = [0; TRAILER_LEN];
    source.read_exact(position, &mut bytes)?;
    Ok(Slot::from_trailer(&bytes, position))
}

/// Finds the central directory as APPNOTE says: by the end record, which ends the file but for a
/// comment of at most 65,535 bytes.
///
/// # Errors
/// `Corrupt` where there is none, or it contradicts itself.
pub fn foreign(source: &dyn ByteSource) -> Result<ForeignDirectory> {
    let file_len = source.length()?;
    let most = (END_LEN + usize::from(u16::MAX)) as u64;
    let start = file_len.saturating_sub(most);
    let mut tail = vec![0; (file_len - start) as usize];
    source.read_exact(start, &mut tail)?;
    let at = find_end(&tail).ok_or_else(|| {
        Error::corrupt(
            "this is no ZIP file, or it was cut short: it has no end of central directory; restore \
             it from a copy",
        )
    })?;
    let end_position = start + at as u64;
    let found = match zip64_end(source, &tail[..at], end_position)? {
        Some(found) => found,
        None => ForeignDirectory {
            offset: u64::from(u32_at(&tail, at + 16)),
            len: u64::from(u32_at(&tail, at + 12)),
            entries: u64::from(u16_at(&tail, at + 10)),
        },
    };
    match found.offset.checked_add(found.len) {
        Some(end) if end <= end_position => Ok(found),
        _ => Err(Error::corrupt(format!(
            "the central directory ({} bytes at {}) does not lie before its end record at \
             {end_position}; restore the file from a copy",
            found.len, found.offset
        ))),
    }
}

/// Index of the end record whose comment reaches exactly to the end of `tail`.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(PLAIN_END_LEN)?;
    (0..=last).rev().find(|&at| {
        u32_at(tail, at) == records::END_SIGNATURE
            && at + PLAIN_END_LEN + usize::from(u16_at(tail, at + 20)) == tail.len()
    })
}

/// The central directory by the ZIP64 end record, if its locator ends `before`, the bytes that
/// lie before the end record at `end_position`.
fn zip64_end(
    source: &dyn ByteSource,
    before: &[u8],
    end_position: u64,
) -> Result<Option<ForeignDirectory>> {
    let locator = before.len().checked_sub(LOCATOR_LEN);
    let Some(position) = locator.and_then(|at| records::parse_locator(&before[at..])) else {
        return Ok(None);
    };
    let damaged = || {
        Error::corrupt(
            "the ZIP64 end of central directory is damaged; restore the file from a copy",
        )
    };
    let inside = position
        .checked_add(ZIP64_END_LEN as u64)
        .is_some_and(|end| end <= end_position - LOCATOR_LEN as u64);
    if !inside {
        return Err(damaged());
    }
    let mut bytes = [0; ZIP64_END_LEN];
    source.read_exact(position, &mut bytes)?;
    let (entries, len, offset) = records::parse_zip64_end(&bytes).ok_or_else(damaged)?;
    Ok(Some(ForeignDirectory {
        offset,
        len,
        entries,
    }))
}
