//! Golden streams of simplices, and damaged streams, which give errors within memory proportional to the values.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use ambar_codec::simplices::{Workspace, decode, encode, inspect};
use common::{ALLOCATED, PEAK, Random};
use crc_fast::crc32_iscsi as crc32c;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

/// A block of cubes of five tetrahedra each, without some cells, and partly shuffled.
fn tetrahedra() -> Vec<u64> {
    let mut random = Random(5);
    let mut rows = Vec::new();
    for cube in 0..5 * 5 * 5u64 {
        let at = cube / 25 * 36 + cube / 5 % 5 * 6 + cube % 5;
        let corner = |n: u64| 1000 + 3 * (at + (n >> 2) * 36 + (n >> 1 & 1) * 6 + (n & 1));
        let flip = if (cube / 25 + cube / 5 + cube) % 2 == 0 {
            0
        } else {
            1
        };
        for cell in [
            [0, 1, 2, 4],
            [3, 1, 2, 7],
            [5, 1, 4, 7],
            [6, 2, 4, 7],
            [1, 2, 4, 7],
        ] {
            rows.push(cell.map(|n| corner(n ^ flip)));
        }
    }
    for _ in 0..200 {
        let (a, b) = (random.below(rows.len()), random.below(rows.len()));
        rows.swap(a, b);
        let row = random.below(rows.len());
        rows[row].rotate_left(random.below(4));
    }
    rows.truncate(560);
    rows.concat()
}

/// A strip of triangles, then triangles of random points.
fn triangles() -> Vec<u64> {
    let mut random = Random(6);
    let band = (0..300u64).flat_map(|i| [i, i + 1 + i % 2, i + 2 - i % 2]);
    let any = std::iter::repeat_with(|| random.below(1 << 31) as u64).take(90);
    band.chain(any).collect()
}

fn kinds() -> [(&'static str, usize, Vec<u64>); 3] {
    let pairs = (0..200u64)
        .flat_map(|i| [i * 7 % 200, (i * 7 + 7) % 200])
        .collect();
    [
        ("tetrahedra", 4, tetrahedra()),
        ("triangles", 3, triangles()),
        ("pairs", 2, pairs),
    ]
}

fn bytes(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test simplices` writes the golden files.
#[test]
fn golden_streams() {
    for (name, width, values) in kinds() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let [stream_path, values_path] =
            ["stream", "values"].map(|kind| folder.join(format!("simplices-{name}.{kind}")));
        let stream = encode(&values, width, &mut Workspace::default()).unwrap();
        if std::env::var_os("AMBAR_GOLDEN_WRITE").is_some() {
            std::fs::write(&stream_path, &stream).unwrap();
            std::fs::write(&values_path, bytes(&values)).unwrap();
            continue;
        }
        let golden = std::fs::read(&stream_path).unwrap();
        let mut out = vec![0; values.len()];
        decode(&golden, &mut out, &mut Workspace::default()).unwrap();
        assert_eq!(std::fs::read(&values_path).unwrap(), bytes(&out), "{name}");
        assert!(
            stream == golden,
            "{name}: the encoded stream differs from the golden one"
        );
    }
}

/// Small streams of all kinds, and the number of their values.
fn samples() -> Vec<(Vec<u8>, usize)> {
    let encoded = |(_, width, values): (&str, usize, Vec<u64>)| {
        let values = &values[..values.len().min(120 * width)];
        let stream = encode(values, width, &mut Workspace::default()).unwrap();
        (stream, values.len())
    };
    kinds().map(encoded).to_vec()
}

fn is_error(stream: &[u8], count: usize, workspace: &mut Workspace) -> bool {
    decode(stream, &mut vec![0u64; count], workspace).is_err()
}

/// Repairs the checksum of a stream.
fn repair_checksums(stream: &mut [u8]) {
    if let Some((body, checksum)) = stream.split_last_chunk_mut::<4>() {
        *checksum = crc32c(body).to_le_bytes();
    }
}

fn truncations_and_flipped_bits() {
    let workspace = &mut Workspace::default();
    for (mut stream, count) in samples() {
        assert!(!is_error(&stream, count, workspace));
        for length in 0..stream.len() {
            let mut cut = stream[..length].to_vec();
            assert!(is_error(&cut, count, workspace), "cut to {length}");
            assert!(inspect(&cut).is_err());
            repair_checksums(&mut cut);
            assert!(
                is_error(&cut, count, workspace),
                "cut to {length}, checksum repaired"
            );
        }
        for bit in 0..8 * stream.len() {
            stream[bit / 8] ^= 1 << (bit % 8);
            assert!(is_error(&stream, count, workspace), "bit {bit}");
            stream[bit / 8] ^= 1 << (bit % 8);
        }
        stream.push(0);
        assert!(is_error(&stream, count, workspace));
    }
}

/// Decodes damaged streams with valid checksums. Returns the number of errors.
fn mutations(rounds: usize) -> usize {
    let (samples, mut random) = (samples(), Random(1));
    let mut errors = 0;
    for _ in 0..rounds {
        let (stream, count) = &samples[random.below(samples.len())];
        let mut stream = stream.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(stream.len()).min(random.below(1000));
            match random.below(4) {
                0 => stream[at] ^= 1 << random.below(8),
                1 => stream[at] = random.below(256) as u8,
                2 => stream[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                _ => {
                    let n = random.below(12).min(stream.len() - at);
                    stream[at..at + n].fill([0, 0xff][random.below(2)]);
                }
            }
        }
        repair_checksums(&mut stream);
        let (mut out, mut workspace) = (vec![0u64; *count], Workspace::default());
        let before = ALLOCATED.load(Relaxed);
        PEAK.store(before, Relaxed);
        errors += usize::from(decode(&stream, &mut out, &mut workspace).is_err());
        let used = PEAK.load(Relaxed) - before;
        // Probabilities take 40 kB.
        assert!(used < (1 << 17) + 250 * count, "{used} bytes for {count}");
    }
    errors
}

/// Short streams that claim many cells give errors in little time.
fn exaggerated_counts() {
    let values: Vec<u64> = vec![3; 4 << 16];
    let stream = encode(&values, 4, &mut Workspace::default()).unwrap();
    assert!(stream.len() < 20_000, "{} bytes", stream.len());
    let mut zeros = stream[..11].to_vec();
    zeros.extend([0; 4]);
    for length in [0, 1, 20] {
        let mut short = vec![1, 8, 4, 0, 0x80, 0x80, 4, 0x80, 0x80, 8, length];
        short.extend(vec![0x5a; usize::from(length) + 4]);
        repair_checksums(&mut short);
        assert!(is_error(&short, values.len(), &mut Workspace::default()));
    }
}

#[test]
fn damage_gives_errors() {
    truncations_and_flipped_bits();
    let errors = mutations(if cfg!(debug_assertions) {
        3_000
    } else {
        30_000
    });
    assert!(errors > 500, "only {errors} errors");
    exaggerated_counts();
}
