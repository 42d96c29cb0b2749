//! `transpose` and `numcodecs.delta`, compared value by value with their definitions.

use proptest::prelude::*;
use serde_json::{Value, json};
use zarrs_metadata::v3::MetadataV3;

use super::scratch::CodecScratch;
use super::{ChunkGeometry, CodecChain};
use crate::dtype::DataType;
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;

fn transpose(order: &[usize]) -> Value {
    json!({"name": "transpose", "configuration": {"order": order}})
}

fn delta(dtype: &DataType) -> Value {
    let name = super::array_to_array::numpy_name(dtype);
    json!({"name": "numcodecs.delta", "configuration": {"dtype": name, "astype": name}})
}

fn chain(codecs: Value, dtype: &DataType, dimensions: usize) -> Result<CodecChain> {
    let codecs: Vec<MetadataV3> = serde_json::from_value(codecs).unwrap();
    CodecChain::from_metadata(&codecs, dtype, dimensions)
}

/// `values` of `shape` in C order of the dimensions `order`: the definition, index by index.
fn transposed(values: &[i128], shape: &[u64], order: &[usize]) -> (Vec<i128>, Vec<u64>) {
    let lengths: Vec<u64> = order.iter().map(|d| shape[*d]).collect();
    let count = values.len() as u64;
    let value = |number: u64| {
        let mut position = vec![0; shape.len()];
        let mut rest = number;
        for d in (0..order.len()).rev() {
            position[order[d]] = rest % lengths[d];
            rest /= lengths[d];
        }
        let linear = position
            .iter()
            .zip(shape)
            .fold(0, |linear, (i, n)| linear * n + i);
        values[linear as usize]
    };
    ((0..count).map(value).collect(), lengths)
}

/// Bytes of the lowest bits of `values`.
fn bytes(values: &[i128], size: usize) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes()[..size].to_vec())
        .collect()
}

const TYPES: [DataType; 9] = [
    DataType::Int8,
    DataType::UInt16,
    DataType::Int32,
    DataType::UInt32,
    DataType::Int64,
    DataType::UInt64,
    DataType::Float32,
    DataType::Complex128,
    DataType::FixedBytes { bytes: 5 },
];

/// A step of a chain: an order of dimensions, by its sort keys, or a delta.
fn steps() -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    proptest::collection::vec(
        proptest::option::of(proptest::collection::vec(any::<u8>(), 5)),
        0..4,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn chunks_match_the_definitions_of_the_codecs(
        shape in proptest::collection::vec(0u64..10, 0..5),
        steps in steps(),
        long in proptest::option::of(1u64..200),
        dtype in 0..TYPES.len(),
        seed: u64,
    ) {
        let dtype = &TYPES[dtype];
        let size = dtype.size().unwrap();
        let mut shape = shape;
        if let (Some(long), Some(first)) = (long, shape.first_mut()) {
            *first = long;
        }
        let count = shape.iter().product::<u64>();
        let mut state = seed;
        let values: Vec<i128> = (0..count).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Neighbours are far apart, so that differences wrap around.
            i128::from(state) | i128::from(state.rotate_left(17)) << 64
        }).collect();
        let raw = bytes(&values, size);
        let (mut expected, mut lengths) = (values, shape.clone());
        let mut codecs = Vec::new();
        for step in steps {
            if let Some(keys) = step {
                let mut order: Vec<usize> = (0..shape.len()).collect();
                order.sort_by_key(|d| keys[*d]);
                (expected, lengths) = transposed(&expected, &lengths, &order);
                codecs.push(transpose(&order));
            } else if super::array_to_array::supports_delta(dtype) {
                for i in (1..expected.len()).rev() {
                    expected[i] = expected[i].wrapping_sub(expected[i - 1]);
                }
                codecs.push(delta(dtype));
            }
        }
        codecs.push(json!({"name": "bytes", "configuration": {"endian": "little"}}));
        let chain = chain(json!(codecs), dtype, shape.len()).unwrap();
        let geometry = ChunkGeometry::array(&shape);
        let scratch = &mut CodecScratch::default();
        let encoded = chain.encode(dtype, &raw, &geometry, scratch).unwrap();
        prop_assert_eq!(&encoded, &bytes(&expected, size));
        let mut out = vec![0xa5; raw.len() + 1];
        chain.decode(dtype, &shape, &encoded, &mut out[1..], &Limits::default(), scratch).unwrap();
        prop_assert!(out[1..] == raw, "{shape:?} {}", chain.describe());
        prop_assert!(chain.decode(dtype, &shape, &encoded, &mut out, &Limits::default(), scratch).is_err());
    }
}

/// Arrays of meshes: corners of cells, and offsets that increase from cell to cell.
#[test]
fn columns_of_differences_round_trip() {
    for columns in 1..=40u64 {
        for dtype in &TYPES[1..6] {
            let shape = [333, columns];
            let value = |i: u64| i128::from(i / columns * 3 + i % columns * 1_000_003);
            let raw = bytes(
                &(0..333 * columns).map(value).collect::<Vec<_>>(),
                dtype.size().unwrap(),
            );
            let codecs = json!([transpose(&[1, 0]), delta(dtype), {"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"]);
            let chain = chain(codecs, dtype, 2).unwrap();
            assert_eq!(chain.describe(), "transpose, delta, big-endian, crc32c");
            assert!(!chain.is_plain(dtype) && chain.fixed_overhead().is_none());
            let scratch = &mut CodecScratch::default();
            let geometry = ChunkGeometry::array(&shape);
            let encoded = chain.encode(dtype, &raw, &geometry, scratch).unwrap();
            let mut out = vec![0; raw.len()];
            chain
                .decode(
                    dtype,
                    &shape,
                    &encoded,
                    &mut out,
                    &Limits::default(),
                    scratch,
                )
                .unwrap();
            assert!(out == raw, "{columns} columns of {dtype}");
        }
    }
}

#[test]
fn invalid_configurations_are_errors() {
    let delta = |names: Value| json!({"name": "numcodecs.delta", "configuration": names});
    for order in [
        json!([0]),
        json!([0, 0]),
        json!([0, 2]),
        json!([0, 1, 2]),
        json!([-1, 0]),
        json!("C"),
        json!([u64::MAX, 0]),
    ] {
        let transpose = json!({"name": "transpose", "configuration": {"order": order}});
        let error = chain(json!([transpose, "bytes"]), &DataType::UInt8, 2).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains("transpose"),
            "{error}"
        );
    }
    for names in [json!({}), json!({"dtype": 4}), json!({"astype": "|u1"})] {
        let error = chain(json!([delta(names), "bytes"]), &DataType::UInt8, 2).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains("delta"),
            "{error}"
        );
    }
    for names in [
        json!({"dtype": "<i8", "astype": "<i4"}),
        json!({"dtype": "<i4"}),
        json!({"dtype": "<u8"}),
        json!({"dtype": ">i8"}),
        json!({"dtype": "<f8"}),
    ] {
        let codecs =
            json!([delta(names), {"name": "bytes", "configuration": {"endian": "little"}}]);
        let error = chain(codecs, &DataType::Int64, 2).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unsupported && error.to_string().contains("\"<i8\""),
            "{error}"
        );
    }
    for names in [
        json!({"dtype": "i8"}),
        json!({"dtype": "int64", "astype": "<i8", "id": "delta"}),
    ] {
        let codecs =
            json!([delta(names), {"name": "bytes", "configuration": {"endian": "little"}}]);
        assert!(chain(codecs, &DataType::Int64, 2).is_ok());
    }
    for dtype in [DataType::Float64, DataType::Bool, DataType::String] {
        let error = chain(json!([delta(json!({"dtype": "<f8"})), "bytes"]), &dtype, 1).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unsupported && error.to_string().contains("delta"),
            "{error}"
        );
    }
    let error = chain(json!([transpose(&[0]), "vlen-utf8"]), &DataType::String, 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("transpose"));
    let none = chain(json!([transpose(&[0])]), &DataType::UInt8, 1).unwrap_err();
    assert!(
        none.kind() == ErrorKind::Corrupt && none.to_string().contains("no array-to-bytes codec"),
        "{none}"
    );
    let many = vec![transpose(&[0]); 1000];
    let error = chain(json!(many), &DataType::UInt8, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}
