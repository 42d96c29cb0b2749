//! Patches into stores: level by level the boxes, the unit blocks' places, the fields, the index.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::blocks::Blocks;
use super::decide::Decided;
use super::derived::Derived;
use super::gather::{Field, chunk_ranges, gather, spec};
use super::hierarchy::IndexBox;
use super::nest::{Cells, Nest};
use super::options::PatchOptions;
use super::{PatchAmr, PatchSource};
use crate::array::ArrayData;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::attributes;
use crate::kinds::bound::Compression;
use crate::kinds::write::in_one_chunk;
use crate::metadata::{Attributes, broken_rule_of_names};
use crate::store::StoreWriter;

impl PatchAmr {
    /// Writes a group of kind `amr`, layout `patches`, at `path`. Boxes are read in parallel and
    /// encoded on the current rayon pool; one field of one level is in memory at a time. With
    /// [`Covered::Auto`] boxes of all levels but the finest are read twice.
    ///
    /// # Errors
    /// As `from_source`; `NotFound` for a field that is not there; `Invalid` for an error bound of values
    /// that are no floats; what the source returns; `Io`.
    pub fn write(
        writer: &mut StoreWriter,
        path: &str,
        source: &dyn PatchSource,
        options: &PatchOptions,
    ) -> Result<()> {
        let path = path.trim_end_matches('/');
        let nest = Arc::new(Nest::new(source.hierarchy().clone())?);
        let fields = chosen_fields(&nest, source, options)?;
        let plan = PatchWritePlan::new(&nest, source, fields, options)?;
        writer.group(
            path,
            attributes::group("amr", plan.attributes(&options.more)),
        )?;
        if let Some(progress) = &options.progress {
            let (progress, total) = (Arc::clone(progress), plan.bytes());
            let done = AtomicU64::new(0);
            writer.observe(Some(Arc::new(move |bytes| {
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                // Index arrays and boxes are not counted in the total.
                progress(done.min(total), total)
            })));
        }
        for level in 0..nest.levels() {
            plan.write_level(
                writer,
                &format!("{path}/level_{level}"),
                source,
                level,
                options,
            )?;
        }
        if options.progress.is_some() {
            writer.observe(None);
        }
        Ok(())
    }
}

/// Checks that no field has the name of another, or of a derived column.
pub(super) fn check_names(nest: &Nest, fields: &[String]) -> Result<()> {
    for (i, name) in fields.iter().enumerate() {
        if fields[..i].contains(name) {
            return Err(Error::invalid(format!("two fields have the name {name:?}")));
        }
        if Derived::parse(name, nest).is_some() {
            return Err(Error::invalid(format!(
                "a field cannot have the name {name:?}: that column is derived; leave it out, or \
                 rename it"
            )));
        }
    }
    Ok(())
}

fn chosen_fields(
    nest: &Nest,
    source: &dyn PatchSource,
    options: &PatchOptions,
) -> Result<Vec<Field>> {
    let names = options.fields.as_deref().unwrap_or(source.fields());
    let dtypes = names.iter().map(|name| source.dtype(name));
    named_fields(
        nest,
        names,
        &dtypes.collect::<Result<Vec<_>>>()?,
        &options.compression,
    )
}

/// Fields of these names and types, once nothing speaks against them.
pub(super) fn named_fields(
    nest: &Nest,
    names: &[String],
    dtypes: &[DataType],
    compression: &Compression,
) -> Result<Vec<Field>> {
    check_names(nest, names)?;
    compression.check_names(names)?;
    names
        .iter()
        .zip(dtypes)
        .enumerate()
        .map(|(i, (name, dtype))| {
            let size = dtype.size().ok_or_else(|| {
                Error::unsupported(format!(
                    "the field {name:?} holds {dtype} values, which differ in length"
                ))
            })?;
            Ok(Field {
                name: name.clone(),
                array: array_name(i, names),
                dtype: dtype.clone(),
                size,
            })
        })
        .collect()
}

/// The name of a field's arrays: its own, where arrays can have it and it is not taken.
fn array_name(place: usize, names: &[String]) -> String {
    let name = &names[place];
    let taken = ["box", "origin", "index"].contains(&name.as_str());
    if !taken && !name.contains('/') && broken_rule_of_names(&format!("amr/{name}")).is_none() {
        return name.clone();
    }
    let mut other = format!("field_{place}");
    while names.contains(&other) {
        other.push('_');
    }
    other
}

/// All that is decided before anything is written.
pub(super) struct PatchWritePlan {
    pub nest: Arc<Nest>,
    pub fields: Vec<Field>,
    /// By field: what was decided of it.
    pub decided: Vec<Decided>,
    pub blocks: Vec<Blocks>,
}

impl PatchWritePlan {
    fn new(
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

    /// The plan for fields of which all is decided.
    pub fn of(
        nest: &Arc<Nest>,
        fields: Vec<Field>,
        decided: Vec<Decided>,
        chunk_cells: Option<usize>,
    ) -> Result<Self> {
        let blocks = (0..nest.levels()).map(|level| {
            let every = !decided.is_empty() && decided.iter().all(|field| field.dropped[level]);
            let cells = if every { Cells::Leaves } else { Cells::All };
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
    fn bytes(&self) -> u64 {
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
        let leaves = (0..nest.levels()).map(|level| nest.cells(level, Cells::Leaves));
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
        let bounds = bounds.filter(|(_, decided)| decided.bound > 0.0);
        let bounds = bounds.map(|(field, decided)| (field.name.clone(), json!(decided.bound)));
        let bounds: Attributes = bounds.collect();
        if !bounds.is_empty() {
            own.insert("error_bounds".into(), Value::Object(bounds));
        }
        own.extend(more.clone());
        own
    }

    /// What the attributes say of a level.
    fn level(&self, level: usize) -> Value {
        let ndim = self.nest.ndim();
        let info = self.nest.level(level);
        let blocks = &self.blocks[level];
        let dropped = self.fields.iter().zip(&self.decided);
        let dropped = dropped.filter(|(_, decided)| decided.dropped[level]);
        let dropped: Vec<&String> = dropped.map(|(field, _)| &field.name).collect();
        json!({
            "domain": [&info.domain.lo[..ndim], &info.domain.hi[..ndim]],
            "cell_size": &info.cell_size[..ndim],
            "ratio": &info.ratio[..ndim],
            "boxes": info.boxes.len(),
            "side": blocks.side(),
            "blocks": blocks.origins().len(),
            "dropped": dropped,
        })
    }

    fn write_level(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        source: &dyn PatchSource,
        level: usize,
        options: &PatchOptions,
    ) -> Result<()> {
        let (boxes, origins) = self.places(level);
        boxes.write(writer, path)?;
        origins.write(writer, path)?;
        let ndim = self.nest.ndim();
        let blocks = &self.blocks[level];
        let mut ranges = Vec::new();
        for (field, decided) in self.fields.iter().zip(&self.decided) {
            let (dropped, bound) = (decided.dropped[level], decided.bounds[level]);
            let values = gather(&self.nest, source, blocks, field, dropped)?;
            let spec = spec(blocks, field, ndim).profile(options.compression.profile);
            let spec = spec.error_bound(Some(bound));
            let data = ArrayData::Fixed(values.bytes());
            writer.write_array(&format!("{path}/{}", field.array), &spec, data)?;
            let known = chunk_ranges(blocks, field, dropped, &values);
            ranges.extend(known.into_iter().map(|[lo, hi]| [lo - bound, hi + bound]));
        }
        self.ranges(level, &ranges).write(writer, path)?;
        self.extents(level).write(writer, path)
    }

    /// Where the boxes of a level lie, and its unit blocks.
    pub fn places(&self, level: usize) -> (Small, Small) {
        let ndim = self.nest.ndim();
        let boxes = &self.nest.level(level).boxes;
        let origins = self.blocks[level].origins();
        let places = origins.iter().flat_map(|origin| &origin[..ndim]);
        (
            Small {
                name: "box",
                shape: vec![boxes.len() as u64, 2, ndim as u64],
                dimensions: &["box", "bound", "axis"],
                values: SmallValues::Integers(corners(boxes, ndim)),
            },
            Small {
                name: "origin",
                shape: vec![origins.len() as u64, ndim as u64],
                dimensions: &["block", "axis"],
                values: SmallValues::Integers(places.copied().collect()),
            },
        )
    }

    /// The index of the ranges of a level's chunks, by field.
    pub fn ranges(&self, level: usize, ranges: &[[f64; 2]]) -> Small {
        let chunks = self.blocks[level].chunks() as u64;
        Small {
            name: "index/range",
            shape: vec![self.fields.len() as u64, chunks, 2],
            dimensions: &["field", "chunk", "bound"],
            values: SmallValues::Floats(ranges.concat()),
        }
    }

    /// The index of the boxes around the cells of a level's chunks.
    pub fn extents(&self, level: usize) -> Small {
        let ndim = self.nest.ndim();
        let blocks = &self.blocks[level];
        let every = self.decided.iter().all(|decided| decided.dropped[level]);
        let kept = if every { Cells::Leaves } else { Cells::All };
        Small {
            name: "index/box",
            shape: vec![blocks.chunks() as u64, 2, ndim as u64],
            dimensions: &["chunk", "bound", "axis"],
            values: SmallValues::Integers(corners(&blocks.extents(kept), ndim)),
        }
    }
}

/// An array beside the fields of a level, always read as a whole.
pub(super) struct Small {
    name: &'static str,
    shape: Vec<u64>,
    dimensions: &'static [&'static str],
    values: SmallValues,
}

enum SmallValues {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

impl Small {
    /// Writes it into the group of its level.
    pub fn write(&self, writer: &mut StoreWriter, group: &str) -> Result<()> {
        let path = format!("{group}/{}", self.name);
        let (dtype, bytes): (_, &[u8]) = match &self.values {
            SmallValues::Integers(values) => (DataType::Int64, bytemuck::cast_slice(values)),
            SmallValues::Floats(values) => (DataType::Float64, bytemuck::cast_slice(values)),
        };
        in_one_chunk(writer, &path, dtype, (&self.shape, self.dimensions), bytes)
    }
}

/// Lower and upper corners, one behind the other.
fn corners(boxes: &[IndexBox], ndim: usize) -> Vec<i64> {
    let corners = boxes.iter().flat_map(|b| [b.lo, b.hi]);
    corners
        .flat_map(|corner| corner.into_iter().take(ndim))
        .collect()
}
