//! Objects are read like files: equal content, equal errors, and few requests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use super::object::TAIL;
use super::recording_store::RecordingStore;
use super::service::Service;
use super::*;
use crate::array::{ArrayData, ArraySpec, Slice};
use crate::container::{self, CreateOptions, Durability};
use crate::parallel::with_threads;
use crate::store::{Store, StoreWriter};
use crate::{DataType, Limits};

fn open_object(
    store: &Arc<RecordingStore>,
    key: &str,
    directory: bool,
) -> Result<Arc<dyn Container>> {
    let service = Service::of(Arc::clone(store) as _, key, &format!("s3://bucket/{key}"));
    open_service(Arc::new(service), directory, &Limits::default())
}

fn options(directory: bool) -> CreateOptions {
    CreateOptions {
        durability: Durability::None,
        overwrite: true,
        directory,
        ..CreateOptions::default()
    }
}

type Content = BTreeMap<String, Vec<u8>>;

/// The content of a container, or the first error.
fn content(container: &dyn Container) -> Result<Content> {
    let mut all = Content::new();
    for key in container.keys()? {
        let whole = container.read_whole(&key, 1 << 30)?.unwrap();
        // The root's document of a commit that was read from its record is not an entry.
        if let Some(entry) = container.entry(&key)? {
            let mut middle = vec![0; whole.len() / 2];
            container.read_at(&entry, whole.len() as u64 / 4, &mut middle)?;
            assert_eq!(middle, whole[whole.len() / 4..][..middle.len()]);
        } else {
            assert_eq!(key, "zarr.json");
        }
        all.insert(key, whole);
    }
    Ok(all)
}

fn verified(container: &dyn Container) -> Result<()> {
    container.verify_records()?;
    for key in container.keys()? {
        container.verify(&key, &mut |_| {})?;
    }
    Ok(())
}

/// A container of three commits, with an entry longer than a request.
fn three_commits(path: &FilePath, directory: bool) {
    let mut writer = container::create(path, &options(directory)).unwrap();
    let large: Vec<u8> = (0..(20u32 << 20)).map(|n| (n * 7) as u8).collect();
    writer.put("old", &[b"removed"]).unwrap();
    writer.put("a/c/0", &[&large]).unwrap();
    writer.put("zarr.json", &[b"{}"]).unwrap();
    writer.commit().unwrap();
    writer.put("b/empty", &[]).unwrap();
    writer.put("b/two words", &[b"short"]).unwrap();
    writer.remove("old").unwrap();
    writer.put("zarr.json", &[b"{\"a\": 2}"]).unwrap();
    writer.commit().unwrap();
    writer.put("b/\u{17e}lu\u{165}", &[&large[..1000]]).unwrap();
    writer.put("zarr.json", &[b"{\"a\": 3}"]).unwrap();
    writer.commit().unwrap();
}

/// Checks that a container in files and in objects has the expected content.
fn reads_as(container: &dyn Container, expected: &Content, location: &str) {
    assert_eq!(container.location(), location);
    assert_eq!(&content(container).unwrap(), expected);
    assert!(container.entry("a/c").unwrap().is_none());
    assert_eq!(container.read_whole("a/c/1", 9).unwrap(), None);
    let entry = container.entry("b/two words").unwrap().unwrap();
    for offset in [2, 5, 6, u64::MAX - 3, u64::MAX] {
        let error = container.read_at(&entry, offset, &mut [0; 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{offset}");
        assert_eq!(error.file(), location);
    }
    let error = container.read_whole("b/two words", 4).unwrap_err();
    assert_eq!(
        (error.kind(), error.node()),
        (ErrorKind::Limit, "b/two words")
    );
    let error = container.verify("none", &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    verified(container).unwrap();
    let usage = container.usage().unwrap();
    assert_eq!((usage.commit, usage.entries), (3, expected.len() as u64));
    assert_eq!(usage.total, usage.live + usage.dead);

    let large = container.entry("a/c/0").unwrap().unwrap();
    let part = |entry: &container::Entry, offset, len| container::EntryRange {
        entry: entry.clone(),
        offset,
        len,
    };
    let parts = [
        part(&large, 0, 10 << 20),
        part(&large, 19 << 20, 77),
        part(&large, 5, 0),
        part(&entry, 1, 4),
    ];
    let ahead = container.read_ahead(&parts, u64::MAX).unwrap();
    for (wanted, key) in parts.iter().zip(["a/c/0", "a/c/0", "a/c/0", "b/two words"]) {
        let mut out = vec![0; wanted.len as usize];
        container
            .read_at(&wanted.entry, wanted.offset, &mut out)
            .unwrap();
        assert_eq!(out, expected[key][wanted.offset as usize..][..out.len()]);
    }
    drop(ahead);
    match container.read_ahead(&[part(&entry, 3, 3)], u64::MAX) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
        // A hint, which local folders ignore.
        Ok(_) => assert!(!container.is_remote() && location.ends_with("folder.ambar")),
    }
}

#[test]
fn files_and_objects_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(RecordingStore::default());
    for (directory, name) in [(false, "one.ambar"), (true, "folder.ambar")] {
        let path = folder.path().join(name);
        three_commits(&path, directory);
        let local = container::open(&path).unwrap();
        let expected = content(&*local).unwrap();
        assert_eq!(expected.len(), 5);
        reads_as(&*local, &expected, path.to_str().unwrap());
        store.upload(&path, &format!("some/{name}"));
        store.take();
        let remote = open_object(&store, &format!("some/{name}"), directory).unwrap();
        assert!(remote.is_remote() && !local.is_remote());
        reads_as(&*remote, &expected, &format!("s3://bucket/some/{name}"));
    }
    // A directory is also found without a trailing `/`.
    let found = open_object(&store, "some/folder.ambar", false).unwrap();
    assert_eq!(found.keys().unwrap().len(), 5);
    let error = open_object(&store, "some/other.ambar", false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.file(), "s3://bucket/some/other.ambar");
    let error = open_object(&store, "some/other", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn directories_of_other_programs_are_read() {
    let store = Arc::new(RecordingStore::default());
    store.insert("z/zarr.json", b"{}".to_vec());
    store.insert("z/a/c/0", b"values".to_vec());
    let found = open_object(&store, "z", true).unwrap();
    assert_eq!(found.keys().unwrap(), ["a/c/0", "zarr.json"]);
    assert_eq!(found.read_whole("a/c/0", 9).unwrap().unwrap(), b"values");
    assert_eq!(found.read_whole("a/c/1", 9).unwrap(), None);
    assert_eq!(
        found.entry("../z/zarr.json").unwrap().map(|e| e.len()),
        None
    );
    assert_eq!(found.usage().unwrap().entries, 2);
}

/// Opens and reads a damaged container. Returns its content, or the kind of the error.
fn outcome(container: Result<Arc<dyn Container>>) -> std::result::Result<Content, ErrorKind> {
    let all = container.and_then(|container| content(&*container));
    all.map_err(|error| error.kind())
}

#[test]
fn damaged_objects_are_refused_as_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = container::create(&path, &options(false)).unwrap();
    for round in 0..2u8 {
        writer.put("a/c/0", &[&[round; 300]]).unwrap();
        writer.put("zarr.json", &[b"{\"a\": 1}"]).unwrap();
        writer.commit().unwrap();
    }
    drop(writer);
    let sound = fs::read(&path).unwrap();
    let expected = outcome(container::open(&path));
    assert!(expected.is_ok());
    let store = Arc::new(RecordingStore::default());
    let compare = |bytes: Vec<u8>, what: &str, unseen: bool| {
        fs::write(&path, &bytes).unwrap();
        store.insert("run.ambar", bytes);
        let (local, remote) = (
            outcome(container::open(&path)),
            outcome(open_object(&store, "run.ambar", false)),
        );
        assert!(
            remote == local || (unseen && remote == expected),
            "{what}: {local:?}, {remote:?}"
        );
        // Never an older commit, nor other content.
        assert!(remote.is_err() || remote == expected, "{what}: {remote:?}");
    };
    for len in (0..sound.len()).rev().step_by(7) {
        compare(sound[..len].to_vec(), &format!("{len} bytes"), false);
    }
    for position in (0..sound.len()).step_by(3) {
        let mut bytes = sound.clone();
        bytes[position] ^= 0x10;
        // Damage in the header is not detected if the header is not read.
        compare(bytes, &format!("byte {position}"), position < 1655);
    }
    let mut tailed = sound.clone();
    tailed.extend_from_slice(&[7; 5000]);
    compare(tailed, "a killed writer's rest", false);
    compare(b"PK".repeat(300), "no ZIP", false);
}

#[test]
fn replaced_objects_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(RecordingStore::default());
    for directory in [false, true] {
        let path = folder.path().join("run.ambar");
        three_commits(&path, directory);
        store.upload(&path, "run");
        let before = open_object(&store, "run", directory).unwrap();
        let entry = before.entry("a/c/0").unwrap().unwrap();
        before.read_at(&entry, 0, &mut [0; 9]).unwrap();
        store.upload(&path, "run");
        let error = before.read_at(&entry, 0, &mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        if directory {
            store.insert("run/b/two words", b"longer".to_vec());
            let error = before.read_whole("b/two words", 99).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            store.remove("run/b/two words");
            let error = before.read_whole("b/two words", 99).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn directories_of_unfinished_commits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let store = Arc::new(RecordingStore::default());
    three_commits(&path, true);
    let list = fs::read_to_string(path.join(".ambar/commit")).unwrap();
    let root = list
        .lines()
        .find(|line| line.ends_with(" zarr.json"))
        .unwrap();
    let number = root.split(' ').nth(3).unwrap();
    store.upload(&path, "run");
    store.insert(&format!("run/.ambar/new-{number}"), b"{\"a\": 3}".to_vec());
    let error = open_object(&store, "run", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");

    // If the last commit did not write the root's metadata, the list of the folder shows the unfinished commit.
    let mut writer = container::append(&path, Durability::None, &Limits::default()).unwrap();
    writer.put("last", &[b"entry"]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    store.remove(&format!("run/.ambar/new-{number}"));
    store.upload(&path, "run");
    let found = open_object(&store, "run", true).unwrap();
    assert_eq!(found.read_whole("last", 9).unwrap().unwrap(), b"entry");
    store.insert("run/.ambar/new-8", b"entry".to_vec());
    let text = fs::read_to_string(path.join(".ambar/commit")).unwrap();
    assert!(
        text.contains(" 8 last\n") || text.contains(" 7 last\n"),
        "{text}"
    );
    store.insert("run/.ambar/new-7", b"entry".to_vec());
    let error = open_object(&store, "run", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
}

/// A store with a catalogue of three small arrays, and two large ones.
fn write_store(path: &FilePath) -> Vec<u64> {
    // Splitmix64, which is incompressible.
    let mix = |i: u64| {
        let a = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        b ^ (b >> 27)
    };
    let values: Vec<u64> = (0..1_500_000).map(mix).collect();
    let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
    let mut writer = StoreWriter::create(path, &options(false)).unwrap();
    let line = ArraySpec::new(DataType::UInt64, &[1_500_000]);
    writer.write_array("line", &line, data).unwrap();
    let cube = ArraySpec::new(DataType::UInt64, &[100, 150, 100]);
    writer.write_array("cube", &cube, data).unwrap();
    for name in ["names", "sizes", "places"] {
        let small = ArraySpec::new(DataType::UInt64, &[2000]);
        let part = ArrayData::Fixed(bytemuck::cast_slice(&values[..2000]));
        writer
            .write_array(&format!("catalogue/{name}"), &small, part)
            .unwrap();
    }
    let chunked = ArraySpec::new(DataType::UInt64, &[20_000]).chunks(&[1000]);
    let part = ArrayData::Fixed(bytemuck::cast_slice(&values[..20_000]));
    writer.write_array("chunked", &chunked, part).unwrap();
    // The rest is longer than the tail of an object that is read first.
    let last = ArraySpec::new(DataType::UInt64, &[150_000]);
    let part = ArrayData::Fixed(bytemuck::cast_slice(&values[..150_000]));
    writer.write_array("last", &last, part).unwrap();
    writer.commit().unwrap();
    values
}

#[test]
fn few_requests_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let values = write_store(&path);
    let store = Arc::new(RecordingStore::default());
    store.upload(&path, "run.ambar");
    let found = open_object(&store, "run.ambar", false).unwrap();
    let found = Store::from_container(found, Limits::default()).unwrap();
    assert_eq!(store.take(), [format!("run.ambar bytes=-{TAIL}")]);

    let ahead = found
        .read_ahead(&["catalogue/names", "catalogue/sizes", "catalogue/places"])
        .unwrap();
    assert_eq!(store.take().len(), 1);
    for name in ["names", "sizes", "places"] {
        let mut out = vec![0u64; 2000];
        let array = found.array(&format!("catalogue/{name}")).unwrap();
        let bytes = bytemuck::cast_slice_mut(&mut out);
        array.read(&[Slice::all(2000)], bytes).unwrap();
        assert_eq!(out, values[..2000]);
    }
    assert_eq!(store.take(), [""; 0]);
    drop(ahead);

    let mut out = vec![0u64; 20_000];
    let chunked = found.array("chunked").unwrap();
    let bytes = bytemuck::cast_slice_mut(&mut out);
    chunked.read(&[Slice::all(20_000)], bytes).unwrap();
    assert_eq!(out, values[..20_000]);
    assert_eq!(store.take().len(), 1, "a small shard comes with its index");

    let line = found.array("line").unwrap();
    let read = |rows: std::ops::Range<u64>| {
        let mut out = vec![0u64; (rows.end - rows.start) as usize];
        let bytes = bytemuck::cast_slice_mut(&mut out);
        line.read(&[rows.clone().into()], bytes).unwrap();
        assert_eq!(out, values[rows.start as usize..rows.end as usize]);
        let mut again = vec![0u64; out.len()];
        line.read_rows(rows, bytemuck::cast_slice_mut(&mut again))
            .unwrap();
        assert_eq!(again, out);
    };
    read(5..7);
    let asked = store.take();
    assert_eq!(asked.len(), 3, "the index, and one chunk twice: {asked:?}");
    read(0..1_500_000);
    let asked = store.take();
    assert_eq!(
        asked.len(),
        24,
        "12 MB in twelve requests, twice: {asked:?}"
    );

    let cube = found.array("cube").unwrap();
    assert!(cube.chunk_count() > 100);
    for threads in [1, 2] {
        let mut out = vec![0u64; 100 * 150];
        let selection = [Slice::all(100), Slice::all(150), Slice::from(42..43)];
        let bytes = bytemuck::cast_slice_mut(&mut out);
        with_threads(Some(threads), || cube.read(&selection, bytes)).unwrap();
        let expected = values.iter().skip(42).step_by(100);
        assert!(out.iter().eq(expected));
    }
    let asked = store.take();
    assert!(
        asked.len() <= 1 + 2 * 16,
        "not one for each chunk: {asked:?}"
    );
    found.verify(&|_, _| true).unwrap();
}

#[test]
fn many_arrays_open_with_two_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.ambar");
    let mut writer = StoreWriter::create(&path, &options(false)).unwrap();
    let spec = ArraySpec::new(DataType::UInt8, &[1]);
    for i in 0..5000 {
        writer
            .write_array(&format!("a{i}"), &spec, ArrayData::Fixed(&[7]))
            .unwrap();
    }
    writer.commit().unwrap();
    drop(writer);
    let store = Arc::new(RecordingStore::default());
    store.upload(&path, "many.ambar");
    let found = open_object(&store, "many.ambar", false).unwrap();
    let found = Store::from_container(found, Limits::default()).unwrap();
    let asked = store.take();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(found.nodes().unwrap().len(), 5000);
    let mut out = [0];
    found
        .array("a4999")
        .unwrap()
        .read(&[Slice::all(1)], &mut out)
        .unwrap();
    assert_eq!((out, store.take().len()), ([7], 1));
}
