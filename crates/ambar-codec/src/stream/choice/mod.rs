//! The choice of encoder parameters, by trials on a sample of the values.

mod interpolation;
mod sample;
mod wavelets;
mod weight_fit;

use crate::domain::blocks;
use crate::domain::components::with_moved_dimensions;
use crate::domain::regions::{Layout, separate_dimensions, volume};
use crate::element::Element;
use crate::error::Result;
use crate::stream::encode::{Cost, Workspace, encode_coded_values, estimate_cost, supported};
use crate::stream::header::Contexts;
use crate::stream::input::EncoderInput;
use crate::stream::params::{EncoderParams, LEVEL_SCALINGS};
use crate::stream::prelude::Prelude;
use interpolation::Proposals;
use sample::{MAX_SAMPLE, are_rougher, costliest_run, costliest_tile, difference_costs};
use wavelets::{choose_corrected_wavelets, choose_wavelets};

/// Maximum number of cells of a sample of a tree: with 2^16, streams are less than 1 % smaller.
const MAX_CELL_SAMPLE: usize = 1 << 13;

/// Maximum ratio of the estimated size of separate regions to that of whole ones: the sample may differ from the other values.
const MAX_SEPARATED_SIZE: f64 = 0.9;
/// Streams of more bits for each value are compared with lossless ones: the bound may be finer than the values are.
const MIN_LOSSLESS_BITS: f64 = 8.0;
/// Maximum ratio of the lossless size with the default interpolation to the size within the bound, for which other interpolations
/// are tried.
const MAX_LOSSLESS_EXCESS: f64 = 1.25;
/// Maximum ratio of the estimated size with weights of phases to that without, which decodes faster.
const MAX_FITTED_SIZE: f64 = 0.995;

/// As [`crate::tune`], for coded values within an absolute bound.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    is_rms: bool,
) -> Result<EncoderParams> {
    tune_with(values, layout, bound, balanced(layout, bound, is_rms))
}

/// The parameters of the profile `balanced` before the choice of level scaling and interpolation.
fn balanced(layout: &Layout<'_>, bound: f64, is_rms: bool) -> EncoderParams {
    let contexts = if bound > 0.0 && layout.has_planes() {
        Contexts::Plane
    } else {
        Contexts::Row
    };
    EncoderParams::default()
        .with_contexts(contexts)
        .with_rdo(is_rms)
}

/// As [`crate::tune_small`], for coded values within an absolute bound.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune_small<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    is_rms: bool,
) -> Result<EncoderParams> {
    let params = EncoderParams::default()
        .with_contexts(Contexts::Row)
        .with_size_favoured(true);
    tune_with(values, layout, bound, params.with_rdo(is_rms))
}

/// Chooses level scaling, interpolation, and wavelets where they are smaller; all else is that of `params`.
fn tune_with<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    params: EncoderParams,
) -> Result<EncoderParams> {
    let settings = Settings {
        bound,
        params,
        fits_weights: true,
        max_bits: f64::INFINITY,
    };
    let (mut chosen, bits) = tune_interpolation(values, layout, settings)?;
    if bits > MIN_LOSSLESS_BITS * values.len() as f64 && bound > 0.0 && !params.uses_rdo() {
        let settings = Settings {
            bound: 0.0,
            max_bits: MAX_LOSSLESS_EXCESS * bits,
            ..settings
        };
        let (lossless, lossless_bits) = tune_interpolation(values, layout, settings)?;
        if lossless_bits < bits {
            chosen = lossless.with_lossless_trial(true);
        }
    }
    let is_lossy = bound > 0.0 && !chosen.tries_lossless();
    if params.uses_rdo() && !matches!(layout, Layout::Cells { .. }) {
        chosen = choose_wavelets(values, layout, bound, chosen)?;
    } else if is_lossy && !matches!(layout, Layout::Cells { .. }) {
        chosen = choose_corrected_wavelets(values, layout, bound, (chosen, bits))?;
    }
    // The parameters do not depend on the kind of bound.
    Ok(chosen.with_rdo(false))
}

/// What level scaling and interpolation are chosen for.
#[derive(Clone, Copy)]
struct Settings {
    /// The absolute bound, 0 for lossless.
    bound: f64,
    /// All other parameters.
    params: EncoderParams,
    /// Whether phases may have weights of their own.
    fits_weights: bool,
    /// Other interpolations are not tried if the default one takes more bits.
    max_bits: f64,
}

/// Chooses level scaling and interpolation, and the separate dimensions of arrays. Also returns the estimated bits of all values.
fn tune_interpolation<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    settings: Settings,
) -> Result<(EncoderParams, f64)> {
    let bound = settings.bound;
    // The whole layout is checked, because a sample may be valid where the whole is not.
    layout.check(values.len())?;
    let count = values.len();
    match layout {
        Layout::Array(shape) | Layout::PaddedArray { shape, .. } => {
            tune_array(values, shape, settings)
        }
        Layout::Blocks { side, origins } => {
            blocks::keys(origins, *side)?;
            let cells = volume(*side).unwrap_or(1);
            let (first, end) = costliest_run(values, cells, bound, MAX_SAMPLE);
            let sample = Layout::Blocks {
                side: *side,
                origins: &origins[first..end],
            };
            let sample = Arranged {
                values: &values[first * cells..end * cells],
                layout: &sample,
            };
            tune_by_sample(sample, Some(Arranged { values, layout }), count, settings)
        }
        Layout::Cells {
            dimensions,
            levels,
            origins,
        } => {
            let (first, end) = costliest_run(&values[..levels.len()], 1, bound, MAX_CELL_SAMPLE);
            let sample = Layout::Cells {
                dimensions: *dimensions,
                levels: &levels[first..end],
                origins: &origins[first..end],
            };
            let sample = Arranged {
                values: &values[first..end],
                layout: &sample,
            };
            // Regions of all cells would take more time than the trials.
            tune_by_sample(sample, None, count, settings)
        }
    }
}

/// Chooses level scaling and interpolation of an array, and which of its dimensions are separate. Also returns the estimated bits of
/// all values.
fn tune_array<T: Element>(
    values: &[T],
    shape: &[usize],
    settings: Settings,
) -> Result<(EncoderParams, f64)> {
    let mut part = Vec::new();
    let tile = costliest_tile(values, shape, settings.bound, MAX_SAMPLE, &mut part);
    let tune_arranged = |moved: usize, separate: usize| {
        let (part, tile) = with_moved_dimensions(&part, &tile, moved);
        let tile = separate_dimensions(&tile, separate);
        let sample = Arranged {
            values: &part[..],
            layout: &Layout::Array(&tile),
        };
        let whole = separate_dimensions(shape, separate);
        let layout = &Layout::Array(&whole);
        // To move the dimensions of all values would take more time than the trials.
        let all = (moved == 0).then_some(Arranged { values, layout });
        let params = settings.params;
        let params = params.with_moved_dimensions(moved as u8);
        let params = params.with_separate_dimensions(separate as u8);
        tune_by_sample(sample, all, values.len(), Settings { params, ..settings })
    };
    let costs = difference_costs(&part, &tile, settings.bound);
    let rank = costs.len();
    let mut best = tune_arranged(0, 0)?;
    for moved in 0..=rank / 2 {
        let (outer, last) = costs.split_at(rank - moved);
        // Of four dimensions, the first one is separate already.
        if !are_rougher(last, &outer[rank.saturating_sub(3)..]) {
            continue;
        }
        let costs = [last, outer].concat();
        // Those that are moved do not predict each other.
        let least = match moved {
            0 => 1,
            _ => (moved + 3).saturating_sub(rank),
        };
        for separate in least..3 {
            // Planes, or rows, that do not predict each other.
            let is_rough = |d: usize| are_rougher(&costs[d..=d], &costs[d + 1..]);
            let is_promising = moved > 0 && separate == least
                || (rank + separate).checked_sub(4).is_some_and(is_rough);
            if is_promising {
                let found = tune_arranged(moved, separate)?;
                if found.1 < MAX_SEPARATED_SIZE * best.1 {
                    best = found;
                }
            }
        }
    }
    Ok(best)
}

/// Values with their layout.
#[derive(Clone, Copy)]
struct Arranged<'a, T> {
    values: &'a [T],
    layout: &'a Layout<'a>,
}

/// Chooses level scaling and interpolation by trials on a sample; `count` is the number of all values. Interpolations are
/// proposed from points of `all`, or of the sample. Also returns the estimated bits of all values.
fn tune_by_sample<T: Element>(
    sample: Arranged<'_, T>,
    all: Option<Arranged<'_, T>>,
    count: usize,
    settings: Settings,
) -> Result<(EncoderParams, f64)> {
    let (bound, params) = supported::<T>(settings.bound, sample.layout, settings.params);
    let (contexts, buffers) = (params.contexts(), &mut Vec::new());
    let input = EncoderInput::new(sample.values, sample.layout, bound, contexts, buffers)?;
    let scale = count as f64 / input.count.max(1) as f64;
    let mut trials = Trials {
        sample: &input,
        bound,
        scale,
        workspace: Workspace::default(),
    };
    let mask_bits = scale * input.mask_bits();
    if settings.max_bits.is_finite() {
        let bits = trials.candidate(params).cost.total() + mask_bits;
        if bits > settings.max_bits {
            return Ok((params, bits));
        }
    }
    let propose = |input: &EncoderInput<'_, T>| {
        interpolation::propose(&input.regions, count, bound, settings.fits_weights)
    };
    let proposals = match all.filter(|all| all.values.len() > input.count) {
        Some(all) => propose(&EncoderInput::new(
            all.values, all.layout, bound, contexts, buffers,
        )?),
        None => propose(&input),
    };
    let chosen = trials.choose(params, &proposals);
    Ok((chosen.params, chosen.cost.total() + mask_bits))
}

/// Maximum size ratio of the bit-packed stream to the entropy-coded one.
const MAX_BIT_PACKED_RATIO: f64 = 1.25;
/// Maximum number of values of a one-dimensional sample for this comparison.
const MAX_ROW_SAMPLE: usize = 1 << 15;

/// As [`crate::tune_fast`], for coded values within an absolute bound.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune_fast<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    is_rms: bool,
) -> Result<EncoderParams> {
    layout.check(values.len())?;
    let tuned = |values, layout: &Layout<'_>| -> Result<EncoderParams> {
        let settings = Settings {
            bound,
            params: balanced(layout, bound, is_rms),
            fits_weights: false,
            max_bits: f64::INFINITY,
        };
        let (chosen, _) = tune_interpolation(values, layout, settings)?;
        Ok(chosen.with_rdo(false).with_level_contexts())
    };
    let Some((shape, _)) = layout.as_array() else {
        return tuned(values, layout);
    };
    if bound == 0.0 {
        return Ok(EncoderParams::default()
            .with_level_contexts()
            .with_bit_packing());
    }
    // The middle of a one-dimensional array represents all of it.
    let row = [values.len().min(MAX_ROW_SAMPLE)];
    let (values, shape) = match shape.len() {
        1 => (&values[(values.len() - row[0]) / 2..][..row[0]], &row[..]),
        _ => (values, shape),
    };
    let entropy_coded_params = tuned(values, &Layout::Array(shape))?;
    let moved = entropy_coded_params.moved_dimensions();
    let (values, shape) = with_moved_dimensions(values, shape, moved);
    let mut workspace = Workspace::default();
    let mut size = |params| -> Result<usize> {
        let (prelude, mut out) = (Prelude::default(), Vec::new());
        let layout = Layout::Array(&shape);
        encode_coded_values(
            &values,
            &layout,
            bound,
            params,
            &prelude,
            &mut workspace,
            &mut out,
        )?;
        Ok(out.len())
    };
    let (bit_packed, entropy_coded) = (
        size(entropy_coded_params.with_bit_packing())?,
        size(entropy_coded_params)?,
    );
    let is_small_enough = bit_packed as f64 <= MAX_BIT_PACKED_RATIO * entropy_coded as f64;
    Ok(if is_small_enough {
        entropy_coded_params.with_bit_packing()
    } else {
        entropy_coded_params
    })
}

/// Trials of parameters on a sample.
struct Trials<'a, T: Element> {
    sample: &'a EncoderInput<'a, T>,
    bound: f64,
    /// There are this many times as many values as in the sample.
    scale: f64,
    workspace: Workspace<T>,
}

/// Parameters, and the estimated cost of all values with them.
#[derive(Clone, Copy)]
struct Candidate {
    params: EncoderParams,
    cost: Cost,
}

impl<T: Element> Trials<'_, T> {
    fn candidate(&mut self, params: EncoderParams) -> Candidate {
        let (bound, scale) = (self.bound, self.scale);
        let cost = estimate_cost(self.sample, bound, params, scale, &mut self.workspace);
        Candidate { params, cost }
    }

    /// Replaces `best` by other parameters if these cost less. Returns whether they do.
    fn keep_if_cheaper(&mut self, params: EncoderParams, best: &mut Candidate) -> bool {
        let candidate = self.candidate(params);
        let is_cheaper = candidate.cost.total() < best.cost.total();
        if is_cheaper {
            *best = candidate;
        }
        is_cheaper
    }

    /// The cheapest parameters: `params` with a level scaling and with proposed interpolations.
    fn choose(&mut self, params: EncoderParams, proposals: &Proposals) -> Candidate {
        let params = params.with_level_scaling(u8::from(self.bound > 0.0));
        let mut interpolations = proposals.accepted;
        let mut best = self.candidate(params.with_interpolations(interpolations));
        for level in 0..2 {
            let mut linear = interpolations;
            linear[level] = linear[level].linear();
            if linear != interpolations
                && self.keep_if_cheaper(params.with_interpolations(linear), &mut best)
            {
                interpolations = linear;
            }
        }
        if ![proposals.accepted, interpolations].contains(&proposals.candidate) {
            self.keep_if_cheaper(params.with_interpolations(proposals.candidate), &mut best);
        }
        let mut tried = vec![proposals.candidate];
        let [with_outer, with_slopes] = proposals.with_extra;
        for fitted in [proposals.fitted, with_outer, with_slopes] {
            // They are equal if no fit applies, or if the phases gain too little by extra terms.
            if !tried.contains(&fitted) {
                tried.push(fitted);
                let candidate = self.candidate(params.with_interpolations(fitted));
                if is_worth_its_options(candidate, best) {
                    best = candidate;
                }
            }
        }
        if self.bound > 0.0 {
            for level_scaling in 2..LEVEL_SCALINGS.len() as u8 {
                let params = best.params.with_level_scaling(level_scaling);
                if !self.keep_if_cheaper(params, &mut best) {
                    break;
                }
            }
            if best.params == best.params.with_level_scaling(1) {
                let loosest = self.candidate(best.params.with_level_scaling(0));
                // A sample has fewer points of coarse levels than all values, and underestimates what level scaling gains.
                if loosest.cost.total() < 0.995 * best.cost.total() {
                    best = loosest;
                }
            }
        }
        best
    }
}

/// Whether parameters with weights of phases are cheaper than others, by enough to decode more slowly. In streams of few bytes,
/// a smaller error is worth less than elsewhere: the options must also take fewer bits than they save.
fn is_worth_its_options(fitted: Candidate, other: Candidate) -> bool {
    let [fitted, other] = [fitted, other].map(|candidate| Cost {
        bits: candidate.cost.bits + option_bits(candidate.params),
        ..candidate.cost
    });
    fitted.total() < MAX_FITTED_SIZE * other.total() && fitted.bits < other.bits
}

/// The bits of the level options.
fn option_bits(params: EncoderParams) -> f64 {
    let mut options = Vec::new();
    params.write(None, &mut options);
    8.0 * options.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorBound;
    use crate::predict::interpolation::{Interpolation, PhaseWeights};

    #[test]
    fn smooth_values_take_fewer_bytes_with_fitted_weights() {
        let n = 64;
        let bell = |i: usize| {
            let squares = [i / n / n, i / n % n, i % n].map(|k| (k as f64 - 30.0).powi(2));
            (-squares.iter().sum::<f64>() / 100.0).exp()
        };
        let values: Vec<f64> = (0..n * n * n).map(bell).collect();
        let (shape, bound) = ([n; 3], 1e-5);
        let (layout, params) = (Layout::Array(&shape), EncoderParams::default());
        let (contexts, buffers) = (params.contexts(), &mut Vec::new());
        let input = EncoderInput::new(&values, &layout, bound, contexts, buffers).unwrap();
        let proposals = interpolation::propose(&input.regions, values.len(), bound, true);
        let mut workspace = Workspace::default();
        let mut size = |params, bound: ErrorBound| {
            let stream = crate::encode(&values, &layout, bound, Some(params), &mut workspace);
            stream.unwrap().len() as f64
        };
        let [plain, with_outer] = [proposals.fitted, proposals.with_extra[0]]
            .map(|interpolations| size(params.with_interpolations(interpolations), bound.into()));
        assert!(with_outer < 0.9 * plain, "{with_outer} {plain}");
        let rms = ErrorBound::Rms(bound);
        let fitted = crate::tune(&values, &layout, rms).unwrap();
        let fitted = fitted.with_wavelet(None);
        let plain = fitted.with_interpolations(proposals.candidate);
        let (fitted, plain) = (size(fitted, rms), size(plain, rms));
        assert!(fitted < 0.9 * plain, "{fitted} {plain}");
    }

    #[test]
    fn a_smaller_error_alone_does_not_pay_for_options() {
        let params = EncoderParams::default();
        let mut interpolations = [Interpolation::default(); 3];
        interpolations[0] = interpolations[0].with_phase_weights(|_| PhaseWeights::default());
        let fitted = params.with_interpolations(interpolations);
        let candidate = |params, bits, error| Candidate {
            params,
            cost: Cost { bits, error },
        };
        let other = |bits| candidate(params, bits, 1e6);
        let fitted = |bits| candidate(fitted, bits, 9e5);
        assert!(!is_worth_its_options(fitted(100.0), other(100.0)));
        assert!(is_worth_its_options(fitted(10_000.0), other(11_000.0)));
    }

    #[test]
    fn a_few_rough_blocks_do_not_choose_the_interpolation_of_all() {
        let (side, cells) = (16, 16 * 16 * 16);
        let blocks = (0..64).map(|key: i64| {
            [2, 1, 0].map(|bit| side * ((key >> bit & 1) + 2 * (key >> (bit + 3) & 1)))
        });
        let origins: Vec<[i64; 3]> = blocks.collect();
        let noise = |i: i64, j: i64| ((i * 7919 + j * 6007) * 104_729 % 1009) as f64 / 1009.0;
        let mut values = Vec::new();
        for (number, [z, y, x]) in origins.iter().enumerate() {
            for i in 0..side * side * side {
                let [z, y, x] = [z + i / side / side, y + i / side % side, x + i % side];
                // Two blocks, of 8,192 values, are constant along z, all others along x.
                let rough = 8.0 * noise(x, y);
                values.push(if number < 2 { rough } else { noise(z, y) });
            }
        }
        let layout = |count: usize| Layout::Blocks {
            side: [side as usize; 3],
            origins: &origins[..count],
        };
        let chosen = |count: usize| crate::tune(&values[..count * cells], &layout(count), 1e-2);
        let size = |count: usize| {
            let (params, mut workspace) = (chosen(count).unwrap(), Workspace::default());
            let stream = crate::encode(&values, &layout(64), 1e-2, Some(params), &mut workspace);
            stream.unwrap().len() as f64
        };
        let (by_all, by_rough) = (size(64), size(2));
        assert!(by_all < 0.9 * by_rough, "{by_all} {by_rough}");
    }
}
