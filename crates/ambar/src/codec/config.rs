//! Chains of codecs as metadata: parsed, written, and put into words.

use serde_json::{Value, json};
use zarrs_metadata::v3::MetadataV3;

use super::chain::{ByteCodec, CodecChain, Endian, ValueCodec};
use super::{ambar, pcodec};
use crate::dtype::DataType;
use crate::error::{Error, Result};

impl CodecChain {
    /// The chain that `codecs` of Zarr v3 metadata describes, for values of `dtype`.
    ///
    /// # Errors
    /// `Unsupported` for codecs that this version lacks, naming them; `Corrupt` where a
    /// configuration makes no sense.
    pub fn from_metadata(codecs: &[MetadataV3], dtype: &DataType) -> Result<Self> {
        let Some((first, rest)) = codecs.split_first() else {
            return Err(Error::corrupt(
                "an array has no codec; at least `bytes` is expected",
            ));
        };
        let values = value_codec(first, dtype)?;
        let bytes = rest.iter().map(byte_codec).collect::<Result<_>>()?;
        Ok(Self { values, bytes })
    }

    /// `codecs` of Zarr v3 metadata.
    pub fn to_json(&self, dtype: &DataType) -> Value {
        let first = match &self.values {
            // Zarr wants the order of bytes left out where it means nothing.
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
            ValueCodec::VlenUtf8 => json!({"name": "vlen-utf8"}),
            ValueCodec::VlenBytes => json!({"name": "vlen-bytes"}),
        };
        let rest = self.bytes.iter().map(|codec| match codec {
            ByteCodec::Crc32c => json!({"name": "crc32c"}),
            ByteCodec::Zstd(config) => json!({"name": "zstd", "configuration": config}),
            ByteCodec::Blosc(config) => json!({"name": "blosc", "configuration": config}),
        });
        Value::Array(std::iter::once(first).chain(rest).collect())
    }

    /// The chain in words, such as `pcodec 8, crc32c`.
    pub fn describe(&self) -> String {
        let first = match &self.values {
            ValueCodec::Bytes(Endian::Little) if self.bytes.len() <= 1 => Some("raw".to_owned()),
            ValueCodec::Bytes(Endian::Little) => None,
            ValueCodec::Bytes(Endian::Big) => Some("big-endian".to_owned()),
            ValueCodec::Pcodec(config) => Some(format!("pcodec {}", config.level)),
            ValueCodec::Ambar(config) if config.error_bound > 0.0 => {
                Some(format!("ambar {:.3e}", config.error_bound))
            }
            ValueCodec::Ambar(_) => Some("ambar lossless".to_owned()),
            ValueCodec::VlenUtf8 => Some("vlen-utf8".to_owned()),
            ValueCodec::VlenBytes => Some("vlen-bytes".to_owned()),
        };
        let rest = self.bytes.iter().map(|codec| match codec {
            ByteCodec::Crc32c => "crc32c".to_owned(),
            ByteCodec::Zstd(config) => format!("zstd {}", config.level),
            ByteCodec::Blosc(config) => config.describe(),
        });
        first.into_iter().chain(rest).collect::<Vec<_>>().join(", ")
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
                // Where words are single bytes, their order means nothing and may be left out.
                _ if dtype.word_size() == 1 => Ok(ValueCodec::Bytes(Endian::Little)),
                Some("little") => Ok(ValueCodec::Bytes(Endian::Little)),
                Some("big") => Ok(ValueCodec::Bytes(Endian::Big)),
                _ => Err(Error::corrupt(
                    "codec `bytes` does not say a valid `endian`",
                )),
            }
        }
        // Registered both as numcodecs' and under a name of its own.
        "numcodecs.pcodec" | "pcodec" if pcodec::takes(dtype) => {
            Ok(ValueCodec::Pcodec(configuration(codec)?))
        }
        "ambar" if ambar::takes(dtype) => {
            let config: ambar::Config = configuration(codec)?;
            if config.error_bound >= 0.0 && config.error_bound.is_finite() {
                Ok(ValueCodec::Ambar(config))
            } else {
                Err(Error::corrupt(
                    "codec `ambar` does not say a valid `error_bound`",
                ))
            }
        }
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
