//! Tests of the transform, and of streams of wavelet coefficients.

use super::axis::{Axis, WaveletLevels};
use super::{Synthesis, Transform};
use crate::bound::ErrorBound;
use crate::domain::blocks;
use crate::domain::regions::Layout;
use crate::element::Element;
use crate::stream::coefficients::ErrorTarget;
use crate::stream::compress::{encode, tune, tune_small};
use crate::stream::decode::{decode, inspect};
use crate::stream::encode::{Workspace, make_symbols};
use crate::stream::input::EncoderInput;
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use proptest::prelude::*;

/// Smooth values with an edge.
fn values(shape: [usize; 3]) -> Vec<f64> {
    let [_, ny, nx] = shape;
    (0..shape.iter().product::<usize>())
        .map(|i| {
            let [z, y, x] = [i / nx / ny, i / nx % ny, i % nx].map(|k| k as f64);
            (0.3 * z).sin() + (0.2 * y + 0.1 * x).cos() + f64::from(x > y)
        })
        .collect()
}

#[test]
fn axes_list_each_index_once_and_parents_first() {
    for length in 1..200 {
        for levels in (0..=7).filter(|levels| *levels == 0 || length > 1 << (levels - 1)) {
            let axis = Axis::new(length, levels);
            let mut positions: Vec<_> = axis.coefficients.iter().map(|at| at.position).collect();
            for (k, at) in axis.coefficients.iter().enumerate() {
                assert!(at.parent.is_none_or(|parent| {
                    parent < k && axis.coefficients[parent].band + 1 == at.band
                }));
                let before = k.checked_sub(1).map(|k| axis.coefficients[k].band);
                assert_eq!(at.has_predecessor, before == Some(at.band));
            }
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..length));
        }
    }
}

#[test]
fn levels_depend_on_the_lengths() {
    let levels = |n, omitted| WaveletLevels::of_shape([n, 1, 1], omitted).of(0);
    let found = [8, 9, 16, 17, 33, 2000].map(|n| levels(n, 0));
    assert_eq!(found, [0, 1, 1, 2, 3, 7]);
    assert_eq!(
        [0, 2, 3, 6].map(|omitted| levels(33, omitted)),
        [3, 1, 0, 0]
    );
}

/// The parameters of a chunk apply to all chunks of an array.
#[test]
fn chunks_of_which_interpolation_makes_shorter_streams_are_not_transformed() {
    let shape = [24; 3];
    let length = |values: &[f64], wavelet| {
        let (layout, bound) = (Layout::Array(&shape), ErrorBound::Rms(1e-3));
        let smooth = self::values(shape);
        let params = tune_small(&smooth, &layout, bound).unwrap();
        let params = params.with_wavelet(wavelet);
        let stream = encode(
            values,
            &layout,
            bound,
            Some(params),
            &mut Workspace::default(),
        );
        stream.unwrap().len() as f64
    };
    let spikes: Vec<f64> = (0..24 * 24 * 24).map(|i| f64::from(i % 997 == 0)).collect();
    let constant = vec![1.0; 24 * 24 * 24];
    for values in [spikes, constant] {
        let [transformed, interpolated] = [Some(0), None].map(|wavelet| length(&values, wavelet));
        assert!(
            transformed <= 1.25 * interpolated,
            "{transformed} {interpolated}"
        );
    }
}

/// Where single values are bounded, too.
#[test]
fn chunks_of_which_interpolation_takes_fewer_bits_are_not_corrected() {
    let shape = [24; 3];
    let (layout, bound) = (Layout::Array(&shape), 1e-3);
    let stream = |values: &[f64], omitted| {
        let smooth = self::values(shape);
        let params = tune_small(&smooth, &layout, bound).unwrap();
        let params = params.with_wavelet(omitted);
        encode(
            values,
            &layout,
            bound,
            Some(params),
            &mut Workspace::default(),
        )
        .unwrap()
    };
    let spikes: Vec<f64> = (0..24 * 24 * 24).map(|i| f64::from(i % 997 == 0)).collect();
    assert!(stream(&spikes, Some(0)) == stream(&spikes, None));
    let wave = |i: usize| (0.01 * i as f64).sin() * (i / 576) as f64;
    let waves: Vec<f64> = (0..24 * 24 * 24).map(wave).collect();
    let [transformed, interpolated] = [Some(0), None].map(|omitted| stream(&waves, omitted));
    assert!(transformed.len() < interpolated.len());
}

/// A smooth field within a fine bound, of which wavelets take far fewer bits.
#[test]
fn wavelets_are_chosen_for_smooth_values() {
    let shape = [40, 40, 40];
    let [_, ny, nx] = shape;
    let smooth = |i: usize| {
        let [z, y, x] = [i / nx / ny, i / nx % ny, i % nx].map(|k| k as f64);
        (0.21 * z + 0.05 * x).sin() * (0.17 * y).cos() + (0.13 * x - 0.08 * y).sin()
    };
    let values: Vec<f64> = (0..shape.iter().product()).map(smooth).collect();
    let (layout, bound) = (Layout::Array(&shape), 1e-6);
    let tuned = tune(&values, &layout, bound).unwrap();
    assert!(tuned.omitted_wavelet_levels().is_some(), "{tuned:?}");
    let length = |params: EncoderParams| {
        let workspace = &mut Workspace::default();
        encode(&values, &layout, bound, Some(params), workspace)
            .unwrap()
            .len() as f64
    };
    let [transformed, interpolated] = [tuned, tuned.with_wavelet(None)].map(length);
    assert!(
        transformed <= 0.8 * interpolated,
        "{transformed} {interpolated}"
    );
}

/// A pulse is spread along whole dimensions by levels that are longer than it.
#[test]
fn pulses_are_transformed_fewer_times() {
    let shape = [64, 40, 40];
    let [_, ny, nx] = shape;
    let pulse = |i: usize| {
        let [z, y, x] = [i / nx / ny, i / nx % ny, i % nx].map(|k| k as f64);
        let radius = (z - 40.0).powi(2) + (y - 12.0).powi(2) + (x - 25.0).powi(2);
        (1.3 * z).sin() * (-radius / 40.0).exp()
    };
    let values: Vec<f64> = (0..shape.iter().product()).map(pulse).collect();
    let (layout, bound) = (Layout::Array(&shape), ErrorBound::Rms(1e-5));
    let tuned = tune_small(&values, &layout, bound).unwrap();
    let [fewer, most] = [tuned, tuned.with_wavelet(Some(0))].map(|params| {
        let workspace = &mut Workspace::default();
        let stream = encode(&values, &layout, bound, Some(params), workspace);
        stream.unwrap().len() as f64
    });
    assert!(tuned.omitted_wavelet_levels() > Some(0), "{tuned:?}");
    assert!(fewer <= 0.95 * most, "{fewer} {most}");
}

/// Checks that values hold a bound, except padding.
fn check_corrected<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: ErrorBound,
    omitted: u8,
    ratio: f64,
) {
    let workspace = &mut Workspace::default();
    let params = tune_small(values, layout, bound).unwrap();
    let params = params.with_wavelet(Some(omitted)).with_bound_ratio(ratio);
    let mut streams = vec![encode(values, layout, bound, Some(params), workspace).unwrap()];
    if let ErrorBound::Absolute(bound) = bound {
        // Also where interpolation takes fewer bits.
        let bounds = (bound, ErrorTarget::Values);
        let input = EncoderInput::transformed(values, layout, bounds, omitted, &mut Vec::new());
        if let Some(input) = input.unwrap() {
            make_symbols(&input, bound, params, workspace);
            let prelude = Prelude::default();
            streams.push(input.stream(&workspace.symbols, bound, params, &prelude));
        }
    }
    for stream in streams {
        assert_eq!(inspect(&stream).unwrap().values, values.len());
        let mut found = vec![T::default(); values.len()];
        decode(&stream, &mut found, workspace).unwrap();
        for (at, (value, found)) in values.iter().zip(&found).enumerate() {
            let is_within = bound.is_satisfied(value.to_f64(), found.to_f64());
            assert!(
                is_within || layout.is_padding(at),
                "{at}: {value:?} {found:?}"
            );
        }
    }
}

/// Checks that the root mean squared error is at most `root`, and that other values than numbers are kept.
fn check_mean_error(values: &[f64], layout: &Layout<'_>, root: f64, omitted: u8) {
    let (bound, workspace) = (ErrorBound::Rms(root), &mut Workspace::default());
    let params = tune_small(values, layout, bound).unwrap();
    let params = params.with_wavelet(Some(omitted));
    let stream = encode(values, layout, bound, Some(params), workspace).unwrap();
    assert_eq!(inspect(&stream).unwrap().values, values.len());
    let mut found = vec![0.0; values.len()];
    decode(&stream, &mut found, workspace).unwrap();
    let pairs = || values.iter().zip(&found);
    let finite = pairs().filter(|(a, _)| a.is_finite());
    let squares = finite.map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    assert!(squares <= root * root * values.len() as f64);
    let is_kept = |(a, b): (&f64, &f64)| a.is_finite() || a.to_bits() == b.to_bits();
    assert!(pairs().all(is_kept));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn coefficients_give_the_values(shape in [1..20usize, 1..40usize, 1..70usize], omitted in 0..7u8) {
        let values = values(shape);
        let transform = Transform::new(shape, omitted);
        let (mut coefficients, mut found) = (Vec::new(), vec![0.0; values.len()]);
        transform.coefficients(&values, &mut coefficients);
        let mut synthesis = Synthesis::new(&transform);
        for (row, coefficients) in coefficients.chunks(shape[2]).enumerate() {
            synthesis.row([row / shape[1], row % shape[1]], coefficients, &mut found);
        }
        synthesis.finish(&mut found);
        prop_assert!(values.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn corrected_values_are_within_the_bound(
        shape in [1..20usize, 1..40usize, 1..70usize],
        digits in -3..14i32,
        omitted in 0..4u8,
        ratio in prop::sample::select(vec![1e-3, 0.5, 1.0, 1.4, 7.0, 1e6]),
        offset in prop::sample::select(vec![0.0, 3.0, 1e9, 1e30]),
        single in any::<bool>(),
        relative in any::<bool>(),
        held in [1..20usize, 1..40usize, 1..70usize],
    ) {
        let held: [usize; 3] = std::array::from_fn(|d| held[d].min(shape[d]));
        let layout = Layout::PaddedArray { shape: &shape, held: &held };
        let values: Vec<f64> = values(shape).into_iter().map(|x| x + offset).collect();
        let bound = 10f64.powi(-digits);
        let bound = match relative && bound < 1.0 {
            true => ErrorBound::Relative(bound),
            false => ErrorBound::Absolute(bound),
        };
        if single {
            let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            check_corrected(&values, &layout, bound, omitted, ratio);
        } else {
            check_corrected(&values, &layout, bound, omitted, ratio);
        }
    }

    #[test]
    fn blocks_are_transformed(
        places in prop::collection::btree_set([0..3i64, 0..3i64, 0..4i64], 1..30),
        side in [1..9usize, 1..9usize, 1..17usize],
        digits in 0..9i32,
        omitted in 0..4u8,
    ) {
        let side_of = |d: usize| side[d] as i64;
        let mut origins: Vec<[i64; 3]> = places
            .iter()
            .map(|place| std::array::from_fn(|d| place[d] * side_of(d)))
            .collect();
        origins.sort_by_key(|origin| blocks::key_of(origin, side).unwrap());
        let layout = Layout::Blocks { side, origins: &origins };
        let cells: usize = side.iter().product();
        let value = |i: usize| {
            let origin = origins[i / cells];
            let within = [i % cells / side[1] / side[2], i / side[2] % side[1], i % side[2]];
            let [z, y, x] = std::array::from_fn(|d| (origin[d] + within[d] as i64) as f64);
            (0.3 * z).sin() + (0.2 * y + 0.1 * x).cos()
        };
        let values: Vec<f64> = (0..cells * origins.len()).map(value).collect();
        let bound = 10f64.powi(-digits);
        check_corrected(&values, &layout, ErrorBound::Absolute(bound), omitted, 1.4);
        check_mean_error(&values, &layout, bound, omitted);
    }

    #[test]
    fn mean_squared_errors_are_bounded(
        shape in [1..20usize, 1..40usize, 1..70usize],
        digits in 0..14i32,
        omitted in 0..4u8,
        offset in prop::sample::select(vec![0.0, 3.0, 1e9, f64::NAN]),
    ) {
        let values: Vec<f64> = values(shape).into_iter().map(|x| x + offset).collect();
        check_mean_error(&values, &Layout::Array(&shape), 10f64.powi(-digits), omitted);
    }
}
