//! Streams of corners: those of today are read for ever; damaged ones give errors, and no more memory is
//! used than the values need.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use ambar_codec::simplices::{Workspace, decode, encode, inspect};
use common::{MOST, NOW, Random};
use crc_fast::crc32_iscsi as crc32c;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

/// A block of cubes, each of five tetrahedra, with some of its cells gone, and some in another order.
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

/// A band of triangles, then triangles of any points.
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

/// Made by `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test simplices`, once for each version.
#[test]
fn streams_of_version_1() {
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
        let kept = std::fs::read(&stream_path).unwrap();
        let mut out = vec![0; values.len()];
        decode(&kept, &mut out, &mut Workspace::default()).unwrap();
        assert_eq!(std::fs::read(&values_path).unwrap(), bytes(&out), "{name}");
        assert!(
            stream == kept,
            "{name}: another stream is made of the same values"
        );
    }
}

/// Small streams of every kind, and the number of their values.
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

/// Gives a stream the checksum that belongs to it.
fn mend(stream: &mut [u8]) {
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
            mend(&mut cut);
            assert!(is_error(&cut, count, workspace), "cut to {length}, mended");
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

/// Streams with errors, and checksums that fit. Says how many of them were errors.
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
        mend(&mut stream);
        let (mut out, mut workspace) = (vec![0u64; *count], Workspace::default());
        let before = NOW.load(Relaxed);
        MOST.store(before, Relaxed);
        errors += usize::from(decode(&stream, &mut out, &mut workspace).is_err());
        let used = MOST.load(Relaxed) - before;
        // Probabilities take 40 kB.
        assert!(used < (1 << 17) + 250 * count, "{used} bytes for {count}");
    }
    errors
}

/// A stream of few bytes that promises as many cells as there is room for is decoded in no time.
fn promises() {
    let values: Vec<u64> = vec![3; 4 << 16];
    let stream = encode(&values, 4, &mut Workspace::default()).unwrap();
    assert!(stream.len() < 20_000, "{} bytes", stream.len());
    let mut zeros = stream[..11].to_vec();
    zeros.extend([0; 4]);
    for length in [0, 1, 20] {
        let mut short = vec![1, 8, 4, 0, 0x80, 0x80, 4, 0x80, 0x80, 8, length];
        short.extend(vec![0x5a; usize::from(length) + 4]);
        mend(&mut short);
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
    assert!(errors > 500, "{errors}: the mutations miss");
    promises();
}
