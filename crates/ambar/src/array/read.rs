//! Reads values of a fixed size: each selected chunk is read with one call, verified, and decoded
//! into the caller's memory.

use std::ops::Range;

use super::chunk_requests::{ChunkRequests, whole};
use super::prefetch::ChunkFetch;
use super::read_plan::{Block, ReadPlan, Runs, Span};
use super::shard::{misplaced, tag};
use super::storage::StoredChunk;
use super::{Array, Indices, Slice};
use crate::codec::{Scratch, check_crc32c, with_scratch};
use crate::container::EntryRange;
use crate::error::{Error, Result};
use crate::limits::Limits;

use crate::memory::Shared;

/// Verifies the checksum and the tag of a chunk whose values are stored verbatim.
fn check_plain(values: &[u8], checksum: [u8; 4], expected: Option<u32>) -> Result<()> {
    check_crc32c(values, checksum, "a chunk")?;
    match expected {
        Some(expected) if tag([values, &checksum].into_iter()) != expected => Err(misplaced()),
        _ => Ok(()),
    }
}

impl Array {
    /// Reads a selection, one slice for each dimension, into `out` in C order and native byte order, on the
    /// threads of the current pool. `out` has exactly `product of lengths * dtype size` bytes.
    /// Only chunks that overlap the selection are read.
    ///
    /// # Errors
    /// `Invalid` for a selection outside of the array, an `out` of another size, or a dtype without
    /// fixed size; `Corrupt` if a checksum differs; `Io`.
    pub fn read(&self, selection: &[Slice], out: &mut [u8]) -> Result<()> {
        let selection: Vec<Indices<'_>> = selection.iter().copied().map(Indices::Slice).collect();
        self.read_indices(&selection, out)
    }

    /// As `read`, with slices or lists of indices. Every combination of the indices of all dimensions is
    /// read; each chunk is decoded once.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_indices(&self, selection: &[Indices<'_>], out: &mut [u8]) -> Result<()> {
        self.try_read(selection, out)
            .map_err(|error| self.with_path(error))
    }

    /// Raw bytes of the chunks that overlap a selection, all of which are decoded; an estimate for strings.
    ///
    /// # Errors
    /// `Invalid` for a selection outside of the array; `Limit`.
    pub fn touched_bytes(&self, selection: &[Indices<'_>]) -> Result<u64> {
        let plan = ReadPlan::new(self.shape(), self.chunk_shape(), selection)
            .map_err(|error| self.with_path(error))?;
        let chunk = self.chunk_shape().iter().product::<u64>();
        let size = self.dtype().size().unwrap_or(32) as u64;
        Ok((plan.count as u64).saturating_mul(chunk.saturating_mul(size)))
    }

    /// Reads rows of a 1-D array on the calling thread; of other arrays, rows of the first dimension as
    /// `read` does.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_rows(&self, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        if let ([length], Some(size)) = (self.shape(), self.dtype().size()) {
            return self
                .try_read_rows(rows, *length, size, out)
                .map_err(|error| self.with_path(error));
        }
        let mut selection: Vec<Slice> = self.shape().iter().copied().map(Slice::all).collect();
        if let Some(first) = selection.first_mut() {
            *first = rows.into();
        }
        self.read(&selection, out)
    }

    /// Names the chunk at `coordinates` in an error.
    pub(super) fn with_chunk_path(&self, error: Error, coordinates: &[u64]) -> Error {
        let places: Vec<String> = coordinates.iter().map(u64::to_string).collect();
        error.at_node(format!("{}, chunk {}", self.path(), places.join("/")))
    }

    /// Names file and node in an error.
    pub(super) fn with_path(&self, error: Error) -> Error {
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
        let wanted = ChunkRequests {
            chunk: |index: usize| Some(plan.block(index)?.chunk),
            parts: |index: usize, whole: EntryRange| self.parts_of_block(&plan, index, whole),
        };
        self.try_for_each_chunk(plan.count, wanted, |index| {
            let Some(block) = plan.block(index) else {
                return Ok(());
            };
            with_scratch(|scratch| self.read_block(&block, &plan.out_shape, &shared, scratch))
                .map_err(|error| self.with_chunk_path(error, &block.chunk))
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
            && self.read_downsampled(stored, block, out_shape, shared, scratch)?
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
                "rows {rows:?} are outside of an array of {length} rows"
            )));
        }
        self.check_out((rows.end - rows.start) * size as u64, out)?;
        let chunk_rows = self.chunk_shape().first().copied().unwrap_or(1);
        let chunk_bytes = self.chunk_bytes()?;
        let mut rest = out;
        let mut row = rows.start;
        let end = rows.end.div_ceil(chunk_rows) as usize;
        let mut fetched = ChunkFetch::default();
        with_scratch(|scratch| {
            while row < rows.end {
                let chunk = row / chunk_rows;
                if chunk as usize >= fetched.end {
                    let chunk = chunk as usize;
                    fetched = self.fetch(chunk..end, &|chunk| Some(vec![chunk as u64]), &whole)?;
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
                .map_err(|error| self.with_chunk_path(error, &[chunk]))?;
                row = stop;
            }
            Ok(())
        })
    }

    /// Reads bytes of a chunk of a 1-D array, from byte `skipped` on, into all of `out`.
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
            "the selection has {bytes} bytes, but `out` has {}; give memory of exactly that size",
            out.len()
        )))
    }

    pub(super) fn chunk_bytes(&self) -> Result<usize> {
        let size = self.value_size()? as u64;
        let bytes = self.chunk_shape().iter().product::<u64>() * size;
        Limits::check("a chunk", bytes, self.0.limits.chunk_bytes)
    }

    /// Decodes a chunk into `out`, which has exactly the decoded size.
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
        let EntryRange { entry, offset, len } = stored.range();
        if chain.is_plain(self.dtype()) && len == out.len() as u64 + 4 {
            // Read directly into `out`: a copy would take as long as the read.
            let mut checksum = [0; 4];
            self.0.container.read_at(&entry, offset, out)?;
            self.0
                .container
                .read_at(&entry, offset + len - 4, &mut checksum)?;
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

    /// Decodes a chunk of `bytes` into scratch memory, and calls `f` with it.
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
