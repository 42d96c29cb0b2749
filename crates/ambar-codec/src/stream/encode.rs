//! The encoder of coded values within an absolute bound: bit-packed, interpolated, as wavelet coefficients or without loss, in
//! the form that takes the fewest bits of those that the parameters allow.

use crate::bitpack;
use crate::domain::regions::{Layout, SeparateShape};
use crate::domain::tree::RegionCache;
use crate::element::Element;
use crate::entropy::rans::decode_table::DecodeTables;
use crate::entropy::symbols::Symbols;
use crate::entropy::tables::Histogram;
use crate::error::Result;
use crate::predict::context::{self, ContextWeights, LAGRANGE_MULTIPLIER};
use crate::predict::mask_pyramid::Validity;
use crate::predict::traversal::{self, Scratch, TraversalParams};
use crate::quantize::row_encoder::Encoder;
use crate::stream::coefficients::ErrorTarget;
use crate::stream::header::Contexts;
use crate::stream::input::EncoderInput;
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use crate::stream::write::{write_bit_packed_header, write_checksum};

/// Buffers of the encoder and the decoder. Reuse a workspace for all chunks of an array, to allocate memory once.
#[derive(Default)]
pub struct Workspace<T> {
    pub(crate) traversal: Scratch<T>,
    pub(crate) symbols: Symbols,
    pub(crate) decode_tables: DecodeTables,
    pub(crate) cell_regions: RegionCache,
    pub(crate) bit_packing: bitpack::Scratch,
    /// Memory of dense regions.
    pub(crate) buffers: Vec<Vec<T>>,
    /// Decoded values: to verify bounds that the coded values do not guarantee, and to measure errors.
    pub(crate) decoded: Vec<T>,
}

/// Encodes coded values within an absolute bound (0 for lossless) into `out`, whose content is replaced.
pub(crate) fn encode_coded_values<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    params: EncoderParams,
    prelude: &Prelude<'_>,
    workspace: &mut Workspace<T>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if params.is_bit_packed()
        && let Some((shape, _)) = layout.as_array()
    {
        layout.check(values.len())?;
        write_bit_packed_header::<T>(shape, values.len(), bound, prelude, out);
        if bitpack::encode(values, shape, bound, &mut workspace.bit_packing, out) {
            write_checksum(0, out);
            return Ok(());
        }
    }
    *out = encode_entropy_coded(values, layout, bound, params, prelude, workspace)?;
    Ok(())
}

/// Encodes values as an entropy-coded stream.
fn encode_entropy_coded<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    params: EncoderParams,
    prelude: &Prelude<'_>,
    workspace: &mut Workspace<T>,
) -> Result<Vec<u8>> {
    let (mut separate, whole) = (SeparateShape::default(), layout);
    let layout = &layout.with_separate_dimensions(params.separate_dimensions(), &mut separate);
    let (bound, params) = supported::<T>(bound, layout, params);
    let buffers = &mut workspace.buffers;
    let input = EncoderInput::new(values, layout, bound, params.contexts(), buffers)?;
    make_symbols(&input, bound, params, workspace);
    let is_fine = params.tries_lossless() || has_many_literals(&workspace.symbols, values.len());
    if bound > 0.0 && is_fine {
        let bounded = std::mem::take(&mut workspace.symbols);
        let lossless = encode_entropy_coded(values, whole, 0.0, params, prelude, workspace)?;
        if symbol_bits(&workspace.symbols, 1.0) <= symbol_bits(&bounded, 1.0) {
            input.recycle(&mut workspace.buffers);
            return Ok(lossless);
        }
        workspace.symbols = bounded;
    }
    let transformed = transform_if_smaller(values, whole, bound, params, workspace)?;
    let smallest = transformed.as_ref().unwrap_or(&input);
    let stream = smallest.stream(&workspace.symbols, bound, params, prelude);
    for input in transformed.into_iter().chain([input]) {
        input.recycle(&mut workspace.buffers);
    }
    Ok(stream)
}

/// The values as wavelet coefficients with corrections, if the parameters allow them, and if they take fewer bits than the symbols
/// of the workspace, which they replace.
fn transform_if_smaller<'a, T: Element>(
    values: &'a [T],
    layout: &Layout<'_>,
    bound: f64,
    params: EncoderParams,
    workspace: &mut Workspace<T>,
) -> Result<Option<EncoderInput<'a, T>>> {
    let Some(omitted) = params.omitted_wavelet_levels().filter(|_| bound > 0.0) else {
        return Ok(None);
    };
    let bounds = (bound, ErrorTarget::Values);
    let buffers = &mut workspace.buffers;
    let Some(input) = EncoderInput::transformed(values, layout, bounds, omitted, buffers)? else {
        return Ok(None);
    };
    let interpolated = std::mem::take(&mut workspace.symbols);
    make_symbols(&input, bound, params, workspace);
    if symbol_bits(&workspace.symbols, 1.0) < symbol_bits(&interpolated, 1.0) {
        return Ok(Some(input));
    }
    workspace.symbols = interpolated;
    input.recycle(&mut workspace.buffers);
    Ok(None)
}

/// Whether more than 1/64 of `count` values, and 16 more, are literals. Lossless coding may then take less: the bound may be finer
/// than the type resolves at the magnitude of the values.
pub(crate) fn has_many_literals(symbols: &Symbols, count: usize) -> bool {
    symbols.literals > count / 64 + 16
}

/// The bound, 0 where steps cannot be represented, and the parameters, with contexts by row where those by plane do not apply.
pub(crate) fn supported<T: Element>(
    bound: f64,
    layout: &Layout<'_>,
    params: EncoderParams,
) -> (f64, EncoderParams) {
    // A step that underflows to 0, or whose inverse overflows, requires lossless coding.
    let steps = params.levels::<T>(bound, 0);
    let bound = if steps.iter().any(|level| 1.0 / level.step > f64::MAX) {
        0.0
    } else {
        bound
    };
    // Lossless residuals resemble those of the row before more than those of the plane before.
    let params = match params.contexts() {
        Contexts::Plane if bound == 0.0 || !layout.has_planes() => {
            params.with_contexts(Contexts::Row)
        }
        _ => params,
    };
    (bound, params)
}

/// The estimated cost of a stream, in bits.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// The bits of the stream.
    pub bits: f64,
    /// The squared error in bits, at the rate of exchange; 0 unless the encoder minimises it together with the bits.
    pub error: f64,
}

impl Cost {
    /// The sum of both.
    pub(crate) fn total(self) -> f64 {
        self.bits + self.error
    }
}

/// Estimates the cost of a stream of which the regions are one part in `scale`.
pub(crate) fn estimate_cost<T: Element>(
    input: &EncoderInput<'_, T>,
    bound: f64,
    params: EncoderParams,
    scale: f64,
    workspace: &mut Workspace<T>,
) -> Cost {
    make_symbols(input, bound, params, workspace);
    Cost {
        bits: symbol_bits(&workspace.symbols, scale),
        error: scale * workspace.symbols.square_error / LAGRANGE_MULTIPLIER,
    }
}

/// The approximate bits of symbols, if there are `scale` times as many.
pub(crate) fn symbol_bits(symbols: &Symbols, scale: f64) -> f64 {
    let tokens = Histogram::new(&symbols.contexts, &symbols.tokens).bits(scale);
    tokens + scale * symbols.raw.bits() as f64
}

/// Replaces the workspace's symbols by those of the regions.
pub(crate) fn make_symbols<T: Element>(
    input: &EncoderInput<'_, T>,
    bound: f64,
    params: EncoderParams,
    workspace: &mut Workspace<T>,
) {
    workspace.symbols.clear();
    if let Some(transformed) = &input.transformed {
        let coefficient_bound = transformed.coefficient_bound(bound, params.bound_ratio());
        let bounds = (coefficient_bound, bound);
        let memory = (&mut workspace.symbols, &mut workspace.decoded);
        return transformed.make_symbols(&input.regions, bounds, input.least, memory);
    }
    let levels = params.levels::<T>(bound, if bound > 0.0 { 0 } else { input.shift });
    let traversal_params = TraversalParams {
        levels: &levels,
        context_weights: &ContextWeights::DEFAULT,
    };
    let dead_zones = params.uses_rdo().then(context::dead_zones);
    // Smaller values cannot be decoded if the least value is larger than all errors.
    let least = input.least_within(2.0 * bound);
    for region in &input.regions {
        let valid = region.valid.as_ref();
        let validity = valid.map(|valid| Validity::new(valid, input.predicts_holes));
        let symbols = &mut workspace.symbols;
        let mut encoder = Encoder::new(region, bound, dead_zones.as_ref(), least, symbols);
        traversal::traverse(
            region.shape,
            validity.as_ref(),
            &traversal_params,
            &mut encoder,
            &mut workspace.traversal,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::bitmap::Bitmap;

    /// Regions without holes have a faster implementation, which must give the same stream.
    #[test]
    fn regions_without_a_mask_and_with_a_full_mask_give_equal_streams() {
        for shape in [
            [9, 8, 7],
            [1, 6, 40],
            [2, 2, 2],
            [4, 1, 1],
            [16, 3, 5],
            [1, 1, 70],
            [6, 10, 134],
        ] {
            let count = shape.iter().product();
            let value = |i: usize, bound: f64| match i % 50 {
                3 => 1e301,
                4.. if bound == 0.5 => -0.0,
                _ => (i as f64 * 0.37).sin() * 1e3 + (i % 7) as f64,
            };
            let bounds = [0.0, 0.1, 0.5, 30.0, 1e300];
            let both = [false, true].map(|planes| bounds.map(|bound| (planes, bound)));
            for &(planes, bound) in both.as_flattened() {
                let contexts = if planes {
                    Contexts::Plane
                } else {
                    Contexts::Row
                };
                let params = EncoderParams::default().with_contexts(contexts);
                let values: Vec<f64> = (0..count).map(|i| value(i, bound)).collect();
                let coded = if bound == 0.5 { 0.0 } else { bound };
                let mut input = EncoderInput::new(
                    &values,
                    &Layout::Array(&shape),
                    coded,
                    contexts,
                    &mut Vec::new(),
                )
                .unwrap();
                let mut streams = [None, Some(Bitmap::full(shape))].map(|valid| {
                    input.regions[0].valid = valid;
                    let mut workspace = Workspace::default();
                    make_symbols(&input, coded, params, &mut workspace);
                    input.stream(&workspace.symbols, coded, params, &Prelude::default())
                });
                let [short, long] = &mut streams;
                assert!(short == long, "{shape:?} {bound} {planes}");
            }
        }
    }

    /// Our encoder writes no literals for padding points. Other encoders may.
    #[test]
    fn literals_of_padding_points_are_ignored() {
        let layout = Layout::Blocks {
            side: [8; 3],
            origins: &[[0, 0, 0], [0, 8, 0], [0, 8, 8]],
        };
        // The face of the hole is extrapolated from a block with an outlier.
        let mut values = vec![1.0f64; 3 * 512];
        values[7] = 1e200;
        for contexts in [Contexts::Plane, Contexts::Level] {
            let params = EncoderParams::default().with_contexts(contexts);
            let mut input =
                EncoderInput::new(&values, &layout, 1e-3, contexts, &mut Vec::new()).unwrap();
            for literals in [1, 2] {
                let mut workspace = Workspace::default();
                make_symbols(&input, 1e-3, params, &mut workspace);
                assert_eq!(workspace.symbols.literals, literals);
                let stream = input.stream(&workspace.symbols, 1e-3, params, &Prelude::default());
                let mut out = vec![0.0; values.len()];
                crate::decode(&stream, &mut out, &mut workspace).unwrap();
                assert!(out.iter().zip(&values).all(|(a, b)| (a - b).abs() <= 1e-3));
                input.regions[0].padding = None;
            }
        }
    }

    /// The decoder reconstructs values while it predicts, unlike the encoder. Both must compute the same values, the
    /// sign of 0 included.
    #[test]
    fn encoder_and_decoder_compute_the_same_values() {
        for shape in [
            [9, 8, 7],
            [1, 6, 40],
            [16, 3, 5],
            [1, 1, 140],
            [12, 16, 17],
            [6, 10, 134],
        ] {
            let count = shape.iter().product();
            for (holes, params) in
                (0..2).flat_map(|holes| (0..192).map(move |params| (holes, params)))
            {
                let params = EncoderParams::numbered(params);
                let value = |i: usize| match i % 61 {
                    _ if holes == 1 && ((i / 5).is_multiple_of(3) || i / 70 % 4 == 1) => f64::NAN,
                    3 => 1e301,
                    7 => -1e-320,
                    4..20 => -0.0,
                    _ => (i as f64 * 0.37).sin() * 1e3 + (i % 7) as f64,
                };
                let values: Vec<f64> = (0..count).map(value).collect();
                let [mut one, mut two] = [Workspace::default(), Workspace::default()];
                let layout = Layout::Array(&shape);
                let stream = crate::encode(&values, &layout, 2.0, Some(params), &mut one).unwrap();
                crate::decode(&stream, &mut vec![0.0; count], &mut two).unwrap();
                let phases = crate::domain::lattice::Phases::new(shape);
                for (i, value) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                    let at = [
                        i / (shape[1] * shape[2]),
                        i / shape[2] % shape[1],
                        i % shape[2],
                    ];
                    let t = (0..3).fold(0, |t, d| t | (at[d] & 1) << d);
                    let place = phases.row(at[0] / 2, at[1] / 2) + at[2] / 2;
                    let [a, b] = [&one, &two].map(|w| w.traversal.values[t][place].to_bits());
                    assert!(a == b, "{shape:?} {params:?} {i}: {value}");
                }
            }
        }
    }
}
