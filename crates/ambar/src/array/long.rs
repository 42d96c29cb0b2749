//! Cutting an array into longer chunks than usual, where it becomes smaller by it.

use super::layout::Layout;
use super::source::Source;
use super::spec::ArraySpec;
use crate::codec::{self, Chosen, CodecChain};
use crate::error::Result;

/// Raw bytes of a chunk that tells if long chunks are worth trying.
const PROBE: u64 = 1 << 20;

/// How much more long chunks may cost than short ones by so little that more of them are tried.
const UNSURE: f64 = 1.15;

/// The part of its bytes, or of what short chunks take, above which little was found.
const HARDLY: f64 = 0.75;

/// Bytes of a value below which corners of cells have a pattern, which other codecs find.
const PATTERN: f64 = 0.06;

/// The part of what short chunks take, above which the cells of a long one hardly touch: cells in any
/// order touch only in all of them.
const NEIGHBOURS: f64 = 0.55;

/// The part of what long chunks take, below which the longest ones are worth that one core decodes them.
const WORTH: f64 = 0.75;

/// Raw bytes of a chunk of cells in any order at most: a reader needs some more than these.
const ALL_CELLS: u64 = 256 << 20;

impl Source<'_> {
    /// Cuts the array into long chunks where they cost less than what was chosen for short ones: where
    /// values repeat themselves far away.
    pub(super) fn choose_long(&mut self, spec: &ArraySpec, short: Chosen) -> Result<Chosen> {
        let cut = std::mem::replace(&mut self.layout, Layout::long(spec, PROBE));
        let chosen = self.long(spec, &short);
        self.cut_anew(spec, cut, short, chosen)
    }

    /// The same for corners of cells, which the codec for these may make smaller.
    pub(super) fn choose_cells(&mut self, spec: &ArraySpec, short: Chosen) -> Result<Chosen> {
        if short.bytes < PATTERN {
            return Ok(short);
        }
        let long = Layout::long(spec, codec::LONG_CHUNK);
        let cut = std::mem::replace(&mut self.layout, long);
        let chosen = self.cells(spec, &short);
        self.cut_anew(spec, cut, short, chosen)
    }

    /// What was chosen for chunks that the array is cut into now; else those that it was cut into.
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

    /// The chain for corners of cells, if it costs less than `short`; the array is cut for it then.
    fn cells(&mut self, spec: &ArraySpec, short: &Chosen) -> Result<Option<Chosen>> {
        let mut chosen: Option<Chosen> = None;
        for bytes in [codec::LONG_CHUNK, ALL_CELLS] {
            let cut = std::mem::replace(&mut self.layout, Layout::long(spec, bytes));
            let found = codec::choose_cells(
                spec.profile,
                &spec.dtype,
                (self.count() / 2, &self.layout.chunk_shape),
                |chain, index| self.encode_with(chain, &self.chunk_at(index), None),
            )?;
            let Some(found) = found else {
                return Ok(None);
            };
            let touching = found.bytes < NEIGHBOURS * short.bytes;
            let worth = |chosen: &Chosen| found.bytes < WORTH * chosen.bytes;
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
        if short.bytes > HARDLY * size {
            // Most likely noise, on which no time should be lost.
            let middle = self.chunk_at(self.count() / 2);
            let seen = self.encode_with(&CodecChain::glance(), &middle, None)?;
            let values = self.layout.chunk_shape.iter().product::<u64>() as f64;
            if seen.len() as f64 > HARDLY * short.bytes * values {
                return Ok(None);
            }
        }
        let mut only = None;
        for bytes in [PROBE, codec::LONG_CHUNK] {
            self.layout = Layout::long(spec, bytes);
            let long = codec::choose_long(
                (spec.profile, only.as_ref()),
                &spec.dtype,
                (&codec::samples(self.count()), &self.layout.chunk_shape),
                |chain, index| self.encode_with(chain, &self.chunk_at(index), None),
            )?;
            // What is tried of either does not lie at the same places.
            let bar = if bytes == PROBE {
                UNSURE * short.cost
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
