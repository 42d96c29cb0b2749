//! Golden packets: decoders give the recorded chunks bit for bit, and encoders write the recorded packets.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
use ambar_codec::packet::{Chunk, ValueType, Workspaces, decode, decoded_length, encode, store};
use std::path::PathBuf;

/// Values computed without functions whose rounding depends on the machine.
fn value(i: usize) -> f64 {
    let x = (i % 61) as f64 / 61.0;
    4.0 * x * (1.0 - x) + (i / 61) as f64 * 0.25 + (i * 7 % 13) as f64 * 1e-4
}

fn words<const N: usize>(count: usize, to: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
    (0..count).flat_map(|i| to(value(i))).collect()
}

/// A packet of each form.
fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let made =
        |bytes: &[u8], dtype: ValueType, is_big_endian: bool, shape: &[usize], bound: f64| {
            let chunk = Chunk {
                dtype,
                is_big_endian,
                shape,
                bound: bound.into(),
            };
            encode(bytes, &chunk, &mut Workspaces::default())
                .unwrap()
                .unwrap()
        };
    let mut padded = words(1200, |x| (x as f32).to_be_bytes());
    for (i, word) in padded.chunks_exact_mut(4).enumerate() {
        if i % 40 >= 22 {
            word.copy_from_slice(&f32::NAN.to_be_bytes());
        }
    }
    let whole = words(900, f64::to_le_bytes);
    let integers: Vec<u8> = (0..500i32).flat_map(|i| (i / 9).to_le_bytes()).collect();
    vec![
        (
            "exact",
            made(&whole, ValueType::Float64, false, &[30, 30], 0.0),
        ),
        (
            "padded",
            made(&padded, ValueType::Float32, true, &[30, 40], 1e-2),
        ),
        (
            "bytes",
            made(&integers, ValueType::Other(4), false, &[500], 0.0),
        ),
        ("raw", store(&whole[..100])),
    ]
}

/// `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test packets` writes them.
#[test]
#[cfg(target_endian = "little")]
fn golden_packets() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, packet) in packets() {
        let [packet_path, values_path] =
            ["packet", "chunk"].map(|kind| folder.join(format!("packet-{name}.{kind}")));
        if std::env::var_os("AMBAR_GOLDEN_WRITE").is_some() {
            let mut chunk = vec![0; decoded_length(&packet).unwrap()];
            decode(&packet, &mut chunk, &mut Workspaces::default()).unwrap();
            std::fs::write(&packet_path, &packet).unwrap();
            std::fs::write(&values_path, &chunk).unwrap();
        }
        let golden = std::fs::read(&packet_path).unwrap();
        let expected = std::fs::read(&values_path).unwrap();
        let mut chunk = vec![0; decoded_length(&golden).unwrap()];
        decode(&golden, &mut chunk, &mut Workspaces::default()).unwrap();
        assert!(chunk == expected, "{name}");
        // The frame depends on the version of zstd.
        assert!(
            name == "bytes" || packet == golden,
            "{name}: the packet differs from the golden one"
        );
    }
}
