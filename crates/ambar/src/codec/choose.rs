//! Choosing an array's codecs: the candidates of its profile are tried on a few of its chunks.
//!
//! The choice depends on the values alone, never on timing, so that a store can be written twice
//! with the same bytes.

use std::collections::HashMap;

use super::Profile;
use super::candidates::{Candidate, candidates, gridded, shaped, streamed};
use super::chain::CodecChain;
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
    /// Whether its dimensions are those of a grid, and the codec `ambar` may predict along them.
    pub predict: bool,
    /// Whether it is written part by part while somebody waits, so that encoding must be quick too.
    pub streamed: bool,
}

/// Chooses the chain for `count` chunks of a shape, of which `encode(chain, index)` encodes one.
pub(crate) fn choose(
    purpose: Purpose,
    dtype: &DataType,
    (count, chunk_shape): (usize, &[u64]),
    encode: impl Fn(&CodecChain, usize) -> Result<Vec<u8>> + Sync + Send,
) -> Result<Chosen> {
    let samples = samples(count);
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
    let tried = parallel::try_map(candidates.len() * samples.len(), |task| {
        let chain = &candidates[task / samples.len()].chain;
        encode(chain, samples[task % samples.len()])
    })?;
    let mut tried = tried.into_iter();
    let mut best: Option<(f64, Chosen)> = None;
    let values = samples.len() as f64 * chunk_shape.iter().product::<u64>() as f64;
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
