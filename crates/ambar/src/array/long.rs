//! Chooses longer chunks than usual for arrays that become smaller by them.

use super::layout::Layout;
use super::source::ChunkSource;
use super::spec::ArraySpec;
use crate::codec::{self, Chosen, CodecChain, Samples};
use crate::error::Result;

/// Raw bytes of the chunks that show whether long chunks are worth trying.
const PROBE: u64 = 1 << 20;

/// Longer chunks are tried if those of `PROBE` bytes cost at most this multiple of short ones.
const PROBE_MARGIN: f64 = 1.15;

/// Compressed values that exceed this part of their raw bytes, or of the short chunks, are noise.
const NOISE: f64 = 0.75;

/// Below this number of bytes a value, corners of cells have a pattern that other codecs find.
const PATTERN_BYTES: f64 = 0.06;

/// If long chunks take more than this part of short ones, their cells hardly touch each other: cells in
/// random order touch only in one chunk of them all.
const TOUCHING: f64 = 0.55;

/// The longest chunks, which one core decodes, must take less than this part of long ones.
const LONGEST_SAVING: f64 = 0.75;

/// Raw bytes of a chunk of cells in random order at most; a reader needs more memory than that.
const LONGEST_CORNER_CHUNK: u64 = 256 << 20;

impl ChunkSource<'_> {
    /// Cuts the array into long chunks if they cost less than the short ones, as they do if values repeat
    /// over long distances.
    pub(super) fn choose_long(&mut self, spec: &ArraySpec, short: Chosen) -> Result<Chosen> {
        let cut = std::mem::replace(&mut self.layout, Layout::long(spec, PROBE));
        let chosen = self.long(spec, &short);
        self.cut_anew(spec, cut, short, chosen)
    }

    /// The same for corners of cells, with the codec `ambar.simplices`.
    pub(super) fn choose_corners(&mut self, spec: &ArraySpec, short: Chosen) -> Result<Chosen> {
        if short.bytes < PATTERN_BYTES {
            return Ok(short);
        }
        let long = Layout::long(spec, codec::LONG_CHUNK);
        let cut = std::mem::replace(&mut self.layout, long);
        let chosen = self.corners(spec, &short);
        self.cut_anew(spec, cut, short, chosen)
    }

    /// Keeps the current layout if a chain was chosen for it, and restores the one `before` if not.
    fn cut_anew(
        &mut self,
        spec: &ArraySpec,
        before: Layout,
        short: Chosen,
        chosen: Result<Option<Chosen>>,
    ) -> Result<Chosen> {
        match chosen {
            Ok(Some(long)) => {
                self.metadata = self.layout.describe(spec);
                Ok(long)
            }
            other => {
                self.layout = before;
                other.map(|_| short)
            }
        }
    }

    fn samples<'b>(&'b self, spec: &'b ArraySpec, chunks: Vec<usize>) -> Samples<'b> {
        Samples {
            dtype: &spec.dtype,
            chunk_shape: &self.layout.chunk_shape,
            chunks,
        }
    }

    /// The chain for corners of cells, if it costs less than `short`; the array is cut for it then.
    fn corners(&mut self, spec: &ArraySpec, short: &Chosen) -> Result<Option<Chosen>> {
        let mut chosen: Option<Chosen> = None;
        for bytes in [codec::LONG_CHUNK, LONGEST_CORNER_CHUNK] {
            let cut = std::mem::replace(&mut self.layout, Layout::long(spec, bytes));
            let samples = self.samples(spec, vec![self.count() / 2]);
            let found = codec::choose_corners(spec.profile, &samples, |chain, index| {
                self.encode_with(chain, &self.chunk_at(index), None)
            })?;
            let Some(found) = found else {
                return Ok(None);
            };
            let touching = found.bytes < TOUCHING * short.bytes;
            let worth = |chosen: &Chosen| found.bytes < LONGEST_SAVING * chosen.bytes;
            if chosen.as_ref().is_some_and(|chosen| !worth(chosen)) {
                self.layout = cut;
            } else {
                chosen = Some(found);
            }
            if touching || self.count() == 1 {
                break;
            }
        }
        Ok(chosen.filter(|chosen| chosen.cost < short.cost))
    }

    /// The chain for long chunks, into which the array is cut then, if it costs less than `short`.
    fn long(&mut self, spec: &ArraySpec, short: &Chosen) -> Result<Option<Chosen>> {
        let size = spec.dtype.size().unwrap_or(1) as f64;
        if short.bytes > NOISE * size {
            // Most likely noise: a probe decides whether to continue.
            let middle = self.chunk_at(self.count() / 2);
            let probe = self.encode_with(&CodecChain::probe(), &middle, None)?;
            let values = self.layout.chunk_shape.iter().product::<u64>() as f64;
            if probe.len() as f64 > NOISE * short.bytes * values {
                return Ok(None);
            }
        }
        let mut only = None;
        for bytes in [PROBE, codec::LONG_CHUNK] {
            self.layout = Layout::long(spec, bytes);
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
