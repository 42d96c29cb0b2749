//! Round trips of packets with padding and other types; damaged packets.

use super::*;
use crc_fast::crc32_iscsi as crc32c;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

fn wave(i: usize) -> f64 {
    (i as f64 * 0.013).sin() * 40.0 + (i % 11) as f64 * 1e-3
}

fn doubles(count: usize) -> Vec<f64> {
    (0..count).map(wave).collect()
}

fn chunk(dtype: ValueType, shape: &[usize], bound: f64) -> Chunk<'_> {
    Chunk {
        dtype,
        is_big_endian: false,
        shape,
        bound: bound.into(),
    }
}

fn packet(bytes: &[u8], chunk: &Chunk<'_>) -> Vec<u8> {
    encode(bytes, chunk, &mut Workspaces::default())
        .unwrap()
        .unwrap_or_else(|| store(bytes))
}

fn round_trip(packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0x55; decoded_length(packet).unwrap()];
    decode(packet, &mut out, &mut Workspaces::default()).unwrap();
    out
}

fn values_round_trip(packet: &[u8]) -> Vec<f64> {
    let bytes = round_trip(packet);
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| f64::from_ne_bytes(*word)).collect()
}

#[test]
fn arrays_of_all_ranks_round_trip() {
    for shape in [
        &[900][..],
        &[30, 40],
        &[1, 12, 13, 14],
        &[3, 8, 9, 10],
        &[2, 3, 4, 5, 6, 7],
        &[1, 1, 1],
        &[2],
    ] {
        let values = doubles(shape.iter().product());
        let bytes = bytemuck::cast_slice(&values);
        for bound in [0.0, 1e-2] {
            let packet = packet(bytes, &chunk(ValueType::Float64, shape, bound));
            let found = values_round_trip(&packet);
            assert_eq!(found.len(), values.len());
            let worst = values
                .iter()
                .zip(&found)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(worst <= bound, "{shape:?}: {worst} off, not {bound}");
            assert!(values.len() < 100 || packet.len() < bytes.len());
        }
    }
}

#[test]
fn the_byte_order_is_preserved() {
    let native: Vec<f32> = (0..600).map(|i| wave(i) as f32).collect();
    let swapped: Vec<u8> = native.iter().flat_map(|x| x.to_be_bytes()).collect();
    let shape = [20, 30];
    for bound in [0.0, 0.01] {
        let about = Chunk {
            is_big_endian: true,
            ..chunk(ValueType::Float32, &shape, bound)
        };
        // Unaligned bytes.
        let shifted = [&[0][..], &swapped].concat();
        let big = packet(&shifted[1..], &about);
        let little: Vec<u8> = native.iter().flat_map(|x| x.to_le_bytes()).collect();
        let same = packet(&little, &chunk(ValueType::Float32, &shape, bound));
        assert_eq!(big.len(), same.len());
        let mut found = round_trip(&big);
        found
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .for_each(|word| word.reverse());
        assert_eq!(found, round_trip(&same));
    }
}

#[test]
fn padding_takes_no_space() {
    let (whole, part) = ([20, 20, 20], [20, 13, 9]);
    let mut values = vec![-7.25; 8000];
    for (i, value) in values.iter_mut().enumerate() {
        if i / 20 % 20 < part[1] && i % 20 < part[2] {
            *value = wave(i);
        }
    }
    let padded = packet(
        bytemuck::cast_slice(&values),
        &chunk(ValueType::Float64, &whole, 0.0),
    );
    assert_eq!(values_round_trip(&padded), values);
    let kept: Vec<f64> = (0..8000)
        .filter(|i| i / 20 % 20 < part[1] && i % 20 < part[2])
        .map(|i| values[i])
        .collect();
    let alone = packet(
        bytemuck::cast_slice(&kept),
        &chunk(ValueType::Float64, &part, 0.0),
    );
    assert!(
        padded.len() < alone.len() + 16,
        "{} {}",
        padded.len(),
        alone.len()
    );
    // One-dimensional arrays that are padding in part or entirely, with any bits.
    for pad in [f64::NAN, -0.0, 3.5] {
        for kept in [0, 1, 100, 500] {
            let mut values = vec![pad; 600];
            values[..kept].copy_from_slice(&doubles(kept));
            let bytes: &[u8] = bytemuck::cast_slice(&values);
            let packet = packet(bytes, &chunk(ValueType::Float64, &[600], 0.0));
            assert_eq!(round_trip(&packet), bytes);
            assert!(kept > 1 || packet.len() < 80);
        }
    }
}

#[test]
fn other_types_are_lossless() {
    let integers: Vec<i32> = (0..1000).map(|i| 5000 + i / 7 * 3).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&integers);
    let packed = packet(bytes, &chunk(ValueType::Other(4), &[10, 100], 0.5));
    assert!(packed.len() < bytes.len() / 2);
    assert_eq!(round_trip(&packed), bytes);
    for size in [1, 2, 3, 16, 17, 24, 1000] {
        let bytes: Vec<u8> = (0..size * 50).map(|i| (i % size / 2) as u8).collect();
        let packed = packet(&bytes, &chunk(ValueType::Other(size), &[50], 0.0));
        assert_eq!(round_trip(&packed), bytes, "{size}");
    }
}

/// Shuffled high bytes that are 0 become one run.
#[test]
fn bytes_of_integers_are_shuffled() {
    let mut random = Random(3);
    let integers: Vec<i32> = (0..50_000).map(|_| random.below(1000) as i32).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&integers);
    let packed = packet(bytes, &chunk(ValueType::Other(4), &[50_000], 0.0));
    assert!(packed.len() < 72_000, "{}", packed.len());
    assert_eq!(round_trip(&packed), bytes);
}

#[test]
fn incompressible_chunks_are_stored() {
    let mut random = Random(1);
    let noise: Vec<u8> = (0..4096).map(|_| random.below(256) as u8).collect();
    for dtype in [ValueType::Float64, ValueType::Float32, ValueType::Other(2)] {
        let shape = [noise.len() / dtype.size()];
        let about = chunk(dtype, &shape, 0.0);
        let found = encode(&noise, &about, &mut Workspaces::default()).unwrap();
        assert!(found.is_none(), "{dtype:?}");
    }
    let stored = store(&noise);
    assert!(stored.len() < noise.len() + 16);
    assert_eq!(round_trip(&stored), noise);
}

#[test]
fn padding_does_not_count_in_mean_squared_errors() {
    let (mut random, root) = (Random(5), 0.1);
    for held in 17usize..64 {
        let mut values: Vec<f64> = (0..held)
            .map(|_| random.below(1000) as f64 / 500.0)
            .collect();
        values.resize(held.next_multiple_of(4) + 12, -0.5);
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let shape = [values.len() / 4, 4];
        let about = Chunk {
            bound: ErrorBound::Rms(root),
            ..chunk(ValueType::Float64, &shape, 0.0)
        };
        let packet = encode(bytes, &about, &mut Workspaces::default()).unwrap();
        let decoded = round_trip(&packet.unwrap());
        let decoded: &[f64] = bytemuck::cast_slice(&decoded);
        let pairs = values.iter().zip(decoded).take(held);
        let squares: f64 = pairs.map(|(a, b)| ((a - b) / root).powi(2)).sum();
        assert!(squares > 0.0 && squares <= held as f64, "{held}: {squares}");
    }
}

#[test]
fn invalid_bounds_and_shapes_are_refused() {
    let bytes = [0; 64];
    for (shape, bound) in [
        ([8], f64::NAN),
        ([8], -1.0),
        ([8], f64::INFINITY),
        ([9], 0.0),
        ([usize::MAX], 0.0),
    ] {
        let about = chunk(ValueType::Float64, &shape, bound);
        assert!(encode(&bytes, &about, &mut Workspaces::default()).is_err());
    }
}

fn samples() -> Vec<Vec<u8>> {
    let mut padded = doubles(240);
    for (i, x) in padded.iter_mut().enumerate() {
        *x = if i % 12 < 7 { *x } else { 0.0 };
    }
    let padded: &[u8] = bytemuck::cast_slice(&padded);
    vec![
        packet(padded, &chunk(ValueType::Float64, &[6, 40], 0.0)),
        packet(padded, &chunk(ValueType::Float64, &[4, 5, 12], 0.1)),
        packet(padded, &chunk(ValueType::Float32, &[480], 1.0)),
        packet(padded, &chunk(ValueType::Other(8), &[240], 0.0)),
        store(&padded[..100]),
    ]
}

#[test]
fn damage_is_an_error() {
    let mut workspaces = Workspaces::default();
    for mut packet in samples() {
        let mut out = vec![0; decoded_length(&packet).unwrap()];
        for length in 0..packet.len() {
            assert!(decode(&packet[..length], &mut out, &mut workspaces).is_err());
            assert!(decoded_length(&packet[..length]).is_err());
        }
        for bit in 0..8 * packet.len() {
            packet[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&packet, &mut out, &mut workspaces).is_err());
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        out.push(0);
        assert!(decode(&packet, &mut out, &mut workspaces).is_err());
    }
}

/// Decodes damaged packets with valid checksums. Returns the number of errors.
fn mutations(rounds: usize, seed: u64) -> usize {
    let (samples, mut random) = (samples(), Random(seed));
    let mut errors = 0;
    for _ in 0..rounds {
        let mut packet = samples[random.below(samples.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(packet.len()).min(random.below(200));
            match random.below(5) {
                0 => packet[at] ^= 1 << random.below(8),
                1 => packet[at] = random.below(256) as u8,
                2 => packet[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                3 => packet.insert(at, random.below(256) as u8),
                _ => drop(packet.remove(at)),
            }
        }
        repair_checksums(&mut packet);
        let claimed = decoded_length(&packet).unwrap_or(0);
        let length = if claimed < 10_000 { claimed } else { 480 };
        let (mut out, mut workspaces) = (vec![0; length], Workspaces::default());
        errors += usize::from(decode(&packet, &mut out, &mut workspaces).is_err());
    }
    errors
}

/// Repairs the checksums of a packet and its stream.
fn repair_checksums(packet: &mut [u8]) {
    let Some(end) = packet.len().checked_sub(4) else {
        return;
    };
    let mut rest = Cursor(packet.get(4..end).unwrap_or_default());
    let numbers = rest.number().and_then(|_| rest.number_to(end));
    let begin = numbers.map_or(end, |length| end - length);
    if let Some((stream, checksum)) = packet[begin..end].split_last_chunk_mut::<4>() {
        *checksum = crc32c(stream).to_le_bytes();
    }
    let checksum = crc32c(&packet[..begin]);
    packet[end..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn hostile_packets_are_errors_or_values() {
    let rounds = if cfg!(debug_assertions) {
        3_000
    } else {
        40_000
    };
    let errors = mutations(rounds, 1);
    assert!(
        errors > rounds / 2 && errors < rounds,
        "{errors} of {rounds}"
    );
}

#[test]
#[ignore = "part of the campaign: minutes"]
fn many_hostile_packets_are_errors_or_values() {
    for seed in 2..40 {
        assert!(mutations(100_000, seed) > 50_000);
    }
}

#[test]
fn noise_is_an_error() {
    let mut random = Random(5);
    for round in 0..20_000 {
        let length = random.below(90);
        let mut packet: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let head = [VERSION, (round % 3) as u8, (round / 3 % 3) as u8, 0, 64];
        let keep = packet.len().min(head.len());
        packet[..keep].copy_from_slice(&head[..keep]);
        repair_checksums(&mut packet);
        let result = decode(&packet, &mut [0; 64], &mut Workspaces::default());
        assert!(result.is_err() || packet[1] == RAW, "{packet:?}");
    }
}
