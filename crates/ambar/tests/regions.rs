//! Arrays that are written in regions, or grow row by row, equal arrays in memory.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use ambar::array::{ArrayData, ArraySpec, Indices, Region, Slice, Strings};
use ambar::container::{CreateOptions, Durability};
use ambar::store::{Store, StoreWriter};
use ambar::{DataType, ErrorKind};
use common::scratch_options;

/// Reproducible pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A 3-D array in memory.
struct Model {
    shape: [u64; 3],
    values: Vec<f64>,
}

impl Model {
    fn set(&mut self, region: &Region, values: &[f64]) {
        let mut next = values.iter();
        for z in 0..region.shape[0] {
            for y in 0..region.shape[1] {
                for x in 0..region.shape[2] {
                    let [z, y, x] = [
                        region.start[0] + z,
                        region.start[1] + y,
                        region.start[2] + x,
                    ];
                    let place = (z * self.shape[1] + y) * self.shape[2] + x;
                    self.values[place as usize] = *next.next().unwrap();
                }
            }
        }
    }
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

fn read(path: &std::path::Path, node: &str) -> Vec<f64> {
    let array = Store::open(path).unwrap().array(node).unwrap();
    let all: Vec<Slice> = array.shape().iter().copied().map(Slice::all).collect();
    let mut out = vec![0; array.elements() as usize * 8];
    array.read(&all, &mut out).unwrap();
    let words = out.chunks_exact(8);
    words
        .map(|word| f64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn regions_of_any_place_and_size_are_merged() {
    for directory in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let options = CreateOptions {
            directory,
            ..scratch_options()
        };
        let shape = [11, 9, 14];
        let mut model = Model {
            shape,
            values: vec![-1.0; 11 * 9 * 14],
        };
        let mut spec = ArraySpec::new(DataType::Float64, &shape).chunks(&[3, 4, 5]);
        spec.shard_shape = Some(vec![6, 4, 10]);
        spec.fill_value = Some((-1f64).to_ne_bytes().to_vec());
        let mut writer = StoreWriter::create(&path, &options).unwrap();
        writer.declare("/g/a", &spec).unwrap();
        writer.commit().unwrap();
        assert_eq!(read(&path, "/g/a"), model.values);
        let mut numbers = Numbers(7);
        for round in 0..60 {
            let start: Vec<u64> = shape.iter().map(|n| numbers.below(*n)).collect();
            let lengths = shape.iter().zip(&start);
            let lengths = lengths
                .map(|(n, first)| numbers.below(n - first + 1))
                .collect();
            let region = Region {
                start,
                shape: lengths,
            };
            let count = region.shape.iter().product::<u64>();
            let values: Vec<f64> = (0..count).map(|_| numbers.below(1000) as f64).collect();
            model.set(&region, &values);
            let data = bytes(&values);
            writer
                .write_region("g/a", &region, ArrayData::Fixed(&data))
                .unwrap();
            match round % 10 {
                3 => writer.commit().unwrap(),
                7 => {
                    writer.commit().unwrap();
                    drop(writer);
                    writer = StoreWriter::append(&path, Durability::None).unwrap();
                    assert_eq!(read(&path, "/g/a"), model.values);
                }
                _ => {}
            }
        }
        writer.commit().unwrap();
        assert_eq!(read(&path, "/g/a"), model.values);
        let report = Store::open(&path).unwrap().verify(&|_, _| true).unwrap();
        assert!(report.damage.is_empty());
    }
}

#[test]
fn arrays_grow_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[0, 6])
        .chunks(&[4, 3])
        .shards(&[8, 6]);
    writer.declare("/rows", &spec).unwrap();
    let names = ArraySpec::new(DataType::String, &[0])
        .chunks(&[5])
        .shards(&[10]);
    writer.declare("/names", &names).unwrap();
    let (mut all, mut texts) = (Vec::new(), Vec::new());
    let mut numbers = Numbers(3);
    for round in 0..30 {
        let rows = numbers.below(7);
        let values: Vec<f64> = (0..rows * 6).map(|n| (n + 100 * round) as f64).collect();
        let data = bytes(&values);
        let cut = numbers.below(rows + 1) as usize * 48;
        let pieces = [&data[..cut], &data[cut..]];
        writer
            .append_rows("/rows", rows, ArrayData::Pieces(&pieces))
            .unwrap();
        let new: Vec<String> = (0..rows).map(|n| format!("číslo {round} {n}")).collect();
        let strings: Strings = new.iter().collect();
        writer
            .append_rows("/names", rows, ArrayData::Strings(&strings))
            .unwrap();
        all.extend(values);
        texts.extend(new);
        if round % 4 == 1 {
            writer.commit().unwrap();
        }
        if round % 8 == 3 {
            drop(writer);
            writer = StoreWriter::append(&path, Durability::None).unwrap();
            // Only uncommitted values are lost.
            let store = Store::open(&path).unwrap();
            let kept = store.array("/rows").unwrap().shape()[0] as usize;
            all.truncate(kept * 6);
            texts.truncate(kept);
        }
    }
    writer.commit().unwrap();
    assert_eq!(read(&path, "/rows"), all);
    let store = Store::open(&path).unwrap();
    let found = store.array("/names").unwrap();
    let found = found
        .read_strings(&[Slice::all(texts.len() as u64)])
        .unwrap();
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(found.get(index).unwrap(), text.as_bytes());
    }
}

#[test]
fn the_error_bound_holds_however_often_a_chunk_is_merged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let bound = 0.01;
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[0])
        .chunks(&[512])
        .shards(&[2048]);
    writer
        .declare("/x", &spec.error_bound(Some(bound)))
        .unwrap();
    let mut all = Vec::new();
    for round in 0..40u32 {
        let values: Vec<f64> = (0..37)
            .map(|n| (f64::from(n + 37 * round) * 0.02).sin())
            .collect();
        let data = bytes(&values);
        writer
            .append_rows("/x", 37, ArrayData::Fixed(&data))
            .unwrap();
        all.extend(values);
    }
    writer.commit().unwrap();
    let found = read(&path, "/x");
    assert_eq!(found.len(), all.len());
    for (found, value) in found.iter().zip(&all) {
        assert!((found - value).abs() <= bound);
    }
}

#[test]
fn chunks_that_a_commit_stored_keep_their_codecs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[4]);
    writer.declare("/x", &spec).unwrap();
    writer.commit().unwrap();
    let data = bytes(&[1.0, 2.0]);
    writer
        .append_rows("/x", 2, ArrayData::Fixed(&data))
        .unwrap();
    writer.commit().unwrap();
    assert_eq!(read(&path, "/x"), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn invalid_regions_are_refused_and_no_values_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[4, 2]);
    writer.declare("/a", &spec).unwrap();
    writer
        .declare("/one", &ArraySpec::new(DataType::Float64, &[]))
        .unwrap();
    let data = bytes(&[1.0, 2.0]);
    let region = |start: [u64; 2]| Region {
        start: start.to_vec(),
        shape: vec![1, 2],
    };
    let mut refused = |path: &str, region: Region, data: &[u8]| {
        let error = writer.write_region(path, &region, ArrayData::Fixed(data));
        error.unwrap_err().kind()
    };
    assert_eq!(refused("/a", region([4, 0]), &data), ErrorKind::Invalid);
    assert_eq!(refused("/a", region([0, 1]), &data), ErrorKind::Invalid);
    assert_eq!(
        refused("/a", region([u64::MAX, 0]), &data),
        ErrorKind::Invalid
    );
    assert_eq!(
        refused("/a", region([0, 0]), &data[..8]),
        ErrorKind::Invalid
    );
    assert_eq!(refused("/b", region([0, 0]), &data), ErrorKind::NotFound);
    let pieces = [&data[..8], &data[8..]];
    let error = writer.append_rows("/a", 1, ArrayData::Pieces(&pieces));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    let error = writer.append_rows("/one", 1, ArrayData::Fixed(&data));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    let mut shards = spec.clone().chunks(&[2, 2]);
    shards.shard_shape = Some(vec![3, 2]);
    let error = writer.declare("/c", &shards).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    writer.commit().unwrap();
    assert_eq!(read(&path, "/a"), [0.0; 8]);
    assert_eq!(read(&path, "/one"), [0.0]);
}

#[test]
fn lists_of_indices_are_read_in_the_given_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let values: Vec<f64> = (0..30 * 20).map(f64::from).collect();
    let spec = ArraySpec::new(DataType::Float64, &[30, 20]).chunks(&[4, 7]);
    writer
        .write_array("/a", &spec, ArrayData::Fixed(&bytes(&values)))
        .unwrap();
    let texts: Strings = (0..30).map(|n| format!("{n}")).collect();
    let names = ArraySpec::new(DataType::String, &[30]).chunks(&[4]);
    writer
        .write_array("/names", &names, ArrayData::Strings(&texts))
        .unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    let (array, names) = (store.array("/a").unwrap(), store.array("/names").unwrap());
    let mut numbers = Numbers(11);
    for round in 0..200 {
        let count = numbers.below(12);
        let rows: Vec<u64> = match round % 3 {
            0 => (0..count).map(|_| numbers.below(30)).collect(),
            1 => (0..count).map(|n| 2 * n).collect(),
            _ => (0..count).rev().collect(),
        };
        let columns = Slice {
            start: numbers.below(5),
            stop: 20,
            step: 1 + numbers.below(4),
        };
        let wanted: Vec<f64> = rows
            .iter()
            .flat_map(|row| {
                let columns = (columns.start..columns.stop).step_by(columns.step as usize);
                columns.map(move |column| (row * 20 + column) as f64)
            })
            .collect();
        let mut out = vec![0; wanted.len() * 8];
        let selection = [Indices::List(&rows), columns.into()];
        array.read_indices(&selection, &mut out).unwrap();
        assert_eq!(out, bytes(&wanted));
        let found = names.read_string_indices(&selection[..1]).unwrap();
        assert_eq!(found.len(), rows.len());
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(found.get(index).unwrap(), row.to_string().as_bytes());
        }
    }
    let error = array.read_indices(
        &[Indices::List(&[30]), Slice::all(20).into()],
        &mut [0; 160],
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
}
