//! Decodes streams; the input is untrusted.

use crate::bitpack;
use crate::bound::ErrorBound;
use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::lattice::Phases;
use crate::domain::mask;
use crate::domain::regions::{self, Target};
use crate::domain::tree::{CellRegion, Coded};
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::entropy::bitio::Cursor;
use crate::entropy::frequencies::Frequencies;
use crate::entropy::rans;
use crate::entropy::symbols::{MOST_PACKETS, packet_of_level};
use crate::entropy::tables::Tables;
use crate::entropy::token_groups::{self, Groups};
use crate::error::{Corrupt, Invalid, Result};
use crate::predict::context::ContextWeights;
use crate::predict::mask_pyramid::Validity;
use crate::predict::row::Level;
use crate::predict::traversal::{self, Scratch};
use crate::quantize::row_decoder::{Decoder, Packet};
use crate::stream::encode::{LEVELS, Workspace};
use crate::stream::header::{Arrangement, Coding, Contexts, Header, Mode};
use crate::stream::params::{self, Plan};
use crate::stream::prelude::Prelude;
use std::ops::Range;

/// What the header of a stream states.
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

/// What is known of the coded values.
struct Content<'a> {
    value_size: usize,
    values: usize,
    /// The absolute error bound; 0 where the coded values are lossless.
    bound: f64,
    /// How values are made of them.
    prelude: Prelude<'a>,
}

impl Content<'_> {
    fn info(&self) -> Info {
        Info {
            value_size: self.value_size,
            values: self.values,
            bound: self.prelude.bound(self.bound),
            minimum: self.prelude.minimum_of(self.value_size),
        }
    }
}

/// A stream taken apart.
struct Parts<'a> {
    info: Content<'a>,
    layout: Parsed<'a>,
    shift: u32,
    plan: Plan,
    coding: Coding,
    is_masked: bool,
    rest: Cursor<'a>,
}

/// The layout as a stream says it.
enum Parsed<'a> {
    Array {
        inner: [usize; 3],
        outer: usize,
    },
    Blocks {
        side: [usize; 3],
        count: usize,
        /// Where the blocks are, encoded.
        places: &'a [u8],
    },
    Cells(Coded<'a>),
}

fn parse<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    coding: Coding,
    most: usize,
) -> Result<Parts<'a>> {
    let prelude = Prelude::parse(header, &mut cursor)?;
    let values = cursor.number_to(most)?;
    let layout = match header.arrangement {
        Arrangement::Array => array(&mut cursor, values)?,
        Arrangement::Blocks => blocks_layout(&mut cursor, values)?,
        Arrangement::Cells => Parsed::Cells(Coded::parse(&mut cursor, values)?),
    };
    let bound = bound(header, &mut cursor)?;
    let shift = match header.is_lossless() {
        true => u32::from(cursor.byte()?),
        false => 0,
    };
    if shift >= 8 * header.value_size as u32 {
        return Err(Corrupt(
            "the number of zero bits exceeds the bits of a value",
        ));
    }
    let plan = Plan::from_byte(cursor.byte()?, coding.contexts).ok_or(Corrupt(
        "reserved bits are set in the stream's encoder parameters",
    ))?;
    Ok(Parts {
        info: Content {
            value_size: header.value_size,
            values,
            bound,
            prelude,
        },
        layout,
        shift,
        plan,
        coding,
        is_masked: header.is_masked,
        rest: cursor,
    })
}

/// The absolute error bound; 0 for a lossless stream.
fn bound(header: &Header, cursor: &mut Cursor<'_>) -> Result<f64> {
    if header.is_lossless() {
        return Ok(0.0);
    }
    let bound = f64::from_bits(cursor.word()?);
    if bound > 0.0 && bound.is_finite() {
        Ok(bound)
    } else {
        Err(Corrupt(
            "the stream's error bound is not finite and above 0",
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
        return Err(Corrupt(
            "the array's shape is empty; expected 1 to 4 dimensions",
        ));
    }
    if regions::volume_of(&shape) != Some(values) {
        return Err(Corrupt(
            "the product of the shape differs from the number of values",
        ));
    }
    Ok(shape)
}

fn array<'a>(cursor: &mut Cursor<'_>, values: usize) -> Result<Parsed<'a>> {
    let shape = shape(cursor, values)?;
    let (inner, outer) = regions::of_array(&shape)?;
    if regions::volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
        return Err(Corrupt(
            "the product of the shape differs from the number of values",
        ));
    }
    Ok(Parsed::Array { inner, outer })
}

/// What a bit-packed stream begins with, and what follows.
struct BitPacked<'a> {
    info: Content<'a>,
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
    let bound = bound(header, &mut cursor)?;
    Ok(BitPacked {
        info: Content {
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
        return Err(Corrupt(
            "the stream differs from the output in the number or type of values; inspect the stream first",
        ));
    }
    bitpack::decode(rest, &shape, info.bound, out, &mut workspace.packed)?;
    info.prelude.apply(out)
}

fn blocks_layout<'a>(cursor: &mut Cursor<'a>, values: usize) -> Result<Parsed<'a>> {
    let mut side = [0; 3];
    for n in &mut side {
        *n = cursor.number_to(usize::MAX)?;
    }
    let cells = regions::volume(side).unwrap_or(0);
    if cells == 0 || !values.is_multiple_of(cells) {
        return Err(Corrupt(
            "the cells of the blocks differ in number from the values",
        ));
    }
    let length = cursor.number_to(cursor.0.len())?;
    Ok(Parsed::Blocks {
        side,
        count: values / cells,
        places: cursor.bytes(length)?,
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
        cursor = Lengths::parse(body, &mut cursor, coding.packets)?.head(body)?;
    }
    Ok(parse(&header, cursor, coding, usize::MAX)?.info.info())
}

/// Decodes a stream of exactly `out.len()` values of this type.
///
/// # Errors
/// `Corrupt` where the stream is damaged, cut short, or holds other values; `UnsupportedVersion`.
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
            let lengths = Lengths::parse(body, &mut cursor, count)?;
            if lengths.ends.last() != Some(&body.len()) {
                return Err(Corrupt("expected the end of the stream; found more bytes"));
            }
            (lengths.head(body)?, lengths.packets(body, count)?)
        }
    };
    let parts = parse(&header, head, coding, out.len())?;
    if parts.info.values != out.len() || parts.info.value_size != T::SIZE {
        return Err(Corrupt(
            "the stream differs from the output in the number or type of values; inspect the stream first",
        ));
    }
    let prelude = parts.info.prelude;
    decode_levels(parts, packets, 0, out, workspace)?;
    prelude.apply(out)
}

/// Decodes from the first bytes of a stream, as many as [`prefix`] says, every `2^level`th value in each of the last
/// three dimensions of an array, or in each dimension of each block. `out` is the values of the smaller array (lengths
/// are rounded up), or of the smaller blocks.
///
/// The checksums of the head and of the level packets that are decoded are verified; bytes behind these are not
/// read.
///
/// # Errors
/// `Corrupt` where what is read is damaged, cut short, or holds other values; `UnsupportedVersion`; `Invalid` where
/// [`prefix`] gives `None`, or the sides of blocks are not multiples of `2^level`.
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
            return Err(Invalid(
                "the stream has no level packets; decode the whole stream",
            ));
        }
    };
    let lengths = Lengths::parse(prefix, &mut cursor, coding.packets)?;
    let head = lengths.head(prefix)?;
    let packets = lengths.packets(prefix, packets_of(level, coding.packets))?;
    let parts = parse(&header, head, coding, usize::MAX)?;
    if parts.info.value_size != T::SIZE || parts.values_at(level)? != out.len() {
        return Err(Corrupt(
            "the stream differs from the output in the number or type of values; inspect the stream first",
        ));
    }
    let prelude = parts.info.prelude;
    if !prelude.exceptions.is_empty() {
        return Err(Corrupt("a stream with exceptions has level packets"));
    }
    decode_levels(parts, packets, level, out, workspace)?;
    prelude.apply(out)
}

/// The beginning of a stream that [`decode_prefix`] decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes of the stream that are needed.
    pub length: usize,
    /// Whether the stream is of blocks, not of an array.
    pub is_blocks: bool,
}

/// What [`decode_prefix`] needs for a level; `None` where the stream has no level packets. `head` is the first
/// [`LENGTHS_BYTES`] of the stream, or all if it is shorter.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn prefix(head: &[u8], level: u32) -> Result<Option<Prefix>> {
    let mut cursor = Cursor(head);
    let header = Header::parse(&mut cursor)?;
    match header.mode {
        Mode::EntropyCoded(coding) if coding.packets > 1 => {
            let lengths = Lengths::parse(head, &mut cursor, coding.packets)?;
            Ok(Some(Prefix {
                length: lengths.ends[packets_of(level, coding.packets) - 1],
                is_blocks: header.arrangement == Arrangement::Blocks,
            }))
        }
        _ => Ok(None),
    }
}

/// The number of packets, of `count`, that hold all levels from `level` on.
fn packets_of(level: u32, count: usize) -> usize {
    packet_of_level(level as usize, count) + 1
}

/// The most bytes of a stream up to and with the lengths of its level packets.
pub const LENGTHS_BYTES: usize = 4 + MOST_NUMBER * (1 + 2 * MOST_PACKETS);
/// The most bytes of a number.
const MOST_NUMBER: usize = 9;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// Where the head and the level packets of a stream are.
struct Lengths {
    /// Where the head goes on behind the lengths, and where it ends, before its checksum.
    head: Range<usize>,
    /// The length of each packet's symbols.
    symbols: Vec<usize>,
    /// Where each packet ends, behind its checksum.
    ends: Vec<usize>,
}

impl Lengths {
    /// Reads the lengths of `count` packets, at which `cursor` is in a stream, or the beginning of one.
    fn parse(stream: &[u8], cursor: &mut Cursor<'_>, count: usize) -> Result<Self> {
        let head = cursor.number_to(usize::MAX)?;
        let mut packets = [[0; 2]; MOST_PACKETS];
        for packet in &mut packets[..count] {
            for length in packet {
                *length = cursor.number_to(usize::MAX)?;
            }
        }
        let begin = stream.len() - cursor.0.len();
        let plus = |a: usize, b: usize| {
            a.checked_add(b)
                .ok_or(Corrupt("a length or count exceeds its maximum"))
        };
        let head = begin..plus(begin, head)?;
        let mut end = plus(head.end, CHECKSUM)?;
        let mut lengths = Self {
            head,
            symbols: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
        };
        for [symbols, raw] in &packets[..count] {
            end = plus(plus(end, *symbols)?, plus(*raw, CHECKSUM)?)?;
            lengths.symbols.push(*symbols);
            lengths.ends.push(end);
        }
        Ok(lengths)
    }

    /// The rest of the head. Its checksum is verified.
    fn head<'a>(&self, stream: &'a [u8]) -> Result<Cursor<'a>> {
        let head = stream.get(..self.head.end + CHECKSUM);
        let head = Cursor::verified(head.ok_or(Corrupt("the stream is truncated"))?)?;
        Ok(Cursor(&head.0[self.head.start..]))
    }

    /// The symbols and raw bits of the first `count` packets. Their checksums are verified.
    fn packets<'a>(&self, stream: &'a [u8], count: usize) -> Result<Vec<[&'a [u8]; 2]>> {
        let mut begin = self.head.end + CHECKSUM;
        let mut packets = Vec::with_capacity(count);
        for (end, symbols) in self.ends.iter().zip(&self.symbols).take(count) {
            let packet = stream.get(begin..*end);
            let packet = Cursor::verified(packet.ok_or(Corrupt("the stream is truncated"))?)?;
            packets.push(packet.0.split_at(*symbols).into());
            begin = *end;
        }
        Ok(packets)
    }
}

impl Parts<'_> {
    /// How many values there are of every `2^level`th in each dimension.
    fn values_at(&self, level: u32) -> Result<usize> {
        let coarse = |n: usize| coarse_length(n, level);
        match &self.layout {
            Parsed::Array { inner, outer } => {
                Ok(inner.map(coarse).iter().product::<usize>() * outer)
            }
            Parsed::Blocks { side, count, .. } => {
                let even = |n: usize| n == 1 || n == coarse(n) << level.min(usize::BITS - 1);
                if !side.iter().all(|n| even(*n)) {
                    return Err(Invalid(
                        "the sides of blocks are not multiples of the step; choose fewer levels to skip",
                    ));
                }
                Ok(side.map(coarse).iter().product::<usize>() * count)
            }
            Parsed::Cells(_) => Err(Invalid(
                "streams of cells have no downsampled values; decode the whole stream",
            )),
        }
    }

    /// The part of the values that are in the coarser levels, about.
    fn coarser_part(&self) -> f64 {
        match self.layout {
            Parsed::Array { inner: shape, .. } | Parsed::Blocks { side: shape, .. } => {
                let long = shape.iter().filter(|n| **n > 1).count();
                0.5f64.powi(long as i32)
            }
            Parsed::Cells(_) => 0.125,
        }
    }
}

/// The number of every `2^level`th of `n` points.
fn coarse_length(n: usize, level: u32) -> usize {
    match level {
        0 => n,
        _ => (n.saturating_sub(1)).checked_shr(level).unwrap_or(0) + usize::from(n > 0),
    }
}

/// Decodes every `2^level`th value in each dimension from the first level packets of a stream, which must be as many
/// as these need; none where the stream is one packet.
fn decode_levels<T: Element>(
    mut parts: Parts<'_>,
    packets: Vec<[&[u8]; 2]>,
    level: u32,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let coding = parts.coding;
    let coarser = parts.coarser_part();
    let (mut side, mut regions, mut of_cells) = ([0; 3], Vec::new(), &[][..]);
    let number = match parts.layout {
        Parsed::Array { outer, .. } => outer,
        Parsed::Blocks {
            side: of_all,
            count,
            places,
        } => {
            (side, regions) = (
                of_all,
                blocks::regions(
                    &blocks::decode_keys(places, count)?,
                    coding.contexts != Contexts::Row,
                ),
            );
            regions.len()
        }
        Parsed::Cells(cells) => {
            of_cells = workspace.cells.regions(&cells)?;
            of_cells.len() + usize::from(cells.count < out.len())
        }
    };
    if level > 0
        && regions
            .iter()
            .any(|region| (0..3).any(|d| side[d] == 1 && region.places[d] > 1))
    {
        return Err(Invalid(
            "the sides of blocks are not multiples of the step; choose fewer levels to skip",
        ));
    }
    let (fill, masks) = if parts.is_masked {
        masks::<T>(&mut parts.rest, number)?
    } else {
        (0, Vec::new())
    };
    let sections = Sections::parse(parts.rest, coding, packets)?;
    if out.is_empty() {
        return Ok(());
    }
    let (frequencies, table_of_context) = sections.tables()?;
    let slots = &mut workspace.slots;
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
    let mut job = Job {
        decoder: Decoder::new(packets, coding.packets, groups, has_tables),
        levels: parts
            .plan
            .levels::<T>(parts.info.bound, parts.shift, LEVELS),
        holes_predicted: coding.predicts_holes,
        fill,
        masks,
        level,
        last,
        scratch: &mut workspace.walk,
    };
    if let Parsed::Array { inner, .. } = parts.layout {
        let coarse = inner.map(|n| coarse_length(n, level));
        let size: usize = coarse.iter().product();
        for (number, part) in out.chunks_exact_mut(size).enumerate() {
            job.region(number, inner, None, (Target::Array(coarse), part))?;
        }
    }
    job.blocks(&regions, side, out)?;
    if let Parsed::Cells(cells) = parts.layout {
        job.cells(of_cells, cells.count, out)?;
    }
    job.decoder.finish()
}

/// The tables, and the level packets.
struct Sections<'a> {
    /// Tokens of a group; 1 where there are no groups.
    size: usize,
    /// Tables of single tokens, and of groups: how many, and their bytes.
    tables: [(usize, &'a [u8]); 2],
    /// The symbols and raw bits of packets.
    packets: Vec<[&'a [u8]; 2]>,
}

impl<'a> Sections<'a> {
    /// Reads the tables, and the symbols and raw bits where they are not in `packets`.
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
            Err(Corrupt("expected the end of the stream; found more bytes"))
        }
    }

    /// The frequencies of all tables, and which of these the bins of tokens, and of groups, use.
    fn tables(&self) -> Result<(Vec<Frequencies>, [u8; 2 * CONTEXTS])> {
        let [single, grouped] = self.tables.map(|(count, bytes)| match count {
            // Without a table, no symbol is coded: see `Decoder::finish`.
            0 if bytes.is_empty() => Ok(Tables::empty()),
            _ => Tables::decode(bytes, count),
        });
        let (single, grouped) = (single?, grouped?);
        let most = usize::from(token_groups::escape(self.size));
        let beyond = |table: &Frequencies| table[most + 1..].iter().any(|n| *n > 0);
        if grouped.frequencies.iter().any(beyond) {
            return Err(Corrupt("a frequency table has token groups out of range"));
        }
        Ok(token_groups::concat_tables(&single, &grouped))
    }
}

/// A section: its length, its bytes.
fn section<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.number_to(cursor.0.len())?;
    cursor.bytes(length)
}

/// Masks of regions: the sides of their cubes, their bytes.
type Masks<'a> = Vec<(usize, &'a [u8])>;

/// The bits of the values that are not there, and the masks.
fn masks<'a, T: Element>(cursor: &mut Cursor<'a>, regions: usize) -> Result<(u64, Masks<'a>)> {
    let mut word = [0; 8];
    word[..T::SIZE].copy_from_slice(cursor.bytes(T::SIZE)?);
    let mut masks = Vec::new();
    for _ in 0..regions {
        let side = cursor.byte()?;
        let length = cursor.number_to(cursor.0.len())?;
        if !mask::is_side(side) {
            return Err(Corrupt("unknown encoding of a mask"));
        }
        masks.push((usize::from(side), cursor.bytes(length)?));
    }
    Ok((u64::from_le_bytes(word), masks))
}

/// Regions being decoded.
struct Job<'a, T> {
    decoder: Decoder<'a>,
    levels: Vec<Level>,
    /// Whether points that are not there are gone over.
    holes_predicted: bool,
    fill: u64,
    masks: Masks<'a>,
    /// Of which every `2^level`th value in each dimension is wanted.
    level: u32,
    /// The finest level that is decoded, at most `level`.
    last: usize,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> Job<'_, T> {
    /// The regions of blocks.
    fn blocks(
        &mut self,
        regions: &[blocks::Region],
        side: [usize; 3],
        out: &mut [T],
    ) -> Result<()> {
        for (number, region) in regions.iter().enumerate() {
            let shape = std::array::from_fn(|d| region.places[d] * side[d]);
            let there = if self.holes_predicted {
                holes::coded(region, side)
            } else {
                regions::present(region, side)
            };
            let coarse = side.map(|n| coarse_length(n, self.level));
            let target = Target::of_region(region, coarse);
            self.region(number, shape, there, (target, &mut *out))?;
        }
        Ok(())
    }

    /// The regions of cells, and what lies behind them.
    fn cells(&mut self, regions: &[CellRegion], count: usize, out: &mut [T]) -> Result<()> {
        for (number, region) in regions.iter().enumerate() {
            let target = Target::Cells(region);
            let to = (target, &mut *out);
            self.region(number, region.shape(), region.present(), to)?;
        }
        let behind = &mut out[count..];
        if !behind.is_empty() {
            let shape = [1, 1, behind.len()];
            let to = (Target::Array(shape), behind);
            self.region(regions.len(), shape, None, to)?;
        }
        Ok(())
    }

    fn region(
        &mut self,
        number: usize,
        shape: [usize; 3],
        present: Option<Bitmap>,
        (target, out): (Target<'_>, &mut [T]),
    ) -> Result<()> {
        let known = self.masks.get(number).map(|(side, bytes)| {
            let known = present.clone().unwrap_or_else(|| Bitmap::full(shape));
            mask::decode(*side, &known, bytes)
        });
        let known = known.transpose()?;
        let valid = known.as_ref().or(present.as_ref());
        let valid = valid.filter(|valid| !valid.is_full());
        let validity = valid.map(|valid| Validity::new(valid, self.holes_predicted));
        let params = params::params(&self.levels, &ContextWeights::DEFAULT);
        let phases = traversal::walk_to(
            self.last,
            shape,
            validity.as_ref(),
            &params,
            &mut self.decoder,
            self.scratch,
        );
        self.fill(&target, &phases, out);
        for (at, word) in self.decoder.literals.drain(..) {
            // Faces of holes are coded, and nobody's values.
            let at = coarse_index(at, shape, self.level);
            if let Some(place) = at.and_then(|at| target.place(at)) {
                out[place] = T::from_word(word);
            }
        }
        if let Some(valid) = valid.filter(|_| known.is_some()) {
            fill_masked(&target, valid, self.level, T::from_word(self.fill), out);
        }
        Ok(())
    }

    /// Fills the target from the phases of the last lattice that was decoded.
    fn fill(&self, target: &Target<'_>, phases: &Phases, out: &mut [T]) {
        let values = &self.scratch.values;
        if self.level as usize == self.last {
            return target.fill(phases, values, out);
        }
        // What is wanted is in phase 0.
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

/// The index in the region of every `2^level`th value of an index in a region of this shape, if it is one of those.
fn coarse_index(at: usize, [_, ny, nx]: [usize; 3], level: u32) -> Option<usize> {
    if level == 0 {
        return Some(at);
    }
    let place = [at / nx / ny, at / nx % ny, at % nx];
    let [z, y, x] = place.map(|n| n.checked_shr(level).unwrap_or(0));
    let is_coarse = [z, y, x].map(|n| scaled(n, level as usize)) == place;
    let [ny, nx] = [ny, nx].map(|n| coarse_length(n, level));
    is_coarse.then_some((z * ny + y) * nx + x)
}

/// Fills what a mask leaves out.
fn fill_masked<T: Element>(
    target: &Target<'_>,
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

    /// A stream with other tables, whose section begins after its count and its length, a byte each.
    fn with_tables(change: impl FnOnce(&mut Vec<u8>, Range<usize>)) -> Result<()> {
        let values: Vec<f32> = (0..150).map(|i| (i as f32).sin()).collect();
        let layout = crate::Layout::Array(&[150]);
        let (plan, mut workspace) = (Plan::default().with_packets(1), Workspace::default());
        let mut stream = crate::encode(&values, &layout, 1e-3, Some(plan), &mut workspace)?;
        stream.truncate(stream.len() - CHECKSUM);
        let mut cursor = Cursor(&stream);
        let header = Header::parse(&mut cursor)?;
        let Mode::EntropyCoded(coding) = header.mode else {
            return Err(Invalid("the stream is not entropy-coded"));
        };
        let parts = parse(&header, cursor, coding, values.len())?;
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
            assert!(matches!(result, Err(Corrupt(_))));
        }
    }

    #[test]
    fn symbols_without_tables_are_refused() {
        let result = with_tables(|stream, section| {
            stream[section.start - 2..section.start].fill(0);
            stream.drain(section);
        });
        assert!(matches!(result, Err(Corrupt(_))));
    }

    /// A table may be in order, and have a symbol that stands for no group.
    #[test]
    fn groups_that_there_are_not_are_refused() {
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
            let sections = Sections {
                size,
                tables: [(0, &[]), (tables.frequencies.len(), &bytes)],
                packets: Vec::new(),
            };
            let fine = size > 1 && symbol <= token_groups::escape(size);
            assert_eq!(sections.tables().is_ok(), fine, "{size} {symbol}");
        }
    }
}
