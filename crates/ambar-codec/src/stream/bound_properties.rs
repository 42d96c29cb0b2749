//! Properties of all kinds of error bounds, for all kinds of values, layouts and modes.

use crate::bound::exact;
use crate::stream::params::EncoderParams;
use crate::stream::properties::{KINDS, Random, blocks, shape, value};
use crate::{
    Element, ErrorBound, Layout, Workspace, decode, encode, inspect, tune, tune_fast, tune_small,
};
use proptest::prelude::*;

/// The bits of `2^2148 * mantissa * 2^exponent`, the lowest word first: exact for products of two float64 numbers.
fn fixed_point(mantissa: u128, exponent: i32) -> Vec<u32> {
    let mut words = vec![0u32; 140];
    let at = (exponent + 2148) as usize;
    for bit in (0..128).filter(|bit| mantissa >> bit & 1 == 1) {
        words[(at + bit) / 32] |= 1 << ((at + bit) % 32);
    }
    words
}

/// The mantissa and exponent of a finite number.
fn parts(x: f64) -> (u128, i32) {
    let (field, low) = (
        (x.to_bits() >> 52 & 0x7ff) as i32,
        x.to_bits() & ((1 << 52) - 1),
    );
    if field == 0 {
        (u128::from(low), -1074)
    } else {
        (u128::from(low | 1 << 52), field - 1075)
    }
}

fn add(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut carry = 0;
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| {
            let sum = u64::from(*a) + u64::from(*b) + carry;
            carry = sum >> 32;
            sum as u32
        })
        .collect()
}

/// Whether `|b - a| <= factor * size`, in integer arithmetic.
fn is_within(a: f64, b: f64, factor: f64, size: f64) -> bool {
    if !b.is_finite() {
        return a.to_bits() == b.to_bits();
    }
    let [a, b] = if a < b { [a, b] } else { [b, a] };
    let ((m, e), (n, f)) = (parts(factor), parts(size));
    let product = fixed_point(m * n, e + f);
    let of = |x: f64| fixed_point(parts(x).0, parts(x).1);
    // larger <= smaller + product, where negative terms move to the other side.
    let (mut left, mut right) = (vec![0; 140], product);
    let sides = [(b, b >= 0.0), (a, a < 0.0)];
    for (x, is_left) in sides {
        if is_left {
            left = add(&left, &of(x));
        } else {
            right = add(&right, &of(x));
        }
    }
    left.iter().rev().le(right.iter().rev())
}

#[test]
fn the_oracle_and_the_comparison_agree() {
    let random = &mut Random(3);
    for i in 0..20_000 {
        let a: f64 = value([1, 4, 13, 12, 14][i % 5], i, random, 1.0);
        if !a.is_finite() {
            continue;
        }
        for factor in [1e-3, 0.3, 1e-9, 2f64.powi(-20)] {
            for b in [a + factor * a, a - factor * a, a, 0.0, a * (1.0 + factor)] {
                for b in [b, b.next_up(), b.next_down()] {
                    let exact = is_within(a, b, factor, a.abs());
                    let found = exact::within_product(a, b, factor, a.abs());
                    assert!(
                        exact == found || !found && a.abs() < 1e-280,
                        "{a:e} {b:e} {factor}"
                    );
                }
            }
        }
    }
}

/// Rounds to a number of mantissa bits, as numcodecs' BitRound does.
fn bit_rounded<T: Element>(x: T, bits: u32) -> T {
    let all = if T::SIZE == 4 { 23 } else { 52 };
    if bits >= all || !x.to_f64().is_finite() {
        return x;
    }
    let (word, drop) = (x.to_word(), all - bits);
    let half = ((word >> drop) & 1) + (u64::MAX >> (64 - drop) >> 1);
    let rounded = T::from_word((word + half) & (u64::MAX << drop));
    if rounded.to_f64().is_finite() {
        rounded
    } else {
        x
    }
}

/// Bounds of each kind.
fn bounds() -> impl Strategy<Value = ErrorBound> {
    let relative = prop_oneof![
        Just(1e-3),
        Just(0.9999),
        Just(0.5),
        Just(1e-7),
        Just(1e-16),
        Just(1e-300),
        1e-6..1.0f64
    ];
    let floor = prop_oneof![
        Just(1.0),
        Just(5e-324),
        Just(1e-310),
        Just(1e-40),
        Just(1e300),
        1e-6..10.0f64
    ];
    let magnitude = prop_oneof![Just(1e-3), Just(1e-320), Just(1e300), 1e-6..10.0f64];
    prop_oneof![
        1 => Just(ErrorBound::Lossless),
        2 => magnitude.clone().prop_map(ErrorBound::Absolute),
        4 => relative.clone().prop_map(ErrorBound::Relative),
        4 => (relative, floor).prop_map(|(relative, floor)| ErrorBound::RelativeAbove { relative, floor }),
        2 => (1u32..=52).prop_map(ErrorBound::Bits),
        1 => magnitude.prop_map(ErrorBound::Rms),
    ]
}

fn check_values<T: Element>(values: &[T], decoded: &[T], bound: ErrorBound) {
    let sizes = values.iter().map(|x| x.to_f64());
    let least = sizes.filter(|x| !x.is_nan()).fold(f64::INFINITY, f64::min);
    let (mut squares, mut finite) = (0.0, 0);
    for (i, (original, out)) in values.iter().zip(decoded).enumerate() {
        let (a, b) = (original.to_f64(), out.to_f64());
        let what = || format!("{bound}, value {i}: {original:?} came back as {out:?}");
        if !a.is_finite() {
            assert_eq!(original.to_word(), out.to_word(), "{}", what());
            continue;
        }
        finite += 1;
        assert!(!(least > 0.0 && b <= 0.0), "{}", what());
        assert!(!(least >= 0.0 && b < 0.0), "{}", what());
        let is_satisfied = match bound {
            ErrorBound::Lossless => original.to_word() == out.to_word(),
            ErrorBound::Absolute(bound) => is_within(a, b, 1.0, bound),
            ErrorBound::Relative(relative) => {
                assert!(
                    a == b || a.is_sign_negative() == b.is_sign_negative(),
                    "{}",
                    what()
                );
                is_within(a, b, relative, a.abs())
            }
            ErrorBound::RelativeAbove { relative, floor } => {
                is_within(a, b, relative, a.abs().max(floor))
            }
            ErrorBound::Bits(bits) => {
                let rounded = bit_rounded(*original, bits);
                rounded.to_word() == out.to_word() || rounded.to_f64() == 0.0 && a > 0.0 && b <= a
            }
            ErrorBound::Rms(root) => {
                squares += ((a - b) / root).powi(2);
                true
            }
            ErrorBound::OfRange(_) | ErrorBound::Psnr(_) => false,
        };
        assert!(is_satisfied, "{}", what());
        assert!(bound.is_satisfied(a, b) || a.abs() < 1e-280, "{}", what());
    }
    assert!(
        squares <= f64::from(finite),
        "{bound}: {squares} of {finite}"
    );
}

/// The settings of a case.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// The number of a kind of values.
    kind: u8,
    /// Which signs values have, by number.
    sign: u8,
    bound: ErrorBound,
}

fn settings() -> impl Strategy<Value = Settings> {
    (0..KINDS, 0u8..3, bounds()).prop_map(|(kind, sign, bound)| Settings { kind, sign, bound })
}

/// Encodes and decodes values of a kind, and checks the bound.
fn check<T: Element>(
    layout: &Layout<'_>,
    count: usize,
    Settings { kind, sign, bound }: Settings,
    mode: u8,
    seed: u64,
) {
    let random = &mut Random(seed);
    let value = |i: usize| {
        let x: T = value(kind, i, random, 1e-3);
        match sign % 3 {
            0 => x,
            1 => x.magnitude(),
            _ if x.to_f64() == 0.0 => T::from_f64(2.5),
            _ => x.magnitude(),
        }
    };
    let values: Vec<T> = (0..count).map(value).collect();
    let params = match mode {
        0 => None,
        1 => Some(tune_fast(&values, layout, bound).unwrap()),
        2 => Some(EncoderParams::default().with_bit_packing()),
        _ => Some(EncoderParams::numbered(mode % 192)),
    };
    let mut workspace = Workspace::default();
    let stream = encode(&values, layout, bound, params, &mut workspace).unwrap();
    let mut out = vec![T::from_f64(0.125); count];
    decode(&stream, &mut out, &mut workspace).unwrap();
    check_values(&values, &out, bound);
    let info = inspect(&stream).unwrap();
    assert_eq!((info.values, info.value_size), (count, T::SIZE));
    assert!(!info.bound.needs_range());
}

fn check_type(
    layout: &Layout<'_>,
    count: usize,
    settings: Settings,
    (mode, is_float64): (u8, bool),
    seed: u64,
) {
    if is_float64 {
        check::<f64>(layout, count, settings, mode, seed);
    } else {
        check::<f32>(layout, count, settings, mode, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_in_arrays(
        shape in shape(),
        settings in settings(),
        mode in (0u8..12, any::<bool>()),
        seed: u64,
    ) {
        check_type(&Layout::Array(&shape), shape.iter().product(), settings, mode, seed);
    }

    #[test]
    fn bounds_hold_in_blocks(
        pattern in (any::<u8>(), any::<u8>()),
        settings in settings(),
        mode in (0u8..12, any::<bool>()),
        seed: u64,
    ) {
        let (side, origins) = blocks(pattern.0, pattern.1, &mut Random(seed));
        let count = origins.len() * side.iter().product::<usize>();
        check_type(&Layout::Blocks { side, origins: &origins }, count, settings, mode, seed);
    }
}

/// A field of many orders of magnitude, like the density of a cosmological simulation.
fn density<T: Element>(side: usize) -> Vec<T> {
    let value = |i: usize| {
        let [z, y, x] = [i / side / side, i / side % side, i % side].map(|n| n as f64 * 0.2);
        T::from_f64((3.0 * (x.sin() + (1.3 * y).cos() + (0.7 * z).sin())).exp() * 1e-27)
    };
    (0..side * side * side).map(value).collect()
}

fn sizes<T: Element>(bounds: &[&str]) -> Vec<usize> {
    let values: Vec<T> = density(32);
    let size = |bound: &&str| {
        let bound: ErrorBound = bound.parse().unwrap();
        let layout = Layout::Array(&[32, 32, 32]);
        let mut workspace = Workspace::default();
        let stream = encode(&values, &layout, bound, None, &mut workspace).unwrap();
        let mut out = vec![T::default(); values.len()];
        decode(&stream, &mut out, &mut workspace).unwrap();
        check_values(&values, &out, bound);
        stream.len()
    };
    bounds.iter().map(size).collect()
}

#[test]
fn relative_bounds_of_smooth_fields_are_small() {
    let bounds = [
        "1e-3 relative",
        "9 bits",
        "1e-3 relative above 1e-26",
        "lossless",
    ];
    for sizes in [sizes::<f32>(&bounds), sizes::<f64>(&bounds)] {
        assert!(2 * sizes[0] < sizes[1], "{sizes:?}");
        assert!(sizes[2] < sizes[1], "{sizes:?}");
        assert!(2 * sizes[1] < sizes[3], "{sizes:?}");
    }
}

#[test]
fn positive_values_smaller_than_the_bound_stay_positive() {
    let values: Vec<f32> = density(16);
    let layout = Layout::Array(&[16, 16, 16]);
    for params in [
        None,
        Some(
            EncoderParams::default()
                .with_level_contexts()
                .with_bit_packing(),
        ),
    ] {
        let mut workspace = Workspace::default();
        let stream = encode(&values, &layout, 1e-24, params, &mut workspace).unwrap();
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        assert_eq!(inspect(&stream).unwrap().minimum, Some(f64::from(least)));
        let mut out = vec![0f32; values.len()];
        decode(&stream, &mut out, &mut workspace).unwrap();
        assert!(out.iter().all(|x| *x >= least));
        assert!(out.contains(&least));
        let stream = encode(&values, &layout, 1e-40, params, &mut workspace).unwrap();
        assert_eq!(inspect(&stream).unwrap().minimum, None);
    }
}

#[test]
fn the_mean_squared_error_is_close_to_its_bound() {
    let values: Vec<f64> = density(32);
    let layout = Layout::Array(&[32, 32, 32]);
    let range = values.iter().fold([f64::INFINITY, 0.0], |[low, high], x| {
        [low.min(*x), high.max(*x)]
    });
    for decibels in [30.0, 60.0, 90.0] {
        let bound = ErrorBound::Psnr(decibels).resolve(range);
        let mut workspace = Workspace::default();
        let stream = encode(&values, &layout, bound, None, &mut workspace).unwrap();
        let mut out = vec![0.0; values.len()];
        decode(&stream, &mut out, &mut workspace).unwrap();
        let squares: f64 = values
            .iter()
            .zip(&out)
            .map(|(a, b)| (a - b) * (a - b))
            .sum();
        let rms = (squares / values.len() as f64).sqrt();
        let found = 20.0 * ((range[1] - range[0]) / rms).log10();
        // A stream with smaller errors can be shorter than one at the bound.
        assert!(
            (decibels..decibels + 2.5).contains(&found),
            "{decibels}: {found}"
        );
    }
}

/// The search for the widest bins tries bounds that are far larger than the allowed error.
#[test]
fn mean_squared_errors_of_the_largest_values_are_bounded() {
    // Without a limit, bounds of these values would overflow.
    for seed in [64, 199, 261] {
        let random = &mut Random(seed);
        let values = (0..4096).map(|_| {
            let exponent = 600.0 * random.unit() - 300.0;
            (random.unit() - 0.5).signum() * 10f64.powf(exponent)
        });
        let values: Vec<f64> = values.collect();
        let largest = values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let most = [8e299, 9e299, 1.7e308][seed as usize % 3];
        let values: Vec<f64> = values.iter().map(|x| x / largest * most).collect();
        let range = values
            .iter()
            .fold([0.0f64; 2], |[low, high], x| [low.min(*x), high.max(*x)]);
        let decibels = [40.0, 80.0, 120.0][seed as usize / 3 % 3];
        let bound = ErrorBound::Psnr(decibels).resolve(range);
        let root = 2.0 * 10f64.powf(-decibels / 20.0) * (range[1] / 2.0 - range[0] / 2.0);
        for tune in [tune, tune_small, tune_fast] {
            let (layout, mut workspace) = (Layout::Array(&[8; 3]), Workspace::default());
            // The parameters of one chunk, as in a store.
            let params = tune(&values[..512], &layout, bound).unwrap();
            for chunk in values.chunks_exact(512) {
                let stream = encode(chunk, &layout, bound, Some(params), &mut workspace).unwrap();
                let mut out = vec![0.0; chunk.len()];
                decode(&stream, &mut out, &mut workspace).unwrap();
                let pairs = chunk.iter().zip(&out);
                let squares: f64 = pairs.map(|(a, b)| (a / root - b / root).powi(2)).sum();
                assert!(
                    squares <= 512.0,
                    "seed {seed}, {decibels} dB of {most:e}: {squares}"
                );
            }
        }
    }
}

#[test]
fn infinite_values_do_not_narrow_bins() {
    let random = &mut Random(5);
    let mut values: Vec<f64> = (0..4096).map(|i| value(4, i, random, 1e-3)).collect();
    values
        .iter_mut()
        .step_by(20)
        .for_each(|x| *x = f64::NEG_INFINITY);
    let layout = Layout::Array(&[64, 64]);
    for params in [None, Some(EncoderParams::default().with_level_contexts())] {
        let (root, mut workspace) = (0.01, Workspace::default());
        let stream = encode(
            &values,
            &layout,
            ErrorBound::Rms(root),
            params,
            &mut workspace,
        )
        .unwrap();
        let mut out = vec![0.0; values.len()];
        decode(&stream, &mut out, &mut workspace).unwrap();
        let pairs = values.iter().zip(&out).filter(|(a, _)| a.is_finite());
        let squares: f64 = pairs.map(|(a, b)| ((a - b) / root).powi(2)).sum();
        let finite = values.iter().filter(|x| x.is_finite()).count() as f64;
        assert!(
            (0.8 * finite..=finite).contains(&squares),
            "{squares} of {finite}"
        );
    }
}

#[test]
fn padding_does_not_count_in_mean_squared_errors() {
    let random = &mut Random(7);
    let layout = Layout::Array(&[64, 64]);
    for held in [1, 5, 64, 1000, 4096] {
        let mut values: Vec<f64> = (0..4096).map(|i| value(4, i, random, 1e-3)).collect();
        values[held..].fill(0.25);
        let root = 0.01;
        let bounds = [
            ErrorBound::Rms(root).of_padded(&values),
            ErrorBound::Rms(root).with_padding(held, 4096 - held),
        ];
        for bound in bounds {
            let mut workspace = Workspace::default();
            let stream = encode(&values, &layout, bound, None, &mut workspace).unwrap();
            let mut out = vec![0.0; values.len()];
            decode(&stream, &mut out, &mut workspace).unwrap();
            let pairs = values.iter().zip(&out).take(held);
            let squares: f64 = pairs.map(|(a, b)| ((a - b) / root).powi(2)).sum();
            assert!(squares <= held as f64, "{held}: {squares}");
        }
    }
    let same = [1.0f32; 5];
    assert_eq!(
        ErrorBound::Rms(0.5).of_padded(&same),
        ErrorBound::Absolute(0.5)
    );
    assert_eq!(
        ErrorBound::Rms(0.5).of_padded::<f32>(&[]),
        ErrorBound::Rms(0.5)
    );
    assert_eq!(ErrorBound::Bits(3).of_padded(&same), ErrorBound::Bits(3));
}

#[test]
fn bounds_that_need_a_range_are_refused() {
    let layout = Layout::Array(&[3]);
    for bound in [ErrorBound::OfRange(0.1), ErrorBound::Psnr(50.0)] {
        let error = encode(
            &[1.0f32; 3],
            &layout,
            bound,
            None,
            &mut Workspace::default(),
        );
        assert!(error.unwrap_err().to_string().contains("value range"));
    }
}
