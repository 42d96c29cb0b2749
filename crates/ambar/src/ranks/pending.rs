//! Shards whose values come in pieces, from several blocks or several ranks.

use std::collections::{HashMap, HashSet};

use crate::array::{Region, Shards, copy_common};
use crate::error::{Error, Result};
use crate::metadata::ArrayMetadata;

/// The shards of one array that are waiting for values.
#[derive(Default)]
pub(super) struct Pending {
    shards: HashMap<Vec<u64>, Waiting>,
    /// Those that were complete: no piece of them can come any more.
    done: HashSet<Vec<u64>>,
}

/// A shard with some of its values.
pub(super) struct Waiting {
    pub region: Region,
    pub values: Vec<u8>,
    pieces: Vec<Region>,
}

impl Waiting {
    fn new(region: Region, metadata: &ArrayMetadata) -> Self {
        let values = metadata.fill_value.repeat(region.values() as usize);
        Self {
            region,
            values,
            pieces: Vec::new(),
        }
    }

    fn is_complete(&self) -> bool {
        self.pieces.iter().map(Region::values).sum::<u64>() == self.region.values()
    }
}

impl Pending {
    /// Notes that a shard, `region` of the array, is written whole.
    ///
    /// # Errors
    /// `Invalid` where some of the values were there already.
    pub fn whole(&mut self, shard: &[u64], region: &Region) -> Result<()> {
        if self.shards.contains_key(shard) || !self.done.insert(shard.to_vec()) {
            return Err(written_before(region));
        }
        Ok(())
    }

    /// Adds what `region` has of a shard; gives the shard back once it is complete.
    ///
    /// # Errors
    /// `Invalid` where some of the values were there already.
    pub fn add(
        &mut self,
        (shards, metadata): (&Shards, &ArrayMetadata),
        shard: &[u64],
        (region, values): (&Region, &[u8]),
    ) -> Result<Option<Waiting>> {
        let size = metadata.dtype.size().unwrap_or(1);
        let Some(piece) = shards.region(shard).intersection(region) else {
            return Ok(None);
        };
        let twice = |before: &Region| before.intersection(&piece).is_some();
        let waiting = self
            .shards
            .entry(shard.to_vec())
            .or_insert_with(|| Waiting::new(shards.region(shard), metadata));
        if self.done.contains(shard) || waiting.pieces.iter().any(twice) {
            return Err(written_before(&piece));
        }
        copy_common(
            (region, values),
            (&waiting.region, &mut waiting.values),
            size,
        )?;
        waiting.pieces.push(piece);
        if !waiting.is_complete() {
            return Ok(None);
        }
        self.done.insert(shard.to_vec());
        Ok(self.shards.remove(shard))
    }

    /// The shards that are left, in order.
    pub fn take(&mut self) -> Vec<(Vec<u64>, Waiting)> {
        let mut left: Vec<_> = self.shards.drain().collect();
        left.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        left
    }
}

fn written_before(region: &Region) -> Error {
    Error::invalid(format!(
        "values of {:?} from {:?} on were written before, by this rank or another; each is written \
         once before a commit",
        region.shape, region.start
    ))
}
