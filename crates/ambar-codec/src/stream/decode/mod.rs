//! Decodes streams; the input is untrusted.

mod coefficients;
mod downsample;
mod head;
mod level_packets;
mod regions;
mod sections;

use crate::bitpack;
use crate::domain::blocks;
use crate::domain::components;
use crate::domain::regions::RegionTarget;
use crate::element::Element;
use crate::entropy::adaptive;
use crate::entropy::bitio::Cursor;
use crate::entropy::rans;
use crate::entropy::symbols::MAX_PACKETS;
use crate::entropy::symbols::packet_of_level;
use crate::entropy::token_groups::{Groups, TokenCoder, TokenDecoder};
use crate::error::{Result, corrupt, invalid};
use crate::quantize::row_decoder::{Decoder, Packet};
use crate::stream::encode::Workspace;
use crate::stream::header::{Arrangement, Header, Mode, RegionRules};
use coefficients::WaveletParams;
use downsample::{coarse_length, uneven_sides};
use head::{BitPacked, ParsedLayout, ParsedStream, parse_bit_packed, parse_entropy_coded};
use level_packets::PacketLengths;
use regions::RegionDecoder;
use sections::{SymbolSections, masks};

pub use head::Info;
pub use level_packets::LENGTHS_BYTES;

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
    if let Some(components) = decode_in_coding_order(stream, out, workspace)? {
        components::interleave_components(out, components);
    }
    Ok(())
}

/// As [`decode`], but leaves components one after another. Returns their number.
pub(super) fn decode_in_coding_order<T: Element>(
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<Option<usize>> {
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
    prelude.apply(out)?;
    Ok(prelude.components)
}

fn decode_bit_packed<T: Element>(
    header: &Header,
    cursor: Cursor<'_>,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<Option<usize>> {
    let BitPacked { info, shape, rest } = parse_bit_packed(header, cursor, out.len())?;
    if info.values != out.len() || info.value_size != T::SIZE {
        return Err(info.differs_from::<T>(info.values, out.len()));
    }
    bitpack::decode(rest, &shape, info.bound, out, &mut workspace.bit_packing)?;
    info.prelude.apply(out)?;
    Ok(info.prelude.components)
}

/// The coarsest level that [`decode_prefix`] decodes: that of the first of the most level packets.
pub const MAX_PREFIX_LEVEL: u32 = MAX_PACKETS as u32 - 1;

/// Decodes a prefix of a stream, whose length [`prefix`] returns, at lower resolution: every `2^level`th value in each
/// of the last three dimensions of an array, or in each dimension of each block. `out` holds the smaller array, whose
/// lengths are rounded up, or the smaller blocks.
///
/// The checksums of the head and of the decoded level packets are verified. Later bytes are not read.
///
/// # Errors
/// `Corrupt` if the prefix is damaged or truncated, or holds another number or type of values; `UnsupportedVersion`;
/// `Invalid` if [`prefix`] returns `None`, for a level above [`MAX_PREFIX_LEVEL`], or if the sides of blocks are not
/// multiples of `2^level`.
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
    if level > MAX_PREFIX_LEVEL {
        // A coarser output would not limit the memory that the finer levels in the packets take.
        return Err(invalid!(
            "found level {level}; expected at most {MAX_PREFIX_LEVEL}"
        ));
    }
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
            let rules = match parts.wavelet {
                Some(_) => RegionRules::FILLED,
                None => coding.contexts.region_rules(),
            };
            regions = blocks::regions(&keys, rules.min_fill);
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
        let symbols = match coding.coder {
            TokenCoder::Rans { states } => {
                let count = count / sections.size;
                TokenDecoder::Rans(rans::Decoder::new(&context_tables, symbols, count, states)?)
            }
            TokenCoder::Adaptive => TokenDecoder::Adaptive(adaptive::Decoder::new(symbols)),
        };
        packets.push(Packet::new(symbols, raw, count));
    }
    let last = (level as usize).min(coding.packets - 1);
    let groups = Groups::new(sections.size);
    let missing_tables = match coding.coder {
        TokenCoder::Rans { .. } => sections.tables.map(|(count, _)| count == 0),
        TokenCoder::Adaptive => [false; 2],
    };
    let mut region_decoder = RegionDecoder {
        decoder: Decoder::new(packets, coding.packets, groups, missing_tables),
        levels: parts.params.levels::<T>(parts.info.bound, parts.shift),
        predicts_holes: coding.predicts_holes,
        fill,
        masks,
        level,
        last,
        scratch: &mut workspace.traversal,
    };
    if let Some(options) = parts.wavelet {
        let bounds = WaveletParams::new(options, parts.info.bound);
        match parts.layout {
            ParsedLayout::Array { inner, .. } => region_decoder.coefficients(inner, bounds, out),
            _ => region_decoder.coefficients_of_blocks(&regions, side, bounds, out),
        }
        return region_decoder.decoder.finish();
    }
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

#[cfg(test)]
mod tests {
    use super::level_packets::CHECKSUM_BYTES;
    use super::*;
    use crate::error::Error;
    use crate::stream::params::EncoderParams;
    use std::ops::Range;

    /// Decodes a stream with changed tables, whose section begins after its count and its length, which take a byte each.
    fn with_tables(change: impl FnOnce(&mut Vec<u8>, Range<usize>)) -> Result<()> {
        // Tokens with raw bits: neither groups nor probabilities that adapt.
        let values: Vec<f32> = (0..150).map(|i| (i as f32).powi(2).sin()).collect();
        let layout = crate::Layout::Array(&[150]);
        let params = EncoderParams::default().with_level_contexts();
        let (params, mut workspace) = (params.with_packets(1), Workspace::default());
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
}
