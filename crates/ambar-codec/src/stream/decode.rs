//! Decodes streams; the input is untrusted.

use crate::bitpack;
use crate::domain::bitmap::Bitmap;
use crate::domain::blocks;
use crate::domain::holes;
use crate::domain::lattice::Phases;
use crate::domain::mask;
use crate::domain::regions::{self, Target};
use crate::domain::tree::{CellRegion, Coded};
use crate::element::Element;
use crate::entropy::BINS;
use crate::entropy::bitio::Cursor;
use crate::entropy::frequencies::Frequencies;
use crate::entropy::rans;
use crate::entropy::tables::Tables;
use crate::entropy::token_groups::{self, Groups};
use crate::error::{Corrupt, Result};
use crate::predict::context::Mixture;
use crate::predict::mask_pyramid::Validity;
use crate::predict::row::Level;
use crate::predict::traversal::{self, Scratch};
use crate::quantize::row_decoder::Decoder;
use crate::stream::encode::{LEVELS, Workspace};
use crate::stream::header::{Arrangement, Coding, Contexts, Header, Mode};
use crate::stream::params::{self, Plan};

/// What a stream says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Bytes of a value: 4 (float32) or 8 (float64).
    pub value_size: usize,
    /// Number of values.
    pub values: usize,
    /// The absolute error bound; 0 where the stream is lossless.
    pub bound: f64,
}

/// A stream taken apart.
struct Parts<'a> {
    info: Info,
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
    let values = cursor.number_to(most)?;
    let layout = match header.arrangement {
        Arrangement::Array => array(&mut cursor, values)?,
        Arrangement::Blocks => blocks_layout(&mut cursor, values)?,
        Arrangement::Cells => Parsed::Cells(Coded::parse(&mut cursor, values)?),
    };
    let bound = bound(header, &mut cursor)?;
    let shift = match header.is_lossless {
        true => u32::from(cursor.byte()?),
        false => 0,
    };
    if shift >= 8 * header.value_size as u32 {
        return Err(Corrupt("values have more bits that are 0 than there are"));
    }
    let plan = Plan::from_byte(cursor.byte()?, coding.contexts)
        .ok_or(Corrupt("reserved bits are set in the stream's plan"))?;
    Ok(Parts {
        info: Info {
            value_size: header.value_size,
            values,
            bound,
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
    if header.is_lossless {
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
        return Err(Corrupt("the array has no dimensions"));
    }
    if regions::volume_of(&shape) != Some(values) {
        return Err(Corrupt("the shape holds another number of values"));
    }
    Ok(shape)
}

fn array<'a>(cursor: &mut Cursor<'_>, values: usize) -> Result<Parsed<'a>> {
    let shape = shape(cursor, values)?;
    let (inner, outer) = regions::of_array(&shape)?;
    if regions::volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
        return Err(Corrupt("the shape holds another number of values"));
    }
    Ok(Parsed::Array { inner, outer })
}

/// What a bit-packed stream begins with, and what follows.
struct BitPacked<'a> {
    info: Info,
    shape: Vec<usize>,
    rest: Cursor<'a>,
}

fn parse_bit_packed<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    most: usize,
) -> Result<BitPacked<'a>> {
    let values = cursor.number_to(most)?;
    let shape = shape(&mut cursor, values)?;
    let bound = bound(header, &mut cursor)?;
    Ok(BitPacked {
        info: Info {
            value_size: header.value_size,
            values,
            bound,
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
        return Err(Corrupt("the stream holds another number or type of values"));
    }
    bitpack::decode(rest, &shape, info.bound, out, &mut workspace.packed)
}

fn blocks_layout<'a>(cursor: &mut Cursor<'a>, values: usize) -> Result<Parsed<'a>> {
    let mut side = [0; 3];
    for n in &mut side {
        *n = cursor.number_to(usize::MAX)?;
    }
    let cells = regions::volume(side).unwrap_or(0);
    if cells == 0 || !values.is_multiple_of(cells) {
        return Err(Corrupt("the blocks hold another number of values"));
    }
    let length = cursor.number_to(cursor.0.len())?;
    Ok(Parsed::Blocks {
        side,
        count: values / cells,
        places: cursor.bytes(length)?,
    })
}

/// What the stream says of itself. Its checksum is verified.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn inspect(stream: &[u8]) -> Result<Info> {
    let mut cursor = Cursor::verified(stream)?;
    let header = Header::parse(&mut cursor)?;
    match header.mode {
        Mode::BitPacked => Ok(parse_bit_packed(&header, cursor, usize::MAX)?.info),
        Mode::EntropyCoded(coding) => Ok(parse(&header, cursor, coding, usize::MAX)?.info),
    }
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
    let header = Header::parse(&mut cursor)?;
    let coding = match header.mode {
        Mode::BitPacked => return decode_bit_packed(&header, cursor, out, workspace),
        Mode::EntropyCoded(coding) => coding,
    };
    let mut parts = parse(&header, cursor, coding, out.len())?;
    if parts.info.values != out.len() || parts.info.value_size != T::SIZE {
        return Err(Corrupt("the stream holds another number or type of values"));
    }
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
    let (fill, masks) = if parts.is_masked {
        masks::<T>(&mut parts.rest, number)?
    } else {
        (0, Vec::new())
    };
    let sections = Sections::parse(parts.rest, parts.coding)?;
    if out.is_empty() {
        return Ok(());
    }
    let (frequencies, of_bin) = sections.tables()?;
    let slots = &mut workspace.slots;
    slots.set(&frequencies)?;
    let of_bins = slots.of_bins(&of_bin);
    let count = out.len() / sections.size;
    let decoder = Decoder::new(
        rans::Decoder::new(&of_bins, sections.symbols, count, sections.states)?,
        Groups::new(sections.size),
        sections.raw,
        out.len(),
    );
    let mut job = Job {
        decoder,
        levels: parts
            .plan
            .levels::<T>(parts.info.bound, parts.shift, LEVELS),
        bridged: coding.predicts_holes,
        fill,
        masks,
        scratch: &mut workspace.walk,
    };
    if let Parsed::Array { inner, .. } = parts.layout {
        let size: usize = inner.iter().product();
        for (number, part) in out.chunks_exact_mut(size).enumerate() {
            job.region(number, inner, None, &Target::Array(inner), part);
        }
    }
    job.blocks(&regions, side, out);
    if let Parsed::Cells(cells) = parts.layout {
        job.cells(of_cells, cells.count, out);
    }
    job.decoder.symbols.finish()?;
    job.decoder.raw.finish()
}

/// The last sections.
struct Sections<'a> {
    /// Tokens of a group; 1 where there are no groups.
    size: usize,
    /// Tables of single tokens, and of groups: how many, and their bytes.
    tables: [(usize, &'a [u8]); 2],
    /// How many states the symbols are coded with.
    states: usize,
    symbols: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Sections<'a> {
    fn parse(mut cursor: Cursor<'a>, coding: Coding) -> Result<Self> {
        let mut tables = || -> Result<_> {
            let count = usize::from(cursor.byte()?);
            Ok((count, section(&mut cursor)?))
        };
        let groups = match coding.group_size {
            1 => (0, &[][..]),
            _ => tables()?,
        };
        let single = tables()?;
        let sections = Self {
            size: coding.group_size,
            states: coding.states,
            tables: [single, groups],
            symbols: section(&mut cursor)?,
            raw: section(&mut cursor)?,
        };
        if cursor.0.is_empty() {
            Ok(sections)
        } else {
            Err(Corrupt("the stream goes on where it should end"))
        }
    }

    /// The frequencies of all tables, and which of these the bins of tokens, and of groups, use.
    fn tables(&self) -> Result<(Vec<Frequencies>, [u8; 2 * BINS])> {
        let [single, grouped] = self.tables.map(|(count, bytes)| match count {
            // Without a table, no value is there.
            0 => Ok(Tables::empty()),
            _ => Tables::decode(bytes, count),
        });
        let (single, grouped) = (single?, grouped?);
        let most = usize::from(token_groups::escape(self.size));
        let beyond = |table: &Frequencies| table[most + 1..].iter().any(|n| *n > 0);
        if grouped.frequencies.iter().any(beyond) {
            return Err(Corrupt("a table has groups of tokens that there are not"));
        }
        Ok(token_groups::together(&single, &grouped))
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
            return Err(Corrupt("a mask is coded in no way that there is"));
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
    bridged: bool,
    fill: u64,
    masks: Masks<'a>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> Job<'_, T> {
    /// The regions of blocks.
    fn blocks(&mut self, regions: &[blocks::Region], side: [usize; 3], out: &mut [T]) {
        for (number, region) in regions.iter().enumerate() {
            let shape = std::array::from_fn(|d| region.places[d] * side[d]);
            let there = if self.bridged {
                holes::coded(region, side)
            } else {
                regions::present(region, side)
            };
            let target = Target::of_region(region, side);
            self.region(number, shape, there, &target, out);
        }
    }

    /// The regions of cells, and what lies behind them.
    fn cells(&mut self, regions: &[CellRegion], count: usize, out: &mut [T]) {
        for (number, region) in regions.iter().enumerate() {
            let target = Target::Cells(region);
            self.region(number, region.shape(), region.present(), &target, out);
        }
        let behind = &mut out[count..];
        if !behind.is_empty() {
            let shape = [1, 1, behind.len()];
            self.region(regions.len(), shape, None, &Target::Array(shape), behind);
        }
    }

    fn region(
        &mut self,
        number: usize,
        shape: [usize; 3],
        present: Option<Bitmap>,
        target: &Target<'_>,
        out: &mut [T],
    ) {
        let known = self.masks.get(number).map(|(side, bytes)| {
            let known = present.clone().unwrap_or_else(|| Bitmap::full(shape));
            mask::decode(*side, &known, bytes)
        });
        let valid = known.as_ref().or(present.as_ref());
        let valid = valid.filter(|valid| !valid.is_full());
        let validity = valid.map(|valid| Validity::new(valid, self.bridged));
        let rules = params::rules(&self.levels, &Mixture::DEFAULT);
        traversal::walk(
            shape,
            validity.as_ref(),
            &rules,
            &mut self.decoder,
            self.scratch,
        );
        target.fill(&Phases::new(shape), &self.scratch.values, out);
        for (at, word) in self.decoder.literals.drain(..) {
            // Faces of holes are coded, and nobody's values.
            if let Some(place) = target.place(at) {
                out[place] = T::from_word(word);
            }
        }
        if let Some(valid) = valid.filter(|_| known.is_some()) {
            let fill = T::from_word(self.fill);
            target.for_each_row(|to, [z, y, x], n| {
                for word in x / 64..(x + n).div_ceil(64) {
                    let (first, end) = (x.max(64 * word), (x + n).min(64 * word + 64));
                    let row = u64::MAX >> (64 - (end - first)) << (first % 64);
                    Bitmap::runs(&[row & !valid.word([z, y], word)], |at, length| {
                        out[to + 64 * word + at - x..][..length].fill(fill);
                    });
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tables::Histogram;

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
                states: rans::STATES,
                symbols: &[],
                raw: &[],
            };
            let fine = size > 1 && symbol <= token_groups::escape(size);
            assert_eq!(sections.tables().is_ok(), fine, "{size} {symbol}");
        }
    }
}
