//! The columns of a table in a store: the 1-D arrays of a group, and their index arrays.

use std::ops::Range;

use serde_json::Value;

use crate::array::fetch_rows;
use crate::array::{Array, Slice};
use crate::container::ReadAhead;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::source::ColumnSource;
use crate::limits::{check_memory, zeroed};
use crate::memory::Column;
use crate::process::SetOnce;
use crate::store::{NodeKind, Store};

/// Columns of a group, read on demand.
pub struct StoredColumns {
    path: String,
    names: Vec<String>,
    arrays: Vec<Array>,
    rows: u64,
    chunk_rows: u64,
    /// Minimum and maximum of chunks, float64 (columns, chunks, 2), and the columns of its first
    /// dimension.
    ranges: Option<(Array, Vec<String>)>,
    loaded: SetOnce<Vec<f64>>,
}

impl StoredColumns {
    /// The columns `names` of the group at `path`: 1-D arrays of equal length and chunks.
    ///
    /// Their ranges are in `<path>/index/range`, float64 (columns, chunks, 2), if this array exists.
    /// The attribute `ambar.fields` or `ambar.columns` of the group lists the columns of its first
    /// dimension.
    ///
    /// # Errors
    /// `NotFound` for a column or group that does not exist; `Corrupt` if lengths or chunks
    /// differ; `Unsupported` for a column of strings.
    pub fn open(store: &Store, path: &str, names: &[String]) -> Result<Self> {
        let group = store.group(path)?;
        let path = group.path().trim_end_matches('/').to_owned();
        let arrays = names
            .iter()
            .map(|name| store.array(&format!("{path}/{name}")))
            .collect::<Result<Vec<_>>>()?;
        let (mut rows, mut chunk_rows) = (0, 1);
        for (index, array) in arrays.iter().enumerate() {
            let place = |error: Error| error.at_node(array.path()).in_file(store.location());
            let ([length], [chunk]) = (array.shape(), array.chunk_shape()) else {
                return Err(place(Error::corrupt(
                    "expected a column of one dimension, found an array of another shape",
                )));
            };
            if array.dtype().size().is_none() {
                return Err(place(Error::unsupported(
                    "columns of strings cannot be read as a table; read them as arrays",
                )));
            }
            if index == 0 {
                (rows, chunk_rows) = (*length, *chunk);
            }
            if (rows, chunk_rows) != (*length, *chunk) {
                return Err(place(Error::corrupt(format!(
                    "expected {rows} rows in chunks of {chunk_rows}, as in the other columns, found \
                     {length} rows in chunks of {chunk}"
                ))));
            }
        }
        let ranges = range_array(
            store,
            &path,
            group.attributes().get("ambar"),
            rows,
            chunk_rows,
        )?;
        let names = names.to_vec();
        Ok(Self {
            path,
            names,
            arrays,
            rows,
            chunk_rows,
            ranges,
            loaded: SetOnce::new(),
        })
    }

    /// The array of the column `name`.
    ///
    /// # Errors
    /// `NotFound`, with the available columns.
    pub fn array(&self, name: &str) -> Result<&Array> {
        let found = self.names.iter().position(|other| other == name);
        found
            .and_then(|index| self.arrays.get(index))
            .ok_or_else(|| Error::unknown("column", name, &self.names).at_node(&self.path))
    }
}

/// The index array of ranges, if it exists, and the columns of its first dimension.
fn range_array(
    store: &Store,
    path: &str,
    ambar: Option<&Value>,
    rows: u64,
    chunk_rows: u64,
) -> Result<Option<(Array, Vec<String>)>> {
    let index = format!("{path}/index/range");
    if store.kind(&index)? != Some(NodeKind::Array) {
        return Ok(None);
    }
    let listed = ambar.and_then(|ambar| ambar.get("fields").or_else(|| ambar.get("columns")));
    let names: Vec<String> = listed
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
    let array = store.array(&index)?;
    let expected = [names.len() as u64, rows.div_ceil(chunk_rows), 2];
    if array.shape() == expected && *array.dtype() == DataType::Float64 {
        return Ok(Some((array, names)));
    }
    Err(Error::corrupt(format!(
        "expected ranges in float64 of shape {expected:?}, found {} of {:?}",
        array.dtype(),
        array.shape()
    ))
    .at_node(index)
    .in_file(store.location()))
}

/// A whole array, such as an array of an index. It must have this type and shape (`None`: any
/// length). Values must have a fixed size.
///
/// # Errors
/// `Corrupt` if type or shape differ; `Limit` if there is no memory for it.
pub(crate) fn whole_array(
    store: &Store,
    path: &str,
    dtype: DataType,
    shape: &[Option<u64>],
) -> Result<Column> {
    let array = store.array(path)?;
    let located = |error: Error| error.at_node(path).in_file(store.location());
    let found = array.shape();
    let alike = |(found, wanted): (&u64, &Option<u64>)| wanted.is_none_or(|n| n == *found);
    let same = found.len() == shape.len() && found.iter().zip(shape).all(alike);
    if *array.dtype() != dtype || !same {
        return Err(located(Error::corrupt(format!(
            "expected {dtype} values of shape {shape:?}, found {} of {found:?}; restore the file \
             from a copy",
            array.dtype()
        ))));
    }
    let size = dtype.size().unwrap_or(1);
    let bytes = array.elements().saturating_mul(size as u64);
    let values = check_memory("an index", bytes).map_err(located)? / size;
    let column = Column::allocate(&[dtype], values).map_err(located)?.pop();
    let mut column =
        column.ok_or_else(|| located(Error::limit("cannot allocate memory for an index")))?;
    let whole: Vec<Slice> = found.iter().map(|n| Slice::all(*n)).collect();
    array.read(&whole, column.bytes_mut())?;
    Ok(column)
}

impl ColumnSource for StoredColumns {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn chunk_rows(&self) -> u64 {
        self.chunk_rows
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn dtype(&self, name: &str) -> Result<DataType> {
        Ok(self.array(name)?.dtype().clone())
    }

    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        self.array(name)?.read_rows(rows, out)
    }

    fn is_remote(&self) -> bool {
        self.arrays.first().is_some_and(Array::is_remote)
    }

    fn read_ahead(&self, wanted: &[(&str, Range<u64>)]) -> Result<ReadAhead> {
        let wanted = wanted
            .iter()
            .map(|(name, rows)| Ok((self.array(name)?, rows.clone())));
        fetch_rows(&wanted.collect::<Result<Vec<_>>>()?)
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        let Some((array, names)) = &self.ranges else {
            return Ok(None);
        };
        let Some(column) = names.iter().position(|other| other == name) else {
            return Ok(None);
        };
        let values = match self.loaded.get() {
            Some(values) => values,
            None => {
                let bytes = array.elements().saturating_mul(8);
                let located = |error: Error| error.at_node(array.path());
                let count = check_memory("an index", bytes).map_err(located)? / 8;
                let mut values: Vec<f64> = zeroed("an index", count).map_err(located)?;
                let all: Vec<Slice> = array.shape().iter().copied().map(Slice::all).collect();
                array.read(&all, bytemuck::cast_slice_mut(&mut values))?;
                self.loaded.get_or_set(values)
            }
        };
        let chunks = self.rows.div_ceil(self.chunk_rows) as usize;
        let pairs = values.chunks_exact(2).skip(column * chunks).take(chunks);
        Ok(Some(pairs.map(|pair| [pair[0], pair[1]]).collect()))
    }
}
