//! Writes trees to stores: levels, fields, and the index of the chunks' geometry.

use std::sync::Arc;

use serde_json::json;

use crate::array::table_chunk_rows;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::derived_columns::DerivedColumn;
use crate::kinds::amr::tree::geometry::TreeGeometry;
use crate::kinds::amr::tree::leaf_positions::TreeLeafPositions;
use crate::kinds::amr::{AmrTree, Jump, LEVEL, Leaves};
use crate::kinds::attributes;
use crate::kinds::bound::Compression;
use crate::kinds::streamed::StreamedColumns;
use crate::kinds::write::{Columns, GroupColumns, IndexArray, named};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

impl AmrTree {
    /// Writes a group of kind `amr`, layout `tree`, at `path`: the leaves with their `fields`, and
    /// `more` `ambar` attributes (`components`). Encodes on the current rayon pool.
    ///
    /// # Errors
    /// `Invalid` if the length of a field differs from the leaves, a name occurs twice or is that of a
    /// derived column, or the leaves do not form a tree; `Io`.
    pub fn write(
        writer: &mut StoreWriter,
        path: &str,
        leaves: &Leaves,
        fields: &[(String, Column)],
        more: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        let mut columns = GroupColumns::of(fields);
        columns.memory.insert(0, (LEVEL, &leaves.levels));
        write_group(writer, path, leaves, &columns, more, compression)
    }

    /// As `write`, with fields that are read while they are written.
    ///
    /// # Errors
    /// As `write`; errors of reading.
    pub fn write_streamed(
        writer: &mut StoreWriter,
        path: &str,
        leaves: &Leaves,
        fields: &StreamedColumns<'_>,
        more: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        if let Some(fields) = fields.load_small()? {
            return Self::write(writer, path, leaves, &fields, more, compression);
        }
        let columns = GroupColumns {
            memory: vec![(LEVEL, &leaves.levels)],
            streamed: Some(fields),
        };
        write_group(writer, path, leaves, &columns, more, compression)
    }
}

/// Writes the group of a tree: `columns` are the levels and the fields.
fn write_group(
    writer: &mut StoreWriter,
    path: &str,
    leaves: &Leaves,
    columns: &GroupColumns<'_>,
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    let shape = leaves.checked_shape()?;
    let fields = || columns.all().skip(1).map(|(name, _)| name);
    compression.check_parts(shape.ndim, Some([0, u64::MAX]))?;
    check_names(fields(), shape.ndim)?;
    let chunk_rows = chunk_rows(leaves.levels.rows() as u64);
    let mut columns = Columns::new(columns, "cell", chunk_rows, compression)?;
    let levels = leaves.levels.bytes();
    let geometry = TreeGeometry::of_leaves(&shape, levels, leaves.jumps.clone(), chunk_rows)?;
    if columns.is_bounded() {
        let positions = TreeLeafPositions::new(&shape, levels, &geometry, chunk_rows);
        if columns.has_parts() {
            columns.bound_chunks(|chunk, bounds| positions.strictest(chunk as u64, bounds))?;
        }
        columns.set_leaf_positions(Arc::new(positions));
    }
    let mut own = Attributes::new();
    own.insert("layout".into(), json!("tree"));
    shape.to_json(&mut own);
    own.insert("cells".into(), json!(levels.len()));
    let per_level = cells_per_level(levels);
    let per_level = per_level
        .into_iter()
        .map(|(level, cells)| (level.to_string(), json!(cells)));
    own.insert(
        "cells_per_level".into(),
        json!(per_level.collect::<Attributes>()),
    );
    own.extend(named("fields", fields()));
    columns.add_bounds(&mut own);
    own.extend(more);
    writer.group(path, attributes::group("amr", own))?;
    let ranges = columns.write(writer, path)?;
    if geometry.corners.len() > 1 {
        // The index of the geometry includes the levels' ranges.
        columns.write_ranges(writer, path, &ranges[1..])?;
        write_geometry(writer, path, &geometry, shape.ndim)?;
    }
    write_jumps(writer, path, &geometry.jumps, shape.ndim)
}

/// Rows of a tree's chunks. Trees of more than a million cells have 500 to 1000 chunks or more, so that a
/// box of 1 % of the volume, which overlaps (0.01^(1/3) + n^(-1/3))^3 of n chunks, overlaps less than
/// 5 % of them. Chunks of 2048 float64 are 1.4 % larger than those of 32,768 and are decoded 19 %
/// slower (pco, hydrodynamics); small trees, which are mostly read as a whole, have large chunks.
pub(super) fn chunk_rows(rows: u64) -> u64 {
    const LARGE: u64 = 1 << 20;
    if rows < LARGE {
        return table_chunk_rows(rows);
    }
    let wanted = (rows / 1024).clamp(2048, 32_768);
    rows.div_ceil(rows.div_ceil(wanted)).next_multiple_of(64)
}

/// Checks that no field has the name of a derived column.
pub(super) fn check_names<'a>(
    mut fields: impl Iterator<Item = &'a str>,
    ndim: usize,
) -> Result<()> {
    match fields.find(|name| DerivedColumn::parse(name, ndim).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "a field cannot have the name {name:?}, because that column is derived; rename it"
        ))),
    }
}

/// The levels that have cells, and their numbers of cells.
pub(super) fn cells_per_level(levels: &[u8]) -> Vec<(u8, u64)> {
    let mut counts = [0u64; 256];
    for level in levels {
        counts[usize::from(*level)] += 1;
    }
    (0..=u8::MAX)
        .zip(counts)
        .filter(|(_, cells)| *cells > 0)
        .collect()
}

pub(super) fn write_geometry(
    writer: &mut StoreWriter,
    path: &str,
    geometry: &TreeGeometry,
    ndim: usize,
) -> Result<()> {
    let (chunks, n) = (geometry.corners.len() as u64, ndim as u64);
    let corners = geometry.corners.iter();
    let corners: Vec<u64> = corners
        .flat_map(|corner| &corner[..ndim])
        .copied()
        .collect();
    let corners = IndexArray {
        dtype: DataType::Int64,
        shape: &[chunks, n],
        dimensions: &["chunk", "axis"],
        bytes: bytemuck::cast_slice(&corners),
    };
    corners.write_to_index(writer, path, "corner")?;
    let boxes = geometry.boxes.iter().flatten();
    let boxes: Vec<f64> = boxes.flat_map(|corner| &corner[..ndim]).copied().collect();
    let boxes = IndexArray {
        dtype: DataType::Float64,
        shape: &[chunks, 2, n],
        dimensions: &["chunk", "bound", "axis"],
        bytes: bytemuck::cast_slice(&boxes),
    };
    boxes.write_to_index(writer, path, "box")?;
    let levels = IndexArray {
        dtype: DataType::UInt8,
        shape: &[chunks, 2],
        dimensions: &["chunk", "bound"],
        bytes: geometry.levels.as_flattened(),
    };
    levels.write_to_index(writer, path, "level")
}

fn write_jumps(writer: &mut StoreWriter, path: &str, jumps: &[Jump], ndim: usize) -> Result<()> {
    if jumps.is_empty() {
        return Ok(());
    }
    let count = jumps.len() as u64;
    let rows: Vec<u64> = jumps.iter().map(|jump| jump.row).collect();
    let rows = IndexArray {
        dtype: DataType::UInt64,
        shape: &[count],
        dimensions: &["jump"],
        bytes: bytemuck::cast_slice(&rows),
    };
    rows.write_to_index(writer, path, "jump_row")?;
    let corners = jumps.iter().flat_map(|jump| &jump.corner[..ndim]);
    let corners: Vec<u64> = corners.copied().collect();
    let corners = IndexArray {
        dtype: DataType::Int64,
        shape: &[count, ndim as u64],
        dimensions: &["jump", "axis"],
        bytes: bytemuck::cast_slice(&corners),
    };
    corners.write_to_index(writer, path, "jump_corner")
}
