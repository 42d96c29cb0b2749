//! The owners of shards that overlap blocks of several ranks: the rank with most of its values encodes a shard.

use std::collections::HashMap;
use std::sync::Arc;

use super::decomposition::Decomposition;
use crate::array::EntryGrid;
use crate::error::{Error, Result};

/// Maximum number of shards that blocks overlap, in total: their coordinates are kept in memory.
const MAX_OVERLAPS: usize = 1 << 26;

/// Owners that are cached for arrays of an equal decomposition and equal shards.
pub(in crate::ranks) struct CachedOwners {
    pub held: Arc<Decomposition>,
    /// Lengths of a shard.
    pub lengths: Vec<u64>,
    pub owners: Arc<Owners>,
}

/// The owners of an array's shards.
pub(in crate::ranks) struct Owners(HashMap<Vec<u64>, u32>);

impl Owners {
    /// The owners of all shards that have values in a block.
    ///
    /// # Errors
    /// `Limit` if they are too many.
    pub fn new(shards: &EntryGrid, held: &Decomposition) -> Result<Self> {
        let mut owners: HashMap<Vec<u64>, Vec<(u32, u64)>> = HashMap::new();
        let mut overlaps = 0;
        for (rank, block) in held.blocks() {
            shards.try_for_each(block, |shard| {
                overlaps += 1;
                if overlaps > MAX_OVERLAPS {
                    let message = format!(
                        "the blocks overlap more than {MAX_OVERLAPS} shards; choose larger chunks, or \
                         larger shards"
                    );
                    return Err(Error::limit(message));
                }
                let common = shards.region(shard).intersection(block);
                let values = common.map_or(0, |common| common.values());
                let holders = owners.entry(shard.to_vec()).or_default();
                match holders.iter_mut().find(|(holder, _)| holder == rank) {
                    Some((_, held)) => *held += values,
                    None => holders.push((*rank, values)),
                }
                Ok(())
            })?;
        }
        // The lowest of equal ranks, so that all ranks choose the same owner.
        let most = |holders: Vec<(u32, u64)>| {
            let largest = holders
                .into_iter()
                .min_by_key(|(rank, values)| (std::cmp::Reverse(*values), *rank));
            largest.map_or(0, |(rank, _)| rank)
        };
        let owners = owners.into_iter();
        Ok(Self(
            owners.map(|(shard, held)| (shard, most(held))).collect(),
        ))
    }

    /// The owner of a shard; rank 0 if no block overlaps it.
    pub fn of(&self, shard: &[u64]) -> u32 {
        self.0.get(shard).copied().unwrap_or(0)
    }

    /// Every shard that has an owner, and who that is, in order.
    pub fn all(&self) -> Vec<(&[u64], u32)> {
        let mut all: Vec<(&[u64], u32)> = self
            .0
            .iter()
            .map(|(shard, owner)| (&shard[..], *owner))
            .collect();
        all.sort_unstable();
        all
    }
}
