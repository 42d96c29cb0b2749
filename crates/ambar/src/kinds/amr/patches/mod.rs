//! The layout `patches` of the kind `amr`: levels made of boxes, as in AMReX.

mod average;
mod blocks;
mod box_cache;
mod chunk_cache;
mod hierarchy;
mod load;
mod open;
mod ranks;
mod read;
mod source;
mod write;

use std::sync::Arc;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::metadata::Attributes;
use crate::process::SetOnce;

use chunk_cache::ChunkCache;
use hierarchy::nest::Nest;
use open::values::{BoxValues, Values};
use read::derived_columns::DerivedColumn;
use write::fields::check_names;

pub use blocks::Blocks;
pub use hierarchy::nest::CellSet;
pub use hierarchy::rows::copy as copy_cells;
pub use hierarchy::{IndexBox, MAX_INDEX, PatchHierarchy, PatchLevel};
pub use ranks::{FieldBox, OwnedHierarchy, RankPatchOptions, RankPatches, ReadRow};
pub use read::is_derived;
pub use source::PatchSource;
pub use write::{Covered, PatchOptions, Progress};

/// A patch-based hierarchy with its fields, in a store or in the files of a simulation code: the kind
/// `amr`, layout `patches`.
///
/// Values are read on demand. All methods run on the current rayon pool.
pub struct PatchAmr {
    nest: Arc<Nest>,
    fields: Vec<String>,
    dtypes: Vec<DataType>,
    values: Box<dyn Values>,
    attributes: Attributes,
    /// Leaf cells of each level.
    leaves: Vec<u64>,
    /// The unit blocks of levels, computed on the first access.
    blocks: Vec<SetOnce<Blocks>>,
    /// The bounding box of the cells of each chunk, by level, computed on the first access.
    extents: Vec<SetOnce<Vec<IndexBox>>>,
    cache: ChunkCache,
}

impl PatchAmr {
    /// The fields of `source`. Boxes are read on the first access, and cached.
    ///
    /// # Errors
    /// `Invalid` if the hierarchy's boxes overlap, are outside of its domain, or are not made of
    /// whole cells of the next coarser level's boxes, or names of fields are not unique or those of derived columns;
    /// `Limit` for more than can be handled.
    pub fn from_source(source: Arc<dyn PatchSource>) -> Result<Self> {
        let fields = source.fields().to_vec();
        Self::from_fields(source, fields)
    }

    /// As `from_source`, of some of its fields.
    ///
    /// # Errors
    /// As `from_source`; `NotFound` for a field that does not exist.
    pub fn from_fields(source: Arc<dyn PatchSource>, fields: Vec<String>) -> Result<Self> {
        let nest = Arc::new(Nest::new(source.hierarchy().clone())?);
        check_names(&nest, &fields)?;
        let dtypes = fields.iter().map(|field| source.dtype(field));
        let dtypes = dtypes.collect::<Result<Vec<_>>>()?;
        let values = BoxValues::new(source, Arc::clone(&nest), &fields, &dtypes)?;
        Self::new(nest, fields, dtypes, Box::new(values), Attributes::new())
    }

    fn new(
        nest: Arc<Nest>,
        fields: Vec<String>,
        dtypes: Vec<DataType>,
        values: Box<dyn Values>,
        attributes: Attributes,
    ) -> Result<Self> {
        let levels = 0..nest.levels();
        Ok(Self {
            leaves: levels
                .clone()
                .map(|l| nest.cells(l, CellSet::Leaves))
                .collect(),
            blocks: levels.clone().map(|_| SetOnce::new()).collect(),
            extents: levels.map(|_| SetOnce::new()).collect(),
            nest,
            fields,
            dtypes,
            values,
            attributes,
            cache: ChunkCache::default(),
        })
    }

    /// The levels and their boxes.
    pub fn hierarchy(&self) -> &PatchHierarchy {
        self.nest.hierarchy()
    }

    /// Names of the fields, in their order in the file.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Names of the columns that are derived on request: `level`, `x`, `y`, `z`, `dx` (and `dy`,
    /// `dz` unless cells are cubes), `ix`, `iy`, `iz`, for each dimension.
    pub fn derived(&self) -> Vec<String> {
        DerivedColumn::names(&self.nest)
    }

    /// The type of a field or a derived column.
    ///
    /// # Errors
    /// `NotFound`, with the available columns.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        match DerivedColumn::parse(name, &self.nest) {
            Some(derived) => Ok(derived.dtype()),
            None => Ok(self.dtypes[self.field(name)?].clone()),
        }
    }

    /// Number of leaf cells.
    pub fn rows(&self) -> u64 {
        self.leaves.iter().sum()
    }

    /// The levels with leaf cells, and their numbers.
    pub fn cells_per_level(&self) -> Vec<(u8, u64)> {
        let levels = (0u8..).zip(self.leaves.iter().copied());
        levels.filter(|(_, cells)| *cells > 0).collect()
    }

    /// Number of chunks of a field on all levels.
    ///
    /// # Errors
    /// `Corrupt` or `Io` when the origins of the blocks are read.
    pub fn chunks(&self) -> Result<u64> {
        let levels = 0..self.nest.levels();
        levels
            .map(|level| Ok(self.blocks(level)?.chunks() as u64))
            .sum()
    }

    /// The `ambar` attributes of the group; empty for patches outside of a store.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The unit blocks of a level.
    ///
    /// # Errors
    /// `NotFound` for a level that does not exist; `Corrupt`, `Io`; `Limit` for more than can be
    /// handled.
    pub fn blocks(&self, level: usize) -> Result<&Blocks> {
        let slot = self.blocks.get(level);
        let slot = slot.ok_or_else(|| {
            let levels = self.blocks.len();
            Error::not_found(format!(
                "level {level} does not exist; the number of levels is {levels}"
            ))
        })?;
        if let Some(blocks) = slot.get() {
            return Ok(blocks);
        }
        let blocks = self.values.blocks(&self.nest, level)?;
        // Two threads may compute this concurrently, with equal results.
        Ok(slot.get_or_set(blocks))
    }

    fn extents(&self, level: usize) -> Result<&Vec<IndexBox>> {
        if let Some(extents) = self.extents[level].get() {
            return Ok(extents);
        }
        let extents = self.values.extents(self.blocks(level)?)?;
        Ok(self.extents[level].get_or_set(extents))
    }

    /// The place of a field.
    fn field(&self, name: &str) -> Result<usize> {
        let place = self.fields.iter().position(|other| other == name);
        place.ok_or_else(|| {
            let mut known = self.fields.clone();
            known.extend(self.derived());
            Error::unknown("column", name, &known)
        })
    }
}

#[cfg(test)]
mod tests;
