//! What every container must do: one suite, run on the ZIP and on the directory.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::{Path, PathBuf};

use ambar::ErrorKind;
use ambar::container::{self, Container, ContainerWriter, CreateOptions, Durability};

fn create(path: &Path, directory: bool) -> Box<dyn ContainerWriter> {
    let options = CreateOptions {
        durability: Durability::Full,
        overwrite: false,
        directory,
    };
    container::create(path, &options).unwrap()
}

fn whole(container: &dyn Container, key: &str) -> Option<Vec<u8>> {
    container.read_whole(key, 1 << 30).unwrap()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    (folder, path)
}

fn what_was_put_is_read(directory: bool) {
    let (_folder, path) = folder();
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7) as u8).collect();
    let mut writer = create(&path, directory);
    writer.put("zarr.json", &[b"{}"]).unwrap();
    writer.put("a/c/0", &[&large[..10], &large[10..]]).unwrap();
    writer.put("a/empty", &[]).unwrap();
    assert!(!path.exists(), "nothing is seen before the commit");
    writer.commit().unwrap();
    drop(writer);

    let store = container::open(&path).unwrap();
    assert_eq!(store.keys().unwrap(), ["a/c/0", "a/empty", "zarr.json"]);
    assert_eq!(whole(&*store, "zarr.json").unwrap(), b"{}");
    assert_eq!(whole(&*store, "a/c/0").unwrap(), large);
    assert_eq!(whole(&*store, "a/empty").unwrap(), b"");
    assert_eq!(whole(&*store, "a/c/1"), None);
    let entry = store.entry("a/c/0").unwrap().unwrap();
    assert_eq!(entry.len(), large.len() as u64);
    let mut part = vec![0; 1000];
    store.read_at(&entry, 2_999_000, &mut part).unwrap();
    assert_eq!(part, large[2_999_000..]);
    let error = store.read_at(&entry, 2_999_001, &mut part).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let error = store.read_at(&entry, u64::MAX, &mut part).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let error = store.read_whole("a/c/0", 2_999_999).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    for key in store.keys().unwrap() {
        store.verify(&key, &mut |_| {}).unwrap();
    }
    store.verify_records().unwrap();
}

fn commits_replace_and_remove(directory: bool) {
    let (_folder, path) = folder();
    let mut writer = create(&path, directory);
    writer.put("a", &[b"old"]).unwrap();
    writer.put("b", &[b"kept"]).unwrap();
    writer.put("c", &[b"removed"]).unwrap();
    writer.commit().unwrap();
    let first = container::open(&path).unwrap();
    writer.put("a", &[b"new"]).unwrap();
    writer.remove("c").unwrap();
    let still = container::open(&path).unwrap();
    assert_eq!(whole(&*still, "a").unwrap(), b"old");
    writer.commit().unwrap();
    let second = writer.reader().unwrap();
    assert_eq!(whole(&*second, "a").unwrap(), b"new");
    assert_eq!(second.keys().unwrap(), ["a", "b"]);
    assert_eq!(whole(&*first, "b").unwrap(), b"kept");
    assert_eq!(second.usage().unwrap().commit, 2);
    drop(writer);

    let mut writer = container::append(&path, Durability::None).unwrap();
    writer.put("d", &[b"third"]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let third = container::open(&path).unwrap();
    assert_eq!(third.keys().unwrap(), ["a", "b", "d"]);
    assert_eq!(third.usage().unwrap().commit, 3);
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod zip { $(#[test] fn $name() { super::$name(false) })* }
        mod directory { $(#[test] fn $name() { super::$name(true) })* }
    };
}

suite!(what_was_put_is_read, commits_replace_and_remove);
