//! Fetches stored chunks from remote stores with few requests before they are decoded.

use std::collections::HashMap;
use std::ops::Range;

use super::Array;
use super::chunk_requests::ChunkRequests;
use super::shard::Shard;
use super::storage::StoredChunk;
use crate::codec::{Scratch, with_scratch};
use crate::container::{EntryRange, ReadAhead};
use crate::error::Result;
use crate::parallel;

/// Maximum stored bytes of a fetch. While they are decoded the next ones are fetched, so memory for twice
/// as many is needed.
const FETCH_BYTES: u64 = 128 << 20;

/// Maximum number of chunks of a fetch.
const FETCH_CHUNKS: usize = 1 << 16;

/// Shards up to this length are fetched whole, which saves the request for their index.
const SMALL_SHARD: u64 = 256 << 10;

/// Maximum gap between two chunks that is counted as fetched with them.
const CHUNK_GAP: u64 = 256 << 10;

/// Maximum gap between two parts of chunks that is fetched with them.
const PART_GAP: u64 = 16 << 10;

/// The shard indices that reading some chunks needs.
struct IndexRequest {
    /// The stored bytes of the indices.
    parts: Vec<EntryRange>,
    /// The coordinates of the shards, by number.
    shards: HashMap<u64, Vec<u64>>,
    /// The number after the last chunk whose index is included.
    end: usize,
}

/// Chunks whose bytes are in memory.
#[derive(Default)]
pub(super) struct ChunkFetch {
    /// The number after the last chunk.
    pub end: usize,
    /// Keeps the bytes in memory.
    _ahead: ReadAhead,
}

impl Array {
    /// Calls `f` with each of `0..count`, in parallel, as `parallel::try_map` does; `wanted` names the chunk
    /// that each call reads. In remote stores, the bytes of many chunks are fetched together.
    ///
    /// # Errors
    /// An error of `f` or of fetching.
    pub(super) fn try_map_chunks<T: Send>(
        &self,
        count: usize,
        wanted: ChunkRequests<
            impl Fn(usize) -> Option<Vec<u64>> + Sync,
            impl Fn(usize, EntryRange) -> Vec<EntryRange> + Sync,
        >,
        f: impl Fn(usize) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        if !self.0.container.is_remote() {
            return parallel::try_map(count, f);
        }
        let ChunkRequests { chunk, parts } = wanted;
        let mut out = Vec::new();
        let mut start = 0;
        let mut fetched = self.fetch(0..count, &chunk, &parts)?;
        while start < count {
            let end = fetched.end;
            let decode = || parallel::try_map(end - start, |index| f(start + index));
            let following = || match end < count {
                true => self.fetch(end..count, &chunk, &parts),
                false => Ok(ChunkFetch::default()),
            };
            let (decoded, next) = parallel::try_join(decode, following)?;
            out.extend(decoded);
            start = end;
            fetched = next;
        }
        Ok(out)
    }

    /// As [`Array::try_map_chunks`], without results.
    ///
    /// # Errors
    /// As [`Array::try_map_chunks`].
    pub(super) fn try_for_each_chunk(
        &self,
        count: usize,
        wanted: ChunkRequests<
            impl Fn(usize) -> Option<Vec<u64>> + Sync,
            impl Fn(usize, EntryRange) -> Vec<EntryRange> + Sync,
        >,
        f: impl Fn(usize) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        if self.0.container.is_remote() {
            return self.try_map_chunks(count, wanted, f).map(|_| ());
        }
        parallel::try_for_each(count, f)
    }

    /// Fetches the bytes of the first of the chunks `range`: as many as fit, at least one. In local stores it
    /// fetches nothing, and returns the end of `range`.
    ///
    /// # Errors
    /// `Corrupt`, `Busy`, `Io`.
    pub(super) fn fetch(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
        parts_of: &impl Fn(usize, EntryRange) -> Vec<EntryRange>,
    ) -> Result<ChunkFetch> {
        if !self.0.container.is_remote() || range.is_empty() {
            return Ok(ChunkFetch {
                end: range.end,
                _ahead: ReadAhead::default(),
            });
        }
        let end = range.end.min(range.start + FETCH_CHUNKS);
        with_scratch(|scratch| {
            let (indices, mut end) = self.fetch_indices(range.start..end, chunk, scratch)?;
            let mut parts: Vec<EntryRange> = Vec::new();
            let (mut bytes, mut gap) = (0u64, u64::MAX);
            for index in range.start..end {
                let Some(coordinates) = chunk(index) else {
                    continue;
                };
                let stored = self
                    .locate(&coordinates, scratch)
                    .map_err(|error| self.with_chunk_path(error, &coordinates))?;
                let Some(stored) = stored else {
                    continue;
                };
                let wanted = parts_of(index, stored.range());
                if wanted.len() > 1 {
                    gap = PART_GAP;
                }
                let mut last = parts.last();
                for part in &wanted {
                    let between = last.map_or(0, |last| {
                        let gap = part.offset.abs_diff(last.offset.saturating_add(last.len));
                        gap.min(CHUNK_GAP)
                    });
                    bytes = bytes.saturating_add(part.len).saturating_add(between);
                    last = Some(part);
                }
                if bytes > FETCH_BYTES && !parts.is_empty() {
                    end = index;
                    break;
                }
                // Reading a chunk over the limit is an error later.
                parts.extend(wanted.into_iter().filter(|part| part.len <= FETCH_BYTES));
            }
            let ahead = self.0.container.read_ahead(&parts, gap)?;
            Ok(ChunkFetch {
                end,
                _ahead: ahead.and(indices),
            })
        })
    }

    /// Fetches and reads the indices of the shards that contain the first of the chunks `range`; small
    /// shards are fetched whole. Returns the number after the last included chunk: at least one chunk
    /// is included.
    fn fetch_indices(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
        scratch: &mut Scratch,
    ) -> Result<(ReadAhead, usize)> {
        let request = self.index_request(range, chunk)?;
        let ahead = self.0.container.read_ahead(&request.parts, u64::MAX)?;
        for (number, coordinates) in request.shards {
            self.shard(number, &coordinates, scratch)?;
        }
        Ok((ahead, request.end))
    }

    /// The indices of the shards that contain the first of the chunks `range`: as many as fit.
    fn index_request(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
    ) -> Result<IndexRequest> {
        let mut request = IndexRequest {
            parts: Vec::new(),
            shards: HashMap::new(),
            end: range.end,
        };
        let mut bytes = 0u64;
        let Some(sharding) = &self.0.metadata.sharding else {
            return Ok(request);
        };
        for index in range {
            let Some(coordinates) = chunk(index) else {
                continue;
            };
            let shard = self.shard_of(sharding, &coordinates);
            if request.shards.contains_key(&shard.number) || self.has_shard(shard.number) {
                continue;
            }
            let key = self.0.metadata.keys.key(&self.0.name, &shard.coordinates);
            if let Some(entry) = self.0.container.entry(&key)? {
                let count = self.chunks_in_shard(sharding);
                let (offset, len) = match entry.len() <= SMALL_SHARD {
                    true => (0, entry.len()),
                    false => Shard::index_range(&entry, sharding, count, &self.0.limits)?,
                };
                bytes = bytes.saturating_add(len).saturating_add(CHUNK_GAP);
                if bytes > FETCH_BYTES && !request.parts.is_empty() {
                    request.end = index;
                    break;
                }
                request.parts.push(EntryRange { entry, offset, len });
            }
            request.shards.insert(shard.number, shard.coordinates);
        }
        Ok(request)
    }

    /// Whether the index of a shard has been read.
    fn has_shard(&self, number: u64) -> bool {
        self.0.shards.lock().contains_key(&number)
    }

    /// Whether the store is remote, so that every read is a request.
    pub(crate) fn is_remote(&self) -> bool {
        self.0.container.is_remote()
    }

    /// Fetches the bytes of some chunks of a remote store.
    ///
    /// # Errors
    /// `Corrupt`, `Busy`, `Io`.
    pub(super) fn fetch_stored(&self, stored: &[StoredChunk]) -> Result<ReadAhead> {
        if !self.0.container.is_remote() {
            return Ok(ReadAhead::default());
        }
        let parts: Vec<EntryRange> = stored.iter().map(StoredChunk::range).collect();
        let lengths = parts.iter().map(|part| part.len);
        match lengths.fold(0, u64::saturating_add) <= FETCH_BYTES {
            true => self.0.container.read_ahead(&parts, u64::MAX),
            false => Ok(ReadAhead::default()),
        }
    }

    /// The bytes of all entries of the array.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn parts(&self) -> Result<Vec<EntryRange>> {
        let parts = self
            .stored_entries()?
            .into_iter()
            .map(|(_, entry)| EntryRange {
                len: entry.len(),
                offset: 0,
                entry,
            });
        Ok(parts.collect())
    }
}

/// Fetches the stored chunks of rows of several 1-D arrays of one remote container together. The caller
/// ensures that they fit in memory. In local stores it does nothing.
///
/// # Errors
/// `Corrupt`, `Busy`, `Io`.
pub(crate) fn fetch_rows(wanted: &[(&Array, Range<u64>)]) -> Result<ReadAhead> {
    let container = match wanted.first() {
        Some((first, _)) if first.is_remote() => &first.0.container,
        _ => return Ok(ReadAhead::default()),
    };
    let chunk = |index: usize| Some(vec![index as u64]);
    let chunks = |array: &Array, rows: &Range<u64>| {
        let length = array.chunk_shape().first().copied().unwrap_or(1);
        (rows.start / length) as usize..rows.end.div_ceil(length) as usize
    };
    with_scratch(|scratch| {
        let (mut parts, mut shards) = (Vec::new(), Vec::new());
        for (array, rows) in wanted {
            let request = array.index_request(chunks(array, rows), &chunk)?;
            parts.extend(request.parts);
            shards.push((array, request.shards));
        }
        let indices = container.read_ahead(&parts, u64::MAX)?;
        for (array, shards) in shards {
            for (number, coordinates) in shards {
                array.shard(number, &coordinates, scratch)?;
            }
        }
        let mut parts = Vec::new();
        for (array, rows) in wanted {
            for index in chunks(array, rows) {
                let stored = array.locate(&[index as u64], scratch);
                let stored = stored.map_err(|error| array.with_path(error))?;
                parts.extend(stored.as_ref().map(StoredChunk::range));
            }
        }
        let lengths = parts.iter().map(|part| part.len);
        match lengths.fold(0, u64::saturating_add) <= 2 * FETCH_BYTES {
            true => Ok(container.read_ahead(&parts, u64::MAX)?.and(indices)),
            // Larger than the values: no writer makes such chunks, and reading them is an error later.
            false => Ok(indices),
        }
    })
}
