//! Writes tables to stores: columns with equal chunks, and the index of their ranges.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::array::{ArrayData, ArraySpec, LeafPositions, NewArray, table_chunk_rows};
use crate::codec::{Profile, bound_to_json};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::bound::{self, Compression, ErrorBound, FieldBounds, stricter};
use crate::kinds::{attributes, particles};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::numbers;
use crate::store::StoreWriter;

/// Writes a group of kind `table` at `path`: these columns, and `more` `ambar` attributes. Columns are encoded on the current rayon pool.
///
/// # Errors
/// `Invalid` if columns differ in length, two have the same name, or one has the name `index`; `Io`.
pub fn table(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    let mut own = named("columns", columns);
    own.extend(more);
    let rows = RowGroup {
        kind: "table",
        dimension: "row",
        positions: Vec::new(),
    };
    rows.write(writer, path, columns, own, compression)
}

/// Writes a group of kind `particles` at `path`: these columns in the given order (`particles::sort`
/// sorts them along the Morton curve), and `more` `ambar` attributes. Positions have `ndim`
/// coordinates; `boxlen` is the size of the domain in x, in code length.
///
/// # Errors
/// As `table`; `Invalid` if a position is missing.
pub fn particles(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    ndim: usize,
    boxlen: f64,
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    particles::check_positions(columns, &particles::position_names(ndim))?;
    let mut own = particles::attributes(ndim, boxlen);
    own.extend(named("columns", columns));
    own.extend(more);
    let rows = RowGroup {
        kind: "particles",
        dimension: "particle",
        positions: particles::position_names(ndim),
    };
    rows.write(writer, path, columns, own, compression)
}

/// A kind of groups of columns.
struct RowGroup {
    kind: &'static str,
    dimension: &'static str,
    /// The names of the columns with positions; empty if rows have no positions.
    positions: Vec<String>,
}

impl RowGroup {
    /// Writes a group with its own attributes: all columns and their ranges.
    fn write(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        columns: &[(String, Column)],
        mut own: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        compression.check_parts(self.positions.len(), None)?;
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        let named: Vec<_> = columns
            .iter()
            .map(|(name, column)| (&name[..], column))
            .collect();
        let chunk_rows = table_chunk_rows(rows as u64);
        let mut written = Columns::new(&named, self.dimension, chunk_rows, compression)?;
        if written.has_parts() {
            let points = self.points(columns)?;
            written.bound_chunks(|chunk, bounds| {
                let points = points.chunks(chunk_rows as usize).nth(chunk);
                let points = points.unwrap_or_default().iter();
                Ok(points
                    .map(|point| bounds.within(None, point, point))
                    .reduce(stricter))
            })?;
        }
        written.add_bounds(&mut own);
        writer.group(path, attributes::group(self.kind, own))?;
        written.write(writer, path)?;
        // A table of one chunk has no index.
        if written.rows as u64 > written.chunk_rows {
            written.write_ranges(writer, path, 0)?;
        }
        Ok(())
    }

    /// The positions of all rows.
    fn points(&self, columns: &[(String, Column)]) -> Result<Vec<[f64; 3]>> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        let mut points = vec![[0.0; 3]; rows];
        let mut values = vec![0.0; rows];
        for (axis, position) in self.positions.iter().enumerate() {
            if let Some((name, column)) = columns.iter().find(|(name, _)| name == position) {
                numbers::to_f64(name, column.dtype(), column.bytes(), &mut values)?;
                for (point, value) in points.iter_mut().zip(&values) {
                    point[axis] = *value;
                }
            }
        }
        Ok(points)
    }
}

/// The bounds of a stored field.
pub(crate) struct StoredBounds<'a> {
    pub field: &'a str,
    /// The bound that holds for all values.
    pub bound: ErrorBound,
    /// The given bounds.
    pub asked: &'a FieldBounds,
    /// The median magnitude of the values, if a bound depends on their range.
    pub median: Option<f64>,
}

/// Adds the attributes with the bounds of the stored fields.
pub(crate) fn add_bounds<'a>(own: &mut Attributes, fields: impl Iterator<Item = StoredBounds<'a>>) {
    let mut all = <[Attributes; 3]>::default();
    for field in fields.filter(|field| !field.bound.is_lossless()) {
        let [bounds, asked, medians] = &mut all;
        bounds.insert(field.field.to_owned(), bound_to_json(field.bound));
        asked.extend(field.asked.to_json(field.field));
        if let Some(median) = field.median {
            medians.insert(field.field.to_owned(), json!(median));
        }
    }
    for (key, values) in ["error_bounds", "requested_bounds", "medians"]
        .into_iter()
        .zip(all)
    {
        if !values.is_empty() {
            own.insert(key.into(), Value::Object(values));
        }
    }
}

/// The list of the columns' names as an attribute.
pub(crate) fn named(key: &str, columns: &[(String, Column)]) -> Attributes {
    let names: Vec<&String> = columns.iter().map(|(name, _)| name).collect();
    let mut own = Attributes::new();
    own.insert(key.into(), json!(names));
    own
}

/// Columns to write into a group.
pub(crate) struct Columns<'a> {
    columns: &'a [(&'a str, &'a Column)],
    dimension: &'a str,
    profile: Profile,
    /// Given error bounds, by column.
    asked: Vec<FieldBounds>,
    /// Error bounds by column, resolved with the range of the column.
    resolved: Vec<FieldBounds>,
    /// By column, the bound of all values.
    bounds: Vec<ErrorBound>,
    /// By column, the bounds of the chunks if they differ.
    chunk_bounds: Vec<Option<Arc<[ErrorBound]>>>,
    rows: usize,
    chunk_rows: u64,
    /// The positions of the leaf cells that the rows represent.
    leaves: Option<Arc<dyn LeafPositions>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(
        columns: &'a [(&'a str, &'a Column)],
        dimension: &'a str,
        chunk_rows: u64,
        compression: &Compression,
    ) -> Result<Self> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        for (i, (name, column)) in columns.iter().enumerate() {
            if column.rows() != rows {
                return Err(Error::invalid(format!(
                    "expected columns of equal length: column {name:?} has {} rows, {:?} has {rows}",
                    column.rows(),
                    columns[0].0
                )));
            }
            if *name == "index" || columns[..i].iter().any(|(other, _)| other == name) {
                return Err(Error::invalid(format!(
                    "expected unique names of columns, and none with the name \"index\", found {name:?}; rename it"
                )));
            }
        }
        let asked = columns
            .iter()
            .map(|(name, column)| compression.bounds(name, column.dtype()));
        let asked: Vec<FieldBounds> = asked.collect::<Result<_>>()?;
        let resolved = asked.iter().zip(columns);
        let resolved: Vec<FieldBounds> = resolved
            .map(|(asked, (_, column))| asked.of_values(column.dtype(), column.bytes()))
            .collect();
        Ok(Self {
            columns,
            dimension,
            profile: compression.profile,
            bounds: resolved.iter().map(FieldBounds::loosest).collect(),
            chunk_bounds: vec![None; columns.len()],
            asked,
            resolved,
            rows,
            chunk_rows,
            leaves: None,
        })
    }

    /// Whether any column has an error bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.bounds.iter().any(|bound| !bound.is_lossless())
    }

    /// Whether the bound of a column depends on levels or positions.
    pub(crate) fn has_parts(&self) -> bool {
        self.resolved.iter().any(FieldBounds::has_parts)
    }

    /// Sets the bounds of chunks: `strictest` returns the strictest bound of the rows of a chunk, by its number and
    /// the bounds of a column.
    ///
    /// # Errors
    /// The errors of `strictest`.
    pub(crate) fn bound_chunks(
        &mut self,
        strictest: impl Fn(usize, &FieldBounds) -> Result<Option<ErrorBound>> + Sync,
    ) -> Result<()> {
        let chunks = (self.rows as u64).div_ceil(self.chunk_rows) as usize;
        for (column, bounds) in self.resolved.iter().enumerate() {
            if !bounds.has_parts() {
                continue;
            }
            let of_chunk = |chunk| Ok(strictest(chunk, bounds)?.unwrap_or(ErrorBound::Lossless));
            let found: Vec<ErrorBound> = (0..chunks)
                .into_par_iter()
                .map(of_chunk)
                .collect::<Result<_>>()?;
            self.bounds[column] = found
                .iter()
                .copied()
                .reduce(bound::looser)
                .unwrap_or(ErrorBound::Lossless);
            self.chunk_bounds[column] = Some(found.into());
        }
        Ok(())
    }

    /// Sets the positions of the leaf cells that the rows represent.
    pub(crate) fn set_leaf_positions(&mut self, leaves: Arc<dyn LeafPositions>) {
        self.leaves = Some(leaves);
    }

    /// Adds the attributes with the bounds of the stored columns.
    pub(crate) fn add_bounds(&self, own: &mut Attributes) {
        let bounds = self.bounds.iter().zip(&self.asked);
        let fields = self.columns.iter().zip(bounds);
        let fields = fields.map(|((field, column), (bound, asked))| StoredBounds {
            field,
            bound: *bound,
            asked,
            median: asked
                .needs_range()
                .then(|| numbers::median_magnitude(column.dtype(), column.bytes()))
                .flatten(),
        });
        add_bounds(own, fields);
    }

    /// Writes the columns.
    pub(crate) fn write(&self, writer: &mut StoreWriter, path: &str) -> Result<()> {
        let path = path.trim_end_matches('/');
        let paths: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| format!("{path}/{name}"))
            .collect();
        let specs: Vec<ArraySpec> = self
            .columns
            .iter()
            .zip(self.bounds.iter().zip(&self.chunk_bounds))
            .map(|((_, column), (bound, chunk_bounds))| {
                ArraySpec::new(column.dtype().clone(), &[self.rows as u64])
                    .dimensions(&[self.dimension])
                    .chunks(&[self.chunk_rows])
                    .profile(self.profile)
                    .error_bound(Some(*bound))
                    .chunk_bounds(chunk_bounds.clone())
                    .leaves(self.leaves.clone())
            })
            .collect();
        let arrays: Vec<NewArray<'_>> = self
            .columns
            .iter()
            .zip(paths.iter().zip(&specs))
            .map(|((_, column), (path, spec))| NewArray {
                path,
                spec,
                data: ArrayData::Fixed(column.bytes()),
            })
            .collect();
        writer.write_arrays(&arrays)
    }

    /// Writes `index/range`: minimum and maximum of each chunk of the columns, except the first
    /// `skipped` columns.
    pub(crate) fn write_ranges(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        skipped: usize,
    ) -> Result<()> {
        let columns = self.columns.get(skipped..).unwrap_or_default();
        let chunk_rows = self.chunk_rows as usize;
        let chunks = self.rows.div_ceil(chunk_rows);
        let ranges: Vec<[f64; 2]> = (0..columns.len() * chunks)
            .into_par_iter()
            .map(|i| {
                let column = columns[i / chunks].1;
                let size = column.dtype().size().unwrap_or(1);
                let start = i % chunks * chunk_rows;
                let end = (start + chunk_rows).min(self.rows);
                let bytes = &column.bytes()[start * size..end * size];
                let [lo, hi] = numbers::range(column.dtype(), bytes);
                let bound = self.bounds[skipped + i / chunks];
                bound::widened(bound, [lo, hi], chunk_rows)
            })
            .collect();
        let array = IndexArray {
            dtype: DataType::Float64,
            shape: &[columns.len() as u64, chunks as u64, 2],
            dimensions: &["column", "chunk", "bound"],
            bytes: bytemuck::cast_slice(&ranges),
        };
        array.write_to_index(writer, path, "range")
    }
}

/// A small array that is always read as a whole, such as an array of the index of a group.
pub(crate) struct IndexArray<'a> {
    pub dtype: DataType,
    pub shape: &'a [u64],
    pub dimensions: &'a [&'a str],
    /// The values, native byte order.
    pub bytes: &'a [u8],
}

impl IndexArray<'_> {
    /// Writes it to `path`, in one chunk.
    pub fn write(&self, writer: &mut StoreWriter, path: &str) -> Result<()> {
        let chunk: Vec<u64> = self.shape.iter().map(|n| (*n).max(1)).collect();
        let spec = ArraySpec::new(self.dtype.clone(), self.shape)
            .dimensions(self.dimensions)
            .chunks(&chunk);
        writer.write_array(path, &spec, ArrayData::Fixed(self.bytes))
    }

    /// Writes it as array `name` of the index of the group at `group`.
    pub fn write_to_index(&self, writer: &mut StoreWriter, group: &str, name: &str) -> Result<()> {
        self.write(
            writer,
            &format!("{}/index/{name}", group.trim_end_matches('/')),
        )
    }
}
