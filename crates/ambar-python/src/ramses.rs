//! RAMSES outputs: reading and conversion to stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ambar::kinds::amr::AmrTree;
use ambar::kinds::particles::Particles;
use ambar::kinds::table::Table as Rows;
use ambar::{Column, Error};
use ambar_formats::ramses::{
    self, CellsRequest, ComponentKind, ConvertOptions, Output, OutputCells, ParticlesRequest, json,
};
use pyo3::prelude::*;

use crate::cells::Amr;
use crate::conversion::{ConversionReport, StoreArguments};
use crate::errors::OrRaise;
use crate::json::{Json, JsonObject};
use crate::kinds::Table;
use crate::progress::{Progress, check_cancelled};
use crate::region::Region;
use crate::threads::{Threads, detached};
use crate::writer::compression;

/// A RAMSES output.
#[pyclass(frozen, module = "ambar._core")]
pub struct Ramses {
    inner: Arc<Output>,
}

fn kinds(names: Option<Vec<String>>) -> PyResult<Option<Vec<ComponentKind>>> {
    let kind = |name: String| {
        ComponentKind::parse(&name).ok_or_else(|| {
            let known: Vec<_> = ComponentKind::ALL.iter().map(|kind| kind.name()).collect();
            Error::not_found(format!(
                "component {name:?} does not exist; available: {}",
                known.join(", ")
            ))
        })
    };
    names
        .map(|names| names.into_iter().map(kind).collect())
        .transpose()
        .or_raise()
}

#[pymethods]
impl Ramses {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self {
            inner: Arc::new(detached(py, None, || Output::open(&path))?),
        })
    }

    #[getter]
    fn info(&self) -> PyResult<JsonObject> {
        json::info(&self.inner).map(JsonObject).or_raise()
    }

    #[getter]
    fn components(&self) -> Json {
        Json(json::components(self.inner.components()))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (components=None, fields=None, region=None, levels=None, max_level=None, threads=None, progress=None))]
    fn amr(
        &self,
        py: Python<'_>,
        components: Option<Vec<String>>,
        fields: Option<Vec<String>>,
        region: Option<&Region>,
        levels: Option<(u8, u8)>,
        max_level: Option<u8>,
        threads: Option<Threads>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Amr> {
        let progress = Progress::new(progress);
        let report = |done, total| check_cancelled(progress.report(done, total));
        let request = CellsRequest {
            components: kinds(components)?.map(|kinds| {
                kinds
                    .into_iter()
                    .filter(|kind| kind.is_on_cells())
                    .collect()
            }),
            fields,
            region: region.map(|region| region.inner.clone()),
            levels,
            max_level,
            domain: false,
            progress: Some(&report),
        };
        let tree = progress.run(py, threads, || {
            let cells = self.inner.read_cells(&request)?;
            AmrTree::from_leaves(cells.leaves, cells.columns)
        })?;
        Ok(Amr::of_tree(tree))
    }

    #[pyo3(signature = (fields=None, region=None, threads=None, progress=None))]
    fn particles(
        &self,
        py: Python<'_>,
        fields: Option<Vec<String>>,
        region: Option<&Region>,
        threads: Option<Threads>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Table> {
        let progress = Progress::new(progress);
        let report = |done, total| check_cancelled(progress.report(done, total));
        let request = ParticlesRequest {
            fields,
            region: region.map(|region| region.inner.clone()),
            domain: false,
            progress: Some(&report),
        };
        let columns = progress.run(py, threads, || self.inner.read_particles(&request))?;
        let info = self.inner.info();
        let (ndim, boxlen) = (info.ndim, info.boxlen);
        let particles = Particles::from_columns(columns, ndim, boxlen).or_raise()?;
        Ok(Table::of_particles(particles))
    }

    /// The cells with these fields, which are read on first use.
    fn amr_on_demand(&self, fields: Vec<String>) -> PyResult<Amr> {
        let cells = OutputCells::new(Arc::clone(&self.inner), fields).or_raise()?;
        Ok(Amr::of_output(cells))
    }

    /// The particles with these columns, which are read on first use.
    fn particles_on_demand(&self, py: Python<'_>, fields: Vec<String>) -> PyResult<Table> {
        let output = Arc::clone(&self.inner);
        let particles = detached(py, None, || ramses::particles_on_demand(output, &fields))?;
        Ok(Table::of_particles(particles))
    }

    fn sinks(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        detached(py, None, || self.inner.read_sinks())?
            .map(table)
            .transpose()
    }

    fn clumps(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        detached(py, None, || self.inner.read_clumps())?
            .map(table)
            .transpose()
    }
}

fn table(columns: Vec<(String, Column)>) -> PyResult<Table> {
    Ok(Table::of_rows(Rows::from_columns(columns).or_raise()?))
}

/// The options of a conversion, except those of `conversion::StoreArguments`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RamsesOptions {
    components: Option<Vec<String>>,
    fields: Option<Vec<String>>,
    levels: Option<(u8, u8)>,
    max_level: Option<u8>,
    profile: String,
    error_bounds: Vec<(String, String)>,
}

/// Converts an output, or a folder of outputs, to a store. Returns a report.
#[pyfunction]
#[pyo3(signature = (path, target, *, options, store, threads, progress))]
pub fn convert_ramses(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    options: RamsesOptions,
    store: StoreArguments,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ConversionReport> {
    let start = Instant::now();
    let progress = Arc::new(Progress::new(progress));
    let options = ConvertOptions {
        components: kinds(options.components)?,
        fields: options.fields,
        levels: options.levels,
        max_level: options.max_level,
        compression: compression(&options.profile, options.error_bounds)?,
        store: store.options(&progress)?,
    };
    let report = progress.run(py, threads, || ramses::convert(&path, &target, &options))?;
    Ok(ConversionReport::new(report, start))
}
