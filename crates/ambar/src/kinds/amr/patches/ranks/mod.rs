//! Collective writing of patches: each rank passes the values of its own boxes.

mod share;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::array::{ArrayData, choose_codecs};
use crate::codec::{CodecChain, Profile};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::kinds::amr::patches::write::decision::Decided;
use crate::kinds::amr::patches::write::fields::named_fields;
use crate::kinds::amr::patches::write::gather::spec;
use crate::kinds::amr::patches::write::plan::PatchWritePlan;
use crate::kinds::amr::patches::{Covered, IndexBox, PatchHierarchy, PatchLevel};
use crate::kinds::attributes;
use crate::kinds::bound::{self, Compression};
use crate::metadata::Attributes;
use crate::ranks::{ArrayId, RangesId, RankWriter, digest};
use share::{Share, WritePart, part_of, whole};
use values::{FieldValues, LevelField, RankBox};

pub use values::ReadRow;

/// Maximum number of chunks of a shard: few enough that ranks seldom share a shard, and that a level has
/// many shards.
const SHARD_CHUNKS: usize = 16;

/// Shards of a level per rank, if the level has enough chunks.
const SHARDS_A_RANK: usize = 4;

/// Options of a collective write of patches; equal on all ranks.
#[derive(Clone, Debug, Default)]
pub struct RankPatchOptions {
    /// How covered cells are stored; [`Covered::Auto`] is invalid. `None`: covered cells of fields with
    /// an error bound are dropped, those of other fields are kept.
    pub covered: Option<Covered>,
    /// How the arrays are compressed. Error bounds are absolute.
    pub compression: Compression,
    /// The codecs of fields by name, as chosen by some of their values; else by their types.
    pub codecs: BTreeMap<String, CodecChain>,
    /// Cells of a chunk, padding among them; `None`: chosen by the number of cells of a level.
    pub chunk_cells: Option<usize>,
    /// Added to the `ambar` attributes of the group.
    pub more: Attributes,
}

/// One rank's handle of a group of kind `amr`, layout `patches`, that all ranks write collectively. The
/// group equals the one that a single process writes.
///
/// All ranks declare the group with equal arguments ([`RankPatches::declare`]), put the values of their
/// own boxes ([`RankPatches::put`]), finish it ([`RankPatches::finish`]), and commit as with any other
/// arrays. A rank needs the boxes of all ranks and their owners, but only its own values.
pub struct RankPatches {
    plan: Arc<PatchWritePlan>,
    levels: Vec<RankLevel>,
}

struct RankLevel {
    share: Share,
    /// The indices of the rank's boxes in the level's list.
    boxes: Vec<usize>,
    arrays: Vec<ArrayId>,
    ranges: RangesId,
    fields: Vec<FieldState>,
}

/// Progress of a field of a level.
enum FieldState {
    Waiting,
    Incomplete(FieldValues),
    Written,
}

/// A hierarchy, and the ranks that own its boxes.
#[derive(Clone, Copy, Debug)]
pub struct OwnedHierarchy<'a> {
    /// The levels and their boxes.
    pub hierarchy: &'a PatchHierarchy,
    /// The rank of each box, by level.
    pub owners: &'a [Vec<u32>],
}

/// A field on one box of a level.
#[derive(Clone, Copy, Debug)]
pub struct FieldBox<'a> {
    /// The level, 0 for the coarsest.
    pub level: usize,
    /// The index of the box in the level's list.
    pub index: usize,
    /// The name of the field.
    pub field: &'a str,
}

impl RankPatches {
    /// Declares the group at `path`.
    ///
    /// # Errors
    /// `Invalid` for an invalid hierarchy, duplicate names of fields, or a box without an owner;
    /// `Unsupported` for options that need the values of all ranks, such as [`Covered::Auto`]; `NotFound`
    /// for an error bound of a field or level that does not exist; `Limit`.
    pub fn declare(
        writer: &mut RankWriter,
        path: &str,
        hierarchy: OwnedHierarchy<'_>,
        fields: &[(String, DataType)],
        options: &RankPatchOptions,
    ) -> Result<Self> {
        let path = path.trim_end_matches('/');
        let declared = Self::declare_here(writer, path, hierarchy, fields, options)
            .map_err(|error| error.at_node(path));
        writer.record_failure(declared)
    }

    fn declare_here(
        writer: &mut RankWriter,
        path: &str,
        hierarchy: OwnedHierarchy<'_>,
        fields: &[(String, DataType)],
        options: &RankPatchOptions,
    ) -> Result<Self> {
        let OwnedHierarchy { hierarchy, owners } = hierarchy;
        let (rank, ranks) = (writer.rank(), writer.options().ranks);
        check_owners(hierarchy, owners, ranks)?;
        let (plan, shares) = writer.working(|| {
            let plan = plan(hierarchy, fields, options)?;
            let shares = (plan.blocks.iter().zip(owners))
                .map(|(blocks, owners)| Share::new(&plan.nest, blocks, owners, rank));
            let shares = shares.collect::<Vec<_>>();
            Ok((plan, shares))
        })?;
        let plan = Arc::new(plan);
        let own = plan.attributes(&options.more);
        let own = attributes::group("amr", own);
        writer.define_group("hierarchy", path, own, boxes_of(hierarchy, owners))?;
        let mut levels = Vec::with_capacity(shares.len());
        for (level, share) in shares.into_iter().enumerate() {
            let boxes = owners[level].iter().enumerate();
            let boxes = boxes.filter(|(_, owner)| **owner == rank);
            let boxes = boxes.map(|(place, _)| place).collect();
            let group = format!("{path}/level_{level}");
            let arrays = declare_fields(writer, &group, &plan, level, &share, options)?;
            levels.push(RankLevel {
                ranges: declare_rest(writer, group, &plan, level),
                share,
                boxes,
                arrays,
                fields: plan.fields.iter().map(|_| FieldState::Waiting).collect(),
            });
        }
        Ok(Self { plan, levels })
    }

    /// Chooses the codecs of a field without an error bound by its values on one box. `cells` is the
    /// number of cells of the box in each dimension, 1 to 3. The result is for
    /// [`RankPatchOptions::codecs`] of all ranks; the caller sends it to the other ranks.
    ///
    /// # Errors
    /// `Invalid` for a box without cells or of other dimensions; `Limit`.
    pub fn choose(
        cells: &[usize],
        dtype: &DataType,
        profile: Profile,
        read: &mut ReadRow<'_>,
    ) -> Result<CodecChain> {
        let ndim = cells.len();
        let cells: [usize; 3] = std::array::from_fn(|d| cells.get(d).copied().unwrap_or(1));
        let whole = IndexBox {
            lo: [0; 3],
            hi: cells.map(|n| n as i64),
        };
        let level = PatchLevel {
            domain: whole,
            boxes: vec![whole],
            cell_size: std::array::from_fn(|d| if d < ndim { 1.0 } else { 0.0 }),
            ratio: [1; 3],
        };
        let hierarchy = PatchHierarchy {
            ndim,
            lower: [0.0; 3],
            upper: std::array::from_fn(|d| if d < ndim { cells[d] as f64 } else { 0.0 }),
            levels: vec![level],
        };
        let fields = [("sample".to_owned(), dtype.clone())];
        let plan = plan(&hierarchy, &fields, &RankPatchOptions::default())?;
        let blocks = &plan.blocks[0];
        let share = Share::new(&plan.nest, blocks, &[0], 0);
        let target = LevelField {
            nest: &plan.nest,
            blocks,
            share: &share,
            field: &plan.fields[0],
            dropped: false,
        };
        let mut values = FieldValues::new(target, 1)?;
        values.put(target, RankBox { own: 0, index: 0 }, read)?;
        let spec = spec(blocks, target.field, ndim).profile(profile);
        choose_codecs(&spec, ArrayData::Fixed(values.values.bytes()))
    }

    /// Stores the values of a field on all cells of one of this rank's boxes; `read` copies their rows.
    /// A field of a level is encoded once all its boxes have been put. Putting field after field takes
    /// the least memory.
    ///
    /// # Errors
    /// `Invalid` for a box of another rank, or one that was put before; as [`RankWriter::write`].
    pub fn put(
        &mut self,
        writer: &mut RankWriter,
        target: FieldBox<'_>,
        read: &mut ReadRow<'_>,
    ) -> Result<()> {
        let put = self.put_here(writer, target, read);
        let put = put.map_err(|error| {
            let FieldBox {
                level,
                index,
                field,
            } = target;
            error.at_node(format!("{field}, box {index} of level {level}"))
        });
        writer.record_failure(put)
    }

    fn put_here(
        &mut self,
        writer: &mut RankWriter,
        target: FieldBox<'_>,
        read: &mut ReadRow<'_>,
    ) -> Result<()> {
        let FieldBox { level, index, .. } = target;
        let plan = Arc::clone(&self.plan);
        let field = plan
            .fields
            .iter()
            .position(|field| field.name == target.field);
        let field = field.ok_or_else(|| {
            let names: Vec<&str> = plan.fields.iter().map(|field| &field.name[..]).collect();
            Error::not_found(format!(
                "the field does not exist; available: {}",
                names.join(", ")
            ))
        })?;
        let levels = self.levels.len();
        let there = self.levels.get_mut(level).ok_or_else(|| {
            Error::not_found(format!(
                "level {level} does not exist; the number of levels is {levels}"
            ))
        })?;
        let own = there.boxes.binary_search(&index).map_err(|_| {
            Error::invalid(format!("the box does not belong to rank {}", writer.rank()))
        })?;
        let target = LevelField {
            nest: &plan.nest,
            blocks: &plan.blocks[level],
            share: &there.share,
            field: &plan.fields[field],
            dropped: plan.decided[field].dropped[level],
        };
        let mut values = match std::mem::replace(&mut there.fields[field], FieldState::Written) {
            FieldState::Waiting => FieldValues::new(target, there.boxes.len())?,
            FieldState::Incomplete(values) => values,
            FieldState::Written => {
                return Err(Error::invalid(
                    "the values of this box were already put; put each box once",
                ));
            }
        };
        values.put(target, RankBox { own, index }, read)?;
        if !values.is_complete() {
            there.fields[field] = FieldState::Incomplete(values);
            return Ok(());
        }
        let chunks = target.blocks.chunks();
        let bound = plan.decided[field].levels[level].loosest();
        for (chunk, [lo, hi]) in values.all_ranges(target) {
            writer.report_range(
                there.ranges,
                field * chunks + chunk,
                bound::widened(
                    bound,
                    [lo, hi],
                    target.blocks.per_chunk() * target.blocks.block_cells(),
                ),
            );
        }
        write(writer, there.arrays[field], target, &values)
    }

    /// Finishes the group: all of this rank's boxes must have been put.
    ///
    /// # Errors
    /// `Invalid`, with the fields and levels of missing values. Then the commit fails.
    pub fn finish(self, writer: &mut RankWriter) -> Result<()> {
        let mut missing = Vec::new();
        for (number, level) in self.levels.iter().enumerate() {
            let fields = self.plan.fields.iter().zip(&level.fields);
            let lacking = |progress: &FieldState| {
                !level.boxes.is_empty() && !matches!(progress, FieldState::Written)
            };
            let lacking = fields.filter(|(_, progress)| lacking(progress));
            missing.extend(lacking.map(|(field, _)| format!("{:?} on {number}", field.name)));
        }
        let finished = match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "expected the values of all boxes of rank {}; missing: the fields and levels {}",
                writer.rank(),
                missing.join(", ")
            ))),
        };
        writer.record_failure(finished)
    }
}

/// Properties of a hierarchy, besides the attributes, that must be equal on all ranks.
fn boxes_of(hierarchy: &PatchHierarchy, owners: &[Vec<u32>]) -> Attributes {
    let bounds = json!([hierarchy.lower, hierarchy.upper]);
    let levels = hierarchy.levels.iter().zip(owners).enumerate();
    let levels = levels.map(|(number, (level, owners))| {
        let of_level = json!({
            "domain": digest(&level.domain),
            "boxes": digest(&level.boxes),
            "cell_size": level.cell_size,
            "ratio": level.ratio,
            "ranks": digest(owners),
        });
        (format!("level_{number}"), of_level)
    });
    [("bounds".to_owned(), bounds)]
        .into_iter()
        .chain(levels)
        .collect()
}

fn check_owners(hierarchy: &PatchHierarchy, owners: &[Vec<u32>], ranks: u32) -> Result<()> {
    let boxes = hierarchy.levels.iter().map(|level| level.boxes.len());
    if !boxes.eq(owners.iter().map(Vec::len)) {
        return Err(Error::invalid(
            "expected one owner rank for every box of every level",
        ));
    }
    match owners.iter().flatten().find(|owner| **owner >= ranks) {
        None => Ok(()),
        Some(owner) => Err(Error::invalid(format!(
            "invalid rank of a box: {owner}; expected 0 to {ranks}, exclusive"
        ))),
    }
}

fn plan(
    hierarchy: &PatchHierarchy,
    fields: &[(String, DataType)],
    options: &RankPatchOptions,
) -> Result<PatchWritePlan> {
    let nest = Arc::new(Nest::new(hierarchy.clone())?);
    let finest = nest.levels().saturating_sub(1) as u64;
    let compression = &options.compression;
    compression.check_parts(nest.ndim(), Some([0, finest]))?;
    let (names, dtypes): (Vec<String>, Vec<DataType>) = fields.iter().cloned().unzip();
    let fields = named_fields(&nest, &names, &dtypes, &options.compression)?;
    let decided = fields
        .iter()
        .map(|field| Decided::given(&nest, field, options.covered, &options.compression));
    let decided = decided.collect::<Result<Vec<_>>>()?;
    PatchWritePlan::of(&nest, fields, decided, options.chunk_cells)
}

/// Declares the arrays of the fields on a level.
fn declare_fields(
    writer: &mut RankWriter,
    group: &str,
    plan: &PatchWritePlan,
    level: usize,
    share: &Share,
    options: &RankPatchOptions,
) -> Result<Vec<ArrayId>> {
    let blocks = &plan.blocks[level];
    let wanted = blocks.chunks() / (SHARDS_A_RANK * writer.options().ranks as usize);
    let ids = plan
        .fields
        .iter()
        .zip(&plan.decided)
        .map(|(field, decided)| {
            let mut spec =
                spec(blocks, field, plan.nest.ndim()).profile(options.compression.profile);
            let bounds = &decided.levels[level];
            spec = spec
                .error_bound(Some(bounds.loosest()))
                .chunk_bounds(plan.chunk_bounds(level, bounds));
            if bounds.loosest().is_lossless() {
                spec = spec.codecs(options.codecs.get(&field.name).cloned());
            }
            if let Some(mut shard) = spec.chunk_shape.clone().filter(|_| blocks.chunks() > 1) {
                shard[0] *= wanted.clamp(1, SHARD_CHUNKS) as u64;
                spec = spec.shards(&shard);
            }
            writer.declare(
                &format!("{group}/{}", field.array),
                &spec,
                Some(&share.held),
            )
        });
    ids.collect()
}

/// Rank 0 writes the boxes and origins of a level, and the ranges that all ranks report.
fn declare_rest(
    writer: &mut RankWriter,
    group: String,
    plan: &Arc<PatchWritePlan>,
    level: usize,
) -> RangesId {
    let places = plan.fields.len() * plan.blocks[level].chunks();
    let plan = Arc::clone(plan);
    writer.declare_ranges(
        places,
        Box::new(move |store, ranges| {
            plan.write_boxes(level, store, &group)?;
            // Also where they follow from the boxes: programs in C read them.
            plan.write_origins(level, store, &group)?;
            plan.write_index(level, ranges, store, &group)
        }),
    )
}

/// Writes the local blocks of a field.
fn write(
    writer: &mut RankWriter,
    array: ArrayId,
    target: LevelField<'_>,
    values: &FieldValues,
) -> Result<()> {
    let LevelField {
        nest,
        blocks,
        share,
        field,
        ..
    } = target;
    let block_bytes = blocks.block_cells() * field.size;
    let values = values.values.bytes();
    for piece in &share.pieces {
        match piece {
            WritePart::Whole(places) => {
                let first = share.local[places.start];
                let region = whole(nest, blocks, first..first + places.len());
                let bytes = &values[places.start * block_bytes..places.end * block_bytes];
                writer.write(array, &region, bytes)?;
            }
            WritePart::Part(at, part) => {
                let block = share.local[*at];
                let from = &values[at * block_bytes..(at + 1) * block_bytes];
                let mut bytes = Vec::with_capacity(part.cells() * field.size);
                rows(part, [&blocks.extent(block)], |[first], len| {
                    bytes.extend_from_slice(&from[first * field.size..(first + len) * field.size]);
                });
                writer.write(array, &part_of(nest, blocks, block, part), &bytes)?;
            }
        }
    }
    Ok(())
}
