//! Arrays with an error bound, which holds for all values of a store.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::sync::Arc;

use ambar::array::{ArrayData, ArraySpec, Slice};
use ambar::codec::Profile;
use ambar::container::CreateOptions;
use ambar::dtype::DataType;
use ambar::store::{Store, StoreWriter};

/// Writes an array and reads all of it.
fn round_trip(spec: &ArraySpec, values: &[f64]) -> (Vec<f64>, Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let data = ArrayData::Fixed(bytemuck::cast_slice(values));
    writer.write_array("x", spec, data).unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    let array = store.array("x").unwrap();
    let mut out = vec![0.0; values.len()];
    let whole: Vec<Slice> = array.shape().iter().map(|n| Slice::all(*n)).collect();
    array
        .read(&whole, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    (out, store, folder)
}

/// The value of a smooth field in a cell.
fn field(z: i64, y: i64, x: i64) -> f64 {
    let (z, y, x) = (z as f64 * 0.11, y as f64 * 0.07, x as f64 * 0.05);
    1e3 + 40.0 * (z.sin() * y.cos() + (x + 0.3 * z).sin())
}

fn within(values: &[f64], decoded: &[f64], bound: f64) -> bool {
    let pairs = values.iter().zip(decoded);
    pairs
        .into_iter()
        .all(|(a, b)| (a - b).abs() <= bound || a.to_bits() == b.to_bits())
}

#[test]
fn the_bound_of_an_array_holds_in_parts_of_it() {
    let mut values: Vec<f64> = (0..40 * 50 * 60)
        .map(|i| field(i / 3000, i / 60 % 50, i % 60))
        .collect();
    values[17] = f64::NAN;
    values[50_000] = f64::INFINITY;
    let spec = ArraySpec::new(DataType::Float64, &[40, 50, 60])
        .chunks(&[16, 32, 32])
        .error_bound(Some(0.01));
    let (decoded, store, _folder) = round_trip(&spec, &values);
    assert!(within(&values, &decoded, 0.01));
    assert!(decoded != values, "a bound this wide changes values");
    let array = store.array("x").unwrap();
    assert_eq!(array.codecs(), "ambar 0.01, crc32c");
    assert!(array.stored_bytes().unwrap() * 8 < values.len() as u64 * 8);
    let part = [(10..30).into(), (7..8).into(), (0..60).into()];
    let mut out = vec![0.0; 20 * 60];
    array
        .read(&part, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    let expected: Vec<f64> = (10..30)
        .flat_map(|z| decoded[(z * 50 + 7) * 60..][..60].to_vec())
        .collect();
    assert_eq!(out, expected);
}

#[test]
fn unit_blocks_that_touch_are_predicted_together() {
    // 5 x 4 x 6 blocks of 8^3, a few left out, not a multiple of the chunk's 32.
    let mut origins: Vec<[i64; 3]> = (0..120i64)
        .map(|i| [(i / 24 - 2) * 8, (i / 6 % 4) * 8, (i % 6 - 1) * 8])
        .filter(|origin| *origin != [0, 8, 16] && *origin != [-16, 0, -8])
        .collect();
    origins.sort_by_key(|origin| {
        let place = origin.map(|x| (x / 8 + 1024) as u64);
        (0..16).fold(0u64, |key, bit| {
            let at = |d: usize| place[d] >> bit & 1;
            key | (at(2) | at(1) << 1 | at(0) << 2) << (3 * bit)
        })
    });
    let values: Vec<f64> = origins
        .iter()
        .flat_map(|o| (0..512).map(move |i| field(o[0] + i / 64, o[1] + i / 8 % 8, o[2] + i % 8)))
        .collect();
    let shape = [origins.len() as u64, 8, 8, 8];
    let plain = ArraySpec::new(DataType::Float64, &shape)
        .chunks(&[32, 8, 8, 8])
        .error_bound(Some(1e-3));
    let placed = plain.clone().blocks(Arc::from(origins));
    let (decoded, store, _folder) = round_trip(&placed, &values);
    assert!(within(&values, &decoded, 1e-3));
    let (_, alone, _folder) = round_trip(&plain, &values);
    let bytes = |store: &Store| store.array("x").unwrap().stored_bytes().unwrap();
    assert!(
        bytes(&store) * 4 < bytes(&alone) * 3,
        "{} {}",
        bytes(&store),
        bytes(&alone)
    );
    let small = placed.error_bound(None::<f64>).profile(Profile::Small);
    let (decoded, _, _folder) = round_trip(&small, &values);
    assert_eq!(decoded, values);
}

#[test]
fn bounds_of_other_types_than_floats_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let spec = ArraySpec::new(DataType::Int32, &[4]).error_bound(Some(0.5));
    let values = [1i32, 2, 3, 4];
    let error = writer
        .write_array("x", &spec, ArrayData::Fixed(bytemuck::cast_slice(&values)))
        .unwrap_err();
    assert!(error.to_string().contains("float32 and float64"), "{error}");
}
