//! Gathers fields of a level from boxes into unit blocks, and writes them window by window.

use std::ops::Range;

use rayon::prelude::*;

use crate::array::{ArraySpec, WindowedArray, sample_rows};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::AXES;
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::kinds::bound::{self, ErrorBound};
use crate::kinds::streamed::WINDOW_BYTES;
use crate::memory::{Column, Shared};
use crate::numbers;
use crate::store::StoreWriter;

/// Bytes of a box that one read takes, unless one layer of it has more.
pub(super) const PART_BYTES: usize = 8 << 20;

/// A field to write into a store.
pub(crate) struct Field {
    pub name: String,
    /// The name of its arrays.
    pub array: String,
    pub dtype: DataType,
    pub size: usize,
}

/// The array of a field on the blocks of a level.
pub(crate) fn spec(blocks: &Blocks, field: &Field, ndim: usize) -> ArraySpec {
    let with_sides = |first: usize| {
        let sides = std::iter::repeat_n(blocks.side() as u64, ndim);
        std::iter::once(first as u64)
            .chain(sides)
            .collect::<Vec<u64>>()
    };
    let mut names = vec!["block"];
    names.extend(AXES[..ndim].iter().rev());
    let origins = blocks.relative_origins();
    let mut spec = ArraySpec::new(field.dtype.clone(), &with_sides(blocks.origins().len()))
        .dimensions(&names)
        .chunks(&with_sides(blocks.per_chunk()))
        .blocks(origins);
    spec.fill_value = Some(fill_value(field));
    spec
}

/// The value of dropped cells: NaN, or 0 for types without NaN.
pub(crate) fn fill_value(field: &Field) -> Vec<u8> {
    match field.dtype {
        DataType::Float64 => f64::NAN.to_ne_bytes().to_vec(),
        DataType::Float32 => f32::NAN.to_ne_bytes().to_vec(),
        DataType::Float16 => 0x7e00u16.to_ne_bytes().to_vec(),
        _ => vec![0; field.size],
    }
}

/// The cells of a block in one box.
struct Piece {
    /// The index of the box.
    place: usize,
    /// The slab of the box: pieces of one slab are read together.
    slab: i64,
    block: usize,
    cells: IndexBox,
}

/// A field on all blocks of a level, to be written.
pub(crate) struct FieldOnLevel<'a> {
    pub nest: &'a Nest,
    pub source: &'a dyn PatchSource,
    pub blocks: &'a Blocks,
    pub field: &'a Field,
    /// Whether covered cells are dropped.
    pub dropped: bool,
}

impl FieldOnLevel<'_> {
    /// Writes the array of `spec` at `path`, and returns the range of each chunk if there are several. Values are
    /// read window by window.
    pub fn write(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        spec: &ArraySpec,
    ) -> Result<Vec<[f64; 2]>> {
        let blocks = self.blocks;
        let (count, per_chunk) = (blocks.origins().len(), blocks.per_chunk());
        let bytes = blocks.chunks() * per_chunk * blocks.block_cells() * self.field.size;
        let samples = match bytes <= WINDOW_BYTES {
            true => std::iter::once(0..count).collect(),
            false => sample_rows(count, per_chunk),
        };
        let read = |range: Range<usize>| Ok((self.gather(&range)?, range));
        let samples: Vec<(Column, Range<usize>)> =
            samples.into_iter().map(read).collect::<Result<_>>()?;
        let sampled = samples.iter();
        let array = WindowedArray {
            path,
            spec,
            samples: sampled
                .map(|(values, range)| (range.clone(), values.bytes()))
                .collect(),
        };
        let mut ranges = Vec::new();
        writer.write_windows(&[array], |windows| {
            let window = windows.window_rows(0);
            let mut write = |(values, range): &(Column, Range<usize>)| {
                if blocks.chunks() > 1 {
                    ranges.extend(self.chunk_ranges(range, values));
                }
                windows.write(0, range.start, values.bytes())
            };
            match &samples[..] {
                [all] if all.1.len() == count => write(all),
                _ => (0..count)
                    .step_by(window)
                    .try_for_each(|first| write(&read(first..(first + window).min(count))?)),
            }
        })?;
        let bound = spec.lossy_bound().unwrap_or(ErrorBound::Lossless);
        let cells = per_chunk * blocks.block_cells();
        let widened = ranges
            .into_iter()
            .map(|range| bound::widened(bound, range, cells));
        Ok(widened.collect())
    }

    /// The values on some blocks.
    fn gather(&self, range: &Range<usize>) -> Result<Column> {
        let Self {
            nest,
            source,
            blocks,
            field,
            dropped,
        } = *self;
        let size = field.size;
        let level = blocks.level();
        let fill = fill_value(field);
        let cells = range.len() * blocks.block_cells();
        let no_memory = || Error::limit("cannot allocate memory for a level");
        let column = Column::allocate(std::slice::from_ref(&field.dtype), cells)?.pop();
        let mut column = column.ok_or_else(no_memory)?;
        let chunks = column.bytes_mut().par_chunks_mut((1 << 16) * size);
        chunks.for_each(|chunk| {
            chunk
                .chunks_exact_mut(size)
                .for_each(|to| to.copy_from_slice(&fill))
        });
        let shared = Shared::new(column.bytes_mut());
        let block_bytes = blocks.block_cells() * size;
        let pieces = self.pieces(range);
        let reads: Vec<&[Piece]> = pieces
            .chunk_by(|a, b| (a.place, a.slab) == (b.place, b.slab))
            .collect();
        let reads = reads.into_par_iter().with_max_len(1);
        reads.try_for_each(|pieces| {
            let hull = pieces
                .iter()
                .map(|piece| piece.cells)
                .reduce(|a, b| a.hull(&b));
            let Some((hull, first)) = hull.zip(pieces.first()) else {
                return Ok(());
            };
            let values = Column::allocate(&[DataType::UInt8], hull.cells() * size)?.pop();
            let mut values = values.ok_or_else(no_memory)?;
            let values = values.bytes_mut();
            source.read_part(level, first.place, &field.name, &hull, values)?;
            if dropped {
                nest.covered_in(level, &hull, |_, part| {
                    rows(&part, [&hull], |[start], len| {
                        let row = values[start * size..(start + len) * size].chunks_exact_mut(size);
                        row.for_each(|to| to.copy_from_slice(&fill));
                    });
                });
            }
            for piece in pieces {
                let extent = blocks.extent(piece.block);
                let start = (piece.block - range.start) * block_bytes;
                let mut written = Ok(());
                rows(&piece.cells, [&hull, &extent], |[from, to], len| {
                    let to = start + to * size;
                    // SAFETY: a cell of a block is in one piece, of one read: `Nest::new` has checked that boxes do
                    // not overlap.
                    match unsafe { shared.slice(to..to + len * size) } {
                        Ok(to) => to.copy_from_slice(&values[from * size..(from + len) * size]),
                        Err(error) => written = Err(error),
                    }
                });
                written?;
            }
            Ok(())
        })?;
        Ok(column)
    }

    /// The pieces of some blocks, by box and slab. Slabs have at most `PART_BYTES`, or one layer of blocks.
    fn pieces(&self, range: &Range<usize>) -> Vec<Piece> {
        let Self { nest, blocks, .. } = *self;
        let size = self.field.size;
        let (level, axis) = (blocks.level(), nest.ndim() - 1);
        let boxes = &nest.level(level).boxes;
        let of_block = |block: usize| {
            let extent = blocks.extent(block);
            let mut pieces = Vec::new();
            nest.boxes_in(level, &extent, |place, cells| {
                let frame = &boxes[place];
                let layer = frame.cells() / frame.shape()[axis] * blocks.side() * size;
                let layers = (PART_BYTES / layer).max(1);
                let slab =
                    (extent.lo[axis] - frame.lo[axis]).div_euclid((layers * blocks.side()) as i64);
                pieces.push(Piece {
                    place,
                    slab,
                    block,
                    cells,
                });
            });
            pieces
        };
        let mut pieces: Vec<Piece> = range
            .clone()
            .into_par_iter()
            .flat_map_iter(of_block)
            .collect();
        pieces.par_sort_unstable_by_key(|piece| (piece.place, piece.slab, piece.block));
        pieces
    }

    /// The range of the stored values in each chunk of some blocks, which begin with a chunk.
    fn chunk_ranges(&self, range: &Range<usize>, values: &Column) -> Vec<[f64; 2]> {
        let Self {
            blocks,
            field,
            dropped,
            ..
        } = *self;
        let block_bytes = blocks.block_cells() * field.size;
        let cells = if dropped {
            CellSet::Leaves
        } else {
            CellSet::All
        };
        let chunks = values
            .bytes()
            .par_chunks((blocks.per_chunk() * block_bytes).max(1));
        chunks
            .enumerate()
            .map(|(chunk, bytes)| {
                // NaN, the value of dropped cells, is ignored.
                if numbers::has_nan(&field.dtype) {
                    return numbers::range(&field.dtype, bytes);
                }
                let first = range.start + chunk * blocks.per_chunk();
                let mask = blocks.mask(first..first + bytes.len() / block_bytes, cells);
                let kept = bytes.chunks_exact(field.size).zip(mask);
                let kept: Vec<u8> = kept
                    .filter(|(_, kept)| *kept)
                    .flat_map(|(value, _)| value)
                    .copied()
                    .collect();
                numbers::range(&field.dtype, &kept)
            })
            .collect()
    }
}
