//! Shards: several chunks in one entry, and the index that says where each of them lies.

use crate::codec::{ChunkPlace, CodecScratch, Scratch, Words};
use crate::container::{Container, Entry};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::metadata::{ArrayMetadata, IndexLocation, Sharding};

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
            .decode(&DataType::UInt64, &[], encoded, index, codecs)?;
        let places = places(index, entry.len())?;
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

/// The places that a decoded index gives, all of them within `limit` bytes.
fn places(index: &[u8], limit: u64) -> Result<Vec<Option<Place>>> {
    let words: &[u64] = bytemuck::cast_slice(index);
    words
        .chunks_exact(2)
        .map(|pair| Place::check(pair[0], pair[1], limit))
        .collect()
}

/// An entry of an array that is to be changed in part: a shard or a chunk.
pub(super) struct Old {
    bytes: Vec<u8>,
    /// `None`: all of it is one chunk.
    places: Option<Vec<Option<Place>>>,
}

impl Old {
    /// Reads the index of a shard of the array that `metadata` describes.
    pub fn new(bytes: Vec<u8>, metadata: &ArrayMetadata) -> Result<Self> {
        let Some(sharding) = &metadata.sharding else {
            return Ok(Self {
                bytes,
                places: None,
            });
        };
        let per_shard = sharding.shape.iter().zip(&metadata.chunk_shape);
        let count: u64 = per_shard.map(|(shard, chunk)| shard / chunk).product();
        let mut index = Words::default();
        let index = index.bytes(count as usize * 16);
        let stored = index.len() + sharding.index_chain.fixed_overhead().unwrap_or(0);
        let start = bytes.len().checked_sub(stored).ok_or_else(|| {
            Error::corrupt("a shard is too short for its index; restore the file from a copy")
        })?;
        let encoded = match sharding.location {
            IndexLocation::End => &bytes[start..],
            IndexLocation::Start => &bytes[..stored],
        };
        let codecs = &mut CodecScratch::default();
        let chain = &sharding.index_chain;
        chain.decode(&DataType::UInt64, &[], encoded, index, codecs)?;
        let places = Some(places(index, bytes.len() as u64)?);
        Ok(Self { bytes, places })
    }

    /// The chunk at `index` of the shard as it is stored; `None` where it was not written.
    pub fn chunk(&self, index: usize) -> Option<&[u8]> {
        let Some(places) = &self.places else {
            return Some(&self.bytes);
        };
        let place = places.get(index).copied().flatten()?;
        self.bytes
            .get(place.offset as usize..(place.offset + place.len) as usize)
    }
}

/// The parts of a shard, chunks one behind the other and their index where it belongs, which `index`
/// makes a part; `lengths` are those of all chunks, `None` for those that are not there.
pub(super) fn with_index<T>(
    sharding: &Sharding,
    lengths: &[Option<u64>],
    chunks: impl Iterator<Item = T>,
    index: impl FnOnce(Vec<u8>) -> T,
) -> Result<Vec<T>> {
    let encoded = index(encode_index(sharding, lengths)?);
    Ok(match sharding.location {
        IndexLocation::End => chunks.chain([encoded]).collect(),
        IndexLocation::Start => std::iter::once(encoded).chain(chunks).collect(),
    })
}

fn encode_index(sharding: &Sharding, lengths: &[Option<u64>]) -> Result<Vec<u8>> {
    let chain = &sharding.index_chain;
    let mut words = Vec::with_capacity(2 * lengths.len());
    let mut offset = match sharding.location {
        IndexLocation::End => 0,
        IndexLocation::Start => (16 * lengths.len() + chain.fixed_overhead().unwrap_or(0)) as u64,
    };
    for length in lengths {
        match length {
            Some(length) => {
                words.extend([offset, *length]);
                offset += length;
            }
            None => words.extend([MISSING, MISSING]),
        }
    }
    let place = ChunkPlace {
        shape: &[words.len() as u64],
        origins: None,
        cells: None,
        plan: None,
    };
    let raw = bytemuck::cast_slice(&words);
    chain.encode(&DataType::UInt64, raw, &place, &mut CodecScratch::default())
}
