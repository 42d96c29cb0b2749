//! The plan of a write of patches: all decisions before it, and the write of one level.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decision::Decided;
use super::gather::{Field, FieldOnLevel, spec};
use super::level_arrays::{LevelArray, LevelArrayValues, corners};
use super::options::PatchOptions;
use crate::error::Result;
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::bound::{ErrorBound, FieldBounds, stricter};
use crate::kinds::write::{StoredBounds, add_bounds};
use crate::metadata::Attributes;
use crate::store::StoreWriter;

/// Levels of at most this number of boxes have them in the attributes: an array takes about 600 bytes.
const MAX_LISTED_BOXES: usize = 64;

/// Cells of a chunk if bounds depend on positions.
const REGION_CHUNK_CELLS: usize = 32 << 10;

/// All decisions of a write: fields, their bounds, unit blocks.
pub(crate) struct PatchWritePlan {
    pub nest: Arc<Nest>,
    pub fields: Vec<Field>,
    /// The decisions by field.
    pub decided: Vec<Decided>,
    pub blocks: Vec<Blocks>,
}

impl PatchWritePlan {
    pub fn new(
        nest: &Arc<Nest>,
        source: &dyn PatchSource,
        fields: Vec<Field>,
        options: &PatchOptions,
    ) -> Result<Self> {
        let decided = fields
            .iter()
            .map(|field| Decided::new(nest, source, field, options))
            .collect::<Result<Vec<_>>>()?;
        Self::of(nest, fields, decided, options.chunk_cells)
    }

    /// The plan for fields and the decisions about them.
    pub fn of(
        nest: &Arc<Nest>,
        fields: Vec<Field>,
        decided: Vec<Decided>,
        chunk_cells: Option<usize>,
    ) -> Result<Self> {
        // A chunk has the strictest bound of all boxes that it touches.
        let mut bounds = decided.iter().flat_map(|field| &field.levels);
        let has_regions = bounds.any(FieldBounds::has_regions);
        let chunk_cells = chunk_cells.or_else(|| has_regions.then_some(REGION_CHUNK_CELLS));
        let blocks = (0..nest.levels()).map(|level| {
            let every = !decided.is_empty() && decided.iter().all(|field| field.dropped[level]);
            let cells = if every { CellSet::Leaves } else { CellSet::All };
            Blocks::choose(nest, level, cells, chunk_cells)
        });
        Ok(Self {
            blocks: blocks.collect::<Result<_>>()?,
            nest: Arc::clone(nest),
            fields,
            decided,
        })
    }

    /// Raw bytes of all chunks of all fields.
    pub fn bytes(&self) -> u64 {
        let sizes: usize = self.fields.iter().map(|field| field.size).sum();
        let cells = |blocks: &Blocks| blocks.chunks() * blocks.per_chunk() * blocks.block_cells();
        self.blocks
            .iter()
            .map(|blocks| (cells(blocks) * sizes) as u64)
            .sum()
    }

    /// The group's own attributes, and more.
    pub fn attributes(&self, more: &Attributes) -> Attributes {
        let (nest, ndim) = (&self.nest, self.nest.ndim());
        let hierarchy = nest.hierarchy();
        let leaves = (0..nest.levels()).map(|level| nest.cells(level, CellSet::Leaves));
        let leaves: Vec<u64> = leaves.collect();
        let per_level = leaves.iter().enumerate().filter(|(_, cells)| **cells > 0);
        let per_level = per_level.map(|(level, cells)| (level.to_string(), json!(cells)));
        let names: Vec<&String> = self.fields.iter().map(|field| &field.name).collect();
        let renamed = self.fields.iter().filter(|field| field.name != field.array);
        let renamed = renamed.map(|field| (field.name.clone(), json!(field.array)));
        let renamed: Attributes = renamed.collect();
        let levels = 0..nest.levels();
        let mut own = Attributes::new();
        own.insert("layout".into(), json!("patches"));
        own.insert("ndim".into(), json!(ndim));
        own.insert("lower".into(), json!(&hierarchy.lower[..ndim]));
        own.insert("upper".into(), json!(&hierarchy.upper[..ndim]));
        own.insert("cells".into(), json!(leaves.iter().sum::<u64>()));
        own.insert(
            "cells_per_level".into(),
            json!(per_level.collect::<Attributes>()),
        );
        own.insert("fields".into(), json!(names));
        if !renamed.is_empty() {
            own.insert("arrays".into(), Value::Object(renamed));
        }
        own.insert(
            "levels".into(),
            levels.map(|level| self.level(level)).collect(),
        );
        let bounds = self.fields.iter().zip(&self.decided);
        add_bounds(
            &mut own,
            bounds.map(|(field, decided)| StoredBounds {
                field: &field.name,
                bound: decided.bound,
                asked: &decided.asked,
                median: decided.median,
            }),
        );
        own.extend(more.clone());
        own
    }

    /// The attributes of a level.
    fn level(&self, level: usize) -> Value {
        let ndim = self.nest.ndim();
        let info = self.nest.level(level);
        let blocks = &self.blocks[level];
        let dropped = self.fields.iter().zip(&self.decided);
        let dropped = dropped.filter(|(_, decided)| decided.dropped[level]);
        let dropped: Vec<&String> = dropped.map(|(field, _)| &field.name).collect();
        let mut level = json!({
            "domain": [&info.domain.lo[..ndim], &info.domain.hi[..ndim]],
            "cell_size": &info.cell_size[..ndim],
            "ratio": &info.ratio[..ndim],
            "boxes": info.boxes.len(),
            "side": blocks.side(),
            "blocks": blocks.origins().len(),
            "dropped": dropped,
        });
        if info.boxes.len() <= MAX_LISTED_BOXES {
            let boxes = info.boxes.iter();
            level["box"] = boxes
                .map(|b| json!([&b.lo[..ndim], &b.hi[..ndim]]))
                .collect();
        }
        level
    }

    pub fn write_level(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        source: &dyn PatchSource,
        level: usize,
        options: &PatchOptions,
    ) -> Result<()> {
        self.write_boxes(level, writer, path)?;
        let ndim = self.nest.ndim();
        let blocks = &self.blocks[level];
        // The origins in one chunk follow from the boxes.
        if blocks.chunks() > 1 {
            self.write_origins(level, writer, path)?;
        }
        let mut ranges = Vec::new();
        for (field, decided) in self.fields.iter().zip(&self.decided) {
            let (dropped, bounds) = (decided.dropped[level], &decided.levels[level]);
            let spec = spec(blocks, field, ndim)
                .profile(options.compression.profile)
                .error_bound(Some(bounds.loosest()))
                .chunk_bounds(self.chunk_bounds(level, bounds));
            let values = FieldOnLevel {
                nest: &self.nest,
                source,
                blocks,
                field,
                dropped,
            };
            ranges.extend(values.write(writer, &format!("{path}/{}", field.array), &spec)?);
        }
        self.write_index(level, &ranges, writer, path)
    }

    /// The bounds of the chunks of a level if they depend on positions: the strictest of their blocks.
    pub fn chunk_bounds(&self, level: usize, bounds: &FieldBounds) -> Option<Arc<[ErrorBound]>> {
        if !bounds.has_regions() {
            return None;
        }
        let (nest, blocks) = (&self.nest, &self.blocks[level]);
        let domain = nest.level(level).domain;
        let corner = |cell: [i64; 3]| {
            std::array::from_fn(|d| match d < nest.ndim() {
                true => nest.place(level, d, 2 * (cell[d] - domain.lo[d])),
                false => 0.0,
            })
        };
        let strictest = |chunk| {
            let extents = blocks.chunk(chunk).map(|block| blocks.extent(block));
            let found = extents
                .map(|extent| bounds.within(None, &corner(extent.lo), &corner(extent.hi)))
                .reduce(stricter);
            found.unwrap_or(ErrorBound::Lossless)
        };
        Some((0..blocks.chunks()).map(strictest).collect())
    }

    /// Writes the group of a level and its boxes, which are attributes where there are few.
    pub fn write_boxes(&self, level: usize, writer: &mut StoreWriter, path: &str) -> Result<()> {
        let ndim = self.nest.ndim();
        let boxes = &self.nest.level(level).boxes;
        writer.group(path, Attributes::new())?;
        if boxes.len() <= MAX_LISTED_BOXES {
            return Ok(());
        }
        let boxes = LevelArray {
            name: "box",
            shape: vec![boxes.len() as u64, 2, ndim as u64],
            dimensions: &["box", "bound", "axis"],
            values: LevelArrayValues::Integers(corners(boxes, ndim)),
        };
        boxes.write(writer, path)
    }

    /// Writes the origins of the unit blocks of a level.
    pub fn write_origins(&self, level: usize, writer: &mut StoreWriter, path: &str) -> Result<()> {
        let ndim = self.nest.ndim();
        let origins = self.blocks[level].origins();
        let places = origins.iter().flat_map(|origin| &origin[..ndim]);
        let origins = LevelArray {
            name: "origin",
            shape: vec![origins.len() as u64, ndim as u64],
            dimensions: &["block", "axis"],
            values: LevelArrayValues::Integers(places.copied().collect()),
        };
        origins.write(writer, path)
    }

    /// Writes the index of a level: value ranges by field, and boxes. A level of one chunk has none.
    pub fn write_index(
        &self,
        level: usize,
        ranges: &[[f64; 2]],
        writer: &mut StoreWriter,
        path: &str,
    ) -> Result<()> {
        if self.blocks[level].chunks() < 2 {
            return Ok(());
        }
        self.ranges(level, ranges).write(writer, path)?;
        self.extents(level).write(writer, path)
    }

    /// The index of the ranges of a level's chunks, by field.
    fn ranges(&self, level: usize, ranges: &[[f64; 2]]) -> LevelArray {
        let chunks = self.blocks[level].chunks() as u64;
        LevelArray {
            name: "index/range",
            shape: vec![self.fields.len() as u64, chunks, 2],
            dimensions: &["field", "chunk", "bound"],
            values: LevelArrayValues::Floats(ranges.concat()),
        }
    }

    /// The index of the boxes around the cells of a level's chunks.
    fn extents(&self, level: usize) -> LevelArray {
        let ndim = self.nest.ndim();
        let blocks = &self.blocks[level];
        let every = self.decided.iter().all(|decided| decided.dropped[level]);
        let kept = if every { CellSet::Leaves } else { CellSet::All };
        LevelArray {
            name: "index/box",
            shape: vec![blocks.chunks() as u64, 2, ndim as u64],
            dimensions: &["chunk", "bound", "axis"],
            values: LevelArrayValues::Integers(corners(&blocks.extents(kept), ndim)),
        }
    }
}
