//! Chooses an array's codecs: encodes sampled chunks with the candidates of its profile.
//!
//! The choice depends only on the values, never on timing, so that writing a store twice
//! gives the same bytes.

use std::collections::HashMap;

use super::Profile;
use super::candidates::{Candidate, Scope, candidates};
use super::chain::CodecChain;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::parallel;

/// Number of sampled chunks.
const SAMPLES: usize = 3;

/// Sampled raw bytes of arrays that are read as a whole, whose chunks are small and differ.
const SAMPLED_BYTES: u64 = 768 << 10;

/// Maximum number of sampled chunks of such arrays.
const MAX_SAMPLES: usize = 12;

/// Candidates whose cost on the middle sample exceeds this multiple of the lowest cost are dropped.
const MAX_COST_RATIO: f64 = 1.05;

/// The same for long chunks, of which shorter ones are tried first: they show only a part of the repetitions.
const MAX_LONG_COST_RATIO: f64 = 1.2;

/// A sample that a candidate makes smaller than its raw size by more than this factor does not
/// represent the others.
const UNINFORMATIVE_RATIO: f64 = 32.0;

/// The chosen chain, and the sampled chunks it has encoded, by index.
pub(crate) struct CodecChoice {
    pub chain: CodecChain,
    pub encoded: HashMap<usize, Vec<u8>>,
    /// Encoded bytes per value.
    pub bytes: f64,
    /// The same plus the weight of decoding time.
    pub cost: f64,
}

/// How an array is written and read.
#[derive(Clone, Copy)]
pub(crate) struct Purpose {
    pub profile: Profile,
    /// Whether its chunks hold unit blocks whose positions are known.
    pub blocks: bool,
    /// Whether its dimensions are those of a grid, along which the codec `ambar` can predict.
    pub predict: bool,
    /// Whether it is written in parts while a program waits, so that encoding must be fast too.
    pub streamed: bool,
    /// Whether it is usually read as a whole.
    pub whole: bool,
}

/// Sampled chunks of an array.
pub(crate) struct ChunkSamples<'a> {
    pub dtype: &'a DataType,
    pub chunk_shape: &'a [u64],
    /// The chunks' indices.
    pub chunks: Vec<usize>,
}

impl ChunkSamples<'_> {
    fn values_per_chunk(&self) -> f64 {
        self.chunk_shape.iter().product::<u64>() as f64
    }
}

/// Indices of the sampled chunks of `count`, evenly spread over the array.
pub(crate) fn samples(count: usize) -> Vec<usize> {
    spread(count, SAMPLES)
}

fn spread(count: usize, most: usize) -> Vec<usize> {
    let tried = count.min(most);
    (0..tried)
        .map(|i| (2 * i + 1) * count / (2 * tried))
        .collect()
}

/// Chooses the chain for `count` chunks of `chunk_shape`; `encode(chain, index)` encodes one of them.
///
/// # Errors
/// `Unsupported` if the profile has no codec for the type; errors of `encode`.
pub(crate) fn choose(
    purpose: Purpose,
    dtype: &DataType,
    chunk_shape: &[u64],
    count: usize,
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<CodecChoice> {
    let most = match dtype.size() {
        Some(size) if purpose.whole => {
            let chunk = (chunk_shape.iter().product::<u64>() * size as u64).max(1);
            ((SAMPLED_BYTES / chunk) as usize).clamp(SAMPLES, MAX_SAMPLES)
        }
        _ => SAMPLES,
    };
    let samples = ChunkSamples {
        dtype,
        chunk_shape,
        chunks: spread(count, most),
    };
    let tried = candidates(
        purpose.profile,
        purpose.streamed,
        &purpose.scopes(),
        dtype,
        chunk_shape,
    );
    cheapest(tried, &samples, purpose.whole, MAX_COST_RATIO, encode)?
        .ok_or_else(|| Error::unsupported(format!("no codec for values of {dtype}")))
}

impl Purpose {
    fn scopes(self) -> Vec<Scope> {
        let mut scopes = vec![Scope::Values, Scope::ValuesExceptRows, Scope::Strings];
        if self.blocks {
            scopes.push(Scope::Blocks);
        } else {
            scopes.extend([Scope::Integers, Scope::IntegerRows, Scope::FloatRows]);
        }
        if self.whole {
            scopes.push(Scope::Whole);
        }
        if self.predict && !self.streamed {
            scopes.push(Scope::Grid);
        }
        scopes
    }
}

/// Chooses the chain for long chunks, or tries only the chain `only` if given; `None` if the profile has no
/// candidate for them.
///
/// # Errors
/// Errors of `encode`.
pub(crate) fn choose_long(
    profile: Profile,
    only: Option<&CodecChain>,
    samples: &ChunkSamples<'_>,
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<CodecChoice>> {
    let scopes = [Scope::LongChunks, Scope::LongRows];
    let mut tried = candidates(profile, false, &scopes, samples.dtype, samples.chunk_shape);
    tried.retain(|candidate| only.is_none_or(|chain| candidate.chain == *chain));
    cheapest(tried, samples, true, MAX_LONG_COST_RATIO, encode)
}

/// Tries the codec `ambar.simplices` for corners of cells; `None` if the profile does not have it.
///
/// # Errors
/// Errors of `encode`.
pub(crate) fn choose_corners(
    profile: Profile,
    samples: &ChunkSamples<'_>,
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<CodecChoice>> {
    let scopes = [Scope::Corners];
    let tried = candidates(profile, false, &scopes, samples.dtype, samples.chunk_shape);
    cheapest(tried, samples, true, MAX_LONG_COST_RATIO, encode)
}

/// A candidate and the chunks that it has encoded, by index.
struct Trial {
    candidate: Candidate,
    encoded: HashMap<usize, Vec<u8>>,
}

impl Trial {
    /// Encoded bytes per value, for chunks of `values` values.
    fn bytes(&self, values: f64) -> f64 {
        let bytes: usize = self.encoded.values().map(Vec::len).sum();
        bytes as f64 / (self.encoded.len() as f64 * values).max(1.0)
    }

    /// The bytes per value, and the weight of decoding time.
    ///
    /// Reading an array as a whole takes at least the time of allocating its memory: below an eighth
    /// of its raw size, the weight of decoding shrinks with its bytes.
    fn cost(&self, samples: &ChunkSamples<'_>, whole: bool) -> f64 {
        let bytes = self.bytes(samples.values_per_chunk());
        let factor = match samples.dtype.size() {
            Some(size) if whole => (8.0 * bytes / size as f64).min(1.0),
            _ => 1.0,
        };
        let weight = self.candidate.weight;
        bytes * (1.0 + weight.penalty * factor) + weight.per_value * factor
    }
}

/// Returns the candidate of the lowest cost on the samples. All candidates encode the middle sample;
/// those with a cost of at most `max_ratio` times the lowest encode the other samples.
fn cheapest(
    candidates: Vec<Candidate>,
    samples: &ChunkSamples<'_>,
    whole: bool,
    max_ratio: f64,
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<CodecChoice>> {
    let trial = |candidate| Trial {
        candidate,
        encoded: HashMap::new(),
    };
    let mut trials: Vec<Trial> = candidates.into_iter().map(trial).collect();
    let (before, middle_and_after) = samples.chunks.split_at(samples.chunks.len() / 2);
    let (middle, after) = middle_and_after.split_at(middle_and_after.len().min(1));
    let others = [before, after].concat();
    encode_with_all(&mut trials, middle, &encode)?;
    let values = samples.values_per_chunk();
    let bytes = trials.iter().map(|trial| trial.bytes(values));
    let smallest = bytes.fold(f64::INFINITY, f64::min);
    // A nearly constant chunk does not represent the others: no candidate is dropped.
    let is_informative = |size: usize| smallest * UNINFORMATIVE_RATIO >= size as f64;
    if samples.dtype.size().is_some_and(is_informative) {
        let costs = trials.iter().map(|trial| trial.cost(samples, whole));
        let limit = max_ratio * costs.fold(f64::INFINITY, f64::min);
        trials.retain(|trial| trial.cost(samples, whole) <= limit);
    }
    encode_with_all(&mut trials, &others, &encode)?;
    // Of two candidates of equal cost the first is chosen.
    let cost = |trial: &Trial| trial.cost(samples, whole);
    let best = trials
        .into_iter()
        .min_by(|a, b| cost(a).total_cmp(&cost(b)));
    Ok(best.map(|best| CodecChoice {
        bytes: best.bytes(samples.values_per_chunk()),
        cost: cost(&best),
        chain: best.candidate.chain,
        encoded: best.encoded,
    }))
}

/// Encodes chunks with the candidate of each trial.
fn encode_with_all(
    trials: &mut [Trial],
    chunks: &[usize],
    encode: &(impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send),
) -> Result<()> {
    let encoded = parallel::try_map(trials.len() * chunks.len(), |task| {
        let chain = &trials[task / chunks.len()].candidate.chain;
        encode(chain, chunks[task % chunks.len()])
    })?;
    let mut encoded = encoded.into_iter();
    for trial in trials {
        let chunks = chunks.iter().copied();
        trial.encoded.extend(chunks.zip(encoded.by_ref()));
    }
    Ok(())
}
