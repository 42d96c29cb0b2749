//! Tables into stores: the columns, all cut alike, and the index of their ranges.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::array::{ArrayData, ArraySpec, LeafPlaces, table_chunk_rows};
use crate::codec::Profile;
use crate::codec::bound_to_json;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::bound::{self, Compression, ErrorBound};
use crate::kinds::{attributes, numbers, particles};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

/// Writes a group of kind `table` at `path`: these columns, and `more` among its `ambar`
/// attributes. Columns are encoded on the current rayon pool.
///
/// # Errors
/// `Invalid` where columns differ in length, a name is taken twice or is `index`; `Io`.
pub fn table(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    let mut own = named("columns", columns);
    own.extend(more);
    let own = ("table", own);
    whole(writer, path, columns, "row", own, compression)
}

/// Writes a group of kind `particles` at `path`: these columns in the order given (`particles::sort`
/// puts them along the Morton curve), and `more` among its `ambar` attributes. The dimensions and
/// the size of the box in x (code length) are those of the positions.
///
/// # Errors
/// As `table`; `Invalid` where a position is missing.
pub fn particles(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    (ndim, boxlen): (usize, f64),
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    particles::check_positions(columns, &particles::position_names(ndim))?;
    let mut own = particles::attributes(ndim, boxlen);
    own.extend(named("columns", columns));
    own.extend(more);
    let own = ("particles", own);
    whole(writer, path, columns, "particle", own, compression)
}

/// Writes a group of a kind with its own attributes: all columns and their ranges.
fn whole(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    dimension: &str,
    (kind, mut own): (&str, Attributes),
    compression: &Compression,
) -> Result<()> {
    let rows = columns.first().map_or(0, |(_, column)| column.rows());
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, column)| (&name[..], column))
        .collect();
    let columns = Columns::new(
        &columns,
        (dimension, table_chunk_rows(rows as u64)),
        compression,
    )?;
    if let Some(bounds) = columns.bounds_attribute() {
        own.insert("error_bounds".into(), bounds);
    }
    writer.group(path, attributes::group(kind, own))?;
    columns.write(writer, path)?;
    columns.write_ranges(writer, path, 0)
}

/// The list of the columns' names as an attribute.
pub(crate) fn named(key: &str, columns: &[(String, Column)]) -> Attributes {
    let names: Vec<&String> = columns.iter().map(|(name, _)| name).collect();
    let mut own = Attributes::new();
    own.insert(key.into(), json!(names));
    own
}

/// Columns on their way into a group.
pub(crate) struct Columns<'a> {
    columns: &'a [(&'a str, &'a Column)],
    dimension: &'a str,
    profile: Profile,
    /// Error bounds by column.
    bounds: Vec<ErrorBound>,
    rows: usize,
    chunk_rows: u64,
    /// Where the leaf cells lie whose rows the columns have.
    leaves: Option<Arc<dyn LeafPlaces>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(
        columns: &'a [(&'a str, &'a Column)],
        (dimension, chunk_rows): (&'a str, u64),
        compression: &Compression,
    ) -> Result<Self> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        for (i, (name, column)) in columns.iter().enumerate() {
            if column.rows() != rows {
                return Err(Error::invalid(format!(
                    "column {name:?} has {} rows, {:?} has {rows}: all must have equally many",
                    column.rows(),
                    columns[0].0
                )));
            }
            if *name == "index" || columns[..i].iter().any(|(other, _)| other == name) {
                return Err(Error::invalid(format!(
                    "a column cannot have the name {name:?}: it is taken; rename it"
                )));
            }
        }
        let bound = |(name, column): &(&str, &Column)| {
            Ok(match compression.bound(name, column.dtype())? {
                Some(bound) => bound::of_values(bound, column.dtype(), column.bytes()),
                None => ErrorBound::Lossless,
            })
        };
        Ok(Self {
            columns,
            dimension,
            profile: compression.profile,
            bounds: columns.iter().map(bound).collect::<Result<_>>()?,
            rows,
            chunk_rows,
            leaves: None,
        })
    }

    /// Whether any column has an error bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.bounds.iter().any(|bound| !bound.is_lossless())
    }

    /// Says where the leaf cells lie whose rows the columns have.
    pub(crate) fn lie_at(&mut self, leaves: Arc<dyn LeafPlaces>) {
        self.leaves = Some(leaves);
    }

    /// The attribute `error_bounds`: the bounds of the columns that have one.
    pub(crate) fn bounds_attribute(&self) -> Option<Value> {
        let bounds = self
            .columns
            .iter()
            .zip(&self.bounds)
            .filter(|(_, bound)| !bound.is_lossless());
        let bounds = bounds.map(|((name, _), bound)| ((*name).to_owned(), bound_to_json(*bound)));
        let bounds: Attributes = bounds.collect();
        (!bounds.is_empty()).then_some(Value::Object(bounds))
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
            .zip(&self.bounds)
            .map(|((_, column), bound)| {
                ArraySpec::new(column.dtype().clone(), &[self.rows as u64])
                    .dimensions(&[self.dimension])
                    .chunks(&[self.chunk_rows])
                    .profile(self.profile)
                    .error_bound(Some(*bound))
                    .leaves(self.leaves.clone())
            })
            .collect();
        let arrays: Vec<(&str, &ArraySpec, ArrayData<'_>)> = self
            .columns
            .iter()
            .zip(paths.iter().zip(&specs))
            .map(|((_, column), (path, spec))| (&path[..], spec, ArrayData::Fixed(column.bytes())))
            .collect();
        writer.write_arrays(&arrays)
    }

    /// Writes `index/range`: smallest and largest value of each chunk of the columns but the first
    /// `skipped`.
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
        let shape = [columns.len() as u64, chunks as u64, 2];
        let place = (&shape[..], &["column", "chunk", "bound"][..]);
        index(
            writer,
            path,
            "range",
            DataType::Float64,
            place,
            bytemuck::cast_slice(&ranges),
        )
    }
}

/// Writes one array of a group's index.
pub(crate) fn index(
    writer: &mut StoreWriter,
    path: &str,
    name: &str,
    dtype: DataType,
    place: (&[u64], &[&str]),
    bytes: &[u8],
) -> Result<()> {
    let path = format!("{}/index/{name}", path.trim_end_matches('/'));
    in_one_chunk(writer, &path, dtype, place, bytes)
}

/// Writes an array that is always read as a whole: one chunk.
pub(crate) fn in_one_chunk(
    writer: &mut StoreWriter,
    path: &str,
    dtype: DataType,
    (shape, dimensions): (&[u64], &[&str]),
    bytes: &[u8],
) -> Result<()> {
    let chunk: Vec<u64> = shape.iter().map(|n| (*n).max(1)).collect();
    let spec = ArraySpec::new(dtype, shape)
        .dimensions(dimensions)
        .chunks(&chunk);
    writer.write_array(path, &spec, ArrayData::Fixed(bytes))
}
