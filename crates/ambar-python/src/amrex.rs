//! AMReX plotfiles: reading, conversion to stores and export; patches whose values Python reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ambar::kinds::amr::PatchAmr;
use ambar::kinds::amr::patches::{
    Covered, IndexBox, PatchHierarchy, PatchLevel, PatchSource, copy_cells,
};
use ambar::kinds::particles::Particles;
use ambar::{Column, DataType, Error};
use ambar_formats::amrex::{
    self, ConvertOptions, FileUsage, Input, Plotfile, RunInfo, SourceInfo, json,
};
use ambar_formats::series::{StoreOptions, name_of};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cells::Amr;
use crate::conversion::{ConversionReport, StoreArguments};
use crate::errors::OrRaise;
use crate::json::{Json, JsonObject};
use crate::kinds::Table;
use crate::memory::{BorrowedBuffer, to_numpy};
use crate::progress::{Progress, check_cancelled};
use crate::threads::{Threads, detached};
use crate::writer::compression;

/// An AMReX plotfile.
#[pyclass(frozen, module = "ambar._core")]
pub struct Amrex {
    inner: Arc<Plotfile>,
}

#[pymethods]
impl Amrex {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let inner = detached(py, None, || Plotfile::open(&path))?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The run information.
    #[getter]
    fn info(&self) -> JsonObject {
        JsonObject(json::info(&self.inner))
    }

    /// The species.
    #[getter]
    fn species(&self) -> Json {
        Json(json::components(self.inner.species()))
    }

    /// For each level its boxes (lower and exclusive upper corner), the number of the file that
    /// holds each box, and the refinement ratio to the next level.
    #[getter]
    fn levels(&self) -> Json {
        let hierarchy = self.inner.hierarchy();
        let ndim = hierarchy.ndim;
        let levels = hierarchy.levels.iter().enumerate().map(|(number, level)| {
            let boxes = level.boxes.iter().map(|b| [&b.lo[..ndim], &b.hi[..ndim]]);
            let files = (0..level.boxes.len()).map(|index| self.inner.file_of(number, index));
            serde_json::json!({
                "boxes": boxes.collect::<Vec<_>>(),
                "files": files.collect::<Vec<_>>(),
                "ratio": &level.ratio[..ndim],
            })
        });
        Json(levels.collect())
    }

    /// A field on all cells of a box, including covered cells: 1-D, x fastest.
    fn read_box<'py>(
        &self,
        py: Python<'py>,
        level: usize,
        index: usize,
        field: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        read_box(py, &*self.inner, level, index, field)
    }

    #[pyo3(signature = (fields=None))]
    fn amr(&self, py: Python<'_>, fields: Option<Vec<String>>) -> PyResult<Amr> {
        amr(py, Arc::clone(&self.inner) as Arc<dyn PatchSource>, fields)
    }

    #[pyo3(signature = (species, threads=None))]
    fn particles(
        &self,
        py: Python<'_>,
        species: &str,
        threads: Option<Threads>,
    ) -> PyResult<Table> {
        let columns = detached(py, threads, || self.inner.read_particles(species))?;
        let hierarchy = self.inner.hierarchy();
        let side = hierarchy.upper[0] - hierarchy.lower[0];
        let particles = Particles::from_columns(columns, hierarchy.ndim, side).or_raise()?;
        Ok(Table::of_particles(particles))
    }
}

fn amr(py: Python<'_>, source: Arc<dyn PatchSource>, fields: Option<Vec<String>>) -> PyResult<Amr> {
    let fields = fields.unwrap_or_else(|| source.fields().to_vec());
    let patches = detached(py, None, || PatchAmr::from_fields(source, fields))?;
    Ok(Amr::of_patches(patches))
}

/// Description of patches whose values Python reads. The members after `levels` are those of plotfiles.
#[derive(Deserialize)]
struct PatchDescription {
    ndim: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
    fields: Vec<String>,
    /// `float32` or `float64`, of each field.
    dtypes: Vec<String>,
    levels: Vec<LevelDescription>,
    /// The file, if the patches are those of a file.
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    info: Map<String, Value>,
    #[serde(default)]
    run: RunInfo,
}

/// Corners have `ndim` indices; upper ones are exclusive.
#[derive(Deserialize)]
struct LevelDescription {
    domain: [Vec<i64>; 2],
    boxes: Vec<[Vec<i64>; 2]>,
    cell_size: Vec<f64>,
    ratio: Vec<i64>,
}

fn point<T: Copy>(values: &[T], rest: T) -> [T; 3] {
    std::array::from_fn(|d| values.get(d).copied().unwrap_or(rest))
}

fn index_box([lo, hi]: &[Vec<i64>; 2]) -> IndexBox {
    IndexBox {
        lo: point(lo, 0),
        hi: point(hi, 1),
    }
}

/// A field on all cells of a box, including covered cells: 1-D, x fastest.
pub fn read_box<'py>(
    py: Python<'py>,
    source: &dyn PatchSource,
    level: usize,
    index: usize,
    field: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let read = || {
        let boxes = source.hierarchy().levels.get(level);
        let frame = boxes.and_then(|level| level.boxes.get(index));
        let missing = || Error::not_found(format!("box {index} of level {level} does not exist"));
        let cells = frame.ok_or_else(missing)?.cells();
        let mut column = Column::allocate(&[source.dtype(field)?], cells)?;
        let mut column = column
            .pop()
            .ok_or_else(|| Error::limit("the column of a box was not allocated"))?;
        source.read_box(level, index, field, column.bytes_mut())?;
        Ok(column)
    };
    to_numpy(py, detached(py, None, read)?)
}

/// Patches whose values a Python callable reads, such as those of an HDF5 plotfile.
struct PythonPatches {
    hierarchy: PatchHierarchy,
    fields: Vec<String>,
    /// Names of the fields in the file.
    original: Vec<String>,
    dtypes: Vec<DataType>,
    /// `read(level, box, field, start, stop)` returns a contiguous array of the values of consecutive cells of the
    /// box, x fastest. Its exceptions are damage, except those of `errors::is_raised_itself`.
    read: Py<PyAny>,
}

impl PatchSource for PythonPatches {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }

    fn fields(&self) -> &[String] {
        &self.fields
    }

    fn dtype(&self, field: &str) -> ambar::Result<DataType> {
        let number = self.fields.iter().position(|name| name == field);
        let dtype = number.and_then(|number| self.dtypes.get(number)).cloned();
        dtype.ok_or_else(|| Error::unknown("field", field, &self.fields))
    }

    fn read_box(
        &self,
        level: usize,
        index: usize,
        field: &str,
        out: &mut [u8],
    ) -> ambar::Result<()> {
        let levels = &self.hierarchy.levels;
        let frame = levels
            .get(level)
            .and_then(|level| level.boxes.get(index))
            .ok_or_else(|| {
                Error::not_found(format!("box {index} of level {level} does not exist"))
            })?;
        self.read_part(level, index, field, frame, out)
    }

    fn read_part(
        &self,
        level: usize,
        index: usize,
        field: &str,
        part: &IndexBox,
        out: &mut [u8],
    ) -> ambar::Result<()> {
        let frame = &self.hierarchy.levels[level].boxes[index];
        // Whole planes are consecutive.
        let axis = self.hierarchy.ndim - 1;
        let plane = frame.cells() / frame.shape()[axis];
        let mut slab = *frame;
        (slab.lo[axis], slab.hi[axis]) = (part.lo[axis], part.hi[axis]);
        let start = (slab.lo[axis] - frame.lo[axis]) as usize * plane;
        let stop = start + slab.cells();
        let size = self.dtype(field)?.size().unwrap_or(8);
        let number = self.fields.iter().position(|name| name == field);
        let original = number.and_then(|number| self.original.get(number));
        let values = Python::attach(|py| {
            let values = self
                .read
                .bind(py)
                .call1((level, index, original, start, stop))?;
            let lent = BorrowedBuffer::new(&values, false)?;
            if lent.bytes().len() == slab.cells() * size {
                copy_cells(part, size, (&slab, lent.bytes()), (part, out));
            }
            PyResult::Ok(lent.bytes().len())
        });
        match values {
            Ok(found) if found == slab.cells() * size => Ok(()),
            Ok(found) => Err(Error::corrupt(format!(
                "box {index} of level {level}: expected {} bytes of {field:?}, found {found}; return all \
                 cells in the declared type",
                slab.cells() * size
            ))),
            Err(error) => Err(Error::corrupt(error.to_string()).caused_by(error)),
        }
    }
}

/// A hierarchy of patches whose values Python reads.
#[pyclass(frozen, module = "ambar._core")]
pub struct Patches {
    inner: Arc<PythonPatches>,
    info: SourceInfo,
}

impl Patches {
    /// The boxes and their values.
    pub fn source(&self) -> &dyn PatchSource {
        &*self.inner
    }

    /// The input of a conversion.
    fn input(&self) -> Input {
        let patches = Arc::clone(&self.inner) as Arc<dyn PatchSource>;
        Input::Patches(patches, Box::new(self.info.clone()))
    }
}

#[pymethods]
impl Patches {
    /// `description` has the members of `PatchDescription`.
    #[new]
    fn new(description: Json, read: Py<PyAny>) -> PyResult<Self> {
        let found: PatchDescription = serde_json::from_value(description.0)
            .map_err(|error| Error::invalid(format!("invalid description of patches: {error}")))
            .or_raise()?;
        let level = |level: &LevelDescription| PatchLevel {
            domain: index_box(&level.domain),
            boxes: level.boxes.iter().map(index_box).collect(),
            cell_size: point(&level.cell_size, 0.0),
            ratio: point(&level.ratio, 1),
        };
        if found.dtypes.len() != found.fields.len() {
            return Err(Error::invalid(format!(
                "invalid description of patches: expected a dtype of each of {} fields, found {}",
                found.fields.len(),
                found.dtypes.len()
            )))
            .or_raise();
        }
        let dtype = |dtype: &String| match dtype.as_str() {
            "float32" => Ok(DataType::Float32),
            "float64" => Ok(DataType::Float64),
            other => Err(Error::invalid(format!(
                "invalid description of patches: expected the dtypes \"float32\" or \"float64\", \
                 found {other:?}; convert the values"
            ))),
        };
        let dtypes: ambar::Result<Vec<_>> = found.dtypes.iter().map(dtype).collect();
        let dtypes = dtypes.or_raise()?;
        let hierarchy = PatchHierarchy {
            ndim: found.ndim,
            lower: point(&found.lower, 0.0),
            upper: point(&found.upper, 0.0),
            levels: found.levels.iter().map(level).collect(),
        };
        let fields = amrex::field_names(&found.fields, found.ndim);
        let run = RunInfo {
            renamed: amrex::renamed(&fields, &found.fields),
            ..found.run
        };
        let usage = found.path.as_deref().map(FileUsage::of).transpose();
        Ok(Self {
            inner: Arc::new(PythonPatches {
                hierarchy,
                fields,
                original: found.fields,
                dtypes,
                read,
            }),
            info: SourceInfo {
                name: found.path.as_deref().map(name_of).unwrap_or_default(),
                info: found.info,
                run,
                usage: usage.or_raise()?.unwrap_or_default(),
            },
        })
    }

    /// The names under which the fields are stored.
    #[getter]
    fn fields(&self) -> Vec<String> {
        self.inner.fields.clone()
    }

    #[pyo3(signature = (fields=None))]
    fn amr(&self, py: Python<'_>, fields: Option<Vec<String>>) -> PyResult<Amr> {
        amr(py, Arc::clone(&self.inner) as Arc<dyn PatchSource>, fields)
    }
}

/// The options of a conversion, except those of `conversion::StoreArguments`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AmrexOptions {
    components: Option<Vec<String>>,
    fields: Option<Vec<String>>,
    covered: String,
    profile: String,
    error_bounds: Vec<(String, String)>,
}

impl AmrexOptions {
    fn with(self, store: StoreOptions) -> PyResult<ConvertOptions> {
        Ok(ConvertOptions {
            components: self.components,
            fields: self.fields,
            covered: covered(&self.covered)?,
            compression: compression(&self.profile, self.error_bounds)?,
            store,
        })
    }
}

/// Opens a file with a Python callable that returns `Patches`.
fn open_file(open: &Py<PyAny>, path: &Path) -> ambar::Result<Input> {
    Python::attach(|py| {
        let opened = open.bind(py).call1((path,))?;
        Ok(opened.cast::<Patches>()?.get().input())
    })
    .map_err(|error: PyErr| Error::corrupt(Python::attach(|py| error.value(py).to_string())))
}

/// Converts a plotfile, or several of one run to a series, to a store. `open_file` returns `Patches` of a
/// path that is a file. Returns a report.
#[pyfunction]
#[pyo3(signature = (paths, target, *, is_series, open_file, options, store, threads, progress))]
#[expect(
    clippy::too_many_arguments,
    reason = "arguments of the Python function"
)]
pub fn convert_amrex(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    target: PathBuf,
    is_series: bool,
    open_file: Py<PyAny>,
    options: AmrexOptions,
    store: StoreArguments,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ConversionReport> {
    let start = Instant::now();
    let progress = Arc::new(Progress::new(progress));
    let options = options.with(store.options(&progress)?)?;
    let open = |path: &Path| self::open_file(&open_file, path);
    let report = progress.run(py, threads, || match (is_series, paths.as_slice()) {
        (false, [path]) => {
            let input = match path.is_dir() {
                true => Input::open(path)?,
                false => open(path)?,
            };
            amrex::convert(&input, &target, &options)
        }
        _ => amrex::convert_run(&paths, &open, &target, &options),
    })?;
    Ok(ConversionReport::new(report, start))
}

/// How covered cells are stored, by its name.
pub fn covered(name: &str) -> PyResult<Covered> {
    match name {
        "auto" => Ok(Covered::Auto),
        "drop" => Ok(Covered::Drop),
        "keep" => Ok(Covered::Keep),
        other => Err(Error::invalid(format!(
            "invalid covered={other:?}; must be \"auto\", \"drop\" or \"keep\""
        )))
        .or_raise(),
    }
}

/// Writes the snapshot at `path` of a store as a native plotfile.
#[pyfunction]
#[pyo3(signature = (store, path, target, threads, progress))]
pub fn export_amrex(
    py: Python<'_>,
    store: &crate::store::Store,
    path: &str,
    target: PathBuf,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let progress = Progress::new(progress);
    let report = |done, total| check_cancelled(progress.report(done, total));
    progress.run(py, threads, || {
        amrex::export(&store.inner, path, &target, Some(&report))
    })
}

/// True if a folder is a plotfile.
#[pyfunction]
pub fn is_plotfile(path: PathBuf) -> bool {
    amrex::is_plotfile(&path)
}
