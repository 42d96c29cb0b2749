//! Reads boxes of a hierarchy: `PatchAmr` is itself a `PatchSource`.

use std::sync::Arc;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::average::average;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::chunk_cache::ChunkKey;
use crate::kinds::amr::patches::hierarchy::nest::CellSet;
use crate::kinds::amr::patches::hierarchy::rows::copy;
use crate::kinds::amr::patches::hierarchy::{IndexBox, PatchHierarchy};
use crate::kinds::amr::patches::{PatchAmr, PatchSource};
use crate::memory::Column;

impl PatchSource for PatchAmr {
    fn hierarchy(&self) -> &PatchHierarchy {
        self.nest.hierarchy()
    }

    fn fields(&self) -> &[String] {
        &self.fields
    }

    fn dtype(&self, field: &str) -> Result<DataType> {
        Ok(self.dtypes[self.field(field)?].clone())
    }

    /// Dropped covered cells are the averages of the finer level.
    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        let place = self.field(field)?;
        if let Some(read) = self.values.read_box(level, index, place, out) {
            return read;
        }
        let levels = &self.nest.hierarchy().levels;
        let frame = levels.get(level).and_then(|level| level.boxes.get(index));
        let frame = frame.ok_or_else(|| {
            Error::not_found(format!("box {index} of level {level} does not exist"))
        })?;
        let size = self.dtypes[place].size().unwrap_or(1);
        if out.len() != frame.cells() * size {
            return Err(Error::invalid(format!(
                "expected a buffer of {} bytes for the values of {frame}, found {}",
                frame.cells() * size,
                out.len()
            )));
        }
        self.read_region(level, place, frame, out)
            .map_err(|error| error.at_node(format!("{field} in box {index} of level {level}")))
    }
}

impl PatchAmr {
    /// Reads a field on all cells of `region`, which is in a box of the level.
    fn read_region(
        &self,
        level: usize,
        field: usize,
        region: &IndexBox,
        out: &mut [u8],
    ) -> Result<()> {
        let size = self.dtypes[field].size().unwrap_or(1);
        let blocks = self.blocks(level)?;
        let (mut held, mut leaves) = (0, 0);
        let meeting = blocks.meeting(region);
        let per_chunk = blocks.per_chunk();
        for of_chunk in meeting.chunk_by(|a, b| a / per_chunk == b / per_chunk) {
            let chunk = of_chunk.first().map_or(0, |block| block / per_chunk);
            let values = self.chunk(blocks, field, chunk)?;
            for block in of_chunk {
                let extent = blocks.extent(*block);
                let part = extent.intersection(region);
                let start = (block - chunk * per_chunk) * blocks.block_cells() * size;
                let values = &values.bytes()[start..start + blocks.block_cells() * size];
                copy(&part, size, (&extent, values), (region, &mut *out));
                held += part.cells() as u64;
                leaves += self.nest.count(level, &part, CellSet::Leaves);
            }
        }
        let dropped = self.values.drops(level, field);
        let there = if dropped {
            leaves == self.nest.count(level, region, CellSet::Leaves)
        } else {
            held == region.cells() as u64
        };
        if !there {
            return Err(Error::corrupt(
                "expected unit blocks for all cells of the box; restore the file from a copy",
            ));
        }
        if dropped {
            self.average_into(level, field, region, out)?;
        }
        Ok(())
    }

    /// Sets the covered cells of `region` to the averages of the finer level.
    fn average_into(
        &self,
        level: usize,
        field: usize,
        region: &IndexBox,
        out: &mut [u8],
    ) -> Result<()> {
        let dtype = &self.dtypes[field];
        let size = dtype.size().unwrap_or(1);
        let ratio = self.nest.level(level).ratio;
        let mut parts = Vec::new();
        self.nest
            .covered_in(level, region, |_, part| parts.push(part));
        for part in parts {
            let fine = part.refined(ratio);
            let mut children = Column::allocate(&[DataType::UInt8], fine.cells() * size)?;
            let children = &mut children[0];
            self.read_region(level + 1, field, &fine, children.bytes_mut())?;
            let mut means = vec![0; part.cells() * size];
            average(dtype, (&fine, children.bytes()), ratio, &mut means)?;
            copy(&part, size, (&part, &means), (region, &mut *out));
        }
        Ok(())
    }

    fn chunk(&self, blocks: &Blocks, field: usize, chunk: usize) -> Result<Arc<Column>> {
        let key = ChunkKey {
            level: blocks.level(),
            field,
            chunk,
        };
        self.cache.get(key, || {
            let range = blocks.chunk(chunk);
            let rows = range.len() * blocks.block_cells();
            let column = Column::allocate(std::slice::from_ref(&self.dtypes[field]), rows)?.pop();
            let mut column =
                column.ok_or_else(|| Error::limit("cannot allocate memory for a chunk"))?;
            self.values.read(blocks, field, range, column.bytes_mut())?;
            Ok(column)
        })
    }
}
