//! Cells of a hierarchy of any layout: selections, grids, slices and projections.

use std::sync::Arc;

use ambar::kinds::amr::patches::{IndexBox, PatchOptions, PatchSource};
use ambar::kinds::amr::{AmrTree, PatchAmr, Weight, Window};
use ambar::kinds::bound::Compression;
use ambar::kinds::region;
use ambar::kinds::select::Selection;
use ambar::metadata::Attributes;
use ambar::store::StoreWriter;
use ambar::{Column, DataType, Error};
use ambar_formats::ramses::OutputCells;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::computed::ComputedColumns;
use crate::condition::Condition;
use crate::errors::OrRaise;
use crate::kinds::{bounds_array, fill, lend_whole, selection};
use crate::memory::{numpy_dtype, to_numpy};
use crate::region::Region;
use crate::threads::{Threads, detached};

/// A hierarchy of any layout.
enum Cells {
    Tree(AmrTree),
    /// A tree of a RAMSES output, read on first use.
    Output(OutputCells),
    Patches(Arc<PatchAmr>),
}

/// Calls a method that all layouts have, and that returns a result of the library.
macro_rules! either {
    ($cells:expr, $inner:ident => $call:expr) => {
        match $cells {
            Cells::Tree($inner) => $call,
            Cells::Output(output) => output.tree().and_then(|$inner| $call),
            Cells::Patches($inner) => $call,
        }
    };
}

/// The leaf cells of a hierarchy, in a store or in memory.
#[pyclass(frozen, module = "ambar._core")]
pub struct Amr {
    inner: Arc<Cells>,
}

impl Amr {
    /// Binds a tree.
    pub fn of_tree(tree: AmrTree) -> Self {
        Self {
            inner: Arc::new(Cells::Tree(tree)),
        }
    }

    /// Binds the cells of an output.
    pub fn of_output(output: OutputCells) -> Self {
        Self {
            inner: Arc::new(Cells::Output(output)),
        }
    }

    /// Binds patches.
    pub fn of_patches(patches: PatchAmr) -> Self {
        Self {
            inner: Arc::new(Cells::Patches(Arc::new(patches))),
        }
    }

    /// The bytes of the values of fields on all cells.
    ///
    /// # Errors
    /// `NotFound` for a field that does not exist; `Corrupt`, `Io`.
    pub fn bytes(&self, fields: &[&str]) -> ambar::Result<u64> {
        let mut row = 0;
        let cells = &*self.inner;
        for field in fields {
            let dtype = either!(cells, cells => cells.dtype(field))?;
            row += dtype.size().unwrap_or(0) as u64;
        }
        Ok(row.saturating_mul(either!(cells, cells => Ok(cells.rows()))?))
    }

    /// Writes selected cells as a group of kind `amr`.
    ///
    /// # Errors
    /// As [`AmrTree::write_selected`] and [`PatchAmr::write`]; `Invalid` for a selection of cells in patches.
    pub fn write_selected(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        fields: &[&str],
        selection: &Selection,
        more: Attributes,
        compression: Compression,
    ) -> ambar::Result<()> {
        let write = |tree: &AmrTree, writer: &mut StoreWriter, more| {
            tree.write_selected(writer, path, fields, selection, more, &compression)
        };
        match &*self.inner {
            Cells::Tree(tree) => write(tree, writer, more),
            Cells::Output(output) => write(output.tree()?, writer, more),
            Cells::Patches(_) if !selection.is_all() => Err(Error::invalid(
                "expected cells of a tree for a region or levels, found cells in patches; omit both",
            )),
            Cells::Patches(patches) => {
                let options = PatchOptions {
                    fields: Some(fields.iter().map(|name| (*name).to_owned()).collect()),
                    compression,
                    more,
                    ..PatchOptions::default()
                };
                PatchAmr::write(writer, path, &**patches, &options)
            }
        }
    }

    fn window(&self, py: Python<'_>, level: u8, lo: &[f64], hi: &[f64]) -> PyResult<Window> {
        let region = region::Region::cuboid(lo, hi).or_raise()?;
        let cells = &*self.inner;
        detached(
            py,
            None,
            || either!(cells, cells => cells.window(level, Some(&region))),
        )
    }

    fn patches(&self) -> PyResult<&PatchAmr> {
        match &*self.inner {
            Cells::Patches(patches) => Ok(patches),
            _ => Err(PyValueError::new_err(
                "expected cells in patches, found a tree, which has no boxes",
            )),
        }
    }

    /// The cells as a tree, which is read if necessary; `None` for patches.
    fn tree(&self, py: Python<'_>) -> PyResult<Option<&AmrTree>> {
        match &*self.inner {
            Cells::Tree(tree) => Ok(Some(tree)),
            Cells::Output(output) => detached(py, None, || output.tree()).map(Some),
            Cells::Patches(_) => Ok(None),
        }
    }

    fn counts(&self, py: Python<'_>) -> PyResult<Vec<(u8, u64)>> {
        match &*self.inner {
            Cells::Patches(patches) => Ok(patches.cells_per_level()),
            _ => Ok(self
                .tree(py)?
                .map(|tree| tree.cells_per_level().to_vec())
                .unwrap_or_default()),
        }
    }

    fn names(&self) -> &[String] {
        match &*self.inner {
            Cells::Tree(tree) => tree.fields(),
            Cells::Output(output) => output.fields(),
            Cells::Patches(patches) => patches.fields(),
        }
    }

    fn across(&self, axis: usize) -> Vec<usize> {
        (0..self.ndim()).filter(|&other| other != axis).collect()
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
    /// `tree` or `patches`.
    #[getter]
    fn layout(&self) -> &'static str {
        match &*self.inner {
            Cells::Tree(_) | Cells::Output(_) => "tree",
            Cells::Patches(_) => "patches",
        }
    }

    #[getter]
    fn fields(&self) -> Vec<String> {
        self.names().to_vec()
    }

    #[getter]
    fn derived(&self) -> Vec<String> {
        match &*self.inner {
            Cells::Tree(tree) => tree.derived(),
            Cells::Output(output) => output.derived(),
            Cells::Patches(patches) => patches.derived(),
        }
    }

    #[getter]
    fn cells_count(&self, py: Python<'_>) -> PyResult<u64> {
        match &*self.inner {
            Cells::Patches(patches) => Ok(patches.rows()),
            _ => Ok(self.tree(py)?.map_or(0, AmrTree::rows)),
        }
    }

    #[getter]
    fn cells_per_level(&self, py: Python<'_>) -> PyResult<Vec<(u8, u64)>> {
        self.counts(py)
    }

    #[getter]
    fn ndim(&self) -> usize {
        match &*self.inner {
            Cells::Tree(tree) => tree.shape().ndim,
            Cells::Output(output) => output.ndim(),
            Cells::Patches(patches) => patches.hierarchy().ndim,
        }
    }

    #[getter]
    fn levels(&self, py: Python<'_>) -> PyResult<(u8, u8)> {
        let counts = self.counts(py)?;
        let first = counts.first().map_or(0, |(level, _)| *level);
        Ok((first, counts.last().map_or(first, |(level, _)| *level)))
    }

    /// Lower corner of the box.
    #[getter]
    fn lower(&self) -> Vec<f64> {
        match &*self.inner {
            Cells::Patches(patches) => {
                let hierarchy = patches.hierarchy();
                hierarchy.lower[..hierarchy.ndim].to_vec()
            }
            _ => vec![0.0; self.ndim()],
        }
    }

    /// Upper corner of the box.
    #[getter]
    fn upper(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        match &*self.inner {
            Cells::Patches(patches) => {
                let hierarchy = patches.hierarchy();
                Ok(hierarchy.upper[..hierarchy.ndim].to_vec())
            }
            _ => {
                let size = self.tree(py)?.map(|tree| tree.shape().size());
                Ok(size.unwrap_or_default()[..self.ndim()].to_vec())
            }
        }
    }

    /// Sides of a cell of `level`.
    fn cell_size(&self, py: Python<'_>, level: u8) -> PyResult<Vec<f64>> {
        match &*self.inner {
            Cells::Tree(_) | Cells::Output(_) => {
                let side = self.tree(py)?.map(|tree| tree.shape().cell_size(level));
                Ok(vec![side.unwrap_or_default(); self.ndim()])
            }
            Cells::Patches(patches) => {
                let hierarchy = patches.hierarchy();
                let found = hierarchy.levels.get(usize::from(level));
                let found = found.ok_or_else(|| no_level(level, hierarchy.levels.len()))?;
                Ok(found.cell_size[..hierarchy.ndim].to_vec())
            }
        }
    }

    /// The boxes of a level, as an array (boxes, 2, ndim): first cell and exclusive end.
    fn boxes<'py>(&self, py: Python<'py>, level: usize) -> PyResult<Bound<'py, PyAny>> {
        let hierarchy = self.patches()?.hierarchy();
        let ndim = hierarchy.ndim;
        let found = hierarchy.levels.get(level);
        let boxes = &found
            .ok_or_else(|| no_level(level, hierarchy.levels.len()))?
            .boxes;
        let corner = |b: &IndexBox| [b.lo, b.hi];
        let corners = boxes.iter().flat_map(corner);
        let points = points_to_numpy(py, corners, 2 * boxes.len(), ndim)?;
        points.call_method1("reshape", ((boxes.len(), 2, ndim),))
    }

    /// The first cell of each unit block of a level, as an array (blocks, ndim).
    fn origins<'py>(&self, py: Python<'py>, level: usize) -> PyResult<Bound<'py, PyAny>> {
        let patches = self.patches()?;
        let blocks = detached(py, None, || patches.blocks(level))?;
        let origins = blocks.origins();
        let ndim = patches.hierarchy().ndim;
        let points = points_to_numpy(py, origins.iter().copied(), origins.len(), ndim)?;
        points.call_method1("reshape", ((origins.len(), ndim),))
    }

    /// A field on all cells of a box of patches, including covered cells: 1-D, x fastest.
    fn read_box<'py>(
        &self,
        py: Python<'py>,
        level: usize,
        index: usize,
        field: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::amrex::read_box(py, self.patches()?, level, index, field)
    }

    /// Chunks of a field, on all levels.
    #[getter]
    fn chunks(&self, py: Python<'_>) -> PyResult<u64> {
        match &*self.inner {
            Cells::Patches(patches) => detached(py, None, || patches.chunks()),
            _ => Ok(self.tree(py)?.map_or(0, AmrTree::chunks)),
        }
    }

    fn dtype(&self, name: &str) -> PyResult<String> {
        let dtype = match &*self.inner {
            Cells::Tree(tree) => tree.dtype(name),
            Cells::Output(output) => output.dtype(name),
            Cells::Patches(patches) => patches.dtype(name),
        };
        Ok(numpy_dtype(&dtype.or_raise()?))
    }

    #[pyo3(signature = (region=None, levels=None, condition=None, computed=None))]
    fn chunks_touched(
        &self,
        py: Python<'_>,
        region: Option<&Region>,
        levels: Option<(u8, u8)>,
        condition: Option<&Condition>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<u64> {
        let selection = selection(region, levels, condition, None, computed);
        let cells = &*self.inner;
        detached(
            py,
            None,
            || either!(cells, cells => cells.chunks_touched(&selection)),
        )
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
        let cells = &*self.inner;
        let found = detached(
            py,
            None,
            || either!(cells, cells => cells.bounds(column, &computed)),
        )?;
        bounds_array(py, found)
    }

    /// Leaf cells of each chunk.
    #[getter]
    fn chunk_lengths(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let cells = &*self.inner;
        detached(py, None, || match cells {
            Cells::Tree(tree) => Ok(tree.chunk_lengths()),
            Cells::Output(output) => Ok(output.tree()?.chunk_lengths()),
            Cells::Patches(patches) => patches.chunk_lengths(),
        })
    }

    /// Selected cells with some of the fields, in memory. `levels` are for trees, `max_level` is for patches.
    #[pyo3(signature = (fields, region=None, levels=None, max_level=None, threads=None))]
    fn load(
        &self,
        py: Python<'_>,
        fields: Vec<String>,
        region: Option<&Region>,
        levels: Option<(u8, u8)>,
        max_level: Option<usize>,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let selection = selection(region, levels, None, None, None);
        let names: Vec<&str> = fields.iter().map(String::as_str).collect();
        match &*self.inner {
            Cells::Tree(tree) => {
                detached(py, threads, || tree.load(&names, &selection)).map(Self::of_tree)
            }
            Cells::Output(output) => {
                let load = || output.tree()?.load(&names, &selection);
                detached(py, threads, load).map(Self::of_tree)
            }
            Cells::Patches(patches) => {
                let source = Arc::clone(patches) as Arc<dyn PatchSource>;
                let region = selection.region.as_ref();
                let load = || PatchAmr::load_boxes(source, fields, region, max_level);
                detached(py, threads, load).map(Self::of_patches)
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (columns, region=None, levels=None, condition=None, threads=None, chunks=None, computed=None))]
    fn cells<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        region: Option<&Region>,
        levels: Option<(u8, u8)>,
        condition: Option<&Condition>,
        threads: Option<Threads>,
        chunks: Option<(u64, u64)>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let selection = selection(region, levels, condition, chunks, computed);
        let dict = PyDict::new(py);
        let rest = self.lend(&dict, columns, &selection, threads)?;
        let names: Vec<&str> = rest.iter().map(String::as_str).collect();
        let cells = &*self.inner;
        let cells = detached(py, threads, || match cells {
            Cells::Tree(tree) => tree.cells(&names, &selection),
            Cells::Output(output) => output.cells(&names, &selection),
            Cells::Patches(patches) => patches.cells(&names, &selection),
        })?;
        fill(&dict, cells)?;
        Ok(dict)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (field, level, lo, hi, preview=false, threads=None, computed=None))]
    fn grid<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        level: u8,
        lo: Vec<f64>,
        hi: Vec<f64>,
        preview: bool,
        threads: Option<Threads>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(py, level, &lo, &hi)?;
        let computed = ComputedColumns::of(computed);
        let cells = &*self.inner;
        let mut grids = detached(py, threads, || match cells {
            Cells::Patches(patches) if preview => patches.preview(&[field], &window, &computed),
            cells => either!(cells, cells => cells.grid(&[field], &window, &computed)),
        })?;
        let (_, grid) = grids
            .pop()
            .ok_or_else(|| PyValueError::new_err("expected the name of a field, found none"))?;
        let axes: Vec<usize> = (0..self.ndim()).collect();
        grid_and_origin(py, grid, &window, &axes)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (field, axis, at, level, lo, hi, threads=None, computed=None))]
    fn slice<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        axis: usize,
        at: f64,
        level: u8,
        lo: Vec<f64>,
        hi: Vec<f64>,
        threads: Option<Threads>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(py, level, &lo, &hi)?;
        let computed = ComputedColumns::of(computed);
        let cells = &*self.inner;
        let image = detached(
            py,
            threads,
            || either!(cells, cells => cells.slice(field, axis, at, &window, &computed)),
        )?;
        grid_and_origin(py, image, &window, &self.across(axis))
    }

    /// `weight`: `None` for the integral, "volume" for the volume-weighted mean, or the name of a field.
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (field, axis, level, weight, lo, hi, threads=None, computed=None))]
    fn project<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        axis: usize,
        level: u8,
        weight: Option<&str>,
        lo: Vec<f64>,
        hi: Vec<f64>,
        threads: Option<Threads>,
        computed: Option<&ComputedColumns>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<u64>)> {
        let window = self.window(py, level, &lo, &hi)?;
        let computed = ComputedColumns::of(computed);
        let weight = match weight {
            None => Weight::Sum,
            Some("volume") => Weight::Volume,
            Some(field) => Weight::Field(field),
        };
        let cells = &*self.inner;
        let image = detached(
            py,
            threads,
            || either!(cells, cells => cells.project(field, axis, weight, &window, &computed)),
        )?;
        grid_and_origin(py, image, &window, &self.across(axis))
    }
}

impl Amr {
    /// Adds those columns of a tree to `dict` that are completely in memory; returns the other names.
    fn lend(
        &self,
        dict: &Bound<'_, PyDict>,
        columns: Vec<String>,
        selection: &Selection,
        threads: Option<Threads>,
    ) -> PyResult<Vec<String>> {
        let tree = match &*self.inner {
            Cells::Tree(tree) => tree,
            Cells::Output(output) if selection.is_all() => {
                let names: Vec<&str> = columns.iter().map(String::as_str).collect();
                let needed = selection.computed.needed(&names);
                for name in &needed {
                    output.dtype(name).or_raise()?;
                }
                detached(dict.py(), threads, || {
                    let tree = output.tree()?;
                    tree.source().prepare(&needed)?;
                    Ok(tree)
                })?
            }
            _ => return Ok(columns),
        };
        let (mut rest, fields): (Vec<String>, Vec<String>) = columns
            .into_iter()
            .partition(|name| !tree.fields().contains(name));
        rest.extend(lend_whole(dict, &**tree.source(), fields, selection)?);
        Ok(rest)
    }
}

/// The first `ndim` coordinates of `count` points, consecutive, as an array of integers.
fn points_to_numpy(
    py: Python<'_>,
    points: impl Iterator<Item = [i64; 3]>,
    count: usize,
    ndim: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let columns = Column::allocate(&[DataType::Int64], count * ndim);
    let mut column = columns
        .or_raise()?
        .pop()
        .ok_or_else(|| PyValueError::new_err("the column of points was not allocated"))?;
    let numbers = points.flat_map(|point| point.into_iter().take(ndim));
    for (to, number) in column.values_mut::<i64>().iter_mut().zip(numbers) {
        *to = number;
    }
    to_numpy(py, column)
}

fn no_level(level: impl std::fmt::Display, levels: usize) -> PyErr {
    PyValueError::new_err(format!(
        "level {level} does not exist; expected a number below {levels}"
    ))
}
