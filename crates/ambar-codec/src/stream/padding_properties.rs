//! Tests of arrays with padding.

use crate::{Element, EncoderParams, ErrorBound, Layout, Workspace, decode, encode};
use crate::{tune, tune_fast, tune_small};

/// Smooth values of an array, which are multiples of 1/8, and whether each is held; padding repeats the last values.
fn values<T: Element>(shape: &[usize], held: &[usize]) -> (Vec<T>, Vec<bool>) {
    let place = |mut number: usize| {
        let mut at = vec![0; shape.len()];
        for (index, n) in at.iter_mut().zip(shape).rev() {
            (*index, number) = (number % n, number / n);
        }
        at
    };
    let value = |number: usize| {
        let nearest = place(number).into_iter().zip(held);
        let angles = nearest
            .enumerate()
            .map(|(d, (index, held))| index.min(held - 1) as f64 * (0.05 + 0.11 * d as f64));
        let sum: f64 = angles.map(f64::sin).sum();
        T::from_f64((sum * 8000.0).round() / 8.0)
    };
    let is_held = |number: usize| place(number).iter().zip(held).all(|(k, held)| k < held);
    let count = shape.iter().product();
    (
        (0..count).map(value).collect(),
        (0..count).map(is_held).collect(),
    )
}

/// As `check_values`, for smooth values.
fn check<T: Element>(
    (shape, held): (&[usize], &[usize]),
    bound: &str,
    tuned: impl Fn(&[T], &Layout<'_>, ErrorBound) -> EncoderParams,
) -> usize {
    let (values, is_held) = values::<T>(shape, held);
    check_values((shape, held), &values, &is_held, bound, tuned)
}

/// Checks that held values are within the bound. Returns the bytes of the stream.
fn check_values<T: Element>(
    (shape, held): (&[usize], &[usize]),
    values: &[T],
    is_held: &[bool],
    bound: &str,
    tuned: impl Fn(&[T], &Layout<'_>, ErrorBound) -> EncoderParams,
) -> usize {
    let bound: ErrorBound = bound.parse().unwrap();
    let layout = Layout::PaddedArray { shape, held };
    let params = tuned(values, &layout, bound);
    let workspace = &mut Workspace::default();
    let finite = values
        .iter()
        .zip(is_held)
        .filter(|(x, _)| x.to_f64().is_finite());
    let count = finite.clone().filter(|(_, held)| **held).count();
    let chunk_bound = bound.with_padding(count, finite.count() - count);
    let stream = encode(values, &layout, chunk_bound, Some(params), workspace).unwrap();
    let mut out = vec![T::from_f64(7.0); values.len()];
    decode(&stream, &mut out, workspace).unwrap();
    let pairs = || {
        values
            .iter()
            .zip(&out)
            .zip(is_held)
            .filter(|(_, held)| **held)
    };
    let errors = pairs().map(|((a, b), _)| (a.to_f64() - b.to_f64()).abs());
    match bound {
        ErrorBound::Rms(root) => {
            let squares = errors.filter(|error| error.is_finite());
            let mean = squares.map(|error| error * error).sum::<f64>() / count.max(1) as f64;
            assert!(mean.sqrt() <= root, "{shape:?} {held:?} {mean}");
        }
        _ => assert!(
            pairs().all(|((a, b), _)| bound.is_satisfied(a.to_f64(), b.to_f64())),
            "{shape:?} {held:?} {bound}"
        ),
    }
    stream.len()
}

#[test]
fn the_bound_holds_for_all_values_but_padding() {
    let cases: [(&[usize], &[usize]); 9] = [
        (&[300], &[281]),
        (&[20, 30], &[20, 29]),
        (&[20, 30], &[1, 1]),
        (&[17, 9, 40], &[16, 9, 33]),
        (&[5, 6, 7, 8], &[4, 5, 6, 7]),
        (&[5, 6, 7, 8], &[5, 6, 7, 8]),
        (&[40, 30, 3], &[33, 30, 3]),
        (&[40, 30, 3], &[33, 30, 2]),
        (&[2, 3, 4, 20, 30], &[2, 2, 4, 18, 30]),
    ];
    for bound in ["lossless", "0.5", "1e-4 relative", "12 bits", "0.3 rms"] {
        for case in cases {
            check::<f32>(case, bound, |v, l, b| tune(v, l, b).unwrap());
            check::<f64>(case, bound, |v, l, b| tune_small(v, l, b).unwrap());
            check::<f32>(case, bound, |v, l, b| tune_fast(v, l, b).unwrap());
            for number in (0..192).step_by(7) {
                let params = EncoderParams::numbered(number)
                    .with_separate_dimensions(number % 3)
                    .with_moved_dimensions(number / 3 % 3);
                check::<f64>(case, bound, |_, _, _| params);
            }
        }
    }
}

/// Masked values may be padding, too.
#[test]
fn the_bound_holds_beside_missing_values() {
    for missing in [f64::NAN, -9999.0, f64::INFINITY] {
        for (shape, held) in [([30, 40], [26, 33]), ([20, 64], [1, 3])] {
            let (mut values, is_held) = values::<f64>(&shape, &held);
            for (at, value) in values.iter_mut().enumerate() {
                let is_missing = at % 40 >= held[1] - 1 || at / 40 >= held[0] - 1 || at % 7 == 0;
                *value = if is_missing { missing } else { *value };
            }
            for bound in ["lossless", "0.5", "1e-4 relative", "0.3 rms"] {
                let case = (&shape[..], &held[..]);
                for number in (0..192).step_by(13) {
                    check_values(case, &values, &is_held, bound, |_, _, _| {
                        EncoderParams::numbered(number)
                    });
                }
                check_values(case, &values, &is_held, bound, |v, l, b| {
                    tune(v, l, b).unwrap()
                });
            }
        }
    }
}

#[test]
fn padding_takes_fewer_bytes_than_values() {
    let tuned = |v: &[f32], l: &Layout<'_>, b| tune(v, l, b).unwrap();
    let (shape, held) = ([100, 100], [60, 90]);
    for bound in ["lossless", "0.5", "0.3 rms"] {
        let padded = check((&shape, &held), bound, tuned);
        let whole = check((&held, &held), bound, tuned);
        assert!(padded < 2 * whole, "{bound}: {padded} {whole}");
        // Values of an array after which one of them is repeated.
        let (mut values, is_held) = values::<f32>(&shape, &held);
        let first = values[0];
        for (value, is_held) in values.iter_mut().zip(is_held) {
            *value = if is_held { *value } else { first };
        }
        let bound: ErrorBound = bound.parse().unwrap();
        let layout = Layout::Array(&shape);
        let params = Some(tuned(&values, &layout, bound));
        let workspace = &mut Workspace::default();
        let repeated = encode(&values, &layout, bound, params, workspace).unwrap();
        assert!(
            padded < repeated.len(),
            "{bound}: {padded} {}",
            repeated.len()
        );
    }
}

#[test]
fn parts_that_are_empty_or_too_large_are_refused() {
    let workspace = &mut Workspace::default();
    for held in [&[4, 0][..], &[4, 6], &[4], &[4, 5, 1]] {
        let layout = Layout::PaddedArray {
            shape: &[4, 5],
            held,
        };
        assert!(
            encode(&[1.0f32; 20], &layout, 0.1, None, workspace).is_err(),
            "{held:?}"
        );
    }
}
