//! The decoder of regions: traversal, then copies to the output.

use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::lattice::Phases;
use crate::domain::mask;
use crate::domain::regions::{self, RegionTarget};
use crate::domain::tree::CellRegion;
use crate::element::Element;
use crate::error::Result;
use crate::predict::context::ContextWeights;
use crate::predict::mask_pyramid::Validity;
use crate::predict::row::InterpolationLevel;
use crate::predict::traversal::{self, Scratch, TraversalParams};
use crate::quantize::row_decoder::Decoder;
use crate::stream::decode::downsample::{coarse_length, downsampled_index, scaled};
use crate::stream::decode::sections::Masks;

/// The decoder of all regions of a stream.
pub(super) struct RegionDecoder<'a, T> {
    pub decoder: Decoder<'a>,
    pub levels: Vec<InterpolationLevel>,
    /// Whether absent points are predicted like present ones.
    pub predicts_holes: bool,
    pub fill: u64,
    pub masks: Masks<'a>,
    /// Only every `2^level`th value of each dimension is decoded.
    pub level: u32,
    /// The finest level that is decoded, at most `level`.
    pub last: usize,
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Element> RegionDecoder<'_, T> {
    /// The regions of blocks.
    pub(super) fn blocks(
        &mut self,
        regions: &[blocks::BlockRegion],
        side: [usize; 3],
        out: &mut [T],
    ) -> Result<()> {
        for (number, region) in regions.iter().enumerate() {
            let shape = std::array::from_fn(|d| region.places[d] * side[d]);
            let present = if self.predicts_holes {
                holes::coded(region, side)
            } else {
                regions::present_points(region, side)
            };
            let coarse = side.map(|n| coarse_length(n, self.level));
            let target = RegionTarget::of_region(region, coarse);
            self.region(number, shape, present, (target, &mut *out))?;
        }
        Ok(())
    }

    /// The regions of cells, and the values that belong to no cell.
    pub(super) fn cells(
        &mut self,
        regions: &[CellRegion],
        count: usize,
        out: &mut [T],
    ) -> Result<()> {
        for (number, region) in regions.iter().enumerate() {
            let target = RegionTarget::Cells(region);
            let to = (target, &mut *out);
            self.region(number, region.shape(), region.present(), to)?;
        }
        let outside_cells = &mut out[count..];
        if !outside_cells.is_empty() {
            let shape = [1, 1, outside_cells.len()];
            let to = (RegionTarget::Array(shape), outside_cells);
            self.region(regions.len(), shape, None, to)?;
        }
        Ok(())
    }

    pub(super) fn region(
        &mut self,
        number: usize,
        shape: [usize; 3],
        present: Option<Bitmap>,
        (target, out): (RegionTarget<'_>, &mut [T]),
    ) -> Result<()> {
        let known = self.masks.get(number).map(|(side, bytes)| {
            let known = present.clone().unwrap_or_else(|| Bitmap::full(shape));
            mask::decode(*side, &known, bytes)
        });
        let known = known.transpose()?;
        let valid = known.as_ref().or(present.as_ref());
        let valid = valid.filter(|valid| !valid.is_full());
        let validity = valid.map(|valid| Validity::new(valid, self.predicts_holes));
        let traversal_params = TraversalParams {
            levels: &self.levels,
            context_weights: &ContextWeights::DEFAULT,
        };
        let phases = traversal::traverse_to(
            self.last,
            shape,
            validity.as_ref(),
            &traversal_params,
            &mut self.decoder,
            self.scratch,
        );
        self.fill(&target, &phases, out);
        for (at, word) in self.decoder.literals.drain(..) {
            // Padding points of holes may have literals, which are ignored.
            let at = downsampled_index(at, shape, self.level);
            if let Some(at) = at.and_then(|at| target.output_index(at)) {
                out[at] = T::from_word(word);
            }
        }
        if let Some(valid) = valid.filter(|_| known.is_some()) {
            fill_masked(&target, valid, self.level, T::from_word(self.fill), out);
        }
        Ok(())
    }

    /// Fills the target from the phases of the last lattice that was decoded.
    fn fill(&self, target: &RegionTarget<'_>, phases: &Phases, out: &mut [T]) {
        let values = &self.scratch.values;
        if self.level as usize == self.last {
            return target.fill(phases, values, out);
        }
        // All requested points are in phase 0.
        let more = self.level as usize - self.last - 1;
        target.for_each_row(|to, [z, y, x], n| {
            let row = &values[0][phases.row(scaled(z, more), scaled(y, more))..];
            for (x, out) in (x..).zip(&mut out[to..to + n]) {
                *out = row[scaled(x, more)];
            }
        });
    }
}

/// Writes the fill value at the points that are absent from a mask.
fn fill_masked<T: Element>(
    target: &RegionTarget<'_>,
    valid: &Bitmap,
    level: u32,
    fill: T,
    out: &mut [T],
) {
    target.for_each_row(|to, [z, y, x], n| {
        if level > 0 {
            let [z, y] = [z, y].map(|n| scaled(n, level as usize));
            for (x, out) in (x..).zip(&mut out[to..to + n]) {
                if !valid.get([z, y, scaled(x, level as usize)]) {
                    *out = fill;
                }
            }
            return;
        }
        for word in x / 64..(x + n).div_ceil(64) {
            let (first, end) = (x.max(64 * word), (x + n).min(64 * word + 64));
            let row = u64::MAX >> (64 - (end - first)) << (first % 64);
            Bitmap::runs(&[row & !valid.word([z, y], word)], |at, length| {
                out[to + 64 * word + at - x..][..length].fill(fill);
            });
        }
    });
}
