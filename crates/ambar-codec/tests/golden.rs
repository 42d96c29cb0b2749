//! Golden streams: decoders give the recorded values bit for bit, and encoders write the recorded streams.
//!
//! `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test golden` writes missing files.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
use ambar_codec::{Element, EncoderParams, ErrorBound, Layout, VERSION, Workspace, decode, encode};
use ambar_codec::{tune, tune_small};
use std::path::PathBuf;

/// Values computed without functions whose rounding depends on the machine.
fn values<T: Element>(count: usize, has_nans: bool) -> Vec<T> {
    let mut noise = 1u32;
    (0..count)
        .map(|i| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = (i % 61) as f64 / 61.0;
            let y = (i / 61 % 31) as f64 / 31.0;
            let smooth = 4.0 * x * (1.0 - x) + y * y * y - 0.5 * x * y;
            match i % 211 {
                _ if has_nans && i / 64 % 5 == 1 => T::from_f64(f64::NAN),
                17 => T::from_f64(f64::INFINITY),
                40 => T::from_f64(-0.0),
                90 => T::from_f64(1e-310),
                _ => T::from_f64(smooth + f64::from(noise >> 16) * 1e-6),
            }
        })
        .collect()
}

/// How values are encoded.
#[derive(Clone, Copy, PartialEq)]
enum Coding {
    /// With contexts of levels, in groups of tokens.
    Level,
    /// With contexts of rows.
    Row,
    /// With contexts of planes for lossy streams of layouts with planes; otherwise of rows.
    Plane,
    /// Bit-packed.
    Packed,
    /// Wavelet coefficients.
    Wavelet,
    /// Wavelet coefficients and corrections.
    Corrected,
    /// With this number of level packets: 2 with contexts of levels, 3 of rows, 4 of planes.
    Packets(usize),
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Row => "row",
            Self::Plane => "plane",
            Self::Packed => "packed",
            Self::Wavelet => "wavelet",
            Self::Corrected => "corrected",
            Self::Packets(2) => "packets2",
            Self::Packets(3) => "packets3",
            Self::Packets(_) => "packets4",
        }
    }

    fn params<T: Element>(
        self,
        values: &[T],
        layout: &Layout<'_>,
        bound: ErrorBound,
    ) -> EncoderParams {
        let small = tune_small(values, layout, bound).unwrap();
        match self {
            Self::Level => small.with_level_contexts(),
            Self::Row => small.with_wavelet(None),
            Self::Plane => tune(values, layout, bound).unwrap(),
            Self::Packed => small.with_bit_packing(),
            Self::Wavelet | Self::Corrected => small.with_wavelet(Some(0)),
            Self::Packets(2) => small.with_level_contexts().with_packets(2),
            Self::Packets(3) => small.with_packets(3),
            Self::Packets(_) => tune(values, layout, bound)
                .unwrap()
                .with_wavelet(None)
                .with_packets(4),
        }
    }
}

/// An error bound, and its name.
type Bound = (&'static str, f64);

fn check<T: Element>(
    coding: Coding,
    layout: (&str, &Layout<'_>),
    count: usize,
    (kind, bound): Bound,
    has_nans: bool,
) {
    let values = values::<T>(count, has_nans);
    check_values(coding, layout, &values, (kind, bound.into()));
}

fn check_values<T: Element>(
    coding: Coding,
    layout: (&str, &Layout<'_>),
    values: &[T],
    (kind, bound): (&str, ErrorBound),
) {
    let count = values.len();
    let name = format!("{}-{}-{kind}", coding.name(), layout.0);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let [stream_path, values_path] =
        ["stream", "values"].map(|suffix| folder.join(format!("{name}.{suffix}")));
    let params = Some(coding.params(values, layout.1, bound));
    let stream = encode(values, layout.1, bound, params, &mut Workspace::default()).unwrap();
    if coding == Coding::Corrected {
        let params = params.map(|params| params.with_wavelet(None));
        let interpolated = encode(values, layout.1, bound, params, &mut Workspace::default());
        assert!(stream.len() < interpolated.unwrap().len(), "{name}");
    }
    let mut out = vec![T::from_f64(1.0); count];
    let bytes = |out: &[T]| -> Vec<u8> {
        out.iter()
            .flat_map(|x| x.to_word().to_le_bytes()[..T::SIZE].to_vec())
            .collect()
    };
    if std::env::var_os("AMBAR_GOLDEN_WRITE").is_some() && !stream_path.exists() {
        decode(&stream, &mut out, &mut Workspace::default()).unwrap();
        std::fs::write(&stream_path, &stream).unwrap();
        std::fs::write(&values_path, bytes(&out)).unwrap();
    }
    let golden = std::fs::read(&stream_path).unwrap();
    decode(&golden, &mut out, &mut Workspace::default()).unwrap();
    for (i, (x, y)) in values.iter().zip(&out).enumerate() {
        let (a, b) = (x.to_f64(), y.to_f64());
        let is_near = a.is_finite() && !bound.is_lossless() && bound.is_satisfied(a, b);
        let is_near = is_near || matches!(bound, ErrorBound::Rms(_)) && a.is_finite();
        assert!(is_near || x.to_word() == y.to_word(), "{name}: value {i}");
    }
    if let ErrorBound::Rms(root) = bound {
        let pairs = values
            .iter()
            .zip(&out)
            .filter(|(x, _)| x.to_f64().is_finite());
        let squares = pairs.map(|(x, y)| (x.to_f64() - y.to_f64()).powi(2));
        assert!(squares.sum::<f64>() <= root * root * count as f64, "{name}");
    }
    assert!(
        bytes(&out) == std::fs::read(&values_path).unwrap(),
        "{name}: decoded values differ from the golden ones"
    );
    assert!(
        stream == golden,
        "{name}: the encoded stream differs from the golden one"
    );
    assert_eq!(golden[0], VERSION, "{name}");
}

const EXACT: Bound = ("lossless", 0.0);
const BOUND: Bound = ("bound", 1e-3);
const TIGHT: Bound = ("tight", 1e-7);
const LOOSE: Bound = ("loose", 8e-2);

/// Values of many magnitudes.
struct Magnitudes {
    /// Some values are negative, others 0.
    is_signed: bool,
    /// Some values are denormal.
    has_denormals: bool,
    /// A fifth of the values are NaN.
    has_nans: bool,
}

const POSITIVE: Magnitudes = Magnitudes {
    is_signed: false,
    has_denormals: false,
    has_nans: false,
};
const SIGNED: Magnitudes = Magnitudes {
    is_signed: true,
    ..POSITIVE
};

impl Magnitudes {
    fn values<T: Element>(&self, count: usize) -> Vec<T> {
        let of_value = |i: usize, x: f64| {
            // About 2^t, with t smooth and from -30 to 30.
            let t = 12.0 * x - 30.0;
            let whole = t.floor();
            let size = (1.0 + (t - whole)) * 2f64.powi(whole as i32);
            match i % 211 {
                90..93 if self.has_denormals && T::SIZE == 4 => 3e-41,
                90..93 if self.has_denormals => 3e-320,
                93..110 if self.is_signed => 0.0,
                110..150 if self.is_signed => -size,
                150 if self.is_signed => -0.0,
                151 => f64::INFINITY,
                _ => size,
            }
        };
        let smooth = values::<f64>(count, self.has_nans);
        let smooth = smooth.into_iter().enumerate();
        smooth
            .map(|(i, x)| {
                T::from_f64(if x.is_nan() {
                    x
                } else {
                    of_value(i, x.clamp(0.0, 5.0))
                })
            })
            .collect()
    }
}

const RELATIVE: (&str, ErrorBound) = ("relative", ErrorBound::Relative(1e-3));
const FLOOR: (&str, ErrorBound) = (
    "floor",
    ErrorBound::RelativeAbove {
        relative: 1e-2,
        floor: 1e-6,
    },
);

/// Relative bounds: mapped streams, with zeros, both signs, floors, exceptions, masks and minima.
#[test]
fn relative_bounds() {
    let cube = Layout::Array(&[9, 14, 11]);
    let row = Layout::Array(&[700]);
    let plane = Layout::Array(&[31, 29]);
    let codings = [Coding::Level, Coding::Row, Coding::Plane, Coding::Packed];
    for coding in codings.into_iter().chain([Coding::Packets(3)]) {
        check_values(
            coding,
            ("positive", &cube),
            &POSITIVE.values::<f32>(1386),
            RELATIVE,
        );
        check_values(
            coding,
            ("signed", &cube),
            &SIGNED.values::<f64>(1386),
            RELATIVE,
        );
        check_values(
            coding,
            ("signed", &cube),
            &SIGNED.values::<f32>(1386),
            FLOOR,
        );
        let masked = Magnitudes {
            has_nans: true,
            ..SIGNED
        };
        check_values(
            coding,
            ("nans", &plane),
            &masked.values::<f32>(899),
            RELATIVE,
        );
        check_values(coding, ("nans", &row), &masked.values::<f64>(700), FLOOR);
    }
    let denormals = Magnitudes {
        has_denormals: true,
        ..POSITIVE
    };
    for coding in [Coding::Level, Coding::Packed] {
        // Denormals are exceptions. Above a floor they are below it, and the smallest one is the minimum.
        check_values(
            coding,
            ("denormals", &row),
            &denormals.values::<f32>(700),
            RELATIVE,
        );
        check_values(
            coding,
            ("double-denormals", &plane),
            &denormals.values::<f64>(899),
            RELATIVE,
        );
        check_values(
            coding,
            ("minimum", &row),
            &denormals.values::<f32>(700),
            FLOOR,
        );
        check_values(
            coding,
            ("double-minimum", &plane),
            &denormals.values::<f64>(899),
            FLOOR,
        );
    }
    check_values(
        Coding::Plane,
        ("sparse", &SPARSE),
        &SIGNED.values::<f32>(2560),
        RELATIVE,
    );
    check_values(
        Coding::Row,
        ("sparse", &SPARSE),
        &POSITIVE.values::<f32>(2560),
        FLOOR,
    );
}

/// Bits kept: lossless coded values with a minimum, because the smallest denormal is rounded to 0.
#[test]
fn bits_kept() {
    let bits = ("bits", ErrorBound::Bits(7));
    let row = Layout::Array(&[700]);
    for coding in [Coding::Row, Coding::Packed] {
        let mut values = POSITIVE.values::<f64>(700);
        values[300] = f64::from_bits(1);
        check_values(coding, ("row", &row), &values, bits);
        let mut values = POSITIVE.values::<f32>(700);
        values[300] = f32::from_bits(1);
        check_values(coding, ("single", &row), &values, bits);
    }
}

/// Sums of noise along each dimension, which points on diagonals predict without errors.
fn sums<T: Element>(places: impl Iterator<Item = [i64; 3]>) -> Vec<T> {
    let noise = |n: i64, factor: i64| (n * n * factor).rem_euclid(101) as f64 / 101.0;
    places
        .map(|[z, y, x]| T::from_f64(noise(z, 37) + noise(y, 58) + noise(x, 73)))
        .collect()
}

/// Weights of phases: arrays of two and three dimensions, blocks with holes, absent values, lossless coded values.
#[test]
fn weights_of_phases() {
    let places = |shape: [i64; 3], origin: [i64; 3]| {
        let count = shape.iter().product::<i64>();
        (0..count).map(move |i| {
            let [_, ny, nx] = shape;
            let inner = [i / nx / ny, i / nx % ny, i % nx];
            [0, 1, 2].map(|d| origin[d] + inner[d])
        })
    };
    let bounds = [BOUND, EXACT].map(|(name, bound)| (name, bound.into()));
    for bound in bounds {
        let cube = ("sums-cube", &Layout::Array(&[14, 13, 15]));
        let values: Vec<f32> = sums(places([14, 13, 15], [0; 3]));
        check_values(Coding::Row, cube, &values, bound);
        check_values(Coding::Packets(3), cube, &values, bound);
        let plane = ("sums-plane", &Layout::Array(&[38, 37]));
        let mut values: Vec<f64> = sums(places([1, 38, 37], [4, 0, 0]));
        check_values(Coding::Row, plane, &values, bound);
        for at in (0..values.len()).filter(|at| at / 11 % 7 == 3) {
            values[at] = f64::NAN;
        }
        check_values(Coding::Row, ("sums-nans", plane.1), &values, bound);
        // Rows of phases of more than one word of 64 points.
        let long = ("sums-long", &Layout::Array(&[3, 4, 263]));
        let mut values: Vec<f32> = sums(places([3, 4, 263], [0, 7, 0]));
        check_values(Coding::Row, long, &values, bound);
        for at in (0..values.len()).filter(|at| at / 130 % 9 == 3) {
            values[at] = f32::NAN;
        }
        check_values(Coding::Row, ("sums-long-nans", long.1), &values, bound);
        if let Layout::Blocks { origins, .. } = SPARSE {
            let blocks = origins.iter().flat_map(|origin| places([8; 3], *origin));
            let values: Vec<f32> = sums(blocks);
            check_values(Coding::Row, ("sums-sparse", &SPARSE), &values, bound);
        }
    }
}

/// Outer points and weights of two bytes: smooth values of two and three dimensions, rows of several words, absent values, blocks
/// with holes, losslessly coded values.
#[test]
fn outer_points() {
    let bells = |places: &[[i64; 3]]| -> Vec<f64> {
        let square = |k: i64, middle: i64| ((k - middle) * (k - middle)) as f64;
        let bell = |[z, y, x]: [i64; 3]| {
            1.0 / (1.0 + (square(z, 9) + square(y, 11) + square(x, 67)) / 90.0)
        };
        places.iter().map(|at| bell(*at)).collect()
    };
    let places = |[nz, ny, nx]: [i64; 3], [z, y, x]: [i64; 3]| -> Vec<[i64; 3]> {
        let inner = (0..nz * ny * nx).map(|i| [i / nx / ny, i / nx % ny, i % nx]);
        inner.map(|at| [z + at[0], y + at[1], x + at[2]]).collect()
    };
    for bound in [("bound", 1e-6), EXACT].map(|(name, bound)| (name, bound.into())) {
        let plane = Layout::Array(&[20, 134]);
        let values = bells(&places([1, 20, 134], [9, 0, 0]));
        let mut values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        check_values(Coding::Row, ("bells-plane", &plane), &values, bound);
        for at in (0..values.len()).filter(|at| at % 134 / 8 == 5 && at / 938 % 2 == 1) {
            values[at] = f32::NAN;
        }
        check_values(Coding::Row, ("bells-nans", &plane), &values, bound);
        let cube = ("bells-cube", &Layout::Array(&[19, 22, 23]));
        let values: Vec<f64> = bells(&places([19, 22, 23], [0, 0, 60]));
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        check_values(Coding::Row, cube, &narrow, bound);
        check_values(Coding::Packets(4), cube, &values, bound);
        // Blocks around a hole.
        let origins = [[0, 0, 0], [0, 0, 16], [0, 16, 0], [16, 0, 0], [16, 16, 16]];
        let blocks = origins
            .iter()
            .flat_map(|[z, y, x]| places([16; 3], [*z, *y, 56 + x]));
        let values = bells(&blocks.collect::<Vec<_>>());
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let layout = Layout::Blocks {
            side: [16; 3],
            origins: &origins,
        };
        check_values(Coding::Row, ("bells-blocks", &layout), &narrow, bound);
    }
}

/// Values that are repeated twice in each dimension, also from odd indices on, are predicted by the preceding or the
/// following ones.
#[test]
fn slopes() {
    let value = |place: [usize; 3]| {
        let [z, y, x] = place.map(|k| (k / 2) as f64);
        ((3.0 * z + 0.7 * x * y).sin() + (5.0 * y + 1.0).cos() * (x + y * z).sin()) as f32
    };
    for bound in [BOUND, EXACT].map(|(name, bound)| (name, bound.into())) {
        for (first, name) in [(0, "pairs"), (1, "odd-pairs")] {
            let place = |i: usize| [0, first + i / 70, first + i % 70];
            let mut values: Vec<f32> = (0..36 * 70).map(|i| value(place(i))).collect();
            let plane = Layout::Array(&[36, 70]);
            check_values(Coding::Row, (name, &plane), &values, bound);
            for at in (0..values.len()).filter(|at| at / 20 % 7 == 3) {
                values[at] = f32::NAN;
            }
            check_values(
                Coding::Plane,
                (&format!("{name}-nans"), &plane),
                &values,
                bound,
            );
        }
        let place = |i: usize| [i / 144, i / 12 % 12, i % 12];
        let values: Vec<f32> = (0..16 * 144).map(|i| value(place(i))).collect();
        let cube = Layout::Array(&[16, 12, 12]);
        check_values(Coding::Packets(3), ("pairs-cube", &cube), &values, bound);
        check_values(Coding::Row, ("pairs-cube", &cube), &values, bound);
    }
}

/// Components of vectors and tensors, which are coded one after another; planes and rows that are predicted separately; a fill
/// value that is a number.
#[test]
fn components_separate_regions_and_fill_values() {
    let codings = [Coding::Level, Coding::Row, Coding::Plane, Coding::Packed];
    let offset = |i: usize| 8.0 * (i * i % 7) as f64;
    for coding in codings {
        for bound in [BOUND, EXACT] {
            let vectors = ("vectors", &Layout::Array(&[12, 13, 3]));
            check::<f32>(coding, vectors, 468, bound, false);
            let tensors = ("tensors", &Layout::Array(&[4, 5, 36, 3, 3]));
            check::<f64>(coding, tensors, 6480, bound, true);
            // Groups whose values have no relation to each other, but are smooth along y and x.
            let group = |i: usize| (100.0 * offset(i % 12) + (i / 12) as f64 / 64.0) as f32;
            let groups: Vec<f32> = (0..14 * 15 * 12).map(group).collect();
            let layout = ("groups", &Layout::Array(&[14, 15, 12]));
            check_values(coding, layout, &groups, (bound.0, bound.1.into()));
        }
        for bound in [BOUND, EXACT] {
            let mut filled = values::<f32>(1386, false);
            for at in (0..1386).filter(|at| at / 50 % 4 == 1) {
                filled[at] = -9999.0;
            }
            filled
                .iter_mut()
                .filter(|x| x.is_infinite())
                .for_each(|x| *x = 0.5);
            let bound = (bound.0, bound.1.into());
            if coding != Coding::Packed {
                check_values(
                    coding,
                    ("filled", &Layout::Array(&[9, 14, 11])),
                    &filled,
                    bound,
                );
            }
        }
        let relative = ("floor", FLOOR.1);
        let signed = SIGNED.values::<f32>(468);
        check_values(
            coding,
            ("vectors", &Layout::Array(&[156, 3])),
            &signed,
            relative,
        );
        let planes: Vec<f32> = values::<f32>(5 * 640, false)
            .iter()
            .enumerate()
            .map(|(i, x)| x + offset(i / 640) as f32)
            .collect();
        let bound = (BOUND.0, BOUND.1.into());
        check_values(
            coding,
            ("planes", &Layout::Array(&[5, 20, 32])),
            &planes,
            bound,
        );
        check_values(coding, ("rows", &Layout::Array(&[50, 64])), &planes, bound);
    }
}

/// Wavelet coefficients: bounds of the mean squared error, of arrays of one to four dimensions; a minimum.
#[test]
fn wavelets() {
    let loose = ("rms", ErrorBound::Rms(1e-3));
    let tight = ("tight", ErrorBound::Rms(1e-9));
    let shapes: [(&str, &[usize]); 4] = [
        ("plane", &[31, 45]),
        ("cube", &[12, 14, 17]),
        ("flat", &[2, 40, 19]),
        ("volumes", &[3, 10, 9, 11]),
    ];
    for (name, shape) in shapes {
        // Waves of parabolas along each dimension, above 0.
        let wave = |n: usize| {
            let x = (n % 6) as f64 / 6.0;
            1.0 + 4.0 * x * (1.0 - x) * (1.0 - 2.0 * (n / 6 % 2) as f64)
        };
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|mut i: usize| {
                let digits = shape.iter().rev().map(|n| {
                    let digit = i % n;
                    i /= n;
                    wave(digit)
                });
                digits.sum()
            })
            .collect();
        let layout = (name, &Layout::Array(shape));
        check_values(Coding::Wavelet, layout, &values, tight);
        let shifted: Vec<f32> = values.iter().map(|x| (x - 1.0) as f32).collect();
        check_values(Coding::Wavelet, layout, &shifted, loose);
    }
    let (mut noise, mut walk) = (1u32, 0.0);
    let steps = (0..700).map(|_| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        walk += f64::from(noise >> 16) / 131_072.0 - 0.25;
        walk
    });
    let values: Vec<f64> = steps.collect();
    let bound = ("rms", ErrorBound::Rms(4e-2));
    check_values(
        Coding::Wavelet,
        ("row", &Layout::Array(&[700])),
        &values,
        bound,
    );
}

/// Wavelet coefficients with corrections: absolute and relative bounds of arrays of two to four dimensions.
#[test]
fn corrected_wavelets() {
    let shapes: [(&str, &[usize]); 3] = [
        ("plane", &[41, 55]),
        ("cube", &[12, 14, 17]),
        ("volumes", &[2, 20, 19, 21]),
    ];
    for (name, shape) in shapes {
        let mut noise = 1u32;
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|mut i: usize| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let waves = shape.iter().rev().map(|n| {
                    let x = 2.0 * (i % n) as f64 / *n as f64 - 1.0;
                    i /= n;
                    oscillating(x, n / 4)
                });
                5.0 + waves.sum::<f64>() + f64::from(noise >> 16) * 1e-9
            })
            .collect();
        let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let layout = (name, &Layout::Array(shape));
        for bound in [
            ("bound", ErrorBound::Absolute(1e-3)),
            ("relative", ErrorBound::Relative(1e-4)),
        ] {
            check_values(Coding::Corrected, layout, &values, bound);
        }
        let loose = ("loose", ErrorBound::Absolute(1e-2));
        check_values(Coding::Corrected, layout, &single, loose);
    }
}

/// Wavelet coefficients of blocks, which are planes: a region of four blocks, and one of a block.
#[test]
fn wavelets_of_blocks() {
    let origins = [[0, 0, 0], [0, 0, 16], [0, 16, 0], [0, 16, 16], [0, 64, 32]];
    let values: Vec<f64> = origins
        .iter()
        .flat_map(|[_, y, x]| {
            (0..256).map(move |i| {
                let waves = [y + i / 16, x + i % 16]
                    .map(|place| oscillating(place as f64 / 48.0 - 1.0, 24));
                5.0 + waves.iter().sum::<f64>()
            })
        })
        .collect();
    let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let layout = Layout::Blocks {
        side: [1, 16, 16],
        origins: &origins,
    };
    let layout = ("blocks", &layout);
    let bound = ("loose", ErrorBound::Absolute(1e-2));
    check_values(Coding::Corrected, layout, &single, bound);
    let bound = ("bound", ErrorBound::Absolute(1e-3));
    check_values(Coding::Corrected, layout, &values, bound);
    let bound = ("rms", ErrorBound::Rms(1e-3));
    check_values(Coding::Wavelet, layout, &values, bound);
}

/// The Chebyshev polynomial of this degree.
fn oscillating(x: f64, degree: usize) -> f64 {
    let (mut before, mut value) = (1.0, x);
    for _ in 1..degree {
        (before, value) = (value, 2.0 * x * value - before);
    }
    value
}

/// Two of three root cells, each refined at its lower corner, and a distant cell.
fn leaves(dimensions: usize) -> (Vec<u8>, Vec<[i64; 3]>) {
    let (mut levels, mut origins) = (Vec::new(), Vec::new());
    let mut open = vec![(4u8, [0, 0, 13]), (2, [0, 0, 2]), (2, [0, 0, 0])];
    while let Some((level, place)) = open.pop() {
        let distance: i64 = place.iter().map(|n| n % (1 << (level - 2))).sum();
        if level == 6 || distance > 3 {
            levels.push(level);
            origins.push(place);
            continue;
        }
        for child in (0..1i64 << dimensions).rev() {
            let below = [2, 1, 0].map(|d| child >> d & 1);
            open.push((level + 1, [0, 1, 2].map(|d| 2 * place[d] + below[d])));
        }
    }
    (levels, origins)
}

#[test]
fn cells_of_trees() {
    for dimensions in 1..=3 {
        let (levels, origins) = leaves(dimensions);
        let layout = Layout::Cells {
            dimensions,
            levels: &levels,
            origins: &origins,
        };
        // In two and three dimensions, the last values belong to no cell.
        let count = levels.len() + 7 * (dimensions - 1);
        let layout = (&*format!("cells{dimensions}"), &layout);
        for bound in [EXACT, BOUND, TIGHT] {
            check::<f64>(Coding::Row, layout, count, bound, dimensions == 2);
        }
        check::<f32>(Coding::Level, layout, count, BOUND, dimensions == 3);
    }
}

/// Filled to 0.63: one region with contexts of rows, several with other contexts.
const SPARSE: Layout<'_> = Layout::Blocks {
    side: [8; 3],
    origins: &[[0, 0, 0], [0, 0, 8], [0, 8, 0], [8, 0, 0], [8, 8, 8]],
};

/// These streams have groups of all sizes.
#[test]
fn contexts_of_levels() {
    let coding = Coding::Level;
    for bound in [EXACT, ("1", 1e-4), ("2", 6e-3), ("3", 1.5e-2), ("4", 8e-2)] {
        let row = Layout::Array(&[700]);
        check::<f64>(coding, ("row", &row), 700, bound, false);
        let shape = Layout::Array(&[9, 14, 11]);
        check::<f32>(coding, ("box", &shape), 1386, bound, false);
        check::<f32>(coding, ("sparse", &SPARSE), 2560, bound, false);
        let shape = Layout::Array(&[2, 5, 8, 13]);
        check::<f32>(coding, ("boxes", &shape), 1040, bound, true);
    }
    check_long(coding);
    check_holes(coding);
}

#[test]
fn contexts_of_planes() {
    let coding = Coding::Plane;
    for bound in [BOUND, LOOSE, TIGHT] {
        let boxes = Layout::Array(&[2, 9, 14, 11]);
        check::<f64>(coding, ("boxes", &boxes), 2772, bound, false);
        // Rows of more than one word of 64 points.
        let long = Layout::Array(&[3, 2, 150]);
        check::<f32>(coding, ("long", &long), 900, bound, true);
        check::<f64>(coding, ("sparse", &SPARSE), 2560, bound, true);
    }
    check_long(coding);
    check_holes(coding);
}

/// A stream long enough for 32 states.
fn check_long(coding: Coding) {
    let cube = Layout::Array(&[30, 28, 31]);
    check::<f32>(coding, ("cube", &cube), 26_040, BOUND, false);
}

/// Holes: one with blocks before it along all dimensions, one at the first position of its region, one at the last.
fn check_holes(coding: Coding) {
    let places = (0..3).flat_map(|z| (0..2).flat_map(move |y| (0..4).map(move |x| [z, y, x])));
    let mut origins: Vec<[i64; 3]> = places
        .filter(|place| ![[1, 1, 1], [0, 0, 0], [2, 1, 3]].contains(place))
        .collect();
    origins.sort_by_key(|[z, y, x]| {
        let part = |n: &i64, d: i64| (n & 1) << d | (n >> 1) << (d + 3);
        part(x, 0) | part(y, 1) | part(z, 2)
    });
    for bound in [BOUND, LOOSE, ("tight", 1e-5)] {
        for side in [[4; 3], [2, 4, 8]] {
            let origins: Vec<[i64; 3]> = origins
                .iter()
                .map(|place| [0, 1, 2].map(|d| place[d] * side[d] as i64))
                .collect();
            let layout = Layout::Blocks {
                side,
                origins: &origins,
            };
            let name = format!("holes{}", side[2]);
            check::<f64>(coding, (&name, &layout), origins.len() * 64, bound, false);
        }
    }
}

#[test]
fn contexts_of_rows() {
    let coding = Coding::Row;
    let cube: Vec<[i64; 3]> = (0..8)
        .map(|i| [i >> 2, i >> 1 & 1, i & 1].map(|n| 4 * n))
        .collect();
    let some: Vec<[i64; 3]> = (0..8)
        .filter(|i| ![2, 5].contains(i))
        .map(|i| [i >> 2, i >> 1 & 1, i & 1].map(|n| 8 * (n - 1)))
        .chain([[8, 8, 80], [800, 8, 80]])
        .collect();
    let (cube, some) = (
        Layout::Blocks {
            side: [4; 3],
            origins: &cube,
        },
        Layout::Blocks {
            side: [8; 3],
            origins: &some,
        },
    );
    for bound in [EXACT, BOUND, TIGHT] {
        let row = Layout::Array(&[700]);
        check::<f64>(coding, ("row", &row), 700, bound, false);
        let plane = Layout::Array(&[31, 29]);
        check::<f32>(coding, ("plane", &plane), 899, bound, true);
        let shape = Layout::Array(&[9, 14, 11]);
        check::<f64>(coding, ("box", &shape), 1386, bound, false);
        let shape = Layout::Array(&[3, 5, 8, 13]);
        check::<f32>(coding, ("boxes", &shape), 1560, bound, false);
        check::<f32>(coding, ("blocks4", &cube), 512, bound, false);
        check::<f64>(coding, ("blocks", &some), 4096, bound, false);
        check::<f64>(coding, ("nans", &some), 4096, bound, true);
    }
    check_long(coding);
}

#[test]
fn bit_packed() {
    let coding = Coding::Packed;
    for bound in [EXACT, BOUND] {
        let row = Layout::Array(&[2300]);
        check::<f64>(coding, ("row", &row), 2300, bound, false);
        let plane = Layout::Array(&[31, 61]);
        check::<f32>(coding, ("plane", &plane), 1891, bound, false);
        let boxes = Layout::Array(&[2, 5, 8, 13]);
        check::<f32>(coding, ("boxes", &boxes), 1040, bound, false);
    }
    let row = Layout::Array(&[700]);
    check::<f64>(coding, ("nans", &row), 700, EXACT, true);
}

#[test]
fn level_packets() {
    for coding in [2, 3, 4].map(Coding::Packets) {
        for bound in [EXACT, BOUND] {
            let shape = Layout::Array(&[9, 14, 11]);
            check::<f64>(coding, ("box", &shape), 1386, bound, true);
            let boxes = Layout::Array(&[3, 5, 8, 13]);
            check::<f32>(coding, ("boxes", &boxes), 1560, bound, false);
            check::<f32>(coding, ("sparse", &SPARSE), 2560, bound, false);
        }
        check_holes(coding);
    }
}
