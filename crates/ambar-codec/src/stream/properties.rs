//! Properties for all kinds of values, layouts, absolute bounds and encoder parameters: first of all, the bound holds.

use crate::stream::params::EncoderParams;
use crate::{Element, Error, ErrorBound, Info, Layout, Workspace, decode, encode, inspect, tune};
use proptest::prelude::*;

/// Reproducible random numbers (SplitMix64).
#[derive(Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The number of kinds of values.
pub(crate) const KINDS: u8 = 17;

pub(crate) fn value<T: Element>(kind: u8, i: usize, random: &mut Random, bound: f64) -> T {
    let x = i as f64;
    let smooth = (x * 0.05).sin() * 3.0 + (x * 0.011).cos();
    let bits = 8 * T::SIZE as u32;
    let any = T::from_word(random.next() >> (64 - bits));
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        f64::MIN_POSITIVE,
    ];
    match kind {
        0 => T::from_f64(smooth),
        1 => any,
        2 => T::from_f64(4.25),
        3 => T::from_f64(if (i / 7).is_multiple_of(2) { -1.0 } else { 1e6 }),
        4 => T::from_f64(random.unit()),
        5 => T::from_f64(if i.is_multiple_of(2) { 1.0 } else { -1.0 }),
        // Multiples of the bound, so that errors can equal it.
        6 => T::from_f64(random.below(64) as f64 * bound),
        7 => T::from_f64((random.below(64) as f64 + 0.5) * bound * 2.0),
        8 if random.below(10) == 0 => T::from_f64(special[random.below(6) as usize]),
        // One NaN, in runs or at random.
        9 if i % 50 < 20 => T::from_f64(f64::NAN),
        10 if random.below(3) > 0 => T::from_f64(f64::NAN),
        // NaN and infinities with all payloads and both signs.
        11 if random.below(3) > 0 => {
            let exponent = if T::SIZE == 4 {
                0x7f80_0000
            } else {
                0x7ff0_0000_0000_0000
            };
            T::from_word(any.to_word() | exponent)
        }
        // Denormals; values near overflow.
        12 => T::from_word(random.below(1 << 20)),
        13 => {
            let largest = if T::SIZE == 4 {
                f64::from(f32::MAX)
            } else {
                f64::MAX
            };
            T::from_f64(largest * (random.unit() * 2.0 - 1.0))
        }
        14 => T::from_f64(smooth * 10f64.powi(random.below(60) as i32 - 30)),
        // Values whose lowest bits are 0: of a smaller type; zeros of both signs.
        15 => T::from_f64(f64::from((smooth * 0.3) as f32)),
        16 => T::from_f64(if random.below(3) == 0 { -0.0 } else { 0.0 }),
        _ => T::from_f64(smooth),
    }
}

fn bound_of(kind: u8, random: &mut Random) -> f64 {
    match kind {
        0 | 1 => 0.0,
        2 => f64::from_bits(1),
        3 => 1e-300,
        4 => 1e-46,
        5 => 1e-17,
        6 => 1e-8,
        7 | 8 => 2f64.powi(-10),
        9 => 1e-3 * random.unit(),
        10 => 0.1,
        11 => 1e6,
        12 => 3e38,
        13 => 1e39,
        14 => 1e300,
        _ => f64::MAX,
    }
}
const BOUNDS: u8 = 16;

fn morton(place: [i64; 3]) -> u64 {
    let bit = |n: i64, b: u32| ((n + (1 << 20)) as u64) >> b & 1;
    (0..21).fold(0, |key, b| {
        key | (bit(place[2], b) | bit(place[1], b) << 1 | bit(place[0], b) << 2) << (3 * b)
    })
}

/// The sides of blocks, and sorted origins in one of several patterns.
pub(crate) fn blocks(pattern: u8, side: u8, random: &mut Random) -> ([usize; 3], Vec<[i64; 3]>) {
    let sides = [
        [8; 3],
        [4; 3],
        [1; 3],
        [2, 3, 5],
        [1, 4, 4],
        [1, 1, 7],
        [16; 3],
        [2; 3],
    ];
    let side = sides[usize::from(side) % sides.len()];
    let reach = if side.iter().product::<usize>() > 500 {
        3
    } else {
        5
    };
    let mut places = Vec::new();
    for z in 0..reach {
        for y in 0..reach {
            for x in 0..reach {
                let edge = [z, y, x].iter().any(|n| *n == 0 || *n == reach - 1);
                let keep = match pattern % 5 {
                    0 => true,
                    1 => random.below(3) == 0,
                    2 => edge,
                    3 => z == y && y == x,
                    _ => random.below(8) > 0,
                };
                if keep {
                    places.push([z - 2, y - 1, x]);
                }
            }
        }
    }
    if pattern % 5 == 1 {
        let far = |random: &mut Random| random.below(1 << 21) as i64 - (1 << 20);
        places.extend((0..4).map(|_| std::array::from_fn(|_| far(random))));
        places.extend([[-(1 << 20); 3], [(1 << 20) - 1; 3]]);
    }
    places.sort_by_key(|place| morton(*place));
    places.dedup();
    let origin = |place: &[i64; 3]| std::array::from_fn(|d| place[d] * side[d] as i64);
    (side, places.iter().map(origin).collect())
}

/// Whether two values differ by the bound or less, without rounding errors.
fn within(a: f64, b: f64, bound: f64) -> bool {
    let difference = a - b;
    if difference.abs() != bound {
        return difference.abs() < bound;
    }
    // The rounding error of the difference, by Knuth's two-sum.
    let part = difference - a;
    let rest = (a - (difference - part)) + (-b - part);
    rest == 0.0 || (rest > 0.0) != (difference > 0.0)
}

fn check<T: Element>(values: &[T], layout: &Layout<'_>, bound: f64, params: Option<EncoderParams>) {
    let (mut fresh, mut used) = (Workspace::default(), Workspace::default());
    let stream = encode(values, layout, bound, params, &mut fresh).unwrap();
    // A used workspace must give the same stream.
    let noise: Vec<T> = (0..1331)
        .map(|i| value(1, i, &mut Random(i as u64), 1.0))
        .collect();
    for bound in [0.0, 1.0] {
        encode(
            &noise,
            &Layout::Array(&[11, 11, 11]),
            bound,
            None,
            &mut used,
        )
        .unwrap();
    }
    let again = encode(values, layout, bound, params, &mut used).unwrap();
    assert!(stream == again, "a used workspace gives another stream");
    let mut out = vec![T::from_f64(0.125); values.len()];
    decode(&stream, &mut out, &mut used).unwrap();
    let info = inspect(&stream).unwrap();
    let lossless = Info {
        value_size: T::SIZE,
        values: values.len(),
        bound: ErrorBound::Lossless,
        minimum: info.minimum,
    };
    let bounded = Info {
        bound: bound.into(),
        ..lossless
    };
    assert!(info == lossless || info == bounded);
    for (i, (a, b)) in values.iter().zip(&out).enumerate() {
        let same = a.to_word() == b.to_word();
        assert!(
            same || info.bound != ErrorBound::Lossless && within(a.to_f64(), b.to_f64(), bound),
            "value {i}: {a:?} came back as {b:?}, bound {bound}"
        );
    }
}

/// The settings of a case, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The kind of values.
    pub kind: u8,
    pub bound: u8,
    /// Encoder parameters; `None` lets the encoder choose.
    pub params: Option<u8>,
}

pub(crate) fn check_kind<T: Element>(
    layout: &Layout<'_>,
    count: usize,
    settings: Settings,
    random: &mut Random,
) {
    let bound = bound_of(settings.bound, random);
    let values: Vec<T> = (0..count)
        .map(|i| value(settings.kind, i, random, bound))
        .collect();
    let params = settings.params.map(|params| match params {
        0..192 => EncoderParams::numbered(params),
        _ => EncoderParams::default().with_bit_packing(),
    });
    // Some streams have the last dimension, or two, first.
    let params = params.map(|params| params.with_moved_dimensions((count % 3) as u8));
    check(&values, layout, bound, params);
}

pub(crate) fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        prop::collection::vec(0usize..10, 1..=4),
        (1usize..3000).prop_map(|n| vec![n]),
        (1usize..5, 1usize..5, 1usize..200).prop_map(|(a, b, c)| vec![a, b, c]),
        (1usize..200, 1usize..4, 1usize..4).prop_map(|(a, b, c)| vec![a, b, c]),
        (1usize..3, 1usize..120, 1usize..9).prop_map(|(a, b, c)| vec![a, b, c]),
        (1usize..40, 1usize..40).prop_map(|(a, b)| vec![a, b]),
        (10usize..24, 10usize..24, 10usize..40).prop_map(|(a, b, c)| vec![a, b, c]),
        (1usize..6, 1usize..12, 1usize..12, 1usize..12).prop_map(|(n, a, b, c)| vec![n, a, b, c]),
    ]
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    (0..KINDS, 0..BOUNDS, prop::option::of(any::<u8>())).prop_map(|(kind, bound, params)| {
        Settings {
            kind,
            bound,
            params,
        }
    })
}

fn check_blocks((pattern, side): (u8, u8), settings: Settings, is_float64: bool, seed: u64) {
    let random = &mut Random(seed);
    let (side, origins) = blocks(pattern, side, random);
    let count = origins.len() * side.iter().product::<usize>();
    let layout = Layout::Blocks {
        side,
        origins: &origins,
    };
    if is_float64 {
        check_kind::<f64>(&layout, count, settings, random);
    } else {
        check_kind::<f32>(&layout, count, settings, random);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_holds_in_arrays(shape in shape(), settings in settings(), is_float64: bool, seed: u64) {
        let count = shape.iter().product();
        let (layout, random) = (Layout::Array(&shape), &mut Random(seed));
        if is_float64 {
            check_kind::<f64>(&layout, count, settings, random);
        } else {
            check_kind::<f32>(&layout, count, settings, random);
        }
    }

    #[test]
    fn the_bound_holds_in_blocks(
        (pattern, side) in (any::<u8>(), any::<u8>()), settings in settings(), is_float64: bool, seed: u64,
    ) {
        check_blocks((pattern, side), settings, is_float64, seed);
    }
}

/// Regressions.
#[test]
fn the_bound_holds_in_cases_that_failed() {
    let settings = |kind, bound| Settings {
        kind,
        bound,
        params: None,
    };
    // A bound that underflows to 0 on coarse levels, in blocks with holes.
    check_blocks((56, 14), settings(1, 2), false, 4_266_011_692_729_015_750);
    // Stale tokens of longer rows after the last row of a plane with holes changed the contexts of the next plane, so that
    // they differed from the encoder's.
    check_blocks((1, 222), settings(8, 7), false, 257_807_456_953_673_945);
}

#[test]
fn all_parameters_kinds_and_bounds() {
    let shape = [9, 6, 21];
    for params in (0..64).chain((64..192).step_by(3)) {
        for kind in 0..KINDS {
            // Each combination of parameters and kind gets one bound; all bounds occur.
            let settings = Settings {
                kind,
                bound: (params % BOUNDS + 5 * kind) % BOUNDS,
                params: Some(params),
            };
            let seed = u64::from(params) << 8 | u64::from(kind);
            check_kind::<f64>(&Layout::Array(&shape), 1134, settings, &mut Random(seed));
            check_kind::<f32>(&Layout::Array(&shape), 1134, settings, &mut Random(seed));
        }
    }
}

#[test]
fn all_kinds_and_bounds_in_bit_packed_streams() {
    let shapes: [&[usize]; 9] = [
        &[1],
        &[2],
        &[7],
        &[1024],
        &[2500],
        &[40, 33],
        &[3, 700],
        &[12, 13, 14],
        &[2, 5, 17, 9],
    ];
    for shape in shapes {
        for (kind, bound) in (0..KINDS).flat_map(|kind| (0..BOUNDS).map(move |b| (kind, b))) {
            let count = shape.iter().product();
            let settings = Settings {
                kind,
                bound,
                params: Some(255),
            };
            let seed = u64::from(bound) << 8 | u64::from(kind);
            check_kind::<f64>(&Layout::Array(shape), count, settings, &mut Random(seed));
            check_kind::<f32>(&Layout::Array(shape), count, settings, &mut Random(seed));
        }
    }
}

#[test]
fn empty_layouts() {
    for shape in [&[0][..], &[0, 7], &[3, 0, 5], &[0, 4, 4, 4], &[4, 0, 4, 4]] {
        check::<f64>(&[], &Layout::Array(shape), 0.1, None);
        assert!(tune::<f32>(&[], &Layout::Array(shape), 0.0).is_ok());
    }
    let none = Layout::Blocks {
        side: [8; 3],
        origins: &[],
    };
    check::<f32>(&[], &none, 0.0, None);
}

/// Errors may equal the bound. Predictions halfway between values that are multiples of twice the bound need no literals.
#[test]
fn errors_equal_to_the_bound_need_no_literals() {
    let mut random = Random(1);
    let values: Vec<f64> = (0..4096).map(|_| random.below(8) as f64).collect();
    let layout = Layout::Array(&[4096]);
    let params = Some(EncoderParams::default());
    let size = |bound| {
        encode(&values, &layout, bound, params, &mut Workspace::default())
            .unwrap()
            .len()
    };
    // Three bits for each of 4096 values are 1536 bytes.
    assert!(size(0.5) < 2100, "{}", size(0.5));
}

/// Smooth components of different magnitudes, interleaved.
fn vectors(points: usize) -> Vec<f32> {
    let component = |i: usize, scale: f64| (scale * (i as f64 * 0.02).sin()) as f32;
    (0..points)
        .flat_map(|i| {
            [
                component(i, 1.0),
                500.0 + component(i, 20.0),
                -component(i, 3.0),
            ]
        })
        .collect()
}

#[test]
fn components_are_predicted_separately() {
    let values = vectors(40 * 40);
    let workspace = &mut Workspace::default();
    let bounds = [
        "0",
        "1e-3",
        "1e-3 relative",
        "1e-4 relative above 1e-2",
        "10 bits",
        "1e-3 rms",
    ];
    for bound in bounds.map(|text| text.parse::<ErrorBound>().unwrap()) {
        let mut size = |shape: &[usize], values: &[f32]| {
            let layout = Layout::Array(shape);
            let stream = encode(values, &layout, bound, None, workspace).unwrap();
            let mut out = vec![0.0; values.len()];
            decode(&stream, &mut out, workspace).unwrap();
            let mut pairs = values.iter().zip(&out);
            let is_rms = matches!(bound, ErrorBound::Rms(_));
            let near = |a: f32, b: f32| is_rms && (a - b).abs() < 0.01;
            assert!(
                pairs.all(|(a, b)| bound.is_satisfied((*a).into(), (*b).into()) || near(*a, *b))
            );
            stream.len()
        };
        let together = size(&[40, 40, 3], &values);
        let separate: usize = (0..3)
            .map(|k| {
                let one: Vec<f32> = values.iter().skip(k).step_by(3).copied().collect();
                size(&[40, 40], &one)
            })
            .sum();
        assert!(
            together < separate + separate / 8,
            "{bound}: {together} {separate}"
        );
        assert!(size(&[1600, 1, 3], &values) < 4800 * 4, "{bound}");
    }
}

#[test]
fn last_dimensions_that_do_not_predict_each_other_come_first() {
    // Groups of very different magnitudes, each of which is smooth in space; their values have no relation to those of other groups.
    let (points, groups) = (64usize, 24usize);
    let value = |i: usize| {
        let (point, group) = (i / groups, i % groups);
        let [y, x] = [point / points, point % points].map(|k| k as f64 / points as f64);
        let scale = 10f64.powi((group * 7 % 5) as i32);
        scale * (1.0 + (5.0 * x + group as f64).sin() * (4.0 * y - group as f64).cos())
    };
    let values: Vec<f64> = (0..points * points * groups).map(value).collect();
    let separate: Vec<f64> = (0..groups)
        .flat_map(|group| values.iter().skip(group).step_by(groups).copied())
        .collect();
    let workspace = &mut Workspace::default();
    let tunes = [crate::tune, crate::tune_small, crate::tune_fast];
    let bounds = ["0", "1e-1", "1e-3 relative", "1 rms", "16 bits"];
    for bound in bounds.map(|text| text.parse::<ErrorBound>().unwrap()) {
        for (profile, tune) in tunes.into_iter().enumerate() {
            // These are always bit-packed in `fast`.
            let is_lossless = bound.is_lossless() || matches!(bound, ErrorBound::Bits(_));
            if is_lossless && profile == 2 {
                continue;
            }
            let mut size = |values: &[f64], shape: &[usize]| {
                let layout = Layout::Array(shape);
                let params = tune(values, &layout, bound).unwrap();
                let stream = encode(values, &layout, bound, Some(params), workspace).unwrap();
                let mut out = vec![0.0; values.len()];
                decode(&stream, &mut out, workspace).unwrap();
                if !matches!(bound, ErrorBound::Rms(_)) {
                    let mut pairs = values.iter().zip(&out);
                    assert!(pairs.all(|(a, b)| bound.is_satisfied(*a, *b)));
                }
                stream.len()
            };
            let last = size(&values, &[points, points, groups]);
            let first = size(&separate, &[groups, points, points]);
            assert!(
                last < first + first / 8,
                "{bound} {profile}: {last} {first}"
            );
            let last = size(&values, &[points, points, groups / 4, 4]);
            assert!(
                last < first + first / 4,
                "{bound} {profile}: {last} {first}"
            );
        }
    }
}

#[test]
fn unrelated_planes_and_rows_are_predicted_separately() {
    let workspace = &mut Workspace::default();
    let offset = |k: usize| ((k * 7919) % 101) as f64 * 50.0;
    let wave = |i: usize| (i as f64 * 0.05).sin();
    let planes: Vec<f64> = (0..8 * 48 * 48)
        .map(|i| offset(i / 2304) + wave(i / 48 % 48) * wave(i % 48))
        .collect();
    let rows: Vec<f64> = (0..48 * 300)
        .map(|i| offset(i / 300) + wave(i % 300))
        .collect();
    let cases: [(&[f64], &[usize], usize); 3] = [
        (&planes, &[8, 48, 48], 2304),
        (&planes, &[2, 4, 48, 48], 2304),
        (&rows, &[48, 300], 300),
    ];
    for (values, shape, part) in cases {
        for bound in [1e-3, 1e-5] {
            let mut size = |values: &[f64], shape: &[usize]| {
                let layout = Layout::Array(shape);
                let stream = encode(values, &layout, bound, None, workspace).unwrap();
                let mut out = vec![0.0; values.len()];
                decode(&stream, &mut out, workspace).unwrap();
                assert!(values.iter().zip(&out).all(|(a, b)| (a - b).abs() <= bound));
                stream.len()
            };
            let whole = size(values, shape);
            let first = size(
                &values[..part],
                &shape[shape.len() - if part > 300 { 2 } else { 1 }..],
            );
            let parts = values.len() / part;
            assert!(
                whole < parts * first,
                "{shape:?} {bound}: {whole} {parts} {first}"
            );
        }
    }
}

#[test]
fn values_far_from_0_and_fine_bounds_take_few_bytes() {
    let workspace = &mut Workspace::default();
    let wave = |i: usize| (i as f64 * 0.11).sin();
    let mut size = |offset: f64, bound: f64| {
        let values: Vec<f64> = (0..48 * 48)
            .map(|i| offset + wave(i / 48) * wave(i % 48))
            .collect();
        let layout = Layout::Array(&[48, 48]);
        let stream = encode(&values, &layout, bound, None, workspace).unwrap();
        let mut out = vec![0.0; values.len()];
        decode(&stream, &mut out, workspace).unwrap();
        assert!(values.iter().zip(&out).all(|(a, b)| (a - b).abs() <= bound));
        stream.len()
    };
    for bound in [1e-3, 1e-6, 1e-9] {
        let (near, far) = (size(0.0, bound), size(1e4, bound));
        assert!(far < near + near / 8 + 16, "{bound}: {near} {far}");
    }
    // Each of 2304 values takes at most the binary logarithm of the number of bins in the range.
    let bins = |bound: f64| (1.0 / bound).log2();
    for bound in [1e-8, 1e-10, 1e-12] {
        let most = 2304.0 / 8.0 * bins(bound);
        assert!((size(0.0, bound) as f64) < most, "{bound}");
    }
}

#[test]
fn frequent_values_far_from_all_others_are_masked() {
    let workspace = &mut Workspace::default();
    let wave = |i: usize| ((i / 64) as f64 * 0.11).sin() * ((i % 64) as f64 * 0.07).cos();
    for fill in [-9999.0, 1e10, 9.96921e36, f64::NAN] {
        let is_absent = |i: usize| i / 64 > 40 && i % 64 < 20 || i.is_multiple_of(97);
        let value = |i: usize| if is_absent(i) { fill } else { wave(i) };
        let values: Vec<f64> = (0..64 * 64).map(value).collect();
        for bound in [0.0, 1e-6, 1e-3] {
            let mut size = |values: &[f64]| {
                let layout = Layout::Array(&[64, 64]);
                let stream = encode(values, &layout, bound, None, workspace).unwrap();
                let mut out = vec![0.0; values.len()];
                decode(&stream, &mut out, workspace).unwrap();
                for (a, b) in values.iter().zip(&out) {
                    let is_fill = a.to_bits() == fill.to_bits();
                    assert!(a.to_bits() == b.to_bits() || !is_fill && (a - b).abs() <= bound);
                }
                stream.len()
            };
            let plain: Vec<f64> = (0..64 * 64).map(wave).collect();
            let (masked, plain) = (size(&values), size(&plain));
            assert!(
                masked < plain + plain / 4 + 500,
                "{fill} {bound}: {masked} {plain}"
            );
        }
    }
}

#[test]
fn lossless_streams_are_chosen_where_they_are_smaller() {
    // Multiples of 1/8, within a finer bound.
    let values: Vec<f32> = (0..64 * 64)
        .map(|i| (1e4 + 300.0 * (i as f32 * 0.37).sin() * 8.0).round() / 8.0)
        .collect();
    let (layout, workspace) = (Layout::Array(&[64, 64]), &mut Workspace::default());
    let mut size = |bound: f64| {
        let stream = encode(&values, &layout, bound, None, workspace).unwrap();
        (inspect(&stream).unwrap().bound, stream.len())
    };
    let (bounded, lossless) = (size(1e-3), size(0.0));
    assert_eq!(bounded.0, ErrorBound::Lossless);
    assert!(bounded.1 <= lossless.1);
}

#[test]
fn invalid_layouts_and_bounds_are_refused() {
    let workspace = &mut Workspace::<f64>::default();
    let mut refused = |values: &[f64], layout: &Layout<'_>, bound: f64| {
        let error = encode(values, layout, bound, None, workspace).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)));
        assert_eq!(tune(values, layout, bound), Err(error));
    };
    let values = [0.0; 64];
    for bound in [-1.0, f64::NAN, f64::INFINITY] {
        refused(&values, &Layout::Array(&[64]), bound);
    }
    for shape in [
        &[][..],
        &[63],
        &[8, 9],
        &[0],
        &[usize::MAX, 2],
        &[usize::MAX, usize::MAX, 1 << 40],
    ] {
        refused(&values, &Layout::Array(shape), 1.0);
    }
    let mut blocks =
        |side, origins: &[[i64; 3]]| refused(&values, &Layout::Blocks { side, origins }, 1.0);
    blocks([0; 3], &[]);
    blocks([4; 3], &[]);
    blocks([4; 3], &[[0, 0, 2]]);
    blocks([4; 3], &[[0; 3], [4; 3]]);
    blocks([4; 3], &[[4 << 20, 0, 0]]);
    blocks([4; 3], &[[-(4 << 20) - 4, 0, 0]]);
    blocks([4, 4, 2], &[[0, 0, 2], [0, 0, 0]]);
    blocks([4, 4, 2], &[[0; 3], [0; 3]]);
    blocks([usize::MAX, 2, 1], &[[0; 3], [0, 0, 2]]);
}

#[test]
fn outputs_of_another_length_or_type_are_refused() {
    let values: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let stream = encode(
        &values,
        &Layout::Array(&[10, 10]),
        0.5,
        None,
        &mut Workspace::default(),
    )
    .unwrap();
    for length in [0, 99, 101, 200] {
        let decoded = decode(&stream, &mut vec![0f32; length], &mut Workspace::default());
        assert!(matches!(decoded, Err(Error::Corrupt(_))));
    }
    let decoded = decode(&stream, &mut vec![0f64; 100], &mut Workspace::default());
    assert!(matches!(decoded, Err(Error::Corrupt(_))));
}
