//! Helpers of the tests of containers.

#![allow(dead_code, clippy::unwrap_used)] // each test program uses a part of it

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ambar::Limits;
use ambar::container::{self, Container, ContainerWriter, CreateOptions, Durability};

/// The kind of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Zip,
    Directory,
}

/// The content of a container.
pub type Content = BTreeMap<String, Vec<u8>>;

/// A new folder, and the path of a store in it that does not exist yet.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    (folder, path)
}

pub fn options(form: Form) -> CreateOptions {
    CreateOptions {
        // Most tests do not simulate the loss of power.
        durability: Durability::None,
        overwrite: false,
        directory: form == Form::Directory,
        ..CreateOptions::default()
    }
}

pub fn create(path: &Path, form: Form) -> Box<dyn ContainerWriter> {
    container::create(path, &options(form)).unwrap()
}

pub fn append(path: &Path) -> Box<dyn ContainerWriter> {
    container::append(path, Durability::None, &Limits::default()).unwrap()
}

/// Writes entries and commits.
pub fn commit(writer: &mut dyn ContainerWriter, entries: &[(&str, &[u8])]) {
    for (key, bytes) in entries {
        writer.put(key, &[bytes]).unwrap();
    }
    writer.commit().unwrap();
}

pub fn whole(container: &dyn Container, key: &str) -> Option<Vec<u8>> {
    container.read_whole(key, 1 << 30).unwrap()
}

/// The content of a container, or the first error.
pub fn try_content(path: &Path) -> ambar::Result<Content> {
    let container = container::open(path)?;
    let keys = container.keys()?;
    keys.into_iter()
        .map(|key| {
            let bytes = container.read_whole(&key, 1 << 30)?;
            Ok((key, bytes.unwrap()))
        })
        .collect()
}

pub fn content(path: &Path) -> Content {
    try_content(path).unwrap()
}

/// Verifies all entries and records.
pub fn try_verify(path: &Path) -> ambar::Result<()> {
    let container = container::open(path)?;
    container.verify_records()?;
    for key in container.keys()? {
        container.verify(&key, &mut |_| {})?;
    }
    Ok(())
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let items = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = items
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A small store of three commits, in which entries were replaced and removed.
pub fn three_commits(path: &Path, form: Form) {
    let mut writer = create(path, form);
    commit(
        &mut *writer,
        &[
            ("zarr.json", b"{\"a\": 1}"),
            ("a/c/0", b"first"),
            ("b", b""),
        ],
    );
    commit(
        &mut *writer,
        &[("zarr.json", b"{\"a\": 2}"), ("a/c/0", b"second")],
    );
    writer.remove("b").unwrap();
    commit(
        &mut *writer,
        &[("zarr.json", b"{\"a\": 3}"), ("c", b"third")],
    );
}

/// The offsets of the two slots (docs/format.md, 1.2).
pub const SLOTS: [u64; 2] = [512, 1024];

/// Overwrites bytes of a file at an offset.
pub fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

/// Reproducible pseudorandom numbers (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
