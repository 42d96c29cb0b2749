//! A codec pipeline, encoding and decoding.

use ambar_codec::ErrorBound;
use crc_fast::crc32_iscsi as crc32c;
use zstd::zstd_safe;

use super::ambar::ChunkGeometry;
use super::array_to_array::{self, ArrayCodec};
use super::padding::ChunkPadding;
use super::scratch::CodecScratch;
use super::settings::EncoderSettings;
use super::{Profile, ambar, blosc, checksum, pcodec, simplices, vlen};
use crate::buffers;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::{self, Limits};
use crate::strings::Strings;

/// A thread's zstd context, created on first use.
type Zstd = Option<zstd::bulk::Decompressor<'static>>;

/// The codecs of a chunk in the order of encoding: any number of array-to-array codecs, one array-to-bytes
/// codec, any number of bytes-to-bytes codecs. If the last is `crc32c`, damage is detected before decoding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodecChain {
    pub(super) arrays: Vec<ArrayCodec>,
    pub(super) values: ValueCodec,
    pub(super) bytes: Vec<ByteCodec>,
}

/// An array-to-bytes codec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueCodec {
    /// The values unchanged, in this byte order.
    Bytes(Endian),
    Pcodec(pcodec::Config),
    Ambar(ambar::Config),
    Simplices,
    VlenUtf8,
    VlenBytes,
}

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Endian {
    Little,
    Big,
}

impl Endian {
    const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };
}

/// A bytes-to-bytes codec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ByteCodec {
    Crc32c,
    Zstd(ZstdConfig),
    Blosc(blosc::Config),
}

/// The configuration of `zstd`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct ZstdConfig {
    pub level: i32,
    #[serde(default)]
    pub checksum: bool,
}

/// Zstd without blosc.
pub(super) fn zstd(level: i32) -> ByteCodec {
    ByteCodec::Zstd(ZstdConfig {
        level,
        checksum: false,
    })
}

impl CodecChain {
    /// A chain that ends with `crc32c`.
    pub(super) fn checksummed(values: ValueCodec, compressor: Option<ByteCodec>) -> Self {
        let bytes = compressor.into_iter().chain([ByteCodec::Crc32c]).collect();
        Self {
            arrays: Vec::new(),
            values,
            bytes,
        }
    }

    /// The chain after these array-to-array codecs.
    pub(super) fn after(self, arrays: &[ArrayCodec]) -> Self {
        Self {
            arrays: arrays.to_vec(),
            ..self
        }
    }

    /// The codec `ambar` with its default settings, and a checksum.
    pub(crate) fn bounded(error_bound: ErrorBound) -> Self {
        let fast = false;
        Self::checksummed(ValueCodec::Ambar(ambar::Config { error_bound, fast }), None)
    }

    /// The codec `ambar` with its fastest settings, and a checksum.
    pub(crate) fn fast(error_bound: ErrorBound) -> Self {
        let fast = true;
        Self::checksummed(ValueCodec::Ambar(ambar::Config { error_bound, fast }), None)
    }

    /// The same with another error bound, if the codec is `ambar`.
    pub(crate) fn with_bound(&self, error_bound: ErrorBound) -> Self {
        let mut chain = self.clone();
        if let ValueCodec::Ambar(config) = &mut chain.values {
            config.error_bound = error_bound;
        }
        chain
    }

    /// The error bound of the values; `None` if they are lossless.
    pub fn error_bound(&self) -> Option<ErrorBound> {
        match &self.values {
            ValueCodec::Ambar(config) if !config.error_bound.is_lossless() => {
                Some(config.error_bound)
            }
            _ => None,
        }
    }

    /// The profile whose settings the codec `ambar` must use when chunks are rewritten.
    pub(crate) fn profile(&self) -> Profile {
        match &self.values {
            ValueCodec::Ambar(config) if config.fast => Profile::Fast,
            _ => Profile::Balanced,
        }
    }

    /// The padding of chunks at the end of an array.
    pub(crate) fn padding(&self) -> ChunkPadding {
        match &self.values {
            ValueCodec::Ambar(config) => ChunkPadding::of_ambar(config.error_bound, config.fast),
            _ => ChunkPadding::LOSSLESS,
        }
    }

    /// The order of differences that pco chose for chunks which this chain encoded; `None` for other codecs.
    pub(crate) fn known_deltas<'a>(
        &self,
        dtype: &DataType,
        encoded: impl Iterator<Item = &'a [u8]>,
    ) -> Option<pcodec::KnownDeltas> {
        match self.values {
            ValueCodec::Pcodec(_) => pcodec::KnownDeltas::of_chunks(dtype, encoded),
            _ => None,
        }
    }

    /// Whether chunks can be decoded at lower resolution from their first bytes.
    pub(crate) fn has_levels(&self) -> bool {
        let is_single = self.arrays.is_empty() && self.bytes == [ByteCodec::Crc32c];
        matches!(self.values, ValueCodec::Ambar(_)) && is_single
    }

    /// A chain that shows quickly whether values repeat: zstd at its lowest level.
    pub(crate) fn probe() -> Self {
        Self::checksummed(ValueCodec::Bytes(Endian::Little), Some(zstd(1)))
    }

    /// The chain with levels of zstd and pcodec that take little time.
    pub(super) fn at_low_levels(&self) -> Self {
        let mut chain = self.clone();
        if let ValueCodec::Pcodec(config) = &mut chain.values {
            config.level = config.level.min(8);
        }
        for codec in &mut chain.bytes {
            match codec {
                ByteCodec::Zstd(config) => config.level = config.level.min(6),
                ByteCodec::Blosc(config) if config.cname == blosc::Compressor::Zstd => {
                    config.clevel = config.clevel.min(4);
                }
                ByteCodec::Blosc(_) | ByteCodec::Crc32c => {}
            }
        }
        chain
    }

    /// Raises the levels of zstd to those that take about a millisecond for a small array.
    pub(super) fn raise_levels(&mut self) {
        for codec in &mut self.bytes {
            match codec {
                ByteCodec::Zstd(config) => config.level = config.level.max(12),
                ByteCodec::Blosc(config) if config.cname == blosc::Compressor::Zstd => {
                    config.clevel = config.clevel.max(5);
                }
                ByteCodec::Blosc(_) | ByteCodec::Crc32c => {}
            }
        }
    }

    /// Little-endian values and their checksum, as shard indices are encoded.
    pub(crate) fn raw() -> Self {
        Self::checksummed(ValueCodec::Bytes(Endian::Little), None)
    }

    /// Whether chunks of `dtype` are stored verbatim, followed by their checksum.
    pub(crate) fn is_plain(&self, dtype: &DataType) -> bool {
        let native = match self.values {
            ValueCodec::Bytes(endian) => endian == Endian::NATIVE || dtype.word_size() == 1,
            _ => false,
        };
        native && self.arrays.is_empty() && self.bytes == [ByteCodec::Crc32c]
    }

    /// Bytes that encoding adds to any chunk of a fixed size; `None` if that depends on the chunk.
    pub(crate) fn fixed_overhead(&self) -> Option<usize> {
        let plain = self.arrays.is_empty()
            && matches!(self.values, ValueCodec::Bytes(_))
            && self.bytes.iter().all(|codec| *codec == ByteCodec::Crc32c);
        plain.then_some(4 * self.bytes.len())
    }

    /// Whether encoded chunks end with a checksum.
    pub fn is_checksummed(&self) -> bool {
        self.bytes.last() == Some(&ByteCodec::Crc32c)
    }

    /// Verifies the checksum of a stored chunk without decoding it; succeeds if the chain has none.
    ///
    /// # Errors
    /// `Corrupt` if it differs.
    pub fn verify(&self, encoded: &[u8]) -> Result<()> {
        self.payload(encoded).map(|_| ())
    }

    /// Verifies and strips the trailing checksums. Returns the remaining bytes and their codecs.
    fn payload<'a>(&self, mut encoded: &'a [u8]) -> Result<(&'a [u8], &[ByteCodec])> {
        let mut codecs = self.bytes.as_slice();
        while let Some((ByteCodec::Crc32c, earlier)) = codecs.split_last() {
            encoded = checksum::split_crc32c(encoded, "a chunk")?;
            codecs = earlier;
        }
        Ok((encoded, codecs))
    }

    /// Decodes a chunk of `shape` with values of a fixed size into `out`, which it must fill exactly.
    ///
    /// # Errors
    /// `Corrupt` if a checksum differs, or the size of the chunk differs from that of `out`; `Limit`.
    pub(crate) fn decode(
        &self,
        dtype: &DataType,
        shape: &[u64],
        encoded: &[u8],
        out: &mut [u8],
        limits: &Limits,
        scratch: &mut CodecScratch,
    ) -> Result<()> {
        if self.arrays.is_empty() {
            return self.decode_values(dtype, encoded, out, limits, scratch);
        }
        let steps = array_to_array::Steps::new(&self.arrays, shape, dtype, out.len())?;
        let mut values = std::mem::take(&mut scratch.values);
        let decoded = steps.undo(out, &mut values, |values| {
            self.decode_values(dtype, encoded, values, limits, scratch)
        });
        scratch.values = values;
        decoded
    }

    /// Decodes the first bytes of a chunk at lower resolution; the chain must have levels (`has_levels`).
    ///
    /// # Errors
    /// `Corrupt` if a level packet is damaged; `Invalid` if the stream has no levels; `Unsupported`.
    pub(crate) fn decode_prefix(
        &self,
        dtype: &DataType,
        prefix: &[u8],
        level: u32,
        out: &mut [u8],
        scratch: &mut CodecScratch,
    ) -> Result<()> {
        ambar::decode_prefix(dtype, prefix, level, out, &mut scratch.workspaces)
    }

    /// Decodes the input of the array-to-bytes codec.
    fn decode_values(
        &self,
        dtype: &DataType,
        encoded: &[u8],
        out: &mut [u8],
        limits: &Limits,
        scratch: &mut CodecScratch,
    ) -> Result<()> {
        if let (ValueCodec::Ambar(_), [ByteCodec::Crc32c]) = (&self.values, &self.bytes[..])
            && let Some((stream, &checksum::OF_CHECKED)) = encoded.split_last_chunk()
        {
            // The stream's own checksum protects it; the codec verifies that one first.
            return ambar::decode(dtype, stream, out, &mut scratch.workspaces);
        }
        let (payload, codecs) = self.payload(encoded)?;
        match (&self.values, codecs) {
            (ValueCodec::Bytes(endian), []) => {
                copy_exactly(payload, out)?;
                to_native(dtype, *endian, out);
            }
            (ValueCodec::Bytes(endian), [first, later @ ..]) => {
                let CodecScratch { buffers, zstd, .. } = scratch;
                let payload = undo(later, payload, limits, buffers, zstd)?;
                first.decode_into(payload, out, zstd)?;
                to_native(dtype, *endian, out);
            }
            (ValueCodec::Pcodec(_), codecs) => {
                let CodecScratch { buffers, zstd, .. } = scratch;
                pcodec::decode(dtype, undo(codecs, payload, limits, buffers, zstd)?, out)?;
            }
            (ValueCodec::Ambar(_), codecs) => {
                let CodecScratch {
                    buffers,
                    zstd,
                    workspaces,
                    ..
                } = scratch;
                let stream = undo(codecs, payload, limits, buffers, zstd)?;
                ambar::decode(dtype, stream, out, workspaces)?;
            }
            (ValueCodec::Simplices, codecs) => {
                let CodecScratch { buffers, zstd, .. } = scratch;
                let stream = undo(codecs, payload, limits, buffers, zstd)?;
                simplices::decode(dtype, stream, out, &mut scratch.simplices)?;
            }
            (ValueCodec::VlenUtf8 | ValueCodec::VlenBytes, _) => {
                return Err(Error::invalid(format!(
                    "values of {dtype} have no fixed size; read and write them as strings"
                )));
            }
        }
        Ok(())
    }

    /// Decodes a chunk of exactly `count` strings or byte strings.
    ///
    /// # Errors
    /// As `decode`.
    pub(crate) fn decode_strings(
        &self,
        encoded: &[u8],
        count: usize,
        limits: &Limits,
        scratch: &mut CodecScratch,
    ) -> Result<Strings> {
        let utf8 = match &self.values {
            ValueCodec::VlenUtf8 => true,
            ValueCodec::VlenBytes => false,
            _ => {
                return Err(Error::invalid(
                    "expected an array of strings or byte strings, found values of a fixed size",
                ));
            }
        };
        let (payload, codecs) = self.payload(encoded)?;
        let CodecScratch { buffers, zstd, .. } = scratch;
        vlen::decode(undo(codecs, payload, limits, buffers, zstd)?, count, utf8)
    }

    /// Encodes a chunk of values of a fixed size, in native byte order.
    ///
    /// # Errors
    /// `Invalid` if a codec does not support the values.
    pub(crate) fn encode(
        &self,
        dtype: &DataType,
        raw: &[u8],
        geometry: &ChunkGeometry<'_>,
        scratch: &mut CodecScratch,
    ) -> Result<Vec<u8>> {
        if self.arrays.is_empty() {
            return self.encode_values(dtype, raw, geometry, scratch);
        }
        let steps = array_to_array::Steps::new(&self.arrays, geometry.shape, dtype, raw.len())?;
        let mut values = std::mem::take(&mut scratch.values);
        let geometry = ChunkGeometry {
            finite_values: geometry.finite_values,
            // Parameters of the codec `ambar` are those of the array's own dimensions.
            settings: EncoderSettings {
                ambar: None,
                ..geometry.settings
            },
            ..ChunkGeometry::array(&steps.shape)
        };
        let encoded = steps
            .apply(raw, &mut values)
            .and_then(|moved| self.encode_values(dtype, moved, &geometry, scratch));
        scratch.values = values;
        encoded
    }

    /// Encodes the output of the array-to-array codecs.
    fn encode_values(
        &self,
        dtype: &DataType,
        raw: &[u8],
        geometry: &ChunkGeometry<'_>,
        scratch: &mut CodecScratch,
    ) -> Result<Vec<u8>> {
        let mut values = Vec::new();
        match &self.values {
            ValueCodec::Bytes(endian) => {
                if *endian == Endian::NATIVE || dtype.word_size() == 1 {
                    return self.encode_bytes(raw);
                }
                values.extend_from_slice(raw);
                to_native(dtype, *endian, &mut values);
            }
            ValueCodec::Pcodec(config) => {
                pcodec::encode(config, geometry.settings.pcodec, dtype, raw, &mut values)?;
            }
            ValueCodec::Ambar(config) => {
                values = ambar::encode(config, dtype, raw, geometry, &mut scratch.workspaces)?;
                if let [ByteCodec::Crc32c, further @ ..] = &self.bytes[..] {
                    // A stream ends with its own checksum, so the CRC-32C of the whole is a constant.
                    values.extend_from_slice(&checksum::OF_CHECKED);
                    return encode_further(further, values);
                }
            }
            ValueCodec::Simplices => {
                values = simplices::encode(dtype, geometry.shape, raw, &mut scratch.simplices)?;
            }
            ValueCodec::VlenUtf8 | ValueCodec::VlenBytes => {
                return Err(Error::invalid(format!(
                    "values of {dtype} have no fixed size; read and write them as strings"
                )));
            }
        }
        self.encode_bytes_in_place(values)
    }

    /// Encodes a chunk of strings, which the caller has checked to be UTF-8, or byte strings.
    ///
    /// # Errors
    /// `Invalid` if a length exceeds 32 bits.
    pub(crate) fn encode_strings<'a>(
        &self,
        strings: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Vec<u8>> {
        let mut values = Vec::new();
        vlen::encode(strings, &mut values)?;
        self.encode_bytes_in_place(values)
    }

    fn encode_bytes(&self, raw: &[u8]) -> Result<Vec<u8>> {
        match self.bytes.split_first() {
            Some((ByteCodec::Crc32c, _)) | None => {
                let mut out = buffers::take(raw.len() + 4);
                out.extend_from_slice(raw);
                self.encode_bytes_in_place(out)
            }
            Some((first, later)) => {
                let mut out = Vec::new();
                first.encode(raw, &mut out)?;
                encode_further(later, out)
            }
        }
    }

    fn encode_bytes_in_place(&self, values: Vec<u8>) -> Result<Vec<u8>> {
        encode_further(&self.bytes, values)
    }
}

fn encode_further(codecs: &[ByteCodec], mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    for codec in codecs {
        if *codec == ByteCodec::Crc32c {
            let checksum = crc32c(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
        } else {
            let mut out = Vec::new();
            codec.encode(&bytes, &mut out)?;
            bytes = out;
        }
    }
    Ok(bytes)
}

/// Undoes `codecs`, the last first. The result is in `source` or one of the buffers.
fn undo<'a>(
    codecs: &[ByteCodec],
    source: &'a [u8],
    limits: &Limits,
    buffers: &'a mut [Vec<u8>; 2],
    zstd: &mut Zstd,
) -> Result<&'a [u8]> {
    let [one, two] = buffers;
    let Some((last, earlier)) = codecs.split_last() else {
        return Ok(source);
    };
    last.decode_to(source, one, limits, zstd)?;
    let (mut from, mut to) = (one, two);
    for codec in earlier.iter().rev() {
        codec.decode_to(from, to, limits, zstd)?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(from)
}

impl ByteCodec {
    fn encode(&self, source: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Crc32c => {
                out.clear();
                out.extend_from_slice(source);
                out.extend_from_slice(&crc32c(source).to_le_bytes());
                Ok(())
            }
            Self::Blosc(config) => config.encode(source, out),
            Self::Zstd(config) => {
                let failed = |error| Error::invalid(format!("zstd: {error}"));
                let mut compressor = zstd::bulk::Compressor::new(config.level).map_err(failed)?;
                compressor
                    .set_parameter(zstd_safe::CParameter::ChecksumFlag(config.checksum))
                    .map_err(failed)?;
                *out = compressor.compress(source).map_err(failed)?;
                Ok(())
            }
        }
    }

    /// Decodes into `out`, which must be filled exactly.
    fn decode_into(&self, source: &[u8], out: &mut [u8], zstd: &mut Zstd) -> Result<()> {
        match self {
            Self::Crc32c => copy_exactly(checksum::split_crc32c(source, "a chunk")?, out),
            Self::Blosc(_) => blosc::decode(source, out),
            Self::Zstd(_) => {
                let expected = out.len();
                let written = zstd
                    .get_or_insert_default()
                    .decompress_to_buffer(source, out)
                    .map_err(|error| {
                        Error::corrupt(format!(
                            "a zstd frame cannot be decoded ({error}); restore the file from a copy"
                        ))
                    })?;
                if written == expected {
                    Ok(())
                } else {
                    Err(wrong_size(written, expected))
                }
            }
        }
    }

    /// Decodes into `out`, whose size is read from the source and checked against the limits.
    fn decode_to(
        &self,
        source: &[u8],
        out: &mut Vec<u8>,
        limits: &Limits,
        zstd: &mut Zstd,
    ) -> Result<()> {
        let size = match self {
            Self::Crc32c => source.len().saturating_sub(4),
            Self::Blosc(_) => blosc::decoded_size(source)?,
            Self::Zstd(_) => zstd_size(source)?,
        };
        let size = Limits::check("a chunk", size as u64, limits.chunk_bytes)?;
        out.clear();
        limits::resize(out, "a chunk", size)?;
        self.decode_into(source, out, zstd)
    }
}

/// The decoded size of a single zstd frame, whose header must contain it.
fn zstd_size(source: &[u8]) -> Result<usize> {
    match zstd_safe::get_frame_content_size(source) {
        Ok(Some(size)) => usize::try_from(size)
            .map_err(|_| Error::limit(format!("a chunk of {size} bytes does not fit in memory"))),
        Ok(None) => Err(Error::unsupported(
            "the header of a zstd frame lacks the decoded size, which ambar requires",
        )),
        Err(_) => Err(Error::corrupt(
            "a chunk does not begin with a zstd frame; restore the file from a copy",
        )),
    }
}

fn copy_exactly(source: &[u8], out: &mut [u8]) -> Result<()> {
    if source.len() != out.len() {
        return Err(wrong_size(source.len(), out.len()));
    }
    out.copy_from_slice(source);
    Ok(())
}

fn wrong_size(found: usize, expected: usize) -> Error {
    Error::corrupt(format!("a chunk has {found} bytes; expected {expected}"))
}

/// Swaps the bytes of each word if `endian` is not this machine's; its own inverse.
fn to_native(dtype: &DataType, endian: Endian, bytes: &mut [u8]) {
    let word = dtype.word_size();
    if endian != Endian::NATIVE && word > 1 {
        bytes.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
}
