//! Sources of the values of unit blocks: a store, or the boxes of the files of a simulation code.

use std::ops::Range;
use std::sync::Arc;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::box_cache::BoxCache;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::amr::patches::hierarchy::rows::copy;
use crate::memory::Column;

/// Fields on the unit blocks of a hierarchy.
pub(crate) trait Values: Send + Sync {
    /// The unit blocks of a level; every leaf cell is in one.
    fn blocks(&self, nest: &Arc<Nest>, level: usize) -> Result<Blocks>;

    /// Reads a field on all cells of some blocks of one chunk. The values of cells that are not leaves
    /// are arbitrary. Runs on the calling thread.
    fn read(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        out: &mut [u8],
    ) -> Result<()>;

    /// Reads a field on every `step`th cell of some blocks in each dimension, from their first cells.
    /// A `step` above 1 requires `has_samples`.
    fn read_samples(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        _step: u64,
        out: &mut [u8],
    ) -> Result<()> {
        self.read(blocks, field, range, out)
    }

    /// Whether samples of the cells can be read.
    fn has_samples(&self) -> bool {
        false
    }

    /// Reads a field on all cells of a box into the cache, if boxes are cached.
    fn load(&self, _level: usize, _index: usize, _field: usize) -> Result<()> {
        Ok(())
    }

    /// Reads a field on all cells of a box; `None` if boxes are assembled from blocks.
    fn read_box(
        &self,
        _level: usize,
        _index: usize,
        _field: usize,
        _out: &mut [u8],
    ) -> Option<Result<()>> {
        None
    }

    /// Whether the covered cells of a field on a level are dropped: they read as averages.
    fn drops(&self, _level: usize, _field: usize) -> bool {
        false
    }

    /// As `ColumnSource::ranges`, by chunk of a level.
    fn ranges(&self, blocks: &Blocks, field: usize) -> Result<Option<Vec<[f64; 2]>>>;

    /// The bounding box of the leaf cells of each chunk.
    fn extents(&self, blocks: &Blocks) -> Result<Vec<IndexBox>>;
}

/// Boxes of a source, cached after the first read.
pub(crate) struct BoxValues {
    source: Arc<dyn PatchSource>,
    nest: Arc<Nest>,
    fields: Vec<(String, usize)>,
    /// By field, then level.
    read: Vec<Vec<BoxCache>>,
}

impl BoxValues {
    pub fn new(
        source: Arc<dyn PatchSource>,
        nest: Arc<Nest>,
        fields: &[String],
        dtypes: &[DataType],
    ) -> Result<Self> {
        let size = |(name, dtype): (&String, &DataType)| match dtype.size() {
            Some(size) => Ok((name.clone(), size)),
            None => Err(Error::unsupported(format!(
                "expected fields of values of fixed size, found {name:?} of {dtype}"
            ))),
        };
        let fields = fields.iter().zip(dtypes).map(size);
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let caches = |(_, size): &(String, usize)| {
            let levels = nest.hierarchy().levels.iter();
            levels
                .map(|level| BoxCache::new(&level.boxes, *size))
                .collect()
        };
        Ok(Self {
            source,
            read: fields.iter().map(caches).collect(),
            fields,
            nest,
        })
    }
}

impl BoxValues {
    /// The values of a box, which are read on first access.
    fn values_of(&self, level: usize, index: usize, field: usize) -> Result<Arc<Column>> {
        let name = &self.fields[field].0;
        let read = |out: &mut [u8]| self.source.read_box(level, index, name, out);
        self.read[field][level].get(index, read)
    }
}

impl Values for BoxValues {
    fn blocks(&self, nest: &Arc<Nest>, level: usize) -> Result<Blocks> {
        Blocks::choose(nest, level, CellSet::Leaves, None)
    }

    fn read(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        out: &mut [u8],
    ) -> Result<()> {
        let size = &self.fields[field].1;
        let level = blocks.level();
        let outs = out.chunks_exact_mut(blocks.block_cells() * size);
        for (block, out) in range.zip(outs) {
            let extent = blocks.extent(block);
            let mut parts = Vec::new();
            self.nest
                .boxes_in(level, &extent, |place, part| parts.push((place, part)));
            for (place, part) in parts {
                let values = self.values_of(level, place, field)?;
                let frame = &self.nest.level(level).boxes[place];
                copy(&part, *size, (frame, values.bytes()), (&extent, &mut *out));
            }
        }
        Ok(())
    }

    fn load(&self, level: usize, index: usize, field: usize) -> Result<()> {
        self.values_of(level, index, field).map(drop)
    }

    fn read_box(
        &self,
        level: usize,
        index: usize,
        field: usize,
        out: &mut [u8],
    ) -> Option<Result<()>> {
        let kept = self.read[field].get(level)?.kept(index);
        match kept {
            Some(values) if values.bytes().len() == out.len() => {
                out.copy_from_slice(values.bytes());
                Some(Ok(()))
            }
            _ => Some(
                self.source
                    .read_box(level, index, &self.fields[field].0, out),
            ),
        }
    }

    fn ranges(&self, _blocks: &Blocks, _field: usize) -> Result<Option<Vec<[f64; 2]>>> {
        Ok(None)
    }

    fn extents(&self, blocks: &Blocks) -> Result<Vec<IndexBox>> {
        Ok(blocks.extents(CellSet::Leaves))
    }
}
