//! The input of the encoder: values arranged in regions, with masks of frequent fill values, or their wavelet coefficients.

use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::mask;
use crate::domain::regions::{self, Layout, RegionBuffer};
use crate::domain::tree::TreeCells;
use crate::element::Element;
use crate::entropy::bitio::write_number;
use crate::error::Result;
use crate::simd::dispatch::vectorised;
use crate::stream::coefficients::{ErrorTarget, TransformedRegions};
use crate::stream::header::{Arrangement, Contexts, RegionRules};
use crate::wavelet;
use std::borrow::Cow;

/// Values arranged in regions, and the parts of the stream that describe the arrangement.
pub(crate) struct EncoderInput<'a, T: Clone> {
    pub(super) arrangement: Arrangement,
    /// The encoded number of values, and the shape, block keys or tree.
    pub(super) layout: Vec<u8>,
    pub(crate) regions: Vec<RegionBuffer<'a, T>>,
    /// The number of values.
    pub(crate) count: usize,
    /// The number of lowest bits that are 0 in all values.
    pub(super) shift: u32,
    /// The bits of the fill value, and the encoded masks.
    pub(super) masks: Option<(u64, Vec<u8>)>,
    /// Whether the points of holes between blocks are predicted.
    pub(super) predicts_holes: bool,
    /// The smallest value, if no value is below 0 and errors are measured.
    pub(crate) least: Option<T>,
    /// The transform, if the regions hold wavelet coefficients instead of values.
    pub(super) transformed: Option<TransformedRegions<'a, T>>,
}

impl<'a, T: Element> EncoderInput<'a, T> {
    /// Arranges values in regions, in the memory of `buffers`.
    pub(crate) fn new(
        values: &'a [T],
        layout: &Layout<'_>,
        bound: f64,
        contexts: Contexts,
        buffers: &mut Vec<Vec<T>>,
    ) -> Result<Self> {
        Self::in_regions(values, layout, bound, contexts.region_rules(), buffers)
    }

    /// Transforms values by wavelets, with the possible levels of each dimension less `omitted` ones, in the memory of `buffers`.
    /// `None` where the transform does not apply.
    pub(crate) fn transformed(
        values: &'a [T],
        layout: &Layout<'_>,
        (bound, target): (f64, ErrorTarget),
        omitted: u8,
        buffers: &mut Vec<Vec<T>>,
    ) -> Result<Option<Self>> {
        if matches!(layout, Layout::Cells { .. }) || !wavelet::are_predictable(values) {
            return Ok(None);
        }
        let mut input = Self::in_regions(values, layout, bound, RegionRules::FILLED, buffers)?;
        if input.masks.is_none() {
            input.transformed =
                TransformedRegions::new(&mut input.regions, omitted, target, buffers);
        }
        if input.is_transformed() {
            return Ok(Some(input));
        }
        input.recycle(buffers);
        Ok(None)
    }

    /// Arranges values in regions.
    fn in_regions(
        values: &'a [T],
        layout: &Layout<'_>,
        bound: f64,
        rules: RegionRules,
        buffers: &mut Vec<Vec<T>>,
    ) -> Result<Self> {
        layout.check(values.len())?;
        let mut header = Vec::new();
        write_number(values.len() as u64, &mut header);
        let (mut all, mut predicts_holes) = (Vec::new(), false);
        let fill = match layout {
            Layout::PaddedArray { .. } => {
                let all = values.iter().copied().enumerate();
                let held = all.filter_map(|(at, x)| (!layout.is_padding(at)).then_some(x));
                frequent_fill(&held.collect::<Vec<T>>())
            }
            _ => frequent_fill(values),
        };
        let arrangement = match layout {
            Layout::Array(shape) | Layout::PaddedArray { shape, .. } => {
                let (inner, _) = regions::array_regions(shape)?;
                let size = regions::volume(inner).unwrap_or(0);
                write_number(shape.len() as u64, &mut header);
                shape
                    .iter()
                    .for_each(|n| write_number(*n as u64, &mut header));
                let parts = values.chunks_exact(size.max(1));
                all.extend(parts.map(|part| RegionBuffer::dense(inner, part)));
                Arrangement::Array
            }
            Layout::Blocks { side, origins } => {
                let keys = blocks::keys(origins, *side)?;
                side.iter()
                    .for_each(|n| write_number(*n as u64, &mut header));
                let coded_keys = blocks::encode_keys(&keys);
                write_number(coded_keys.len() as u64, &mut header);
                header.extend(coded_keys);
                let regions = blocks::regions(&keys, rules.min_fill);
                all.extend(regions.iter().map(|region| {
                    let buffer = buffers.pop().unwrap_or_default();
                    regions::gather(region, *side, values, buffer)
                }));
                let has_holes = all.iter().any(|dense| dense.valid.is_some());
                predicts_holes =
                    has_holes && rules.can_predict_holes && bound > 0.0 && fill.is_none();
                if predicts_holes {
                    for (region, dense) in regions.iter().zip(&mut all) {
                        holes::extrapolate_hole_faces(region, *side, dense);
                    }
                }
                Arrangement::Blocks
            }
            Layout::Cells {
                dimensions,
                levels,
                origins,
            } => {
                let cells = TreeCells::new(*dimensions, levels, origins)?;
                header.extend(cells.header);
                let regions = cells.regions.iter();
                all.extend(regions.map(|region| regions::gather_cells(region, values)));
                let outside_cells = &values[levels.len()..];
                all.extend(
                    (!outside_cells.is_empty())
                        .then(|| RegionBuffer::dense([1, 1, outside_cells.len()], outside_cells)),
                );
                Arrangement::Cells
            }
        };
        let masks = fill.map(|fill| (fill, extract_masks(fill, &mut all)));
        if let Layout::PaddedArray { held, .. } = layout {
            regions::mark_padding(held, &mut all)?;
        }
        Ok(Self {
            arrangement,
            layout: header,
            regions: all,
            count: values.len(),
            shift: if bound == 0.0 {
                common_zero_bits(values, fill)
            } else {
                0
            },
            masks,
            predicts_holes,
            least: None,
            transformed: None,
        })
    }

    /// The bits of the masks.
    pub(crate) fn mask_bits(&self) -> f64 {
        let masks = self.masks.as_ref();
        masks.map_or(0.0, |(_, bytes)| 8.0 * bytes.len() as f64)
    }

    /// The number of finite values that are not masked.
    pub(crate) fn count_finite(&self, values: &[T]) -> usize {
        let fill = self.masks.as_ref().map(|(fill, _)| *fill);
        let is_counted = |x: &&T| x.to_f64().is_finite() && Some(x.to_word()) != fill;
        values.iter().filter(is_counted).count()
    }

    /// Whether the regions hold wavelet coefficients.
    pub(crate) fn is_transformed(&self) -> bool {
        self.transformed.is_some()
    }

    /// Drops the values from which wavelet coefficients were computed. Squared errors are then those of the coefficients, which
    /// are nearly the same, and known without the inverse transform.
    pub(crate) fn drop_originals(&mut self) {
        if let Some(transformed) = &mut self.transformed {
            transformed.drop_originals();
        }
    }

    /// The smallest value, if decoded values with errors up to `largest_error` may be smaller, and have another sign or be 0.
    pub(crate) fn least_within(&self, largest_error: f64) -> Option<T> {
        self.least.filter(|least| least.to_f64() <= largest_error)
    }

    /// Returns the memory of dense regions to `buffers`.
    pub(crate) fn recycle(self, buffers: &mut Vec<Vec<T>>) {
        let originals = self.transformed.map(TransformedRegions::into_originals);
        let regions = self
            .regions
            .into_iter()
            .chain(originals.into_iter().flatten());
        let values = regions.map(|region| region.values);
        buffers.extend(values.filter_map(|values| match values {
            Cow::Owned(values) => Some(values),
            Cow::Borrowed(_) => None,
        }));
    }
}

/// The number of lowest bits that are 0 in all values except literals and those with the bits `fill`.
fn common_zero_bits<T: Element>(values: &[T], fill: Option<u64>) -> u32 {
    let is_coded = |x: &&T| x.is_predictable() && Some(x.to_word()) != fill;
    let predictable = values.iter().filter(is_coded);
    match predictable.fold(0, |bits, x| bits | x.to_word()) {
        0 => 0,
        bits => bits.trailing_zeros(),
    }
}

/// The bits of a frequent value that masks replace: a NaN, or a value further from all values that differ from it than their
/// range, such as -9999.
fn frequent_fill<T: Element>(values: &[T]) -> Option<u64> {
    let is_frequent = |fill: &T| {
        let bits = fill.to_word();
        values.iter().filter(|x| x.to_word() == bits).count() >= values.len() / 1024 + 8
    };
    let [least, most] = extremes(values, T::from_f64(f64::NAN));
    if least.to_f64().is_nan() {
        let nan = values.iter().find(|x| x.to_f64().is_nan());
        return nan.filter(|nan| is_frequent(nan)).map(|nan| nan.to_word());
    }
    let is_far = |fill: &T| {
        let [others_least, others_most] = extremes(values, *fill).map(T::to_f64);
        let gap = (others_least - fill.to_f64()).max(fill.to_f64() - others_most);
        others_most > others_least && gap > others_most - others_least
    };
    let fill = [least, most]
        .into_iter()
        .find(|fill| is_far(fill) && is_frequent(fill));
    fill.map(T::to_word)
}

vectorised! {
    /// The least and the largest value, without those that equal `fill`; both are NaN if any value is.
    fn extremes [T: Element] of [T] (values: &[T], fill: T) -> [T; 2] {
        let (mut least, mut most) = ([T::from_f64(f64::INFINITY); 16], [T::from_f64(f64::NEG_INFINITY); 16]);
        let (chunks, rest) = values.as_chunks::<16>();
        let mut nan_bits = 0;
        let mut add = |k: usize, x: T| {
            let is_other = x != fill;
            least[k] = if is_other & (x < least[k]) { x } else { least[k] };
            most[k] = if is_other & (x > most[k]) { x } else { most[k] };
            nan_bits |= u8::from(x.to_f64().is_nan());
        };
        for chunk in chunks {
            for (k, x) in chunk.iter().enumerate() {
                add(k, *x);
            }
        }
        for (k, x) in rest.iter().enumerate() {
            add(k, *x);
        }
        if nan_bits > 0 {
            return [T::from_f64(f64::NAN); 2];
        }
        let least = least.into_iter().fold(least[0], |a, b| if b < a { b } else { a });
        let most = most.into_iter().fold(most[0], |a, b| if b > a { b } else { a });
        [least, most]
    }
}

/// Marks the values whose bits are `fill` as absent. Returns the encoded masks.
fn extract_masks<T: Element>(fill: u64, regions: &mut [RegionBuffer<'_, T>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for region in regions {
        let [_, ny, nx] = region.shape;
        let known = region.valid.take();
        let known = known.unwrap_or_else(|| Bitmap::full(region.shape));
        let mut valid = Bitmap::new(region.shape);
        for (number, row) in region.values.chunks_exact(nx).enumerate() {
            let place = [number / ny, number % ny];
            for (word, values) in row.chunks(64).enumerate() {
                let bits = values
                    .iter()
                    .rev()
                    .fold(0, |bits, x| bits << 1 | u64::from(x.to_word() != fill));
                valid.set_bits(place, 64 * word, bits & known.word(place, word));
            }
        }
        let (side, mask) = mask::encode(&valid, &known);
        bytes.push(side);
        write_number(mask.len() as u64, &mut bytes);
        bytes.extend(mask);
        region.valid = (!valid.is_full()).then_some(valid);
    }
    bytes
}
