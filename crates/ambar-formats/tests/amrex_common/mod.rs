//! Helpers of the tests of the AMReX reader: sample plotfiles, and an independent writer.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambar::DataType;
use ambar::kinds::amr::patches::PatchSource;

/// The folder of a sample plotfile: beside the repository, or in `$AMBAR_TEST_DATA`. Prints a message if it does not
/// exist.
pub fn sample(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("AMBAR_TEST_DATA").map(PathBuf::from);
    let places = [
        Some(root.join("../shared/data/amrex")),
        given.clone(),
        given.map(|given| given.join("amrex")),
    ];
    let mut paths = places.into_iter().flatten().map(|place| place.join(name));
    let found = paths.find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: no sample {name} in ../shared/data/amrex or $AMBAR_TEST_DATA");
    }
    found
}

/// The values of a field on a box, as float64.
pub fn read(source: &dyn PatchSource, level: usize, index: usize, field: &str) -> Vec<f64> {
    let cells = source.hierarchy().levels[level].boxes[index].cells();
    let dtype = source.dtype(field).unwrap();
    let mut bytes = vec![0; cells * dtype.size().unwrap()];
    source.read_box(level, index, field, &mut bytes).unwrap();
    match dtype {
        DataType::Float32 => {
            let each = bytes.as_chunks().0.iter().copied();
            each.map(|b| f64::from(f32::from_ne_bytes(b))).collect()
        }
        _ => {
            let each = bytes.as_chunks().0.iter().copied();
            each.map(f64::from_ne_bytes).collect()
        }
    }
}

/// All files below a folder: their paths in it, and their bytes.
pub fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                files.insert(name.to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}
