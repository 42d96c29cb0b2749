//! Errors of the operating system at every single step of a commit, and a record of what changes the disk.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};

use super::{CreateOptions, Durability};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

thread_local! {
    /// How many steps succeed before one fails.
    static STEPS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// What changes the names on the disk, or makes a change durable.
#[derive(Clone, Debug)]
pub(super) enum Event {
    MakeFolder(PathBuf),
    CreateFile(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFile(PathBuf),
    SyncFolder(PathBuf),
    SyncAll,
}

thread_local! {
    /// What this thread did since the record was last taken.
    static RECORD: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// The contents of files when they were made durable, if someone asked for them.
    static CONTENTS: RefCell<Option<Vec<Vec<u8>>>> = const { RefCell::new(None) };
}

/// Notes what was done.
pub(super) fn record(event: Event) {
    if let Event::SyncFile(path) = &event {
        CONTENTS.with_borrow_mut(|contents| {
            if let Some(contents) = contents {
                contents.push(std::fs::read(path).unwrap());
            }
        });
    }
    RECORD.with_borrow_mut(|record| record.push(event));
}

/// Calls `run`, and returns the contents of the files that it made durable, each at that moment.
pub(super) fn contents_made_durable(run: impl FnOnce()) -> Vec<Vec<u8>> {
    CONTENTS.set(Some(Vec::new()));
    run();
    CONTENTS.take().unwrap()
}

/// What was done since the last call.
pub(super) fn take_record() -> Vec<Event> {
    RECORD.take()
}

/// Fails if it is this step's turn; the steps that change the disk call it.
pub(super) fn step(path: &Path) -> Result<()> {
    let left = STEPS.get();
    STEPS.set(left.and_then(|left| left.checked_sub(1)));
    match left {
        Some(0) => Err(Error::io(
            io::Error::from_raw_os_error(libc::EIO),
            path,
            "testing",
        )),
        _ => Ok(()),
    }
}

/// What the store holds: both entries are of the same commit.
fn content(path: &Path) -> Vec<u8> {
    let store = super::open(path).unwrap();
    store.verify("a", &mut |_| {}).unwrap();
    let read = |key| store.read_whole(key, 1 << 20).unwrap().unwrap();
    assert_eq!(read("a"), read("zarr.json"));
    read("a")
}

fn commit_with_a_fault(path: &Path, steps: u32, new: bool, directory: bool) -> Result<()> {
    STEPS.set(Some(steps));
    let mut writer = match new {
        true => super::create(
            path,
            &CreateOptions {
                directory,
                ..CreateOptions::default()
            },
        ),
        false => super::append(path, Durability::Full, &Limits::default()),
    }?;
    let mut put_and_commit = || {
        writer.put("a", &[b"new"])?;
        writer.put("zarr.json", &[b"new"])?;
        writer.commit()
    };
    let result = put_and_commit();
    if result.is_err() {
        // A step that failed must not be tried again: the system may have dropped what it held.
        assert_eq!(writer.put("b", &[b"x"]).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(writer.reader().unwrap_err().kind(), ErrorKind::Io);
    }
    result
}

fn a_fault_at_every_step(directory: bool, new: bool) {
    let options = CreateOptions {
        directory,
        ..CreateOptions::default()
    };
    let mut failed = 0;
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.ambar");
        if !new {
            STEPS.set(None);
            let mut writer = super::create(&path, &options).unwrap();
            writer.put("a", &[b"old"]).unwrap();
            writer.put("zarr.json", &[b"old"]).unwrap();
            writer.commit().unwrap();
        }
        let result = commit_with_a_fault(&path, steps, new, directory);
        let reached = STEPS.replace(None).is_none();
        assert_eq!(reached, result.is_err());
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        if result.is_ok() {
            assert_eq!(content(&path), b"new");
            break;
        }
        failed += 1;
        if !path.exists() {
            assert!(new);
            assert_eq!(names, 0, "step {steps} leaves something behind");
            continue;
        }
        assert_eq!(names, 1, "step {steps} leaves something behind");
        let found = content(&path);
        assert!(found == b"new" || (found == b"old" && !new), "step {steps}");
        let mut writer = super::append(&path, Durability::Full, &Limits::default()).unwrap();
        writer.put("a", &[b"next"]).unwrap();
        writer.put("zarr.json", &[b"next"]).unwrap();
        writer.commit().unwrap();
        drop(writer);
        assert_eq!(content(&path), b"next");
        super::open(&path).unwrap().verify_records().unwrap();
    }
    assert!(failed >= 4, "only {failed} steps");
}

#[test]
fn a_fault_at_every_step_of_a_new_zip() {
    a_fault_at_every_step(false, true);
}

#[test]
fn a_fault_at_every_step_of_an_appended_zip() {
    a_fault_at_every_step(false, false);
}

#[test]
fn a_fault_at_every_step_of_a_new_directory() {
    a_fault_at_every_step(true, true);
}

#[test]
fn a_fault_at_every_step_of_an_appended_directory() {
    a_fault_at_every_step(true, false);
}

/// Calls `change` after the first commit of a store, then commits again. Returns the error.
fn commit_after(directory: bool, change: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let options = CreateOptions {
        directory,
        ..CreateOptions::default()
    };
    let mut writer = super::create(&path, &options).unwrap();
    writer.put("a", &[&[1; 4096]]).unwrap();
    writer.commit().unwrap();
    writer.put("b", &[b"more"]).unwrap();
    writer.commit().unwrap();
    change(&path);
    writer.put("c", &[b"lost"]).unwrap();
    let error = writer.commit().unwrap_err();
    assert!(writer.commit().is_err());
    let length = std::fs::metadata(&path).map(|found| found.len()).ok();
    drop(writer);
    // The writer leaves alone what another program wrote.
    let found = std::fs::metadata(&path).map(|found| found.len()).ok();
    assert_eq!(length, found);
    error
}

#[test]
fn commits_to_files_that_other_programs_changed_fail() {
    let delete = |path: &Path| std::fs::remove_file(path).unwrap();
    let replace = |path: &Path| {
        std::fs::write(path.with_extension("other"), b"other").unwrap();
        std::fs::rename(path.with_extension("other"), path).unwrap();
    };
    let rename = |path: &Path| std::fs::rename(path, path.with_extension("other")).unwrap();
    let truncate = |path: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(100).unwrap();
    };
    let changes: [&dyn Fn(&Path); 3] = [&delete, &replace, &rename];
    for change in changes {
        let error = commit_after(false, change);
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("renamed or replaced it"));
    }
    let error = commit_after(false, truncate);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("truncated"), "{error}");
    let error = commit_after(true, |path| {
        std::fs::rename(path, path.with_extension("other")).unwrap();
    });
    assert_eq!(error.kind(), ErrorKind::Busy);
}
