//! The encoder of coded values within an absolute bound: regions to symbols to the parts of a stream
//! (`docs/format.md`, 7.1).

use crate::bitpack;
use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::mask;
use crate::domain::regions::{self, Layout, RegionBuffer, SeparateShape};
use crate::domain::tree::{RegionCache, TreeCells};
use crate::element::Element;
use crate::entropy::bitio::write_number;
use crate::entropy::rans::decode_table::DecodeTables;
use crate::entropy::symbols::{MAX_PACKETS, Symbols};
use crate::entropy::tables::{EncodedTables, Histogram};
use crate::entropy::token_groups::{self, CodedPacket, PacketCount};
use crate::error::Result;
use crate::predict::context::{self, ContextWeights, LAGRANGE_MULTIPLIER};
use crate::predict::mask_pyramid::Validity;
use crate::predict::traversal::{self, Scratch, TraversalParams};
use crate::quantize::row_encoder::Encoder;
use crate::simd::dispatch::vectorised;
use crate::stream::coefficients::{ErrorTarget, TransformedRegions};
use crate::stream::header::{Arrangement, Coding, Contexts, Header, Mode, RegionRules};
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use crate::wavelet;
use crc_fast::crc32_iscsi as crc32c;
use std::borrow::Cow;

/// The number of interpolation levels that the largest region may have.
pub(crate) const MAX_LEVELS: usize = 64;

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
            let checksum = crc32c(out);
            out.extend_from_slice(&checksum.to_le_bytes());
            return Ok(());
        }
    }
    *out = encode_entropy_coded(values, layout, bound, params, prelude, workspace)?;
    Ok(())
}

/// Writes the parts of a bit-packed stream before its blocks.
fn write_bit_packed_header<T: Element>(
    shape: &[usize],
    values: usize,
    bound: f64,
    prelude: &Prelude<'_>,
    out: &mut Vec<u8>,
) {
    let header = Header {
        value_size: T::SIZE,
        arrangement: Arrangement::Array,
        bound: prelude.kind(bound),
        is_masked: false,
        is_clamped: prelude.minimum.is_some(),
        has_components: prelude.components.is_some(),
        mode: Mode::BitPacked,
    };
    out.clear();
    out.reserve(bitpack::max_encoded_bytes(values * T::SIZE));
    out.extend(header.to_bytes());
    prelude.write(T::SIZE, out);
    write_number(values as u64, out);
    write_number(shape.len() as u64, out);
    shape.iter().for_each(|n| write_number(*n as u64, out));
    if bound > 0.0 {
        out.extend_from_slice(&bound.to_le_bytes());
    }
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
    let steps = params.levels::<T>(bound, 0, MAX_LEVELS);
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
    let levels = params.levels::<T>(bound, if bound > 0.0 { 0 } else { input.shift }, MAX_LEVELS);
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

/// Values arranged in regions, and the parts of the stream that describe the arrangement.
pub(crate) struct EncoderInput<'a, T: Clone> {
    arrangement: Arrangement,
    /// The encoded number of values, and the shape, block keys or tree.
    layout: Vec<u8>,
    pub(crate) regions: Vec<RegionBuffer<'a, T>>,
    /// The number of values.
    pub(crate) count: usize,
    /// The number of lowest bits that are 0 in all values.
    shift: u32,
    /// The bits of the fill value, and the encoded masks.
    masks: Option<(u64, Vec<u8>)>,
    /// Whether the points of holes between blocks are predicted.
    predicts_holes: bool,
    /// The smallest value, if no value is below 0 and errors are measured.
    pub(crate) least: Option<T>,
    /// The transform, if the regions hold wavelet coefficients instead of values.
    transformed: Option<TransformedRegions<'a, T>>,
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

    /// The whole stream.
    pub(crate) fn stream(
        &self,
        symbols: &Symbols,
        bound: f64,
        params: EncoderParams,
        prelude: &Prelude<'_>,
    ) -> Vec<u8> {
        let packets = match (self.arrangement, params.packets()) {
            (Arrangement::Cells, _) => PacketCount::Exactly(1),
            // Coefficients belong to no level.
            _ if self.is_transformed() => PacketCount::Exactly(1),
            // Levels of separate planes or rows are not those of the array.
            (Arrangement::Array, _) if params.separate_dimensions() > 0 => PacketCount::Exactly(1),
            // Components and exceptions belong to no level.
            _ if prelude.components.is_some() || !prelude.exceptions.is_empty() => {
                PacketCount::Exactly(1)
            }
            (_, Some(count)) => PacketCount::Exactly(count),
            (_, None) => PacketCount::AtMost(MAX_PACKETS),
        };
        let contexts = match self.is_transformed() {
            true => Contexts::Row,
            false => params.contexts(),
        };
        let coded = match contexts {
            Contexts::Level => token_groups::encode(symbols, packets),
            Contexts::Row | Contexts::Plane => {
                token_groups::encode_ungrouped(symbols, packets, params.adaptive_use())
            }
        };
        let header = Header {
            value_size: T::SIZE,
            arrangement: self.arrangement,
            bound: prelude.kind(bound),
            is_masked: self.masks.is_some(),
            is_clamped: prelude.minimum.is_some(),
            has_components: prelude.components.is_some(),
            mode: Mode::EntropyCoded(Coding {
                contexts,
                predicts_holes: self.predicts_holes,
                group_size: coded.size,
                coder: coded.coder,
                packets: coded.packets.len(),
            }),
        };
        let mut out = Vec::new();
        prelude.write(T::SIZE, &mut out);
        out.extend_from_slice(&self.layout);
        if bound > 0.0 {
            out.extend_from_slice(&bound.to_le_bytes());
        } else {
            out.push(self.shift as u8);
        }
        let wavelet = self.transformed.as_ref().map(|transformed| {
            transformed.options(transformed.coefficient_bound(bound, params.bound_ratio()))
        });
        params.write(wavelet, &mut out);
        if let Some((fill, masks)) = &self.masks {
            out.extend_from_slice(&fill.to_le_bytes()[..T::SIZE]);
            out.extend_from_slice(masks);
        }
        for tables in &coded.tables {
            write_tables(tables, &mut out);
        }
        let head = out;
        let mut out = header.to_bytes().to_vec();
        if let [packet] = &coded.packets[..] {
            out.extend_from_slice(&head);
            for section in [&packet.symbols, &packet.raw] {
                write_number(section.len() as u64, &mut out);
                out.extend_from_slice(section);
            }
        } else {
            write_packets(&head, &coded.packets, &mut out);
        }
        write_checksum(0, &mut out);
        out
    }
}

/// Appends the lengths of the head and the level packets, then the head and the packets, each with a checksum.
fn write_packets(head: &[u8], packets: &[CodedPacket], out: &mut Vec<u8>) {
    write_number(head.len() as u64, out);
    for packet in packets {
        write_number(packet.symbols.len() as u64, out);
        write_number(packet.raw.len() as u64, out);
    }
    out.extend_from_slice(head);
    write_checksum(0, out);
    for packet in packets {
        let begin = out.len();
        out.extend_from_slice(&packet.symbols);
        out.extend_from_slice(&packet.raw);
        write_checksum(begin, out);
    }
}

/// Appends the CRC-32C of the bytes from `begin` on.
fn write_checksum(begin: usize, out: &mut Vec<u8>) {
    let checksum = crc32c(&out[begin..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Appends the number of tables and the section of their bytes.
fn write_tables(tables: &EncodedTables, out: &mut Vec<u8>) {
    out.push(tables.count as u8);
    write_number(tables.bytes.len() as u64, out);
    out.extend_from_slice(&tables.bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

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
