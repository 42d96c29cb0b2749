//! Memory shared through the buffer protocol: columns as NumPy arrays, and NumPy arrays as input of the library.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ambar::{Column, DataType};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView};

/// Owns a column that NumPy arrays view, exclusively or shared. Released with the last view.
#[pyclass(frozen, module = "ambar._core")]
pub struct ColumnMemory {
    start: *mut u8,
    len: usize,
    /// True if the column is shared, so that views are read-only.
    shared: bool,
    _column: Arc<Column>,
}

// SAFETY: the pointer refers to memory of the column, which is `Send` and moves together with it.
unsafe impl Send for ColumnMemory {}
// SAFETY: Rust does not access the bytes after the export; consumers of the buffer synchronise among themselves.
unsafe impl Sync for ColumnMemory {}

#[pymethods]
impl ColumnMemory {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = slf.get();
        let len = isize::try_from(memory.len).map_err(|e| PyBufferError::new_err(e.to_string()))?;
        // SAFETY: `view` comes from the interpreter. `start` and `len` describe memory of the column, which lives as long as
        // `slf`, to which the view holds a reference.
        let status = unsafe {
            let start = memory.start.cast::<c_void>();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, memory.shared.into(), flags)
        };
        if status == -1 {
            Err(PyErr::fetch(slf.py()))
        } else {
            Ok(())
        }
    }
}

static FROMBUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Imports `numpy.frombuffer` when the module is loaded. A process forked while another thread imports it lazily
/// would wait for that thread forever.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    FROMBUFFER.import(module.py(), "numpy", "frombuffer")?;
    module.py().get_type::<ColumnMemory>();
    Ok(())
}

/// The column as a NumPy array that owns it, writable and without a copy.
pub fn to_numpy<'py>(py: Python<'py>, mut column: Column) -> PyResult<Bound<'py, PyAny>> {
    let start = column.bytes_mut().as_mut_ptr();
    lend(py, start, Arc::new(column), false)
}

/// A shared column as a NumPy array, read-only and without a copy.
pub fn to_numpy_shared<'py>(py: Python<'py>, column: Arc<Column>) -> PyResult<Bound<'py, PyAny>> {
    let start = column.bytes().as_ptr().cast_mut();
    lend(py, start, column, true)
}

fn lend<'py>(
    py: Python<'py>,
    start: *mut u8,
    column: Arc<Column>,
    shared: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = numpy_dtype(column.dtype());
    let len = column.bytes().len();
    if len == 0 {
        return py
            .import("numpy")?
            .call_method1("zeros", (column.rows(), dtype));
    }
    let memory = Bound::new(
        py,
        ColumnMemory {
            start,
            len,
            shared,
            _column: column,
        },
    )?;
    let frombuffer = FROMBUFFER.import(py, "numpy", "frombuffer")?;
    frombuffer.call1((memory, dtype))
}

/// The NumPy name of a type with values of fixed size.
pub fn numpy_dtype(dtype: &DataType) -> String {
    match dtype {
        DataType::DateTime64 { unit, .. } | DataType::TimeDelta64 { unit, .. }
            if unit.name() == "generic" =>
        {
            let name = dtype.to_string();
            name.split('[').next().unwrap_or(&name).to_owned()
        }
        other => other.to_string(),
    }
}

/// The bytes of a C-contiguous buffer, which is held until this is dropped.
///
/// The exporter owns the memory, and other threads could write to it while the library reads it without the GIL.
/// That would be undefined behaviour in Rust, and no check can exclude it. It is therefore a duty of the caller: the
/// documentation of the functions that take arrays says that no thread may change an array during the call. Encoded
/// streams, whose content determines where a decoder reads and writes, are never borrowed: see [`StableBytes`].
pub struct BorrowedBuffer {
    buffer: PyUntypedBuffer,
}

impl BorrowedBuffer {
    /// Acquires the buffer of `object`; with `writable`, checks that it is writable.
    pub fn new(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "expected a C-contiguous array, found another memory layout; use numpy.ascontiguousarray",
            ));
        }
        if writable && buffer.readonly() {
            return Err(PyValueError::new_err(
                "expected a writable array, found a read-only one; copy it",
            ));
        }
        Ok(Self { buffer })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.buffer.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous (checked in `new`) and held by `self`, and any bytes are valid `u8`. Callers of
        // the Python functions must not write to it during the call, as the type's documentation says.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast(), self.buffer.len_bytes()) }
    }

    /// The bytes, for writing. Only for buffers acquired with `writable`.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.buffer.len_bytes() == 0 || self.buffer.readonly() {
            return &mut [];
        }
        // SAFETY: the buffer is contiguous and writable (checked in `new` and above) and held by `self`, which is borrowed
        // mutably. Callers of the Python functions must not use it during the call, as the type's documentation says.
        unsafe {
            std::slice::from_raw_parts_mut(self.buffer.buf_ptr().cast(), self.buffer.len_bytes())
        }
    }

    /// The type of the values in the notation of the buffer protocol: "f", "d", ...
    pub fn format(&self) -> &str {
        self.buffer.format().to_str().unwrap_or_default()
    }

    /// The shape of the values.
    pub fn shape(&self) -> &[usize] {
        self.buffer.shape()
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.buffer.item_count()
    }
}

/// Immutable bytes: those of a `bytes` object, or a copy.
pub enum StableBytes {
    /// A `bytes` object, or a `memoryview` of one.
    Bytes(BorrowedBuffer),
    /// A copy of memory that its owner could change.
    Copied(Vec<u8>),
}

impl StableBytes {
    /// The bytes of `object`, copied unless it is a `bytes` object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lent = BorrowedBuffer::new(object, false)?;
        let is_bytes = match object.cast::<PyMemoryView>() {
            Ok(view) => view.getattr("obj")?.is_exact_instance_of::<PyBytes>(),
            Err(_) => object.is_exact_instance_of::<PyBytes>(),
        };
        if is_bytes {
            return Ok(Self::Bytes(lent));
        }
        // The GIL is held, so no Python code writes during the copy.
        Ok(Self::Copied(lent.bytes().to_vec()))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(lent) => lent.bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for StableBytes {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
