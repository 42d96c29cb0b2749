//! Packets: encoded chunks in files of other formats, such as HDF5.
//!
//! A packet describes its chunk, independently of the file: value type, byte order, shape, padding.

mod bytes;
mod padding;

use crate::bound::ErrorBound;
use crate::domain::regions::{Layout, volume_of};
use crate::element::Element;
use crate::entropy::bitio::{Cursor, truncated, write_number};
use crate::error::{Error, Result, corrupt, invalid};
use crate::stream::compress::encode as encode_stream;
use crate::stream::encode::Workspace;
use bytemuck::Pod;
use crc_fast::crc32_iscsi as crc32c;

/// The version of packets that this library writes and reads.
pub const VERSION: u8 = 1;

/// Forms of packets.
const RAW: u8 = 0;
const ARRAY: u8 = 1;
const BYTES: u8 = 2;
/// The flag of big-endian values.
const BIG_ENDIAN: u8 = 1;
/// Maximum number of dimensions of an array.
const RANK: usize = 4;

/// The type of a chunk's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
    /// Any other type, with this number of bytes: lossless.
    Other(usize),
}

impl ValueType {
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

/// The description of a chunk to encode.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The type of its values.
    pub dtype: ValueType,
    /// Whether the values are big-endian.
    pub is_big_endian: bool,
    /// Its shape, in C order.
    pub shape: &'a [usize],
    /// The error bound of float32 and float64 values.
    pub bound: ErrorBound,
}

/// Workspaces of both types of floats.
#[derive(Default)]
pub struct Workspaces {
    single: Workspace<f32>,
    double: Workspace<f64>,
}

/// A type of floats with its workspace.
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

/// Encodes a chunk. Returns `None` if the packet would not be smaller than the chunk.
///
/// # Errors
/// `Invalid` if the number of bytes disagrees with the shape, or if the bound is invalid.
pub fn encode(
    bytes: &[u8],
    chunk: &Chunk<'_>,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    chunk.bound.check()?;
    let expected = volume_of(chunk.shape).and_then(|count| count.checked_mul(chunk.dtype.size()));
    if expected != Some(bytes.len()) {
        return Err(invalid!(
            "the chunk has {} bytes; expected {} values of {} bytes for the shape {:?}",
            bytes.len(),
            volume_of(chunk.shape).map_or("more than 2^64".to_owned(), |n| n.to_string()),
            chunk.dtype.size(),
            chunk.shape
        ));
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let packet = match chunk.dtype {
        ValueType::Float32 => array::<f32>(bytes, chunk, workspaces)?,
        ValueType::Float64 => array::<f64>(bytes, chunk, workspaces)?,
        ValueType::Other(size) => {
            let mut content = Vec::new();
            bytes::encode(bytes, size, &mut content)?;
            let head = Head {
                form: BYTES,
                dtype: chunk.dtype,
                is_big_endian: false,
                length: bytes.len(),
            };
            head.packet(&content, &[])
        }
    };
    Ok((packet.len() < bytes.len()).then_some(packet))
}

/// A packet that holds the bytes verbatim, for a chunk that [`encode`] does not make smaller.
#[must_use]
pub fn store(bytes: &[u8]) -> Vec<u8> {
    let head = Head {
        form: RAW,
        dtype: ValueType::Other(1),
        is_big_endian: false,
        length: bytes.len(),
    };
    head.packet(bytes, &[])
}

/// The header of all packets.
struct Head {
    form: u8,
    dtype: ValueType,
    is_big_endian: bool,
    /// Bytes of the chunk.
    length: usize,
}

impl Head {
    /// Builds a packet from its content and its stream.
    fn packet(&self, content: &[u8], stream: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(content.len() + stream.len() + 32);
        let flags = if self.is_big_endian { BIG_ENDIAN } else { 0 };
        packet.extend([VERSION, self.form, self.dtype.code(), flags]);
        write_number(self.length as u64, &mut packet);
        write_number(stream.len() as u64, &mut packet);
        packet.extend_from_slice(content);
        // The stream has its own checksum.
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
        is_big_endian: chunk.is_big_endian,
        length: bytes.len(),
    };
    with_values::<T, _>(bytes, chunk.is_big_endian, |values| {
        let lengths = without_ones(chunk.shape);
        let shape = merged(&lengths);
        let (unpadded, pad) = padding::find(values, &shape);
        let mut content = Vec::new();
        write_numbers(&shape, &mut content);
        write_numbers(&unpadded, &mut content);
        if unpadded != shape {
            content.extend_from_slice(&pad.to_le_bytes()[..T::SIZE]);
        }
        if volume_of(&unpadded) == Some(0) {
            return Ok(head.packet(&content, &[]));
        }
        let part = padding::cut(values, &shape, &unpadded);
        let is_whole = unpadded == shape;
        let layout = Layout::Array(if is_whole { &lengths } else { &unpadded });
        let workspace = T::workspace(workspaces);
        // If padding was cut off, all remaining values are within the array.
        let bound = if is_whole {
            chunk.bound.of_padded(&part)
        } else {
            chunk.bound
        };
        let stream = encode_stream(&part, &layout, bound, None, workspace)?;
        Ok(head.packet(&content, &stream))
    })
}

fn write_numbers(numbers: &[usize], packet: &mut Vec<u8>) {
    write_number(numbers.len() as u64, packet);
    for number in numbers {
        write_number(*number as u64, packet);
    }
}

/// The lengths other than 1; a single 1 if none is left.
fn without_ones(shape: &[usize]) -> Vec<usize> {
    let mut lengths: Vec<usize> = shape.iter().copied().filter(|n| *n != 1).collect();
    if lengths.is_empty() {
        lengths.push(1);
    }
    lengths
}

/// Merges the slowest dimensions until [`RANK`] remain.
fn merged(lengths: &[usize]) -> Vec<usize> {
    let (outer, inner) = lengths.split_at(lengths.len().saturating_sub(RANK - 1).max(1));
    [&[outer.iter().product()], inner].concat()
}

/// Calls `f` with bytes as native values. Copies them if they are in the other byte order, or not aligned.
fn with_values<T: Value, R>(bytes: &[u8], is_big_endian: bool, f: impl FnOnce(&[T]) -> R) -> R {
    if is_big_endian == cfg!(target_endian = "big")
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return f(values);
    }
    let mut copy = vec![T::default(); bytes.len() / T::SIZE];
    bytemuck::cast_slice_mut(&mut copy).copy_from_slice(bytes);
    to_native(&mut copy, is_big_endian);
    f(&copy)
}

/// Converts values from a byte order to the native one, or back.
fn to_native<T: Value>(values: &mut [T], is_big_endian: bool) {
    if is_big_endian != cfg!(target_endian = "big") {
        for value in values {
            bytemuck::bytes_of_mut(value).reverse();
        }
    }
}

/// The parts that all forms of packets have.
struct ParsedPacket<'a> {
    form: u8,
    code: u8,
    is_big_endian: bool,
    length: usize,
    content: Cursor<'a>,
    stream: &'a [u8],
}

fn parse(packet: &[u8]) -> Result<ParsedPacket<'_>> {
    let (body, checksum) = packet
        .split_last_chunk::<4>()
        .ok_or_else(|| corrupt!("the chunk is truncated: it has {} bytes", packet.len()))?;
    let mut rest = Cursor(body);
    let [version, form, code, flags] = [rest.byte()?, rest.byte()?, rest.byte()?, rest.byte()?];
    if version != VERSION {
        return Err(Error::UnsupportedVersion {
            found: version,
            supported: VERSION,
        });
    }
    if form > BYTES {
        return Err(corrupt!(
            "unknown form {form} of a chunk; expected at most {BYTES}"
        ));
    }
    if flags & !BIG_ENDIAN != 0 {
        return Err(Error::ReservedBits {
            field: "flags",
            found: flags,
            reserved: !BIG_ENDIAN,
        });
    }
    let length = rest.number_to(usize::MAX)?;
    let stream_length = rest.number_to(body.len())?;
    let content = rest.0.len().checked_sub(stream_length);
    let content = content.ok_or_else(|| truncated(stream_length, rest.0.len()))?;
    let (checked, stream) = body.split_at(body.len() - stream_length);
    let (found, stored) = (crc32c(checked), u32::from_le_bytes(*checksum));
    if found != stored {
        return Err(corrupt!(
            "the checksum of the chunk is {found:#010x}; expected {stored:#010x}"
        ));
    }
    Ok(ParsedPacket {
        form,
        code,
        is_big_endian: flags & BIG_ENDIAN != 0,
        length,
        content: Cursor(rest.bytes(content)?),
        stream,
    })
}

/// The number of bytes that a packet decodes to. The checksum of the packet is verified, that of its stream is not.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn decoded_length(packet: &[u8]) -> Result<usize> {
    Ok(parse(packet)?.length)
}

/// Decodes a packet of exactly `out.len()` bytes.
///
/// # Errors
/// `Corrupt` if the packet is damaged or truncated, or holds another number of bytes; `UnsupportedVersion`.
pub fn decode(packet: &[u8], out: &mut [u8], workspaces: &mut Workspaces) -> Result<()> {
    let parts = parse(packet)?;
    if parts.length != out.len() {
        return Err(corrupt!(
            "the chunk decodes to {} bytes; expected {}",
            parts.length,
            out.len()
        ));
    }
    if parts.form != ARRAY && !parts.stream.is_empty() {
        return Err(corrupt!(
            "a chunk of form {} has a stream of {} bytes; expected none",
            parts.form,
            parts.stream.len()
        ));
    }
    match (parts.form, parts.code) {
        (RAW, 0) => {
            if parts.content.0.len() != out.len() {
                return Err(corrupt!(
                    "the stored chunk has {} bytes; expected {}",
                    parts.content.0.len(),
                    out.len()
                ));
            }
            out.copy_from_slice(parts.content.0);
            Ok(())
        }
        (BYTES, 0) => bytes::decode(parts.content, out),
        (ARRAY, f32::CODE) => decode_values::<f32>(parts, out, workspaces),
        (ARRAY, f64::CODE) => decode_values::<f64>(parts, out, workspaces),
        (form, code) => Err(corrupt!(
            "unknown value type {code} of a chunk of form {form}; expected {} (float32) or {} (float64) for \
             form {ARRAY}, and 0 for others",
            f32::CODE,
            f64::CODE
        )),
    }
}

fn decode_values<T: Value>(
    parts: ParsedPacket<'_>,
    out: &mut [u8],
    workspaces: &mut Workspaces,
) -> Result<()> {
    if !out.len().is_multiple_of(T::SIZE) {
        return Err(corrupt!(
            "the chunk has {} bytes; expected a multiple of the value size, {}",
            out.len(),
            T::SIZE
        ));
    }
    let ParsedPacket {
        is_big_endian,
        content,
        stream,
        ..
    } = parts;
    let workspace = T::workspace(workspaces);
    let run = |values: &mut [T]| {
        padding::decode(content, stream, values, workspace)?;
        to_native(values, is_big_endian);
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
