//! Shards: several chunks in one entry, the index that says where each of them lies, and the table of
//! their tags, which ties each chunk to its place (format, section 2.3).

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
    places: Vec<Option<ChunkLocation>>,
}

/// Where in an entry a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkLocation {
    pub offset: u64,
    pub len: u64,
    /// The chunk's tag; `None` in shards without a table of tags.
    pub tag: Option<u32>,
}

/// What index and table say of a chunk that is about to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRecord {
    len: u64,
    tag: u32,
}

impl ChunkRecord {
    /// The record of the encoded chunk that consists of `parts`.
    pub fn of<'a>(parts: impl DoubleEndedIterator<Item = &'a [u8]> + Clone) -> Self {
        Self {
            len: parts.clone().map(|part| part.len() as u64).sum(),
            tag: tag(parts),
        }
    }
}

/// The tag of the encoded chunk that consists of `parts`: the CRC-32 of its last 8 bytes, or of all of
/// them where there are fewer.
///
/// They hold the chunk's CRC-32C, so that the tag tells chunks apart without reading them again. It must
/// be another checksum than that: the CRC-32C of anything that ends with its own is constant.
pub(super) fn tag<'a>(parts: impl DoubleEndedIterator<Item = &'a [u8]>) -> u32 {
    let mut end = [0; 8];
    let mut start = end.len();
    let bytes = parts.rev().flat_map(|part| part.iter().rev());
    for byte in bytes.take(end.len()) {
        start -= 1;
        end[start] = *byte;
    }
    crc32fast::hash(&end[start..])
}

/// What is wrong with a chunk whose own checksum is right, but whose tag is not the one of its place.
pub(super) fn misplaced() -> Error {
    Error::corrupt(
        "the chunk is whole, but it is not the one that was written here: chunks of the file were \
         swapped, or come from another file; restore the file from a copy",
    )
}

impl Shard {
    /// Reads and checks the index of the shard in `entry`, which holds `count` chunks, and the table of
    /// tags, where the entry is sealed.
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
        let tags = tags_len(&entry, count);
        let Scratch {
            encoded,
            decoded,
            codecs,
        } = scratch;
        let encoded = encoded.bytes(stored)?;
        container.read_at(&entry, offset, encoded)?;
        let (table, stored_index) = match sharding.location {
            IndexLocation::End => encoded.split_at(tags),
            IndexLocation::Start => {
                let (index, table) = encoded.split_at(stored - tags);
                (table, index)
            }
        };
        let index = decoded.bytes(raw)?;
        sharding
            .index_chain
            .decode(&DataType::UInt64, &[], stored_index, index, limits, codecs)?;
        if let Some(seal) = entry.seal() {
            check_seal(seal, encoded)?;
        }
        let places = places(index, table, entry.len())?;
        Ok(Self { entry, places })
    }

    /// Where in `entry`, a shard of `count` chunks, index and table of tags lie: offset and length.
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
        let stored = (raw + overhead + tags_len(entry, count)) as u64;
        let Some(offset) = entry.len().checked_sub(stored) else {
            return Err(Error::corrupt(format!(
                "a shard of {} bytes is too short for its index and tags of {stored}; restore the \
                 file from a copy",
                entry.len()
            )));
        };
        match sharding.location {
            IndexLocation::End => Ok((offset, stored)),
            _ => Ok((0, stored)),
        }
    }

    /// Where the chunk `index` lies; `None` where it was not written.
    pub fn place(&self, index: usize) -> Option<ChunkLocation> {
        self.places.get(index).copied().flatten()
    }

    /// All places of chunks that were written.
    pub fn places(&self) -> impl Iterator<Item = ChunkLocation> {
        self.places.iter().copied().flatten()
    }
}

/// Length of the table of tags in `entry`, a shard of `count` chunks.
fn tags_len(entry: &Entry, count: usize) -> usize {
    entry.seal().map_or(0, |_| 4 * count)
}

/// Checks that index and table, as stored, are those that the container's directory knows.
fn check_seal(seal: u32, stored: &[u8]) -> Result<()> {
    let found = crc32fast::hash(stored);
    if found == seal {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the checksum of the shard's index and tags is {found:08x} where the container's directory says \
         {seal:08x}: they are damaged, or those of another shard; restore the file from a copy"
    )))
}

impl ChunkLocation {
    fn check(offset: u64, len: u64, tag: Option<u32>, limit: u64) -> Result<Option<Self>> {
        if offset == MISSING && len == MISSING {
            return Ok(None);
        }
        match offset.checked_add(len) {
            Some(end) if end <= limit => Ok(Some(Self { offset, len, tag })),
            _ => Err(Error::corrupt(format!(
                "a shard's index places a chunk of {len} bytes at {offset}, outside of its {limit} \
                 bytes; restore the file from a copy"
            ))),
        }
    }
}

/// The places that a decoded index gives, all of them within an entry of `limit` bytes, with the tags of
/// `table`, which is empty where there are none.
fn places(index: &[u8], table: &[u8], limit: u64) -> Result<Vec<Option<ChunkLocation>>> {
    let words: &[u64] = bytemuck::cast_slice(index);
    let tags = table.as_chunks::<4>().0;
    let places = words.chunks_exact(2).enumerate().map(|(chunk, pair)| {
        let tag = tags.get(chunk).map(|tag| u32::from_le_bytes(*tag));
        ChunkLocation::check(pair[0], pair[1], tag, limit)
    });
    let places: Vec<Option<ChunkLocation>> = places.collect::<Result<_>>()?;
    let lengths = places.iter().flatten().map(|place| place.len);
    let bytes = lengths.fold(0, u64::saturating_add);
    if bytes > limit {
        // Few bytes that represent many chunks would let a small file take any amount of memory.
        return Err(Error::corrupt(format!(
            "a shard's index gives its chunks {bytes} bytes of its {limit}, so that some of them \
             overlap; restore the file from a copy"
        )));
    }
    Ok(places)
}

/// An entry of an array that is to be changed in part: a shard or a chunk.
pub(super) struct Old {
    bytes: Vec<u8>,
    /// `None`: all of it is one chunk.
    places: Option<Vec<Option<ChunkLocation>>>,
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
        let limits = &Limits::default();
        let index = index.bytes(count as usize * 16)?;
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
        chain.decode(&DataType::UInt64, &[], encoded, index, limits, codecs)?;
        let places = Some(places(index, &[], bytes.len() as u64)?);
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

/// The parts of a shard and its seal: encoded chunks, their index where the array has it, and the table of
/// their tags between these. `own` makes index and table a part; `records` are those of all chunks, `None`
/// for absent ones.
pub(super) fn with_index<T>(
    sharding: &Sharding,
    records: &[Option<ChunkRecord>],
    chunks: impl Iterator<Item = T>,
    own: impl FnOnce(Vec<u8>) -> T,
) -> Result<(Vec<T>, u32)> {
    let tags: Vec<u32> = records
        .iter()
        .map(|record| record.map_or(0, |record| record.tag))
        .collect();
    let tags = tags.iter().flat_map(|tag| tag.to_le_bytes());
    let mut stored = encode_index(sharding, records)?;
    match sharding.location {
        IndexLocation::End => drop(stored.splice(..0, tags)),
        IndexLocation::Start => stored.extend(tags),
    }
    let seal = crc32fast::hash(&stored);
    let stored = own(stored);
    let parts = match sharding.location {
        IndexLocation::End => chunks.chain([stored]).collect(),
        IndexLocation::Start => std::iter::once(stored).chain(chunks).collect(),
    };
    Ok((parts, seal))
}

fn encode_index(sharding: &Sharding, records: &[Option<ChunkRecord>]) -> Result<Vec<u8>> {
    let chain = &sharding.index_chain;
    let mut words = Vec::with_capacity(2 * records.len());
    let mut offset = match sharding.location {
        IndexLocation::End => 0,
        IndexLocation::Start => (20 * records.len() + chain.fixed_overhead().unwrap_or(0)) as u64,
    };
    for record in records {
        match record {
            Some(record) => {
                words.extend([offset, record.len]);
                offset += record.len;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crc_fast::crc32_iscsi as crc32c;

    #[test]
    fn a_tag_is_of_the_last_eight_bytes_however_they_are_parted() {
        let whole = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let expected = crc32fast::hash(&whole[1..]);
        for cut in 0..=whole.len() {
            let (one, two) = whole.split_at(cut);
            assert_eq!(tag([one, two].into_iter()), expected, "{cut}");
        }
        assert_eq!(tag([&whole[..3]].into_iter()), crc32fast::hash(&whole[..3]));
        assert_eq!(tag(std::iter::empty()), crc32fast::hash(&[]));
    }

    #[test]
    fn chunks_that_differ_in_their_last_value_have_different_tags() {
        // The CRC-32C of the last 8 bytes would be equal for all of these.
        let tags = (0..100u32).map(|value| {
            let values = [7, 7, value];
            let values: &[u8] = bytemuck::cast_slice(&values);
            let checksum = crc32c(values).to_le_bytes();
            tag([values, &checksum].into_iter())
        });
        let mut tags: Vec<u32> = tags.collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 100);
    }
}
