//! Reads at lower resolution: for a selection of every second, fourth or eighth value, only the first level
//! packets of each chunk are read and decoded.

use ambar_codec::MAX_PREFIX_LEVEL;

use super::Array;
use super::read_plan::{Block, ReadPlan, Runs, Span};
use super::shard::tag;
use super::storage::StoredChunk;
use crate::codec::Scratch;
use crate::container::EntryRange;
use crate::error::{ErrorKind, Result};
use crate::memory::Shared;

/// Minimum bytes fetched of a chunk: they contain the header and the packets of coarse levels.
const MIN_FETCHED: u64 = 4096;
/// Bytes of a chunk that its tag is computed of.
const TAGGED: u64 = 8;

/// How a chunk is decoded at lower resolution.
struct CoarseRead {
    level: u32,
    /// Bytes of the stream that are needed.
    length: usize,
    /// The level of each dimension: every `2^level`th value is decoded.
    levels: Vec<u32>,
}

impl CoarseRead {
    fn shape(&self, chunk_shape: &[u64]) -> Vec<u64> {
        let lengths = chunk_shape.iter().zip(&self.levels);
        lengths.map(|(n, level)| n.div_ceil(1 << level)).collect()
    }

    /// Converts a selection of the chunk to one of the chunk at lower resolution.
    fn spans(&self, spans: &[Span]) -> Vec<Span> {
        let spans = spans.iter().zip(&self.levels);
        spans
            .map(|(span, level)| Span {
                inside: span.inside >> level,
                step: (span.step >> level).max(1),
                ..*span
            })
            .collect()
    }
}

/// The dimensions in which the stream of a chunk is downsampled: of unit blocks all except the first, otherwise
/// the last three that have more than one value.
fn downsampled_dimensions(chunk_shape: &[u64], is_blocks: bool) -> Vec<bool> {
    let mut remaining = 3;
    let mut found: Vec<bool> = (chunk_shape.iter().enumerate().rev())
        .map(|(d, n)| {
            let is_downsampled = remaining > 0 && *n > 1 && !(is_blocks && d == 0);
            remaining -= usize::from(is_downsampled);
            is_downsampled
        })
        .collect();
    found.reverse();
    found
}

/// The lowest resolution that contains all indices of a span.
fn level_of(span: &Span) -> u32 {
    let step = if span.count > 1 { span.step } else { 0 };
    (span.inside | step | 1 << MAX_PREFIX_LEVEL).trailing_zeros()
}

impl Array {
    /// The lowest resolution that contains all values of a block: level `k` has every `2^k`th value of the
    /// downsampled dimensions.
    fn block_level(&self, block: &Block, is_blocks: bool) -> u32 {
        let mut least = MAX_PREFIX_LEVEL;
        let dimensions = downsampled_dimensions(self.chunk_shape(), is_blocks);
        // The closure returns no error.
        let _ = block.try_for_each(|spans| {
            let spans = spans.iter().zip(&dimensions).filter(|(_, is)| **is);
            least = spans.fold(least, |least, (span, _)| least.min(level_of(span)));
            Ok(())
        });
        if dimensions.contains(&true) { least } else { 0 }
    }

    /// The highest level at which a chunk can be read, whether or not its stream has unit blocks.
    fn most_level(&self, block: &Block) -> u32 {
        if !self.0.metadata.chain.has_levels() {
            return 0;
        }
        let levels = [false, true].map(|is_blocks| self.block_level(block, is_blocks));
        levels[0].max(levels[1])
    }

    /// The parts of a chunk that reading a block needs first, which are fetched together with those of other chunks.
    pub(super) fn parts_of_block(
        &self,
        plan: &ReadPlan<'_>,
        index: usize,
        whole: EntryRange,
    ) -> Vec<EntryRange> {
        let level = plan.block(index).map_or(0, |block| self.most_level(&block));
        let len = (whole.len >> level).max(MIN_FETCHED);
        if level == 0 || len.saturating_add(TAGGED) >= whole.len {
            return vec![whole];
        }
        let end = EntryRange {
            offset: whole.offset + whole.len - TAGGED,
            len: TAGGED,
            entry: whole.entry.clone(),
        };
        vec![EntryRange { len, ..whole }, end]
    }

    /// Reads a block from the first level packets of its chunk; `false` if that needs all of the chunk.
    ///
    /// # Errors
    /// `Corrupt` if a packet is damaged; `Io`.
    pub(super) fn read_downsampled(
        &self,
        stored: &StoredChunk,
        block: &Block,
        out_shape: &[u64],
        shared: &Shared<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        if self.most_level(block) == 0 {
            return Ok(false);
        }
        let Some(coarse) = self.coarse(stored, block)? else {
            return Ok(false);
        };
        let EntryRange { entry, offset, .. } = stored.range();
        let prefix = scratch.encoded.bytes(coarse.length)?;
        self.0.container.read_at(&entry, offset, prefix)?;
        let (shape, size) = (coarse.shape(self.chunk_shape()), self.value_size()?);
        let bytes = shape.iter().product::<u64>() as usize * size;
        let values = scratch.decoded.bytes(bytes)?;
        let chain = &self.0.metadata.chain;
        match chain.decode_prefix(
            self.dtype(),
            prefix,
            coarse.level,
            values,
            &mut scratch.codecs,
        ) {
            Ok(()) => {}
            // The dimensions of the stream differ from those of the chunk.
            Err(error) if error.kind() == ErrorKind::Invalid => return Ok(false),
            Err(error) => return Err(error),
        }
        block.try_for_each(|spans| {
            let runs = Runs::new(&coarse.spans(spans), &shape, out_shape, size);
            runs.try_for_each(|run| {
                // SAFETY: blocks of different chunks are disjoint in the result, and so are the runs of
                // one block; each chunk is read by one thread.
                let out = unsafe { shared.slice(run.outside..run.outside + runs.len) }?;
                out.copy_from_slice(&values[run.inside..run.inside + runs.len]);
                Ok(())
            })
        })?;
        Ok(true)
    }

    /// The resolution at which a chunk is read for a block; `None` if all of it must be read, which reports any damage.
    fn coarse(&self, stored: &StoredChunk, block: &Block) -> Result<Option<CoarseRead>> {
        let EntryRange { entry, offset, len } = stored.range();
        let mut head = [0; ambar_codec::LENGTHS_BYTES];
        let most = self.0.limits.chunk_bytes.saturating_add(1 << 20);
        if len < (head.len() as u64).max(TAGGED) || len > most {
            return Ok(None);
        }
        self.0.container.read_at(&entry, offset, &mut head)?;
        let Ok(Some(first)) = ambar_codec::prefix(&head, 1) else {
            return Ok(None);
        };
        let level = self.block_level(block, first.is_blocks);
        let Ok(Some(prefix)) = ambar_codec::prefix(&head, level) else {
            return Ok(None);
        };
        if level == 0 || prefix.length as u64 >= len {
            return Ok(None);
        }
        if let Some(expected) = stored.tag() {
            let mut end = [0; TAGGED as usize];
            self.0
                .container
                .read_at(&entry, offset + len - TAGGED, &mut end)?;
            if tag([&end[..]].into_iter()) != expected {
                return Ok(None);
            }
        }
        let dimensions = downsampled_dimensions(self.chunk_shape(), prefix.is_blocks);
        Ok(Some(CoarseRead {
            level,
            length: prefix.length,
            levels: dimensions.iter().map(|is| u32::from(*is) * level).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;
    use crate::array::{ArrayData, ArraySpec, Slice};
    use crate::codec::CodecChain;
    use crate::container::CreateOptions;
    use crate::store::{Store, StoreWriter};

    fn values(count: usize) -> Vec<f32> {
        let value = |i: usize| (i as f32 * 0.01).sin() + (i % 13) as f32 * 1e-3;
        (0..count).map(value).collect()
    }

    /// Reading with steps equals reading everything and striding, in arrays of one to five dimensions.
    #[test]
    fn reads_with_steps_equal_strided_reads() {
        let folder = tempfile::tempdir().unwrap();
        let shapes: [(&[u64], &[u64]); 6] = [
            (&[90_000], &[40_000]),
            (&[300, 200], &[150, 200]),
            (&[50, 60, 70], &[32, 48, 70]),
            (&[3, 50, 20, 40], &[2, 50, 20, 40]),
            (&[50, 1, 60, 70], &[50, 1, 60, 70]),
            (&[2, 3, 30, 20, 20], &[2, 3, 30, 20, 20]),
        ];
        for (number, (shape, chunks)) in shapes.into_iter().enumerate() {
            let path = folder.path().join(format!("{number}.ambar"));
            let mut spec = ArraySpec::new(DataType::Float32, shape);
            spec.codecs = Some(CodecChain::bounded(1e-4.into()));
            let count = shape.iter().product::<u64>() as usize;
            let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
            let all = values(count);
            let data = ArrayData::Fixed(bytemuck::cast_slice(&all));
            writer.write_array("a", &spec.chunks(chunks), data).unwrap();
            writer.commit().unwrap();
            let array = Store::open(&path).unwrap().array("a").unwrap();
            let read = |selection: &[Slice]| {
                let n = selection.iter().map(Slice::len).product::<u64>() as usize;
                let mut out = vec![0f32; n];
                array
                    .read(selection, bytemuck::cast_slice_mut(&mut out))
                    .unwrap();
                out
            };
            let whole = read(&shape.iter().map(|n| Slice::all(*n)).collect::<Vec<_>>());
            for (start, step) in [
                (0, 2),
                (0, 4),
                (0, 8),
                (0, 12),
                (0, 16),
                (4, 4),
                (2, 2),
                (1, 2),
            ] {
                let selection: Vec<Slice> = shape
                    .iter()
                    .map(|n| Slice {
                        start: start.min(n - 1),
                        stop: *n,
                        step,
                    })
                    .collect();
                let expected = strided(&whole, shape, &selection);
                assert!(read(&selection) == expected, "{shape:?} {start} {step}");
            }
        }
    }

    fn strided(values: &[f32], shape: &[u64], selection: &[Slice]) -> Vec<f32> {
        let Some((slice, inner)) = selection.split_first() else {
            return values.to_vec();
        };
        let size = shape[1..].iter().product::<u64>() as usize;
        (slice.start..slice.stop)
            .step_by(slice.step as usize)
            .flat_map(|k| strided(&values[k as usize * size..][..size], &shape[1..], inner))
            .collect()
    }

    #[test]
    fn the_last_three_dimensions_are_downsampled() {
        assert_eq!(downsampled_dimensions(&[5], false), [true]);
        assert_eq!(
            downsampled_dimensions(&[5, 4, 3, 2], false),
            [false, true, true, true]
        );
        assert_eq!(
            downsampled_dimensions(&[5, 4, 1, 2], false),
            [true, true, false, true]
        );
        assert_eq!(
            downsampled_dimensions(&[5, 4, 2], true),
            [false, true, true]
        );
    }
}
