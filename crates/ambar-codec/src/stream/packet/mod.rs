//! Packets: what stands for a chunk of bytes in files of other formats, such as HDF5.
//!
//! A packet says of itself how its bytes are to be decoded, whatever the file says of the chunk: the
//! type and order of the values, their shape, what of it is padding, where boxes of cells lie in it.

mod boxes;
mod bytes;
mod padding;

use crate::bound::ErrorBound;
use crate::domain::regions::{Layout, volume_of};
use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Invalid, Result, UnsupportedVersion};
use crate::stream::compress::encode as encode_stream;
use crate::stream::encode::Workspace;
use bytemuck::Pod;
use crc_fast::crc32_iscsi as crc32c;

pub use boxes::{BoxOfCells, encode as encode_boxes};

/// The version of the packets that this library writes, and the only one it reads.
pub const VERSION: u8 = 1;

/// What a packet holds.
const RAW: u8 = 0;
const ARRAY: u8 = 1;
const BOXES: u8 = 2;
const BYTES: u8 = 3;
/// The bit of a packet's flags that says that words have their highest byte first.
const BIG_ENDIAN: u8 = 1;
/// Dimensions of an array.
const RANK: usize = 4;

/// The type of a chunk's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
    /// Anything else, of so many bytes: kept without loss.
    Other(usize),
}

impl Type {
    /// Bytes of a value.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Float64 => 8,
            Self::Other(size) => size,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Float32 => f32::CODE,
            Self::Float64 => f64::CODE,
            Self::Other(_) => 0,
        }
    }
}

/// What is known of a chunk that becomes a packet.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The type of its values.
    pub dtype: Type,
    /// Whether the values have their highest byte first.
    pub big_endian: bool,
    /// Its length in each dimension, the last varying quickest.
    pub shape: &'a [usize],
    /// How far float32 and float64 may be off.
    pub bound: ErrorBound,
}

/// Memory to work in, for both types.
#[derive(Default)]
pub struct Workspaces {
    single: Workspace<f32>,
    double: Workspace<f64>,
}

/// A type of values, and its workspace.
trait Value: Element + Pod {
    fn workspace(all: &mut Workspaces) -> &mut Workspace<Self>;
}

impl Value for f32 {
    fn workspace(all: &mut Workspaces) -> &mut Workspace<Self> {
        &mut all.single
    }
}

impl Value for f64 {
    fn workspace(all: &mut Workspaces) -> &mut Workspace<Self> {
        &mut all.double
    }
}

/// Encodes a chunk; `None` where its packet would not be smaller.
///
/// # Errors
/// `Invalid` where the bytes are not as many as the shape says, or the bound is no finite number
/// from 0 on.
pub fn encode(
    bytes: &[u8],
    chunk: &Chunk<'_>,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    chunk.bound.check()?;
    let expected = volume_of(chunk.shape).and_then(|count| count.checked_mul(chunk.dtype.size()));
    if expected != Some(bytes.len()) {
        return Err(Invalid(
            "the chunk has not as many bytes as its shape and type say",
        ));
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let packet = match chunk.dtype {
        Type::Float32 => array::<f32>(bytes, chunk, workspaces)?,
        Type::Float64 => array::<f64>(bytes, chunk, workspaces)?,
        Type::Other(size) => {
            let mut content = Vec::new();
            bytes::encode(bytes, size, &mut content)?;
            let head = Head {
                form: BYTES,
                dtype: chunk.dtype,
                big_endian: false,
                length: bytes.len(),
            };
            head.packet(&content, &[])
        }
    };
    Ok((packet.len() < bytes.len()).then_some(packet))
}

/// A packet of bytes as they are, for a chunk that [`encode`] does not make smaller.
#[must_use]
pub fn store(bytes: &[u8]) -> Vec<u8> {
    let head = Head {
        form: RAW,
        dtype: Type::Other(1),
        big_endian: false,
        length: bytes.len(),
    };
    head.packet(bytes, &[])
}

/// What all packets begin with.
struct Head {
    form: u8,
    dtype: Type,
    big_endian: bool,
    /// Bytes of the chunk.
    length: usize,
}

impl Head {
    /// The packet with this content and this stream.
    fn packet(&self, content: &[u8], stream: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(content.len() + stream.len() + 32);
        let flags = if self.big_endian { BIG_ENDIAN } else { 0 };
        packet.extend([VERSION, self.form, self.dtype.code(), flags]);
        write_number(self.length as u64, &mut packet);
        write_number(stream.len() as u64, &mut packet);
        packet.extend_from_slice(content);
        // A stream has a checksum of its own.
        let checksum = crc32c(&packet);
        packet.extend_from_slice(stream);
        packet.extend_from_slice(&checksum.to_le_bytes());
        packet
    }
}

fn array<T: Value>(
    bytes: &[u8],
    chunk: &Chunk<'_>,
    workspaces: &mut Workspaces,
) -> Result<Vec<u8>> {
    let head = Head {
        form: ARRAY,
        dtype: chunk.dtype,
        big_endian: chunk.big_endian,
        length: bytes.len(),
    };
    with_values::<T, _>(bytes, chunk.big_endian, |values| {
        let shape = folded(chunk.shape);
        let (kept, pad) = padding::find(values, &shape);
        let mut content = Vec::new();
        write_numbers(&shape, &mut content);
        write_numbers(&kept, &mut content);
        if kept != shape {
            content.extend_from_slice(&pad.to_le_bytes()[..T::SIZE]);
        }
        if volume_of(&kept) == Some(0) {
            return Ok(head.packet(&content, &[]));
        }
        let part = padding::cut(values, &shape, &kept);
        let layout = Layout::Array(&kept);
        let workspace = T::workspace(workspaces);
        let stream = encode_stream(&part, &layout, chunk.bound, None, workspace)?;
        Ok(head.packet(&content, &stream))
    })
}

fn write_numbers(numbers: &[usize], packet: &mut Vec<u8>) {
    write_number(numbers.len() as u64, packet);
    for number in numbers {
        write_number(*number as u64, packet);
    }
}

/// Lengths of 1 say nothing, and of many dimensions the slowest become one.
fn folded(lengths: &[usize]) -> Vec<usize> {
    let mut shape: Vec<usize> = lengths.iter().copied().filter(|n| *n != 1).collect();
    let extra = shape.len().saturating_sub(RANK);
    let outer: usize = shape.drain(..extra).product();
    match shape.first_mut() {
        Some(first) => *first *= outer,
        None => shape.push(1),
    }
    shape
}

/// Calls `f` with bytes as values of this machine; copies them where they are in the other order,
/// or not aligned.
fn with_values<T: Value, R>(bytes: &[u8], big_endian: bool, f: impl FnOnce(&[T]) -> R) -> R {
    if big_endian == cfg!(target_endian = "big")
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return f(values);
    }
    let mut copy = vec![T::default(); bytes.len() / T::SIZE];
    bytemuck::cast_slice_mut(&mut copy).copy_from_slice(bytes);
    to_native(&mut copy, big_endian);
    f(&copy)
}

/// Turns values from one order of bytes to this machine's, or back.
fn to_native<T: Value>(values: &mut [T], big_endian: bool) {
    if big_endian != cfg!(target_endian = "big") {
        for value in values {
            bytemuck::bytes_of_mut(value).reverse();
        }
    }
}

/// A packet taken apart as far as all packets are alike.
struct Parts<'a> {
    form: u8,
    code: u8,
    big_endian: bool,
    length: usize,
    content: Cursor<'a>,
    stream: &'a [u8],
}

fn parse(packet: &[u8]) -> Result<Parts<'_>> {
    let (body, checksum) = packet
        .split_last_chunk::<4>()
        .ok_or(Corrupt("the chunk is truncated"))?;
    let mut rest = Cursor(body);
    let [version, form, code, flags] = [rest.byte()?, rest.byte()?, rest.byte()?, rest.byte()?];
    if version != VERSION || form > BYTES {
        return Err(UnsupportedVersion {
            found: version,
            supported: VERSION,
        });
    }
    if flags & !BIG_ENDIAN != 0 {
        return Err(Corrupt("reserved bits are set in the chunk's flags"));
    }
    let length = rest.number_to(usize::MAX)?;
    let of_stream = rest.number_to(body.len())?;
    let content = rest.0.len().checked_sub(of_stream);
    let content = content.ok_or(Corrupt("the chunk is truncated"))?;
    let (checked, stream) = body.split_at(body.len() - of_stream);
    if crc32c(checked) != u32::from_le_bytes(*checksum) {
        return Err(Corrupt("the chunk's checksum does not match its bytes"));
    }
    Ok(Parts {
        form,
        code,
        big_endian: flags & BIG_ENDIAN != 0,
        length,
        content: Cursor(rest.bytes(content)?),
        stream,
    })
}

/// How many bytes a packet decodes to, as it says itself. Of its checksums, that of the stream is not
/// verified.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn decoded_length(packet: &[u8]) -> Result<usize> {
    Ok(parse(packet)?.length)
}

/// Decodes a packet of exactly `out.len()` bytes.
///
/// # Errors
/// `Corrupt` where the packet is damaged, cut short, or holds another number of bytes;
/// `UnsupportedVersion`.
pub fn decode(packet: &[u8], out: &mut [u8], workspaces: &mut Workspaces) -> Result<()> {
    let parts = parse(packet)?;
    if parts.length != out.len() {
        return Err(Corrupt(
            "the decoded size differs from the size in the chunk's header",
        ));
    }
    if parts.form != ARRAY && parts.form != BOXES && !parts.stream.is_empty() {
        return Err(Corrupt("only chunks of arrays and boxes may have a stream"));
    }
    match (parts.form, parts.code) {
        (RAW, 0) => {
            if parts.content.0.len() != out.len() {
                return Err(Corrupt(
                    "the decoded size differs from the size in the chunk's header",
                ));
            }
            out.copy_from_slice(parts.content.0);
            Ok(())
        }
        (BYTES, 0) => bytes::decode(parts.content, out),
        (ARRAY | BOXES, f32::CODE) => decode_values::<f32>(parts, out, workspaces),
        (ARRAY | BOXES, f64::CODE) => decode_values::<f64>(parts, out, workspaces),
        _ => Err(Corrupt("unknown value type in the chunk's header")),
    }
}

fn decode_values<T: Value>(
    parts: Parts<'_>,
    out: &mut [u8],
    workspaces: &mut Workspaces,
) -> Result<()> {
    if !out.len().is_multiple_of(T::SIZE) {
        return Err(Corrupt(
            "the chunk's size is not a multiple of the value size",
        ));
    }
    let Parts {
        form,
        big_endian,
        content,
        stream,
        ..
    } = parts;
    let workspace = T::workspace(workspaces);
    let run = |values: &mut [T]| {
        if form == BOXES {
            boxes::decode(content, stream, values, workspace)?;
        } else {
            padding::decode(content, stream, values, workspace)?;
        }
        to_native(values, big_endian);
        Ok(())
    };
    if let Ok(values) = bytemuck::try_cast_slice_mut(out) {
        return run(values);
    }
    let mut values = vec![T::default(); out.len() / T::SIZE];
    run(&mut values)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}

#[cfg(test)]
mod tests;
