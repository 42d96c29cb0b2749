//! Prints ratios and times of bit-packed and entropy-coded streams: the figures of
//! `docs/decisions/0019-packed-streams.md`.
//!
//! `cargo run --release -p ambar-codec --example packed`

#![allow(clippy::print_stdout)] // The output is the purpose of this program.
use ambar_codec::{EncoderParams, Layout, Result, Workspace, decode, encode_into, tune, tune_fast};
use std::time::Instant;

/// The number of values.
const VALUES: usize = 1 << 20;
/// Values of a chunk.
const CHUNK: usize = 1 << 17;
/// Number of repetitions, of which the fastest counts.
const REPETITIONS: usize = 9;

/// 53 random bits in [0, 1).
fn random(place: usize) -> f64 {
    let z = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// The sum of eight waves with lengths of 16 to 6,270 values and amplitudes proportional to the cube root of the length.
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
fn measure(
    name: &str,
    values: &[f64],
    shape: &[usize],
    bound: f64,
    params: EncoderParams,
) -> Result<()> {
    let layout = Layout::Array(shape);
    let mut workspace = Workspace::default();
    let mut streams: Vec<Vec<u8>> = vec![Vec::new(); values.len() / CHUNK];
    let mut out = vec![0.0f64; CHUNK];
    let (mut encoding, mut decoding) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..REPETITIONS {
        let begin = Instant::now();
        for (values, stream) in values.chunks_exact(CHUNK).zip(&mut streams) {
            encode_into(values, &layout, bound, Some(params), &mut workspace, stream)?;
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
    // A three-dimensional field, smooth along each dimension.
    let cube = |i: usize| smooth(i >> 12) + smooth((i >> 6 & 63) + 1000) + smooth((i & 63) + 2000);
    let cubes: Vec<f64> = (0..VALUES).map(cube).collect();
    println!("| data | ratio | encoding, ns per value | decoding |");
    println!("|---|---:|---:|---:|");
    for (name, values, shape) in [
        ("random", &random, &[CHUNK][..]),
        ("smooth", &waves, &[CHUNK]),
        ("smooth, 32 x 64 x 64", &cubes, &[32, 64, 64]),
    ] {
        let (layout, bound) = (Layout::Array(shape), 1e-4);
        let sample = &values[..CHUNK];
        let entropy_coded = tune(sample, &layout, bound)?.with_level_contexts();
        measure(
            &format!("{name}, 1e-4, entropy-coded"),
            values,
            shape,
            bound,
            entropy_coded,
        )?;
        let bit_packed = entropy_coded.with_bit_packing();
        measure(
            &format!("{name}, 1e-4, bit-packed"),
            values,
            shape,
            bound,
            bit_packed,
        )?;
        let lossless = tune_fast(sample, &layout, 0.0)?;
        measure(
            &format!("{name}, lossless, bit-packed"),
            values,
            shape,
            0.0,
            lossless,
        )?;
    }
    Ok(())
}
