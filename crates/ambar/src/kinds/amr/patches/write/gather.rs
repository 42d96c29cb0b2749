//! Gathers one field of a level from boxes into unit blocks, for encoding.

use rayon::prelude::*;

use crate::array::ArraySpec;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::AXES;
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::memory::{Column, Shared};
use crate::numbers;

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

/// A field on all blocks of a level.
pub(crate) fn gather(
    nest: &Nest,
    source: &dyn PatchSource,
    blocks: &Blocks,
    field: &Field,
    dropped: bool,
) -> Result<Column> {
    let size = field.size;
    let level = blocks.level();
    let fill = fill_value(field);
    let cells = blocks.origins().len() * blocks.block_cells();
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
    let boxes = nest
        .level(level)
        .boxes
        .par_iter()
        .enumerate()
        .with_max_len(1);
    boxes.try_for_each(|(place, frame)| {
        let values = Column::allocate(&[DataType::UInt8], frame.cells() * size)?.pop();
        let mut values = values.ok_or_else(no_memory)?;
        let values = values.bytes_mut();
        source.read_box(level, place, &field.name, values)?;
        if dropped {
            nest.covered_in(level, frame, |_, part| {
                rows(&part, [frame], |[start], len| {
                    let row = values[start * size..(start + len) * size].chunks_exact_mut(size);
                    row.for_each(|to| to.copy_from_slice(&fill));
                });
            });
        }
        for block in blocks.meeting(frame) {
            let extent = blocks.extent(block);
            let part = extent.intersection(frame);
            let mut written = Ok(());
            rows(&part, [frame, &extent], |[from, to], len| {
                let to = block * block_bytes + to * size;
                // SAFETY: only the thread that reads a box writes its cells, and `Nest::new` has
                // checked that boxes do not overlap.
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

/// The range of the stored values of a field in each chunk.
pub(crate) fn chunk_ranges(
    blocks: &Blocks,
    field: &Field,
    dropped: bool,
    values: &Column,
) -> Vec<[f64; 2]> {
    let block_bytes = blocks.block_cells() * field.size;
    let cells = if dropped {
        CellSet::Leaves
    } else {
        CellSet::All
    };
    let chunks = (0..blocks.chunks()).into_par_iter();
    chunks
        .map(|chunk| {
            let range = blocks.chunk(chunk);
            let bytes = &values.bytes()[range.start * block_bytes..range.end * block_bytes];
            // NaN, the value of dropped cells, is ignored.
            if numbers::has_nan(&field.dtype) {
                return numbers::range(&field.dtype, bytes);
            }
            let mask = blocks.mask(range, cells);
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
