//! Repairs a ZIP in place, and rewrites it without its dead bytes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::super::source::{ByteSource, LocalFile};
use super::super::{
    CompactReport, Container, ContainerWriter, CreateOptions, Durability, RepairReport, file,
};
use super::last_commit::{self, LastCommit};
use super::reader::ZipReader;
use super::records;
use super::slot::{self, HEADER_LEN, SLOT_LEN, SLOT_OFFSETS, Slot, TRAILER_LEN};
use super::writer::{self, ZipWriter};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Bytes of the file that are searched in one pass.
const PIECE: usize = 1 << 20;

/// Cuts off the bytes after the last commit, and restores damaged records of the container.
pub fn repair(path: &Path, limits: &Limits) -> Result<RepairReport> {
    let path = file::resolve(path);
    let file = Arc::new(file::open_locked(&path)?);
    repair_file(&file, &path, limits).map_err(|error| error.in_file(path.display()))
}

fn repair_file(file: &Arc<File>, path: &Path, limits: &Limits) -> Result<RepairReport> {
    let source = LocalFile::new(Arc::clone(file), path);
    let file_len = source.length()?;
    let header = last_commit::read_header(&source)?;
    let slots = slots_of(&header)?;
    let Some(last) = find_last(&source, file_len, slots)? else {
        // Neither slots nor trailer: an intact ZIP of another program needs no repair.
        ZipReader::open(path, limits)?;
        return Ok(RepairReport::default());
    };
    // Nothing is written unless the commit is intact.
    drop(ZipReader::at(Arc::new(source), &last.slot, limits)?);
    let mut notes = Vec::new();
    if slot::parse_header(&header).is_err() {
        write_around_slots(file, path)?;
        notes.push("the header was damaged and has been restored".to_owned());
    }
    let restored = writer::restore_slots(file, path, &last, Durability::Full)?;
    if restored > 0 {
        notes.push(format!(
            "{restored} damaged commit slots have been restored"
        ));
    }
    let position = last.slot.directory_offset + last.slot.directory_len;
    let trailer = last.slot.trailer();
    let end = position + trailer.len() as u64;
    file.set_len(end)
        .map_err(|source| Error::io(source, path, "cutting off the bytes after the last commit"))?;
    let mut found = vec![0; trailer.len()];
    file::read_exact(file, path, position, &mut found)?;
    if found != trailer {
        file.write_all_at(&trailer, position)
            .map_err(|source| Error::io(source, path, "writing the end of central directory"))?;
        notes.push("the end of central directory was damaged and has been restored".to_owned());
    }
    file::sync(file, path, Durability::Full)?;
    Ok(RepairReport {
        commit: last.slot.sequence,
        cut: file_len - end,
        notes,
    })
}

/// Parses the slots of a header whose other bytes may be damaged.
fn slots_of(header: &[u8]) -> Result<[Option<Slot>; 2]> {
    let mut slots = [None; 2];
    for (index, offset) in SLOT_OFFSETS.into_iter().enumerate() {
        let bytes = header.get(offset..offset + SLOT_LEN).unwrap_or_default();
        slots[index] =
            Slot::decode(bytes)?.filter(|slot| slot.sequence == 0 || slot.index() == index);
    }
    Ok(slots)
}

/// The last commit by slots, otherwise by the newest trailer in the file; `None` if there
/// is neither.
fn find_last(
    source: &dyn ByteSource,
    file_len: u64,
    slots: [Option<Slot>; 2],
) -> Result<Option<LastCommit>> {
    let newest = slots.into_iter().flatten().max_by_key(|slot| slot.sequence);
    let both = slots.iter().all(Option::is_some);
    let slot = match (newest, both) {
        (Some(slot), true) => slot,
        (known, _) => match newest_trailer(source, file_len)? {
            Some(trailer) if known.is_none_or(|slot| trailer.sequence >= slot.sequence) => trailer,
            None if known.is_none() => return Ok(None),
            _ => {
                return Err(Error::corrupt(
                    "a commit slot is damaged, and the file has no trailer of its commit; restore the file \
                     from a copy",
                ));
            }
        },
    };
    if slot.sequence == 0 {
        return Err(Error::corrupt(
            "the file has no commit: its writer was killed before the first one; delete it",
        ));
    }
    if slot.end().is_none_or(|end| end > file_len) {
        return Err(Error::corrupt(format!(
            "commit {} ends after the end of the file, which was cut short; restore it from a \
             copy",
            slot.sequence
        )));
    }
    Ok(Some(LastCommit { slot, slots }))
}

/// The trailer of the highest commit number in the file.
fn newest_trailer(source: &dyn ByteSource, file_len: u64) -> Result<Option<Slot>> {
    if let Some(slot) = last_commit::trailer_at(source, file_len)? {
        return Ok(Some(slot));
    }
    let mut newest: Option<Slot> = None;
    let mut buffer = vec![0; PIECE];
    let mut start = 0;
    while start + TRAILER_LEN as u64 <= file_len {
        let len = (file_len - start).min(PIECE as u64) as usize;
        let piece = &mut buffer[..len];
        source.read_exact(start, piece)?;
        let found = piece.windows(TRAILER_LEN).enumerate();
        let found = found
            .filter(|(_, bytes)| bytes.starts_with(b"PK\x06\x06"))
            .filter_map(|(at, bytes)| Slot::from_trailer(bytes, start + at as u64));
        newest = found.chain(newest).max_by_key(|slot| slot.sequence);
        start += (len - TRAILER_LEN + 1) as u64;
    }
    Ok(newest)
}

/// Writes the header, except for the slots.
fn write_around_slots(file: &File, path: &Path) -> Result<()> {
    let header = slot::header();
    let mut start = 0;
    for (end, next) in [
        (SLOT_OFFSETS[0], SLOT_OFFSETS[0] + SLOT_LEN),
        (SLOT_OFFSETS[1], SLOT_OFFSETS[1] + SLOT_LEN),
        (HEADER_LEN, HEADER_LEN),
    ] {
        file.write_all_at(&header[start..end], start as u64)
            .map_err(|source| Error::io(source, path, "writing the header"))?;
        start = next;
    }
    Ok(())
}

/// Rewrites the ZIP without its dead bytes, and verifies every entry.
pub fn compact(path: &Path, limits: &Limits) -> Result<CompactReport> {
    let path = file::resolve(path);
    // Creating the new file locks the old one, before it is read.
    let options = CreateOptions {
        durability: Durability::Full,
        overwrite: true,
        directory: false,
        limits: *limits,
    };
    let before = fs::metadata(&path).map_err(|source| Error::opening(source, &path, "opening"))?;
    let mut writer = ZipWriter::create(&path, &options)?;
    let reader = ZipReader::open(&path, limits)?;
    writer.replaces(&reader)?;
    let mut order: Vec<_> = reader.entries().iter().collect();
    order.sort_unstable_by_key(|(_, record)| record.header_offset);
    let mut end = 0;
    for (key, record) in order {
        // Copying entries that share bytes could make the file arbitrarily large.
        if record.header_offset < end {
            return Err(Error::corrupt(
                "the entry shares bytes with another one, so ambar cannot copy the file; write it again",
            )
            .at_node(key)
            .in_file(path.display()));
        }
        end = record.data_offset.unwrap_or(record.header_offset) + record.stored_len();
        if records::is_document(key) {
            let document = reader.read_whole(key, limits.metadata_bytes)?;
            writer.put(key, &[&document.unwrap_or_default()])?;
        } else {
            writer.append_entry(key, record, |out| {
                reader.stream(key, &record, &mut |piece| out.write(piece))
            })?;
        }
    }
    writer.commit()?;
    let after = writer.reader()?.usage()?.total;
    Ok(CompactReport {
        before: before.len(),
        after,
    })
}
