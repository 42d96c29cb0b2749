//! The byte ranges of an array's chunks, for programs that read stores without this library.

use super::Array;
use super::read_plan::advance;
use super::storage::StoredChunk;
use crate::codec::{Scratch, with_scratch};
use crate::error::Result;

/// The location of an encoded chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// The chunk's coordinates.
    pub chunk: Vec<u64>,
    /// The chunk's file, relative to the directory; `None` if the store is a single file.
    pub file: Option<String>,
    /// The offset in the file.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
}

impl Array {
    /// The byte ranges of all existing chunks, as encoded by the inner codecs. Reads only shard indices.
    ///
    /// # Errors
    /// `Corrupt` if an index is damaged; `Io`.
    pub fn chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        self.try_chunk_ranges()
            .map_err(|error| self.with_path(error))
    }

    fn try_chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        let mut ranges = Vec::new();
        let stored = self.stored_entries()?;
        self.check_complete(&stored)?;
        with_scratch(|scratch| {
            for (entry, _) in &stored {
                self.ranges_of(entry, scratch, &mut ranges)
                    .map_err(|error| self.with_chunk_path(error, entry))?;
            }
            Ok(ranges)
        })
    }

    /// Adds the chunks of the entry at these coordinates.
    fn ranges_of(
        &self,
        entry: &[u64],
        scratch: &mut Scratch,
        ranges: &mut Vec<ChunkRange>,
    ) -> Result<()> {
        let Some(shard_shape) = self.shard_shape() else {
            if let Some(stored) = self.locate(entry, scratch)? {
                ranges.push(self.range(entry.to_vec(), entry, &stored));
            }
            return Ok(());
        };
        let Some(shard) = self.shard(self.entry_number(entry), entry, scratch)? else {
            return Ok(());
        };
        let sides = shard_shape.iter().zip(self.chunk_shape());
        let per_shard: Vec<u64> = sides.map(|(shard, chunk)| shard / chunk).collect();
        let mut inside = vec![0; entry.len()];
        for index in 0.. {
            if let Some(location) = shard.location(index) {
                let chunk: Vec<u64> = (0..entry.len())
                    .map(|d| entry[d] * per_shard[d] + inside[d])
                    .collect();
                let stored = StoredChunk::InShard(shard.clone(), location);
                ranges.push(self.range(chunk, entry, &stored));
            }
            if !advance(&mut inside, &per_shard) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn range(&self, chunk: Vec<u64>, coordinates: &[u64], stored: &StoredChunk) -> ChunkRange {
        let range = stored.range();
        let (file, start) = match range.entry.file_offset() {
            Some(start) => (None, start),
            None => (Some(self.0.metadata.keys.key(&self.0.name, coordinates)), 0),
        };
        ChunkRange {
            chunk,
            file,
            offset: start + range.offset,
            len: range.len,
        }
    }
}
