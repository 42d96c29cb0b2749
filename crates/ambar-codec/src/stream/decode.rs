//! Decodes streams; the input is untrusted.

use crate::bitpack;
use crate::bound::ErrorBound;
use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::lattice::Phases;
use crate::domain::mask;
use crate::domain::regions::{self, RegionTarget};
use crate::domain::tree::{CellRegion, CodedTree};
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::entropy::bitio::{Cursor, truncated};
use crate::entropy::frequencies::Frequencies;
use crate::entropy::rans;
use crate::entropy::symbols::{MAX_PACKETS, packet_of_level};
use crate::entropy::tables::Tables;
use crate::entropy::token_groups::{self, Groups};
use crate::error::{Error, Result, corrupt, invalid};
use crate::predict::context::ContextWeights;
use crate::predict::mask_pyramid::Validity;
use crate::predict::row::InterpolationLevel;
use crate::predict::traversal::{self, Scratch, TraversalParams};
use crate::quantize::row_decoder::{Decoder, Packet};
use crate::stream::encode::{LEVELS, Workspace};
use crate::stream::header::{Arrangement, Coding, Header, Mode};
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use std::ops::Range;

/// The contents of a stream, as its header states.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Bytes of a value: 4 (float32) or 8 (float64).
    pub value_size: usize,
    /// Number of values.
    pub values: usize,
    /// The error bound of this stream: lossless, absolute or relative.
    pub bound: ErrorBound,
    /// The smallest original value, below which no value is decoded, if it is stored.
    pub minimum: Option<f64>,
}

/// The coded values of a stream, and how values are computed from them.
struct StreamContent<'a> {
    value_size: usize,
    values: usize,
    /// The absolute error bound; 0 where the coded values are lossless.
    bound: f64,
    prelude: Prelude<'a>,
}

impl StreamContent<'_> {
    fn info(&self) -> Info {
        Info {
            value_size: self.value_size,
            values: self.values,
            bound: self.prelude.bound(self.bound),
            minimum: self.prelude.minimum_of(self.value_size),
        }
    }

    /// The error of an output that does not fit the stream, which has this number of values.
    #[cold]
    fn differs_from<T: Element>(&self, values: usize, expected: usize) -> Error {
        corrupt!(
            "the stream holds {values} values of {} bytes; expected {expected} of {} bytes; inspect the stream first",
            self.value_size,
            T::SIZE
        )
    }
}

/// The parts of an entropy-coded stream up to the level options, and the rest.
struct ParsedStream<'a> {
    info: StreamContent<'a>,
    layout: ParsedLayout<'a>,
    shift: u32,
    params: EncoderParams,
    coding: Coding,
    is_masked: bool,
    rest: Cursor<'a>,
}

/// The layout of a stream.
enum ParsedLayout<'a> {
    Array {
        inner: [usize; 3],
        outer: usize,
    },
    Blocks {
        side: [usize; 3],
        count: usize,
        /// The encoded block keys.
        keys: &'a [u8],
    },
    Cells(CodedTree<'a>),
}

fn parse_entropy_coded<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    coding: Coding,
    most: usize,
) -> Result<ParsedStream<'a>> {
    let prelude = Prelude::parse(header, &mut cursor)?;
    let values = cursor.number_to(most)?;
    let layout = match header.arrangement {
        Arrangement::Array => array(&mut cursor, values)?,
        Arrangement::Blocks => blocks_layout(&mut cursor, values)?,
        Arrangement::Cells => ParsedLayout::Cells(CodedTree::parse(&mut cursor, values)?),
    };
    let bound = read_bound(header, &mut cursor)?;
    let shift = match header.is_lossless() {
        true => u32::from(cursor.byte()?),
        false => 0,
    };
    if shift >= 8 * header.value_size as u32 {
        return Err(corrupt!(
            "the shift is {shift}; expected less than the bits of a value, {}",
            8 * header.value_size
        ));
    }
    let params = EncoderParams::from_byte(cursor.byte()?, coding.contexts)?;
    Ok(ParsedStream {
        info: StreamContent {
            value_size: header.value_size,
            values,
            bound,
            prelude,
        },
        layout,
        shift,
        params,
        coding,
        is_masked: header.is_masked,
        rest: cursor,
    })
}

/// The absolute error bound; 0 for a lossless stream.
fn read_bound(header: &Header, cursor: &mut Cursor<'_>) -> Result<f64> {
    if header.is_lossless() {
        return Ok(0.0);
    }
    let bound = f64::from_bits(cursor.word()?);
    if bound > 0.0 && bound.is_finite() {
        Ok(bound)
    } else {
        Err(corrupt!(
            "the error bound of the stream is {bound:e}; expected a finite number above 0"
        ))
    }
}

/// The shape of an array, of 1 to 4 dimensions.
fn shape(cursor: &mut Cursor<'_>, values: usize) -> Result<Vec<usize>> {
    let count = cursor.number_to(4)?;
    let mut shape = Vec::with_capacity(count);
    for _ in 0..count {
        shape.push(cursor.number_to(usize::MAX)?);
    }
    if shape.is_empty() {
        return Err(corrupt!("the array has 0 dimensions; expected 1 to 4"));
    }
    if regions::volume_of(&shape) != Some(values) {
        return Err(wrong_shape(&shape, values));
    }
    Ok(shape)
}

fn wrong_shape(shape: &[usize], values: usize) -> Error {
    corrupt!("the stream has {values} values, and the shape {shape:?}")
}

fn array<'a>(cursor: &mut Cursor<'_>, values: usize) -> Result<ParsedLayout<'a>> {
    let shape = shape(cursor, values)?;
    let (inner, outer) = regions::array_regions(&shape)?;
    if regions::volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
        return Err(wrong_shape(&shape, values));
    }
    Ok(ParsedLayout::Array { inner, outer })
}

/// The parts of a bit-packed stream before its blocks, and the rest.
struct BitPacked<'a> {
    info: StreamContent<'a>,
    shape: Vec<usize>,
    rest: Cursor<'a>,
}

fn parse_bit_packed<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    most: usize,
) -> Result<BitPacked<'a>> {
    let prelude = Prelude::parse(header, &mut cursor)?;
    let values = cursor.number_to(most)?;
    let shape = shape(&mut cursor, values)?;
    let bound = read_bound(header, &mut cursor)?;
    Ok(BitPacked {
        info: StreamContent {
            value_size: header.value_size,
            values,
            bound,
            prelude,
        },
        shape,
        rest: cursor,
    })
}

fn decode_bit_packed<T: Element>(
    header: &Header,
    cursor: Cursor<'_>,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let BitPacked { info, shape, rest } = parse_bit_packed(header, cursor, out.len())?;
    if info.values != out.len() || info.value_size != T::SIZE {
        return Err(info.differs_from::<T>(info.values, out.len()));
    }
    bitpack::decode(rest, &shape, info.bound, out, &mut workspace.bit_packing)?;
    info.prelude.apply(out)
}

fn blocks_layout<'a>(cursor: &mut Cursor<'a>, values: usize) -> Result<ParsedLayout<'a>> {
    let mut side = [0; 3];
    for n in &mut side {
        *n = cursor.number_to(usize::MAX)?;
    }
    let cells = regions::volume(side).unwrap_or(0);
    if cells == 0 || !values.is_multiple_of(cells) {
        return Err(corrupt!(
            "the stream has {values} values; expected a multiple of the cells of blocks with the sides {side:?}"
        ));
    }
    let length = cursor.number_to(cursor.0.len())?;
    Ok(ParsedLayout::Blocks {
        side,
        count: values / cells,
        keys: cursor.bytes(length)?,
    })
}

/// Reads the header of a stream. Its checksum is verified.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn inspect(stream: &[u8]) -> Result<Info> {
    let mut cursor = Cursor::verified(stream)?;
    let body = cursor.0;
    let header = Header::parse(&mut cursor)?;
    let coding = match header.mode {
        Mode::BitPacked => return Ok(parse_bit_packed(&header, cursor, usize::MAX)?.info.info()),
        Mode::EntropyCoded(coding) => coding,
    };
    if coding.packets > 1 {
        cursor = PacketLengths::parse(body, &mut cursor, coding.packets)?.head(body)?;
    }
    Ok(parse_entropy_coded(&header, cursor, coding, usize::MAX)?
        .info
        .info())
}

/// Decodes a stream of exactly `out.len()` values of this type.
///
/// # Errors
/// `Corrupt` if the stream is damaged or truncated, or holds another number or type of values; `UnsupportedVersion`.
pub fn decode<T: Element>(
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let mut cursor = Cursor::verified(stream)?;
    let body = cursor.0;
    let header = Header::parse(&mut cursor)?;
    let coding = match header.mode {
        Mode::BitPacked => return decode_bit_packed(&header, cursor, out, workspace),
        Mode::EntropyCoded(coding) => coding,
    };
    let (head, packets) = match coding.packets {
        1 => (cursor, Vec::new()),
        count => {
            let lengths = PacketLengths::parse(body, &mut cursor, count)?;
            if let Some(end) = lengths.ends.last().filter(|end| **end != body.len()) {
                return Err(corrupt!(
                    "the level packets end at byte {end}; expected the end of the stream, {}",
                    body.len()
                ));
            }
            (lengths.head(body)?, lengths.packets(body, count)?)
        }
    };
    let parts = parse_entropy_coded(&header, head, coding, out.len())?;
    if parts.info.values != out.len() || parts.info.value_size != T::SIZE {
        return Err(parts.info.differs_from::<T>(parts.info.values, out.len()));
    }
    let prelude = parts.info.prelude;
    decode_levels(parts, packets, 0, out, workspace)?;
    prelude.apply(out)
}

/// Decodes a prefix of a stream, whose length [`prefix`] returns, at lower resolution: every `2^level`th value in each
/// of the last three dimensions of an array, or in each dimension of each block. `out` holds the smaller array, whose
/// lengths are rounded up, or the smaller blocks.
///
/// The checksums of the head and of the decoded level packets are verified. Later bytes are not read.
///
/// # Errors
/// `Corrupt` if the prefix is damaged or truncated, or holds another number or type of values; `UnsupportedVersion`;
/// `Invalid` if [`prefix`] returns `None`, or if the sides of blocks are not multiples of `2^level`.
pub fn decode_prefix<T: Element>(
    prefix: &[u8],
    level: u32,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let mut cursor = Cursor(prefix);
    let header = Header::parse(&mut cursor)?;
    let coding = match header.mode {
        Mode::EntropyCoded(coding) if coding.packets > 1 => coding,
        _ => {
            return Err(invalid!(
                "the stream has no level packets; decode the whole stream"
            ));
        }
    };
    let lengths = PacketLengths::parse(prefix, &mut cursor, coding.packets)?;
    let head = lengths.head(prefix)?;
    let packets = lengths.packets(prefix, packets_of(level, coding.packets))?;
    let parts = parse_entropy_coded(&header, head, coding, usize::MAX)?;
    let values = parts.downsampled_count(level)?;
    if parts.info.value_size != T::SIZE || values != out.len() {
        return Err(parts.info.differs_from::<T>(values, out.len()));
    }
    let prelude = parts.info.prelude;
    if !prelude.exceptions.is_empty() {
        return Err(corrupt!(
            "a stream with exceptions has {} level packets; expected 1",
            coding.packets
        ));
    }
    decode_levels(parts, packets, level, out, workspace)?;
    prelude.apply(out)
}

/// The prefix of a stream that [`decode_prefix`] requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes of the prefix.
    pub length: usize,
    /// Whether the layout is unit blocks; otherwise it is an array.
    pub is_blocks: bool,
}

/// The prefix that [`decode_prefix`] requires for a level; `None` if the stream has no level packets. `head` holds the
/// first [`LENGTHS_BYTES`] of the stream, or the whole stream if it is shorter.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn prefix(head: &[u8], level: u32) -> Result<Option<Prefix>> {
    let mut cursor = Cursor(head);
    let header = Header::parse(&mut cursor)?;
    match header.mode {
        Mode::EntropyCoded(coding) if coding.packets > 1 => {
            let lengths = PacketLengths::parse(head, &mut cursor, coding.packets)?;
            Ok(Some(Prefix {
                length: lengths.ends[packets_of(level, coding.packets) - 1],
                is_blocks: header.arrangement == Arrangement::Blocks,
            }))
        }
        _ => Ok(None),
    }
}

/// The number of leading packets, of `count`, that hold `level` and all coarser levels.
fn packets_of(level: u32, count: usize) -> usize {
    packet_of_level(level as usize, count) + 1
}

/// Maximum number of bytes of a stream up to the end of the lengths of its level packets.
pub const LENGTHS_BYTES: usize = 4 + MAX_NUMBER_BYTES * (1 + 2 * MAX_PACKETS);
/// Maximum number of bytes of a variable-length number.
const MAX_NUMBER_BYTES: usize = 9;
/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// Where the head and the level packets of a stream are.
struct PacketLengths {
    /// The bytes from the end of the lengths to the checksum of the head.
    head: Range<usize>,
    /// The length of each packet's symbols.
    symbols: Vec<usize>,
    /// The end of each packet, its checksum included.
    ends: Vec<usize>,
}

impl PacketLengths {
    /// Reads the lengths of `count` packets. `cursor` is at these lengths in `stream`, which may be truncated.
    fn parse(stream: &[u8], cursor: &mut Cursor<'_>, count: usize) -> Result<Self> {
        let head = cursor.number_to(usize::MAX)?;
        let mut packets = [[0; 2]; MAX_PACKETS];
        for packet in &mut packets[..count] {
            for length in packet {
                *length = cursor.number_to(usize::MAX)?;
            }
        }
        let begin = stream.len() - cursor.0.len();
        let plus = |a: usize, b: usize| {
            a.checked_add(b)
                .ok_or_else(|| corrupt!("the lengths {a} and {b} of a stream overflow"))
        };
        let head = begin..plus(begin, head)?;
        let mut end = plus(head.end, CHECKSUM_BYTES)?;
        let mut lengths = Self {
            head,
            symbols: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
        };
        for [symbols, raw] in &packets[..count] {
            end = plus(plus(end, *symbols)?, plus(*raw, CHECKSUM_BYTES)?)?;
            lengths.symbols.push(*symbols);
            lengths.ends.push(end);
        }
        Ok(lengths)
    }

    /// The rest of the head. Its checksum is verified.
    fn head<'a>(&self, stream: &'a [u8]) -> Result<Cursor<'a>> {
        let end = self.head.end + CHECKSUM_BYTES;
        let head = stream.get(..end);
        let head = Cursor::verified(head.ok_or_else(|| truncated(end, stream.len()))?)?;
        Ok(Cursor(&head.0[self.head.start..]))
    }

    /// The symbols and raw bits of the first `count` packets. Their checksums are verified.
    fn packets<'a>(&self, stream: &'a [u8], count: usize) -> Result<Vec<[&'a [u8]; 2]>> {
        let mut begin = self.head.end + CHECKSUM_BYTES;
        let mut packets = Vec::with_capacity(count);
        for (end, symbols) in self.ends.iter().zip(&self.symbols).take(count) {
            let packet = stream.get(begin..*end);
            let packet = Cursor::verified(packet.ok_or_else(|| truncated(*end, stream.len()))?)?;
            packets.push(packet.0.split_at(*symbols).into());
            begin = *end;
        }
        Ok(packets)
    }
}

impl ParsedStream<'_> {
    /// The number of values at every `2^level`th index of each dimension.
    fn downsampled_count(&self, level: u32) -> Result<usize> {
        let coarse = |n: usize| coarse_length(n, level);
        match &self.layout {
            ParsedLayout::Array { inner, outer } => {
                Ok(inner.map(coarse).iter().product::<usize>() * outer)
            }
            ParsedLayout::Blocks { side, count, .. } => {
                let even = |n: usize| n == 1 || n == coarse(n) << level.min(usize::BITS - 1);
                if !side.iter().all(|n| even(*n)) {
                    return Err(uneven_sides(side, level));
                }
                Ok(side.map(coarse).iter().product::<usize>() * count)
            }
            ParsedLayout::Cells(_) => Err(invalid!(
                "streams of cells have no downsampled values; decode the whole stream"
            )),
        }
    }

    /// The approximate part of the values that are in the levels coarser than the finest.
    fn coarser_fraction(&self) -> f64 {
        match self.layout {
            ParsedLayout::Array { inner: shape, .. } | ParsedLayout::Blocks { side: shape, .. } => {
                let long = shape.iter().filter(|n| **n > 1).count();
                0.5f64.powi(long as i32)
            }
            ParsedLayout::Cells(_) => 0.125,
        }
    }
}

/// The error of blocks that have no lattice of a level.
fn uneven_sides(side: &[usize; 3], level: u32) -> Error {
    invalid!(
        "the blocks have the sides {side:?}; expected multiples of 2^{level}; decode a finer level"
    )
}

/// The number of points at every `2^level`th of `n` indices.
fn coarse_length(n: usize, level: u32) -> usize {
    match level {
        0 => n,
        _ => (n.saturating_sub(1)).checked_shr(level).unwrap_or(0) + usize::from(n > 0),
    }
}

/// Decodes the values at every `2^level`th index of each dimension. `packets` holds the level packets that this
/// requires, or none if the stream has one packet, which is part of `parts.rest`.
fn decode_levels<T: Element>(
    mut parts: ParsedStream<'_>,
    packets: Vec<[&[u8]; 2]>,
    level: u32,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let coding = parts.coding;
    let coarser = parts.coarser_fraction();
    let (mut side, mut regions, mut cell_regions) = ([0; 3], Vec::new(), &[][..]);
    let number = match parts.layout {
        ParsedLayout::Array { outer, .. } => outer,
        ParsedLayout::Blocks {
            side: block_side,
            count,
            keys,
        } => {
            let keys = blocks::decode_keys(keys, count)?;
            side = block_side;
            regions = blocks::regions(&keys, coding.contexts.min_fill());
            regions.len()
        }
        ParsedLayout::Cells(cells) => {
            cell_regions = workspace.cell_regions.regions(&cells)?;
            cell_regions.len() + usize::from(cells.count < out.len())
        }
    };
    if level > 0
        && regions
            .iter()
            .any(|region| (0..3).any(|d| side[d] == 1 && region.places[d] > 1))
    {
        return Err(uneven_sides(&side, level));
    }
    let (fill, masks) = if parts.is_masked {
        masks::<T>(&mut parts.rest, number)?
    } else {
        (0, Vec::new())
    };
    let sections = SymbolSections::parse(parts.rest, coding, packets)?;
    if out.is_empty() {
        return Ok(());
    }
    let (frequencies, table_of_context) = sections.tables()?;
    let slots = &mut workspace.decode_tables;
    slots.set(&frequencies)?;
    let context_tables = slots.context_tables(&table_of_context);
    let mut packets = Vec::with_capacity(sections.packets.len());
    for (number, [symbols, raw]) in sections.packets.iter().enumerate() {
        let finest = coding.packets - 1 - number;
        let part = coarser.powi(finest as i32) * if number > 0 { 1.0 - coarser } else { 1.0 };
        let count = (parts.info.values as f64 * part) as usize;
        let symbols = rans::Decoder::new(
            &context_tables,
            symbols,
            count / sections.size,
            coding.states,
        )?;
        packets.push(Packet::new(symbols, raw, count));
    }
    let last = (level as usize).min(coding.packets - 1);
    let groups = Groups::new(sections.size);
    let has_tables = sections.tables.map(|(count, _)| count > 0);
    let mut region_decoder = RegionDecoder {
        decoder: Decoder::new(packets, coding.packets, groups, has_tables),
        levels: parts
            .params
            .levels::<T>(parts.info.bound, parts.shift, LEVELS),
        predicts_holes: coding.predicts_holes,
        fill,
        masks,
        level,
        last,
        scratch: &mut workspace.traversal,
    };
    if let ParsedLayout::Array { inner, .. } = parts.layout {
        let coarse = inner.map(|n| coarse_length(n, level));
        let size: usize = coarse.iter().product();
        for (number, part) in out.chunks_exact_mut(size).enumerate() {
            region_decoder.region(number, inner, None, (RegionTarget::Array(coarse), part))?;
        }
    }
    region_decoder.blocks(&regions, side, out)?;
    if let ParsedLayout::Cells(cells) = parts.layout {
        region_decoder.cells(cell_regions, cells.count, out)?;
    }
    region_decoder.decoder.finish()
}

/// The frequency tables and the level packets of a stream.
struct SymbolSections<'a> {
    /// Tokens of a group; 1 if tokens are coded one by one.
    size: usize,
    /// The number and the bytes of the tables of single tokens, and of those of groups.
    tables: [(usize, &'a [u8]); 2],
    /// The symbols and the raw bits of each packet.
    packets: Vec<[&'a [u8]; 2]>,
}

impl<'a> SymbolSections<'a> {
    /// Reads the tables, and the symbols and raw bits if `packets` is empty.
    fn parse(
        mut cursor: Cursor<'a>,
        coding: Coding,
        mut packets: Vec<[&'a [u8]; 2]>,
    ) -> Result<Self> {
        let mut tables = || -> Result<_> {
            let count = usize::from(cursor.byte()?);
            Ok((count, section(&mut cursor)?))
        };
        let groups = match coding.group_size {
            1 => (0, &[][..]),
            _ => tables()?,
        };
        let single = tables()?;
        if coding.packets == 1 {
            packets.push([section(&mut cursor)?, section(&mut cursor)?]);
        }
        let sections = Self {
            size: coding.group_size,
            tables: [single, groups],
            packets,
        };
        if cursor.0.is_empty() {
            Ok(sections)
        } else {
            Err(corrupt!(
                "expected the end of the stream; found {} more bytes",
                cursor.0.len()
            ))
        }
    }

    /// The frequencies of all tables, and the table of each context of tokens and of groups.
    fn tables(&self) -> Result<(Vec<Frequencies>, [u8; 2 * CONTEXTS])> {
        let [single, grouped] = self.tables.map(|(count, bytes)| match count {
            // A stream without tables has no symbols, which `Decoder::finish` checks.
            0 if bytes.is_empty() => Ok(Tables::empty()),
            _ => Tables::decode(bytes, count),
        });
        let (single, grouped) = (single?, grouped?);
        let most = usize::from(token_groups::escape(self.size));
        let beyond = |table: &Frequencies| table[most + 1..].iter().any(|n| *n > 0);
        if grouped.frequencies.iter().any(beyond) {
            return Err(corrupt!(
                "a frequency table of groups of {} tokens has symbols above {most}",
                self.size
            ));
        }
        Ok(token_groups::concat_tables(&single, &grouped))
    }
}

/// Reads a section: its length and its bytes.
fn section<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.number_to(cursor.0.len())?;
    cursor.bytes(length)
}

/// The side of the cubes and the bytes of the mask of each region.
type Masks<'a> = Vec<(usize, &'a [u8])>;

/// Reads the bits of the fill value, and the masks.
fn masks<'a, T: Element>(cursor: &mut Cursor<'a>, regions: usize) -> Result<(u64, Masks<'a>)> {
    let mut word = [0; 8];
    word[..T::SIZE].copy_from_slice(cursor.bytes(T::SIZE)?);
    let mut masks = Vec::new();
    for _ in 0..regions {
        let side = cursor.byte()?;
        let length = cursor.number_to(cursor.0.len())?;
        if !mask::is_valid_side(side) {
            return Err(corrupt!(
                "the cubes of a mask have side {side}; expected 1, 2, 4 or 8"
            ));
        }
        masks.push((usize::from(side), cursor.bytes(length)?));
    }
    Ok((u64::from_le_bytes(word), masks))
}

/// The decoder of all regions of a stream.
struct RegionDecoder<'a, T> {
    decoder: Decoder<'a>,
    levels: Vec<InterpolationLevel>,
    /// Whether absent points are predicted like present ones.
    predicts_holes: bool,
    fill: u64,
    masks: Masks<'a>,
    /// Only every `2^level`th value of each dimension is decoded.
    level: u32,
    /// The finest level that is decoded, at most `level`.
    last: usize,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> RegionDecoder<'_, T> {
    /// The regions of blocks.
    fn blocks(
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
    fn cells(&mut self, regions: &[CellRegion], count: usize, out: &mut [T]) -> Result<()> {
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

    fn region(
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

/// `n` times `2^bits`; 0 for 0.
fn scaled(n: usize, bits: usize) -> usize {
    n.checked_shl(bits as u32).unwrap_or(0)
}

/// The index among every `2^level`th value of a region of this shape, if `at` is one of these.
fn downsampled_index(at: usize, [_, ny, nx]: [usize; 3], level: u32) -> Option<usize> {
    if level == 0 {
        return Some(at);
    }
    let place = [at / nx / ny, at / nx % ny, at % nx];
    let [z, y, x] = place.map(|n| n.checked_shr(level).unwrap_or(0));
    let is_coarse = [z, y, x].map(|n| scaled(n, level as usize)) == place;
    let [ny, nx] = [ny, nx].map(|n| coarse_length(n, level));
    is_coarse.then_some((z * ny + y) * nx + x)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tables::Histogram;

    /// Decodes a stream with changed tables, whose section begins after its count and its length, which take a byte each.
    fn with_tables(change: impl FnOnce(&mut Vec<u8>, Range<usize>)) -> Result<()> {
        let values: Vec<f32> = (0..150).map(|i| (i as f32).sin()).collect();
        let layout = crate::Layout::Array(&[150]);
        let (params, mut workspace) = (
            EncoderParams::default().with_packets(1),
            Workspace::default(),
        );
        let mut stream = crate::encode(&values, &layout, 1e-3, Some(params), &mut workspace)?;
        stream.truncate(stream.len() - CHECKSUM_BYTES);
        let mut cursor = Cursor(&stream);
        let header = Header::parse(&mut cursor)?;
        let Mode::EntropyCoded(coding) = header.mode else {
            return Err(invalid!("the stream is not entropy-coded"));
        };
        let parts = parse_entropy_coded(&header, cursor, coding, values.len())?;
        let begin = stream.len() - parts.rest.0.len() + 2;
        let end = begin + usize::from(stream[begin - 1]);
        change(&mut stream, begin..end);
        let checksum = crc_fast::crc32_iscsi(&stream);
        stream.extend_from_slice(&checksum.to_le_bytes());
        decode(&stream, &mut vec![0f32; values.len()], &mut workspace)
    }

    #[test]
    fn tables_with_more_bytes_are_refused() {
        assert_eq!(with_tables(|_, _| ()), Ok(()));
        for byte in [0, 1] {
            let result = with_tables(|stream, section| {
                stream[section.start - 1] += 9;
                stream.splice(section.end..section.end, [byte; 9]);
            });
            assert!(matches!(result, Err(Error::Corrupt(_))));
        }
    }

    #[test]
    fn symbols_without_tables_are_refused() {
        let result = with_tables(|stream, section| {
            stream[section.start - 2..section.start].fill(0);
            stream.drain(section);
        });
        assert!(matches!(result, Err(Error::Corrupt(_))));
    }

    /// A valid table may have a symbol that is not a group.
    #[test]
    fn symbols_above_the_escape_are_refused() {
        for (size, symbol) in [
            (4, 81),
            (4, 82),
            (3, 125),
            (3, 126),
            (2, 121),
            (2, 122),
            (1, 1),
        ] {
            let tables = Histogram::new(&[0, 0], &[0, symbol]).tables(None);
            let bytes = tables.encode();
            let sections = SymbolSections {
                size,
                tables: [(0, &[]), (tables.frequencies.len(), &bytes)],
                packets: Vec::new(),
            };
            let is_valid = size > 1 && symbol <= token_groups::escape(size);
            assert_eq!(sections.tables().is_ok(), is_valid, "{size} {symbol}");
        }
    }
}
