//! Tables into stores: the columns, all cut alike, and the index of their ranges.

use rayon::prelude::*;
use serde_json::json;

use crate::array::{ArrayData, ArraySpec, table_chunk_rows};
use crate::codec::Profile;
use crate::dtype::DataType;
use crate::error::{Error, Result};
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
    profile: Profile,
) -> Result<()> {
    let mut own = named("columns", columns.iter().map(|(name, _)| name));
    own.extend(more);
    writer.group(path, attributes::group("table", own))?;
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, column)| (&name[..], column))
        .collect();
    Columns::new(&columns, "row", profile)?.write(writer, path)
}

/// Writes a group of kind `particles` at `path`: these columns in the order given (`particles::sort`
/// puts them along the Morton curve), and `more` among its `ambar` attributes.
///
/// # Errors
/// As `table`; `Invalid` where a position is missing.
pub fn particles(
    writer: &mut StoreWriter,
    path: &str,
    columns: &[(String, Column)],
    (ndim, boxlen): (usize, f64),
    more: Attributes,
    profile: Profile,
) -> Result<()> {
    particles::check_positions(columns, &particles::position_names(ndim))?;
    let mut own = particles::attributes(ndim, boxlen);
    own.extend(named("columns", columns.iter().map(|(name, _)| name)));
    own.extend(more);
    writer.group(path, attributes::group("particles", own))?;
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, column)| (&name[..], column))
        .collect();
    Columns::new(&columns, "particle", profile)?.write(writer, path)
}

/// The list of the columns' names as an attribute.
pub(crate) fn named<'a>(key: &str, names: impl Iterator<Item = &'a String>) -> Attributes {
    let mut own = Attributes::new();
    own.insert(key.into(), json!(names.collect::<Vec<_>>()));
    own
}

/// Columns on their way into a group.
pub(crate) struct Columns<'a> {
    columns: &'a [(&'a str, &'a Column)],
    dimension: &'a str,
    profile: Profile,
    /// Rows of all.
    pub rows: usize,
    /// Rows of a chunk.
    pub chunk_rows: u64,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(
        columns: &'a [(&'a str, &'a Column)],
        dimension: &'a str,
        profile: Profile,
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
        Ok(Self {
            columns,
            dimension,
            profile,
            rows,
            chunk_rows: table_chunk_rows(rows as u64),
        })
    }

    /// Writes the columns, and `index/range` beside them.
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
            .map(|(_, column)| {
                ArraySpec::new(column.dtype().clone(), &[self.rows as u64])
                    .dimensions(&[self.dimension])
                    .chunks(&[self.chunk_rows])
                    .profile(self.profile)
            })
            .collect();
        let arrays: Vec<(&str, &ArraySpec, ArrayData<'_>)> = self
            .columns
            .iter()
            .zip(paths.iter().zip(&specs))
            .map(|((_, column), (path, spec))| (&path[..], spec, ArrayData::Fixed(column.bytes())))
            .collect();
        writer.write_arrays(&arrays)?;
        let ranges = self.ranges();
        let chunks = (self.rows as u64).div_ceil(self.chunk_rows);
        let shape = [self.columns.len() as u64, chunks, 2];
        let dimensions = ["column", "chunk", "bound"];
        index(
            writer,
            path,
            "range",
            DataType::Float64,
            (&shape, &dimensions),
            bytemuck::cast_slice(&ranges),
        )
    }

    fn ranges(&self) -> Vec<[f64; 2]> {
        let chunk_rows = self.chunk_rows as usize;
        let chunks = self.rows.div_ceil(chunk_rows);
        (0..self.columns.len() * chunks)
            .into_par_iter()
            .map(|i| {
                let column = self.columns[i / chunks].1;
                let size = column.dtype().size().unwrap_or(1);
                let start = i % chunks * chunk_rows;
                let end = (start + chunk_rows).min(self.rows);
                numbers::range(column.dtype(), &column.bytes()[start * size..end * size])
            })
            .collect()
    }
}

/// Writes one array of a group's index.
pub(crate) fn index(
    writer: &mut StoreWriter,
    path: &str,
    name: &str,
    dtype: DataType,
    (shape, dimensions): (&[u64], &[&str]),
    bytes: &[u8],
) -> Result<()> {
    // One chunk: an index is read as a whole.
    let spec = ArraySpec::new(dtype, shape)
        .dimensions(dimensions)
        .chunks(shape);
    let path = format!("{}/index/{name}", path.trim_end_matches('/'));
    writer.write_array(&path, &spec, ArrayData::Fixed(bytes))
}
