//! Codec pipelines round-trip values, and return errors for damaged or forged chunks.

use crc_fast::crc32_iscsi as crc32c;
use proptest::prelude::*;
use serde_json::json;
use zarrs_metadata::v3::MetadataV3;

use super::scratch::CodecScratch;
use super::{ChunkGeometry, CodecChain, Profile, Purpose, choose};
use crate::dtype::DataType;
use crate::error::Result;
use crate::limits::Limits;

/// Chains that this library writes or reads, as metadata, each with a type that it supports.
fn chains() -> Vec<(DataType, CodecChain)> {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let crc = json!({"name": "crc32c"});
    let blosc = |cname: &str, shuffle: &str, typesize: usize| {
        json!({"name": "blosc", "configuration": {
            "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": 0,
        }})
    };
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": true}});
    let pcodec = |level: usize| {
        json!({"name": "numcodecs.pcodec", "configuration": {
            "level": level, "mode_spec": "auto", "delta_spec": "auto",
            "paging_spec": "equal_pages_up_to", "delta_encoding_order": null,
            "equal_pages_up_to": 300,
        }})
    };
    let ambar = json!({"name": "ambar", "configuration": {"error_bound": 0.0}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [0]}});
    let mut chains = Vec::new();
    for dtype in [
        DataType::UInt8,
        DataType::Int16,
        DataType::Float32,
        DataType::Float64,
        DataType::Complex128,
        DataType::FixedBytes { bytes: 5 },
    ] {
        let size = dtype.size().unwrap();
        let name = super::array_to_array::numpy_name(&dtype);
        let delta = json!({"name": "numcodecs.delta", "configuration": {"dtype": name}});
        for codecs in [
            json!([little]),
            json!([little, crc]),
            json!([big, crc]),
            json!([little, zstd, crc]),
            json!([little, blosc("lz4", "shuffle", size), crc]),
            json!([little, blosc("zstd", "bitshuffle", size), crc]),
            json!([big, blosc("blosclz", "noshuffle", 1), zstd, crc, crc]),
            json!([pcodec(8), crc]),
            json!([pcodec(4), zstd, blosc("lz4hc", "shuffle", 1)]),
            json!([ambar, crc]),
            json!([transpose, little, crc]),
            json!([delta, big, crc]),
            json!([delta, transpose, delta, pcodec(8), crc]),
            json!([delta, little, blosc("zstd", "shuffle", size)]),
        ] {
            let codecs: Vec<MetadataV3> = serde_json::from_value(codecs).unwrap();
            let supports = codecs.iter().all(|codec| match codec.name() {
                "numcodecs.pcodec" => super::pcodec::supports(&dtype),
                "numcodecs.delta" => super::array_to_array::supports_delta(&dtype),
                "ambar" => super::ambar::supports(&dtype),
                _ => true,
            });
            if supports {
                chains.push((
                    dtype.clone(),
                    CodecChain::from_metadata(&codecs, &dtype, 1).unwrap(),
                ));
            }
        }
    }
    chains
}

/// Encodes a chunk that is an array of one dimension.
fn encode(chain: &CodecChain, dtype: &DataType, raw: &[u8]) -> Result<Vec<u8>> {
    let shape = [(raw.len() / dtype.size().unwrap_or(1).max(1)) as u64];
    let geometry = ChunkGeometry::array(&shape);
    chain.encode(dtype, raw, &geometry, &mut CodecScratch::default())
}

fn decode(
    chain: &CodecChain,
    dtype: &DataType,
    encoded: &[u8],
    len: usize,
) -> crate::Result<Vec<u8>> {
    let mut out = vec![0xa5; len];
    let shape = [(len / dtype.size().unwrap()) as u64];
    chain.decode(
        dtype,
        &shape,
        encoded,
        &mut out,
        &Limits::default(),
        &mut CodecScratch::default(),
    )?;
    Ok(out)
}

/// Bytes that compress, at least in part.
fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        proptest::collection::vec(0u8..3, 0..4000),
        (any::<u8>(), 0usize..5000).prop_map(|(value, len)| vec![value; len]),
        (0usize..1500).prop_map(|n| (0..n as u16).flat_map(|i| (i / 3).to_le_bytes()).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_chain_round_trips(bytes in values()) {
        for (dtype, chain) in chains() {
            let size = dtype.size().unwrap();
            let raw = &bytes[..bytes.len() / size * size];
            let encoded = encode(&chain, &dtype, raw).unwrap();
            let metadata = serde_json::from_value::<Vec<MetadataV3>>(chain.to_json(&dtype)).unwrap();
            let again = CodecChain::from_metadata(&metadata, &dtype, 1).unwrap();
            prop_assert_eq!(&again, &chain);
            prop_assert!(decode(&again, &dtype, &encoded, raw.len()).unwrap() == raw, "{dtype} {}", chain.describe());
            // Into unaligned memory.
            let mut out = vec![0; raw.len() + 1];
            let shape = [(raw.len() / size) as u64];
            chain.decode(&dtype, &shape, &encoded, &mut out[1..], &Limits::default(), &mut CodecScratch::default()).unwrap();
            prop_assert!(&out[1..] == raw, "unaligned {dtype} {}", chain.describe());
            // More or fewer values than expected are an error.
            prop_assert!(decode(&chain, &dtype, &encoded, raw.len() + size).is_err());
            if !raw.is_empty() {
                prop_assert!(decode(&chain, &dtype, &encoded, raw.len() - size).is_err());
            }
        }
    }

    #[test]
    fn checksums_detect_damage(bytes in values(), at in any::<prop::sample::Index>()) {
        for (dtype, chain) in chains().into_iter().filter(|(_, chain)| chain.is_checksummed()) {
            let size = dtype.size().unwrap();
            let raw = &bytes[..bytes.len() / size * size];
            let mut encoded = encode(&chain, &dtype, raw).unwrap();
            let bit = at.index(encoded.len() * 8);
            encoded[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(chain.verify(&encoded).is_err());
            prop_assert!(decode(&chain, &dtype, &encoded, raw.len()).is_err());
            encoded[bit / 8] ^= 1 << (bit % 8);
            encoded.truncate(at.index(encoded.len()));
            prop_assert!(decode(&chain, &dtype, &encoded, raw.len()).is_err());
        }
    }

    /// Forged chunks can have valid checksums: decoding returns an error or the expected number of values.
    #[test]
    fn forged_chunks_do_no_harm(
        bytes in values(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        for (dtype, chain) in chains() {
            let size = dtype.size().unwrap();
            let raw = &bytes[..bytes.len() / size * size];
            let encoded = encode(&chain, &dtype, raw).unwrap();
            let sums = if chain.is_checksummed() { 4 } else { 0 };
            let mut payload = encoded[..encoded.len() - sums].to_vec();
            if let Some(cut) = cut.filter(|_| !payload.is_empty()) {
                payload.truncate(cut.index(payload.len()));
            }
            for (at, value) in &edits {
                if !payload.is_empty() {
                    let place = at.index(payload.len());
                    payload[place] ^= value;
                }
            }
            if sums > 0 {
                let sum = crc32c(&payload);
                payload.extend_from_slice(&sum.to_le_bytes());
            }
            let _ = decode(&chain, &dtype, &payload, raw.len());
        }
    }

    #[test]
    fn strings_round_trip(texts in proptest::collection::vec(".{0,20}", 0..50)) {
        for profile in [Profile::Fast, Profile::Balanced, Profile::Small] {
            let values = || texts.iter().map(|text| text.as_bytes());
            let chosen = choose(whole(profile), &DataType::String, &[1], 1, |chain, _| {
                chain.encode_strings(values())
            }).unwrap();
            let encoded = &chosen.encoded[&0];
            let mut scratch = CodecScratch::default();
            let decoded = chosen.chain.decode_strings(encoded, texts.len(), &Limits::default(), &mut scratch).unwrap();
            prop_assert_eq!(decoded, values().collect());
            prop_assert!(chosen.chain.decode_strings(encoded, texts.len() + 1, &Limits::default(), &mut scratch).is_err());
        }
    }

    #[test]
    fn forged_strings_do_no_harm(bytes in values(), count in 0usize..100) {
        let metadata = [MetadataV3::new("vlen-utf8")];
        let chain = CodecChain::from_metadata(&metadata, &DataType::String, 1).unwrap();
        let mut payload = (count as u32).to_le_bytes().to_vec();
        payload.extend_from_slice(&bytes);
        let decoded = chain.decode_strings(&payload, count, &Limits::default(), &mut CodecScratch::default());
        if let Ok(texts) = decoded {
            prop_assert_eq!(texts.len(), count);
            prop_assert_eq!(texts.bytes.len() + 4 * count, bytes.len());
        }
    }
}

#[test]
fn equal_values_are_tiny() {
    for dtype in [DataType::Float64, DataType::Int32, DataType::UInt8] {
        let raw = vec![7u8; 1 << 18];
        let raw = &raw[..raw.len() / 8 * 8];
        for profile in [Profile::Balanced, Profile::Small] {
            let values = [(raw.len() / dtype.size().unwrap()) as u64];
            let chosen = choose(whole(profile), &dtype, &values, 6, |chain, _| {
                encode(chain, &dtype, raw)
            })
            .unwrap();
            let bytes = chosen.encoded.values().next().unwrap().len();
            assert!(
                bytes < raw.len() / 200,
                "{dtype} {profile:?}: {bytes} bytes"
            );
        }
    }
}

/// An array that is written whole.
fn whole(profile: Profile) -> Purpose {
    Purpose {
        profile,
        blocks: false,
        predict: false,
        streamed: false,
        whole: false,
    }
}

#[test]
fn noise_is_stored_verbatim() {
    let mut state = 1u64;
    let raw: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(1 << 16)
    .collect();
    for streamed in [false, true] {
        let purpose = Purpose {
            streamed,
            ..whole(Profile::Balanced)
        };
        let chosen = choose(
            purpose,
            &DataType::Float64,
            &[raw.len() as u64 / 8],
            3,
            |chain, _| encode(chain, &DataType::Float64, &raw),
        );
        assert_eq!(chosen.unwrap().chain.describe(), "raw, crc32c");
    }
}

#[test]
fn a_constant_chunk_drops_no_candidate() {
    let smooth: Vec<f64> = (0..1 << 14).map(|i| (f64::from(i) * 1e-3).sin()).collect();
    let constant = vec![1.5f64; smooth.len()];
    let chosen = |chunks: [&[f64]; 3]| {
        let shape = [smooth.len() as u64];
        let encode = |chain: &CodecChain, i: usize| {
            encode(chain, &DataType::Float64, bytemuck::cast_slice(chunks[i]))
        };
        let purpose = whole(Profile::Balanced);
        let chosen = choose(purpose, &DataType::Float64, &shape, 3, encode);
        chosen.unwrap().chain.describe()
    };
    let expected = chosen([&smooth; 3]);
    assert_ne!(chosen([&constant; 3]), expected);
    // All candidates encode the chunk in the middle first.
    assert_eq!(chosen([&smooth, &constant, &smooth]), expected);
}

#[test]
fn unknown_codecs_are_named() {
    for (codecs, word) in [
        (json!(["bytes", "gzip"]), "gzip"),
        (json!(["numcodecs.bitround", "bytes"]), "bitround"),
        (json!(["vlen-utf8"]), "vlen-utf8"),
        (json!([]), "no array-to-bytes codec"),
    ] {
        let codecs: Vec<MetadataV3> = serde_json::from_value(codecs).unwrap();
        let error = CodecChain::from_metadata(&codecs, &DataType::UInt8, 1).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    for bad in [
        json!([{"name": "blosc", "configuration": {"cname": "lz5"}}]),
        json!([{"name": "zstd", "configuration": {"level": "high"}}]),
        json!(["zstd"]),
    ] {
        let mut codecs = vec![MetadataV3::new("bytes")];
        codecs.extend(serde_json::from_value::<Vec<MetadataV3>>(bad).unwrap());
        assert!(CodecChain::from_metadata(&codecs, &DataType::UInt8, 1).is_err());
    }
}

/// Columns of floats, and fields that are not on a grid, have no additional candidates.
#[test]
fn shapes_decide_which_rows_of_the_table_are_tried() {
    use super::candidates::{Scope, candidates};
    for profile in [Profile::Fast, Profile::Balanced, Profile::Small] {
        let count = |scopes: &[Scope], dtype: DataType, shape: &[u64]| {
            candidates(profile, false, scopes, &dtype, shape).len()
        };
        let rows = [Scope::Integers, Scope::IntegerRows, Scope::FloatRows];
        let grid = [Scope::Grid];
        for shape in [&[][..], &[1000], &[1000, 1], &[16, 16, 16], &[100, 33]] {
            assert_eq!(count(&rows, DataType::Float64, shape), 0);
            assert_eq!(count(&rows, DataType::Bool, shape), 0);
        }
        assert_ne!(count(&rows, DataType::Int32, &[1000, 4]), 0);
        assert_ne!(count(&rows, DataType::Float64, &[1000, 3]), 0);
        for shape in [&[1000][..], &[1000, 8], &[8, 8, 1000]] {
            assert_eq!(count(&grid, DataType::Float32, shape), 0);
        }
        assert_eq!(count(&grid, DataType::Int32, &[32, 32, 32]), 0);
        let tried = usize::from(profile != Profile::Fast);
        assert_eq!(count(&grid, DataType::Float32, &[32, 32]), tried);
        assert_eq!(count(&grid, DataType::Float32, &[32, 32, 3]), tried);
    }
}

/// `raw` never compresses, for any array.
#[test]
fn raw_tries_one_chain() {
    let purpose = Purpose {
        predict: true,
        whole: true,
        ..whole(Profile::Raw)
    };
    let raw = [0; 4096];
    for (dtype, shape) in [(DataType::Int32, [256, 4]), (DataType::Float32, [32, 32])] {
        let chosen = choose(purpose, &dtype, &shape, 1, |chain, _| {
            encode(chain, &dtype, &raw)
        });
        assert_eq!(chosen.unwrap().chain, CodecChain::raw());
    }
}
