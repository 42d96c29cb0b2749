//! Shards: several chunks in one entry, and the index that says where each of them lies.

use crate::codec::{ChunkPlace, CodecChain, CodecScratch, Scratch};
use crate::container::{Container, Entry};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::metadata::{IndexLocation, Sharding};

/// What the index says of a chunk that was not written.
const MISSING: u64 = u64::MAX;

/// A shard's entry and its index, every place of which lies inside of the entry.
#[derive(Debug)]
pub(super) struct Shard {
    pub entry: Entry,
    places: Vec<Option<Place>>,
}

/// Where in an entry a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub offset: u64,
    pub len: u64,
}

impl Shard {
    /// Reads and checks the index of the shard in `entry`, which holds `count` chunks.
    pub fn read(
        container: &dyn Container,
        entry: Entry,
        sharding: &Sharding,
        count: usize,
        limits: &Limits,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let (offset, stored) = Self::index_place(&entry, sharding, count, limits)?;
        // The count was checked with the index's length.
        let (raw, stored) = (count * 16, stored as usize);
        let Scratch {
            encoded,
            decoded,
            codecs,
        } = scratch;
        let encoded = encoded.bytes(stored);
        container.read_at(&entry, offset, encoded)?;
        let index = decoded.bytes(raw);
        sharding
            .index_chain
            .decode(&DataType::UInt64, encoded, index, codecs)?;
        let words: &[u64] = bytemuck::cast_slice(index);
        let places = words
            .chunks_exact(2)
            .map(|pair| Place::check(pair[0], pair[1], entry.len()))
            .collect::<Result<_>>()?;
        Ok(Self { entry, places })
    }

    /// Where in `entry`, a shard of `count` chunks, the index lies: offset and length.
    ///
    /// # Errors
    /// `Corrupt` where the entry is too short for it; `Limit`.
    pub fn index_place(
        entry: &Entry,
        sharding: &Sharding,
        count: usize,
        limits: &Limits,
    ) -> Result<(u64, u64)> {
        let overhead = sharding.index_chain.fixed_overhead().unwrap_or(0);
        let raw = (count as u64).saturating_mul(16);
        let raw = Limits::check("a shard's index", raw, limits.shard_index_bytes)?;
        let stored = (raw + overhead) as u64;
        let Some(offset) = entry.len().checked_sub(stored) else {
            return Err(Error::corrupt(format!(
                "a shard of {} bytes is too short for its index of {stored}; restore the file from \
                 a copy",
                entry.len()
            )));
        };
        match sharding.location {
            IndexLocation::End => Ok((offset, stored)),
            _ => Ok((0, stored)),
        }
    }

    /// Where the chunk `index` lies; `None` where it was not written.
    pub fn place(&self, index: usize) -> Option<Place> {
        self.places.get(index).copied().flatten()
    }

    /// All places of chunks that were written.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.places.iter().copied().flatten()
    }
}

impl Place {
    fn check(offset: u64, len: u64, limit: u64) -> Result<Option<Self>> {
        if offset == MISSING && len == MISSING {
            return Ok(None);
        }
        match offset.checked_add(len) {
            Some(end) if end <= limit => Ok(Some(Self { offset, len })),
            _ => Err(Error::corrupt(format!(
                "a shard's index places a chunk of {len} bytes at {offset}, outside of its {limit} \
                 bytes; restore the file from a copy"
            ))),
        }
    }
}

/// The index of a shard made of `chunks` one behind the other, to stand behind them.
pub(super) fn encode_index(chain: &CodecChain, chunks: &[Option<&[u8]>]) -> Result<Vec<u8>> {
    let mut words = Vec::with_capacity(2 * chunks.len());
    let mut offset = 0u64;
    for chunk in chunks {
        match chunk {
            Some(bytes) => {
                words.extend([offset, bytes.len() as u64]);
                offset += bytes.len() as u64;
            }
            None => words.extend([MISSING, MISSING]),
        }
    }
    let place = ChunkPlace {
        shape: &[words.len() as u64],
        origins: None,
        plan: None,
    };
    let raw = bytemuck::cast_slice(&words);
    chain.encode(&DataType::UInt64, raw, &place, &mut CodecScratch::default())
}
