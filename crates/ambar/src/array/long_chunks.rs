//! Chooses long chunks for arrays that they make smaller.

use super::chunk_grid::ChunkGrid;
use super::chunk_source::ChunkSource;
use super::spec::ArraySpec;
use crate::codec::{self, ChunkSamples, CodecChain, CodecChoice};
use crate::error::Result;

/// Raw bytes of the chunks that decide whether long chunks are tried.
const PROBE: u64 = 1 << 20;

/// Long chunks are tried if chunks of `PROBE` bytes cost at most this multiple of short ones.
const PROBE_MARGIN: f64 = 1.15;

/// Compressed values that exceed this part of their raw bytes, or of the short chunks, are noise.
const NOISE: f64 = 0.75;

/// Below this number of bytes per value, corners of cells have a pattern that other codecs find.
const PATTERN_BYTES: f64 = 0.06;

/// If long chunks have more than this part of the bytes of short ones, few of their cells touch: cells in
/// random order touch only if all are in one chunk.
const TOUCHING: f64 = 0.55;

/// The longest chunks, which one core decodes, must have less than this part of the bytes of long ones.
const LONGEST_SAVING: f64 = 0.75;

/// Maximum raw bytes of a chunk of cells in random order; a reader needs more memory than that.
const LONGEST_CORNER_CHUNK: u64 = 256 << 20;

impl ChunkSource<'_> {
    /// Divides the array into long chunks if they cost less than the short ones, as they do if values repeat
    /// over long distances.
    pub(super) fn choose_long(
        &mut self,
        spec: &ArraySpec,
        short: CodecChoice,
    ) -> Result<CodecChoice> {
        let cut = std::mem::replace(&mut self.grid, ChunkGrid::long(spec, PROBE));
        let chosen = self.long(spec, &short);
        self.keep_or_restore(spec, cut, short, chosen)
    }

    /// The same for corners of cells, with the codec `ambar.simplices`.
    pub(super) fn choose_corners(
        &mut self,
        spec: &ArraySpec,
        short: CodecChoice,
    ) -> Result<CodecChoice> {
        if short.bytes < PATTERN_BYTES {
            return Ok(short);
        }
        let long = ChunkGrid::long(spec, codec::LONG_CHUNK_BYTES);
        let cut = std::mem::replace(&mut self.grid, long);
        let chosen = self.corners(spec, &short);
        self.keep_or_restore(spec, cut, short, chosen)
    }

    /// Keeps the current grid if a chain was chosen for it, and restores the one `before` if not.
    fn keep_or_restore(
        &mut self,
        spec: &ArraySpec,
        before: ChunkGrid,
        short: CodecChoice,
        chosen: Result<Option<CodecChoice>>,
    ) -> Result<CodecChoice> {
        match chosen {
            Ok(Some(long)) => {
                self.metadata = self.grid.describe(spec);
                Ok(long)
            }
            other => {
                self.grid = before;
                other.map(|_| short)
            }
        }
    }

    fn samples<'b>(&'b self, spec: &'b ArraySpec, chunks: Vec<usize>) -> ChunkSamples<'b> {
        ChunkSamples {
            dtype: &spec.dtype,
            chunk_shape: &self.grid.chunk_shape,
            chunks,
        }
    }

    /// The chain for corners of cells if it costs less than `short`; the grid becomes the one for it.
    fn corners(&mut self, spec: &ArraySpec, short: &CodecChoice) -> Result<Option<CodecChoice>> {
        let mut chosen: Option<CodecChoice> = None;
        for bytes in [codec::LONG_CHUNK_BYTES, LONGEST_CORNER_CHUNK] {
            let cut = std::mem::replace(&mut self.grid, ChunkGrid::long(spec, bytes));
            let samples = self.samples(spec, vec![self.count() / 2]);
            let found = codec::choose_corners(spec.profile, &samples, |chain, index| {
                self.encode_with(chain, &self.chunk_at(index), None)
            })?;
            let Some(found) = found else {
                return Ok(None);
            };
            let touching = found.bytes < TOUCHING * short.bytes;
            let worth = |chosen: &CodecChoice| found.bytes < LONGEST_SAVING * chosen.bytes;
            if chosen.as_ref().is_some_and(|chosen| !worth(chosen)) {
                self.grid = cut;
            } else {
                chosen = Some(found);
            }
            if touching || self.count() == 1 {
                break;
            }
        }
        Ok(chosen.filter(|chosen| chosen.cost < short.cost))
    }

    /// The chain for long chunks if it costs less than `short`; the grid becomes the one for it.
    fn long(&mut self, spec: &ArraySpec, short: &CodecChoice) -> Result<Option<CodecChoice>> {
        let size = spec.dtype.size().unwrap_or(1) as f64;
        if short.bytes > NOISE * size {
            // Most likely noise: a probe decides whether to continue.
            let middle = self.chunk_at(self.count() / 2);
            let probe = self.encode_with(&CodecChain::probe(), &middle, None)?;
            let values = self.grid.chunk_shape.iter().product::<u64>() as f64;
            if probe.len() as f64 > NOISE * short.bytes * values {
                return Ok(None);
            }
        }
        let mut only = None;
        for bytes in [PROBE, codec::LONG_CHUNK_BYTES] {
            self.grid = ChunkGrid::long(spec, bytes);
            let samples = self.samples(spec, codec::samples(self.count()));
            let encode =
                |chain: &CodecChain, index| self.encode_with(chain, &self.chunk_at(index), None);
            let long = codec::choose_long(spec.profile, only.as_ref(), &samples, encode)?;
            // The samples of short and long chunks are at different positions.
            let bar = if bytes == PROBE {
                PROBE_MARGIN * short.cost
            } else {
                short.cost
            };
            match long.filter(|long| long.cost < bar) {
                Some(long) if bytes == PROBE => only = Some(long.chain),
                other => return Ok(other),
            }
        }
        Ok(None)
    }
}
