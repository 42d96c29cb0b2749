//! The codec `ambar`: values within an error bound, or lossless; each chunk is one stream of `ambar-codec`.

use ambar_codec::{Element, EncoderParams, ErrorBound, Layout, Workspace};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::Profile;
use super::settings::EncoderSettings;
use crate::buffers;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// The codec's `configuration`. It describes the encoding; decoding does not need it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Config {
    /// The error bound of each chunk.
    #[serde(
        serialize_with = "serialize_bound",
        deserialize_with = "deserialize_bound"
    )]
    pub error_bound: ErrorBound,
    /// Whether chunks are encoded near the speed of memory, and become larger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
}

/// Returns a bound as JSON: a number if it is absolute (0 for lossless), otherwise a string.
pub fn bound_to_json(bound: ErrorBound) -> Value {
    match bound {
        ErrorBound::Lossless => json!(0.0),
        ErrorBound::Absolute(bound) => json!(bound),
        other => json!(other.to_string()),
    }
}

/// Parses the JSON that [`bound_to_json`] returns.
///
/// # Errors
/// `Invalid` if the value is neither a number nor a valid string.
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
    bound.check().map_err(convert_error)?;
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

/// The positions of a chunk's values, for codecs that predict values from their neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkGeometry<'a> {
    /// Length of the chunk in each dimension.
    pub shape: &'a [u64],
    /// The origins of unit blocks, one for each index of the first dimension: the first cell's index in
    /// z, y, x, in cells of their level. `None` for other arrays.
    pub origins: Option<&'a [[i64; 3]]>,
    /// The leaf cells of a tree, whose values are the first rows. `None` for other arrays.
    pub cells: Option<LeafCells<'a>>,
    /// Encoder settings chosen for the array.
    pub settings: EncoderSettings,
    /// The length of the part along each dimension that is the array's; the rest is padding. `None` without padding.
    pub held: Option<&'a [usize]>,
    /// The number of finite values that are the array's; `None` if all are, or if it does not matter.
    pub finite_values: Option<usize>,
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

impl<'a> ChunkGeometry<'a> {
    /// A chunk of an array without blocks or leaf cells.
    pub fn array(shape: &'a [u64]) -> Self {
        Self {
            shape,
            origins: None,
            cells: None,
            settings: EncoderSettings::default(),
            held: None,
            finite_values: None,
        }
    }

    /// Calls `f` with the layout in the codec's terms.
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
        // Without the dimensions of length 1.
        let long = |of: &[usize]| {
            let pairs = of.iter().zip(&lengths).filter(|(_, n)| **n != 1);
            let mut long: Vec<usize> = pairs.map(|(length, _)| *length).collect();
            if long.is_empty() {
                long.push(1);
            }
            long
        };
        let (shape, held) = (long(&lengths), self.held.map(long));
        f(&match &held {
            Some(held) => Layout::PaddedArray {
                shape: &shape,
                held,
            },
            None => Layout::Array(&shape),
        })
    }
}

/// Memory that the codec reuses from chunk to chunk, for each type.
#[derive(Default)]
pub(crate) struct Workspaces {
    single: Workspace<f32>,
    double: Workspace<f64>,
}

/// The number of finite values; 0 for a type that the codec does not support.
pub(crate) fn count_finite(dtype: &DataType, raw: &[u8]) -> usize {
    fn count<T: Element + bytemuck::Pod>(raw: &[u8]) -> usize {
        with_values(raw, |values: &[T]| {
            values.iter().filter(|x| x.to_f64().is_finite()).count()
        })
    }
    match dtype {
        DataType::Float32 => count::<f32>(raw),
        DataType::Float64 => count::<f64>(raw),
        _ => 0,
    }
}

/// Whether the codec supports values of this type.
pub(super) fn supports(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Float32 | DataType::Float64)
}

fn unsupported_type(dtype: &DataType) -> Error {
    Error::invalid(format!(
        "error bounds apply to float32 and float64 values, not to {dtype}; write these without a bound"
    ))
}

/// Converts an error of `ambar-codec`.
pub(super) fn convert_error(error: ambar_codec::Error) -> Error {
    use ambar_codec::Error::{Corrupt, Invalid, ReservedBits, UnsupportedVersion};
    match error {
        Invalid(message) => Error::invalid(message),
        Corrupt(_) | ReservedBits { .. } => {
            Error::corrupt(format!("{error}; restore the file from a copy"))
        }
        UnsupportedVersion { .. } => {
            Error::unsupported(format!("{error}; use a newer version of ambar"))
        }
    }
}

/// Chooses the encoder's settings for an array by one of its chunks.
///
/// # Errors
/// `Invalid` if the codec does not support the values.
pub(crate) fn tune(
    dtype: &DataType,
    raw: &[u8],
    geometry: &ChunkGeometry<'_>,
    error_bound: ErrorBound,
    profile: Profile,
) -> Result<EncoderParams> {
    let tuned = match dtype {
        DataType::Float32 => tune_values::<f32>(raw, geometry, error_bound, profile),
        DataType::Float64 => tune_values::<f64>(raw, geometry, error_bound, profile),
        other => return Err(unsupported_type(other)),
    };
    tuned.map_err(convert_error)
}

fn tune_values<T: Element + bytemuck::Pod>(
    raw: &[u8],
    geometry: &ChunkGeometry<'_>,
    error_bound: ErrorBound,
    profile: Profile,
) -> ambar_codec::Result<EncoderParams> {
    with_values::<T, _>(raw, |values| {
        geometry.with_layout(|layout| match profile {
            Profile::Fast => ambar_codec::tune_fast(values, layout, error_bound),
            Profile::Small => ambar_codec::tune_small(values, layout, error_bound),
            _ => ambar_codec::tune(values, layout, error_bound),
        })
    })
}

/// Encodes values in native byte order.
///
/// # Errors
/// `Invalid` if the codec does not support them.
pub(super) fn encode(
    config: &Config,
    dtype: &DataType,
    raw: &[u8],
    geometry: &ChunkGeometry<'_>,
    workspaces: &mut Workspaces,
) -> Result<Vec<u8>> {
    let encoded = match dtype {
        DataType::Float32 => encode_values(raw, geometry, config, &mut workspaces.single),
        DataType::Float64 => encode_values(raw, geometry, config, &mut workspaces.double),
        other => return Err(unsupported_type(other)),
    };
    encoded.map_err(convert_error)
}

fn encode_values<T: Element + bytemuck::Pod>(
    raw: &[u8],
    geometry: &ChunkGeometry<'_>,
    config: &Config,
    workspace: &mut Workspace<T>,
) -> ambar_codec::Result<Vec<u8>> {
    let bound = config.error_bound;
    let (mut params, mut geometry) = (geometry.settings.ambar, *geometry);
    if config.fast && bound.is_lossless() {
        // Bit-packed lossless streams do not use the blocks' positions.
        (params, geometry.origins) = (Some(EncoderParams::default().with_bit_packing()), None);
    }
    let mut out = if config.fast {
        buffers::take(ambar_codec::max_encoded_bytes(raw.len()))
    } else {
        Vec::new()
    };
    with_values::<T, _>(raw, |values| {
        let bound = match geometry.finite_values {
            Some(counted) => {
                let finite = values.iter().filter(|x| x.to_f64().is_finite()).count();
                bound.with_padding(counted, finite.saturating_sub(counted))
            }
            None => bound,
        };
        geometry.with_layout(|layout| {
            if config.fast && params.is_none() {
                params = Some(ambar_codec::tune_fast(values, layout, bound)?);
            }
            ambar_codec::encode_into(values, layout, bound, params, workspace, &mut out)
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
        other => Err(unsupported_type(other)),
    }
}

/// Decodes the first bytes of a stream at lower resolution (`ambar_codec::decode_prefix`).
///
/// # Errors
/// `Corrupt` if a level packet is damaged; `Invalid` if the stream has no levels; `Unsupported`.
pub(super) fn decode_prefix(
    dtype: &DataType,
    prefix: &[u8],
    level: u32,
    out: &mut [u8],
    workspaces: &mut Workspaces,
) -> Result<()> {
    match dtype {
        DataType::Float32 => decode_values(out, |out| {
            ambar_codec::decode_prefix::<f32>(prefix, level, out, &mut workspaces.single)
        }),
        DataType::Float64 => decode_values(out, |out| {
            ambar_codec::decode_prefix::<f64>(prefix, level, out, &mut workspaces.double)
        }),
        other => Err(unsupported_type(other)),
    }
}

/// Calls `decode` with bytes as values; copies them where they are not aligned.
fn decode_values<T: Element + bytemuck::Pod>(
    out: &mut [u8],
    decode: impl FnOnce(&mut [T]) -> ambar_codec::Result<()>,
) -> Result<()> {
    if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
        return decode(values).map_err(convert_error);
    }
    let mut values = vec![T::default(); out.len() / T::SIZE];
    decode(&mut values).map_err(convert_error)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}
