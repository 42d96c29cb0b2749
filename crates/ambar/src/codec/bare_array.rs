//! Bare arrays: small arrays encoded without a node, such as those that mesh series pack together.

use serde_json::{Value, json};
use zarrs_metadata::v3::MetadataV3;

use super::ambar::ChunkGeometry;
use super::array_to_array::{self, ArrayCodec};
use super::candidates::{Candidate, Scope, candidates};
use super::chain::{ByteCodec, CodecChain, ValueCodec};
use super::scratch::with_scratch;
use super::{Profile, pcodec, simplices};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::limits::checked_product;
use crate::parallel;

/// Characters of the codecs' names that count as one byte: the names are stored compressed, with equal ones.
const TEXT_BYTES: usize = 4;

/// Divisor of the smallest result at low levels. Chains whose result is larger by at most the quotient, and
/// `NEAR_BYTES`, are encoded with high levels.
const NEAR_DIVISOR: usize = 4;

/// Bytes that are added to the quotient by `NEAR_DIVISOR`. Results of a few bytes differ by more than that quotient.
const NEAR_BYTES: usize = 128;

/// The encoded values of a small array.
#[derive(Clone, Debug)]
pub struct BareArray {
    /// The names of its codecs, separated by spaces; decoding needs no configuration.
    pub codecs: String,
    /// The encoded bytes, without a checksum.
    pub bytes: Vec<u8>,
}

/// Encodes the values of an array of a fixed-size `dtype` (native byte order, C order) with the codecs of
/// the smallest result. With `predict`, the codec `ambar` is one of the candidates.
///
/// # Errors
/// `Invalid` if shape and bytes do not fit.
pub fn encode_bare_array(
    dtype: &DataType,
    shape: &[u64],
    raw: &[u8],
    predict: bool,
) -> Result<BareArray> {
    check(dtype, shape, raw.len()).map_err(Error::invalid)?;
    let chains = chains_of_array(dtype, shape, predict);
    let encode = |chain: &CodecChain| encode_with_chain(chain, dtype, shape, raw);
    // Low levels, which take little time, show which chains are worth high ones.
    let mut low_chains: Vec<CodecChain> = Vec::new();
    for chain in &chains {
        let low = chain.at_low_levels();
        if !low_chains.contains(&low) {
            low_chains.push(low);
        }
    }
    let encoded = parallel::try_map(low_chains.len(), |index| encode(&low_chains[index]))?;
    let known = |chain: &CodecChain| {
        let index = low_chains.iter().position(|low| low == chain)?;
        encoded.get(index)
    };
    let smallest = encoded.iter().map(Vec::len).min().unwrap_or(0);
    let limit = smallest + smallest / NEAR_DIVISOR + NEAR_BYTES;
    let is_near = |chain: &&CodecChain| {
        known(&chain.at_low_levels()).is_some_and(|bytes| bytes.len() <= limit)
    };
    let near: Vec<&CodecChain> = chains.iter().filter(is_near).collect();
    let tried = parallel::try_map(near.len(), |index| {
        let chain = near[index];
        Ok(BareArray {
            codecs: names(chain),
            bytes: match known(chain) {
                Some(bytes) => bytes.clone(),
                None => encode(chain)?,
            },
        })
    })?;
    tried
        .into_iter()
        .min_by_key(stored_bytes)
        .ok_or_else(|| Error::unsupported(format!("no codec for values of {dtype}")))
}

/// The chains that are tried for an array, with high levels.
fn chains_of_array(dtype: &DataType, shape: &[u64], predict: bool) -> Vec<CodecChain> {
    let mut scopes = vec![
        Scope::Values,
        Scope::ValuesExceptRows,
        Scope::Integers,
        Scope::IntegerRows,
        Scope::FloatRows,
        Scope::Whole,
        Scope::Corners,
    ];
    if predict {
        scopes.push(Scope::Grid);
    }
    let mut chains: Vec<CodecChain> = Vec::new();
    for Candidate { mut chain, .. } in candidates(Profile::Small, false, &scopes, dtype, shape) {
        chain.raise_levels();
        // The array that contains the bytes has a checksum.
        chain.bytes.retain(|codec| *codec != ByteCodec::Crc32c);
        if !chains.contains(&chain) {
            chains.push(chain);
        }
    }
    chains
}

fn encode_with_chain(
    chain: &CodecChain,
    dtype: &DataType,
    shape: &[u64],
    raw: &[u8],
) -> Result<Vec<u8>> {
    let geometry = ChunkGeometry::array(shape);
    with_scratch(|scratch| chain.encode(dtype, raw, &geometry, &mut scratch.codecs))
}

/// The size of an array with the names of its codecs.
fn stored_bytes(array: &BareArray) -> usize {
    array.bytes.len() + array.codecs.len() / TEXT_BYTES
}

/// Encodes the values of an array with the codecs of these names (see [`BareArray::codecs`]).
///
/// # Errors
/// `Invalid` if shape and bytes do not fit, or a codec does not support the values; `Unsupported`.
pub fn encode_bare_array_with(
    codecs: &str,
    dtype: &DataType,
    shape: &[u64],
    raw: &[u8],
) -> Result<Vec<u8>> {
    check(dtype, shape, raw.len()).map_err(Error::invalid)?;
    let chain = chain_of(codecs, dtype, shape.len())?;
    encode_with_chain(&chain, dtype, shape, raw)
}

/// Decodes the result of [`encode_bare_array`] into `out`, in native byte order.
///
/// # Errors
/// `Corrupt` if the bytes or the codecs are not those of such an array; `Unsupported`; `Limit`.
pub fn decode_bare_array(
    codecs: &str,
    dtype: &DataType,
    shape: &[u64],
    encoded: &[u8],
    out: &mut [u8],
    limits: &Limits,
) -> Result<()> {
    check(dtype, shape, out.len()).map_err(Error::corrupt)?;
    Limits::check("a chunk", out.len() as u64, limits.chunk_bytes)?;
    let chain = chain_of(codecs, dtype, shape.len())?;
    with_scratch(|scratch| chain.decode(dtype, shape, encoded, out, limits, &mut scratch.codecs))
}

/// The names of a chain's codecs.
fn names(chain: &CodecChain) -> String {
    let arrays = chain.arrays.iter().map(|codec| match codec {
        ArrayCodec::Transpose(_) => "transpose",
        ArrayCodec::Delta => "delta",
    });
    let values = match chain.values {
        ValueCodec::Pcodec(_) => "pcodec",
        ValueCodec::Ambar(_) => "ambar",
        ValueCodec::Simplices => simplices::NAME,
        ValueCodec::Bytes(_) | ValueCodec::VlenUtf8 | ValueCodec::VlenBytes => "bytes",
    };
    let bytes = chain.bytes.iter().map(|codec| match codec {
        ByteCodec::Zstd(_) => "zstd",
        ByteCodec::Blosc(_) => "blosc",
        ByteCodec::Crc32c => "crc32c",
    });
    let names: Vec<&str> = arrays.chain([values]).chain(bytes).collect();
    names.join(" ")
}

/// The chain of these names, with as much configuration as decoding needs.
fn chain_of(names: &str, dtype: &DataType, dimensions: usize) -> Result<CodecChain> {
    let codec = |name: &str| {
        Ok(match name {
            "transpose" => {
                let last = dimensions.saturating_sub(1);
                let order: Vec<usize> = [last].into_iter().chain(0..last).collect();
                json!({"name": name, "configuration": {"order": order}})
            }
            "delta" => {
                let name = array_to_array::numpy_name(dtype);
                json!({"name": "numcodecs.delta", "configuration": {"dtype": name}})
            }
            "pcodec" => {
                json!({"name": name, "configuration": pcodec::Config::new(0)})
            }
            "ambar" => json!({"name": name, "configuration": {"error_bound": 0.0}}),
            simplices::NAME => json!({"name": name}),
            "bytes" => json!({"name": name, "configuration": {"endian": "little"}}),
            "zstd" => json!({"name": name, "configuration": {"level": 0}}),
            "blosc" => json!({"name": name, "configuration":
                {"cname": "zstd", "clevel": 1, "shuffle": "shuffle"}}),
            _ => {
                return Err(Error::unsupported(format!(
                    "codec {name:.80?} of a small array is not known to this version of ambar"
                )));
            }
        })
    };
    let codecs = names.split(' ').map(codec).collect::<Result<Vec<_>>>()?;
    let codecs: Vec<MetadataV3> = serde_json::from_value(Value::Array(codecs))
        .map_err(|error| Error::corrupt(format!("invalid list of codecs: {error}")))?;
    CodecChain::from_metadata(&codecs, dtype, dimensions)
}

fn check(dtype: &DataType, shape: &[u64], bytes: usize) -> std::result::Result<(), String> {
    let size = dtype.size().unwrap_or(0) as u64;
    if size > 0 && checked_product(shape, size) == Some(bytes as u64) {
        return Ok(());
    }
    Err(format!(
        "{shape:?} values of {dtype} cannot have {bytes} bytes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_returns_the_encoded_values() {
        let corners: Vec<i64> = (0..300).flat_map(|i| [i, i + 1, i + 20]).collect();
        let raw: &[u8] = bytemuck::cast_slice(&corners);
        let bare_array = encode_bare_array(&DataType::Int64, &[300, 3], raw, false).unwrap();
        assert!(
            bare_array.bytes.len() < 200,
            "{} bytes",
            bare_array.bytes.len()
        );
        assert_eq!(bare_array.codecs, "transpose delta bytes zstd");
        let codecs = bare_array.codecs;
        let mut out = vec![0; raw.len()];
        decode_bare_array(
            &codecs,
            &DataType::Int64,
            &[300, 3],
            &bare_array.bytes,
            &mut out,
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(out, raw);
        for (codecs, shape, bytes) in [
            (&codecs[..], &[300, 4][..], &bare_array.bytes[..]),
            (&codecs, &[300, 3], b"no"),
            ("bytes gzip", &[300, 3], &bare_array.bytes),
            ("", &[300, 3], &bare_array.bytes),
        ] {
            let error = decode_bare_array(
                codecs,
                &DataType::Int64,
                shape,
                bytes,
                &mut out,
                &Limits::default(),
            );
            assert!(error.is_err(), "{codecs} {shape:?}");
        }
    }

    #[test]
    fn empty_arrays_and_values_of_every_type_are_decoded() {
        for (dtype, size) in [
            (DataType::Bool, 1),
            (DataType::UInt8, 1),
            (DataType::Float64, 8),
        ] {
            for count in [0u64, 1, 77] {
                let raw: Vec<u8> = (0..count * size).map(|i| (i % 2) as u8).collect();
                let bare_array = encode_bare_array(&dtype, &[count], &raw, true).unwrap();
                let mut out = vec![9; raw.len()];
                let codecs = &bare_array.codecs;
                decode_bare_array(
                    codecs,
                    &dtype,
                    &[count],
                    &bare_array.bytes,
                    &mut out,
                    &Limits::default(),
                )
                .unwrap();
                assert_eq!(out, raw, "{dtype} {count}");
            }
        }
    }

    #[test]
    fn the_smallest_result_of_all_chains_is_found_although_another_chain_is_smaller_at_low_levels()
    {
        let rows: Vec<i32> = (0..1800).map(|i| i / 3 * 37 % 101).collect();
        let multiples: Vec<i32> = (0..900).map(|i| i / 3 * (i % 3 + 1) % 97).collect();
        for (shape, values) in [(&[600, 3][..], &rows), (&[900], &multiples)] {
            let dtype = DataType::Int32;
            let raw: &[u8] = bytemuck::cast_slice(values);
            let encode = |chain: &CodecChain| encode_with_chain(chain, &dtype, shape, raw).unwrap();
            let chains = chains_of_array(&dtype, shape, true);
            let low = chains.iter().map(|chain| encode(&chain.at_low_levels()));
            let low: Vec<usize> = low.map(|bytes| bytes.len()).collect();
            let high = chains.iter().map(|chain| BareArray {
                codecs: names(chain),
                bytes: encode(chain),
            });
            let (winner, expected) = high
                .enumerate()
                .min_by_key(|(_, array)| stored_bytes(array))
                .unwrap();
            assert!(low.iter().any(|size| *size < low[winner]), "{low:?}");
            let found = encode_bare_array(&dtype, shape, raw, true).unwrap();
            assert_eq!(found.codecs, expected.codecs);
            assert_eq!(found.bytes, expected.bytes);
        }
    }
}
