//! Tests of hostile and huge files, which no writer of this library creates, or not in a short time.

use crc_fast::crc32_iscsi as crc32c;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::super::{self as container, ContainerWriter, CreateOptions, Durability};
use super::appender::Appender;
use super::entry_record::{EntryRecord, Producer};
use super::entry_table::EntryTable;
use super::next_commit::Output;
use super::records::{self, DirectoryEntry};
use super::slot::{self, HEADER_LEN, Slot};
use super::writer::ZipWriter;
use crate::error::ErrorKind;
use crate::limits::Limits;

/// Writes a file with the header, 8 bytes in the place of the commit's record, `directory`, and a slot that refers to
/// it, after `change` has changed the slot. Every checksum is valid.
fn write_file(path: &Path, directory: &[u8], entries: u64, change: impl FnOnce(&mut Slot)) {
    let mut slot = Slot {
        sequence: 1,
        directory_offset: HEADER_LEN as u64 + 8,
        directory_len: directory.len() as u64,
        directory_crc: crc32c(directory),
        entries,
        tail: HEADER_LEN as u64 + 8,
        record: HEADER_LEN as u64,
        has_temporary_tail: false,
    };
    change(&mut slot);
    let mut bytes = slot::header();
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(directory);
    bytes.extend_from_slice(&slot.trailer());
    let at = slot::SLOT_OFFSETS[slot.index()];
    bytes[at..at + slot::SLOT_LEN].copy_from_slice(&slot.encode());
    fs::write(path, bytes).unwrap();
}

fn directory_of(entries: &[DirectoryEntry<'_>]) -> Vec<u8> {
    let mut directory = Vec::new();
    entries
        .iter()
        .for_each(|entry| entry.encode(&mut directory));
    directory
}

fn entry(name: &str, header_offset: u64, len: u64) -> DirectoryEntry<'_> {
    DirectoryEntry {
        name,
        len,
        deflated: None,
        crc32: 0,
        header_offset,
        seal: None,
    }
}

/// Checks that opening the file at `path` fails, or checking it: entries are checked when they are read.
fn refuses(path: &Path, what: &str) {
    let checked = container::open(path).and_then(|container| container.verify_records());
    let error = checked.unwrap_err();
    let expected = [ErrorKind::Corrupt, ErrorKind::Limit];
    assert!(expected.contains(&error.kind()), "{what}: {error}");
    assert!(
        container::append(path, Durability::None, &Limits::default()).is_err(),
        "{what}"
    );
    assert!(
        container::repair(path, &Limits::default()).is_err(),
        "{what}"
    );
    assert!(
        container::compact(path, &Limits::default(), &|_| Ok(Vec::new())).is_err(),
        "{what}"
    );
}

#[test]
fn slots_with_impossible_numbers_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.ambar");
    write_file(&path, b"", 0, |_| {});
    container::open(&path).unwrap();
    type Change = fn(&mut Slot);
    let changes: [(&str, Change); 11] = [
        ("a far directory", |slot| slot.directory_offset = 1 << 60),
        ("an overflowing directory", |slot| {
            slot.directory_offset = u64::MAX
        }),
        ("a huge directory", |slot| slot.directory_len = 1 << 60),
        ("an overflowing end", |slot| {
            slot.directory_len = u64::MAX - 10
        }),
        ("more entries than bytes", |slot| slot.entries = 1),
        ("countless entries", |slot| slot.entries = u64::MAX),
        ("another checksum", |slot| slot.directory_crc = 1),
        ("a tail after the directory", |slot| slot.tail = u64::MAX),
        ("no record", |slot| slot.record = slot.tail),
        ("a temporary tail without a record", |slot| {
            slot.has_temporary_tail = true;
            slot.directory_crc += 1;
        }),
        ("no commit", |slot| slot.sequence = 0),
    ];
    for (what, change) in changes {
        write_file(&path, b"", 0, change);
        refuses(&path, what);
    }
}

#[test]
fn a_huge_directory_in_a_huge_file_is_over_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.ambar");
    write_file(&path, b"", 0, |slot| slot.directory_len = 5 << 30);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(6 << 30).unwrap();
    assert_eq!(container::open(&path).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn entries_that_leave_the_file_or_lie_about_themselves_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.ambar");
    let long = "x".repeat(5000);
    for (what, entries) in [
        ("data after the directory", vec![entry("a", 0, 1 << 40)]),
        ("an overflowing end", vec![entry("a", u64::MAX - 40, 10)]),
        ("an overflowing length", vec![entry("a", 0, u64::MAX)]),
        ("a far local header", vec![entry("a", u64::MAX, 0)]),
        (
            "the same name twice",
            vec![entry("a", 0, 0), entry("a", 60, 0)],
        ),
        ("a name that leaves the store", vec![entry("../a", 0, 0)]),
        ("an absolute name", vec![entry("/etc/passwd", 0, 0)]),
        ("a folder", vec![entry("a/", 0, 0)]),
        ("no name", vec![entry("", 0, 0)]),
        ("a long name", vec![entry(&long, 0, 0)]),
    ] {
        let directory = directory_of(&entries);
        write_file(&path, &directory, entries.len() as u64, |_| {});
        refuses(&path, what);
    }
    let directory = directory_of(&[entry("a", 0, 0), entry("b", 60, 0)]);
    for (what, directory, entries) in [
        ("fewer entries than it holds", &directory[..], 1),
        ("more entries than it holds", &directory, 3),
        (
            "a directory cut short",
            &directory[..directory.len() - 1],
            2,
        ),
    ] {
        write_file(&path, directory, entries, |_| {});
        refuses(&path, what);
    }
    write_file(&path, &directory, 2, |_| {});
    container::open(&path).unwrap();
}

#[test]
fn entries_that_share_bytes_are_not_multiplied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.ambar");
    let directory = directory_of(&[entry("a", 0, 500), entry("b", 50, 500)]);
    write_file(&path, &directory, 2, |_| {});
    let before = fs::read(&path).unwrap();
    // The recorded checksums are 0, which is wrong for these 500 bytes of the header.
    let error = container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Corrupt, "a"));
    // The content of `a` begins after its local header of 31 bytes.
    let mut entries = [entry("a", 0, 500), entry("b", 50, 500)];
    entries[0].crc32 = crc32fast::hash(&before[31..531]);
    write_file(&path, &directory_of(&entries), 2, |_| {});
    let error = container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Corrupt, "b"));
}

proptest! {
    #[test]
    fn random_changes_of_a_directory_do_no_harm(
        changes in prop::collection::vec((0..400usize, any::<u8>()), 1..6),
        cut in 0..400usize,
        other in any::<bool>(),
    ) {
        let names = ["zarr.json", "a/c/0", "a/c/1", "b"];
        let mut directory = Vec::new();
        for (n, name) in names.iter().enumerate() {
            let offset = if n < 2 { 1000 * n as u64 } else { (n as u64) << 33 };
            let len = if n == 3 { 5 << 32 } else { 10 };
            entry(name, offset, len).encode(&mut directory);
        }
        for (at, byte) in changes {
            let at = at % directory.len();
            directory[at] = byte;
        }
        directory.truncate(directory.len().saturating_sub(cut.saturating_sub(200)));
        let producer = if other { Producer::Other } else { Producer::Ambar };
        let sorted = EntryTable::of_sorted(directory.clone(), 0, 4, 1 << 40);
        let unsorted = EntryTable::of_unsorted(directory, 4, 1 << 40, producer);
        let checked = sorted.and_then(|table| table.check().map(|()| table));
        for table in [checked, unsorted].into_iter().flatten() {
            for entry in table.iter() {
                let (key, record) = entry.unwrap();
                prop_assert!(record.header_offset + record.stored_len() <= 1 << 40);
                prop_assert_eq!(table.get(key).unwrap(), Some(record));
            }
        }
    }

    #[test]
    fn random_bytes_are_neither_slots_nor_trailers(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(matches!(Slot::decode(&bytes), Ok(None)));
        prop_assert_eq!(Slot::from_trailer(&bytes, 0), None);
        prop_assert_eq!(records::parse_zip64_end(&bytes), None);
    }
}

/// Entries longer than 4 GiB, and after the first 4 GiB, in a file that is mostly a hole.
#[test]
fn entries_and_offsets_beyond_four_gibibytes() {
    const LONG: u64 = (4 << 30) + 12_345;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.ambar");
    let options = CreateOptions {
        durability: Durability::None,
        ..CreateOptions::default()
    };
    let mut writer = ZipWriter::create(&path, &options).unwrap();
    let long = EntryRecord {
        len: LONG,
        ..EntryRecord::default()
    };
    // The content is a hole without a checksum: `verify` is not called.
    writer
        .append_entry("a/c/0", long, |out| {
            out.flush()?;
            out.skip(LONG);
            Ok(())
        })
        .unwrap();
    writer.put("b", &[b"after it"]).unwrap();
    writer.put("zarr.json", &[b"{}"]).unwrap();
    writer.commit().unwrap();
    drop(writer);

    let store = container::open(&path).unwrap();
    let long = store.entry("a/c/0").unwrap().unwrap();
    assert_eq!(long.len(), LONG);
    let mut out = [1; 10];
    store.read_at(&long, LONG - 10, &mut out).unwrap();
    assert_eq!(out, [0; 10]);
    assert!(store.read_at(&long, LONG - 9, &mut out).is_err());
    store.verify("b", &mut |_| {}).unwrap();
    store.verify("zarr.json", &mut |_| {}).unwrap();
    store.verify_records().unwrap();
    let usage = store.usage().unwrap();
    assert_eq!((usage.dead, usage.live), (0, usage.total));

    let script = "import sys, zipfile\n\
        z = zipfile.ZipFile(sys.argv[1])\n\
        assert z.getinfo('a/c/0').file_size == int(sys.argv[2])\n\
        assert z.read('b') == b'after it'\n\
        assert z.read('zarr.json') == b'{}'\n\
        z.open('a/c/0').read(100)";
    let python = Command::new("python3")
        .args(["-c", script, path.to_str().unwrap(), &LONG.to_string()])
        .status();
    // Without Python, this part is skipped.
    assert!(python.is_err() || python.is_ok_and(|status| status.success()));
}

#[test]
fn a_file_never_exceeds_the_largest_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end");
    let file = File::create(&path).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    let mut out = Appender::new(file.into(), path, Durability::None, i64::MAX as u64 - 10);
    out.write(&[0; 11]).unwrap();
    assert_eq!(out.flush().unwrap_err().kind(), ErrorKind::Limit);
}
