//! Shards: several chunks in one entry, the index of their offsets and lengths, and the table of their
//! tags, which detects swapped chunks (format, section 2.3).

use crate::codec::{AlignedBuffer, ChunkGeometry, CodecScratch, Scratch};
use crate::container::{Container, Entry};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::metadata::{ArrayMetadata, IndexLocation, Sharding};

/// Offset and length in the index of a chunk that was not written.
const MISSING: u64 = u64::MAX;

/// A shard's entry and its index, whose chunks are all inside of the entry.
#[derive(Debug)]
pub(super) struct Shard {
    pub entry: Entry,
    locations: Vec<Option<ChunkLocation>>,
}

/// The location of a chunk in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkLocation {
    pub offset: u64,
    pub len: u64,
    /// The chunk's tag; `None` in shards without a table of tags.
    pub tag: Option<u32>,
}

/// Length and tag of a chunk to be written.
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
/// its bytes if there are fewer.
///
/// The last bytes are the chunk's CRC-32C, so the tag distinguishes chunks without reading all of them. It
/// must be a different checksum: the CRC-32C of bytes that end with their own CRC-32C is constant.
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

/// The error for a chunk whose checksum is valid, but whose tag differs from the stored one.
pub(super) fn misplaced() -> Error {
    Error::corrupt(
        "the chunk is intact, but it is not the one that was written here: chunks of the file were \
         swapped, or come from another file; restore the file from a copy",
    )
}

impl Shard {
    /// Reads and checks the index of the shard in `entry`, which has `count` chunks, and the table of
    /// tags if the entry has a seal.
    pub fn read(
        container: &dyn Container,
        entry: Entry,
        sharding: &Sharding,
        count: usize,
        limits: &Limits,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let (offset, stored) = Self::index_range(&entry, sharding, count, limits)?;
        // `index_range` has checked the count.
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
        let locations = locations(index, table, entry.len())?;
        Ok(Self { entry, locations })
    }

    /// Offset and length of index and table of tags in `entry`, a shard of `count` chunks.
    ///
    /// # Errors
    /// `Corrupt` if the entry is too short; `Limit`.
    pub fn index_range(
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

    /// The location of the chunk `index`; `None` if it was not written.
    pub fn location(&self, index: usize) -> Option<ChunkLocation> {
        self.locations.get(index).copied().flatten()
    }

    /// The locations of all written chunks.
    pub fn locations(&self) -> impl Iterator<Item = ChunkLocation> {
        self.locations.iter().copied().flatten()
    }
}

/// Length of the table of tags in `entry`, a shard of `count` chunks.
fn tags_len(entry: &Entry, count: usize) -> usize {
    entry.seal().map_or(0, |_| 4 * count)
}

/// Verifies the checksum of index and table in the container's directory.
fn check_seal(seal: u32, stored: &[u8]) -> Result<()> {
    let found = crc32fast::hash(stored);
    if found == seal {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the checksum of the shard's index and tags is {found:08x}; expected {seal:08x} as in the container's \
         directory: they are damaged, or those of another shard; restore the file from a copy"
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

/// The locations of a decoded index, checked to be within an entry of `limit` bytes, with the tags of
/// `table`, which can be empty.
fn locations(index: &[u8], table: &[u8], limit: u64) -> Result<Vec<Option<ChunkLocation>>> {
    let words: &[u64] = bytemuck::cast_slice(index);
    let tags = table.as_chunks::<4>().0;
    let locations = words.chunks_exact(2).enumerate().map(|(chunk, pair)| {
        let tag = tags.get(chunk).map(|tag| u32::from_le_bytes(*tag));
        ChunkLocation::check(pair[0], pair[1], tag, limit)
    });
    let locations: Vec<Option<ChunkLocation>> = locations.collect::<Result<_>>()?;
    let lengths = locations.iter().flatten().map(|chunk| chunk.len);
    let bytes = lengths.fold(0, u64::saturating_add);
    if bytes > limit {
        // Overlapping chunks would let a small file use any amount of memory.
        return Err(Error::corrupt(format!(
            "the chunks of a shard have {bytes} bytes in its index, but the shard has {limit}: some of them \
             overlap; restore the file from a copy"
        )));
    }
    Ok(locations)
}

/// An existing shard or chunk, of which a part is to be replaced.
pub(super) struct ExistingEntry {
    bytes: Vec<u8>,
    /// The chunks of a shard; `None` if the entry is one chunk.
    locations: Option<Vec<Option<ChunkLocation>>>,
}

impl ExistingEntry {
    /// Reads the index of a shard of the array that `metadata` describes.
    pub fn new(bytes: Vec<u8>, metadata: &ArrayMetadata, limits: &Limits) -> Result<Self> {
        let Some(sharding) = &metadata.sharding else {
            return Ok(Self {
                bytes,
                locations: None,
            });
        };
        let per_shard = sharding.shape.iter().zip(&metadata.chunk_shape);
        let count: u64 = per_shard.map(|(shard, chunk)| shard / chunk).product();
        let mut index = AlignedBuffer::default();
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
        let locations = Some(locations(index, &[], bytes.len() as u64)?);
        Ok(Self { bytes, locations })
    }

    /// The stored bytes of the chunk `index`; `None` if it was not written.
    pub fn chunk(&self, index: usize) -> Option<&[u8]> {
        let Some(locations) = &self.locations else {
            return Some(&self.bytes);
        };
        let ChunkLocation { offset, len, .. } = locations.get(index).copied().flatten()?;
        self.bytes.get(offset as usize..(offset + len) as usize)
    }
}

/// The parts of a shard and its seal: the encoded chunks, the table of their tags and their index, or the
/// reverse if the array has its index at the start. `own` converts index and table to a part; `records` has
/// all chunks, `None` for absent ones.
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
    let shape = [words.len() as u64];
    let place = ChunkGeometry::array(&shape);
    let raw = bytemuck::cast_slice(&words);
    chain.encode(&DataType::UInt64, raw, &place, &mut CodecScratch::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crc_fast::crc32_iscsi as crc32c;

    #[test]
    fn a_tag_depends_on_the_last_eight_bytes_only() {
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
