//! Columns' memory, lent to NumPy through the buffer protocol, and NumPy's lent to the library.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ambar::{Column, DataType};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView};

/// Owns a column that NumPy arrays look into, alone or with others; freed with the last of them.
#[pyclass(frozen, module = "ambar._core")]
pub struct ColumnMemory {
    start: *mut u8,
    len: usize,
    /// Whether others look at the column too, so that nobody may write.
    shared: bool,
    _column: Arc<Column>,
}

// SAFETY: the pointer is into the column, which is Send; the column moves with it.
unsafe impl Send for ColumnMemory {}
// SAFETY: Rust never touches the bytes again; Python's buffer consumers synchronise among themselves.
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
        // SAFETY: `view` comes from the interpreter; start and len describe memory that lives as
        // long as `slf`, of which the view takes a reference.
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

/// Makes now what the first read would make: a child forked while another thread makes it would wait
/// for that thread.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    FROMBUFFER.import(module.py(), "numpy", "frombuffer")?;
    module.py().get_type::<ColumnMemory>();
    Ok(())
}

/// The column as a NumPy array that owns it: no copy, writable.
pub fn to_numpy<'py>(py: Python<'py>, mut column: Column) -> PyResult<Bound<'py, PyAny>> {
    let start = column.bytes_mut().as_mut_ptr();
    lend(py, start, Arc::new(column), false)
}

/// A column that others own too as a NumPy array: no copy, read-only.
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

/// NumPy's name of a type with values of one size.
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

/// Bytes of a C-contiguous buffer, held as long as this lives.
///
/// The exporter keeps the memory, and may let other threads write to it while the library reads it without
/// the GIL. Rust calls that undefined behaviour, and no check can rule it out, so it is the caller's duty:
/// the documentation of the functions that take arrays says that no thread may change an array while it is
/// read or filled. Encoded streams, whose content decides where a decoder reads and writes, are never lent:
/// see [`Stable`].
pub struct Lent {
    buffer: PyUntypedBuffer,
}

impl Lent {
    /// Takes hold of `object`'s bytes; with `writable`, checks that they may be written.
    pub fn new(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the array must be C-contiguous"));
        }
        if writable && buffer.readonly() {
            return Err(PyValueError::new_err("the array is read-only"));
        }
        Ok(Self { buffer })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.buffer.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: contiguous (checked in `new`), alive while the buffer is held, and any bytes
        // are valid `u8`. That no thread writes to them meanwhile is the caller's duty, as above.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast(), self.buffer.len_bytes()) }
    }

    /// The bytes, to be written. Only for buffers taken with `writable`.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.buffer.len_bytes() == 0 || self.buffer.readonly() {
            return &mut [];
        }
        // SAFETY: as in `bytes`; writable (checked above).
        unsafe {
            std::slice::from_raw_parts_mut(self.buffer.buf_ptr().cast(), self.buffer.len_bytes())
        }
    }

    /// The type of the values as the buffer protocol says it: "f", "d", ...
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

/// Bytes that nobody can change: those of a `bytes` object, or a copy.
pub enum Stable {
    /// In a `bytes` object, seen directly or through a `memoryview`.
    Bytes(Lent),
    /// Copied from memory that its owner may write to.
    Copied(Vec<u8>),
}

impl Stable {
    /// Takes `object`'s bytes, and copies them unless they are those of a `bytes` object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lent = Lent::new(object, false)?;
        let is_bytes = match object.cast::<PyMemoryView>() {
            Ok(view) => view.getattr("obj")?.is_exact_instance_of::<PyBytes>(),
            Err(_) => object.is_exact_instance_of::<PyBytes>(),
        };
        if is_bytes {
            return Ok(Self::Bytes(lent));
        }
        // The GIL is held: no Python thread writes meanwhile.
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

impl AsRef<[u8]> for Stable {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
