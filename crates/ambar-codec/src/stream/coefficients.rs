//! Regions of wavelet coefficients, and the symbols of coefficients and corrections (`docs/format.md`, 7.17).

use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::symbols::Symbols;
use crate::predict::context;
use crate::quantize::row_encoder::{Encoder, square_error};
use crate::wavelet::axis::WaveletLevels;
use crate::wavelet::traversal::{traverse, traverse_corrections};
use crate::wavelet::{self, Synthesis, Transform, WaveletOptions};
use std::borrow::Cow;

/// What is bounded where values become wavelet coefficients.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Bounded {
    /// The mean squared error of the values.
    Mean,
    /// Each value, by corrections.
    Values,
}

/// The transform of regions, and the values from which their coefficients were computed.
pub(crate) struct Transformed<'a, T: Clone> {
    transform: Transform,
    bounded: Bounded,
    /// Empty if the values were dropped.
    originals: Vec<RegionBuffer<'a, T>>,
}

impl<'a, T: Element> Transformed<'a, T> {
    /// Replaces the values of regions by coefficients, in the memory of `buffers`, with the possible levels of each dimension less
    /// `omitted` ones. `None` where the transform does not apply; the regions are then unchanged.
    pub(crate) fn new(
        regions: &mut [RegionBuffer<'a, T>],
        omitted: u8,
        bounded: Bounded,
        buffers: &mut Vec<Vec<T>>,
    ) -> Option<Self> {
        let shape = regions.first()?.shape;
        let levels = WaveletLevels::of_shape(shape, omitted)?;
        if !regions
            .iter()
            .all(|region| wavelet::are_predictable(&region.values))
        {
            return None;
        }
        let transform = Transform::new(shape, levels);
        let originals = regions.iter_mut().map(|region| {
            let mut coefficients = buffers.pop().unwrap_or_default();
            transform.coefficients(&region.values, &mut coefficients);
            RegionBuffer {
                shape,
                values: std::mem::replace(&mut region.values, Cow::Owned(coefficients)),
                valid: None,
                // Corrections of padding are not needed.
                padding: region.padding.take().map(|padding| padding.of_any_values()),
            }
        });
        Some(Self {
            originals: originals.collect(),
            transform,
            bounded,
        })
    }

    /// Drops the values. Squared errors are then those of the coefficients, which are nearly the same, and known without the
    /// inverse transform.
    pub(crate) fn drop_originals(&mut self) {
        self.originals.clear();
    }

    /// What the stream states, for coefficients within a bound.
    pub(crate) fn options(&self, coefficient_bound: f64) -> WaveletOptions {
        WaveletOptions {
            levels: self.transform.levels(),
            coefficient_bound: (self.bounded == Bounded::Values).then_some(coefficient_bound),
        }
    }

    /// The bound of coefficients for a bound of the stream, and the ratio of both if single values are bounded.
    pub(crate) fn coefficient_bound(&self, bound: f64, ratio: f64) -> f64 {
        match self.bounded {
            Bounded::Mean => bound,
            Bounded::Values => (ratio * bound).clamp(f64::MIN_POSITIVE, f64::MAX),
        }
    }

    /// Appends the symbols of the regions within bounds of coefficients and of values. Their squared error,
    /// in bins, is that of the values which follow from the coefficients, where decoders replace smaller ones by `least`; or
    /// that of the coefficients if the values were dropped.
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
        for region in regions {
            let before = symbols.square_error;
            let mut encoder =
                Encoder::new(region, coefficient_bound, Some(&dead_zones), None, symbols);
            let Some(original) = originals.next() else {
                traverse(&self.transform, step, &mut encoder, |_, _, _| ());
                continue;
            };
            let [_, ny, nx] = region.shape;
            decoded.resize(original.values.len(), T::default());
            let mut synthesis = Synthesis::new(&self.transform);
            traverse(
                &self.transform,
                step,
                &mut encoder,
                |encoder, [z, y], values| {
                    encoder.restore_literals((z * ny + y) * nx, values);
                    synthesis.row([z, y], values, decoded);
                },
            );
            synthesis.finish(decoded);
            match self.bounded {
                Bounded::Mean => {
                    let bin = 2.0 * coefficient_bound;
                    symbols.square_error =
                        before + square_error(&original.values, decoded, bin, least);
                }
                Bounded::Values => {
                    let mut encoder = Encoder::new(original, bound, None, None, symbols);
                    let unit = wavelet::bin_width::<T>(bound);
                    traverse_corrections(region.shape, unit, decoded, &mut encoder, |_, _, _| ());
                }
            }
        }
    }
}
