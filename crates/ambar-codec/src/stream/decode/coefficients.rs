//! The decoder of wavelet coefficients and corrections (`docs/format.md`, 7.17).

use super::regions::RegionDecoder;
use crate::domain::blocks::{self, BlockRegion};
use crate::element::Element;
use crate::wavelet::traversal::{traverse, traverse_corrections};
use crate::wavelet::{Synthesis, Transform, WaveletOptions, bin_width};

/// The transform of a stream, and its bounds.
#[derive(Clone, Copy)]
pub(super) struct WaveletParams {
    omitted: u8,
    /// The bound of the coefficients.
    coefficients: f64,
    /// The bound of corrected values.
    values: Option<f64>,
}

impl WaveletParams {
    /// Those of a stream with these options and this bound.
    pub(super) fn new(options: WaveletOptions, bound: f64) -> Self {
        Self {
            omitted: options.omitted,
            coefficients: options.coefficient_bound.unwrap_or(bound),
            values: options.coefficient_bound.map(|_| bound),
        }
    }
}

impl<T: Element> RegionDecoder<'_, T> {
    /// Decodes regions of an array, of this shape.
    pub(super) fn coefficients(&mut self, shape: [usize; 3], bounds: WaveletParams, out: &mut [T]) {
        let transform = Transform::new(shape, bounds.omitted);
        for part in out.chunks_exact_mut(shape.iter().product()) {
            self.transformed_region(&transform, bounds, part);
        }
    }

    /// Decodes regions of blocks, which have no holes.
    pub(super) fn coefficients_of_blocks(
        &mut self,
        regions: &[BlockRegion],
        side: [usize; 3],
        bounds: WaveletParams,
        out: &mut [T],
    ) {
        let mut dense = Vec::new();
        for region in regions {
            let shape: [usize; 3] = std::array::from_fn(|d| region.places[d] * side[d]);
            dense.resize(shape.iter().product(), T::default());
            let transform = Transform::new(shape, bounds.omitted);
            self.transformed_region(&transform, bounds, &mut dense);
            blocks::for_each_row(region, side, |to, [z, y, x], n| {
                let from = (z * shape[1] + y) * shape[2] + x;
                blocks::copy_row(&dense[from..from + n], &mut out[to..to + n]);
            });
        }
    }

    fn transformed_region(&mut self, transform: &Transform, bounds: WaveletParams, out: &mut [T]) {
        let mut synthesis = Synthesis::new(transform);
        let decoder = &mut self.decoder;
        let step = bin_width::<T>(bounds.coefficients);
        let mut start = 0;
        traverse(transform, step, decoder, |decoder, row, values| {
            decoder.restore_literals(start, values);
            start += values.len();
            synthesis.row(row, values, out);
        });
        synthesis.finish(out);
        if let Some(bound) = bounds.values {
            let (shape, unit) = (transform.shape(), bin_width::<T>(bound));
            traverse_corrections(shape, unit, out, decoder, |decoder, start, values| {
                decoder.restore_literals(start, values);
            });
        }
    }
}
