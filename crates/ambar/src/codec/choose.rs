//! Choosing an array's codecs: the candidates of its profile are tried on a few of its chunks.
//!
//! The choice depends on the values alone, never on timing, so that a store can be written twice
//! with the same bytes.

use std::collections::HashMap;

use super::Profile;
use super::candidates::{Candidate, candidates, cells, gridded, long, shaped, streamed, whole};
use super::chain::CodecChain;
use crate::dtype::DataType;
use crate::error::Result;
use crate::parallel;

/// Chunks that are tried.
const SAMPLES: usize = 3;

/// Raw bytes that are tried of arrays that are read as a whole, and chunks at most: those of grids are
/// small, and differ.
const SAMPLED_BYTES: u64 = 768 << 10;
const MOST_SAMPLES: usize = 12;

/// The chain chosen, and the sampled chunks it has already encoded, by their index.
pub(crate) struct Chosen {
    pub chain: CodecChain,
    pub encoded: HashMap<usize, Vec<u8>>,
    /// Bytes of a value.
    pub bytes: f64,
    /// The same, and what it takes to decode it in bytes.
    pub cost: f64,
}

/// Which of `count` chunks are tried: evenly spread, so that no region decides alone.
pub(crate) fn samples(count: usize) -> Vec<usize> {
    spread(count, SAMPLES)
}

fn spread(count: usize, most: usize) -> Vec<usize> {
    let tried = count.min(most);
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
    /// Whether its dimensions are those of a grid, and the codec `ambar` may predict along them.
    pub predict: bool,
    /// Whether it is written part by part while somebody waits, so that encoding must be quick too.
    pub streamed: bool,
    /// Whether it is read as a whole, and seldom in parts.
    pub whole: bool,
}

/// Chooses the chain for `count` chunks of a shape, of which `encode(chain, index)` encodes one.
pub(crate) fn choose(
    purpose: Purpose,
    dtype: &DataType,
    (count, chunk_shape): (usize, &[u64]),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Chosen> {
    let mut candidates = match purpose {
        Purpose {
            profile: Profile::Balanced,
            streamed: true,
            ..
        } => streamed(dtype),
        Purpose { profile, .. } => {
            let mut candidates = candidates(profile, dtype);
            if !purpose.blocks {
                candidates.extend(shaped(profile, dtype, chunk_shape));
            }
            if purpose.whole {
                whole(profile, dtype, &mut candidates);
            }
            candidates
        }
    };
    if purpose.predict && !purpose.streamed {
        candidates.extend(gridded(purpose.profile, dtype, chunk_shape));
    }
    if purpose.blocks && purpose.profile == Profile::Small {
        // Across blocks that touch it predicts far better; but readers need ambar for it.
        candidates.push(Candidate {
            chain: CodecChain::bounded(0.0),
            penalty: 0.01,
            per_value: 0.0,
        });
    }
    let most = match dtype.size() {
        Some(size) if purpose.whole => {
            let chunk = (chunk_shape.iter().product::<u64>() * size as u64).max(1);
            ((SAMPLED_BYTES / chunk) as usize).clamp(SAMPLES, MOST_SAMPLES)
        }
        _ => SAMPLES,
    };
    let samples = spread(count, most);
    least(
        candidates,
        (dtype, purpose.whole),
        (&samples, chunk_shape),
        encode,
    )?
    .ok_or_else(|| crate::Error::unsupported(format!("no codec for values of {dtype}")))
}

/// Chooses the chain for long chunks of a shape by those of the numbers `samples`, `only` that one
/// where it is given; `None` where the profile has none.
pub(crate) fn choose_long(
    (profile, only): (Profile, Option<&CodecChain>),
    dtype: &DataType,
    (samples, chunk_shape): (&[usize], &[u64]),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<Chosen>> {
    let mut candidates = long(profile, dtype, chunk_shape);
    candidates.retain(|candidate| only.is_none_or(|chain| candidate.chain == *chain));
    least(candidates, (dtype, true), (samples, chunk_shape), encode)
}

/// What the codec for corners of cells makes of the chunk number `sample` of a shape; `None` where it is
/// no candidate.
pub(crate) fn choose_cells(
    profile: Profile,
    dtype: &DataType,
    (sample, chunk_shape): (usize, &[u64]),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<Chosen>> {
    let candidates = cells(profile, dtype, chunk_shape).into_iter().collect();
    least(candidates, (dtype, true), (&[sample], chunk_shape), encode)
}

/// The candidate whose chunks `samples` take least.
///
/// Where all is read, values come in no sooner than memory is there for them: of those that take less
/// than an eighth of their room the time counts the less, the less is left of them.
fn least(
    candidates: Vec<Candidate>,
    (dtype, whole): (&DataType, bool),
    (samples, chunk_shape): (&[usize], &[u64]),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Option<Chosen>> {
    let tried = parallel::try_map(candidates.len() * samples.len(), |task| {
        let chain = &candidates[task / samples.len()].chain;
        encode(chain, samples[task % samples.len()])
    })?;
    let mut tried = tried.into_iter();
    let mut best: Option<Chosen> = None;
    let values = (samples.len() as f64 * chunk_shape.iter().product::<u64>() as f64).max(1.0);
    for candidate in candidates {
        let Candidate {
            chain,
            penalty,
            per_value,
        } = candidate;
        let encoded: HashMap<usize, Vec<u8>> =
            samples.iter().copied().zip(tried.by_ref()).collect();
        let bytes = encoded.values().map(Vec::len).sum::<usize>() as f64 / values;
        let weight = match dtype.size() {
            Some(size) if whole => (8.0 * bytes / size as f64).min(1.0),
            _ => 1.0,
        };
        let cost = bytes * (1.0 + penalty * weight) + per_value * weight;
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Chosen {
                chain,
                encoded,
                bytes,
                cost,
            });
        }
    }
    Ok(best)
}
