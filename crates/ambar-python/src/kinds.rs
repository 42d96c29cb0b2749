//! Selections, and the rows of tables.

use ambar::kinds::bound::Compression;
use ambar::kinds::particles::Particles;
use ambar::kinds::select::Selection;
use ambar::kinds::source::ColumnSource;
use ambar::kinds::table::Table as Rows;
use ambar::metadata::Attributes;
use ambar::store::StoreWriter;
use ambar::{Column, DataType};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::computed::ComputedColumns;
use crate::condition::Condition;
use crate::errors::OrRaise;
use crate::memory::{numpy_dtype, to_numpy, to_numpy_shared};
use crate::region::Region;
use crate::threads::{Threads, detached};

/// Adds those columns of `names` to `dict` that are completely in memory and completely selected, without
/// a copy and read-only. Returns the other names.
pub fn lend_whole(
    dict: &Bound<'_, PyDict>,
    source: &dyn ColumnSource,
    names: Vec<String>,
    selection: &Selection,
) -> PyResult<Vec<String>> {
    let all = selection.is_all();
    let mut rest = Vec::new();
    for name in names {
        match Some(&name)
            .filter(|_| all)
            .and_then(|name| source.whole(name))
        {
            Some(column) => dict.set_item(name, to_numpy_shared(dict.py(), column)?)?,
            None => rest.push(name),
        }
    }
    Ok(rest)
}

/// Adds columns to `dict` as NumPy arrays that own their memory.
pub fn fill(dict: &Bound<'_, PyDict>, columns: Vec<(String, Column)>) -> PyResult<()> {
    for (name, column) in columns {
        dict.set_item(name, to_numpy(dict.py(), column)?)?;
    }
    Ok(())
}

/// Bounds of the values in each chunk as float64 (chunks, 2).
pub fn bounds_array(
    py: Python<'_>,
    bounds: Option<Vec<[f64; 2]>>,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(bounds) = bounds else {
        return Ok(None);
    };
    let mut column = Column::allocate(&[DataType::Float64], 2 * bounds.len())
        .or_raise()?
        .remove(0);
    column
        .values_mut::<f64>()
        .copy_from_slice(bounds.as_flattened());
    let array = to_numpy(py, column)?.call_method1("reshape", ((bounds.len(), 2),))?;
    Ok(Some(array))
}

/// A selection from a region, levels and a condition in Python.
pub fn selection(
    region: Option<&Region>,
    levels: Option<(u8, u8)>,
    condition: Option<&Condition>,
    chunks: Option<(u64, u64)>,
    computed: Option<&ComputedColumns>,
) -> Selection {
    Selection {
        computed: ComputedColumns::of(computed),
        chunks: chunks.map(|(start, end)| start..end),
        region: region.map(|region| region.inner.clone()),
        levels,
        condition: condition.map(|condition| condition.inner.clone()),
    }
}

/// Rows of particles, or of a table without positions.
enum Kind {
    Particles(Particles),
    Table(Rows),
}

/// Columns of equal length, in a store or in memory.
#[pyclass(frozen, module = "ambar._core")]
pub struct Table {
    inner: Kind,
}

impl Table {
    /// Binds particles.
    pub fn of_particles(particles: Particles) -> Self {
        Self {
            inner: Kind::Particles(particles),
        }
    }

    /// Binds a table.
    pub fn of_rows(rows: Rows) -> Self {
        Self {
            inner: Kind::Table(rows),
        }
    }

    /// The bytes of the values of columns.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist.
    pub fn bytes(&self, columns: &[&str]) -> ambar::Result<u64> {
        let mut row = 0;
        for name in columns {
            let dtype = self.rows_of().dtype(name)?;
            row += dtype.size().unwrap_or(0) as u64;
        }
        Ok(row.saturating_mul(self.rows_of().rows()))
    }

    /// Writes selected rows as a group of kind `particles` or `table`.
    ///
    /// # Errors
    /// As [`Particles::write_selected`] and [`Rows::write_selected`].
    pub fn write_selected(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        columns: &[&str],
        selection: &Selection,
        more: Attributes,
        compression: &Compression,
    ) -> ambar::Result<()> {
        match &self.inner {
            Kind::Particles(particles) => {
                particles.write_selected(writer, path, columns, selection, more, compression)
            }
            Kind::Table(rows) => {
                rows.write_selected(writer, path, columns, selection, more, compression)
            }
        }
    }

    fn rows_of(&self) -> &Rows {
        match &self.inner {
            Kind::Particles(particles) => particles.table(),
            Kind::Table(rows) => rows,
        }
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn fields(&self) -> Vec<String> {
        self.rows_of().columns().to_vec()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.rows_of().rows()
    }

    fn dtype(&self, name: &str) -> PyResult<String> {
        Ok(numpy_dtype(&self.rows_of().dtype(name).or_raise()?))
    }

    /// Bounds of a column in each chunk.
    #[pyo3(signature = (column, computed=None))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        column: &str,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let computed = ComputedColumns::of(computed);
        let found = detached(py, None, || self.rows_of().bounds(column, &computed))?;
        bounds_array(py, found)
    }

    /// The number of rows of each chunk.
    #[getter]
    fn chunk_lengths(&self) -> Vec<u64> {
        self.rows_of().chunk_lengths()
    }

    /// Some columns of the rows in a region, in memory.
    #[pyo3(signature = (columns, region=None, threads=None))]
    fn load(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        region: Option<&Region>,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let selection = selection(region, None, None, None, None);
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let rows = detached(py, threads, || self.rows_of().load(&names, &selection))?;
        Ok(Self::of_rows(rows))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (columns, region=None, condition=None, threads=None, chunks=None, computed=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        region: Option<&Region>,
        condition: Option<&Condition>,
        threads: Option<Threads>,
        chunks: Option<(u64, u64)>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let selection = selection(region, None, condition, chunks, computed);
        let dict = PyDict::new(py);
        if selection.is_all() {
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let needed = selection.computed.needed(&names);
            detached(py, threads, || self.rows_of().source().prepare(&needed))?;
        }
        let rest = lend_whole(&dict, &**self.rows_of().source(), columns, &selection)?;
        let names: Vec<&str> = rest.iter().map(String::as_str).collect();
        let rows = detached(py, threads, || match &self.inner {
            Kind::Particles(particles) => particles.read(&names, &selection),
            Kind::Table(rows) => rows.read(&names, &selection),
        })?;
        fill(&dict, rows)?;
        Ok(dict)
    }
}
