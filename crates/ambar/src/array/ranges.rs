//! Where the bytes of an array's chunks lie, for programs that read them on their own.

use super::Array;
use super::blocks::advance;
use super::read::Stored;
use crate::codec::{Scratch, with_scratch};
use crate::error::{Error, Result};
use crate::metadata::checked_product;

/// Entries that are looked for at most; a store that this library writes has far fewer.
const MOST_ENTRIES: u64 = 1 << 28;

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
    /// `Corrupt` where an index is damaged; `Limit` for more entries than 2^28; `Io`.
    pub fn chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        self.try_chunk_ranges().map_err(|error| self.place(error))
    }

    fn try_chunk_ranges(&self) -> Result<Vec<ChunkRange>> {
        let outer = self.shard_shape().unwrap_or(self.chunk_shape());
        let lengths = self.shape().iter().zip(outer);
        let grid: Vec<u64> = lengths
            .map(|(length, outer)| length.div_ceil(*outer))
            .collect();
        let entries = checked_product(&grid, 1).unwrap_or(u64::MAX);
        if entries > MOST_ENTRIES {
            return Err(Error::limit(format!(
                "the array is cut into {entries} entries, more than {MOST_ENTRIES}"
            )));
        }
        let mut ranges = Vec::new();
        if entries == 0 {
            return Ok(ranges);
        }
        let mut place = vec![0; grid.len()];
        with_scratch(|scratch| {
            for linear in 0..entries {
                self.ranges_of(&place, linear, scratch, &mut ranges)
                    .map_err(|error| self.place_chunk(error, &place))?;
                advance(&mut place, &grid);
            }
            Ok(ranges)
        })
    }

    /// Adds the chunks of the entry at `place` of the grid of entries.
    fn ranges_of(
        &self,
        place: &[u64],
        linear: u64,
        scratch: &mut Scratch,
        ranges: &mut Vec<ChunkRange>,
    ) -> Result<()> {
        let Some(shard_shape) = self.shard_shape() else {
            if let Some(stored) = self.locate(place, scratch)? {
                ranges.push(self.range(place.to_vec(), place, &stored));
            }
            return Ok(());
        };
        let Some(shard) = self.shard(linear, place, scratch)? else {
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
                ranges.push(self.range(chunk, place, &Stored::Part(shard.clone(), part)));
            }
            if !advance(&mut inside, &per_shard) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn range(&self, chunk: Vec<u64>, place: &[u64], stored: &Stored) -> ChunkRange {
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
