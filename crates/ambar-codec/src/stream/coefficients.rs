//! Regions of wavelet coefficients, and the symbols of coefficients and corrections (`docs/format.md`, 7.17).

use crate::domain::padding::Padding;
use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::symbols::Symbols;
use crate::predict::context;
use crate::quantize::row_encoder::{Encoder, square_error};
use crate::wavelet::traversal::{traverse, traverse_corrections};
use crate::wavelet::{self, Synthesis, Transform, WaveletOptions};
use std::borrow::Cow;

/// The errors that a stream of wavelet coefficients limits.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ErrorTarget {
    /// The mean squared error of the values.
    Mean,
    /// Each value, by corrections.
    Values,
}

/// The transform of regions, and the values from which their coefficients were computed.
pub(crate) struct TransformedRegions<'a, T: Clone> {
    omitted: u8,
    /// The transform of each region.
    transforms: Vec<Transform>,
    target: ErrorTarget,
    /// Empty if the values were dropped.
    originals: Vec<RegionBuffer<'a, T>>,
}

impl<'a, T: Element> TransformedRegions<'a, T> {
    /// Replaces the values of regions by coefficients, in the memory of `buffers`, with the possible levels of each dimension less
    /// `omitted` ones. `None` if no level is left; the regions are then unchanged.
    pub(crate) fn new(
        regions: &mut [RegionBuffer<'a, T>],
        omitted: u8,
        target: ErrorTarget,
        buffers: &mut Vec<Vec<T>>,
    ) -> Option<Self> {
        let transforms: Vec<Transform> = regions
            .iter()
            .map(|region| Transform::new(region.shape, omitted))
            .collect();
        if transforms.iter().all(Transform::is_identity) {
            return None;
        }
        let pairs = regions.iter_mut().zip(&transforms);
        let originals = pairs.map(|(region, transform)| {
            let mut coefficients = buffers.pop().unwrap_or_default();
            transform.coefficients(&region.values, &mut coefficients);
            RegionBuffer {
                shape: region.shape,
                values: std::mem::replace(&mut region.values, Cow::Owned(coefficients)),
                valid: None,
                // Corrections of padding are not needed.
                padding: region.padding.take().map(Padding::with_any_values),
            }
        });
        Some(Self {
            omitted,
            originals: originals.collect(),
            transforms,
            target,
        })
    }

    /// The values.
    pub(crate) fn into_originals(self) -> Vec<RegionBuffer<'a, T>> {
        self.originals
    }

    /// Drops the values, unless corrections need them. Squared errors are then those of the coefficients, which are nearly the same,
    /// and known without the inverse transform.
    pub(crate) fn drop_originals(&mut self) {
        if self.target == ErrorTarget::Mean {
            self.originals.clear();
        }
    }

    /// The options that the stream states, for coefficients within a bound.
    pub(crate) fn options(&self, coefficient_bound: f64) -> WaveletOptions {
        WaveletOptions {
            omitted: self.omitted,
            coefficient_bound: (self.target == ErrorTarget::Values).then_some(coefficient_bound),
        }
    }

    /// The bound of coefficients for a bound of the stream, and the ratio of both if single values are target.
    pub(crate) fn coefficient_bound(&self, bound: f64, ratio: f64) -> f64 {
        match self.target {
            ErrorTarget::Mean => bound,
            ErrorTarget::Values => (ratio * bound).clamp(f64::MIN_POSITIVE, f64::MAX),
        }
    }

    /// Appends the symbols of the regions within bounds of coefficients and of values. If the mean squared error is limited, that of
    /// the symbols, in bins, is the error of the values which follow from the coefficients, where decoders replace smaller ones by
    /// `least`; or of the coefficients if the values were dropped.
    pub(crate) fn make_symbols(
        &self,
        regions: &[RegionBuffer<'a, T>],
        (coefficient_bound, bound): (f64, f64),
        least: Option<T>,
        (symbols, decoded): (&mut Symbols, &mut Vec<T>),
    ) {
        let step = wavelet::bin_width::<T>(coefficient_bound);
        let dead_zones = context::dead_zones();
        let least = least.unwrap_or(T::from_f64(f64::NEG_INFINITY));
        let mut originals = self.originals.iter();
        for (region, transform) in regions.iter().zip(&self.transforms) {
            let before = symbols.square_error;
            let mut encoder =
                Encoder::new(region, coefficient_bound, Some(&dead_zones), None, symbols);
            let Some(original) = originals.next() else {
                traverse(transform, step, &mut encoder, |_, _, _| ());
                continue;
            };
            let [_, ny, nx] = region.shape;
            decoded.resize(original.values.len(), T::default());
            let mut synthesis = Synthesis::new(transform);
            traverse(transform, step, &mut encoder, |encoder, [z, y], values| {
                encoder.restore_literals((z * ny + y) * nx, values);
                synthesis.row([z, y], values, decoded);
            });
            synthesis.finish(decoded);
            match self.target {
                ErrorTarget::Mean => {
                    let bin = 2.0 * coefficient_bound;
                    symbols.square_error =
                        before + square_error(&original.values, decoded, bin, least);
                }
                ErrorTarget::Values => {
                    let mut encoder = Encoder::new(original, bound, None, None, symbols);
                    let unit = wavelet::bin_width::<T>(bound);
                    traverse_corrections(region.shape, unit, decoded, &mut encoder, |_, _, _| ());
                }
            }
        }
    }
}
