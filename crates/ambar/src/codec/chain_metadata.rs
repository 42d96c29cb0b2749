//! Parses, writes and describes codec pipelines as Zarr v3 metadata.

use ambar_codec::ErrorBound;
use serde_json::{Value, json};
use zarrs_metadata::v3::MetadataV3;

use super::array_to_array::{self, ArrayCodec};
use super::bound_format::format_bound;
use super::chain::{ByteCodec, CodecChain, Endian, ValueCodec};
use super::{ambar, pcodec, simplices};
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// Largest number of array-to-array codecs; useful chains have at most two.
const MAX_ARRAY_CODECS: usize = 16;

impl CodecChain {
    /// The chain that `codecs` of Zarr v3 metadata describes, for an array of this type and number of
    /// dimensions.
    ///
    /// # Errors
    /// `Unsupported` for codecs that this version lacks; `Corrupt` if a configuration is invalid.
    pub fn from_metadata(
        codecs: &[MetadataV3],
        dtype: &DataType,
        dimensions: usize,
    ) -> Result<Self> {
        let mut arrays = Vec::new();
        let mut rest = codecs.iter();
        let first = loop {
            let codec = rest.next().ok_or_else(|| {
                Error::corrupt("an array has no array-to-bytes codec; expected at least `bytes`")
            })?;
            match array_codec(codec, dtype, dimensions)? {
                Some(_) if arrays.len() == MAX_ARRAY_CODECS => {
                    let message = format!(
                        "an array has more than {MAX_ARRAY_CODECS} array-to-array codecs, the limit"
                    );
                    return Err(Error::limit(message));
                }
                Some(codec) => arrays.push(codec),
                None => break codec,
            }
        };
        Ok(Self {
            arrays,
            values: value_codec(first, dtype)?,
            bytes: rest.map(byte_codec).collect::<Result<_>>()?,
        })
    }

    /// The chain that a JSON list of codecs describes, as `codecs` in Zarr v3 metadata.
    ///
    /// # Errors
    /// `Invalid` if the string is not such a list; otherwise as `from_metadata`.
    pub fn parse(text: &str, dtype: &DataType, dimensions: usize) -> Result<Self> {
        let codecs: Vec<MetadataV3> = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("invalid JSON list of codecs: {error}")))?;
        Self::from_metadata(&codecs, dtype, dimensions)
    }

    /// Returns `codecs` of Zarr v3 metadata.
    pub fn to_json(&self, dtype: &DataType) -> Value {
        let arrays = self.arrays.iter().map(|codec| match codec {
            ArrayCodec::Transpose(order) => {
                json!({"name": "transpose", "configuration": {"order": order}})
            }
            ArrayCodec::Delta => {
                let name = array_to_array::numpy_name(dtype);
                json!({"name": "numcodecs.delta", "configuration": {"dtype": name, "astype": name}})
            }
        });
        let first = match &self.values {
            // Zarr omits the byte order of single bytes.
            ValueCodec::Bytes(_) if dtype.word_size() == 1 => json!({"name": "bytes"}),
            ValueCodec::Bytes(Endian::Little) => {
                json!({"name": "bytes", "configuration": {"endian": "little"}})
            }
            ValueCodec::Bytes(Endian::Big) => {
                json!({"name": "bytes", "configuration": {"endian": "big"}})
            }
            ValueCodec::Pcodec(config) => {
                json!({"name": "numcodecs.pcodec", "configuration": config})
            }
            ValueCodec::Ambar(config) => json!({"name": "ambar", "configuration": config}),
            ValueCodec::Simplices => json!({"name": simplices::NAME}),
            ValueCodec::VlenUtf8 => json!({"name": "vlen-utf8"}),
            ValueCodec::VlenBytes => json!({"name": "vlen-bytes"}),
        };
        let rest = self.bytes.iter().map(|codec| match codec {
            ByteCodec::Crc32c => json!({"name": "crc32c"}),
            ByteCodec::Zstd(config) => json!({"name": "zstd", "configuration": config}),
            ByteCodec::Blosc(config) => json!({"name": "blosc", "configuration": config}),
        });
        Value::Array(arrays.chain([first]).chain(rest).collect())
    }

    /// A short description, such as `pcodec 8, crc32c`.
    pub fn describe(&self) -> String {
        let arrays = self.arrays.iter().map(|codec| match codec {
            ArrayCodec::Transpose(_) => "transpose".to_owned(),
            ArrayCodec::Delta => "delta".to_owned(),
        });
        let first = match &self.values {
            ValueCodec::Bytes(Endian::Little) if self.bytes.len() <= 1 => Some("raw".to_owned()),
            ValueCodec::Bytes(Endian::Little) => None,
            ValueCodec::Bytes(Endian::Big) => Some("big-endian".to_owned()),
            ValueCodec::Pcodec(config) => Some(format!("pcodec {}", config.level)),
            ValueCodec::Ambar(config) => {
                let fast = if config.fast { " fast" } else { "" };
                Some(match config.error_bound {
                    ErrorBound::Lossless => format!("ambar{fast} lossless"),
                    bound => format!("ambar{fast} {}", format_bound(bound)),
                })
            }
            ValueCodec::Simplices => Some("simplices".to_owned()),
            ValueCodec::VlenUtf8 => Some("vlen-utf8".to_owned()),
            ValueCodec::VlenBytes => Some("vlen-bytes".to_owned()),
        };
        let rest = self.bytes.iter().map(|codec| match codec {
            ByteCodec::Crc32c => "crc32c".to_owned(),
            ByteCodec::Zstd(config) => format!("zstd {}", config.level),
            ByteCodec::Blosc(config) => config.describe(),
        });
        let words: Vec<String> = arrays.chain(first).chain(rest).collect();
        words.join(", ")
    }
}

/// An array-to-array codec; `None` for other codecs.
fn array_codec(
    codec: &MetadataV3,
    dtype: &DataType,
    dimensions: usize,
) -> Result<Option<ArrayCodec>> {
    match codec.name() {
        "transpose" if dtype.size().is_some() => {
            let array_to_array::TransposeConfig { order } = configuration(codec)?;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..dimensions) {
                return Err(Error::corrupt(format!(
                    "codec `transpose` has the order {order:?}; expected each of the {dimensions} \
                     dimensions once"
                )));
            }
            Ok(Some(ArrayCodec::Transpose(order)))
        }
        "numcodecs.delta" if array_to_array::supports_delta(dtype) => {
            configuration::<array_to_array::DeltaConfig>(codec)?.check(dtype)?;
            Ok(Some(ArrayCodec::Delta))
        }
        _ => Ok(None),
    }
}

fn value_codec(codec: &MetadataV3, dtype: &DataType) -> Result<ValueCodec> {
    let fixed = dtype.size().is_some();
    match codec.name() {
        "bytes" if fixed => {
            let endian = codec
                .configuration()
                .and_then(|configuration| configuration.get("endian"))
                .and_then(Value::as_str);
            match endian {
                // The byte order of single bytes may be omitted.
                _ if dtype.word_size() == 1 => Ok(ValueCodec::Bytes(Endian::Little)),
                Some("little") => Ok(ValueCodec::Bytes(Endian::Little)),
                Some("big") => Ok(ValueCodec::Bytes(Endian::Big)),
                _ => Err(Error::corrupt(
                    "codec `bytes` has no valid `endian`; expected \"little\" or \"big\"",
                )),
            }
        }
        // Registered under two names.
        "numcodecs.pcodec" | "pcodec" if pcodec::supports(dtype) => {
            Ok(ValueCodec::Pcodec(configuration(codec)?))
        }
        "ambar" if ambar::supports(dtype) => Ok(ValueCodec::Ambar(configuration(codec)?)),
        simplices::NAME if simplices::supports(dtype) => Ok(ValueCodec::Simplices),
        "vlen-utf8" if *dtype == DataType::String => Ok(ValueCodec::VlenUtf8),
        "vlen-bytes" if *dtype == DataType::Bytes => Ok(ValueCodec::VlenBytes),
        other => Err(Error::unsupported(format!(
            "codec {other:?} for values of {dtype} is not known to this version of ambar"
        ))),
    }
}

fn byte_codec(codec: &MetadataV3) -> Result<ByteCodec> {
    match codec.name() {
        "crc32c" => Ok(ByteCodec::Crc32c),
        "zstd" => Ok(ByteCodec::Zstd(configuration(codec)?)),
        "blosc" => Ok(ByteCodec::Blosc(configuration(codec)?)),
        other => Err(Error::unsupported(format!(
            "codec {other:?} is not known to this version of ambar"
        ))),
    }
}

fn configuration<T: serde::de::DeserializeOwned>(codec: &MetadataV3) -> Result<T> {
    codec.to_typed_configuration().map_err(|error| {
        Error::corrupt(format!(
            "codec {:?} has no valid configuration: {error}",
            codec.name()
        ))
    })
}
