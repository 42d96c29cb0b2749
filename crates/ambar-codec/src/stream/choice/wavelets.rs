//! The choice between wavelets and interpolation, by trials on a sample of the values.

use crate::domain::components::with_moved_dimensions;
use crate::domain::regions::{Layout, separate_dimensions, volume};
use crate::element::Element;
use crate::error::Result;
use crate::stream::choice::sample::{MAX_SAMPLE, costliest_run, costliest_tile};
use crate::stream::coefficients::ErrorTarget;
use crate::stream::encode::{Workspace, estimate_cost};
use crate::stream::input::EncoderInput;
use crate::stream::mean_error::{self, ErrorBudget};
use crate::stream::params::EncoderParams;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Maximum number of values to compare wavelets with interpolation.
const MAX_LARGE_SAMPLE: usize = 1 << 18;
/// Maximum ratio of the bits of wavelets with corrections to those of interpolation, which decodes faster and has level packets.
const MAX_CORRECTED_SIZE: f64 = 0.95;
/// As `MAX_CORRECTED_SIZE`, for the first trial, which the next ones may improve by some part, and by some bits a value.
const MAX_FIRST_SIZE: f64 = 1.2;
const MAX_FIRST_EXCESS: f64 = 0.2;
/// The ratio of the bound of coefficients to that of values in the first trials.
const FIRST_BOUND_RATIO: f64 = 1.4;
/// The factors between the ratios that are tried, and their range.
const BOUND_RATIO_FACTORS: [f64; 2] = [1.4, 1.0 / 1.4];
const BOUND_RATIOS: RangeInclusive<f64> = 0.5..=8.0;

/// Chooses wavelets or interpolation, by bits at equal squared error.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn choose_wavelets<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    params: EncoderParams,
) -> Result<EncoderParams> {
    let workspace = &mut Workspace::default();
    let sample = Sample::new(values, layout, bound, MAX_LARGE_SAMPLE);
    let (budget, interpolation) = sample.interpolated(bound, params, |input| {
        let budget = ErrorBudget::new(bound, input.count_finite(&sample.values));
        let first = budget.trial(input, bound, params, workspace);
        let estimate = mean_error::estimate(input, budget, first, params, workspace);
        (budget, estimate)
    })?;
    let params = params.with_bound_ratio(interpolation.ratio);
    let smallest = sample.smallest_wavelet((bound, ErrorTarget::Mean), f64::INFINITY, |input| {
        let trial = budget.trial(input, interpolation.ratio * bound, params, workspace);
        (trial.allowed_bits, trial)
    })?;
    let Some(smallest) = smallest else {
        return Ok(params);
    };
    let first = smallest.trial;
    let wavelet = mean_error::estimate(&smallest.input, budget, first, params, workspace);
    Ok(if wavelet.bits < interpolation.bits {
        params
            .with_bound_ratio(wavelet.ratio)
            .with_unmoved_wavelet(smallest.omitted)
    } else {
        params
    })
}

/// Chooses wavelets with corrections or interpolation, by bits within the same bound. `bits` are those of all values with
/// interpolation, estimated on a small sample (all values, if there are few). The ratio of bounds is chosen on such a sample, too, and the number of levels on a
/// larger one.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn choose_corrected_wavelets<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    (params, bits): (EncoderParams, f64),
) -> Result<EncoderParams> {
    if params.moved_dimensions() > 0 {
        // These do not predict each other, so wavelets along them are not promising.
        return Ok(params);
    }
    let workspace = &mut Workspace::default();
    let mut trial = |input: &EncoderInput<'_, T>, ratio: f64| {
        let params = params.with_bound_ratio(ratio);
        estimate_cost(input, bound, params, 1.0, workspace).bits
    };
    let first = Sample::new(values, layout, bound, MAX_SAMPLE);
    let part = first.values.len() as f64 / values.len().max(1) as f64;
    let Some(input) = first.transformed((bound, ErrorTarget::Values), 0)? else {
        return Ok(params);
    };
    let first_bits = trial(&input, FIRST_BOUND_RATIO);
    if first_bits > first.max_first(part * bits) {
        return Ok(params);
    }
    let (ratio, gain) = cheapest_ratio(first_bits, |ratio| trial(&input, ratio));
    let (sample, interpolation) = if part < 1.0 {
        let sample = Sample::new(values, layout, bound, MAX_LARGE_SAMPLE);
        let interpolation = sample.interpolated(bound, params, |input| trial(input, 1.0))?;
        (sample, interpolation)
    } else {
        drop(input);
        (first, bits)
    };
    let max_first = sample.max_first(interpolation);
    let smallest = sample.smallest_wavelet((bound, ErrorTarget::Values), max_first, |input| {
        (trial(input, FIRST_BOUND_RATIO), ())
    })?;
    Ok(match smallest {
        Some(smallest) if gain * smallest.bits <= MAX_CORRECTED_SIZE * interpolation => params
            .with_bound_ratio(ratio)
            .with_unmoved_wavelet(smallest.omitted),
        _ => params,
    })
}

/// The ratio of bounds whose trial takes the fewest bits, and its bits relative to those of the first trial.
fn cheapest_ratio(first_bits: f64, mut trial: impl FnMut(f64) -> f64) -> (f64, f64) {
    let (mut best, mut cheapest) = (first_bits, FIRST_BOUND_RATIO);
    for factor in BOUND_RATIO_FACTORS {
        while BOUND_RATIOS.contains(&(factor * cheapest)) {
            let bits = trial(factor * cheapest);
            if bits >= best {
                break;
            }
            (best, cheapest) = (bits, factor * cheapest);
        }
        if cheapest > FIRST_BOUND_RATIO {
            break;
        }
    }
    (cheapest, best / first_bits)
}

/// Values for which interpolation is compared with wavelets.
struct Sample<'a, T: Clone> {
    values: Cow<'a, [T]>,
    layout: SampleLayout<'a>,
}

/// The layout of a sample.
enum SampleLayout<'a> {
    Array(Vec<usize>),
    Other(Layout<'a>),
}

impl<'a, T: Element> Sample<'a, T> {
    /// At most `most` values: a tile of an array, or a run of blocks.
    fn new(values: &'a [T], layout: &Layout<'a>, bound: f64, most: usize) -> Self {
        match layout {
            _ if values.len() <= most => Self {
                values: Cow::Borrowed(values),
                layout: match layout.as_array() {
                    Some((shape, _)) => SampleLayout::Array(shape.to_vec()),
                    None => SampleLayout::Other(layout.clone()),
                },
            },
            Layout::Array(shape) | Layout::PaddedArray { shape, .. } => {
                let mut part = Vec::new();
                let shape = costliest_tile(values, shape, bound, most, &mut part);
                Self {
                    values: Cow::Owned(part),
                    layout: SampleLayout::Array(shape),
                }
            }
            Layout::Blocks { side, origins } => {
                let cells = volume(*side).unwrap_or(1);
                let (first, end) = costliest_run(values, cells, bound, most);
                let (side, origins) = (*side, &origins[first..end]);
                Self {
                    values: Cow::Borrowed(&values[first * cells..end * cells]),
                    layout: SampleLayout::Other(Layout::Blocks { side, origins }),
                }
            }
            Layout::Cells { .. } => Self {
                values: Cow::Borrowed(values),
                layout: SampleLayout::Other(layout.clone()),
            },
        }
    }

    fn layout(&self) -> Layout<'_> {
        match &self.layout {
            SampleLayout::Array(shape) => Layout::Array(shape),
            SampleLayout::Other(layout) => layout.clone(),
        }
    }

    /// Maximum bits of a first trial of wavelets, with those of interpolation.
    fn max_first(&self, interpolation: f64) -> f64 {
        let excess = MAX_FIRST_EXCESS * self.values.len() as f64;
        let most = MAX_CORRECTED_SIZE * interpolation + excess;
        most.min(MAX_FIRST_SIZE * interpolation)
    }

    /// Calls `use_input` with the values as interpolation codes them.
    fn interpolated<R>(
        &self,
        bound: f64,
        params: EncoderParams,
        use_input: impl FnOnce(&EncoderInput<'_, T>) -> R,
    ) -> Result<R> {
        let (contexts, buffers) = (params.contexts(), &mut Vec::new());
        let SampleLayout::Array(shape) = &self.layout else {
            let input = EncoderInput::new(&self.values, &self.layout(), bound, contexts, buffers)?;
            return Ok(use_input(&input));
        };
        let moved = params.moved_dimensions();
        let (values, shape) = with_moved_dimensions(&self.values, shape, moved);
        let separated = separate_dimensions(&shape, params.separate_dimensions());
        let layout = Layout::Array(&separated);
        let input = EncoderInput::new(&values, &layout, bound, contexts, buffers)?;
        Ok(use_input(&input))
    }

    /// The values as wavelet coefficients, with the possible levels less `omitted` ones; `None` if the transform does not apply.
    fn transformed(
        &self,
        bounds: (f64, ErrorTarget),
        omitted: u8,
    ) -> Result<Option<EncoderInput<'_, T>>> {
        let layout = self.layout();
        let buffers = &mut Vec::new();
        let mut input = EncoderInput::transformed(&self.values, &layout, bounds, omitted, buffers)?;
        if let (Some(input), ErrorTarget::Mean) = (&mut input, bounds.1) {
            input.drop_originals();
        }
        Ok(input)
    }

    /// The wavelet coefficients of which a trial takes the fewest bits; `None` if no transform applies, or if the first trial takes
    /// more than `max_first`. `try_input` returns the bits of a trial, and the trial.
    ///
    /// Each level gathers the energy of smooth values in fewer coefficients, but spreads that of local details along the other
    /// dimensions, where contexts predict fewer zeros.
    fn smallest_wavelet<R>(
        &self,
        bounds: (f64, ErrorTarget),
        max_first: f64,
        mut try_input: impl FnMut(&EncoderInput<'_, T>) -> (f64, R),
    ) -> Result<Option<SmallestWavelet<'_, T, R>>> {
        let mut best: Option<SmallestWavelet<'_, T, R>> = None;
        for omitted in 0.. {
            let Some(input) = self.transformed(bounds, omitted)? else {
                break;
            };
            let (bits, trial) = try_input(&input);
            if bits >= best.as_ref().map_or(max_first, |best| best.bits) {
                break;
            }
            best = Some(SmallestWavelet {
                input,
                bits,
                trial,
                omitted,
            });
        }
        Ok(best)
    }
}

/// Wavelet coefficients of which a trial took the fewest bits.
struct SmallestWavelet<'a, T: Clone, R> {
    input: EncoderInput<'a, T>,
    bits: f64,
    trial: R,
    omitted: u8,
}
