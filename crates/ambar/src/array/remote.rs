//! Reading over a network: what many chunks need is fetched together before they are decoded.

use std::collections::HashMap;
use std::ops::Range;

use super::Array;
use super::shard::Shard;
use super::stored::StoredChunk;
use super::wanted::Wanted;
use crate::codec::{Scratch, with_scratch};
use crate::container::{Ahead, EntryRange};
use crate::error::Result;
use crate::parallel;

/// StoredChunk bytes that are fetched at once. While they are decoded the next ones are fetched, so that
/// twice as many are held.
const AT_ONCE: u64 = 128 << 20;

/// Maximum number of chunks that are fetched in one call.
const CHUNKS: usize = 1 << 16;

/// Shards up to this length are fetched whole, which saves the request for their index.
const SMALL_SHARD: u64 = 256 << 10;

/// What lies between two chunks may be fetched with them: so much of it is counted.
const BETWEEN: u64 = 256 << 10;

/// Where parts of chunks are fetched, so much between them may be fetched with them.
const BETWEEN_PARTS: u64 = 16 << 10;

/// Shards by their number: their coordinates.
type Shards = HashMap<u64, Vec<u64>>;

/// Chunks whose bytes are in memory.
#[derive(Default)]
pub(super) struct Fetched {
    /// One past the last of them.
    pub end: usize,
    /// What keeps the bytes.
    _ahead: Ahead,
}

impl Array {
    /// Calls `f` with each of `0..count`, in parallel, as `parallel::try_map` does. Of each, `chunk`
    /// names the chunk it reads. Where that takes requests to another machine, the bytes of many
    /// chunks are fetched together.
    ///
    /// # Errors
    /// One of the errors that `f` returned, or that fetching met.
    pub(super) fn try_map_chunks<T: Send>(
        &self,
        count: usize,
        wanted: Wanted<
            impl Fn(usize) -> Option<Vec<u64>> + Sync,
            impl Fn(usize, EntryRange) -> Vec<EntryRange> + Sync,
        >,
        f: impl Fn(usize) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        if !self.0.container.is_remote() {
            return parallel::try_map(count, f);
        }
        let Wanted { chunk, parts } = wanted;
        let mut out = Vec::new();
        let mut start = 0;
        let mut fetched = self.fetch(0..count, &chunk, &parts)?;
        while start < count {
            let end = fetched.end;
            let decode = || parallel::try_map(end - start, |index| f(start + index));
            let following = || match end < count {
                true => self.fetch(end..count, &chunk, &parts),
                false => Ok(Fetched::default()),
            };
            let (decoded, next) = parallel::try_join(decode, following)?;
            out.extend(decoded);
            start = end;
            fetched = next;
        }
        Ok(out)
    }

    /// As [`Array::try_map_chunks`], for what gives nothing.
    ///
    /// # Errors
    /// Likewise.
    pub(super) fn try_for_each_chunk(
        &self,
        count: usize,
        wanted: Wanted<
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

    /// Fetches the bytes of the first of the chunks `range`, as many as fit, at least one. Locally it
    /// fetches nothing, and says that all of them are there.
    ///
    /// # Errors
    /// `Corrupt`, `Busy`, `Io`.
    pub(super) fn fetch(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
        parts_of: &impl Fn(usize, EntryRange) -> Vec<EntryRange>,
    ) -> Result<Fetched> {
        if !self.0.container.is_remote() || range.is_empty() {
            return Ok(Fetched {
                end: range.end,
                _ahead: Ahead::default(),
            });
        }
        let end = range.end.min(range.start + CHUNKS);
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
                    .map_err(|error| self.place_chunk(error, &coordinates))?;
                let Some(stored) = stored else {
                    continue;
                };
                let wanted = parts_of(index, part_of(&stored));
                if wanted.len() > 1 {
                    gap = BETWEEN_PARTS;
                }
                let mut last = parts.last();
                for part in &wanted {
                    let between = last.map_or(0, |last| {
                        let gap = part.offset.abs_diff(last.offset.saturating_add(last.len));
                        gap.min(BETWEEN)
                    });
                    bytes = bytes.saturating_add(part.len).saturating_add(between);
                    last = Some(part);
                }
                if bytes > AT_ONCE && !parts.is_empty() {
                    end = index;
                    break;
                }
                // A chunk beyond all bounds is refused when it is read.
                parts.extend(wanted.into_iter().filter(|part| part.len <= AT_ONCE));
            }
            let ahead = self.0.container.read_ahead(&parts, gap)?;
            Ok(Fetched {
                end,
                _ahead: ahead.and(indices),
            })
        })
    }

    /// Fetches the indices of the shards that hold the first of the chunks `range`, small shards
    /// whole, and reads the indices. Gives behind which chunk it ended, at least one.
    fn fetch_indices(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
        scratch: &mut Scratch,
    ) -> Result<(Ahead, usize)> {
        let (parts, shards, end) = self.index_parts(range, chunk)?;
        let ahead = self.0.container.read_ahead(&parts, u64::MAX)?;
        for (linear, shard) in shards {
            self.shard(linear, &shard, scratch)?;
        }
        Ok((ahead, end))
    }

    /// What is to be fetched for the indices of the shards that hold the first of the chunks `range`;
    /// those shards; and behind which chunk that ends.
    fn index_parts(
        &self,
        range: Range<usize>,
        chunk: &(impl Fn(usize) -> Option<Vec<u64>> + Sync),
    ) -> Result<(Vec<EntryRange>, Shards, usize)> {
        let mut parts = Vec::new();
        let mut shards = Shards::new();
        let (mut bytes, mut end) = (0u64, range.end);
        let Some(sharding) = &self.0.metadata.sharding else {
            return Ok((parts, shards, end));
        };
        for index in range {
            let Some(coordinates) = chunk(index) else {
                continue;
            };
            let (linear, shard, _) = self.shard_of(sharding, &coordinates);
            if shards.contains_key(&linear) || self.has_shard(linear) {
                continue;
            }
            let key = self.0.metadata.keys.key(&self.0.name, &shard);
            if let Some(entry) = self.0.container.entry(&key)? {
                let count = self.chunks_in_shard(sharding);
                let (offset, len) = match entry.len() <= SMALL_SHARD {
                    true => (0, entry.len()),
                    false => Shard::index_place(&entry, sharding, count, &self.0.limits)?,
                };
                bytes = bytes.saturating_add(len).saturating_add(BETWEEN);
                if bytes > AT_ONCE && !parts.is_empty() {
                    end = index;
                    break;
                }
                parts.push(EntryRange { entry, offset, len });
            }
            shards.insert(linear, shard);
        }
        Ok((parts, shards, end))
    }

    /// Whether the index of a shard has been read.
    fn has_shard(&self, linear: u64) -> bool {
        self.0.shards.lock().contains_key(&linear)
    }

    /// Whether reading takes requests to another machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.0.container.is_remote()
    }

    /// Fetches what is stored of `stored`, where that takes requests to another machine.
    ///
    /// # Errors
    /// `Corrupt`, `Busy`, `Io`.
    pub(super) fn fetch_stored(&self, stored: &[StoredChunk]) -> Result<Ahead> {
        if !self.0.container.is_remote() {
            return Ok(Ahead::default());
        }
        let parts: Vec<EntryRange> = stored.iter().map(part_of).collect();
        let lengths = parts.iter().map(|part| part.len);
        match lengths.fold(0, u64::saturating_add) <= AT_ONCE {
            true => self.0.container.read_ahead(&parts, u64::MAX),
            false => Ok(Ahead::default()),
        }
    }

    /// All entries of the array, whole.
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

/// Fetches what is stored of rows of several 1-D arrays of one container, together. The caller sees to
/// it that they fit in memory. Locally it does nothing.
///
/// # Errors
/// `Corrupt`, `Busy`, `Io`.
pub(crate) fn fetch_rows(wanted: &[(&Array, Range<u64>)]) -> Result<Ahead> {
    let container = match wanted.first() {
        Some((first, _)) if first.is_remote() => &first.0.container,
        _ => return Ok(Ahead::default()),
    };
    let chunk = |index: usize| Some(vec![index as u64]);
    let chunks = |array: &Array, rows: &Range<u64>| {
        let length = array.chunk_shape().first().copied().unwrap_or(1);
        (rows.start / length) as usize..rows.end.div_ceil(length) as usize
    };
    with_scratch(|scratch| {
        let (mut parts, mut known) = (Vec::new(), Vec::new());
        for (array, rows) in wanted {
            let (found, shards, _) = array.index_parts(chunks(array, rows), &chunk)?;
            parts.extend(found);
            known.push((array, shards));
        }
        let indices = container.read_ahead(&parts, u64::MAX)?;
        for (array, shards) in known {
            for (linear, shard) in shards {
                array.shard(linear, &shard, scratch)?;
            }
        }
        let mut parts = Vec::new();
        for (array, rows) in wanted {
            for index in chunks(array, rows) {
                let stored = array.locate(&[index as u64], scratch);
                let stored = stored.map_err(|error| array.place(error))?;
                parts.extend(stored.as_ref().map(part_of));
            }
        }
        let lengths = parts.iter().map(|part| part.len);
        match lengths.fold(0, u64::saturating_add) <= 2 * AT_ONCE {
            true => Ok(container.read_ahead(&parts, u64::MAX)?.and(indices)),
            // More than the values themselves: no writer wrote that, and it is refused when read.
            false => Ok(indices),
        }
    })
}

fn part_of(stored: &StoredChunk) -> EntryRange {
    let (entry, offset, len) = stored.place();
    EntryRange {
        entry: entry.clone(),
        offset,
        len,
    }
}
