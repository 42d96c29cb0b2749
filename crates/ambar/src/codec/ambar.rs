//! The codec `ambar`: values within an error bound, or lossless, one stream of `ambar-codec` a chunk.

use ambar_codec::{Element, ErrorBound, Layout, Plan, Workspace};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::Profile;
use super::chain::{ByteCodec, CodecChain, ValueCodec};
use super::scratch::CodecScratch;
use crate::buffers;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// The codec's `configuration`. It says how a chunk was encoded; decoding needs none of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Config {
    /// The error bound of each chunk.
    #[serde(
        serialize_with = "serialize_bound",
        deserialize_with = "deserialize_bound"
    )]
    pub error_bound: ErrorBound,
    /// Whether chunks are encoded near the speed of memory, at the price of their size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
}

/// A bound in JSON: a number where it is absolute (0: lossless), otherwise a string.
pub fn bound_to_json(bound: ErrorBound) -> Value {
    match bound {
        ErrorBound::Lossless => json!(0.0),
        ErrorBound::Absolute(bound) => json!(bound),
        other => json!(other.to_string()),
    }
}

/// The bound that [`bound_to_json`] writes.
///
/// # Errors
/// `Invalid` where it is neither a number nor a valid string.
pub fn bound_from_json(value: &Value) -> Result<ErrorBound> {
    let bound = match value {
        Value::String(text) => text
            .parse()
            .map_err(|error: ambar_codec::InvalidBound| Error::invalid(error.to_string()))?,
        value => ErrorBound::from(value.as_f64().ok_or_else(|| {
            Error::invalid(format!(
                "invalid error bound: {value}; expected a number (absolute), or a string such as \
                 \"1e-3 relative\""
            ))
        })?),
    };
    bound.check().map_err(failed)?;
    Ok(bound)
}

fn serialize_bound<S: Serializer>(
    bound: &ErrorBound,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    bound_to_json(*bound).serialize(to)
}

fn deserialize_bound<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<ErrorBound, D::Error> {
    let value = Value::deserialize(from)?;
    bound_from_json(&value).map_err(serde::de::Error::custom)
}

// The numbers of valid bounds are not NaN.
impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.error_bound == other.error_bound && self.fast == other.fast
    }
}

impl Eq for Config {}

impl std::hash::Hash for Config {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.error_bound.to_string(), self.fast).hash(state);
    }
}

impl CodecChain {
    /// Values within an error bound, and their checksum.
    pub(crate) fn bounded(error_bound: ErrorBound) -> Self {
        let fast = false;
        Self::checksummed(ValueCodec::Ambar(Config { error_bound, fast }), None)
    }

    /// The same, encoded and decoded as fast as can be.
    pub(crate) fn fast(error_bound: ErrorBound) -> Self {
        let fast = true;
        Self::checksummed(ValueCodec::Ambar(Config { error_bound, fast }), None)
    }

    /// The same with another error bound, if the codec is `ambar`.
    pub(crate) fn with_bound(&self, error_bound: ErrorBound) -> Self {
        let mut chain = self.clone();
        if let ValueCodec::Ambar(config) = &mut chain.values {
            config.error_bound = error_bound;
        }
        chain
    }

    /// The error bound of its values; `None` where they are lossless.
    pub fn error_bound(&self) -> Option<ErrorBound> {
        match &self.values {
            ValueCodec::Ambar(config) if !config.error_bound.is_lossless() => {
                Some(config.error_bound)
            }
            _ => None,
        }
    }

    /// Whether chunks may be decoded at lower resolution from their first bytes alone.
    pub(crate) fn has_levels(&self) -> bool {
        let is_alone = self.arrays.is_empty() && self.bytes == [ByteCodec::Crc32c];
        matches!(self.values, ValueCodec::Ambar(_)) && is_alone
    }

    /// Decodes the first bytes of a chunk at lower resolution (`ambar_codec::decode_prefix`).
    ///
    /// # Errors
    /// `Corrupt` where a level packet is damaged; `Invalid` where the stream cannot be decoded so; `Unsupported`.
    pub(crate) fn decode_prefix(
        &self,
        dtype: &DataType,
        prefix: &[u8],
        level: u32,
        out: &mut [u8],
        scratch: &mut CodecScratch,
    ) -> Result<()> {
        let Workspaces { single, double } = &mut scratch.workspaces;
        match dtype {
            DataType::Float32 => decode_values(out, |out| {
                ambar_codec::decode_prefix::<f32>(prefix, level, out, single)
            }),
            DataType::Float64 => decode_values(out, |out| {
                ambar_codec::decode_prefix::<f64>(prefix, level, out, double)
            }),
            other => Err(refused(other)),
        }
    }

    /// The profile by which the codec `ambar` is to choose its settings for more chunks.
    pub(crate) fn profile(&self) -> Profile {
        match &self.values {
            ValueCodec::Ambar(config) if config.fast => Profile::Fast,
            _ => Profile::Balanced,
        }
    }
}

/// How the values of a chunk lie, for codecs that predict values from those around them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkPlace<'a> {
    /// Length of the chunk in each dimension.
    pub shape: &'a [u64],
    /// Where each of the unit blocks lies that the first dimension counts: the first cell's index in
    /// z, y, x, in cells of their level. `None` for an array like any other.
    pub origins: Option<&'a [[i64; 3]]>,
    /// The leaf cells of a tree whose values the first rows are. `None` for an array like any other.
    pub cells: Option<LeafCells<'a>>,
    /// Settings chosen for the array; `None` chooses for the chunk.
    pub plan: Option<Plan>,
}

/// Leaf cells of a tree, along the Morton curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafCells<'a> {
    /// Dimensions of the tree.
    pub dimensions: usize,
    /// The cells' levels.
    pub levels: &'a [u8],
    /// Their indices on their levels, in z, y, x.
    pub origins: &'a [[i64; 3]],
}

impl ChunkPlace<'_> {
    /// Calls `f` with the layout as the codec says it.
    fn with_layout<T>(&self, f: impl FnOnce(&Layout<'_>) -> T) -> T {
        let lengths: Vec<usize> = self.shape.iter().map(|n| *n as usize).collect();
        if let (Some(origins), [_, sides @ ..]) = (self.origins, &lengths[..]) {
            let mut side = [1; 3];
            for (to, n) in side.iter_mut().rev().zip(sides.iter().rev()) {
                *to = *n;
            }
            return f(&Layout::Blocks { side, origins });
        }
        if let Some(cells) = self.cells {
            return f(&Layout::Cells {
                dimensions: cells.dimensions,
                levels: cells.levels,
                origins: cells.origins,
            });
        }
        // Lengths of 1 say nothing, and of many dimensions the slowest become one.
        let mut shape: Vec<usize> = lengths.iter().copied().filter(|n| *n != 1).collect();
        let extra = shape.len().saturating_sub(4);
        let outer: usize = shape.drain(..extra).product();
        match shape.first_mut() {
            Some(first) => *first *= outer,
            None => shape.push(1),
        }
        f(&Layout::Array(&shape))
    }
}

/// What the codec keeps from chunk to chunk, for both types.
#[derive(Default)]
pub(crate) struct Workspaces {
    single: Workspace<f32>,
    double: Workspace<f64>,
}

/// Whether the codec takes values of this type.
pub(super) fn takes(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Float32 | DataType::Float64)
}

fn refused(dtype: &DataType) -> Error {
    Error::invalid(format!(
        "an error bound is for float32 and float64 values, not {dtype}: write them without one"
    ))
}

/// A codec's error as the library's.
pub(super) fn failed(error: ambar_codec::Error) -> Error {
    use ambar_codec::Error::{Corrupt, Invalid, ReservedBits, UnsupportedVersion};
    match error {
        Invalid(message) => Error::invalid(message),
        Corrupt(_) | ReservedBits(..) => {
            Error::corrupt(format!("{error}; restore the file from a copy"))
        }
        UnsupportedVersion { .. } => {
            Error::unsupported(format!("{error}; use a newer version of ambar"))
        }
    }
}

/// The settings that suit a chunk of an array best, for a bound and a profile.
///
/// # Errors
/// `Invalid` where the codec does not take the values.
pub(crate) fn tune(
    dtype: &DataType,
    raw: &[u8],
    place: &ChunkPlace<'_>,
    aim: (ErrorBound, Profile),
) -> Result<Plan> {
    let tuned = match dtype {
        DataType::Float32 => tune_values::<f32>(raw, place, aim),
        DataType::Float64 => tune_values::<f64>(raw, place, aim),
        other => return Err(refused(other)),
    };
    tuned.map_err(failed)
}

fn tune_values<T: Element + bytemuck::Pod>(
    raw: &[u8],
    place: &ChunkPlace<'_>,
    (error_bound, profile): (ErrorBound, Profile),
) -> ambar_codec::Result<Plan> {
    with_values::<T, _>(raw, |values| {
        place.with_layout(|layout| match profile {
            Profile::Fast => ambar_codec::tune_fast(values, layout, error_bound),
            Profile::Small => ambar_codec::tune_small(values, layout, error_bound),
            _ => ambar_codec::tune(values, layout, error_bound),
        })
    })
}

/// Encodes values in native byte order.
///
/// # Errors
/// `Invalid` where the codec does not take them.
pub(super) fn encode(
    config: &Config,
    dtype: &DataType,
    raw: &[u8],
    place: &ChunkPlace<'_>,
    workspaces: &mut Workspaces,
) -> Result<Vec<u8>> {
    let encoded = match dtype {
        DataType::Float32 => encode_values(raw, place, config, &mut workspaces.single),
        DataType::Float64 => encode_values(raw, place, config, &mut workspaces.double),
        other => return Err(refused(other)),
    };
    encoded.map_err(failed)
}

fn encode_values<T: Element + bytemuck::Pod>(
    raw: &[u8],
    place: &ChunkPlace<'_>,
    config: &Config,
    workspace: &mut Workspace<T>,
) -> ambar_codec::Result<Vec<u8>> {
    let bound = config.error_bound;
    let (mut plan, mut place) = (place.plan, *place);
    if config.fast && bound.is_lossless() {
        // Nothing is gained by knowing where blocks lie.
        (plan, place.origins) = (Some(Plan::default().packed()), None);
    }
    let mut out = if config.fast {
        buffers::take(ambar_codec::most_bytes(raw.len()))
    } else {
        Vec::new()
    };
    with_values::<T, _>(raw, |values| {
        place.with_layout(|layout| {
            if config.fast && plan.is_none() {
                plan = Some(ambar_codec::tune_fast(values, layout, bound)?);
            }
            ambar_codec::encode_into(values, layout, bound, plan, workspace, &mut out)
        })
    })?;
    Ok(out)
}

/// Calls `f` with bytes as values; copies them where they are not aligned.
fn with_values<T: Element + bytemuck::Pod, R>(raw: &[u8], f: impl FnOnce(&[T]) -> R) -> R {
    match bytemuck::try_cast_slice(raw) {
        Ok(values) => f(values),
        Err(_) => {
            let mut values = vec![T::default(); raw.len() / T::SIZE];
            bytemuck::cast_slice_mut(&mut values).copy_from_slice(raw);
            f(&values)
        }
    }
}

/// Decodes a stream into `out`, native byte order, which it must fill exactly.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn decode(
    dtype: &DataType,
    stream: &[u8],
    out: &mut [u8],
    workspaces: &mut Workspaces,
) -> Result<()> {
    match dtype {
        DataType::Float32 => decode_values(out, |out| {
            ambar_codec::decode::<f32>(stream, out, &mut workspaces.single)
        }),
        DataType::Float64 => decode_values(out, |out| {
            ambar_codec::decode::<f64>(stream, out, &mut workspaces.double)
        }),
        other => Err(refused(other)),
    }
}

/// Calls `decode` with bytes as values; copies them where they are not aligned.
fn decode_values<T: Element + bytemuck::Pod>(
    out: &mut [u8],
    decode: impl FnOnce(&mut [T]) -> ambar_codec::Result<()>,
) -> Result<()> {
    if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
        return decode(values).map_err(failed);
    }
    let mut values = vec![T::default(); out.len() / T::SIZE];
    decode(&mut values).map_err(failed)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}
