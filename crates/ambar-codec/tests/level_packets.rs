//! Level packets: a prefix of a stream decodes to every second, fourth or eighth value of each dimension.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use ambar_codec::{Element, EncoderParams, LENGTHS_BYTES, Layout, Prefix, Workspace};
use ambar_codec::{MAX_PREFIX_LEVEL, decode, decode_prefix, encode, prefix, tune, tune_small};

fn values<T: Element>(count: usize, kind: usize) -> Vec<T> {
    let mut noise = 1u32;
    (0..count)
        .map(|i| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let smooth = (i as f64 * 0.05).sin() + f64::from(noise >> 16) * 1e-6;
            match kind {
                1 if i / 30 % 4 == 1 => T::from_f64(f64::NAN),
                _ if noise >> 8 & 255 == 7 => T::from_f64(f64::INFINITY),
                _ => T::from_f64(smooth),
            }
        })
        .collect()
}

/// Every `2^level`th value of an array in C order.
fn strided<T: Copy>(values: &[T], shape: &[usize], level: u32) -> Vec<T> {
    let Some((n, inner)) = shape.split_first() else {
        return vec![values[0]];
    };
    let size = inner.iter().product::<usize>();
    (0..*n)
        .step_by(1 << level)
        .flat_map(|k| strided(&values[k * size..][..size], inner, level))
        .collect()
}

/// The expected values; `None` if blocks have no such lattice.
fn expected<T: Copy>(values: &[T], layout: &Layout<'_>, level: u32) -> Option<Vec<T>> {
    match layout {
        Layout::Array([n, inner @ ..]) if inner.len() == 3 => {
            let parts = values.chunks_exact(values.len() / n);
            Some(parts.flat_map(|part| strided(part, inner, level)).collect())
        }
        Layout::Array(shape) => Some(strided(values, shape, level)),
        Layout::Blocks { side, .. } => {
            let size = side.iter().product();
            let fits = side.iter().all(|n| *n == 1 || n % (1 << level) == 0);
            let blocks = values.chunks_exact(size);
            fits.then(|| {
                blocks
                    .flat_map(|block| strided(block, side, level))
                    .collect()
            })
        }
        Layout::PaddedArray { .. } | Layout::Cells { .. } => None,
    }
}

fn params_list<T: Element>(values: &[T], layout: &Layout<'_>, bound: f64) -> [EncoderParams; 3] {
    let small = tune_small(values, layout, bound).unwrap();
    [
        small,
        tune(values, layout, bound).unwrap(),
        small.with_level_contexts(),
    ]
}

fn words<T: Element>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.to_word()).collect()
}

/// Returns how many prefixes the streams of different parameters have.
fn check<T: Element>(layout: &Layout<'_>, count: usize) -> usize {
    let mut prefixes = 0;
    let workspace = &mut Workspace::<T>::default();
    for (kind, bound) in [(0, 0.0), (0, 1e-4), (0, 0.05), (1, 0.0), (1, 1e-3)] {
        let values = values::<T>(count, kind);
        for params in params_list(&values, layout, bound) {
            let encode = |packets, workspace: &mut Workspace<T>| {
                let params = Some(params.with_packets(packets));
                encode(&values, layout, bound, params, workspace).unwrap()
            };
            let mut whole = vec![T::from_f64(7.0); count];
            decode(&encode(1, workspace), &mut whole, workspace).unwrap();
            for packets in 2..=4 {
                let stream = encode(packets, workspace);
                let mut out = vec![T::from_f64(7.0); count];
                decode(&stream, &mut out, workspace).unwrap();
                assert_eq!(words(&out), words(&whole), "{layout:?} {bound} {packets}");
                for level in 1..=MAX_PREFIX_LEVEL {
                    prefixes +=
                        usize::from(check_prefix(&stream, layout, &whole, level, workspace));
                }
            }
        }
    }
    prefixes
}

/// Returns whether the stream has a prefix: separate planes and rows have one packet.
fn check_prefix<T: Element>(
    stream: &[u8],
    layout: &Layout<'_>,
    whole: &[T],
    level: u32,
    workspace: &mut Workspace<T>,
) -> bool {
    let head = &stream[..stream.len().min(LENGTHS_BYTES)];
    let Some(Prefix { length, is_blocks }) = prefix(head, level).unwrap() else {
        assert!(matches!(layout, Layout::Array(_)));
        return false;
    };
    assert_eq!(is_blocks, matches!(layout, Layout::Blocks { .. }));
    assert!(length < stream.len() - 4);
    let Some(expected) = expected(whole, layout, level) else {
        let out = &mut [T::from_f64(0.0)];
        assert!(decode_prefix(stream, level, out, workspace).is_err());
        return true;
    };
    let mut out = vec![T::from_f64(7.0); expected.len()];
    for beginning in [&stream[..length], stream] {
        decode_prefix(beginning, level, &mut out, workspace).unwrap();
        assert_eq!(words(&out), words(&expected), "{layout:?} {level}");
    }
    for short in [length - 1, length / 2, 5, 0] {
        assert!(decode_prefix(&stream[..short], level, &mut out, workspace).is_err());
    }
    let mut other = vec![T::from_f64(7.0); expected.len() + 1];
    assert!(decode_prefix(stream, level, &mut other, workspace).is_err());
    true
}

#[test]
fn arrays() {
    let mut prefixes = 0;
    let shapes: [&[usize]; 9] = [
        &[1],
        &[300],
        &[31, 40],
        &[1, 90],
        &[17, 12, 21],
        &[3, 2, 150],
        &[32, 16, 16],
        &[5, 9, 8, 13],
        &[2, 1, 30, 1],
    ];
    for shape in shapes {
        let count = shape.iter().product();
        prefixes += check::<f32>(&Layout::Array(shape), count);
        prefixes += check::<f64>(&Layout::Array(shape), count);
    }
    // Of five values, three parameters, three numbers of packets and five levels.
    assert!(
        prefixes > shapes.len() * 2 * 5 * 3 * 3 * 5 / 2,
        "{prefixes}"
    );
}

/// Blocks along the Morton curve, without those with some indices.
fn blocks(side: [usize; 3], number: i64, holes: &[i64]) -> Vec<[i64; 3]> {
    (0..number)
        .filter(|n| !holes.contains(n))
        .map(|n| {
            let part = |d: u32| {
                (0..4)
                    .map(|bit| (n >> (3 * bit + d) & 1) << bit)
                    .sum::<i64>()
            };
            let place = [part(2), part(1), part(0)];
            [0, 1, 2].map(|d| place[d] * side[d] as i64)
        })
        .collect()
}

#[test]
fn blocks_with_and_without_holes() {
    for side in [[8; 3], [4; 3], [16; 3], [4, 8, 8], [6, 4, 4]] {
        for holes in [&[][..], &[5], &[1, 2, 9, 17]] {
            let origins = blocks(side, 24, holes);
            let layout = Layout::Blocks {
                side,
                origins: &origins,
            };
            check::<f32>(&layout, origins.len() * side.iter().product::<usize>());
        }
    }
}

#[test]
fn blocks_of_fewer_dimensions() {
    for side in [[1, 8, 8], [1, 1, 16]] {
        let places = blocks([1; 3], 64, &[6]).into_iter();
        let origins: Vec<[i64; 3]> = places
            .filter(|place| (0..3).all(|d| side[d] > 1 || place[d] == 0))
            .map(|place| [0, 1, 2].map(|d| place[d] * side[d] as i64))
            .collect();
        let layout = Layout::Blocks {
            side,
            origins: &origins,
        };
        check::<f64>(&layout, origins.len() * side.iter().product::<usize>());
    }
}

/// Damage of a packet is detected if the packet is decoded, and only then.
#[test]
fn damaged_packets_are_refused() {
    let shape = [20, 18, 25];
    let (layout, workspace) = (Layout::Array(&shape), &mut Workspace::default());
    let values = values::<f32>(9000, 0);
    for params in params_list(&values, &layout, 1e-3) {
        let params = Some(params.with_packets(4));
        let mut stream = encode(&values, &layout, 1e-3, params, workspace).unwrap();
        let lengths = [1, 2, 3].map(|level| prefix(&stream, level).unwrap().unwrap().length);
        assert!(lengths[0] > lengths[1] && lengths[1] > lengths[2]);
        let sizes = [1, 2, 3].map(|level| strided(&values, &shape, level).len());
        for at in (0..stream.len()).step_by(7).chain([0, 1, 2, 3, 4]) {
            stream[at] ^= 0x10;
            for level in [1, 2, 3] {
                let mut out = vec![0f32; sizes[level - 1]];
                let result = decode_prefix(&stream, level as u32, &mut out, workspace);
                assert_eq!(result.is_err(), at < lengths[level - 1], "{level} {at}");
            }
            assert!(decode(&stream, &mut vec![0f32; 9000], workspace).is_err());
            stream[at] ^= 0x10;
        }
    }
}

/// A stream of many values does not take their memory for a few of them.
#[test]
fn coarser_levels_than_the_packets_have_are_refused() {
    let (values, workspace) = (vec![1.5f32; 4096], &mut Workspace::default());
    let layout = Layout::Array(&[4096]);
    let params = Some(EncoderParams::default().with_packets(2));
    let stream = encode(&values, &layout, 1e-3, params, workspace).unwrap();
    for level in 1..=MAX_PREFIX_LEVEL {
        let mut out = vec![0f32; 4096 >> level];
        decode_prefix(&stream, level, &mut out, workspace).unwrap();
    }
    for level in [MAX_PREFIX_LEVEL + 1, 40, u32::MAX] {
        let error = decode_prefix(&stream, level, &mut [0f32], workspace).unwrap_err();
        assert!(error.to_string().contains("expected at most 3"), "{error}");
    }
}

/// Only large streams are split, which adds at most 0.5 %.
#[test]
fn packets_are_a_small_part_of_streams() {
    for (n, split) in [(8, false), (64, true)] {
        let shape = [n; 3];
        let layout = Layout::Array(&shape);
        let values = values::<f32>(n * n * n, 0);
        let workspace = &mut Workspace::default();
        let params = tune(&values, &layout, 1e-4).unwrap();
        let one = encode(
            &values,
            &layout,
            1e-4,
            Some(params.with_packets(1)),
            workspace,
        )
        .unwrap();
        let some = encode(&values, &layout, 1e-4, Some(params), workspace).unwrap();
        assert_eq!(prefix(&some, 1).unwrap().is_some(), split);
        assert!(some.len() * 1000 <= one.len() * 1005);
        assert_eq!(prefix(&one, 1).unwrap(), None);
        let error = decode_prefix(&one, 1, &mut vec![0f32; (n / 2).pow(3)], workspace);
        assert!(error.is_err());
    }
}
