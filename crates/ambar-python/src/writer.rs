//! A store open for writing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambar::array::{self, ArrayData, Strings};
use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability, is_url};
use ambar::kinds::amr::PatchAmr;
use ambar::kinds::amr::patches::PatchOptions;
use ambar::kinds::bound::{self, Compression};
use ambar::ranks;
use ambar::store::{CopiedNode, StoreWriter};
use ambar::{DataType, Error, Limits};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde_json::{Map, Value};

use crate::amrex::{self, Patches};
use crate::cells::Amr;
use crate::errors::OrRaise;
use crate::exclusive_writer::ExclusiveWriter;
use crate::json::JsonObject;
use crate::kinds::{Table, selection};
use crate::memory::{BorrowedBuffer, numpy_dtype};
use crate::progress::{Progress, check_cancelled};
use crate::region::Region;
use crate::regions::SharedCommit;
use crate::spec::{ArraySpec, DType, profile};
use crate::store::Store;
use crate::threads::{Threads, with_threads};

/// A compression from the name of a profile and error bounds of fields in user notation.
pub fn compression(profile: &str, bounds: Vec<(String, String)>) -> PyResult<Compression> {
    let parse = |(field, text): (String, String)| {
        // `*` is not the name of a field.
        let named = |error: Error| {
            if field == "*" {
                error
            } else {
                error.at_node(&field)
            }
        };
        let bound = bound::parse(&text).map_err(named).or_raise()?;
        Ok((field, bound))
    };
    Ok(Compression {
        profile: self::profile(profile)?,
        error_bounds: bounds.into_iter().map(parse).collect::<PyResult<_>>()?,
    })
}

/// The durability of this name.
pub fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "none" => Ok(Durability::None),
        other => Err(PyValueError::new_err(format!(
            "invalid durability: {other:?}; must be \"full\" or \"none\""
        ))),
    }
}

/// Values from Python.
enum InputValues {
    /// Values of fixed size, in pieces.
    Fixed(Vec<BorrowedBuffer>),
    Strings(Strings),
}

impl InputValues {
    fn new(data: &Bound<'_, PyAny>, dtype: &DataType) -> PyResult<Self> {
        if dtype.size().is_some() {
            return Ok(Self::Fixed(vec![BorrowedBuffer::new(data, false)?]));
        }
        let values: Vec<Vec<u8>> = data.extract()?;
        Ok(Self::Strings(values.iter().collect()))
    }

    /// Passes the values to `write` in one piece.
    fn lend<T>(&self, write: impl FnOnce(ArrayData<'_>) -> T) -> T {
        match self {
            Self::Strings(strings) => write(ArrayData::Strings(strings)),
            Self::Fixed(pieces) => {
                let all = pieces
                    .first()
                    .map(BorrowedBuffer::bytes)
                    .unwrap_or_default();
                write(ArrayData::Fixed(all))
            }
        }
    }

    /// Passes the values to `write` in pieces.
    fn lend_pieces<T>(&self, write: impl FnOnce(ArrayData<'_>) -> T) -> T {
        match self {
            Self::Strings(strings) => write(ArrayData::Strings(strings)),
            Self::Fixed(pieces) => {
                let pieces: Vec<&[u8]> = pieces.iter().map(BorrowedBuffer::bytes).collect();
                write(ArrayData::Pieces(&pieces))
            }
        }
    }
}

/// Checks that values of a shape have the data type of the array at `path`: bytes of another type would be read as other
/// values. An empty array of Python objects has the types `string` and `bytes`.
pub fn check_dtype(
    path: &str,
    expected: &DataType,
    found: &DataType,
    shape: &[u64],
) -> ambar::Result<()> {
    let are_empty_strings =
        shape.contains(&0) && expected.size().is_none() && found.size().is_none();
    if expected == found || are_empty_strings {
        return Ok(());
    }
    let message = format!("expected values of {expected}, found values of {found}; convert them");
    Err(Error::invalid(message).at_node(path))
}

fn attributes(writer: &StoreWriter, path: &str) -> ambar::Result<Map<String, Value>> {
    let missing = || Error::not_found(format!("node {path} does not exist; check the path"));
    writer.attributes(path)?.ok_or_else(missing)
}

/// A store open for writing. `commit` makes writes visible.
#[pyclass(frozen, module = "ambar._core")]
pub struct Writer {
    inner: ExclusiveWriter<StoreWriter>,
    profile: Profile,
    threads: Option<Threads>,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, mode, *, directory, durability, profile, threads, storage_options))]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        directory: bool,
        durability: &str,
        profile: &str,
        threads: Option<Threads>,
        storage_options: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let durability = self::durability(durability)?;
        let overwrite = mode == "overwrite";
        let options = CreateOptions {
            durability,
            overwrite,
            directory,
            ..CreateOptions::default()
        };
        let writer = py
            .detach(|| match mode {
                "create" | "overwrite" => create(&path, &storage_options, &options),
                "append" => append(&path, &storage_options, durability),
                other => Err(Error::invalid(format!(
                    "invalid mode: {other:?}; must be \"create\", \"overwrite\" or \"append\""
                ))),
            })
            .or_raise()?;
        let profile = self::profile(profile)?;
        Ok(Self {
            inner: ExclusiveWriter::new(writer),
            profile,
            threads,
        })
    }

    /// Raises an error in a forked child of the process that opened the writer.
    fn check(&self) -> PyResult<()> {
        self.inner.check()
    }

    fn group(&self, py: Python<'_>, path: &str, attrs: JsonObject) -> PyResult<()> {
        self.with(py, |writer| writer.group(path, attrs.0))
    }

    /// The attributes of a group or an array, including uncommitted changes.
    fn attributes(&self, py: Python<'_>, path: &str) -> PyResult<JsonObject> {
        let read = |writer: &mut StoreWriter| attributes(writer, path);
        self.inner.with(py, read).map(JsonObject)
    }

    fn set_attributes(&self, py: Python<'_>, path: &str, attrs: JsonObject) -> PyResult<()> {
        self.with(py, |writer| writer.set_attributes(path, attrs.0))
    }

    /// Removes attributes, then adds or replaces others.
    fn update_attributes(
        &self,
        py: Python<'_>,
        path: &str,
        attrs: JsonObject,
        removed: Vec<String>,
    ) -> PyResult<()> {
        self.with(py, |writer| {
            let mut found = attributes(writer, path)?;
            for name in removed {
                if found.shift_remove(&name).is_none() {
                    let known: Vec<&String> = found.keys().collect();
                    return Err(Error::unknown("attribute", &name, &known).at_node(path));
                }
            }
            found.extend(attrs.0);
            writer.set_attributes(path, found)
        })
    }

    /// Writes an array. `data` is a C-contiguous buffer of the values, or a list of `bytes` for text and byte
    /// strings.
    fn array(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        spec: &ArraySpec,
    ) -> PyResult<()> {
        let values = InputValues::new(data, spec.data_type())?;
        let spec = spec.with_default(self.profile);
        self.with(py, |writer| {
            values.lend(|data| writer.write_array(path, &spec, data))
        })
    }

    /// Creates an array of its fill value.
    fn declare(&self, py: Python<'_>, path: &str, spec: &ArraySpec) -> PyResult<()> {
        let spec = spec.with_default(self.profile);
        self.with(py, |writer| writer.declare(path, &spec))
    }

    /// Chooses the codecs of an array without values by a sample, a C-contiguous buffer.
    fn choose_codecs(
        &self,
        py: Python<'_>,
        path: &str,
        sample: &Bound<'_, PyAny>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let values = BorrowedBuffer::new(sample, false)?;
        self.with(py, |writer| {
            writer.choose_codecs(path, &shape, ArrayData::Fixed(values.bytes()))
        })
    }

    /// The name of the data type of an array, including uncommitted arrays.
    fn dtype(&self, py: Python<'_>, path: &str) -> PyResult<String> {
        let read = |writer: &mut StoreWriter| writer.type_and_shape(path);
        let (dtype, _) = self.inner.with(py, read)?;
        Ok(numpy_dtype(&dtype))
    }

    /// Makes an array longer along its first dimension.
    fn extend(&self, py: Python<'_>, path: &str, rows: u64) -> PyResult<()> {
        self.with(py, |writer| writer.extend(path, rows))
    }

    /// Begins a commit in which tasks of other processes write the arrays at `paths`.
    fn share(&self, py: Python<'_>, paths: Vec<String>, alignment: u64) -> PyResult<SharedCommit> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let begin =
            |writer: &mut StoreWriter| ranks::SharedCommit::begin(writer, &paths, alignment);
        self.inner.with(py, begin).map(SharedCommit::new)
    }

    /// Adopts what the tasks of a commit have written, by their receipts.
    fn adopt(
        &self,
        py: Python<'_>,
        shared: &SharedCommit,
        receipts: Vec<PyBackedBytes>,
    ) -> PyResult<()> {
        let receipts: Vec<&[u8]> = receipts.iter().map(AsRef::as_ref).collect();
        self.inner.with(py, |writer| {
            shared
                .inner
                .with_detached(|shared| shared.adopt(writer, &receipts))
        })
    }

    /// Writes a region of an array from `start` on; `data` is as in `array`.
    fn write_region(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: DType,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let dtype = dtype.0;
        let values = InputValues::new(data, &dtype)?;
        let region = array::Region { start, shape };
        self.with(py, |writer| {
            check_dtype(path, &writer.type_and_shape(path)?.0, &dtype, &region.shape)?;
            values.lend(|data| writer.write_region(path, &region, data))
        })
    }

    /// Appends rows to an array; `shape` is that of all rows. `data` is a list of consecutive C-contiguous buffers,
    /// or a list of `bytes` for text and byte strings.
    fn append(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: DType,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let dtype = dtype.0;
        let values = match dtype.size() {
            None => InputValues::new(data, &dtype)?,
            Some(_) => {
                let pieces = data.try_iter()?;
                let lent = pieces.map(|piece| BorrowedBuffer::new(&piece?, false));
                InputValues::Fixed(lent.collect::<PyResult<_>>()?)
            }
        };
        self.with(py, |writer| {
            let (expected, stored) = writer.type_and_shape(path)?;
            check_dtype(path, &expected, &dtype, &shape)?;
            let (Some((&rows, row)), Some((_, stored_row))) =
                (shape.split_first(), stored.split_first())
            else {
                let message = format!("rows of shape {shape:?} for an array of shape {stored:?}; both need rows");
                return Err(Error::invalid(message).at_node(path));
            };
            if row != stored_row {
                let message = format!(
                    "expected rows of shape {stored_row:?}, found rows of shape {row:?}; reshape them"
                );
                return Err(Error::invalid(message).at_node(path));
            }
            values.lend_pieces(|data| writer.append_rows(path, rows, data))
        })
    }

    /// Writes a group of kind `amr`, layout `patches`, whose cells Python reads.
    #[expect(clippy::too_many_arguments, reason = "arguments of the Python method")]
    #[pyo3(signature = (path, patches, *, fields, covered, error_bounds, progress))]
    fn patches(
        &self,
        py: Python<'_>,
        path: &str,
        patches: Py<Patches>,
        fields: Option<Vec<String>>,
        covered: &str,
        error_bounds: Vec<(String, String)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let progress = Arc::new(Progress::new(progress));
        let reported = Arc::clone(&progress);
        let options = PatchOptions {
            fields,
            covered: amrex::covered(covered)?,
            compression: Compression {
                profile: self.profile,
                ..compression("balanced", error_bounds)?
            },
            progress: Some(Arc::new(move |done, total| {
                check_cancelled(reported.report(done, total))
            })),
            ..PatchOptions::default()
        };
        progress.run(py, self.threads, || {
            self.inner.with_detached(|writer| {
                PatchAmr::write(writer, path, patches.get().source(), &options)
            })
        })
    }

    /// Copies nodes of another store with everything below them, given by their paths there and here. Encoded chunks do
    /// not change.
    #[pyo3(signature = (store, nodes, progress=None))]
    fn copy(
        &self,
        py: Python<'_>,
        store: &Store,
        nodes: Vec<(String, String)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let nodes: Vec<CopiedNode<'_>> = nodes
            .iter()
            .map(|(from, to)| CopiedNode { from, to })
            .collect();
        self.with_progress(py, progress, |writer, progress| {
            let mut report = |done, total| check_cancelled(progress.report(done, total));
            writer.copy_nodes(&store.inner, &nodes, &mut report)
        })
    }

    /// Writes selected cells of another store as a group of kind `amr`, encoded again. `attrs` are more attributes of
    /// the kind. Cells in patches cannot be selected.
    #[pyo3(signature = (path, cells, fields, attrs, *, profile, bounds, region=None, levels=None, progress=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    fn cells(
        &self,
        py: Python<'_>,
        path: &str,
        cells: &Amr,
        fields: Vec<String>,
        attrs: JsonObject,
        profile: &str,
        bounds: Vec<(String, String)>,
        region: Option<&Region>,
        levels: Option<(u8, u8)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let compression = compression(profile, bounds)?;
        let selection = selection(region, levels, None, None, None);
        let names: Vec<&str> = fields.iter().map(String::as_str).collect();
        self.with_progress(py, progress, |writer, progress| {
            observe(writer, progress, cells.bytes(&names)?);
            cells.write_selected(writer, path, &names, &selection, attrs.0, compression)?;
            writer.observe(None);
            Ok(())
        })
    }

    /// Writes selected rows of another store as a group of kind `particles` or `table`, encoded again. `attrs` are more
    /// attributes of the kind.
    #[pyo3(signature = (path, rows, columns, attrs, *, profile, bounds, region=None, progress=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    fn rows(
        &self,
        py: Python<'_>,
        path: &str,
        rows: &Table,
        columns: Vec<String>,
        attrs: JsonObject,
        profile: &str,
        bounds: Vec<(String, String)>,
        region: Option<&Region>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let compression = compression(profile, bounds)?;
        let selection = selection(region, None, None, None, None);
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.with_progress(py, progress, |writer, progress| {
            observe(writer, progress, rows.bytes(&names)?);
            rows.write_selected(writer, path, &names, &selection, attrs.0, &compression)?;
            writer.observe(None);
            Ok(())
        })
    }

    fn remove(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |writer| writer.remove(path))
    }

    #[pyo3(signature = (message=""))]
    fn commit(&self, py: Python<'_>, message: &str) -> PyResult<()> {
        self.with(py, |writer| {
            writer.set_message(message)?;
            writer.commit()
        })
    }

    /// Names a commit, or removes the name.
    fn tag(&self, py: Python<'_>, name: &str, number: Option<u64>) -> PyResult<()> {
        self.with(py, |writer| writer.tag(name, number))
    }

    /// Replaces all nodes by those of an earlier commit.
    fn restore(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        self.with(py, |writer| writer.restore(number))
    }

    /// Closes the file, or completes the upload. Uncommitted data are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.finish(py, StoreWriter::finish)
    }

    /// Closes the file, or aborts the upload. Uncommitted data are lost.
    fn abort(&self, py: Python<'_>) {
        self.inner.close(py);
    }
}

/// Creates a store at a path or URL.
fn create(
    location: &Path,
    storage: &BTreeMap<String, String>,
    options: &CreateOptions,
) -> ambar::Result<StoreWriter> {
    match location.to_str().filter(|text| is_url(text)) {
        Some(url) => StoreWriter::create_url(url, storage, options),
        None => StoreWriter::create(location, options),
    }
}

/// Opens a store at a path or URL to add to it.
fn append(
    location: &Path,
    storage: &BTreeMap<String, String>,
    durability: Durability,
) -> ambar::Result<StoreWriter> {
    match location.to_str().filter(|text| is_url(text)) {
        Some(url) => StoreWriter::append_url(url, storage, Limits::default()),
        None => StoreWriter::append(location, durability),
    }
}

/// Reports the bytes that `writer` encodes, of `total`.
fn observe(writer: &mut StoreWriter, progress: &Arc<Progress>, total: u64) {
    let (progress, done) = (Arc::clone(progress), AtomicU64::new(0));
    writer.observe(Some(Arc::new(move |bytes| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // The last chunk of each array is padded, so the sum can exceed the total.
        check_cancelled(progress.report(done.min(total), total))
    })));
}

impl Writer {
    /// Calls `act` with the writer. Ctrl-C cancels it.
    fn with_progress(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        act: impl FnOnce(&mut StoreWriter, &Arc<Progress>) -> ambar::Result<()> + Send,
    ) -> PyResult<()> {
        let progress = Arc::new(Progress::new(progress));
        progress.run(py, self.threads, || {
            self.inner.with_detached(|writer| act(writer, &progress))
        })
    }

    fn with(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut StoreWriter) -> ambar::Result<()> + Send,
    ) -> PyResult<()> {
        let threads = self.threads;
        self.inner
            .with(py, |writer| with_threads(threads, || act(writer)))
    }
}
