//! Shards whose values arrive in pieces, from several blocks or several ranks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::background::{ShardJob, Values};
use super::encoding::Encoding;
use crate::array::{EntryGrid, Region, copy_intersection};
use crate::error::{Error, Result};
use crate::metadata::ArrayMetadata;

/// The incomplete shards of an array.
#[derive(Default)]
pub(in crate::ranks) struct IncompleteShards {
    shards: HashMap<Vec<u64>, IncompleteShard>,
    /// The completed shards, of which no more pieces may arrive.
    completed: HashSet<Vec<u64>>,
}

/// A shard with some of its values.
pub(in crate::ranks) struct IncompleteShard {
    pub region: Region,
    pub values: Vec<u8>,
    pieces: Vec<Region>,
}

impl IncompleteShard {
    fn new(region: Region, metadata: &ArrayMetadata) -> Self {
        let values = metadata.fill_value.repeat(region.values() as usize);
        Self {
            region,
            values,
            pieces: Vec::new(),
        }
    }

    /// Encodes the shard, whose index is `shard`.
    pub fn job(self, array: &Arc<Encoding>, shard: &[u64]) -> ShardJob<'static> {
        ShardJob {
            array: Arc::clone(array),
            region: self.region,
            values: Values::Owned(self.values),
            shards: vec![shard.to_vec()],
        }
    }

    fn is_complete(&self) -> bool {
        self.pieces.iter().map(Region::values).sum::<u64>() == self.region.values()
    }
}

impl IncompleteShards {
    /// Records that a shard, `region` of the array, is written as a whole.
    ///
    /// # Errors
    /// `Invalid` if some of its values were written before.
    pub fn complete(&mut self, shard: &[u64], region: &Region) -> Result<()> {
        if self.shards.contains_key(shard) || !self.completed.insert(shard.to_vec()) {
            return Err(written_before(region));
        }
        Ok(())
    }

    /// Adds the values of `region` to a shard, and returns the shard if that completes it.
    ///
    /// # Errors
    /// `Invalid` if some of its values were written before.
    pub fn add(
        &mut self,
        shards: &EntryGrid,
        metadata: &ArrayMetadata,
        shard: &[u64],
        region: &Region,
        values: &[u8],
    ) -> Result<Option<IncompleteShard>> {
        let size = metadata.dtype.size().unwrap_or(1);
        let Some(piece) = shards.region(shard).intersection(region) else {
            return Ok(None);
        };
        let overlaps = |before: &Region| before.intersection(&piece).is_some();
        let incomplete = self
            .shards
            .entry(shard.to_vec())
            .or_insert_with(|| IncompleteShard::new(shards.region(shard), metadata));
        if self.completed.contains(shard) || incomplete.pieces.iter().any(overlaps) {
            return Err(written_before(&piece));
        }
        let (all, out) = (&incomplete.region, &mut incomplete.values);
        copy_intersection(region, values, all, out, size)?;
        incomplete.pieces.push(piece);
        if !incomplete.is_complete() {
            return Ok(None);
        }
        self.completed.insert(shard.to_vec());
        Ok(self.shards.remove(shard))
    }

    /// Removes and returns the remaining shards, in order.
    pub fn take(&mut self) -> Vec<(Vec<u64>, IncompleteShard)> {
        let mut remaining: Vec<_> = self.shards.drain().collect();
        remaining.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        remaining
    }
}

fn written_before(region: &Region) -> Error {
    Error::invalid(format!(
        "the values of {:?} at {:?} were written before, by this rank or another; write each value once \
         before a commit",
        region.shape, region.start
    ))
}
