//! Ranges of chunks: they are disjoint, and all other bytes of the entries are indices of shards.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use crc_fast::crc32_iscsi as crc32c;
use std::collections::BTreeSet;

use ambar::DataType;
use ambar::array::{ArrayData, ArraySpec, ChunkRange, Region};
use ambar::container::{CreateOptions, Durability};
use ambar::store::{Store, StoreWriter};

/// Writes a cube in shards, a value, an array without values, and one with a single chunk written.
fn store(path: &std::path::Path, directory: bool) -> Store {
    let options = CreateOptions {
        durability: Durability::None,
        directory,
        ..CreateOptions::default()
    };
    let mut writer = StoreWriter::create(path, &options).unwrap();
    let cube = ArraySpec::new(DataType::UInt8, &[20, 30])
        .chunks(&[3, 4])
        .shards(&[6, 8]);
    let data: Vec<u8> = (0..600u32).map(|value| value as u8).collect();
    let mut put = |name: &str, spec: &ArraySpec, data: &[u8]| {
        writer
            .write_array(name, spec, ArrayData::Fixed(data))
            .unwrap();
    };
    put("/g/cube", &cube, &data);
    put("/value", &ArraySpec::new(DataType::UInt8, &[]), &[7]);
    put("/none", &ArraySpec::new(DataType::UInt8, &[0, 4]), &[]);
    writer.declare("/sparse", &cube).unwrap();
    let region = Region {
        start: vec![3, 4],
        shape: vec![3, 4],
    };
    writer
        .write_region("/sparse", &region, ArrayData::Fixed(&[1; 12]))
        .unwrap();
    writer.commit().unwrap();
    Store::open(path).unwrap()
}

fn ranges(store: &Store, name: &str) -> Vec<ChunkRange> {
    store.array(name).unwrap().chunk_ranges().unwrap()
}

#[test]
fn ranges_of_chunks_are_disjoint() {
    for directory in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let store = store(&path, directory);
        let cube = store.array("/g/cube").unwrap();
        let found = ranges(&store, "/g/cube");
        let chunks: BTreeSet<_> = found.iter().map(|range| range.chunk.clone()).collect();
        assert_eq!(chunks.len() as u64, cube.chunk_count());
        assert_eq!(chunks.last().unwrap(), &[6, 7]);

        let mut places: Vec<_> = found
            .iter()
            .map(|range| (range.file.clone(), range.offset, range.len))
            .collect();
        places.sort_unstable();
        for pair in places.windows(2) {
            let ends = pair[0].1 + pair[0].2;
            assert!(pair[0].0 != pair[1].0 || ends <= pair[1].1, "{pair:?}");
        }
        // Of 16 shards: 4 extents of 16 bytes, 4 tags of 4 bytes, and a checksum.
        let encoded: u64 = found.iter().map(|range| range.len).sum();
        assert_eq!(
            encoded + 16 * (4 * (16 + 4) + 4),
            cube.stored_bytes().unwrap()
        );

        for range in &found {
            let file = range
                .file
                .as_ref()
                .map_or(path.clone(), |file| path.join(file));
            assert_eq!(range.file.is_some(), directory);
            let bytes = std::fs::read(file).unwrap();
            let (start, end) = (range.offset as usize, (range.offset + range.len) as usize);
            let (chunk, sum) = bytes[start..end].split_at(range.len as usize - 4);
            assert_eq!(crc32c(chunk).to_le_bytes(), sum, "{range:?}");
        }
    }
}

#[test]
fn unwritten_chunks_have_no_range() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder.path().join("x.ambar"), false);
    assert_eq!(ranges(&store, "/value").len(), 1);
    assert_eq!(ranges(&store, "/none"), []);
    let sparse = ranges(&store, "/sparse");
    assert_eq!(sparse.len(), 1);
    assert_eq!(sparse[0].chunk, [1, 1]);
}
