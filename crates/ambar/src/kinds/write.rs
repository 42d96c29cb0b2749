//! Writes tables to stores: columns with equal chunks, and the index of their ranges.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::array::{
    ArrayData, ArraySpec, LeafPositions, NewArray, WindowedArray, sample_rows, table_chunk_rows,
};
use crate::codec::{Profile, bound_to_json};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::bound::{self, Compression, ErrorBound, FieldBounds, stricter};
use crate::kinds::streamed::{StreamedColumns, WINDOW_BYTES};
use crate::kinds::{attributes, particles};
use crate::memory::{self, Column};
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
    let columns = GroupColumns::of(columns);
    let mut own = columns.names("columns");
    own.extend(more);
    let rows = RowGroup {
        kind: "table",
        dimension: "row",
        positions: Vec::new(),
    };
    rows.write(writer, path, &columns, own, compression)
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
    let columns = GroupColumns::of(columns);
    particles_of(writer, path, &columns, ndim, boxlen, more, compression)
}

/// As `particles`, of columns that are read while they are written.
///
/// # Errors
/// As `particles`; errors of reading.
pub fn streamed_particles(
    writer: &mut StoreWriter,
    path: &str,
    columns: &StreamedColumns<'_>,
    ndim: usize,
    boxlen: f64,
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    if let Some(columns) = columns.load_small()? {
        return particles(writer, path, &columns, ndim, boxlen, more, compression);
    }
    let columns = GroupColumns {
        memory: Vec::new(),
        streamed: Some(columns),
    };
    particles_of(writer, path, &columns, ndim, boxlen, more, compression)
}

fn particles_of(
    writer: &mut StoreWriter,
    path: &str,
    columns: &GroupColumns<'_>,
    ndim: usize,
    boxlen: f64,
    more: Attributes,
    compression: &Compression,
) -> Result<()> {
    let positions = particles::position_names(ndim);
    particles::check_positions(columns.all(), &positions)?;
    let mut own = particles::attributes(ndim, boxlen);
    own.extend(columns.names("columns"));
    own.extend(more);
    let rows = RowGroup {
        kind: "particles",
        dimension: "particle",
        positions,
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
        columns: &GroupColumns<'_>,
        mut own: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        compression.check_parts(self.positions.len(), None)?;
        let chunk_rows = table_chunk_rows(columns.rows() as u64);
        let mut written = Columns::new(columns, self.dimension, chunk_rows, compression)?;
        if written.has_parts() {
            self.bound_chunks(columns, &mut written)?;
        }
        written.add_bounds(&mut own);
        writer.group(path, attributes::group(self.kind, own))?;
        let ranges = written.write(writer, path)?;
        // A table of one chunk has no index.
        if written.rows as u64 > written.chunk_rows {
            written.write_ranges(writer, path, &ranges)?;
        }
        Ok(())
    }

    /// Sets the bounds of the chunks by the positions of their rows.
    fn bound_chunks(&self, columns: &GroupColumns<'_>, written: &mut Columns<'_>) -> Result<()> {
        let all: Vec<_> = columns.all().collect();
        let place = |name: &String| all.iter().position(|(other, _)| *other == name);
        let positions: Vec<usize> = self.positions.iter().filter_map(place).collect();
        let chunk_rows = written.chunk_rows as usize;
        let chunks = WINDOW_BYTES / 64 / chunk_rows.max(1);
        let window = chunks.max(1) * chunk_rows;
        let resolved = written.resolved.clone();
        let mut strictest: Vec<Vec<ErrorBound>> = vec![Vec::new(); resolved.len()];
        columns.for_each_window(&positions, window, &mut |_, values| {
            let size = |at: usize| all[positions[at]].1.size().unwrap_or(1);
            let rows = values.first().map_or(0, |bytes| bytes.len() / size(0));
            let mut points = vec![[0.0; 3]; rows];
            let mut axis_values = vec![0.0; rows];
            for (axis, bytes) in values.iter().enumerate() {
                let (name, dtype) = all[positions[axis]];
                numbers::to_f64(name, dtype, bytes, &mut axis_values)?;
                for (point, value) in points.iter_mut().zip(&axis_values) {
                    point[axis] = *value;
                }
            }
            for (strictest, bounds) in strictest.iter_mut().zip(&resolved) {
                if bounds.has_parts() {
                    strictest.par_extend(points.par_chunks(chunk_rows).map(|points| {
                        let bounds = points.iter().map(|point| bounds.within(None, point, point));
                        bounds.reduce(stricter).unwrap_or(ErrorBound::Lossless)
                    }));
                }
            }
            Ok(())
        })?;
        for (column, bounds) in strictest.into_iter().enumerate() {
            if resolved[column].has_parts() {
                written.set_chunk_bounds(column, bounds);
            }
        }
        Ok(())
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
pub(crate) fn named<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Attributes {
    let names: Vec<&str> = names.collect();
    let mut own = Attributes::new();
    own.insert(key.into(), json!(names));
    own
}

/// Called with the first row of a window, and the values of some columns.
type WindowVisitor<'v> = dyn FnMut(usize, &[&[u8]]) -> Result<()> + 'v;

/// Called with the number of a column, the first row of a window, and the values.
type ColumnVisitor<'v> = dyn FnMut(usize, usize, &[u8]) -> Result<()> + 'v;

/// Rows of all streamed columns, by which their codecs are chosen.
struct SampledRows {
    rows: Range<usize>,
    columns: Vec<Column>,
}

/// The columns of a group: first those in memory, then those that are read while they are written.
pub(crate) struct GroupColumns<'a> {
    pub memory: Vec<(&'a str, &'a Column)>,
    pub streamed: Option<&'a StreamedColumns<'a>>,
}

impl<'a> GroupColumns<'a> {
    /// Columns in memory.
    pub fn of(columns: &'a [(String, Column)]) -> Self {
        let memory = columns.iter().map(|(name, column)| (&name[..], column));
        Self {
            memory: memory.collect(),
            streamed: None,
        }
    }

    /// Names and types of all columns.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, &'a DataType)> {
        let memory = self.memory.iter();
        let memory = memory.map(|(name, column)| (*name, column.dtype()));
        let streamed = self.streamed.iter().flat_map(|streamed| &streamed.columns);
        memory.chain(streamed.map(|(name, dtype)| (&name[..], dtype)))
    }

    fn names(&self, key: &str) -> Attributes {
        named(key, self.all().map(|(name, _)| name))
    }

    fn rows(&self) -> usize {
        let first = self.memory.first().map(|(_, column)| column.rows());
        first
            .or_else(|| self.streamed.map(|streamed| streamed.rows))
            .unwrap_or(0)
    }

    /// Checks that the columns are equally long, and their names valid.
    fn check(&self) -> Result<()> {
        let rows = self.rows();
        let mut lengths = self
            .memory
            .iter()
            .map(|(name, column)| (*name, column.rows()));
        if let Some((name, length)) = lengths.find(|(_, length)| *length != rows) {
            return Err(Error::invalid(format!(
                "expected columns of equal length: column {name:?} has {length} rows, {:?} has {rows}",
                self.memory[0].0
            )));
        }
        if let Some(streamed) = self.streamed.filter(|streamed| streamed.rows != rows) {
            return Err(Error::invalid(format!(
                "expected columns of equal length, found {} and {rows} rows",
                streamed.rows
            )));
        }
        let names: Vec<&str> = self.all().map(|(name, _)| name).collect();
        for (i, name) in names.iter().enumerate() {
            if *name == "index" || names[..i].contains(name) {
                return Err(Error::invalid(format!(
                    "expected unique names of columns, and none with the name \"index\", found {name:?}; rename it"
                )));
            }
        }
        Ok(())
    }

    /// Calls `f` with the first row of each window of `window_rows`, and the values of `columns` in it. Columns in
    /// memory are one window if no other column is read.
    fn for_each_window(
        &self,
        columns: &[usize],
        window_rows: usize,
        f: &mut WindowVisitor<'_>,
    ) -> Result<()> {
        let (rows, window_rows) = (self.rows(), window_rows.max(1));
        let streamed: Vec<usize> = columns
            .iter()
            .filter_map(|column| column.checked_sub(self.memory.len()))
            .collect();
        let dtypes: Vec<DataType> = streamed
            .iter()
            .filter_map(|column| Some(self.streamed?.columns.get(*column)?.1.clone()))
            .collect();
        let mut buffers = Column::allocate(&dtypes, window_rows.min(rows))?;
        for first in (0..rows).step_by(window_rows) {
            let window = first..(first + window_rows).min(rows);
            if let Some(source) = self.streamed.filter(|_| !streamed.is_empty()) {
                buffers
                    .iter_mut()
                    .for_each(|buffer| buffer.truncate(window.len()));
                (source.read)(&streamed, window.clone(), &mut buffers)?;
            }
            let mut read = buffers.iter();
            let values: Vec<&[u8]> = columns
                .iter()
                .filter_map(|column| match self.memory.get(*column) {
                    Some((_, column)) => {
                        let size = column.dtype().size().unwrap_or(1);
                        column.bytes().get(window.start * size..window.end * size)
                    }
                    None => read.next().map(Column::bytes),
                })
                .collect();
            f(first, &values)?;
        }
        Ok(())
    }

    /// Whether any value of a column is finite. Reads no more than is necessary to find one.
    fn has_finite(&self, column: usize) -> Result<bool> {
        if let Some((_, column)) = self.memory.get(column) {
            return Ok(numbers::any_finite(column.dtype(), column.bytes()));
        }
        let column = column - self.memory.len();
        let Some(source) = self.streamed else {
            return Ok(false);
        };
        let dtype = &source.columns[column].1;
        let window = WINDOW_BYTES / 64;
        for first in (0..source.rows).step_by(window) {
            let rows = first..(first + window).min(source.rows);
            let mut values = Column::allocate(std::slice::from_ref(dtype), rows.len())?;
            (source.read)(&[column], rows, &mut values)?;
            if numbers::any_finite(dtype, values[0].bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `f` with the number of each of `columns`, the first row of each of its windows, and the values. Columns
    /// of one window are read together as far as they fit in `WINDOW_BYTES`.
    fn for_each_column(
        &self,
        columns: &[usize],
        window_rows: impl Fn(usize) -> usize,
        f: &mut ColumnVisitor<'_>,
    ) -> Result<()> {
        let rows = self.rows();
        let sizes: Vec<usize> = self
            .all()
            .map(|(_, dtype)| dtype.size().unwrap_or(1))
            .collect();
        let mut rest = columns;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|column| {
                bytes += sizes[**column] * rows;
                bytes <= WINDOW_BYTES && window_rows(**column) >= rows
            });
            let (group, later) = rest.split_at(fits.count().max(1));
            self.for_each_window(group, window_rows(group[0]), &mut |first, values| {
                let mut each = group.iter().zip(values);
                each.try_for_each(|(column, values)| f(*column, first, values))
            })?;
            rest = later;
        }
        Ok(())
    }
}

/// What an error bound that depends on the range of a column is resolved with.
#[derive(Clone)]
struct Statistics {
    /// Range of the finite values; `[inf, -inf]` if no value is finite.
    range: [f64; 2],
    /// Evenly spaced values.
    sample: Vec<f64>,
}

impl Statistics {
    const NONE: Self = Self {
        range: [f64::INFINITY, f64::NEG_INFINITY],
        sample: Vec::new(),
    };

    /// Adds the values of the rows from `first` on, of a column of `rows` rows.
    fn add(&mut self, dtype: &DataType, bytes: &[u8], first: usize, rows: usize) {
        let size = dtype.size().unwrap_or(1);
        let parts = bytes.par_chunks(size << 16);
        let [low, high] = parts
            .map(|part| numbers::finite_range(dtype, part))
            .reduce(|| Self::NONE.range, |a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        self.range = [self.range[0].min(low), self.range[1].max(high)];
        let step = rows.div_ceil(numbers::SAMPLE).max(1);
        let skipped = first.next_multiple_of(step) - first;
        let sampled = (skipped..bytes.len() / size).step_by(step);
        let values = sampled.map(|row| numbers::sampled(dtype, &bytes[row * size..][..size]));
        self.sample.extend(values.flatten());
    }
}

/// Columns to write into a group.
pub(crate) struct Columns<'a> {
    columns: &'a GroupColumns<'a>,
    all: Vec<(&'a str, &'a DataType)>,
    dimension: &'a str,
    profile: Profile,
    /// Given error bounds, by column.
    asked: Vec<FieldBounds>,
    /// Error bounds by column, resolved with the range of the column.
    resolved: Vec<FieldBounds>,
    /// By column, the bound of all values.
    bounds: Vec<ErrorBound>,
    /// By column, the median magnitude, if the bound depends on the range.
    medians: Vec<Option<f64>>,
    /// By column, the bounds of the chunks if they differ.
    chunk_bounds: Vec<Option<Arc<[ErrorBound]>>>,
    rows: usize,
    chunk_rows: u64,
    /// The positions of the leaf cells that the rows represent.
    leaves: Option<Arc<dyn LeafPositions>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(
        columns: &'a GroupColumns<'a>,
        dimension: &'a str,
        chunk_rows: u64,
        compression: &Compression,
    ) -> Result<Self> {
        columns.check()?;
        let rows = columns.rows();
        let all: Vec<_> = columns.all().collect();
        let asked = all
            .iter()
            .map(|(name, dtype)| compression.bounds(name, dtype));
        let asked: Vec<FieldBounds> = asked.collect::<Result<_>>()?;
        let (ranged, others): (Vec<usize>, Vec<usize>) = (0..all.len())
            .filter(|column| !asked[*column].loosest().is_lossless())
            .partition(|column| asked[*column].needs_range());
        let mut statistics = vec![Statistics::NONE; all.len()];
        let window = WINDOW_BYTES / 8;
        columns.for_each_column(&ranged, |_| window, &mut |column, first, bytes| {
            statistics[column].add(all[column].1, bytes, first, rows);
            Ok(())
        })?;
        let mut resolved = asked.clone();
        for column in ranged {
            resolved[column] = asked[column].resolve(statistics[column].range);
        }
        for column in others {
            if !columns.has_finite(column)? {
                // Values that are not finite are stored verbatim; lossless codecs store them in fewer bytes.
                resolved[column] = asked[column].lossless();
            }
        }
        let medians = asked.iter().zip(statistics);
        let medians = medians.map(|(asked, found)| {
            let needed = asked.needs_range().then_some(found.sample);
            needed.and_then(numbers::median)
        });
        Ok(Self {
            columns,
            dimension,
            profile: compression.profile,
            bounds: resolved.iter().map(FieldBounds::loosest).collect(),
            medians: medians.collect(),
            chunk_bounds: vec![None; all.len()],
            all,
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
        let chunks = self.chunks();
        for column in 0..self.resolved.len() {
            let bounds = &self.resolved[column];
            if !bounds.has_parts() {
                continue;
            }
            let of_chunk = |chunk| Ok(strictest(chunk, bounds)?.unwrap_or(ErrorBound::Lossless));
            let found: Vec<ErrorBound> = (0..chunks)
                .into_par_iter()
                .map(of_chunk)
                .collect::<Result<_>>()?;
            self.set_chunk_bounds(column, found);
        }
        Ok(())
    }

    /// Sets the bounds of the chunks of a column.
    fn set_chunk_bounds(&mut self, column: usize, bounds: Vec<ErrorBound>) {
        let loosest = bounds.iter().copied().reduce(bound::looser);
        self.bounds[column] = loosest.unwrap_or(ErrorBound::Lossless);
        self.chunk_bounds[column] = Some(bounds.into());
    }

    fn chunks(&self) -> usize {
        (self.rows as u64).div_ceil(self.chunk_rows) as usize
    }

    /// Sets the positions of the leaf cells that the rows represent.
    pub(crate) fn set_leaf_positions(&mut self, leaves: Arc<dyn LeafPositions>) {
        self.leaves = Some(leaves);
    }

    /// Adds the attributes with the bounds of the stored columns.
    pub(crate) fn add_bounds(&self, own: &mut Attributes) {
        let fields = (0..self.all.len()).map(|column| StoredBounds {
            field: self.all[column].0,
            bound: self.bounds[column],
            asked: &self.asked[column],
            median: self.medians[column],
        });
        add_bounds(own, fields);
    }

    /// Writes the columns, and returns the ranges of the chunks of each column.
    pub(crate) fn write(&self, writer: &mut StoreWriter, path: &str) -> Result<Vec<Vec<[f64; 2]>>> {
        let path = path.trim_end_matches('/');
        let paths: Vec<String> = self
            .all
            .iter()
            .map(|(name, _)| format!("{path}/{name}"))
            .collect();
        let specs: Vec<ArraySpec> = (0..self.all.len())
            .map(|column| self.spec(column))
            .collect();
        let in_memory = self.columns.memory.iter();
        let arrays: Vec<NewArray<'_>> = in_memory
            .zip(paths.iter().zip(&specs))
            .map(|((_, column), (path, spec))| NewArray {
                path,
                spec,
                data: ArrayData::Fixed(column.bytes()),
            })
            .collect();
        if !arrays.is_empty() {
            writer.write_arrays(&arrays)?;
        }
        let in_memory = self.columns.memory.iter().enumerate();
        let mut ranges: Vec<Vec<[f64; 2]>> = in_memory
            .map(|(column, (_, values))| self.ranges(column, values.bytes()))
            .collect();
        let Some(streamed) = self.columns.streamed else {
            return Ok(ranges);
        };
        let first = ranges.len();
        ranges.resize(self.all.len(), Vec::new());
        let samples = self.samples(streamed)?;
        let arrays: Vec<WindowedArray<'_>> = (first..self.all.len())
            .map(|column| WindowedArray {
                path: &paths[column],
                spec: &specs[column],
                samples: samples
                    .iter()
                    .map(|sample| (sample.rows.clone(), sample.columns[column - first].bytes()))
                    .collect(),
            })
            .collect();
        let columns: Vec<usize> = (first..self.all.len()).collect();
        writer.write_windows(&arrays, |windows| {
            let rows: Vec<usize> = (0..columns.len())
                .map(|column| windows.window_rows(column))
                .collect();
            self.columns.for_each_column(
                &columns,
                |column| rows[column - first],
                &mut |column, row, values| {
                    ranges[column].extend(self.ranges(column, values));
                    windows.write(column - first, row, values)
                },
            )
        })?;
        // The buffers of the windows are larger than those of later reads.
        memory::release_cached();
        Ok(ranges)
    }

    /// Reads the rows by which the codecs of streamed columns are chosen.
    fn samples(&self, streamed: &StreamedColumns<'_>) -> Result<Vec<SampledRows>> {
        let dtypes = streamed.columns.iter().map(|(_, dtype)| dtype.clone());
        let dtypes: Vec<DataType> = dtypes.collect();
        let all: Vec<usize> = (0..dtypes.len()).collect();
        let read = |rows: Range<usize>| {
            let mut columns = Column::allocate(&dtypes, rows.len())?;
            (streamed.read)(&all, rows.clone(), &mut columns)?;
            Ok(SampledRows { rows, columns })
        };
        let rows = sample_rows(self.rows, self.chunk_rows as usize);
        rows.into_iter().map(read).collect()
    }

    fn spec(&self, column: usize) -> ArraySpec {
        ArraySpec::new(self.all[column].1.clone(), &[self.rows as u64])
            .dimensions(&[self.dimension])
            .chunks(&[self.chunk_rows])
            .profile(self.profile)
            .error_bound(Some(self.bounds[column]))
            .chunk_bounds(self.chunk_bounds[column].clone())
            .leaves(self.leaves.clone())
    }

    /// Minimum and maximum of each chunk of a column, of which `bytes` are some chunks.
    fn ranges(&self, column: usize, bytes: &[u8]) -> Vec<[f64; 2]> {
        let dtype = self.all[column].1;
        let chunk_rows = self.chunk_rows as usize;
        let chunk = chunk_rows * dtype.size().unwrap_or(1);
        let chunks = bytes.par_chunks(chunk.max(1));
        chunks
            .map(|bytes| {
                let range = numbers::range(dtype, bytes);
                bound::widened(self.bounds[column], range, chunk_rows)
            })
            .collect()
    }

    /// Writes `index/range`: minimum and maximum of each chunk of the last columns.
    pub(crate) fn write_ranges(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        ranges: &[Vec<[f64; 2]>],
    ) -> Result<()> {
        let flat = ranges.concat();
        let array = IndexArray {
            dtype: DataType::Float64,
            shape: &[ranges.len() as u64, self.chunks() as u64, 2],
            dimensions: &["column", "chunk", "bound"],
            bytes: bytemuck::cast_slice(&flat),
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
