//! Encoding within a bound of the root mean squared error: the search for the widest bins.

use crate::domain::regions::{Layout, SeparateShape};
use crate::element::Element;
use crate::entropy::tables::log2;
use crate::error::Result;
use crate::predict::context::LAGRANGE_MULTIPLIER;
use crate::stream::bound_search::{BoundSearch, MAX_TRIALS, power, uniform_bound};
use crate::stream::coefficients::ErrorTarget;
use crate::stream::encode::{Workspace, make_symbols, supported, symbol_bits};
use crate::stream::input::EncoderInput;
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use std::ops::RangeInclusive;

/// Errors, relative to the allowed one, that are near enough to it to estimate the bits there without another trial.
const INTERPOLATION_RANGE: RangeInclusive<f64> = 0.88..=1.12;

/// The mean squared error that values may have.
#[derive(Clone, Copy)]
pub(crate) struct ErrorBudget {
    /// The bound of uniform errors that have the allowed mean square.
    bound: f64,
    /// The number of finite values that are not masked; others have no error.
    count: usize,
}

impl ErrorBudget {
    /// The budget of `count` values with an allowed error, which is that of uniform errors within `bound`.
    pub(crate) fn new(bound: f64, count: usize) -> Self {
        Self { bound, count }
    }

    /// Replaces the workspace's symbols by those within `bound`. Returns their root mean squared error, relative to the allowed
    /// one.
    fn quantize_and_measure<T: Element>(
        self,
        input: &EncoderInput<'_, T>,
        bound: f64,
        params: EncoderParams,
        workspace: &mut Workspace<T>,
    ) -> f64 {
        make_symbols(input, bound, params, workspace);
        (workspace.symbols.square_error / self.square_steps(bound)).sqrt()
    }

    /// The bits and the error of a bound.
    pub(crate) fn trial<T: Element>(
        self,
        input: &EncoderInput<'_, T>,
        bound: f64,
        params: EncoderParams,
        workspace: &mut Workspace<T>,
    ) -> Trial {
        let error = self.quantize_and_measure(input, bound, params, workspace);
        let bits = symbol_bits(&workspace.symbols, 1.0);
        // The encoder exchanges bits and squared errors at this rate.
        let excess = workspace.symbols.square_error - self.square_steps(bound);
        Trial {
            bound,
            error,
            bits,
            allowed_bits: bits + excess / LAGRANGE_MULTIPLIER,
        }
    }

    /// The allowed sum of squared errors, in squared steps of a bound.
    fn square_steps(self, bound: f64) -> f64 {
        self.count.max(1) as f64 / 12.0 * (self.bound / bound).powi(2)
    }

    /// A search for the largest bound.
    fn search(self) -> BoundSearch {
        BoundSearch::new(self.bound / 3f64.sqrt())
    }
}

/// The estimated bits of values at the allowed error, and the bound.
pub(crate) struct Estimate {
    pub bits: f64,
    /// The ratio of the bound to that of uniform errors.
    pub ratio: f64,
}

/// Estimates the bits of values at the allowed error, beginning with a trial.
pub(crate) fn estimate<T: Element>(
    input: &EncoderInput<'_, T>,
    budget: ErrorBudget,
    first: Trial,
    params: EncoderParams,
    workspace: &mut Workspace<T>,
) -> Estimate {
    let mut search = budget.search();
    let (mut trial, mut previous) = (first, None);
    let mut trials_left = MAX_TRIALS;
    loop {
        trials_left -= 1;
        match search.next(trial.bound, trial.error) {
            Some(next) if trials_left > 0 && !INTERPOLATION_RANGE.contains(&trial.error) => {
                previous = Some(trial);
                trial = budget.trial(input, next, params, workspace);
            }
            next => {
                let bits = trial.interpolated_bits(previous);
                return Estimate {
                    bits: bits.unwrap_or(trial.allowed_bits),
                    ratio: next.unwrap_or(trial.bound) / budget.bound,
                };
            }
        }
    }
}

/// A bound with its bits and its root mean squared error.
pub(crate) struct Trial {
    bound: f64,
    /// The error, relative to the allowed one.
    error: f64,
    bits: f64,
    /// An estimate of the bits at the allowed error, which is good near it.
    pub allowed_bits: f64,
}

impl Trial {
    /// The bits at the allowed error, if they are a power of the error; `None` without another trial.
    fn interpolated_bits(&self, other: Option<Self>) -> Option<f64> {
        let other = other.filter(|other| other.error > 0.0 && other.error != self.error)?;
        let exponent = log2(1.0 / self.error) / log2(other.error / self.error);
        let parts = (32.0 * exponent).round().clamp(-64.0, 64.0);
        Some(match parts < 0.0 {
            true => power(self.bits, self.bits / other.bits, -parts),
            false => power(self.bits, other.bits / self.bits, parts),
        })
    }
}

/// Encodes values so that their root mean squared error is at most `root`. `prelude` has the smallest value, if no value is
/// below 0. `None` if no trial met the bound.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn encode<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    root: f64,
    prelude: &Prelude<'_>,
    params: EncoderParams,
    workspace: &mut Workspace<T>,
) -> Result<Option<Vec<u8>>> {
    let uniform = uniform_bound(root);
    let (mut separate, whole) = (SeparateShape::default(), layout);
    let layout = &layout.with_separate_dimensions(params.separate_dimensions(), &mut separate);
    let (bound, params) = supported::<T>(uniform, layout, params);
    if bound == 0.0 {
        return Ok(None);
    }
    let mut buffers = std::mem::take(&mut workspace.buffers);
    let mut input = EncoderInput::new(values, layout, bound, params.contexts(), &mut buffers)?;
    let budget = ErrorBudget::new(bound, input.count_finite(values));
    if let Some(omitted) = params.omitted_wavelet_levels() {
        let bounds = (bound, ErrorTarget::Mean);
        let transformed = EncoderInput::transformed(values, whole, bounds, omitted, &mut buffers)?;
        if let Some(transformed) = transformed {
            std::mem::replace(&mut input, transformed).recycle(&mut buffers);
        }
    }
    let least = prelude.minimum.map(T::from_word);
    input.least = least;
    let first = budget.bound * params.bound_ratio();
    let found = widest_bound(&input, budget, first, params, workspace)?;
    let mut stream = found.map(|bound| finish(&input, bound, params, prelude, workspace));
    if let (Some(bound), Some(found), true) = (found, &mut stream, input.is_transformed()) {
        // The parameters may be those of another chunk, of which wavelets make shorter streams.
        let mut plain = EncoderInput::new(values, layout, bound, params.contexts(), &mut buffers)?;
        plain.least = least;
        make_symbols(&plain, bound, params, workspace);
        let is_smaller = symbol_bits(&workspace.symbols, 1.0) < 8.0 * found.len() as f64;
        // Holes between blocks split the regions of wavelets, which may then need narrower bins.
        let is_split = input.regions.len() > plain.regions.len();
        // The ratio of the parameters is that of wavelets.
        let first = budget.bound;
        if (is_smaller || is_split)
            && let Some(bound) = widest_bound(&plain, budget, first, params, workspace)?
        {
            let other = finish(&plain, bound, params, prelude, workspace);
            if other.len() < found.len() {
                *found = other;
            }
        }
        plain.recycle(&mut buffers);
    }
    input.recycle(&mut buffers);
    workspace.buffers = buffers;
    Ok(stream)
}

/// The largest bound found whose symbols have an error that is allowed, in a search that begins with `first`. Leaves these symbols
/// in the workspace.
fn widest_bound<T: Element>(
    input: &EncoderInput<'_, T>,
    budget: ErrorBudget,
    first: f64,
    params: EncoderParams,
    workspace: &mut Workspace<T>,
) -> Result<Option<f64>> {
    let (best, last) = budget.search().widest(first, |bound| {
        Ok(budget.quantize_and_measure(input, bound, params, workspace))
    })?;
    if let Some(best) = best.filter(|best| *best != last) {
        make_symbols(input, best, params, workspace);
    }
    Ok(best)
}

/// The stream of the workspace's symbols within a bound.
fn finish<T: Element>(
    input: &EncoderInput<'_, T>,
    bound: f64,
    params: EncoderParams,
    prelude: &Prelude<'_>,
    workspace: &Workspace<T>,
) -> Vec<u8> {
    // Errors may reach almost the width of a bin; those of wavelets have no bound.
    let largest_error = if input.is_transformed() {
        f64::MAX
    } else {
        2.0 * bound
    };
    let prelude = Prelude {
        minimum: input.least_within(largest_error).map(T::to_word),
        ..*prelude
    };
    input.stream(&workspace.symbols, bound, params, &prelude)
}
