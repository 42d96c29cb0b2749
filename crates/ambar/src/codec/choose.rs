//! Choosing an array's codecs: the candidates of its profile are tried on a few of its chunks.
//!
//! The choice depends on the values alone, never on timing, so that a store can be written twice
//! with the same bytes.

use std::collections::HashMap;

use super::blosc::{self, Compressor, Shuffle};
use super::chain::{ByteCodec, CodecChain, Endian, ValueCodec, ZstdConfig};
use super::{Profile, pcodec};
use crate::dtype::DataType;
use crate::error::Result;
use crate::parallel;

/// Chunks that are tried.
const SAMPLES: usize = 3;

/// The chain chosen, and the sampled chunks it has already encoded, by their index.
pub(crate) struct Chosen {
    pub chain: CodecChain,
    pub encoded: HashMap<usize, Vec<u8>>,
}

/// A chain to try, and what it counts for beside its bytes, for being slower to decode.
struct Candidate {
    chain: CodecChain,
    /// The part of its bytes that is added.
    penalty: f64,
    /// Bytes that are added for each value.
    per_value: f64,
}

/// Which of `count` chunks are tried: evenly spread, so that no region decides alone.
fn samples(count: usize) -> Vec<usize> {
    let tried = count.min(SAMPLES);
    (0..tried)
        .map(|i| (2 * i + 1) * count / (2 * tried))
        .collect()
}

/// What is known of an array beside its values.
#[derive(Clone, Copy)]
pub(crate) struct Purpose {
    pub profile: Profile,
    /// Whether its chunks hold unit blocks whose places are known.
    pub blocks: bool,
    /// Whether it is written part by part while somebody waits, so that encoding must be quick too.
    pub streamed: bool,
}

/// Chooses the chain for `count` chunks, of which `encode(chain, index)` encodes one.
pub(crate) fn choose(
    purpose: Purpose,
    dtype: &DataType,
    (count, chunk_values): (usize, usize),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Chosen> {
    let samples = samples(count);
    let mut candidates = match purpose {
        Purpose {
            profile: Profile::Balanced,
            streamed: true,
            ..
        } => streamed(dtype),
        Purpose { profile, .. } => candidates(profile, dtype),
    };
    if purpose.blocks && purpose.profile == Profile::Small {
        // Across blocks that touch it predicts far better; but readers need ambar for it.
        candidates.push(Candidate {
            chain: CodecChain::bounded(0.0),
            penalty: 0.01,
            per_value: 0.0,
        });
    }
    let tried = parallel::try_map(candidates.len() * samples.len(), |task| {
        let chain = &candidates[task / samples.len()].chain;
        encode(chain, samples[task % samples.len()])
    })?;
    let mut tried = tried.into_iter();
    let mut best: Option<(f64, Chosen)> = None;
    let values = (samples.len() * chunk_values) as f64;
    for candidate in candidates {
        let Candidate {
            chain,
            penalty,
            per_value,
        } = candidate;
        let encoded: HashMap<usize, Vec<u8>> =
            samples.iter().copied().zip(tried.by_ref()).collect();
        let bytes: usize = encoded.values().map(Vec::len).sum();
        let cost = bytes as f64 * (1.0 + penalty) + per_value * values;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, Chosen { chain, encoded }));
        }
    }
    best.map(|(_, chosen)| chosen)
        .ok_or_else(|| crate::Error::unsupported(format!("no codec for values of {dtype}")))
}

/// The candidates of `balanced` for what is written part by part: those that encode at 200 MB/s and
/// more on one core (decision 0009), and lose little by it.
fn streamed(dtype: &DataType) -> Vec<Candidate> {
    let mut candidates = candidates(Profile::Balanced, dtype);
    for candidate in &mut candidates {
        candidate.chain.quicken();
        if candidate.chain.is_pcodec() {
            // Looking for modes and differences has to pay.
            candidate.penalty = 0.05;
        }
    }
    if pcodec::takes(dtype) {
        candidates.push(Candidate {
            chain: CodecChain::checksummed(ValueCodec::Pcodec(pcodec::Config::plain(3)), None),
            penalty: 0.0,
            per_value: 0.2,
        });
    }
    candidates
}

/// The chain for values that are not known yet: shuffled, and compressed quickly.
pub(crate) fn usual(profile: Profile, dtype: &DataType) -> CodecChain {
    let mut candidates = candidates(profile, dtype);
    candidates.truncate(3);
    candidates
        .pop()
        .map_or_else(CodecChain::raw, |candidate| candidate.chain)
}

/// The candidates, quickest to decode first: it wins where another is no smaller.
///
/// Decoding a value takes, on one core, about 0.4 ns with lz4, 1 to 2 ns with zstd 3, 3 ns with pcodec
/// and more with bit shuffle, whatever it is compressed to; in `balanced` a nanosecond weighs as much
/// as a tenth of a byte. What is raw needs no scratch memory either: in `fast` lz4 has to save a fifth.
fn candidates(profile: Profile, dtype: &DataType) -> Vec<Candidate> {
    let Some(size) = dtype.size() else {
        return texts(profile, dtype);
    };
    let plain = |compressor, penalty| Candidate {
        chain: CodecChain::checksummed(ValueCodec::Bytes(Endian::Little), compressor),
        penalty,
        per_value: 0.0,
    };
    let blosc = |cname, clevel, shuffle| {
        Some(ByteCodec::Blosc(blosc::Config {
            // Blosc shuffles nothing longer than 255 bytes; text is shuffled by its characters.
            typesize: if matches!(dtype, DataType::FixedUtf32 { .. }) || size > 255 {
                dtype.word_size()
            } else {
                size.max(1)
            },
            cname,
            clevel,
            shuffle,
            blocksize: 0,
        }))
    };
    let pcodec = |level| {
        pcodec::takes(dtype).then(|| Candidate {
            chain: CodecChain::checksummed(ValueCodec::Pcodec(pcodec::Config::new(level)), None),
            penalty: 0.0,
            per_value: 0.0,
        })
    };
    let slower = |candidate: Candidate, per_value| Candidate {
        per_value,
        ..candidate
    };
    let (shuffle, bits) = (Shuffle::Bytes, Shuffle::Bits);
    let mut candidates = vec![plain(None, 0.0)];
    match profile {
        Profile::Fast => candidates.push(plain(blosc(Compressor::Lz4, 5, shuffle), 0.25)),
        Profile::Balanced => {
            let blosc = |cname, level, shuffle| plain(blosc(cname, level, shuffle), 0.0);
            candidates.push(slower(blosc(Compressor::Lz4, 5, shuffle), 0.04));
            candidates.push(slower(blosc(Compressor::Zstd, 3, shuffle), 0.15));
            candidates.extend(pcodec(8).map(|candidate| slower(candidate, 0.3)));
            candidates.push(slower(blosc(Compressor::Zstd, 3, bits), 0.35));
        }
        Profile::Small => {
            // Those of `Balanced`, but by their size alone, and slower ones. Bit shuffle gains
            // nothing from higher levels; pcodec little, and no time is lost in decoding.
            candidates.push(plain(blosc(Compressor::Lz4, 5, shuffle), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 3, shuffle), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 9, shuffle), 0.0));
            candidates.extend(pcodec(8));
            candidates.extend(pcodec(12));
            candidates.push(plain(blosc(Compressor::Zstd, 3, bits), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 5, bits), 0.0));
        }
    }
    candidates
}

/// The candidates for texts and byte strings.
fn texts(profile: Profile, dtype: &DataType) -> Vec<Candidate> {
    let candidate = |level: Option<i32>, penalty| Candidate {
        chain: CodecChain::checksummed(
            if *dtype == DataType::String {
                ValueCodec::VlenUtf8
            } else {
                ValueCodec::VlenBytes
            },
            level.map(|level| {
                ByteCodec::Zstd(ZstdConfig {
                    level,
                    checksum: false,
                })
            }),
        ),
        penalty,
        per_value: 0.0,
    };
    let level = if profile == Profile::Small { 19 } else { 3 };
    vec![candidate(None, 0.0), candidate(Some(level), 0.05)]
}
