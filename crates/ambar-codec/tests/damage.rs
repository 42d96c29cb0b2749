//! Damaged and hostile streams give errors, without panics, and within time and memory proportional to the values.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use ambar_codec::{
    Element, ErrorBound, Layout, Workspace, decode, decode_prefix, encode, inspect, prefix,
};
use ambar_codec::{tune, tune_small};
use common::{ALLOCATED, PEAK, Random};
use crc_fast::crc32_iscsi as crc32c;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

/// Part of a cube of cells, three of which are refined, one of them twice; and cells after a gap.
fn cells() -> (Vec<u8>, Vec<[i64; 3]>) {
    let (mut levels, mut cells) = (Vec::new(), Vec::new());
    let below =
        |[z, y, x]: [i64; 3], i: i64| [2 * z + (i >> 2), 2 * y + (i >> 1 & 1), 2 * x + (i & 1)];
    for i in [2, 3, 4, 5, 6, 30, 31] {
        let place = [2, 1, 0].map(|d| i >> d & 1 | (i >> (3 + d) & 1) << 1);
        if ![2, 5, 31].contains(&i) {
            levels.push(3);
            cells.push(place);
            continue;
        }
        for child in (0..8).map(|child| below(place, child)) {
            let twice = i == 5 && child[2] == 2 * place[2];
            levels.extend(vec![4 + u8::from(twice); if twice { 8 } else { 1 }]);
            cells.extend(
                (0..if twice { 8 } else { 1 }).map(|n| if twice { below(child, n) } else { child }),
            );
        }
    }
    (levels, cells)
}

/// Small streams of all kinds, and the number of their values.
fn samples() -> Vec<(Vec<u8>, usize)> {
    let mut random = Random(3);
    let mut values = |n: usize, holes: bool| -> Vec<f32> {
        (0..n)
            .map(|i| match i {
                _ if holes && i / 9 % 3 == 0 => f32::NAN,
                _ if i % 97 == 5 => f32::INFINITY,
                _ => (i as f32 * 0.02).sin() + random.below(100) as f32 * 1e-4,
            })
            .collect()
    };
    let origins: Vec<[i64; 3]> = (0..7)
        .map(|i| [i >> 2 & 1, i >> 1 & 1, i & 1].map(|n| 4 * n))
        .collect();
    let far = [[-400, 8, 0], [0, 0, 0], [4, 4, 4], [80, 400, 4]].map(|o: [i64; 3]| o);
    let mut far = far.to_vec();
    far.sort_by_key(|o| {
        (0..21).fold(0u64, |key, b| {
            let bit = |n: i64| (n / 4 + (1 << 20)) as u64 >> b & 1;
            key | (bit(o[2]) | bit(o[1]) << 1 | bit(o[0]) << 2) << (3 * b)
        })
    });
    let (levels, cells) = cells();
    let mut all = Vec::new();
    for bound in [0.0, 1e-3] {
        for holes in [false, true] {
            for layout in [
                Layout::Array(&[150]),
                Layout::Array(&[6, 7, 8]),
                Layout::Array(&[2, 3, 5, 9]),
                Layout::Blocks {
                    side: [4; 3],
                    origins: &origins,
                },
                Layout::Blocks {
                    side: [4; 3],
                    origins: &far,
                },
                Layout::Cells {
                    dimensions: 3,
                    levels: &levels,
                    origins: &cells,
                },
            ] {
                let count = match &layout {
                    Layout::Array(shape) | Layout::PaddedArray { shape, .. } => {
                        shape.iter().product()
                    }
                    Layout::Blocks { origins, .. } => 64 * origins.len(),
                    Layout::Cells { levels, .. } => levels.len() + 9,
                };
                let values = values(count, holes);
                let params = tune(&values, &layout, bound).unwrap();
                let small = tune_small(&values, &layout, bound).unwrap();
                let split = [params.with_packets(4), small.with_packets(2)];
                let split = split
                    .into_iter()
                    .chain([params.with_level_contexts().with_packets(3)]);
                for params in [
                    params,
                    small,
                    params.with_level_contexts(),
                    params.with_bit_packing(),
                ]
                .into_iter()
                .chain(split)
                {
                    let workspace = &mut Workspace::default();
                    let stream = encode(&values, &layout, bound, Some(params), workspace);
                    all.push((stream.unwrap(), count));
                }
            }
        }
    }
    all.extend(samples_of_bounds::<f32>());
    for (shape, root) in [
        (&[9, 10, 12][..], 1e-2),
        (&[33, 33], 1e-7),
        (&[2, 3, 9, 20], 1e-3),
    ] {
        let (layout, bound) = (Layout::Array(shape), ErrorBound::Rms(root));
        let values: Vec<f32> = (0..1089.min(shape.iter().product()))
            .map(|i: usize| (i as f32 * 0.02).sin() + 1e-4 * (i * 37 % 100) as f32)
            .collect();
        let params = tune_small(&values, &layout, bound)
            .unwrap()
            .with_wavelet(Some(0));
        let stream = encode(
            &values,
            &layout,
            bound,
            Some(params),
            &mut Workspace::default(),
        );
        all.push((stream.unwrap(), values.len()));
    }
    all.extend(samples_with_corrections());
    all
}

/// Small streams of wavelet coefficients of arrays and blocks, with and without corrections.
fn samples_with_corrections() -> Vec<(Vec<u8>, usize)> {
    let wave = |n: usize, i: usize| (0.8 * (i % n) as f32).sin();
    let cube: Vec<f32> = (0..10 * 12 * 13)
        .map(|i| 4.0 + wave(13, i) + wave(12, i / 13) + wave(10, i / 156))
        .collect();
    let origins = [[0, 0, 0], [0, 0, 16], [0, 16, 0], [0, 16, 16], [0, 64, 32]];
    let planes: Vec<f32> = (0..5 * 256)
        .map(|i| {
            let [_, y, x]: [i64; 3] = origins[i / 256];
            4.0 + wave(99, y as usize + i / 16 % 16) + wave(99, x as usize + i % 16)
        })
        .collect();
    let array = (Layout::Array(&[10, 12, 13]), cube);
    let blocks = Layout::Blocks {
        side: [1, 16, 16],
        origins: &origins,
    };
    let blocks = (blocks, planes);
    let stream = |(layout, values): &(Layout<'_>, Vec<f32>), bound: ErrorBound| {
        let params = tune_small(values, layout, bound).unwrap();
        let [transformed, other] = [Some(0), None].map(|omitted| {
            let (params, workspace) = (params.with_wavelet(omitted), &mut Workspace::default());
            encode(values, layout, bound, Some(params), workspace).unwrap()
        });
        assert!(transformed != other);
        (transformed, values.len())
    };
    vec![
        stream(&array, ErrorBound::Absolute(1e-2)),
        stream(&array, ErrorBound::Relative(1e-3)),
        stream(&blocks, ErrorBound::Absolute(1e-2)),
        stream(&blocks, ErrorBound::Rms(1e-3)),
    ]
}

/// Small streams with a prelude: mapped with exceptions, masks and zeros, and clamped. Their first values are positive.
fn samples_of_bounds<T: Element>() -> Vec<(Vec<u8>, usize)> {
    let value = |i: usize, bound: ErrorBound| {
        let x = (1.0 + (i as f64 * 0.05).sin().abs()) * 2f64.powi((i / 7 % 40) as i32 - 20);
        match (i % 31, bound) {
            (3, _) if T::SIZE == 4 => 1e-40,
            (3, _) => 1e-310,
            (4, _) if i > 100 => f64::INFINITY,
            (5, ErrorBound::Relative(_)) => -x,
            (6, ErrorBound::Relative(_)) => 0.0,
            (7..15, _) if i > 60 => f64::NAN,
            _ => x,
        }
    };
    let origins = [[0, 0, 0], [0, 0, 4], [0, 4, 0]];
    let layouts = [
        Layout::Array(&[150]),
        Layout::Array(&[6, 7, 4]),
        Layout::Blocks {
            side: [4; 3],
            origins: &origins,
        },
    ];
    let (relative, floor) = (1e-2, 1e-3);
    let bounds = [
        ErrorBound::Relative(relative),
        ErrorBound::RelativeAbove { relative, floor },
        ErrorBound::Absolute(1e-3),
        ErrorBound::Bits(4),
    ];
    let mut all = Vec::new();
    for (bound, layout) in bounds
        .iter()
        .flat_map(|b| layouts.iter().map(move |l| (*b, l)))
    {
        let count = match layout {
            Layout::Array(shape) | Layout::PaddedArray { shape, .. } => shape.iter().product(),
            _ => 64 * origins.len(),
        };
        let values: Vec<T> = (0..count).map(|i| T::from_f64(value(i, bound))).collect();
        let params = tune(&values, layout, bound).unwrap();
        for params in [
            params,
            params.with_level_contexts(),
            params.with_bit_packing(),
            params.with_packets(3),
        ] {
            let workspace = &mut Workspace::default();
            let stream = encode(&values, layout, bound, Some(params), workspace);
            all.push((stream.unwrap(), count));
        }
    }
    all
}

fn is_error(stream: &[u8], count: usize, workspace: &mut Workspace<f32>) -> bool {
    decode(stream, &mut vec![0f32; count], workspace).is_err()
}

/// Reads a variable-length number at an index of a stream, and advances the index.
fn number(stream: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = *stream.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Repairs the checksums of the head and the level packets of a stream, as far as their lengths are valid.
fn repair_packets(stream: &mut [u8]) -> Option<()> {
    let count = usize::from(*stream.get(3)? >> 6) + 1;
    let mut at = 4;
    if count == 1 {
        return None;
    }
    let head = number(stream, &mut at)?;
    let mut lengths = vec![];
    for _ in 0..count {
        lengths.push(number(stream, &mut at)?.checked_add(number(stream, &mut at)?)?);
    }
    let (mut begin, mut end) = (0, at.checked_add(head)?);
    for length in lengths.into_iter().map(Some).chain([None]) {
        let checksum = crc32c(stream.get(begin..end)?).to_le_bytes();
        stream
            .get_mut(end..)?
            .first_chunk_mut::<4>()
            .map(|to| *to = checksum)?;
        begin = end + 4;
        end = begin.checked_add(length?)?;
    }
    Some(())
}

/// Repairs all checksums of a stream.
fn repair_checksums(stream: &mut [u8]) {
    repair_packets(stream);
    if let Some((body, checksum)) = stream.split_last_chunk_mut::<4>() {
        *checksum = crc32c(body).to_le_bytes();
    }
}

fn truncations_and_flipped_bits() {
    let workspace = &mut Workspace::default();
    for (mut stream, count) in samples() {
        assert!(!is_error(&stream, count, workspace));
        for length in 0..stream.len() {
            assert!(
                is_error(&stream[..length], count, workspace),
                "cut to {length}"
            );
            assert!(inspect(&stream[..length]).is_err());
        }
        for bit in 0..8 * stream.len() {
            stream[bit / 8] ^= 1 << (bit % 8);
            assert!(is_error(&stream, count, workspace), "bit {bit}");
            assert!(inspect(&stream).is_err());
            stream[bit / 8] ^= 1 << (bit % 8);
        }
        stream.push(0);
        assert!(is_error(&stream, count, workspace));
    }
}

/// Truncated streams with a valid checksum are errors too, because all sections state their lengths.
fn truncations_with_a_checksum() {
    let workspace = &mut Workspace::default();
    for (stream, count) in samples() {
        for length in 4..stream.len() {
            let mut cut = stream[..length].to_vec();
            repair_checksums(&mut cut);
            assert!(is_error(&cut, count, workspace), "cut to {length}");
        }
    }
}

fn mutate(stream: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(stream.len());
        // Damage at the beginning is the most interesting.
        let at = if random.below(2) == 0 {
            at.min(random.below(60))
        } else {
            at
        };
        match random.below(7) {
            0 => stream[at] ^= 1 << random.below(8),
            1 => stream[at] = random.below(256) as u8,
            2 => stream[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => stream.insert(at, random.below(256) as u8),
            4 => drop(stream.remove(at)),
            5 => {
                let n = random.below(12).min(stream.len() - at);
                stream[at..at + n].fill(0xff);
            }
            _ => {
                let from = random.below(other.len());
                let n = random
                    .below(40)
                    .min(other.len() - from)
                    .min(stream.len() - at);
                stream[at..at + n].copy_from_slice(&other[from..from + n]);
            }
        }
    }
    repair_checksums(stream);
}

/// Decodes damaged streams with valid checksums. Returns the number of errors.
fn mutations(rounds: usize, seed: u64) -> usize {
    let (samples, mut random) = (samples(), Random(seed));
    let mut errors = 0;
    for _ in 0..rounds {
        let (stream, count) = &samples[random.below(samples.len())];
        let mut stream = stream.clone();
        mutate(
            &mut stream,
            &samples[random.below(samples.len())].0,
            &mut random,
        );
        let count = if random.below(20) == 0 {
            random.below(5000)
        } else {
            *count
        };
        errors += usize::from(decode_damaged::<f32>(&stream, count));
    }
    errors
}

/// Decodes a damaged stream with valid checksums, and checks the used memory. Returns whether it was an error.
fn decode_damaged<T: Element>(stream: &[u8], count: usize) -> bool {
    let (mut out, mut workspace) = (vec![T::default(); count], Workspace::default());
    let before = ALLOCATED.load(Relaxed);
    PEAK.store(before, Relaxed);
    let _ = inspect(stream);
    let is_error = decode(stream, &mut out, &mut workspace).is_err();
    for level in 1..=3 {
        let _ = prefix(stream, level);
        for share in [2, 4, 8] {
            let out = &mut out[..count / share];
            let _ = decode_prefix(stream, level, out, &mut workspace);
        }
    }
    let used = PEAK.load(Relaxed) - before;
    // Tables take 0.4 MB. Thin regions have more padding than points.
    assert!(
        used < (1 << 20).max(250 * count),
        "{used} bytes for {count} values"
    );
    is_error
}

/// Header and prelude (mapping, exceptions, minimum) with each bit flipped, and with extreme numbers at each offset, give
/// errors or values.
fn preludes<T: Element>() {
    let numbers = [
        0.0,
        -0.0,
        5e-324,
        f64::MIN_POSITIVE,
        0.5,
        1.0,
        -1.0,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    let (mut errors, mut others) = (0, 0);
    for (stream, count) in samples_of_bounds::<T>() {
        let end = (stream.len() - 4).min(120);
        let mut check = |stream: &mut Vec<u8>| {
            repair_checksums(stream);
            let is_error = decode_damaged::<T>(stream, count);
            errors += usize::from(is_error);
            others += usize::from(!is_error);
        };
        for bit in 8..8 * end {
            let mut damaged = stream.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            check(&mut damaged);
        }
        for at in 4..end - 8 {
            for number in numbers {
                let mut damaged = stream.clone();
                damaged[at..at + 8].copy_from_slice(&number.to_le_bytes());
                check(&mut damaged);
            }
        }
    }
    assert!(errors > 1000 && others > 1000, "{errors} {others}");
}

/// A mapping whose numbers are out of range is an error.
fn mappings_out_of_range() {
    let (streams, mut found) = (samples_of_bounds::<f64>(), 0);
    for (stream, count) in streams.iter().filter(|(stream, _)| stream[2] >> 2 & 3 == 2) {
        let packets = stream[3] >> 6;
        if packets > 0 {
            continue;
        }
        found += 1;
        let with = |field: usize, number: f64| {
            let mut changed = stream.clone();
            changed[4 + 8 * field..][..8].copy_from_slice(&number.to_le_bytes());
            repair_checksums(&mut changed);
            decode_damaged::<f64>(&changed, *count)
        };
        for invalid in [f64::NAN, f64::INFINITY, -1.0, f64::MIN] {
            assert!((0..3).all(|field| with(field, invalid)), "{invalid}");
        }
        assert!(with(0, 0.0) && with(0, 1.0) && with(2, 0.0) && with(2, 5e-324));
        assert!(!with(0, 0.5) && !with(1, 0.0) && !with(1, f64::MAX));
        assert!(!with(2, f64::MIN_POSITIVE) && !with(2, f64::MAX));
    }
    assert!(found > 3, "{found}");
}

/// Blocks at positions where each cut separates only one of them.
fn scattered_blocks(n: usize) {
    let mut origins: Vec<[i64; 3]> = Vec::new();
    let (mut at, mut gap) = (-(1 << 20), (1 << 21) / n as i64 * 2 - 4);
    while origins.len() < n && at < 1 << 20 {
        origins.push([0, 0, at]);
        (at, gap) = (at + gap, (gap - (origins.len() % 2) as i64).max(3));
    }
    let values = vec![1f32; origins.len()];
    let layout = Layout::Blocks {
        side: [1; 3],
        origins: &origins,
    };
    let stream = encode(&values, &layout, 0.0, None, &mut Workspace::default()).unwrap();
    assert!(!is_error(&stream, values.len(), &mut Workspace::default()));
}

/// Held by each test, because allocations are counted for all threads.
static SERIAL: Mutex<()> = Mutex::new(());

#[test]
fn damage_gives_errors() {
    let _serial = SERIAL.lock();
    truncations_and_flipped_bits();
    truncations_with_a_checksum();
    let errors = mutations(
        if cfg!(debug_assertions) {
            5_000
        } else {
            40_000
        },
        1,
    );
    assert!(errors > 3_000, "only {errors} errors");
    scattered_blocks(4000);
}

#[test]
fn damaged_preludes_give_errors_or_values() {
    let _serial = SERIAL.lock();
    preludes::<f32>();
    preludes::<f64>();
    mappings_out_of_range();
}

/// As [`damage_gives_errors`], with more mutations.
#[test]
#[ignore = "part of the campaign: minutes"]
fn many_mutations_give_errors() {
    let _serial = SERIAL.lock();
    for seed in 2..40 {
        assert!(mutations(100_000, seed) > 50_000);
    }
}
