//! Where the bytes of an array's chunks lie, for programs that read them on their own.

use super::Array;
use super::blocks::advance;
use super::stored::StoredChunk;
use crate::codec::{Scratch, with_scratch};
use crate::error::Result;

/// Where an encoded chunk lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// Which chunk it is, in each dimension.
    pub chunk: Vec<u64>,
    /// The file that holds it, below the directory; `None` where the store is a single file.
    pub file: Option<String>,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl Array {
    /// Where every chunk lies that was written: what the inner codecs, those of a shard's chunks,
    /// made of it. Only the shards' indices are read.
    ///
    /// # Errors
    /// `Corrupt` where an index is damaged; `Io`.
    pub fn chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        self.try_chunk_ranges().map_err(|error| self.place(error))
    }

    fn try_chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        let mut ranges = Vec::new();
        let stored = self.stored_entries()?;
        self.check_complete(&stored)?;
        with_scratch(|scratch| {
            for (place, _) in &stored {
                self.ranges_of(place, scratch, &mut ranges)
                    .map_err(|error| self.place_chunk(error, place))?;
            }
            Ok(ranges)
        })
    }

    /// Adds the chunks of the entry at `place` of the grid of entries.
    fn ranges_of(
        &self,
        place: &[u64],
        scratch: &mut Scratch,
        ranges: &mut Vec<ChunkRange>,
    ) -> Result<()> {
        let Some(shard_shape) = self.shard_shape() else {
            if let Some(stored) = self.locate(place, scratch)? {
                ranges.push(self.range(place.to_vec(), place, &stored));
            }
            return Ok(());
        };
        let Some(shard) = self.shard(self.entry_number(place), place, scratch)? else {
            return Ok(());
        };
        let sides = shard_shape.iter().zip(self.chunk_shape());
        let per_shard: Vec<u64> = sides.map(|(shard, chunk)| shard / chunk).collect();
        let mut inside = vec![0; place.len()];
        for index in 0.. {
            if let Some(part) = shard.place(index) {
                let chunk: Vec<u64> = (0..place.len())
                    .map(|d| place[d] * per_shard[d] + inside[d])
                    .collect();
                ranges.push(self.range(chunk, place, &StoredChunk::Part(shard.clone(), part)));
            }
            if !advance(&mut inside, &per_shard) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn range(&self, chunk: Vec<u64>, place: &[u64], stored: &StoredChunk) -> ChunkRange {
        let (entry, offset, len) = stored.place();
        let (file, start) = match entry.file_offset() {
            Some(start) => (None, start),
            None => (Some(self.0.metadata.keys.key(&self.0.name, place)), 0),
        };
        ChunkRange {
            chunk,
            file,
            offset: start + offset,
            len,
        }
    }
}
