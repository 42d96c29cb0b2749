//! The owner of a shard that several ranks hold in parts: the rank that holds most of it encodes it.

use std::collections::HashMap;

use super::decomposition::Decomposition;
use crate::array::Shards;
use crate::error::{Error, Result};

/// Most shards that blocks may touch, all taken together: their places are kept in memory.
const MAX_TOUCHED: usize = 1 << 26;

/// The owners of an array's shards.
pub(super) struct Owners(HashMap<Vec<u64>, u32>);

impl Owners {
    /// The owners of all shards that have values in a block.
    ///
    /// # Errors
    /// `Limit` where they are too many.
    pub fn new(shards: &Shards, held: &Decomposition) -> Result<Self> {
        let mut owners: HashMap<Vec<u64>, Vec<(u32, u64)>> = HashMap::new();
        let mut touched = 0;
        for (rank, block) in held.blocks() {
            shards.try_for_each(block, |shard| {
                touched += 1;
                if touched > MAX_TOUCHED {
                    let message = format!(
                        "blocks touch more than {MAX_TOUCHED} shards; choose larger chunks, or \
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
        // The first of equals, so that all ranks choose the same.
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

    /// The owner of a shard; rank 0 if no rank holds any of it.
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
