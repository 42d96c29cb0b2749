//! Prints how fast the data of the study of many ranks is encoded and decoded, packed and by the walk: the
//! figures of `docs/decisions/0019-packed-streams.md`.
//!
//! `cargo run --release -p ambar-codec --example packed`

#![allow(clippy::print_stdout)] // It is what the program is for.
use ambar_codec::{Layout, Plan, Result, Workspace, decode, encode_into, tune, tune_fast};
use std::time::Instant;

/// Values, and those of a chunk.
const VALUES: usize = 1 << 20;
const CHUNK: usize = 1 << 17;
/// How often all is done; the shortest time counts.
const TIMES: usize = 9;

/// 53 random bits in [0, 1).
fn random(place: usize) -> f64 {
    let z = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// Eight waves 16 to 6,270 values long, whose amplitudes grow with the cube root of the length.
fn smooth(place: usize) -> f64 {
    let lengths: [f64; 8] = std::array::from_fn(|wave| 16.0 * 2.347f64.powi(wave as i32));
    let all: f64 = lengths.iter().map(|length| length.cbrt()).sum();
    let turn = std::f64::consts::TAU * place as f64;
    let waves = lengths.iter().enumerate();
    waves
        .map(|(wave, length)| length.cbrt() / all * (turn / length + wave as f64).sin())
        .sum()
}

/// Encodes and decodes chunks of this shape, and prints a line of the table.
fn measure(name: &str, values: &[f64], shape: &[usize], bound: f64, plan: Plan) -> Result<()> {
    let layout = Layout::Array(shape);
    let mut workspace = Workspace::default();
    let mut streams: Vec<Vec<u8>> = vec![Vec::new(); values.len() / CHUNK];
    let mut out = vec![0.0f64; CHUNK];
    let (mut encoding, mut decoding) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TIMES {
        let begin = Instant::now();
        for (values, stream) in values.chunks_exact(CHUNK).zip(&mut streams) {
            encode_into(values, &layout, bound, Some(plan), &mut workspace, stream)?;
        }
        encoding = begin.elapsed().as_secs_f64().min(encoding);
        let begin = Instant::now();
        for stream in &streams {
            decode(stream, &mut out, &mut workspace)?;
        }
        decoding = begin.elapsed().as_secs_f64().min(decoding);
    }
    let (count, bytes) = (
        values.len() as f64,
        streams.iter().map(Vec::len).sum::<usize>(),
    );
    println!(
        "| {name} | {:.3} | {:.2} | {:.2} |",
        8.0 * count / bytes as f64,
        encoding / count * 1e9,
        decoding / count * 1e9,
    );
    Ok(())
}

fn main() -> Result<()> {
    let random: Vec<f64> = (0..VALUES).map(random).collect();
    let waves: Vec<f64> = (0..VALUES).map(smooth).collect();
    // A field of three dimensions, smooth along each.
    let cube = |i: usize| smooth(i >> 12) + smooth((i >> 6 & 63) + 1000) + smooth((i & 63) + 2000);
    let cubes: Vec<f64> = (0..VALUES).map(cube).collect();
    println!("| data | ratio | encoding, ns a value | decoding |");
    println!("|---|---:|---:|---:|");
    for (name, values, shape) in [
        ("random", &random, &[CHUNK][..]),
        ("smooth", &waves, &[CHUNK]),
        ("smooth, 32 x 64 x 64", &cubes, &[32, 64, 64]),
    ] {
        let (layout, bound) = (Layout::Array(shape), 1e-4);
        let sample = &values[..CHUNK];
        let quick = tune(sample, &layout, bound)?.quick();
        measure(&format!("{name}, 1e-4, quick"), values, shape, bound, quick)?;
        let packed = quick.packed();
        measure(
            &format!("{name}, 1e-4, packed"),
            values,
            shape,
            bound,
            packed,
        )?;
        let lossless = tune_fast(sample, &layout, 0.0)?;
        measure(
            &format!("{name}, lossless, packed"),
            values,
            shape,
            0.0,
            lossless,
        )?;
    }
    Ok(())
}
