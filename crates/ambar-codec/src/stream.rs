//! Streams: everything that decoding needs, in an order that `docs/format.md` specifies.

use crate::bits::{BitReader, Cursor, write_number};
use crate::blocks::{self, Region};
use crate::coder::{Decoder, Encoder, Symbols};
use crate::context::Mixture;
use crate::element::Element;
use crate::error::{Corrupt, Invalid, Result, Unsupported};
use crate::mask;
use crate::passes::{self, Scratch};
use crate::plan::{self, Plan};
use crate::rans::{self, DecodeTables, EncodeTables};
use crate::regions::{self, Dense, Layout};
use crate::tables::{Histogram, Tables};
use crate::validity::Validity;

/// The version of the streams that this library writes, and the only one it reads.
pub const VERSION: u8 = 1;

const BLOCKS: u8 = 1;
const MASKED: u8 = 2;
const LOSSLESS: u8 = 4;
/// Levels of the longest walk.
const LEVELS: usize = 64;

/// Memory that encoding and decoding work in. Kept from chunk to chunk, nothing is allocated anew.
#[derive(Default)]
pub struct Workspace<T> {
    walk: Scratch<T>,
    dense: Vec<T>,
}

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

/// Encodes `values`, none of which will differ by more than `bound` (absolute; 0: not at all).
///
/// NaN, infinities and other values that cannot be predicted come back bit for bit. `plan` is what
/// [`tune`] chose; `None` chooses for these values.
///
/// # Errors
/// `Invalid` where the layout does not fit the values, or the bound is no finite number from 0 on.
pub fn encode<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    plan: Option<Plan>,
    workspace: &mut Workspace<T>,
) -> Result<Vec<u8>> {
    let input = Input::new(values, layout, bound)?;
    let scratch = &mut workspace.walk;
    let plan = match plan {
        Some(plan) => plan,
        None => plan::choose(&input.regions, bound, scratch),
    };
    let symbols = symbols(&input.regions, bound, plan, scratch);
    // Where many values had to be stored as they are, the bound is below what their type resolves.
    if bound > 0.0 && symbols.literals > values.len() / 64 + 16 {
        let lossless = self::symbols(&input.regions, 0.0, plan, scratch);
        if bits(&lossless) <= bits(&symbols) {
            return Ok(input.stream(&lossless, 0.0, plan));
        }
    }
    Ok(input.stream(&symbols, bound, plan))
}

/// Chooses settings for values like these: for the chunks of an array, whose samples they are.
///
/// # Errors
/// As [`encode`].
pub fn tune<T: Element>(values: &[T], layout: &Layout<'_>, bound: f64) -> Result<Plan> {
    let input = Input::new(values, layout, bound)?;
    Ok(plan::choose(&input.regions, bound, &mut Scratch::default()))
}

/// The bits that regions take under a plan, about.
pub(crate) fn estimate<T: Element>(
    regions: &[Dense<T>],
    bound: f64,
    plan: Plan,
    scratch: &mut Scratch<T>,
) -> f64 {
    bits(&symbols(regions, bound, plan, scratch))
}

fn bits(symbols: &Symbols) -> f64 {
    Histogram::new(&symbols.bins, &symbols.tokens).bits() + symbols.raw.bits() as f64
}

fn symbols<T: Element>(
    regions: &[Dense<T>],
    bound: f64,
    plan: Plan,
    scratch: &mut Scratch<T>,
) -> Symbols {
    let levels = plan.levels(bound, LEVELS);
    let rules = plan::rules(&levels, &Mixture::DEFAULT);
    let mut symbols = Symbols::default();
    let mut decoded = Vec::new();
    for region in regions {
        let validity = region
            .valid
            .as_ref()
            .map(|valid| Validity::new(region.shape, valid));
        let mut encoder = Encoder::new(&region.values, bound, symbols);
        decoded.resize(region.values.len(), T::default());
        passes::walk(
            region.shape,
            validity.as_ref(),
            &rules,
            &mut encoder,
            scratch,
            &mut decoded,
        );
        symbols = encoder.symbols;
    }
    symbols
}

/// Values on their way into a stream.
struct Input<T> {
    /// The beginning of the stream, up to the layout.
    header: Vec<u8>,
    regions: Vec<Dense<T>>,
    /// The bits of the values that are not there, and the masks.
    masks: Option<(u64, Vec<u8>)>,
}

impl<T: Element> Input<T> {
    fn new(values: &[T], layout: &Layout<'_>, bound: f64) -> Result<Self> {
        if !(bound >= 0.0 && bound.is_finite()) {
            return Err(Invalid("an error bound is a finite number from 0 on"));
        }
        let mut header = Vec::new();
        write_number(values.len() as u64, &mut header);
        let mut all = Vec::new();
        match layout {
            Layout::Array(shape) => {
                let (inner, outer) = regions::of_array(shape)?;
                let size: usize = inner.iter().product();
                if size.checked_mul(outer) != Some(values.len()) {
                    return Err(Invalid("the shape holds another number of values"));
                }
                write_number(shape.len() as u64, &mut header);
                shape
                    .iter()
                    .for_each(|n| write_number(*n as u64, &mut header));
                let parts = values.chunks_exact(size.max(1));
                all.extend(parts.map(|part| Dense {
                    shape: inner,
                    values: part.to_vec(),
                    valid: None,
                }));
            }
            Layout::Blocks { side, origins } => {
                let cells: usize = side.iter().product();
                if cells == 0 || cells.checked_mul(origins.len()) != Some(values.len()) {
                    return Err(Invalid("the blocks hold another number of values"));
                }
                let keys = blocks::keys(origins, *side)?;
                side.iter()
                    .for_each(|n| write_number(*n as u64, &mut header));
                let places = blocks::encode_keys(&keys);
                write_number(places.len() as u64, &mut header);
                header.extend(places);
                let regions = blocks::regions(&keys);
                all.extend(
                    regions
                        .iter()
                        .map(|region| regions::gather(region, *side, values)),
                );
            }
        }
        let blocks = matches!(layout, Layout::Blocks { .. });
        let masks = masks(values, &mut all);
        let flags = if blocks { BLOCKS } else { 0 } | if masks.is_some() { MASKED } else { 0 };
        let mut begin = vec![VERSION, T::CODE, flags];
        begin.extend(header);
        Ok(Self {
            header: begin,
            regions: all,
            masks,
        })
    }

    /// The whole stream.
    fn stream(&self, symbols: &Symbols, bound: f64, plan: Plan) -> Vec<u8> {
        let mut out = self.header.clone();
        out[2] |= if bound > 0.0 { 0 } else { LOSSLESS };
        if bound > 0.0 {
            out.extend_from_slice(&bound.to_le_bytes());
        }
        out.push(plan.to_byte());
        if let Some((fill, masks)) = &self.masks {
            out.extend_from_slice(&fill.to_le_bytes()[..T::SIZE]);
            out.extend_from_slice(masks);
        }
        let tables = Histogram::new(&symbols.bins, &symbols.tokens).tables();
        out.push(tables.frequencies.len() as u8);
        let coded = EncodeTables::new(&tables.frequencies).encode(
            &symbols
                .bins
                .iter()
                .map(|bin| tables.of_bin[usize::from(*bin)])
                .collect::<Vec<u8>>(),
            &symbols.tokens,
        );
        for section in [&tables.encode()[..], &coded, &symbols.raw.bytes()] {
            write_number(section.len() as u64, &mut out);
            out.extend_from_slice(section);
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }
}

/// Takes out of the regions what holds the commonest NaN, where there is much of it: its bits, and
/// the masks.
fn masks<T: Element>(values: &[T], regions: &mut [Dense<T>]) -> Option<(u64, Vec<u8>)> {
    let nan = |x: &&T| x.to_f64().is_nan();
    let fill = values.iter().find(nan)?.to_word();
    let count = values.iter().filter(|x| x.to_word() == fill).count();
    if count < values.len() / 1024 + 8 {
        return None;
    }
    let mut bytes = Vec::new();
    for region in regions {
        let present = region.valid.take();
        let there = |at: usize| present.as_ref().is_none_or(|present| present[at] == 1);
        let words = region.values.iter().map(|x| x.to_word());
        let valid: Vec<u8> = words
            .enumerate()
            .map(|(at, word)| u8::from(there(at) && word != fill))
            .collect();
        let (side, mask) = mask::encode(region.shape, &valid, present.as_deref());
        bytes.push(side);
        write_number(mask.len() as u64, &mut bytes);
        bytes.extend(mask);
        region.valid = valid.contains(&0).then_some(valid);
    }
    Some((fill, bytes))
}

/// A stream taken apart.
struct Parts<'a> {
    info: Info,
    layout: Parsed,
    plan: Plan,
    masked: bool,
    rest: Cursor<'a>,
}

/// The layout as a stream says it.
enum Parsed {
    Array {
        inner: [usize; 3],
        outer: usize,
    },
    Blocks {
        side: [usize; 3],
        regions: Vec<Region>,
    },
}

fn parse(stream: &[u8], most: usize) -> Result<Parts<'_>> {
    let (body, checksum) = stream
        .split_last_chunk::<4>()
        .ok_or(Corrupt("the stream is cut short"))?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
        return Err(Corrupt("the stream's checksum differs"));
    }
    let mut cursor = Cursor(body);
    let [version, code, flags] = [cursor.byte()?, cursor.byte()?, cursor.byte()?];
    if version != VERSION {
        return Err(Unsupported("the stream was written by a newer version"));
    }
    let value_size = match code {
        1 => 4,
        2 => 8,
        _ => return Err(Corrupt("the stream holds values of no type that there is")),
    };
    let values = cursor.number_to(most)?;
    let layout = if flags & BLOCKS == 0 {
        array(&mut cursor, values)?
    } else {
        blocks_layout(&mut cursor, values)?
    };
    let bound = if flags & LOSSLESS == 0 {
        f64::from_bits(cursor.word()?)
    } else {
        0.0
    };
    if !(bound >= 0.0 && bound.is_finite()) || (bound == 0.0) != (flags & LOSSLESS != 0) {
        return Err(Corrupt("the stream's error bound is none"));
    }
    let plan =
        Plan::from_byte(cursor.byte()?).ok_or(Corrupt("the stream has settings of no kind"))?;
    let info = Info {
        value_size,
        values,
        bound,
    };
    Ok(Parts {
        info,
        layout,
        plan,
        masked: flags & MASKED != 0,
        rest: cursor,
    })
}

fn array(cursor: &mut Cursor<'_>, values: usize) -> Result<Parsed> {
    let count = cursor.number_to(4)?;
    let mut shape = Vec::with_capacity(count);
    for _ in 0..count {
        shape.push(cursor.number_to(values)?);
    }
    let (inner, outer) = regions::of_array(&shape)?;
    let product = inner
        .iter()
        .chain([&outer])
        .try_fold(1usize, |product, n| product.checked_mul(*n));
    if product != Some(values) {
        return Err(Corrupt("the shape holds another number of values"));
    }
    Ok(Parsed::Array { inner, outer })
}

fn blocks_layout(cursor: &mut Cursor<'_>, values: usize) -> Result<Parsed> {
    let mut side = [0; 3];
    for n in &mut side {
        *n = cursor.number_to(values)?;
    }
    let cells = side
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
        .unwrap_or(0);
    if cells == 0 || values % cells != 0 {
        return Err(Corrupt("the blocks hold another number of values"));
    }
    let length = cursor.number_to(cursor.0.len())?;
    let keys = blocks::decode_keys(cursor.bytes(length)?, values / cells)?;
    Ok(Parsed::Blocks {
        side,
        regions: blocks::regions(&keys),
    })
}

/// What the stream says of itself. Its checksum is verified.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub fn inspect(stream: &[u8]) -> Result<Info> {
    Ok(parse(stream, usize::MAX >> 4)?.info)
}

/// Decodes a stream of exactly `out.len()` values of this type.
///
/// # Errors
/// `Corrupt` where the stream is damaged, cut short, or holds other values; `Unsupported`.
pub fn decode<T: Element>(
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let mut parts = parse(stream, out.len())?;
    if parts.info.values != out.len() || parts.info.value_size != T::SIZE {
        return Err(Corrupt("the stream holds another number or type of values"));
    }
    let mut fill = 0u64;
    let mut masks = Vec::new();
    if parts.masked {
        let mut word = [0; 8];
        word[..T::SIZE].copy_from_slice(parts.rest.bytes(T::SIZE)?);
        fill = u64::from_le_bytes(word);
        let count = match &parts.layout {
            Parsed::Array { outer, .. } => *outer,
            Parsed::Blocks { regions, .. } => regions.len(),
        };
        for _ in 0..count {
            let side = parts.rest.byte()?;
            let length = parts.rest.number_to(parts.rest.0.len())?;
            if !mask::is_side(side) {
                return Err(Corrupt("a mask is coded in no way that there is"));
            }
            masks.push((usize::from(side), parts.rest.bytes(length)?));
        }
    }
    let count = usize::from(parts.rest.byte()?);
    let mut sections = [&[][..]; 3];
    for section in &mut sections {
        let length = parts.rest.number_to(parts.rest.0.len())?;
        *section = parts.rest.bytes(length)?;
    }
    if !parts.rest.0.is_empty() {
        return Err(Corrupt("the stream goes on where it should end"));
    }
    if out.is_empty() {
        return Ok(());
    }
    let tables = if count == 0 {
        None
    } else {
        Some(Tables::decode(sections[0], count)?)
    };
    // Without a table, no value is there.
    let tables = tables.unwrap_or_else(Tables::empty);
    let slots = DecodeTables::new(&tables.frequencies)?;
    let mut bases = [0; 256];
    for (base, table) in bases.iter_mut().zip(tables.of_bin) {
        *base = DecodeTables::base(usize::from(table));
    }
    let decoder = Decoder::new(
        rans::Decoder::new(&slots, sections[1])?,
        BitReader::new(sections[2]),
        &bases,
    );
    let mut job = Job {
        decoder,
        levels: parts.plan.levels(parts.info.bound, LEVELS),
        fill,
        masks,
        scratch: &mut workspace.walk,
    };
    match &parts.layout {
        Parsed::Array { inner, .. } => {
            let size: usize = inner.iter().product();
            for (number, part) in out.chunks_exact_mut(size).enumerate() {
                job.region(number, *inner, None, part);
            }
        }
        Parsed::Blocks { side, regions } => {
            let dense = &mut workspace.dense;
            for (number, region) in regions.iter().enumerate() {
                let shape = std::array::from_fn(|d| region.places[d] * side[d]);
                dense.resize(shape.iter().product(), T::default());
                job.region(number, shape, regions::present(region, *side), dense);
                regions::scatter(region, *side, dense, out);
            }
        }
    }
    job.decoder.symbols.finish()?;
    job.decoder.raw.finish()
}

/// Regions being decoded.
struct Job<'a, T> {
    decoder: Decoder<'a>,
    levels: Vec<passes::Level>,
    fill: u64,
    masks: Vec<(usize, &'a [u8])>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> Job<'_, T> {
    fn region(
        &mut self,
        number: usize,
        shape: [usize; 3],
        present: Option<Vec<u8>>,
        out: &mut [T],
    ) {
        let mut valid = present;
        if let Some((side, bytes)) = self.masks.get(number) {
            let mut told = vec![0; out.len()];
            mask::decode(shape, *side, valid.as_deref(), bytes, &mut told);
            valid = told.contains(&0).then_some(told);
        }
        let validity = valid.as_ref().map(|valid| Validity::new(shape, valid));
        let rules = plan::rules(&self.levels, &Mixture::DEFAULT);
        passes::walk(
            shape,
            validity.as_ref(),
            &rules,
            &mut self.decoder,
            self.scratch,
            out,
        );
        for (at, word) in self.decoder.literals.drain(..) {
            out[at] = T::from_word(word);
        }
        if let Some(valid) = valid {
            let fill = T::from_word(self.fill);
            for (value, valid) in out.iter_mut().zip(valid) {
                *value = if valid == 1 { *value } else { fill };
            }
        }
    }
}
