//! Bit-packed streams: sizes, round trips and damaged streams.

use super::{distances, max_encoded_bytes};
use crate::entropy::bitio::Cursor;
use crate::stream::header::{Header, Mode};
use crate::stream::properties::Random;
use crate::{Element, EncoderParams, Error, Layout, Workspace, decode, encode, inspect, tune_fast};
use crc_fast::crc32_iscsi as crc32c;

fn bit_packed<T: Element>(values: &[T], shape: &[usize], bound: f64) -> Option<Vec<u8>> {
    let (layout, params) = (
        Layout::Array(shape),
        EncoderParams::default().with_bit_packing(),
    );
    let stream = encode(
        values,
        &layout,
        bound,
        Some(params),
        &mut Workspace::default(),
    )
    .unwrap();
    if !is_bit_packed(&stream) {
        return None;
    }
    assert!(stream.len() <= max_encoded_bytes(values.len() * T::SIZE));
    let mut back = vec![T::from_f64(7.0); values.len()];
    decode(&stream, &mut back, &mut Workspace::default()).unwrap();
    for (value, back) in values.iter().zip(&back) {
        let error = (value.to_f64() - back.to_f64()).abs();
        assert!(
            value.to_word() == back.to_word() || bound > 0.0 && error <= bound,
            "{value:?} came back as {back:?}"
        );
    }
    Some(stream)
}

fn is_bit_packed(stream: &[u8]) -> bool {
    Header::parse(&mut Cursor(stream)).unwrap().mode == Mode::BitPacked
}

fn bits_a_value<T: Element>(values: &[T], bound: f64) -> f64 {
    let stream = bit_packed(values, &[values.len()], bound).unwrap();
    8.0 * stream.len() as f64 / values.len() as f64
}

/// Random numbers of 53 bits in [0, 1).
fn units(count: usize) -> Vec<f64> {
    let mut random = Random(5);
    let scale = 1.0 / (1u64 << 53) as f64;
    (0..count)
        .map(|_| (random.next() >> 11) as f64 * scale)
        .collect()
}

fn wave(i: usize) -> f64 {
    let x = i as f64;
    0.6 * (x * 0.05).sin() + 0.3 * (x * 0.011).cos() + 0.1 * (x * 0.13).sin()
}

#[test]
fn values_take_the_bits_that_they_need() {
    let random = units(50_000);
    let bits = bits_a_value(&random, 0.0);
    assert!(bits < 53.3, "{bits} bits for 53 random ones");
    let bits = bits_a_value(&random, 1e-4);
    assert!(bits < 13.1, "{bits} bits for one of 5000 numbers");
    let smooth: Vec<f64> = (0..50_000).map(wave).collect();
    let bits = bits_a_value(&smooth, 1e-4);
    assert!(bits < 5.0, "{bits}");
    let bits = bits_a_value(&smooth, 0.0);
    assert!(bits < 48.0, "{bits}");
    let single: Vec<f32> = smooth.iter().map(|x| *x as f32).collect();
    let bits = bits_a_value(&single, 0.0);
    assert!(bits < 20.0, "{bits}");
    let bits = bits_a_value(&[2.5; 50_000], 0.0);
    assert!(bits < 0.2, "{bits} for values that are all the same");
    let integers: Vec<f64> = (0..50_000i64).map(|i| (i * i % 1000) as f64).collect();
    let bits = bits_a_value(&integers, 0.0);
    assert!(bits < 11.0, "{bits} for integers below 1000");
}

#[test]
fn fields_are_predicted_along_all_dimensions() {
    let shape = [30, 40, 50];
    let value = |i: usize| {
        let [z, y, x] = [i / 2000, i / 50 % 40, i % 50].map(|n| n as f64);
        (z * 0.09 + y * 0.05).sin() * (0.03 * x).cos() * 100.0 + z + y
    };
    let values: Vec<f64> = (0..60_000).map(value).collect();
    let along = bit_packed(&values, &shape, 1e-2).unwrap().len();
    let row = bit_packed(&values, &[60_000], 1e-2).unwrap().len();
    assert!(2 * along < row, "{along} in three dimensions, {row} in one");
}

#[test]
fn values_without_fixed_point_are_exceptions() {
    let mut values: Vec<f64> = (0..5000).map(wave).collect();
    let before = bits_a_value(&values, 0.0);
    for (at, zero) in (0..5000).step_by(63).zip([-0.0, 1e-310].iter().cycle()) {
        values[at] = *zero;
        values[at + 1] = 0.0;
    }
    assert!(bits_a_value(&values, 0.0) < 64.0 && before < 50.0);
    let odd = [f64::NAN, -0.0, f64::NEG_INFINITY, 1e-310, -f64::NAN];
    for (at, value) in (0..5000).step_by(201).zip(odd.iter().cycle()) {
        values[at] = *value;
    }
    values[4999] = f64::INFINITY;
    for bound in [0.0, 1e-4] {
        bit_packed(&values, &[5000], bound).unwrap();
    }
    // Blocks of exceptional values only.
    let all: Vec<f64> = odd.iter().cycle().take(3000).copied().collect();
    bit_packed(&all, &[3000], 0.0).unwrap();
    let denormals: Vec<f32> = (0..3000).map(|i| f32::from_bits(i * 77)).collect();
    bit_packed(&denormals, &[3000], 0.0).unwrap();
}

#[test]
fn values_too_large_for_the_bound_are_entropy_coded() {
    let values = units(5000);
    for bound in [1e-12, 1e-300, f64::from_bits(1), f64::MAX] {
        assert!(bit_packed(&values, &[5000], bound).is_none(), "{bound}");
        let layout = Layout::Array(&[5000]);
        let params = Some(EncoderParams::default().with_bit_packing());
        let workspace = &mut Workspace::default();
        let stream = encode(&values, &layout, bound, params, workspace).unwrap();
        assert!(!is_bit_packed(&stream));
    }
}

#[test]
fn entropy_coded_streams_are_chosen_if_much_smaller() {
    let smooth: Vec<f64> = (0..20_000).map(|i| wave(i / 50)).collect();
    let layout = Layout::Array(&[20_000]);
    let is_chosen = |values: &[f64], bound: f64| {
        let params = tune_fast(values, &layout, bound).unwrap();
        let workspace = &mut Workspace::default();
        is_bit_packed(&encode(values, &layout, bound, Some(params), workspace).unwrap())
    };
    assert!(!is_chosen(&smooth, 0.05));
    assert!(is_chosen(&units(20_000), 1e-4));
    assert!(is_chosen(&smooth, 0.0));
}

/// Repairs the checksum of a stream.
fn with_checksum(mut stream: Vec<u8>) -> Vec<u8> {
    if let Some((body, checksum)) = stream.split_last_chunk_mut::<4>() {
        *checksum = crc32c(body).to_le_bytes();
    }
    stream
}

/// A stream with a changed byte and a valid checksum decodes to values or returns an error.
#[test]
fn changed_bytes_give_errors_or_values() {
    let mut values: Vec<f64> = (0..1500).map(wave).collect();
    values[77] = f64::NAN;
    let mut errors = 0;
    for (bound, shape) in [(0.0, vec![1500]), (1e-3, vec![1500]), (1e-3, vec![30, 50])] {
        let stream = bit_packed(&values, &shape, bound).unwrap();
        let mut scratch = Workspace::default();
        for at in 0..stream.len() - 4 {
            for byte in [0, 1, 0x1f, 0x7f, 0x80, 0xff, stream[at] ^ 4] {
                let mut changed = stream.clone();
                changed[at] = byte;
                let decoded = decode(&with_checksum(changed), &mut [0.0f64; 1500], &mut scratch);
                errors += usize::from(decoded.is_err());
            }
            let cut = with_checksum(stream[..at + 4].to_vec());
            let decoded = decode(&cut, &mut [0.0f64; 1500], &mut scratch);
            assert!(decoded.is_err());
        }
    }
    assert!(errors > 100, "{errors}: the changes miss");
}

#[test]
fn undefined_fields_are_refused() {
    let values: Vec<f64> = (0..300).map(wave).collect();
    let bounded = bit_packed(&values, &[20, 15], 1e-3).unwrap();
    let lossless = bit_packed(&values, &[300], 0.0).unwrap();
    // The header, 2 bytes of a number, then the shape.
    for (stream, at, byte) in [
        (&bounded, 1, 3),
        (&bounded, 2, 1),
        (&bounded, 6, 5),
        // The dimensions of differences, after the bound; the type and the order of a block.
        (&bounded, 17, 2),
        (&bounded, 18, 0x10),
        (&bounded, 18, 9),
        (&lossless, 9, 0x03),
        (&lossless, 9, 0x30),
        (&lossless, 9, 0x19),
        // The exponent, and a width.
        (&lossless, 11, 0x7f),
        (&lossless, 12, 65),
    ] {
        let mut changed = stream.clone();
        assert_ne!(changed[at], byte);
        changed[at] = byte;
        let decoded = decode(
            &with_checksum(changed),
            &mut [0.0f64; 300],
            &mut Workspace::default(),
        );
        assert!(matches!(decoded, Err(Error::Corrupt(_))), "{at}: {byte}");
    }
    let mut longer = bounded.clone();
    longer.insert(bounded.len() - 4, 0);
    assert!(
        decode(
            &with_checksum(longer),
            &mut [0.0f64; 300],
            &mut Workspace::default()
        )
        .is_err()
    );
    let mut newer = bounded;
    newer[0] = 4;
    assert_eq!(
        inspect(&with_checksum(newer)),
        Err(Error::UnsupportedVersion {
            found: 4,
            supported: 1
        })
    );
}

/// The product of the other lengths was computed, which panicked in builds with overflow checks.
#[test]
fn empty_arrays_may_have_lengths_whose_product_overflows() {
    let shape = [0, 1 << 40, 1 << 40];
    let stream = bit_packed::<f64>(&[], &shape, 1e-3).unwrap();
    decode(&stream, &mut [0.0f64; 0], &mut Workspace::default()).unwrap();
    assert_eq!(distances(&shape, 0b11).count(), 2);
}

/// A stream of no values whose differences are taken along a dimension of length 0 made the decoder panic.
#[test]
fn empty_arrays_may_have_differences_along_any_dimension() {
    for shape in [[0, 3, 4], [3, 0, 4], [3, 4, 0]] {
        let stream = bit_packed::<f64>(&[], &shape, 1e-3).unwrap();
        for across in 0..4 {
            let mut changed = stream.clone();
            // After the header, the numbers of values and dimensions, the shape, and the bound.
            changed[17] = across;
            let decoded = decode(
                &with_checksum(changed),
                &mut [0.0f64; 0],
                &mut Workspace::default(),
            );
            assert!(decoded.is_ok(), "{shape:?} {across}: {decoded:?}");
        }
    }
}
