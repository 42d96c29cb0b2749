//! Prints ratios and times for a synthetic field of 192^3 values, with and without holes: the figures of
//! `docs/decisions/0017-faster-decoding.md`, `0018-grouped-tokens.md`, `0021-planes.md` and `0024-bridged-holes.md`.
//!
//! `cargo run --release -p ambar-codec --example speed`

#![allow(clippy::print_stdout)] // The output is the purpose of this program.
use ambar_codec::{
    EncoderParams, Layout, Result, Workspace, decode, encode_into, tune, tune_small,
};
use std::time::Instant;

/// Values along each dimension of the field.
const SIDE: usize = 192;
/// Values along each dimension of a block.
const BLOCK: usize = 8;
/// Values of a chunk.
const CHUNK: usize = 1 << 18;
/// Number of times that a chunk is encoded and decoded, of which the fastest counts.
const REPETITIONS: usize = 7;

/// A random number from -1 to 1 for a position.
fn noise(place: [usize; 3], seed: usize) -> f64 {
    let [z, y, x] = place.map(|k| k as u64);
    let mut hash = (z << 42 | y << 21 | x) ^ (seed as u64) << 59;
    for _ in 0..3 {
        hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Smooth interpolation of random numbers on a lattice with the spacing `apart`.
fn smooth(place: [usize; 3], apart: usize, seed: usize) -> f64 {
    let corner = place.map(|k| k / apart);
    let weight = place.map(|k| {
        let t = (k % apart) as f64 / apart as f64;
        t * t * t * (10.0 - t * (15.0 - 6.0 * t))
    });
    (0..8)
        .map(|bits| {
            let at = [0, 1, 2].map(|d| corner[d] + (bits >> d & 1));
            let part = |d: usize| {
                if bits >> d & 1 == 1 {
                    weight[d]
                } else {
                    1.0 - weight[d]
                }
            };
            noise(at, seed) * part(0) * part(1) * part(2)
        })
        .sum()
}

/// A density with structure on all scales, and an approximately normal logarithm.
fn density(place: [usize; 3]) -> f64 {
    let octaves = [
        (64, 1.4),
        (32, 0.9),
        (16, 0.45),
        (8, 0.17),
        (4, 0.05),
        (2, 0.012),
    ];
    let sum = octaves
        .iter()
        .map(|(apart, size)| size * smooth(place, *apart, *apart));
    (1.5 * sum.sum::<f64>()).exp()
}

/// The index on the Morton curve, x fastest.
fn morton([z, y, x]: [usize; 3]) -> usize {
    (0..8).fold(0, |key, bit| {
        key | (x >> bit & 1) << (3 * bit)
            | (y >> bit & 1) << (3 * bit + 1)
            | (z >> bit & 1) << (3 * bit + 2)
    })
}

/// The positions and values of the blocks of the field; with `holes`, without those that a finer level would cover.
fn blocks(holes: bool) -> (Vec<[usize; 3]>, Vec<f64>) {
    let side = SIDE / BLOCK;
    let mut places: Vec<[usize; 3]> = (0..side * side * side)
        .map(|i| [i / (side * side), i / side % side, i % side])
        .filter(|place| !holes || smooth(place.map(|k| k + 1), 6, 99) < 0.17)
        .collect();
    places.sort_by_key(|place| morton(*place));
    let mut values = Vec::with_capacity(places.len() * BLOCK * BLOCK * BLOCK);
    for [z, y, x] in places.iter().map(|place| place.map(|k| k * BLOCK)) {
        for z in z..z + BLOCK {
            for y in y..y + BLOCK {
                values.extend((x..x + BLOCK).map(|x| density([z, y, x])));
            }
        }
    }
    (places, values)
}

/// Chooses encoder parameters.
type Choose = fn(&[f64], &Layout<'_>, f64) -> Result<EncoderParams>;

/// Encodes and decodes, and prints a line of the table.
fn measure(name: &str, holes: bool, choose: Choose) -> Result<()> {
    let (places, values) = blocks(holes);
    let cells = BLOCK * BLOCK * BLOCK;
    let [least, most] = [f64::min, f64::max].map(|f| values.iter().copied().fold(values[0], f));
    let bound = 1e-3 * (most - least);
    let mut workspace = Workspace::default();
    let (mut bytes, mut encoding, mut decoding) = (0, 0.0, 0.0);
    for (places, values) in places.chunks(CHUNK / cells).zip(values.chunks(CHUNK)) {
        let origins: Vec<[i64; 3]> = places
            .iter()
            .map(|place| place.map(|k| (k * BLOCK) as i64))
            .collect();
        let layout = Layout::Blocks {
            side: [BLOCK; 3],
            origins: &origins,
        };
        let params = choose(values, &layout, bound)?;
        let (mut stream, mut shortest) = (Vec::new(), f64::INFINITY);
        for _ in 0..REPETITIONS {
            let begin = Instant::now();
            encode_into(
                values,
                &layout,
                bound,
                Some(params),
                &mut workspace,
                &mut stream,
            )?;
            shortest = shortest.min(begin.elapsed().as_secs_f64());
        }
        encoding += shortest;
        bytes += stream.len();
        let mut out = vec![0.0f64; values.len()];
        shortest = f64::INFINITY;
        for _ in 0..REPETITIONS {
            let begin = Instant::now();
            decode(&stream, &mut out, &mut workspace)?;
            shortest = shortest.min(begin.elapsed().as_secs_f64());
        }
        decoding += shortest;
    }
    let count = values.len() as f64;
    println!(
        "| {name} | {:.1} | {:.1} | {:.1} |",
        8.0 * count / bytes as f64,
        encoding / count * 1e9,
        decoding / count * 1e9,
    );
    Ok(())
}

fn main() -> Result<()> {
    println!("| field, bound 1e-3 of its range | ratio | encoding, ns per value | decoding |");
    println!("|---|---|---|---|");
    let all: [(&str, Choose); 3] = [
        ("small", tune_small),
        ("balanced", tune),
        ("level contexts", |values, layout, bound| {
            Ok(tune(values, layout, bound)?.with_level_contexts())
        }),
    ];
    for (field, holes) in [("whole", false), ("with holes", true)] {
        for (name, choose) in all {
            measure(&format!("{field}, {name}"), holes, choose)?;
        }
    }
    Ok(())
}
