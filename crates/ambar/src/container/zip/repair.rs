//! Repairs a ZIP in place, and rewrites it without its dead bytes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::super::claims;
use super::super::source::{ByteSource, LocalFile};
use super::super::{
    CompactReport, Container, ContainerWriter, CreateOptions, Durability, KeptCommits,
    RepairReport, file,
};
use super::commit_record::{CommitRecord, FIXED_LEN};
use super::entry_record::EntryRecord;
use super::last_commit::{self, LastCommit};
use super::next_commit::Output;
use super::reader::ZipReader;
use super::records::{self, ROOT};
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
    claims::end_of(&path)?;
    repair_file(&file, &path, limits).map_err(|error| error.in_file(path.display()))
}

fn repair_file(file: &Arc<File>, path: &Path, limits: &Limits) -> Result<RepairReport> {
    let source = LocalFile::new(Arc::clone(file), path);
    let file_len = source.length()?;
    let header = last_commit::read_header(&source)?;
    let slots = slots_of(&header)?;
    let Some(last) = find_last(&source, file_len, slots, limits)? else {
        if slot::is_header(&header) {
            return Err(Error::corrupt(
                "the file has neither an intact commit slot nor a trailer of a commit; restore the file from a copy",
            ));
        }
        // An intact ZIP of another program needs no repair.
        ZipReader::open(path, limits)?;
        return Ok(RepairReport::default());
    };
    // Nothing is written unless the commit is intact.
    let reader = ZipReader::with_root(Arc::new(source), &last.slot, limits)?;
    reader.entries().check()?;
    let has_tail = reader.has_tail();
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
    if !has_tail {
        let mut writer = ZipWriter::resume(Arc::clone(file), path, Durability::Full, limits)?;
        writer.commit_tail("repaired")?;
        notes.push(
            "the central directory had been overwritten and has been written again".to_owned(),
        );
        let usage = writer.reader()?.usage()?;
        return Ok(RepairReport {
            commit: usage.commit,
            cut: file_len.saturating_sub(usage.total),
            notes,
        });
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
        cut: file_len.saturating_sub(end),
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

/// The last commit by slots, otherwise by the newest trailer or record in the file; `None` if the file has no slot,
/// trailer or record.
fn find_last(
    source: &dyn ByteSource,
    file_len: u64,
    slots: [Option<Slot>; 2],
    limits: &Limits,
) -> Result<Option<LastCommit>> {
    let newest = slots.into_iter().flatten().max_by_key(|slot| slot.sequence);
    let both = slots.iter().all(Option::is_some);
    let slot = match (newest, both) {
        (Some(slot), true) => slot,
        (known, _) => match newest_commit(source, file_len, limits)? {
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
    if slot.permanent_end().is_none_or(|end| end > file_len) {
        return Err(Error::corrupt(format!(
            "commit {} ends after the end of the file, which was cut short; restore it from a \
             copy",
            slot.sequence
        )));
    }
    Ok(Some(LastCommit { slot, slots }))
}

/// The commit of the highest number that has a trailer in the file, or a record that is enough to restore it.
fn newest_commit(source: &dyn ByteSource, file_len: u64, limits: &Limits) -> Result<Option<Slot>> {
    if let Some(slot) = last_commit::trailer_at(source, file_len)? {
        return Ok(Some(slot));
    }
    let mut newest: Option<Slot> = None;
    let mut buffer = vec![0; PIECE];
    // Records of a hostile file can overlap.
    let mut budget = file_len.saturating_mul(2);
    let mut start = 0;
    while start + FIXED_LEN as u64 <= file_len {
        let len = (file_len - start).min(PIECE as u64) as usize;
        let piece = &mut buffer[..len];
        source.read_exact(start, piece)?;
        for (at, bytes) in piece.windows(FIXED_LEN).enumerate() {
            let offset = start + at as u64;
            let mut found = None;
            if bytes.starts_with(b"PK\x06\x06") {
                let trailer = piece.get(at..at + TRAILER_LEN);
                found = trailer.and_then(|bytes| Slot::from_trailer(bytes, offset));
            } else if let Some(extent) = CommitRecord::claimed_extent(bytes, offset)
                && extent.len <= budget
            {
                budget -= extent.len;
                let record = CommitRecord::read(source, extent, limits).ok();
                // The tail of a full commit is found by its trailer.
                found = record
                    .map(|record| record.slot())
                    .filter(|slot| slot.has_temporary_tail);
            }
            newest = found
                .into_iter()
                .chain(newest)
                .max_by_key(|slot| slot.sequence);
        }
        if start + len as u64 == file_len {
            break;
        }
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

/// Rewrites the ZIP without its dead bytes, and verifies every entry. The earlier commits that `kept` returns for the
/// last one remain.
pub fn compact(path: &Path, limits: &Limits, kept: KeptCommits<'_>) -> Result<CompactReport> {
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
    let reader = Arc::new(ZipReader::open(&path, limits)?);
    let kept = kept(Arc::<ZipReader>::clone(&reader))?;
    let mut copied = HashMap::new();
    if !kept.is_empty() {
        let last = reader.usage()?.commit;
        let earlier = reader.commits()?.into_iter().rev();
        for info in earlier.filter(|info| kept.contains(&info.number) && info.number != last) {
            let commit = reader.commit_of_number(info.number)?;
            copy_entries(&commit, &mut writer, &mut copied, limits)?;
            writer.append_earlier_commit(&info)?;
        }
    }
    writer.replaces(&reader)?;
    copy_entries(&reader, &mut writer, &mut copied, limits)?;
    writer.set_message("compacted")?;
    writer.commit()?;
    let after = writer.reader()?.usage()?.total;
    Ok(CompactReport {
        before: before.len(),
        after,
    })
}

/// Puts all entries of `reader`. The bytes of those in `copied`, by their offsets in the file of `reader`, are there.
fn copy_entries(
    reader: &ZipReader,
    writer: &mut ZipWriter,
    copied: &mut HashMap<u64, EntryRecord>,
    limits: &Limits,
) -> Result<()> {
    reader.entries().check()?;
    let mut order = reader.entries().iter().collect::<Result<Vec<_>>>()?;
    order.sort_unstable_by_key(|(_, record)| record.header_offset);
    let mut end = 0;
    for (key, record) in order {
        // Copying entries that share bytes could make the file arbitrarily large.
        if record.header_offset < end {
            return Err(Error::corrupt(
                "the entry shares bytes with another one, so ambar cannot copy the file; write it again",
            )
            .at_node(key)
            .in_file(reader.location()));
        }
        end = record.data_offset.unwrap_or(record.header_offset) + record.stored_len();
        if key == ROOT {
            continue;
        }
        if let Some(record) = copied.get(&record.header_offset) {
            writer.add_record(key, *record);
            continue;
        }
        if records::is_document(key) {
            let document = reader.read_whole(key, limits.metadata_bytes)?;
            writer.put(key, &[&document.unwrap_or_default()])?;
        } else {
            writer.append_entry(key, record, |out| {
                reader.stream(key, &record, &mut |piece| out.write(piece))
            })?;
        }
        copied.extend(writer.record(key).map(|new| (record.header_offset, new)));
    }
    match reader.read_whole(ROOT, limits.metadata_bytes)? {
        Some(root) => writer.put(ROOT, &[&root]),
        None => Ok(()),
    }
}
