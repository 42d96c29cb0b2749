//! Tests of uploads: they have the bytes of files, and appear as a whole or not at all.

use std::sync::Arc;

use super::super::zip::{UploadWriter, ZipReader};
use super::super::{self as container, CommitInfo, Container, ContainerWriter, CreateOptions};
use super::object::Object;
use super::recording_store::{Fault, RecordingStore};
use super::service::Service;
use super::upload::ObjectUpload;
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;

const KEY: &str = "some/run.ambar";
const PART: usize = 4096;

fn service(store: &Arc<RecordingStore>) -> Arc<Service> {
    let store = Arc::clone(store);
    Arc::new(Service::of(store, KEY, &format!("s3://bucket/{KEY}")))
}

fn writer(store: &Arc<RecordingStore>, overwrite: bool) -> Result<UploadWriter> {
    let upload = ObjectUpload::with_parts(service(store), overwrite, PART)?;
    UploadWriter::new(
        Box::new(upload),
        "s3://bucket/some/run.ambar",
        Limits::default(),
    )
}

fn open(store: &Arc<RecordingStore>) -> Result<Arc<dyn Container>> {
    let object = Object::open(service(store))?;
    Ok(Arc::new(ZipReader::of(
        Arc::new(object),
        &Limits::default(),
    )?))
}

/// Writes commits, some of which replace and remove entries; the tails of most are temporary.
fn write(writer: &mut dyn ContainerWriter, commits: usize) -> Result<()> {
    for number in 0..commits {
        let large = vec![number as u8; 1500];
        writer.put_sealed(&format!("a/c/{number}"), &[&large, b"end"], Some(7))?;
        writer.put(
            &format!("a/{number}/zarr.json"),
            &[b"{\"a\": [1, 1, 1, 1, 1, 1]}"],
        )?;
        writer.put("b/c/0", &[&large[..number]])?;
        if number % 5 == 4 {
            writer.remove(&format!("a/c/{}", number - 1))?;
        }
        let root = format!("{{\"number\": {number}}}");
        writer.put_root(root.as_bytes(), b"{}")?;
        writer.set_message(&format!("commit {number}"))?;
        writer.commit()?;
    }
    Ok(())
}

/// Numbers, messages, changes and ends of commits: everything but the times.
fn described(commits: Vec<CommitInfo>) -> Vec<CommitInfo> {
    let timeless = |commit| CommitInfo { time: 0, ..commit };
    commits.into_iter().map(timeless).collect()
}

fn content(container: &dyn Container) -> Vec<(String, Vec<u8>)> {
    let keys = container.keys().unwrap().into_iter();
    let read = |key: String| {
        container.verify(&key, &mut |_| {}).unwrap();
        let bytes = container.read_whole(&key, u64::MAX).unwrap().unwrap();
        (key, bytes)
    };
    keys.map(read).collect()
}

#[test]
fn an_upload_has_the_bytes_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for commits in [1, 2, 40] {
        let path = folder.path().join(format!("{commits}.ambar"));
        let mut local = container::create(&path, &CreateOptions::default()).unwrap();
        write(&mut *local, commits).unwrap();
        drop(local);
        let store = Arc::new(RecordingStore::default());
        let mut remote = writer(&store, false).unwrap();
        write(&mut remote, commits).unwrap();
        assert_eq!(open(&store).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(remote.reader().unwrap_err().kind(), ErrorKind::Unsupported);
        store.take();
        remote.finish().unwrap();
        remote.finish().unwrap();
        let last = store.take().pop().unwrap();
        let ending = if commits == 1 { "create" } else { "complete" };
        assert_eq!(last, format!("{KEY} {ending}"));
        assert_eq!(
            remote.put("x", &[b"1"]).unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(
            remote.reader().unwrap().keys().unwrap().len(),
            remote.reader().unwrap().usage().unwrap().entries as usize
        );
        drop(remote);

        let (local, remote) = (container::open(&path).unwrap(), open(&store).unwrap());
        assert_eq!(content(&*local), content(&*remote));
        assert_eq!(local.usage().unwrap(), remote.usage().unwrap());
        assert_eq!(local.verify_records().unwrap(), 0);
        assert_eq!(remote.verify_records().unwrap(), 0);
        let commits = described(local.commits().unwrap());
        assert_eq!(commits, described(remote.commits().unwrap()));
        for info in &commits {
            let (old, new) = (local.at_commit(info.number), remote.at_commit(info.number));
            assert_eq!(content(&*old.unwrap()), content(&*new.unwrap()));
        }
        assert_eq!(store.uploads(), 0);
    }
}

#[test]
fn entries_without_a_commit_are_discarded() {
    let store = Arc::new(RecordingStore::default());
    let mut first = writer(&store, false).unwrap();
    write(&mut first, 3).unwrap();
    first.put("later", &[&[1; 5000]]).unwrap();
    first.put("b/c/0", &[b"later"]).unwrap();
    first.remove("a/c/0").unwrap();
    first.put_root(b"{\"later\": 1}", b"{}").unwrap();
    first.finish().unwrap();
    let other = Arc::new(RecordingStore::default());
    let mut second = writer(&other, false).unwrap();
    write(&mut second, 3).unwrap();
    second.finish().unwrap();
    let (found, expected) = (open(&store).unwrap(), open(&other).unwrap());
    assert_eq!(content(&*found), content(&*expected));
    found.verify_records().unwrap();

    // Without a commit, and without `finish`, nothing is left.
    for commits in [0, 3] {
        let store = Arc::new(RecordingStore::default());
        let mut writer = writer(&store, false).unwrap();
        writer.put("large", &[&[0; 20_000]]).unwrap();
        write(&mut writer, commits).unwrap();
        assert_eq!(store.uploads(), 1);
        if commits == 0 {
            writer.finish().unwrap();
        }
        drop(writer);
        assert_eq!(store.uploads(), 0);
        assert_eq!(open(&store).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn recent_entries_are_read_back() {
    let store = Arc::new(RecordingStore::default());
    let mut writer = writer(&store, false).unwrap();
    for number in 0..5000u32 {
        writer.put("a/c/0", &[&number.to_le_bytes()]).unwrap();
    }
    let found = writer.read_back("a/c/0", 100).unwrap().unwrap();
    assert_eq!(found, 4999u32.to_le_bytes());
    assert_eq!(writer.read_back("none", 100).unwrap(), None);
    let large = vec![0; 9 << 20];
    for key in ["x/c/0", "x/c/1", "x/c/2", "x/c/3"] {
        writer.put(key, &[&large]).unwrap();
    }
    let error = writer.read_back("x/c/0", u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(writer.read_back("x/c/3", u64::MAX).unwrap().is_some());
    assert!(writer.read_back("x/c/3", 9).is_err());
}

#[test]
fn a_fault_at_every_request_leaves_the_old_or_the_new_object() {
    for (commits, overwrite) in [(1, false), (1, true), (6, false), (6, true)] {
        for fault in [Fault::Refused, Fault::Lost, Fault::Dead] {
            let mut faults = 0;
            for count in 0.. {
                let store = Arc::new(RecordingStore::default());
                if overwrite {
                    let mut old = writer(&store, false).unwrap();
                    write(&mut old, 2).unwrap();
                    old.finish().unwrap();
                }
                store.fail_after(count, fault);
                let result = writer(&store, overwrite).and_then(|mut writer| {
                    write(&mut writer, commits)?;
                    writer.finish()
                });
                let has_failed = store.heal();
                let found = open(&store).map(|found| found.usage().unwrap().commit);
                let found = found.map_err(|error| error.kind());
                let what = format!("{commits} {overwrite} {fault:?} {count}: {result:?} {found:?}");
                match (&result, found) {
                    (Ok(()), Ok(number)) => assert_eq!(number, commits as u64, "{what}"),
                    // The client repeats requests, this store does not.
                    (Err(error), Ok(2)) => {
                        assert!(overwrite && error.file().contains(KEY), "{what}")
                    }
                    (Err(_), Err(ErrorKind::NotFound)) => assert!(!overwrite, "{what}"),
                    _ => panic!("{what}"),
                }
                // An upload whose number was lost cannot be aborted, and the abort can fail after a success.
                let most = usize::from(has_failed && (fault != Fault::Refused || result.is_ok()));
                assert!(store.uploads() <= most, "{what}");
                if !has_failed {
                    break;
                }
                faults += 1;
            }
            assert!(
                faults >= if commits > 1 { 5 } else { 1 },
                "{faults} {fault:?}"
            );
        }
    }
}

#[test]
fn an_object_is_put_again_if_the_connection_breaks() {
    for (overwrite, mode) in [(false, "create"), (true, "put")] {
        let store = Arc::new(RecordingStore::default());
        let mut writer = writer(&store, overwrite).unwrap();
        write(&mut writer, 1).unwrap();
        store.take();
        store.fail_after(0, Fault::Interrupted);
        writer.finish().unwrap();
        let request = format!("{KEY} {mode}");
        assert_eq!(store.take()[..2], [request.clone(), request]);
        assert_eq!(open(&store).unwrap().usage().unwrap().commit, 1);
    }
}

#[test]
fn objects_of_others_are_not_replaced() {
    for commits in [1, 6] {
        let store = Arc::new(RecordingStore::default());
        let mut first = writer(&store, false).unwrap();
        write(&mut first, commits).unwrap();
        store.insert(KEY, b"other".to_vec());
        let error = first.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert_eq!(error.file(), "s3://bucket/some/run.ambar");
        assert_eq!(first.finish().unwrap_err().kind(), ErrorKind::Io);
        drop(first);
        assert_eq!(store.uploads(), 0);
        assert_eq!(writer(&store, false).unwrap_err().kind(), ErrorKind::Exists);
        let mut second = writer(&store, true).unwrap();
        write(&mut second, commits).unwrap();
        second.finish().unwrap();
        assert_eq!(
            open(&store).unwrap().usage().unwrap().commit,
            commits as u64
        );
    }
}
