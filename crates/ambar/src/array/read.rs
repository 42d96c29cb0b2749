//! Reading values of a fixed size: each touched chunk is read with one call, verified, and decoded
//! to where its values belong.

use std::ops::Range;
use std::sync::Arc;

use super::blocks::{Block, ReadPlan, Runs, Span, advance};
use super::remote::Fetched;
use super::shard::{Shard, misplaced, tag};
use super::stored::StoredChunk;
use super::wanted::{Wanted, whole};
use super::{Array, Indices, Slice};
use crate::codec::{CodecScratch, Scratch, Words, check_crc32c, with_scratch};
use crate::container::{Entry, EntryRange};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::limits::checked_product;
use crate::memory::Shared;
use crate::metadata::Sharding;

/// Missing entries that an error names.
const NAMED: usize = 3;

/// Checks the values of a chunk that is stored unencoded, with its checksum after them: by the checksum,
/// and that the chunk has this tag.
fn check_plain(values: &[u8], checksum: [u8; 4], expected: Option<u32>) -> Result<()> {
    check_crc32c(values, checksum, "a chunk")?;
    match expected {
        Some(expected) if tag([values, &checksum].into_iter()) != expected => Err(misplaced()),
        _ => Ok(()),
    }
}

impl Array {
    /// Reads a selection, one slice a dimension, into `out` in C order, native byte order, on the
    /// threads of the current pool. `out` has exactly `product of lengths * dtype size` bytes.
    /// Only the chunks that the selection touches are read.
    ///
    /// # Errors
    /// `Invalid` for a selection outside of the array, an `out` of another size or a dtype without
    /// fixed size; `Corrupt` where a checksum differs; `Io`.
    pub fn read(&self, selection: &[Slice], out: &mut [u8]) -> Result<()> {
        let selection: Vec<Indices<'_>> = selection.iter().copied().map(Indices::Slice).collect();
        self.read_indices(&selection, out)
    }

    /// As `read`, with slices or lists of indices: every combination of the indices of all dimensions
    /// is read, a chunk once however many of them it holds.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_indices(&self, selection: &[Indices<'_>], out: &mut [u8]) -> Result<()> {
        self.try_read(selection, out)
            .map_err(|error| self.place(error))
    }

    /// Raw bytes of the chunks that a selection touches: what reading it decodes; of strings, about.
    ///
    /// # Errors
    /// `Invalid` for a selection outside of the array; `Limit`.
    pub fn touched_bytes(&self, selection: &[Indices<'_>]) -> Result<u64> {
        let plan = ReadPlan::new(self.shape(), self.chunk_shape(), selection)
            .map_err(|error| self.place(error))?;
        let chunk = self.chunk_shape().iter().product::<u64>();
        let size = self.dtype().size().unwrap_or(32) as u64;
        Ok((plan.count as u64).saturating_mul(chunk.saturating_mul(size)))
    }

    /// Reads rows of a 1-D array on the calling thread; of others, rows of their first dimension as
    /// `read` does.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_rows(&self, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        if let ([length], Some(size)) = (self.shape(), self.dtype().size()) {
            return self
                .try_read_rows(rows, *length, size, out)
                .map_err(|error| self.place(error));
        }
        let mut selection: Vec<Slice> = self.shape().iter().copied().map(Slice::all).collect();
        if let Some(first) = selection.first_mut() {
            *first = rows.into();
        }
        self.read(&selection, out)
    }

    /// Names the chunk at `coordinates` in an error.
    pub(super) fn place_chunk(&self, error: Error, coordinates: &[u64]) -> Error {
        let places: Vec<String> = coordinates.iter().map(u64::to_string).collect();
        error.at_node(format!("{}, chunk {}", self.path(), places.join("/")))
    }

    /// Names file and node in an error.
    pub(super) fn place(&self, error: Error) -> Error {
        error
            .at_node(self.path())
            .in_file(self.0.container.location())
    }

    fn try_read(&self, selection: &[Indices<'_>], out: &mut [u8]) -> Result<()> {
        let size = self.value_size()?;
        let plan = ReadPlan::new(self.shape(), self.chunk_shape(), selection)?;
        let bytes = plan.out_shape.iter().product::<u64>() * size as u64;
        self.check_out(bytes, out)?;
        if bytes == 0 {
            return Ok(());
        }
        let shared = Shared::new(out);
        let wanted = Wanted {
            chunk: |index: usize| Some(plan.block(index)?.chunk),
            parts: |index: usize, whole: EntryRange| self.parts_of_block(&plan, index, whole),
        };
        self.try_for_each_chunk(plan.count, wanted, |index| {
            let Some(block) = plan.block(index) else {
                return Ok(());
            };
            with_scratch(|scratch| self.read_block(&block, &plan.out_shape, &shared, scratch))
                .map_err(|error| self.place_chunk(error, &block.chunk))
        })
    }

    fn read_block(
        &self,
        block: &Block,
        out_shape: &[u64],
        shared: &Shared<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let chunk_bytes = self.chunk_bytes()?;
        let size = self.value_size()?;
        let stored = self.locate(&block.chunk, scratch)?;
        if let Some(stored) = &stored
            && self.read_coarse(stored, block, (out_shape, shared), scratch)?
        {
            return Ok(());
        }
        let runs = |spans: &[Span]| Runs::new(spans, self.chunk_shape(), out_shape, size);
        if let Some(runs) = block.single().map(|spans| runs(&spans))
            && runs.is_single()
            && runs.len == chunk_bytes
        {
            let start = runs.first().outside;
            // SAFETY: blocks of different chunks are disjoint in the result, and each chunk is
            // read by one thread.
            let out = unsafe { shared.slice(start..start + runs.len) }?;
            return self.decode_chunk(stored.as_ref(), out, scratch);
        }
        self.with_decoded(stored.as_ref(), chunk_bytes, scratch, |values| {
            block.try_for_each(|spans| {
                let runs = runs(spans);
                runs.try_for_each(|run| {
                    // SAFETY: blocks of different chunks are disjoint in the result, and so are
                    // the runs of one block; each chunk is read by one thread.
                    let out = unsafe { shared.slice(run.outside..run.outside + runs.len) }?;
                    out.copy_from_slice(&values[run.inside..run.inside + runs.len]);
                    Ok(())
                })
            })
        })
    }

    fn try_read_rows(
        &self,
        rows: Range<u64>,
        length: u64,
        size: usize,
        out: &mut [u8],
    ) -> Result<()> {
        if rows.start > rows.end || rows.end > length {
            return Err(Error::invalid(format!(
                "rows {rows:?} of an array of {length}"
            )));
        }
        self.check_out((rows.end - rows.start) * size as u64, out)?;
        let chunk_rows = self.chunk_shape().first().copied().unwrap_or(1);
        let chunk_bytes = self.chunk_bytes()?;
        let mut rest = out;
        let mut row = rows.start;
        let behind = rows.end.div_ceil(chunk_rows) as usize;
        let mut fetched = Fetched::default();
        with_scratch(|scratch| {
            while row < rows.end {
                let chunk = row / chunk_rows;
                if chunk as usize >= fetched.end {
                    let chunk = chunk as usize;
                    fetched =
                        self.fetch(chunk..behind, &|chunk| Some(vec![chunk as u64]), &whole)?;
                }
                let start = chunk * chunk_rows;
                let stop = rows.end.min(start + chunk_rows);
                let taken = std::mem::take(&mut rest);
                let (now, later) = taken.split_at_mut((stop - row) as usize * size);
                rest = later;
                self.read_part(
                    chunk,
                    (row - start) as usize * size,
                    now,
                    chunk_bytes,
                    scratch,
                )
                .map_err(|error| self.place_chunk(error, &[chunk]))?;
                row = stop;
            }
            Ok(())
        })
    }

    /// Reads the bytes of a 1-D array's chunk from `skipped` on, as many as `out` takes.
    pub(super) fn read_part(
        &self,
        chunk: u64,
        skipped: usize,
        out: &mut [u8],
        chunk_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let stored = self.locate(&[chunk], scratch)?;
        if out.len() == chunk_bytes {
            return self.decode_chunk(stored.as_ref(), out, scratch);
        }
        self.with_decoded(stored.as_ref(), chunk_bytes, scratch, |values| {
            out.copy_from_slice(&values[skipped..skipped + out.len()]);
            Ok(())
        })
    }

    pub(super) fn value_size(&self) -> Result<usize> {
        self.dtype().size().ok_or_else(|| {
            Error::invalid(format!(
                "values of {} have no fixed size; read them as strings",
                self.dtype()
            ))
        })
    }

    fn check_out(&self, bytes: u64, out: &[u8]) -> Result<()> {
        if bytes == out.len() as u64 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the selection takes {bytes} bytes, but there is memory for {}",
            out.len()
        )))
    }

    pub(super) fn chunk_bytes(&self) -> Result<usize> {
        let size = self.value_size()? as u64;
        let bytes = self.chunk_shape().iter().product::<u64>() * size;
        Limits::check("a chunk", bytes, self.0.limits.chunk_bytes)
    }

    /// Where the chunk at `coordinates` is stored; `None` where it was never written.
    pub(super) fn locate(
        &self,
        coordinates: &[u64],
        scratch: &mut Scratch,
    ) -> Result<Option<StoredChunk>> {
        let metadata = &self.0.metadata;
        let Some(sharding) = &metadata.sharding else {
            let key = metadata.keys.key(&self.0.name, coordinates);
            let entry = self.0.container.entry(&key)?;
            self.check_present(entry.is_some(), &key)?;
            return Ok(entry.map(|entry| StoredChunk::Whole(key, entry)));
        };
        let (linear, shard, inside) = self.shard_of(sharding, coordinates);
        let shard = self.shard(linear, &shard, scratch)?;
        Ok(shard.and_then(|shard| {
            let place = shard.place(inside)?;
            Some(StoredChunk::Part(shard, place))
        }))
    }

    /// Which shard holds the chunk at `coordinates`: its number, its coordinates, and which of its
    /// chunks it is.
    pub(super) fn shard_of(
        &self,
        sharding: &Sharding,
        coordinates: &[u64],
    ) -> (u64, Vec<u64>, usize) {
        let metadata = &self.0.metadata;
        let mut inside = 0u64;
        let mut shard = vec![0; coordinates.len()];
        for d in 0..coordinates.len() {
            let per_shard = sharding.shape[d] / metadata.chunk_shape[d];
            shard[d] = coordinates[d] / per_shard;
            inside = inside * per_shard + coordinates[d] % per_shard;
        }
        (self.entry_number(&shard), shard, inside as usize)
    }

    /// The number of the entry (shard, or chunk where there are none) at `coordinates`, in C order.
    pub(super) fn entry_number(&self, coordinates: &[u64]) -> u64 {
        let outer = self.shard_shape().unwrap_or(self.chunk_shape());
        let lengths = self.shape().iter().zip(outer);
        let grid = lengths.map(|(length, outer)| length.div_ceil(*outer));
        coordinates
            .iter()
            .zip(grid)
            .fold(0, |number: u64, (at, length)| {
                number.wrapping_mul(length).wrapping_add(*at)
            })
    }

    /// The number of chunks in a shard.
    pub(super) fn chunks_in_shard(&self, sharding: &Sharding) -> usize {
        let lengths = sharding.shape.iter().zip(&self.0.metadata.chunk_shape);
        lengths.map(|(shard, chunk)| shard / chunk).product::<u64>() as usize
    }

    /// The shard at `coordinates`, its index read once; `None` where it was never written.
    pub(super) fn shard(
        &self,
        linear: u64,
        coordinates: &[u64],
        scratch: &mut Scratch,
    ) -> Result<Option<Arc<Shard>>> {
        let Some(sharding) = &self.0.metadata.sharding else {
            return Ok(None);
        };
        let cached = || self.0.shards.lock();
        if let Some(shard) = cached().get(&linear) {
            return Ok(shard.clone());
        }
        let key = self.0.metadata.keys.key(&self.0.name, coordinates);
        let entry = self.0.container.entry(&key)?;
        self.check_present(entry.is_some(), &key)?;
        let shard = match entry {
            None => None,
            Some(entry) => {
                let count = self.chunks_in_shard(sharding);
                let container = &*self.0.container;
                let limits = &self.0.limits;
                let shard = Shard::read(container, entry, sharding, count, limits, scratch)?;
                Some(Arc::new(shard))
            }
        };
        cached().insert(linear, shard.clone());
        Ok(shard)
    }

    fn check_present(&self, present: bool, key: &str) -> Result<()> {
        if present || !self.0.complete {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{key} is missing; restore the store from a copy"
        )))
    }

    /// Checks that `stored` are all entries of the array, if no writer leaves any out.
    ///
    /// # Errors
    /// `Corrupt`, which says how many are missing and names the first of them.
    pub(super) fn check_complete(&self, stored: &[(Vec<u64>, Entry)]) -> Result<()> {
        let grid = self.entry_grid();
        let declared = checked_product(&grid, 1).unwrap_or(u64::MAX);
        let missing = declared.saturating_sub(stored.len() as u64);
        if missing == 0 || !self.0.complete {
            return Ok(());
        }
        // Those that are there are in order: the first that is not where it should be shows a gap.
        let mut expected = vec![0; grid.len()];
        let mut there = stored.iter().map(|(place, _)| place).peekable();
        let mut named = Vec::new();
        loop {
            if there.next_if(|place| **place == expected).is_none() {
                named.push(self.0.metadata.keys.key(&self.0.name, &expected));
            }
            if named.len() == NAMED || !advance(&mut expected, &grid) {
                break;
            }
        }
        let more = if missing > named.len() as u64 {
            ", ..."
        } else {
            ""
        };
        Err(Error::corrupt(format!(
            "{missing} of {declared} entries are missing: {}{more}; restore the store from a copy",
            named.join(", ")
        )))
    }

    /// Decodes a chunk into `out`, which has exactly its size.
    fn decode_chunk(
        &self,
        stored: Option<&StoredChunk>,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(stored) = stored else {
            fill(out, self.fill_value());
            return Ok(());
        };
        let chain = &self.0.metadata.chain;
        let (entry, offset, len) = stored.place();
        if chain.is_plain(self.dtype()) && len == out.len() as u64 + 4 {
            // Straight to where it is wanted: a copy would take as long as the reading itself.
            let mut checksum = [0; 4];
            self.0.container.read_at(entry, offset, out)?;
            self.0
                .container
                .read_at(entry, offset + len - 4, &mut checksum)?;
            return check_plain(out, checksum, stored.tag());
        }
        self.with_encoded(stored, scratch, |encoded, _, codecs| {
            let limits = &self.0.limits;
            chain.decode(
                self.dtype(),
                self.chunk_shape(),
                encoded,
                out,
                limits,
                codecs,
            )
        })
    }

    /// Decodes a chunk of `bytes` into scratch memory and hands it to `f`.
    fn with_decoded(
        &self,
        stored: Option<&StoredChunk>,
        bytes: usize,
        scratch: &mut Scratch,
        f: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(stored) = stored else {
            let values = scratch.decoded.bytes(bytes)?;
            fill(values, self.fill_value());
            return f(values);
        };
        self.with_encoded(stored, scratch, |encoded, decoded, codecs| {
            let values = decoded.bytes(bytes)?;
            let (chain, shape) = (&self.0.metadata.chain, self.chunk_shape());
            chain.decode(self.dtype(), shape, encoded, values, &self.0.limits, codecs)?;
            f(values)
        })
    }

    /// Reads a chunk as it is stored and hands it to `f`, with the rest of the scratch memory.
    pub(super) fn with_encoded<T>(
        &self,
        stored: &StoredChunk,
        scratch: &mut Scratch,
        f: impl FnOnce(&[u8], &mut Words, &mut CodecScratch) -> Result<T>,
    ) -> Result<T> {
        let Scratch {
            encoded,
            decoded,
            codecs,
        } = scratch;
        let container = &self.0.container;
        // What is stored may be a little longer than what it decodes to.
        let limit = self.0.limits.chunk_bytes.saturating_add(1 << 20);
        if let StoredChunk::Whole(key, _) = stored
            && !self.0.metadata.chain.is_checksummed()
        {
            // Without a checksum of the chunk's own, the container's is the only one.
            let bytes = container.read_whole(key, limit)?;
            let bytes = bytes.ok_or_else(|| Error::corrupt(format!("{key} has vanished")))?;
            return f(&bytes, decoded, codecs);
        }
        let (entry, offset, len) = stored.place();
        let encoded = encoded.bytes(Limits::check("a stored chunk", len, limit)?)?;
        container.read_at(entry, offset, encoded)?;
        if stored
            .tag()
            .is_some_and(|expected| tag([&*encoded].into_iter()) != expected)
        {
            // Damage of the chunk's end changes the tag, too, and is to be reported as such.
            self.0.metadata.chain.verify(encoded)?;
            return Err(misplaced());
        }
        f(encoded, decoded, codecs)
    }
}

/// Repeats `value` over `out`.
fn fill(out: &mut [u8], value: &[u8]) {
    if value.iter().all(|byte| *byte == 0) {
        out.fill(0);
    } else {
        out.chunks_exact_mut(value.len())
            .for_each(|place| place.copy_from_slice(value));
    }
}
