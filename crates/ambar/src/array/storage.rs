//! Where the chunks of an array are stored: entries of the container, and the shards in them.

use std::sync::Arc;

use super::Array;
use super::read_plan::advance;
use super::shard::{ChunkLocation, Shard, misplaced, tag};
use crate::codec::{AlignedBuffer, CodecScratch, Scratch};
use crate::container::{Entry, EntryRange};
use crate::error::{Error, Result};
use crate::limits::{Limits, checked_product};
use crate::metadata::Sharding;

/// Maximum number of an array's entries that are looked up one by one if the number of entries in the store
/// is unknown. For larger arrays, all keys of the store are listed.
const MAX_PROBES: u64 = 4096;

/// Maximum number of missing entries that an error names.
const NAMED: usize = 3;

/// Where a chunk is stored.
pub(super) enum StoredChunk {
    /// In an entry of its own, of this key.
    Entry(String, Entry),
    /// In a shard.
    InShard(Arc<Shard>, ChunkLocation),
}

impl StoredChunk {
    /// The chunk's bytes.
    pub fn range(&self) -> EntryRange {
        match self {
            Self::Entry(_, entry) => EntryRange {
                offset: 0,
                len: entry.len(),
                entry: entry.clone(),
            },
            Self::InShard(shard, location) => EntryRange {
                offset: location.offset,
                len: location.len,
                entry: shard.entry.clone(),
            },
        }
    }

    /// The chunk's tag; `None` if the store has none.
    pub fn tag(&self) -> Option<u32> {
        match self {
            Self::Entry(_, entry) => entry.seal(),
            Self::InShard(_, location) => location.tag,
        }
    }
}

/// The shard that contains a chunk.
pub(super) struct ShardPosition {
    /// The shard's number in C order.
    pub number: u64,
    /// The shard's coordinates.
    pub coordinates: Vec<u64>,
    /// The chunk's index within the shard.
    pub chunk: usize,
}

impl Array {
    /// Number of entries (shards, or chunks of an array without shards) in each dimension.
    fn entry_grid(&self) -> Vec<u64> {
        let outer = self.shard_shape().unwrap_or(self.chunk_shape());
        let lengths = self.shape().iter().zip(outer);
        lengths
            .map(|(length, outer)| length.div_ceil(*outer))
            .collect()
    }

    /// The existing entries of the array, with their coordinates, in C order.
    ///
    /// The time is bounded by the number of entries in the store, not by the chunks that the array's metadata
    /// declares.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn stored_entries(&self) -> Result<Vec<(Vec<u64>, Entry)>> {
        let (container, keys) = (&self.0.container, self.0.metadata.keys);
        let grid = self.entry_grid();
        let declared = checked_product(&grid, 1).unwrap_or(u64::MAX);
        let mut found = Vec::new();
        if declared == 0 {
            return Ok(found);
        }
        if declared > container.entry_count().unwrap_or(MAX_PROBES) {
            let all = container.keys()?;
            let named = all.iter().filter_map(|key| {
                let coordinates = keys.coordinates(&self.0.name, key, &grid)?;
                Some((coordinates, key))
            });
            for (coordinates, key) in named {
                found.extend(container.entry(key)?.map(|entry| (coordinates, entry)));
            }
            found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            return Ok(found);
        }
        let mut next = vec![0; grid.len()];
        loop {
            let entry = container.entry(&keys.key(&self.0.name, &next))?;
            found.extend(entry.map(|entry| (next.clone(), entry)));
            if !advance(&mut next, &grid) {
                return Ok(found);
            }
        }
    }

    /// Where the chunk at `coordinates` is stored; `None` if it was never written.
    pub(super) fn locate(
        &self,
        coordinates: &[u64],
        scratch: &mut Scratch,
    ) -> Result<Option<StoredChunk>> {
        let metadata = &self.0.metadata;
        let Some(sharding) = &metadata.sharding else {
            let key = metadata.keys.key(&self.0.name, coordinates);
            let entry = self.0.container.entry(&key)?;
            self.check_present(entry.is_some(), &key)?;
            return Ok(entry.map(|entry| StoredChunk::Entry(key, entry)));
        };
        let position = self.shard_of(sharding, coordinates);
        let shard = self.shard(position.number, &position.coordinates, scratch)?;
        Ok(shard.and_then(|shard| {
            let location = shard.location(position.chunk)?;
            Some(StoredChunk::InShard(shard, location))
        }))
    }

    /// The position of the chunk at `coordinates` in its shard.
    pub(super) fn shard_of(&self, sharding: &Sharding, coordinates: &[u64]) -> ShardPosition {
        let mut chunk = 0u64;
        let mut shard = vec![0; coordinates.len()];
        for d in 0..coordinates.len() {
            let per_shard = sharding.shape[d] / self.chunk_shape()[d];
            shard[d] = coordinates[d] / per_shard;
            chunk = chunk * per_shard + coordinates[d] % per_shard;
        }
        ShardPosition {
            number: self.entry_number(&shard),
            coordinates: shard,
            chunk: chunk as usize,
        }
    }

    /// The number of the entry (shard, or chunk without shards) at `coordinates`, in C order.
    pub(super) fn entry_number(&self, coordinates: &[u64]) -> u64 {
        let grid = self.entry_grid();
        coordinates
            .iter()
            .zip(&grid)
            .fold(0, |number: u64, (at, length)| {
                number.wrapping_mul(*length).wrapping_add(*at)
            })
    }

    /// The number of chunks in a shard.
    pub(super) fn chunks_in_shard(&self, sharding: &Sharding) -> usize {
        let lengths = sharding.shape.iter().zip(&self.0.metadata.chunk_shape);
        lengths.map(|(shard, chunk)| shard / chunk).product::<u64>() as usize
    }

    /// The shard at `coordinates`, whose index is read once; `None` if it was never written.
    pub(super) fn shard(
        &self,
        number: u64,
        coordinates: &[u64],
        scratch: &mut Scratch,
    ) -> Result<Option<Arc<Shard>>> {
        let Some(sharding) = &self.0.metadata.sharding else {
            return Ok(None);
        };
        let cached = || self.0.shards.lock();
        if let Some(shard) = cached().get(&number) {
            return Ok(shard.clone());
        }
        let key = self.0.metadata.keys.key(&self.0.name, coordinates);
        let entry = self.0.container.entry(&key)?;
        self.check_present(entry.is_some(), &key)?;
        let shard = match entry {
            None => None,
            Some(entry) => {
                let count = self.chunks_in_shard(sharding);
                let container = &*self.0.container;
                let limits = &self.0.limits;
                let shard = Shard::read(container, entry, sharding, count, limits, scratch)?;
                Some(Arc::new(shard))
            }
        };
        cached().insert(number, shard.clone());
        Ok(shard)
    }

    fn check_present(&self, present: bool, key: &str) -> Result<()> {
        if present || !self.0.complete {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "entry {key} is missing; restore the store from a copy"
        )))
    }

    /// Checks that `stored` are all entries of the array, if its writer leaves none out.
    ///
    /// # Errors
    /// `Corrupt` with the number of missing entries and the keys of the first.
    pub(super) fn check_complete(&self, stored: &[(Vec<u64>, Entry)]) -> Result<()> {
        let grid = self.entry_grid();
        let declared = checked_product(&grid, 1).unwrap_or(u64::MAX);
        let missing = declared.saturating_sub(stored.len() as u64);
        if missing == 0 || !self.0.complete {
            return Ok(());
        }
        // Existing entries are in order, so each expected one that is not next is missing.
        let mut expected = vec![0; grid.len()];
        let mut existing = stored.iter().map(|(coordinates, _)| coordinates).peekable();
        let mut named = Vec::new();
        loop {
            if existing
                .next_if(|coordinates| **coordinates == expected)
                .is_none()
            {
                named.push(self.0.metadata.keys.key(&self.0.name, &expected));
            }
            if named.len() == NAMED || !advance(&mut expected, &grid) {
                break;
            }
        }
        let more = if missing > named.len() as u64 {
            ", ..."
        } else {
            ""
        };
        Err(Error::corrupt(format!(
            "{missing} of {declared} entries are missing: {}{more}; restore the store from a copy",
            named.join(", ")
        )))
    }

    /// Reads the stored bytes of a chunk, and calls `f` with them and the unused scratch memory.
    pub(super) fn with_encoded<T>(
        &self,
        stored: &StoredChunk,
        scratch: &mut Scratch,
        f: impl FnOnce(&[u8], &mut AlignedBuffer, &mut CodecScratch) -> Result<T>,
    ) -> Result<T> {
        let Scratch {
            encoded,
            decoded,
            codecs,
        } = scratch;
        let container = &self.0.container;
        // Encoded chunks can be slightly longer than decoded ones.
        let limit = self.0.limits.chunk_bytes.saturating_add(1 << 20);
        if let StoredChunk::Entry(key, _) = stored
            && !self.0.metadata.chain.is_checksummed()
        {
            // Without a checksum in the chunk, the container's checksum of the whole entry is verified.
            let bytes = container.read_whole(key, limit)?;
            let bytes = bytes.ok_or_else(|| {
                Error::corrupt(format!("entry {key} has disappeared; open the store again"))
            })?;
            return f(&bytes, decoded, codecs);
        }
        let range = stored.range();
        let encoded = encoded.bytes(Limits::check("a stored chunk", range.len, limit)?)?;
        container.read_at(&range.entry, range.offset, encoded)?;
        if stored
            .tag()
            .is_some_and(|expected| tag([&*encoded].into_iter()) != expected)
        {
            // Damage at the end of the chunk changes the tag as well, and is reported as damage.
            self.0.metadata.chain.verify(encoded)?;
            return Err(misplaced());
        }
        f(encoded, decoded, codecs)
    }
}
