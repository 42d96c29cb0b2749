//! Cells and tables: selections, grids, slices and projections.

use std::sync::Arc;

use ambar::Column;
use ambar::kinds::amr::{AmrTree, Weight, Window};
use ambar::kinds::particles::Particles;
use ambar::kinds::predicate::Predicate;
use ambar::kinds::region::Region;
use ambar::kinds::select::Selection;
use ambar::kinds::table::Table as Rows;
use ambar::parallel::with_threads;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;
use crate::memory::{numpy_dtype, to_numpy};

/// Columns as a dict of NumPy arrays.
fn to_dict<'py>(py: Python<'py>, columns: Vec<(String, Column)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in columns {
        dict.set_item(name, to_numpy(py, column)?)?;
    }
    Ok(dict)
}

/// A region from Python's tuple: `("box", lo, hi)`, `("sphere", center, radius)` or
/// `("shell", center, inner, outer)`, code length.
pub fn region(tuple: &Bound<'_, PyAny>) -> PyResult<Region> {
    let form: String = tuple.get_item(0)?.extract()?;
    let point = |index: usize| tuple.get_item(index)?.extract::<Vec<f64>>();
    let number = |index: usize| tuple.get_item(index)?.extract::<f64>();
    match form.as_str() {
        "box" => Region::cuboid(&point(1)?, &point(2)?),
        "sphere" => Region::sphere(&point(1)?, number(2)?),
        "shell" => Region::shell(&point(1)?, number(2)?, number(3)?),
        other => return Err(PyValueError::new_err(format!("no region {other:?}"))),
    }
    .or_raise()
}

fn selection(
    region: Option<&Bound<'_, PyAny>>,
    levels: Option<(u8, u8)>,
    condition: Option<&str>,
) -> PyResult<Selection> {
    Ok(Selection {
        region: region.map(self::region).transpose()?,
        levels,
        condition: condition.map(Predicate::parse).transpose().or_raise()?,
    })
}

/// The leaf cells of a tree, in a store or in memory.
#[pyclass(frozen, module = "ambar._core")]
pub struct Amr {
    inner: Arc<AmrTree>,
}

impl Amr {
    /// Binds a tree.
    pub fn new(tree: AmrTree) -> Self {
        Self {
            inner: Arc::new(tree),
        }
    }

    fn window(&self, level: u8, lo: &[f64], hi: &[f64]) -> PyResult<Window> {
        let region = Region::cuboid(lo, hi).or_raise()?;
        self.inner.window(level, Some(&region)).or_raise()
    }
}

/// A flat grid as an array of `shape`, with the window's first cell.
fn grid_and_origin<'py>(
    py: Python<'py>,
    grid: Column,
    window: &Window,
    axes: &[usize],
) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
    let cells = window.cells();
    let shape: Vec<u64> = axes.iter().map(|&axis| cells[axis]).collect();
    let array = to_numpy(py, grid)?.call_method1("reshape", (shape,))?;
    Ok((array, axes.iter().map(|&axis| window.lo[axis]).collect()))
}

#[pymethods]
impl Amr {
    #[getter]
    fn fields(&self) -> Vec<String> {
        self.inner.fields().to_vec()
    }

    #[getter]
    fn cells_count(&self) -> u64 {
        self.inner.rows()
    }

    #[getter]
    fn cells_per_level(&self) -> Vec<(u8, u64)> {
        self.inner.cells_per_level().to_vec()
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.inner.shape().ndim
    }

    #[getter]
    fn root(&self) -> [u64; 3] {
        self.inner.shape().root
    }

    #[getter]
    fn levels(&self) -> (u8, u8) {
        let counts = self.inner.cells_per_level();
        let first = counts.first().map_or(0, |(level, _)| *level);
        (first, counts.last().map_or(first, |(level, _)| *level))
    }

    #[getter]
    fn boxlen(&self) -> f64 {
        self.inner.shape().boxlen
    }

    #[getter]
    fn chunks(&self) -> u64 {
        self.inner.chunks()
    }

    fn dtype(&self, name: &str) -> PyResult<String> {
        Ok(numpy_dtype(&self.inner.dtype(name).or_raise()?))
    }

    #[pyo3(signature = (columns, region=None, levels=None, condition=None, threads=None))]
    fn cells<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        region: Option<&Bound<'py, PyAny>>,
        levels: Option<(u8, u8)>,
        condition: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let selection = selection(region, levels, condition)?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let cells = py
            .detach(|| with_threads(threads, || self.inner.cells(&names, &selection)))
            .or_raise()?;
        to_dict(py, cells)
    }

    #[pyo3(signature = (region=None, levels=None, condition=None))]
    fn chunks_touched(
        &self,
        py: Python<'_>,
        region: Option<&Bound<'_, PyAny>>,
        levels: Option<(u8, u8)>,
        condition: Option<&str>,
    ) -> PyResult<u64> {
        let selection = selection(region, levels, condition)?;
        py.detach(|| self.inner.chunks_touched(&selection))
            .or_raise()
    }

    #[pyo3(signature = (field, level, lo, hi, threads=None))]
    fn grid<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        level: u8,
        lo: Vec<f64>,
        hi: Vec<f64>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(level, &lo, &hi)?;
        let mut grids = py
            .detach(|| with_threads(threads, || self.inner.grid(&[field], &window)))
            .or_raise()?;
        let (_, grid) = grids
            .pop()
            .ok_or_else(|| PyValueError::new_err("no field was asked for"))?;
        let axes: Vec<usize> = (0..self.ndim()).collect();
        grid_and_origin(py, grid, &window, &axes)
    }

    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (field, axis, at, level, lo, hi, threads=None))]
    fn slice<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        axis: usize,
        at: f64,
        level: u8,
        lo: Vec<f64>,
        hi: Vec<f64>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(level, &lo, &hi)?;
        let image = py
            .detach(|| with_threads(threads, || self.inner.slice(field, axis, at, &window)))
            .or_raise()?;
        grid_and_origin(py, image, &window, &self.across(axis))
    }

    /// `weight`: `None` for the integral, "volume" for the mean by volume, else a field.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (field, axis, level, weight, lo, hi, threads=None))]
    fn project<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        axis: usize,
        level: u8,
        weight: Option<&str>,
        lo: Vec<f64>,
        hi: Vec<f64>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(level, &lo, &hi)?;
        let weight = match weight {
            None => Weight::Sum,
            Some("volume") => Weight::Volume,
            Some(field) => Weight::Field(field),
        };
        let image = py
            .detach(|| with_threads(threads, || self.inner.project(field, axis, weight, &window)))
            .or_raise()?;
        grid_and_origin(py, image, &window, &self.across(axis))
    }
}

impl Amr {
    fn across(&self, axis: usize) -> Vec<usize> {
        (0..self.ndim()).filter(|&other| other != axis).collect()
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

    #[pyo3(signature = (columns, region=None, condition=None, threads=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        region: Option<&Bound<'py, PyAny>>,
        condition: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let selection = selection(region, None, condition)?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let rows = py
            .detach(|| {
                with_threads(threads, || match &self.inner {
                    Kind::Particles(particles) => particles.read(&names, &selection),
                    Kind::Table(rows) => rows.read(&names, &selection),
                })
            })
            .or_raise()?;
        to_dict(py, rows)
    }
}
