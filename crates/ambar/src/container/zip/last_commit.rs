//! Finds the last commit of a ZIP by ambar's slots, or the central directory as other ZIP readers do.

use std::thread;
use std::time::Duration;

use super::super::source::ByteSource;
use super::records::{
    self, CentralDirectory, END_LEN, LOCATOR_LEN, PLAIN_END_LEN, ZIP64_END_LEN, u16_at, u32_at,
};
use super::slot::{self, HEADER_LEN, Slot, TRAILER_LEN};
use crate::error::{Error, Result};

/// Pauses before the header is read again if a slot looks damaged: a writer may be writing it.
const PAUSES: [Duration; 3] = [
    Duration::from_micros(20),
    Duration::from_micros(200),
    Duration::from_micros(1000),
];

/// The last commit of a ZIP that ambar wrote.
#[derive(Clone, Copy, Debug)]
pub struct LastCommit {
    /// The commit.
    pub slot: Slot,
    /// The slots of the header; `None` for a damaged one.
    pub slots: [Option<Slot>; 2],
}

/// Reads the first bytes of the file, at most the length of a header.
pub fn read_header(source: &dyn ByteSource) -> Result<Vec<u8>> {
    let len = source.length()?.min(HEADER_LEN as u64);
    let mut header = vec![0; len as usize];
    source.read_exact(0, &mut header)?;
    Ok(header)
}

/// Finds the last commit of a ZIP that ambar wrote and that starts with `header`.
///
/// If both slots are intact, it is the one of the higher number. If one is damaged, the other may be an older
/// commit, so the trailer at the end of the file must have the same or a higher number.
///
/// # Errors
/// `Corrupt` if the header is damaged, or the last commit cannot be determined, or the file ends
/// before it; `Unsupported` if the format is newer.
pub fn find(source: &dyn ByteSource, header: &[u8]) -> Result<LastCommit> {
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
        "a commit slot is damaged, and the end of the file does not determine the last commit; \
         restore the file from a copy, or let `ambar repair` look for it",
    ))
}

/// The last commit by `slots`; `None` if they do not determine it.
fn decide(source: &dyn ByteSource, slots: [Option<Slot>; 2]) -> Result<Option<LastCommit>> {
    // Queried after the slots were read: commits are written before their slots.
    let file_len = source.length()?;
    let slot = match slots {
        [Some(even), Some(odd)] if even.sequence > odd.sequence => even,
        [Some(_), Some(odd)] => odd,
        [Some(intact), None] | [None, Some(intact)] => {
            let trailer = trailer_at(source, file_len)?;
            match trailer.filter(|trailer| trailer.sequence >= intact.sequence) {
                Some(trailer) => trailer,
                None => return Ok(None),
            }
        }
        [None, None] => return Ok(None),
    };
    if slot.sequence == 0 {
        return Err(Error::corrupt(
            "the file has no commit: its writer was killed before the first one; delete it",
        ));
    }
    let end = slot.permanent_end().unwrap_or(u64::MAX);
    if end <= file_len {
        return Ok(Some(LastCommit { slot, slots }));
    }
    Err(Error::corrupt(format!(
        "commit {} ends at byte {end}, but the file has {file_len} bytes: it was cut short; restore \
         it from a copy",
        slot.sequence
    )))
}

/// The commit of the trailer at the end of a file of `file_len` bytes; `None` without a trailer.
pub fn trailer_at(source: &dyn ByteSource, file_len: u64) -> Result<Option<Slot>> {
    let Some(position) = file_len.checked_sub(TRAILER_LEN as u64) else {
        return Ok(None);
    };
    let mut bytes = [0; TRAILER_LEN];
    source.read_exact(position, &mut bytes)?;
    Ok(Slot::from_trailer(&bytes, position))
}

/// Finds the central directory of a ZIP of another program as APPNOTE specifies: by the end record, which is
/// at the end of the file, followed by a comment of at most 65,535 bytes.
///
/// # Errors
/// `Corrupt` if it does not exist or is inconsistent.
pub fn foreign_directory(source: &dyn ByteSource) -> Result<CentralDirectory> {
    let file_len = source.length()?;
    if file_len == 0 {
        return Err(Error::corrupt("the file is empty; restore it from a copy"));
    }
    let most = (END_LEN + usize::from(u16::MAX)) as u64;
    let start = file_len.saturating_sub(most);
    let mut tail = vec![0; (file_len - start) as usize];
    source.read_exact(start, &mut tail)?;
    let at = find_end(&tail).ok_or_else(|| {
        Error::corrupt(
            "expected a store of ambar, found a file that is not one, or that was cut short: it has no \
             ZIP end of central directory; restore it from a copy",
        )
    })?;
    let end_position = start + at as u64;
    let found = match zip64_end(source, &tail[..at], end_position)? {
        Some(found) => found,
        None => CentralDirectory {
            offset: u64::from(u32_at(&tail, at + 16)),
            len: u64::from(u32_at(&tail, at + 12)),
            entries: u64::from(u16_at(&tail, at + 10)),
        },
    };
    match found.offset.checked_add(found.len) {
        Some(end) if end <= end_position => Ok(found),
        _ => Err(Error::corrupt(format!(
            "the central directory ({} bytes at {}) is not before its end record at \
             {end_position}; restore the file from a copy",
            found.len, found.offset
        ))),
    }
}

/// The index of the end record whose comment ends exactly at the end of `tail`.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(PLAIN_END_LEN)?;
    (0..=last).rev().find(|&at| {
        u32_at(tail, at) == records::END_SIGNATURE
            && at + PLAIN_END_LEN + usize::from(u16_at(tail, at + 20)) == tail.len()
    })
}

/// The central directory by the ZIP64 end record, if its locator is at the end of `before`, the bytes
/// before the end record at `end_position`.
fn zip64_end(
    source: &dyn ByteSource,
    before: &[u8],
    end_position: u64,
) -> Result<Option<CentralDirectory>> {
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
    records::parse_zip64_end(&bytes)
        .map(Some)
        .ok_or_else(damaged)
}
