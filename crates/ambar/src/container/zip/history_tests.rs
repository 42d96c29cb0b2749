//! Tests of earlier commits, and of tails that are overwritten.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::source::LocalFile;
use super::super::{self as container, Container, ContainerWriter, CreateOptions, Durability};
use super::last_commit;
use crate::error::ErrorKind;
use crate::limits::Limits;

type Contents = BTreeMap<String, Vec<u8>>;

/// A store in a folder of its own, and the contents of all its commits.
pub(super) struct History {
    pub(super) folder: tempfile::TempDir,
    pub(super) commits: Vec<Contents>,
    durability: Durability,
    random: u64,
}

impl History {
    fn new() -> Self {
        Self::with(Durability::None, 5)
    }

    pub(super) fn with(durability: Durability, seed: u64) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            commits: Vec::new(),
            durability,
            random: seed,
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("run.ambar")
    }

    pub(super) fn open_writer(&self) -> Box<dyn ContainerWriter> {
        if self.commits.is_empty() {
            let options = CreateOptions {
                durability: self.durability,
                ..CreateOptions::default()
            };
            return container::create(&self.path(), &options).unwrap();
        }
        container::append(&self.path(), self.durability, &Limits::default()).unwrap()
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % n
    }

    /// Makes a commit that writes and removes some entries.
    pub(super) fn commit(&mut self, writer: &mut dyn ContainerWriter) {
        let number = self.commits.len() + 1;
        let mut contents = self.commits.last().cloned().unwrap_or_default();
        for _ in 0..=self.below(3) {
            let key = format!("a/c/{}", self.below(40));
            let content = vec![number as u8; self.below(900) as usize];
            writer.put(&key, &[&content]).unwrap();
            contents.insert(key, content);
        }
        if self.below(3) == 0 {
            let key = format!("a/c/{}", self.below(40));
            writer.remove(&key).unwrap();
            contents.remove(&key);
        }
        let root = format!("root {number} {}", "x".repeat(number % 50)).into_bytes();
        let alone = format!("root {number}").into_bytes();
        writer.put_root(&root, &alone).unwrap();
        writer.set_message(&format!("commit {number}")).unwrap();
        writer.commit().unwrap();
        contents.insert("zarr.json".into(), root);
        self.commits.push(contents);
    }

    /// Checks that `found` is the commit `number`.
    pub(super) fn check(&self, found: &dyn Container, number: usize) {
        let expected = &self.commits[number - 1];
        let id = found.commit_id().unwrap();
        assert_eq!(id.number, number as u64);
        for (key, content) in expected {
            let read = found.read_whole(key, 1 << 20).unwrap().unwrap();
            // Of a commit whose tail was overwritten, the root's document is without those of other nodes.
            let alone = format!("root {number}").into_bytes();
            let is_alone = key == "zarr.json" && read == alone;
            assert!(is_alone || read == *content, "{key} of commit {number}");
        }
        let mut keys = found.keys().unwrap();
        keys.retain(|key| key != "zarr.json");
        let others = expected.keys().filter(|key| *key != "zarr.json");
        assert!(keys.iter().eq(others), "keys of commit {number}");
    }

    fn check_all(&self) {
        let last = container::open(&self.path()).unwrap();
        let count = self.commits.len();
        self.check(&*last, count);
        let commits = last.commits().unwrap();
        assert_eq!(commits.len(), count);
        for (commit, number) in commits.iter().zip((1..=count).rev()) {
            assert_eq!(commit.number, number as u64);
            assert_eq!(commit.message, format!("commit {number}"));
            self.check(&*last.at_commit(commit.number).unwrap(), number);
        }
    }
}

fn zipfile_reads(path: &Path) {
    let script = "import sys, zipfile\nassert zipfile.ZipFile(sys.argv[1]).testzip() is None";
    let python = Command::new("python3")
        .args(["-c", script, path.to_str().unwrap()])
        .status();
    // Without Python, this part is skipped.
    assert!(python.is_err() || python.is_ok_and(|status| status.success()));
}

#[test]
fn every_commit_is_found_and_read() {
    let mut history = History::new();
    for writers in 0..12 {
        let mut writer = history.open_writer();
        for _ in 0..writers {
            history.commit(&mut *writer);
            zipfile_reads(&history.path());
        }
        if writers % 2 == 1 {
            // Nothing of this is committed.
            writer.put("a/c/0", &[&[0; 3000]]).unwrap();
        }
        drop(writer);
        if writers > 0 {
            history.check_all();
            zipfile_reads(&history.path());
            let store = container::open(&history.path()).unwrap();
            store.verify_records().unwrap();
            for key in store.keys().unwrap() {
                store.verify(&key, &mut |_| {}).unwrap();
            }
        }
    }
    let store = container::open(&history.path()).unwrap();
    for number in [0, 67, u64::MAX] {
        assert_eq!(
            store.at_commit(number).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

#[test]
fn commits_are_read_while_a_writer_overwrites_the_tail() {
    let mut history = History::new();
    let mut writer = history.open_writer();
    for _ in 0..40 {
        history.commit(&mut *writer);
        let before = container::open(&history.path()).unwrap();
        // Longer than the tail, and than the writer's buffer.
        let mut next = container::open(&history.path()).unwrap();
        for len in [10, 2 << 20] {
            writer.put("b", &[&vec![1; len]]).unwrap();
            next = container::open(&history.path()).unwrap();
            history.check(&*next, history.commits.len());
        }
        history.check(&*before, history.commits.len());
        writer.remove("b").unwrap();
        drop(next);
    }
}

#[test]
fn a_killed_writer_leaves_the_last_commit_whatever_it_has_overwritten() {
    let mut history = History::new();
    let mut writer = history.open_writer();
    (0..30).for_each(|_| history.commit(&mut *writer));
    let mut temporary = 0;
    for round in 0..30 {
        history.commit(&mut *writer);
        let path = history.path();
        let intact = fs::read(&path).unwrap();
        let source = LocalFile::open(&path).unwrap();
        let header = last_commit::read_header(&source).unwrap();
        let slot = last_commit::find(&source, &header).unwrap().slot;
        let killed = history.folder.path().join("killed.ambar");
        let start = slot.permanent_end().unwrap();
        temporary += usize::from(slot.has_temporary_tail);
        for len in [0, 1, 40, 300, 5000] {
            let mut bytes = intact.clone();
            bytes.truncate(start as usize);
            bytes.resize(start as usize + len, 0xab);
            if round % 2 == 0 && len < intact.len() - start as usize {
                // The remainder of the tail is still there.
                bytes.extend_from_slice(&intact[bytes.len()..]);
            }
            fs::write(&killed, &bytes).unwrap();
            history.check(&*container::open(&killed).unwrap(), history.commits.len());
            let report = container::repair(&killed, &Limits::default()).unwrap();
            let store = container::open(&killed).unwrap();
            store.verify_records().unwrap();
            zipfile_reads(&killed);
            assert_eq!(store.commit_id().unwrap().number, report.commit);
            let last = store.at_commit(history.commits.len() as u64).unwrap();
            history.check(&*last, history.commits.len());
            // A writer continues, too.
            fs::write(&killed, &bytes).unwrap();
            let mut next =
                container::append(&killed, Durability::None, &Limits::default()).unwrap();
            next.put("b", &[b"x"]).unwrap();
            next.commit().unwrap();
            drop(next);
            let store = container::open(&killed).unwrap();
            assert_eq!(store.read_whole("b", 9).unwrap().unwrap(), b"x");
            let last = store.at_commit(history.commits.len() as u64).unwrap();
            history.check(&*last, history.commits.len());
        }
    }
    assert!((5..30).contains(&temporary), "{temporary} temporary tails");
}

#[test]
fn the_last_commit_is_repaired_from_its_record() {
    let mut history = History::new();
    let mut writer = history.open_writer();
    (0..20).for_each(|_| history.commit(&mut *writer));
    loop {
        history.commit(&mut *writer);
        let path = history.path();
        let source = LocalFile::open(&path).unwrap();
        let header = last_commit::read_header(&source).unwrap();
        let slot = last_commit::find(&source, &header).unwrap().slot;
        if !slot.has_temporary_tail {
            continue;
        }
        drop(writer);
        // The writer of the next commit was killed, and then the slot was damaged.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(slot.tail).unwrap();
        file.write_all_at(&[1; 8], 512 + 512 * slot.index() as u64 + 20)
            .unwrap();
        assert_eq!(
            container::open(&path).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
        container::repair(&path, &Limits::default()).unwrap();
        let store = container::open(&path).unwrap();
        let number = history.commits.len();
        history.check(&*store.at_commit(number as u64).unwrap(), number);
        assert_eq!(store.commit_id().unwrap().number, number as u64 + 1);
        break;
    }
}

#[test]
fn dead_bytes_of_a_growing_store_are_fewer_than_live_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let options = CreateOptions {
        durability: Durability::None,
        ..CreateOptions::default()
    };
    let mut writer = container::create(&path, &options).unwrap();
    for step in 0..400 {
        for entry in 0..20 {
            let key = format!("step_{step:06}/field_{entry}/c/0");
            writer.put(&key, &[&[1; 100]]).unwrap();
        }
        writer.put_root(&vec![b'x'; 300 * step], b"{}").unwrap();
        writer.commit().unwrap();
    }
    let usage = container::open(&path).unwrap().usage().unwrap();
    assert!(usage.dead < usage.live, "{usage:?}");
}

#[test]
fn damaged_records_are_found_and_can_be_appended_to() {
    let mut history = History::new();
    let mut writer = history.open_writer();
    (0..25).for_each(|_| history.commit(&mut *writer));
    drop(writer);
    let path = history.path();
    let intact = fs::read(&path).unwrap();
    let commits = container::open(&path).unwrap().commits().unwrap();
    let records: Vec<usize> = intact
        .windows(8)
        .enumerate()
        .filter_map(|(at, bytes)| (bytes == b"ambarlog").then_some(at))
        .collect();
    assert_eq!(records.len(), commits.len());
    for (index, at) in records.iter().enumerate() {
        for byte in [0, 9, 13, 16, 24, 32, 50, 80, 110] {
            let mut bytes = intact.clone();
            bytes[at + byte] ^= 0x40;
            fs::write(&path, &bytes).unwrap();
            let store = container::open(&path).unwrap();
            history.check(&*store, 25);
            let error = store.commits().unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Corrupt,
                "record {index}, byte {byte}"
            );
            assert!(store.verify_records().is_err());
        }
        // The tail of the last commit may be the only intact copy of its directory: it is kept.
        let mut writer = history.open_writer();
        writer.put("b", &[b"new"]).unwrap();
        drop(writer);
        history.check(&*container::open(&path).unwrap(), 25);
        let mut writer = history.open_writer();
        writer.put("b", &[b"new"]).unwrap();
        writer.commit().unwrap();
        drop(writer);
        let store = container::open(&path).unwrap();
        assert_eq!(store.commit_id().unwrap().number, 26);
        assert_eq!(store.read_whole("b", 10).unwrap().unwrap(), b"new");
    }
}

#[test]
fn zips_of_other_programs_have_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.zip");
    // The end record of an empty ZIP.
    fs::write(&path, [b"PK\x05\x06".as_slice(), &[0; 18]].concat()).unwrap();
    let store = container::open(&path).unwrap();
    let kinds = [
        store.commits().unwrap_err().kind(),
        store.at_commit(1).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Unsupported; 2]);
}
