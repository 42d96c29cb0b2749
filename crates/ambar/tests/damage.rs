//! Damaged, truncated and forged stores: an error, or the written values; never other values, never a crash.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
#![allow(clippy::print_stderr)] // the counts of a campaign

mod cases;
mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ambar::array::{ArrayData, ArraySpec, Slice, Strings};
use ambar::codec::Profile;
use ambar::container::CreateOptions;
use ambar::kinds::source::ColumnSource;
use ambar::kinds::stored::StoredColumns;
use ambar::metadata::Attributes;
use ambar::store::{NodeKind, Store, StoreWriter};
use ambar::{DataType, ErrorKind, Result};
use serde_json::{Value, json};

use common::{PROFILES, Random, random_values, scratch_options};

/// A small store with all codec pipelines of the profiles, chunked and sharded, and a table.
fn write_store(path: &Path, directory: bool, profile: Profile) {
    let options = CreateOptions {
        directory,
        ..scratch_options()
    };
    let mut writer = StoreWriter::create(path, &options).unwrap();
    let smooth: Vec<f64> = (0..150).map(|i| f64::from(i) * 0.37).collect();
    let smooth: &[u8] = bytemuck::cast_slice(&smooth);
    let steps: Vec<u8> = (0..150).map(|i| i / 40).collect();
    let noise = random_values(&DataType::Float32, 6 * 5);
    let texts: Strings = (0..20).map(|i| "příliš".repeat(i % 3)).collect();
    let float = ArraySpec::new(DataType::Float64, &[150]).profile(profile);
    let byte = ArraySpec::new(DataType::UInt8, &[150]).profile(profile);
    let plane = ArraySpec::new(DataType::Float32, &[6, 5])
        .profile(profile)
        .chunks(&[4, 2]);
    let text = ArraySpec::new(DataType::String, &[20])
        .profile(profile)
        .chunks(&[8]);
    let range = ArraySpec::new(DataType::Float64, &[1, 3, 2]);
    let ranges: [f64; 6] = [0.0, 18.0, 18.5, 36.0, 37.0, 55.5];
    let mut attributes = Attributes::new();
    attributes.insert(
        "ambar".into(),
        json!({"version": 1, "kind": "table", "columns": ["x"]}),
    );
    writer.group("t", attributes).unwrap();
    writer
        .write_array(
            "t/x",
            &float.clone().chunks(&[64]),
            ArrayData::Fixed(smooth),
        )
        .unwrap();
    let range_values = ArrayData::Fixed(bytemuck::cast_slice(&ranges));
    writer
        .write_array("t/index/range", &range, range_values)
        .unwrap();
    writer
        .write_array("one", &float, ArrayData::Fixed(smooth))
        .unwrap();
    writer
        .write_array("level", &byte, ArrayData::Fixed(&steps))
        .unwrap();
    writer
        .write_array("plane", &plane, ArrayData::Fixed(&noise))
        .unwrap();
    writer
        .write_array("text", &text, ArrayData::Strings(&texts))
        .unwrap();
    writer.commit().unwrap();
}

/// Reads all of a store, with all functions that read.
fn read_everything(path: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let store = Store::open(path)?;
    let mut all = Vec::new();
    all.push((
        "/".to_owned(),
        Value::Object(store.group("/")?.attributes().clone())
            .to_string()
            .into(),
    ));
    for (node, kind) in store.nodes()? {
        if kind == NodeKind::Group {
            let attributes = store.group(&node)?.attributes().clone();
            all.push((node, Value::Object(attributes).to_string().into_bytes()));
            continue;
        }
        let array = store.array(&node)?;
        let selection: Vec<Slice> = array.shape().iter().copied().map(Slice::all).collect();
        let Some(size) = array.dtype().size() else {
            all.push((node, array.read_strings(&selection)?.bytes));
            continue;
        };
        let mut out = vec![0; array.elements() as usize * size];
        array.read(&selection, &mut out)?;
        let mut rows = vec![0; out.len()];
        array.read_rows(0..array.shape()[0], &mut rows)?;
        assert!(out == rows);
        let part: Vec<Slice> = array
            .shape()
            .iter()
            .map(|n| Slice {
                start: n / 3,
                stop: *n,
                step: 2,
            })
            .collect();
        let mut some = vec![0; part.iter().map(Slice::len).product::<u64>() as usize * size];
        array.read(&part, &mut some)?;
        all.push((node.clone(), out));
        all.push((node, some));
    }
    let columns = StoredColumns::open(&store, "t", &["x".to_owned()])?;
    let mut out = vec![0; 8 * 10];
    columns.read("x", 60..70, &mut out)?;
    all.push(("column".to_owned(), out));
    all.push((
        "ranges".to_owned(),
        format!("{:?}", columns.ranges("x")?).into_bytes(),
    ));
    Ok(all)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                files.push(path)
            }
        }
    }
    files.sort();
    files
}

/// The flipped bits of each byte; in debug builds, all of them would take minutes.
const BITS: usize = if cfg!(debug_assertions) { 1 } else { 8 };

/// Flips `bits` bits of each byte of a file in turn, and reads the store. Returns the number of detected flips.
fn flip_bits(store: &Path, file: &Path, expected: &[(String, Vec<u8>)], bits: usize) -> (u64, u64) {
    let content = fs::read(file).unwrap();
    let handle = fs::File::options().write(true).open(file).unwrap();
    let (mut flips, mut found) = (0, 0);
    for (at, byte) in content.iter().enumerate() {
        for bit in (0..8).cycle().skip(at % 8).take(bits) {
            handle.write_all_at(&[byte ^ 1 << bit], at as u64).unwrap();
            flips += 1;
            match read_everything(store) {
                Ok(values) => {
                    assert!(
                        values == expected,
                        "{}: bit {bit} of byte {at}",
                        file.display()
                    );
                }
                Err(_) => found += 1,
            }
        }
        handle.write_all_at(&[*byte], at as u64).unwrap();
    }
    (flips, found)
}

#[test]
fn every_flipped_bit_of_a_file_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    for profile in PROFILES {
        let path = folder.path().join(format!("{profile:?}.ambar"));
        write_store(&path, false, profile);
        let expected = read_everything(&path).unwrap();
        let bits = if profile == Profile::Balanced {
            BITS
        } else {
            1
        };
        let (flips, found) = flip_bits(&path, &path, &expected, bits);
        assert!(
            flips > 2_000 && found > flips / 3,
            "{found} of {flips} were found"
        );
        assert!(read_everything(&path).unwrap() == expected);
    }
}

#[test]
fn every_flipped_bit_of_a_directory_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    write_store(&path, true, Profile::Balanced);
    let expected = read_everything(&path).unwrap();
    for file in files_below(&path) {
        flip_bits(&path, &file, &expected, 1);
    }
    // A copy by another program, without the records of the container.
    fs::remove_dir_all(path.join(".ambar")).unwrap();
    assert!(read_everything(&path).unwrap() == expected);
    for file in files_below(&path) {
        if !file.ends_with("zarr.json") {
            let (flips, found) = flip_bits(&path, &file, &expected, 1);
            // The tags of the chunks of a shard are used only with the seal in the list.
            let unused = flips - found;
            assert!(unused % 4 == 0 && unused <= 4 * 6, "{}", file.display());
        }
    }
    let root = path.join("zarr.json");
    let text = fs::read_to_string(&root).unwrap();
    let handle = fs::File::options().write(true).open(&root).unwrap();
    let mut random = Random::new(3);
    for at in 0..text.len() {
        let byte = text.as_bytes()[at];
        handle
            .write_all_at(&[byte ^ 1 << random.below(8)], at as u64)
            .unwrap();
        assert!(read_everything(&path).is_err(), "byte {at} of zarr.json");
        handle.write_all_at(&[byte], at as u64).unwrap();
    }
}

/// Damages `bytes` as failing disks and copies do.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let len = bytes.len() as u64;
    match random.below(if len > 0 { 8 } else { 1 }) {
        0 => bytes.extend((0..=random.below(400)).map(|_| random.next() as u8)),
        1 => bytes.truncate(random.below(len) as usize),
        2..=4 => {
            for _ in 0..[1, 1, 2, 8][random.below(4) as usize] {
                let bit = random.below(8 * len);
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
            }
        }
        _ => {
            // A block is filled with zeros, has the content of another one, is lost, or is there twice.
            let size = [64, 512, 4096][random.below(3) as usize];
            let mut block = || {
                let start = (random.below(len) as usize) / size * size;
                start..(start + size).min(len as usize)
            };
            let (one, other) = (block(), block());
            let copy = bytes[other.clone()].to_vec();
            match random.below(4) {
                0 => bytes[one].fill(0),
                1 => {
                    let size = one.len().min(copy.len());
                    bytes[one.start..][..size].copy_from_slice(&copy[..size]);
                }
                2 => drop(bytes.drain(one)),
                _ => drop(bytes.splice(one.start..one.start, copy)),
            }
        }
    }
}

#[test]
fn random_damage_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let stores: Vec<PathBuf> = PROFILES
        .iter()
        .flat_map(|profile| [(profile, false), (profile, true)])
        .map(|(profile, directory)| {
            let path = folder.path().join(format!("{profile:?}-{directory}.ambar"));
            write_store(&path, directory, *profile);
            path
        })
        .collect();
    let (mut found, mut lost) = (0, 0);
    let mut random = Random::new(cases::seed());
    let cases = cases::cases(6000);
    for (store, path) in stores.iter().enumerate() {
        let expected = read_everything(path).unwrap();
        let files = match path.is_dir() {
            true => files_below(path),
            false => vec![path.clone()],
        };
        let intact: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        for case in (store as u64..cases).step_by(stores.len()) {
            let victim = random.below(files.len() as u64) as usize;
            let mut bytes = intact[victim].clone();
            damage(&mut bytes, &mut random);
            if path.is_dir() && random.below(20) == 0 {
                fs::remove_file(&files[victim]).unwrap();
                lost += 1;
            } else {
                fs::write(&files[victim], &bytes).unwrap();
            }
            match read_everything(path) {
                Ok(values) => assert!(values == expected, "case {case} of {}", path.display()),
                Err(_) => found += 1,
            }
            fs::write(&files[victim], &intact[victim]).unwrap();
        }
    }
    eprintln!("{cases} damaged stores, {lost} of them without a file: {found} are errors");
    assert!(found > cases / 4, "{found} of {cases} were found");
}

#[test]
fn every_truncation_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.ambar");
    write_store(&path, false, Profile::Balanced);
    let file = fs::File::options().write(true).open(&path).unwrap();
    for len in (0..file.metadata().unwrap().len()).rev() {
        file.set_len(len).unwrap();
        assert!(read_everything(&path).is_err(), "cut to {len} bytes");
    }
}

#[test]
fn a_lost_file_of_a_directory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    write_store(&path, true, Profile::Balanced);
    fs::remove_dir_all(path.join(".ambar")).unwrap();
    for file in files_below(&path) {
        let key = file
            .strip_prefix(&path)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if key.contains("/c/") {
            let content = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            let error = read_everything(&path).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(&key), "{error}");
            fs::write(&file, content).unwrap();
        }
    }
}

#[test]
fn verify_names_damaged_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.ambar");
    write_store(&path, false, Profile::Balanced);
    let sound = fs::read(&path).unwrap();
    let store = Store::open(&path).unwrap();
    let calls = std::sync::atomic::AtomicU64::new(0);
    let report = store
        .verify(&|done, total| {
            calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            done <= total
        })
        .unwrap();
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(report.chunks, 3 + 1 + 1 + 1 + 6 + 3);
    assert!(report.bytes > 1000 && calls.into_inner() > report.entries);
    assert!(store.verify(&|_, _| false).is_err());
    // A byte in the middle of the first chunk of t/x.
    let key = sound.windows(7).position(|w| w == b"t/x/c/0").unwrap();
    let handle = fs::File::options().write(true).open(&path).unwrap();
    let at = key + 7 + 100;
    handle.write_all_at(&[sound[at] ^ 1], at as u64).unwrap();
    let damage = store.verify(&|_, _| true).unwrap().damage;
    assert!(
        damage.len() == 2 && damage.iter().all(|text| text.contains("t/x")),
        "{damage:?}"
    );
}
