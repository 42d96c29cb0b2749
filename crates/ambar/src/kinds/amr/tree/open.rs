//! Opens trees in stores, from a group's attributes and index arrays.

use std::sync::Arc;

use serde_json::Value;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::geometry::TreeGeometry;
use crate::kinds::amr::{AmrTree, Jump, LEVEL, TreeShape};
use crate::kinds::attributes::{self, names};
use crate::kinds::select::chunk_count;
use crate::kinds::source::ColumnSource;
use crate::kinds::stored::{StoredColumns, whole_array};
use crate::limits::zeroed;
use crate::memory::Column;
use crate::process::SetOnce;
use crate::store::Store;

impl AmrTree {
    /// Opens the tree in the group at `path`. Reads only metadata.
    ///
    /// # Errors
    /// `NotFound` if the group does not exist; `Invalid` if it has another kind;
    /// `Unsupported` if it was written by a newer version or has another layout; `Corrupt`, `Io`.
    pub fn open(store: &Store, path: &str) -> Result<Self> {
        let located = |error: Error| error.at_node(path).in_file(store.location());
        let attributes = attributes::of_kind(store, path, &["amr"])?;
        let value = Value::Object(attributes.clone());
        if value.get("layout").and_then(Value::as_str) != Some("tree") {
            return Err(located(Error::unsupported(
                "the layout of the cells is not known; expected \"tree\": use a newer version of ambar",
            )));
        }
        let shape = TreeShape::from_json(&value).map_err(located)?;
        let fields = names(&attributes, "fields").map_err(located)?;
        let mut columns = vec![LEVEL.to_owned()];
        columns.extend(fields.iter().cloned());
        let source: Arc<dyn ColumnSource> = Arc::new(StoredColumns::open(store, path, &columns)?);
        if attributes.get("cells").and_then(Value::as_u64) != Some(source.rows()) {
            return Err(located(Error::corrupt(format!(
                "the attribute \"cells\" differs from the number of cells, {}; restore the file from a copy",
                source.rows()
            ))));
        }
        if source.dtype(LEVEL)? != DataType::UInt8 {
            return Err(located(Error::corrupt(
                "the type of the cells' levels is not uint8; restore the file from a copy",
            )));
        }
        Ok(Self {
            counts: counts(&value),
            index: Some(GeometryReader {
                store: store.clone(),
                path: format!("{}/index", path.trim_end_matches('/')),
            }),
            source,
            shape,
            fields,
            attributes,
            geometry: SetOnce::new(),
        })
    }
}

fn counts(attributes: &Value) -> Vec<(u8, u64)> {
    let levels = attributes.get("cells_per_level").and_then(Value::as_object);
    let counts = levels.into_iter().flatten();
    counts
        .filter_map(|(level, cells)| Some((level.parse().ok()?, cells.as_u64()?)))
        .collect()
}

/// Reads the geometry of a tree from index arrays.
pub(super) struct GeometryReader {
    store: Store,
    path: String,
}

impl GeometryReader {
    pub(super) fn read(
        &self,
        shape: &TreeShape,
        source: &dyn ColumnSource,
    ) -> Result<TreeGeometry> {
        let chunks = chunk_count(source);
        let n = shape.ndim;
        let located = |error: Error| error.at_node(&self.path).in_file(self.store.location());
        let jumps = self.jumps(n)?;
        if chunks < 2 && self.store.kind(&format!("{}/corner", self.path))?.is_none() {
            return of_one_chunk(shape, source, jumps).map_err(located);
        }
        let corners = self.array("corner", DataType::Int64, &[Some(chunks), Some(n as u64)])?;
        let boxes = self.array(
            "box",
            DataType::Float64,
            &[Some(chunks), Some(2), Some(n as u64)],
        )?;
        let levels = self.array("level", DataType::UInt8, &[Some(chunks), Some(2)])?;
        let floats: &[f64] = boxes.values();
        let corner_of = |x: &[f64]| std::array::from_fn(|d| x.get(d).copied().unwrap_or(0.0));
        let geometry = TreeGeometry {
            corners: points(corners.bytes(), n).collect(),
            boxes: floats
                .chunks_exact(2 * n)
                .map(|both| [corner_of(&both[..n]), corner_of(&both[n..])])
                .collect(),
            levels: levels.bytes().as_chunks::<2>().0.to_vec(),
            jumps,
        };
        geometry
            .check(shape, source.rows(), chunks)
            .map_err(located)?;
        Ok(geometry)
    }

    fn jumps(&self, ndim: usize) -> Result<Vec<Jump>> {
        let path = format!("{}/jump_row", self.path);
        if self.store.kind(&path)?.is_none() {
            return Ok(Vec::new());
        }
        let rows = self.array("jump_row", DataType::UInt64, &[None])?;
        let shape = [Some(rows.rows() as u64), Some(ndim as u64)];
        let corners = self.array("jump_corner", DataType::Int64, &shape)?;
        let rows: &[u64] = rows.values();
        let jumps = rows.iter().zip(points(corners.bytes(), ndim));
        Ok(jumps
            .map(|(row, corner)| Jump { row: *row, corner })
            .collect())
    }

    /// Reads an index array, which must have this type and shape (`None` for any length).
    fn array(&self, name: &str, dtype: DataType, shape: &[Option<u64>]) -> Result<Column> {
        let path = format!("{}/{name}", self.path);
        whole_array(&self.store, &path, dtype, shape)
    }
}

/// The geometry of a tree of at most one chunk, computed from the levels of its cells.
fn of_one_chunk(
    shape: &TreeShape,
    source: &dyn ColumnSource,
    jumps: Vec<Jump>,
) -> Result<TreeGeometry> {
    let rows = source.rows();
    let mut levels = zeroed("the levels of the cells", rows as usize)?;
    source.read(LEVEL, 0..rows, &mut levels)?;
    TreeGeometry::of_leaves(shape, &levels, jumps, rows)
        .map_err(|error| Error::corrupt(error.message()))
}

/// Points of `ndim` int64 coordinates; negative ones become larger than every lattice.
fn points(bytes: &[u8], ndim: usize) -> impl Iterator<Item = [u64; 3]> + '_ {
    bytes.chunks_exact(8 * ndim).map(|point| {
        let mut corner = [0; 3];
        for (to, x) in corner.iter_mut().zip(point.as_chunks().0) {
            *to = u64::from_ne_bytes(*x);
        }
        corner
    })
}
