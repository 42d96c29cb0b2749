//! Arrays over the leaf cells of a tree: whether their values are predicted from the cells around them.

use std::fmt::Debug;
use std::sync::Arc;

use super::source::Source;
use super::spec::ArraySpec;
use crate::codec::{CodecChain, Profile, samples};
use crate::error::Result;
use crate::parallel;

/// Where the leaf cells of a tree lie whose rows an array has, chunk by chunk.
pub trait LeafPlaces: Debug + Send + Sync {
    /// Dimensions of the tree, 1 to 3.
    fn dimensions(&self) -> usize;
    /// The levels of a chunk's cells, and their indices on these in z, y, x; 0 in dimensions that
    /// are not used.
    ///
    /// # Errors
    /// `Invalid` where there is no such chunk, or the levels make no tree.
    fn chunk(&self, chunk: u64) -> Result<(Vec<u8>, Vec<[i64; 3]>)>;
}

/// What a field has to become smaller by for its decoding to take ten times as long.
const WORTH: f64 = 0.1;

/// Lets values be predicted from those of the cells around where chunks that are tried take so much less
/// than with their values in a row.
///
/// # Errors
/// As `Source::encode`.
pub(super) fn choose(source: &mut Source<'_>, spec: &ArraySpec, bound: f64) -> Result<()> {
    // Decoding takes ten times as long and more: too much where anything but the size counts.
    let Some(leaves) = spec
        .leaves
        .as_ref()
        .filter(|_| spec.profile == Profile::Small)
    else {
        return Ok(());
    };
    let chain = CodecChain::bounded(bound);
    let chunks: Vec<Vec<u64>> = samples(source.count())
        .into_iter()
        .map(|index| source.chunk_at(index))
        .collect();
    let encoded = |source: &Source<'_>| {
        parallel::try_map(chunks.len(), |i| {
            source.encode_with(&chain, &chunks[i], None)
        })
    };
    let length = |encoded: &[Vec<u8>]| encoded.iter().map(Vec::len).sum::<usize>() as f64;
    let (row, plan) = (encoded(source)?, source.plan);
    source.leaves = Some(Arc::clone(leaves));
    source.tune(bound, Profile::Small)?;
    let mut chosen = encoded(source)?;
    if length(&chosen) > (1.0 - WORTH) * length(&row) {
        (source.leaves, source.plan) = (None, plan);
        chosen = row;
    }
    source.sampled = chunks.into_iter().zip(chosen).collect();
    Ok(())
}
