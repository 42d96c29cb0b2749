//! Verifies the checksums in an array: of shard indices and of chunks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Array;
use super::storage::StoredChunk;
use crate::codec::with_scratch;
use crate::error::Result;
use crate::parallel;

impl Array {
    /// Verifies every existing chunk without decoding it, on the threads of the current pool, and returns
    /// their number. `progress` is called with the bytes of each chunk, and `note` with each error found; an
    /// error that they return ends the verification.
    pub(crate) fn verify(
        &self,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
        note: &(dyn Fn(Result<()>) -> Result<()> + Sync),
    ) -> Result<u64> {
        let stored = self
            .stored_entries()
            .map_err(|error| self.with_path(error))?;
        note(
            self.check_complete(&stored)
                .map_err(|error| self.with_path(error)),
        )?;
        let chunks = AtomicU64::new(0);
        parallel::try_for_each(stored.len(), |index| {
            let result = with_scratch(|scratch| {
                let stored = self.stored_at(&stored[index].0, scratch)?;
                let _ahead = self.fetch_stored(&stored)?;
                for stored in stored {
                    let bytes = self.with_encoded(&stored, scratch, |encoded, _, _| {
                        self.0.metadata.chain.verify(encoded)?;
                        Ok(encoded.len() as u64)
                    });
                    chunks.fetch_add(1, Ordering::Relaxed);
                    match bytes {
                        Ok(bytes) => progress(bytes)?,
                        Err(error) => note(Err(self.with_path(error)))?,
                    }
                }
                Ok(())
            });
            result.or_else(|error| note(Err(self.with_path(error))))
        })?;
        Ok(chunks.into_inner())
    }

    /// The stored chunks of the entry (shard, or chunk without shards) at `coordinates`.
    fn stored_at(
        &self,
        coordinates: &[u64],
        scratch: &mut crate::codec::Scratch,
    ) -> Result<Vec<StoredChunk>> {
        if self.shard_shape().is_none() {
            return Ok(self.locate(coordinates, scratch)?.into_iter().collect());
        }
        let shard = self.shard(self.entry_number(coordinates), coordinates, scratch)?;
        Ok(shard.map_or_else(Vec::new, |shard| {
            let chunks = shard.locations();
            chunks
                .map(|location| StoredChunk::InShard(shard.clone(), location))
                .collect()
        }))
    }
}
