//! Stores and arrays: opening, reading, verifying.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ambar::array::{Indices, Slice};
use ambar::container::{Owner, is_url};
use ambar::kinds::amr::{AmrTree, PatchAmr};
use ambar::kinds::attributes::{kind, of_kind};
use ambar::kinds::particles::Particles;
use ambar::kinds::table::Table as Rows;
use ambar::parallel;
use ambar::store::{Change, NodeKind};
use ambar::{Column, DataType, Error, Limits};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bound::BoundOutput;
use crate::cells::Amr;
use crate::errors::OrRaise;
use crate::json::JsonObject;
use crate::kinds::Table;
use crate::memory::{BorrowedBuffer, StableBytes, numpy_dtype, to_numpy};
use crate::progress::Progress;
use crate::threads::{Threads, detached, with_threads};

/// One commit of a store, open for reading.
#[pyclass(frozen, module = "ambar._core")]
pub struct Store {
    /// The store of the library.
    pub inner: ambar::store::Store,
}

#[pymethods]
impl Store {
    /// Opens the store at a path or URL. Options are for URLs only.
    #[new]
    #[pyo3(signature = (location, storage_options=None))]
    fn new(
        py: Python<'_>,
        location: PathBuf,
        storage_options: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let options = storage_options.unwrap_or_default();
        let open = || {
            match location.to_str().filter(|text| is_url(text)) {
            Some(url) => ambar::store::Store::open_url(url, &options, Limits::default()),
            None if options.is_empty() => ambar::store::Store::open(&location),
            None => Err(Error::invalid(
                "expected a URL (s3://..., https://...) with storage options, found a path; omit them",
            )
            .in_file(location.display())),
        }
        };
        let inner = py.detach(open).or_raise()?;
        Ok(Self { inner })
    }

    /// Opens a store in memory; messages call it `location`. The memory of a `bytes` object is shared, that of
    /// other objects is copied.
    #[staticmethod]
    fn of_bytes(py: Python<'_>, data: &Bound<'_, PyAny>, location: &str) -> PyResult<Self> {
        let bytes: Owner = Arc::new(StableBytes::new(data)?);
        let open = || ambar::store::Store::open_bytes(bytes, location, Limits::default());
        let inner = py.detach(open).or_raise()?;
        Ok(Self { inner })
    }

    /// Reads the bytes of small arrays in one request, for following reads.
    fn read_ahead(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<ReadAhead> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let ahead = py.detach(|| self.inner.read_ahead(&paths)).or_raise()?;
        Ok(ReadAhead {
            bytes: Mutex::new(Some(ahead)),
        })
    }

    #[getter]
    fn location(&self) -> &str {
        self.inner.location()
    }

    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        let nodes = py.detach(|| self.inner.nodes()).or_raise()?;
        let mut named = vec![("/".to_owned(), "group")];
        named.extend(
            nodes
                .into_iter()
                .map(|(path, kind)| (path, kind_name(kind))),
        );
        Ok(named)
    }

    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Vec<(String, &'static str)>> {
        let children = py.detach(|| self.inner.children(path)).or_raise()?;
        Ok(children
            .into_iter()
            .map(|(name, kind)| (name, kind_name(kind)))
            .collect())
    }

    fn kind(&self, path: &str) -> PyResult<Option<&'static str>> {
        Ok(self.inner.kind(path).or_raise()?.map(kind_name))
    }

    fn attributes(&self, path: &str) -> PyResult<JsonObject> {
        let attributes = match self.inner.kind(path).or_raise()? {
            Some(NodeKind::Array) => self.inner.array(path).or_raise()?.attributes().clone(),
            _ => self.inner.group(path).or_raise()?.attributes().clone(),
        };
        Ok(JsonObject(attributes))
    }

    /// The metadata document of an array, its `zarr.json`.
    fn document(&self, path: &str) -> PyResult<JsonObject> {
        let text = self.inner.document(path).or_raise()?;
        serde_json::from_str(&text)
            .map(JsonObject)
            .map_err(|error| Error::corrupt(error.to_string()).at_node(path))
            .or_raise()
    }

    fn array(&self, path: &str) -> PyResult<Array> {
        Ok(Array {
            inner: self.inner.array(path).or_raise()?,
        })
    }

    fn amr(&self, py: Python<'_>, path: &str) -> PyResult<Amr> {
        let attributes = of_kind(&self.inner, path, &["amr"]).or_raise()?;
        if attributes.get("layout").and_then(serde_json::Value::as_str) == Some("patches") {
            let patches = detached(py, None, || PatchAmr::open(&self.inner, path))?;
            return Ok(Amr::of_patches(patches));
        }
        let tree = detached(py, None, || AmrTree::open(&self.inner, path))?;
        Ok(Amr::of_tree(tree))
    }

    /// Particles, or rows without positions.
    fn table(&self, py: Python<'_>, path: &str) -> PyResult<Table> {
        detached(py, None, || match kind(&self.inner, path)?.as_deref() {
            Some("particles") => Ok(Table::of_particles(Particles::open(&self.inner, path)?)),
            _ => Ok(Table::of_rows(Rows::open(&self.inner, path)?)),
        })
    }

    /// Number and checksum of the commit; `None` for stores of other programs.
    #[getter]
    fn commit_id(&self, py: Python<'_>) -> Option<(u64, u32)> {
        let id = py.detach(|| self.inner.commit_id())?;
        Some((id.number, id.checksum))
    }

    /// This commit and all commits before, the newest first.
    fn commits(&self, py: Python<'_>) -> PyResult<Vec<CommitInfo>> {
        let commits = py.detach(|| self.inner.commits()).or_raise()?;
        let commits = commits.into_iter().map(|commit| CommitInfo {
            number: commit.number,
            time: commit.time,
            message: commit.message,
            written: commit.written,
            removed: commit.removed,
            end: commit.end,
        });
        Ok(commits.collect())
    }

    /// Opens the commit of this number.
    fn at_commit(&self, py: Python<'_>, number: u64) -> PyResult<Self> {
        let inner = py.detach(|| self.inner.at_commit(number)).or_raise()?;
        Ok(Self { inner })
    }

    /// Numbers of commits by the names that users gave them.
    fn tags(&self) -> BTreeMap<String, u64> {
        self.inner.tags().clone()
    }

    /// Paths of the nodes that differ in another store, and how.
    fn differences(&self, py: Python<'_>, other: &Self) -> PyResult<Vec<(String, &'static str)>> {
        let found = py
            .detach(|| self.inner.differences(&other.inner))
            .or_raise()?;
        let name = |change| match change {
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Values => "values",
            Change::Metadata => "metadata",
        };
        Ok(found
            .into_iter()
            .map(|(path, change)| (path, name(change)))
            .collect())
    }

    fn usage(&self, py: Python<'_>) -> PyResult<Usage> {
        let usage = py.detach(|| self.inner.usage()).or_raise()?;
        Ok(Usage {
            total: usage.total,
            live: usage.live,
            dead: usage.dead,
            entries: usage.entries,
        })
    }

    #[pyo3(signature = (threads=None, progress=None))]
    fn verify(
        &self,
        py: Python<'_>,
        threads: Option<Threads>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<VerifyReport> {
        let progress = Progress::new(progress);
        let report = progress.run(py, threads, || {
            self.inner
                .verify(&|done, total| progress.report(done, total))
        })?;
        Ok(VerifyReport {
            bytes: report.bytes,
            entries: report.entries,
            chunks: report.chunks,
            unfinished: report.unfinished,
            damage: report.damage,
        })
    }
}

/// Bytes and entries of a container, as a dictionary.
#[derive(IntoPyObject)]
struct Usage {
    total: u64,
    live: u64,
    dead: u64,
    entries: u64,
}

/// A commit of a store, as a dictionary. `time` is in microseconds since 1970.
#[derive(IntoPyObject)]
struct CommitInfo {
    number: u64,
    time: i64,
    message: String,
    written: u64,
    removed: u64,
    end: u64,
}

/// The result of a verification, as a dictionary.
#[derive(IntoPyObject)]
struct VerifyReport {
    bytes: u64,
    entries: u64,
    chunks: u64,
    unfinished: u64,
    damage: Vec<String>,
}

fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Group => "group",
        NodeKind::Array => "array",
    }
}

/// Bytes read ahead from a store, kept until this is released.
#[pyclass(frozen, module = "ambar._core")]
pub struct ReadAhead {
    bytes: Mutex<Option<ambar::container::ReadAhead>>,
}

#[pymethods]
impl ReadAhead {
    fn release(&self) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = None;
    }
}

/// The selection in one dimension.
enum AxisSelection {
    Slice(u64, u64, u64),
    /// A copy, since the output may share memory with the list.
    List(Vec<u64>),
}

impl<'py> FromPyObject<'_, 'py> for AxisSelection {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok((start, stop, step)) = object.extract() {
            return Ok(Self::Slice(start, stop, step));
        }
        let lent = BorrowedBuffer::new(&object, false)?;
        // Names of an unsigned integer of 8 bytes in the buffer protocol.
        if !matches!(lent.format(), "L" | "Q") || lent.count() * 8 != lent.bytes().len() {
            let message =
                "expected a list of indices as an array of uint64, found another array; convert it";
            return Err(PyTypeError::new_err(message));
        }
        // Copied, for any alignment.
        let indices = lent
            .bytes()
            .chunks_exact(8)
            .map(bytemuck::pod_read_unaligned);
        Ok(Self::List(indices.collect()))
    }
}

impl AxisSelection {
    fn indices(&self) -> Indices<'_> {
        match self {
            &Self::Slice(start, stop, step) => Slice { start, stop, step }.into(),
            Self::List(indices) => Indices::List(indices),
        }
    }
}

/// An array of a store.
#[pyclass(frozen, module = "ambar._core")]
pub struct Array {
    inner: ambar::array::Array,
}

#[pymethods]
impl Array {
    #[getter]
    fn path(&self) -> &str {
        self.inner.path()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.inner.shape())
    }

    #[getter]
    fn dtype(&self) -> String {
        numpy_dtype(self.inner.dtype())
    }

    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.inner.chunk_shape())
    }

    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, pyo3::types::PyTuple>>> {
        self.inner
            .shard_shape()
            .map(|shape| pyo3::types::PyTuple::new(py, shape))
            .transpose()
    }

    #[getter]
    fn chunk_count(&self) -> u64 {
        self.inner.chunk_count()
    }

    #[getter]
    fn codecs(&self) -> String {
        self.inner.codecs()
    }

    #[getter]
    fn error_bound(&self) -> Option<BoundOutput> {
        self.inner.error_bound().map(BoundOutput::from)
    }

    #[getter]
    fn unwritten_values(&self) -> u64 {
        self.inner.unwritten_values()
    }

    #[getter]
    fn dims(&self) -> Option<Vec<Option<String>>> {
        let names = self.inner.dimension_names();
        (!names.is_empty()).then(|| names.to_vec())
    }

    #[getter]
    fn stored_bytes(&self) -> PyResult<u64> {
        self.inner.stored_bytes().or_raise()
    }

    #[getter]
    fn raw_bytes(&self) -> Option<u64> {
        Some(self.inner.elements() * self.inner.dtype().size()? as u64)
    }

    /// The fill value's bytes, native byte order; for text, its UTF-8.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.fill_value())
    }

    fn attributes(&self) -> JsonObject {
        JsonObject(self.inner.attributes().clone())
    }

    /// The attributes that state the loss of the values.
    fn lossy_attributes(&self) -> JsonObject {
        JsonObject(self.inner.lossy_attributes())
    }

    /// The ranges of all chunks that were written.
    fn chunk_ranges(&self, py: Python<'_>) -> PyResult<Vec<ChunkRange>> {
        let ranges = py.detach(|| self.inner.chunk_ranges()).or_raise()?;
        let range = |range: ambar::array::ChunkRange| ChunkRange {
            chunk: range.chunk,
            file: range.file,
            offset: range.offset,
            length: range.len,
        };
        Ok(ranges.into_iter().map(range).collect())
    }

    /// Reads (start, stop, step), or a list of indices as an array of uint64, of each dimension; a
    /// flat array in C order, or into `out`.
    #[pyo3(signature = (selection=None, out=None, threads=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: Option<Vec<AxisSelection>>,
        out: Option<Bound<'py, PyAny>>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let selection = selection.unwrap_or_else(|| {
            let lengths = self.inner.shape().iter();
            lengths
                .map(|&length| AxisSelection::Slice(0, length, 1))
                .collect()
        });
        let selection: Vec<Indices<'_>> = selection.iter().map(AxisSelection::indices).collect();
        let array = &self.inner;
        let read = |bytes: &mut [u8]| {
            let read = || array.read_indices(&selection, bytes);
            self.run(py, &selection, threads, read)
        };
        if let Some(out) = out {
            read(BorrowedBuffer::new(&out, true)?.bytes_mut())?;
            return Ok(out);
        }
        if array.dtype().size().is_none() {
            return self.read_strings(py, &selection, threads);
        }
        let mut column = self.allocate(&selection).or_raise()?;
        read(column.bytes_mut())?;
        to_numpy(py, column)
    }
}

/// The bytes of an encoded chunk in a store.
#[pyclass(frozen, get_all, module = "ambar._core")]
pub struct ChunkRange {
    /// The number of the chunk in each dimension.
    chunk: Vec<u64>,
    /// The file below the folder of a store; `None` if the store is a single file.
    file: Option<String>,
    offset: u64,
    length: u64,
}

/// Maximum size of a read on the calling thread: waking up another thread takes longer.
const INLINE_READ_BYTES: u64 = 256 << 10;

impl Array {
    /// Runs a read of `selection`, on the calling thread if it is small.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        selection: &[Indices<'_>],
        threads: Option<Threads>,
        read: impl FnOnce() -> ambar::Result<T> + Send,
    ) -> PyResult<T> {
        let small = self.inner.touched_bytes(selection).or_raise()? <= INLINE_READ_BYTES;
        py.detach(|| {
            if small {
                parallel::on_this_thread(read)
            } else {
                with_threads(threads, read)
            }
        })
        .or_raise()
    }

    fn allocate(&self, selection: &[Indices<'_>]) -> ambar::Result<Column> {
        let count = selection
            .iter()
            .try_fold(1u64, |count, wanted| count.checked_mul(wanted.len()));
        let rows = count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| Error::limit("the selection does not fit into memory; select less"))?;
        let dtypes: [DataType; 1] = [self.inner.dtype().clone()];
        let mut columns = Column::allocate(&dtypes, rows)?;
        columns
            .pop()
            .ok_or_else(|| Error::invalid("expected the name of a column, found none"))
    }

    fn read_strings<'py>(
        &self,
        py: Python<'py>,
        selection: &[Indices<'_>],
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = &self.inner;
        let read = || array.read_string_indices(selection);
        let strings = self.run(py, selection, threads, read)?;
        let values = PyList::empty(py);
        for index in 0..strings.len() {
            let value = strings.get(index).unwrap_or_default();
            if *array.dtype() == DataType::String {
                values.append(String::from_utf8_lossy(value))?;
            } else {
                values.append(PyBytes::new(py, value))?;
            }
        }
        Ok(values.into_any())
    }
}

/// Truncates dead bytes after the last commit, so that every ZIP reader finds the central directory.
#[pyfunction]
pub fn repair(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| ambar::container::repair(Path::new(&path), &Limits::default()))
        .or_raise()?;
    Ok(())
}

/// Rewrites the store without dead bytes.
#[pyfunction]
pub fn compact(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| ambar::store::compact(Path::new(&path), &Limits::default()))
        .or_raise()?;
    Ok(())
}
