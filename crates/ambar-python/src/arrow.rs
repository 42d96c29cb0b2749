//! Export of tables through the Arrow PyCapsule interface, without copying NumPy columns.
//!
//! Source: "The Arrow PyCapsule Interface" of the Arrow format documentation.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchIterator, StringArray, make_array,
};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::memory::BorrowedBuffer;

/// Exports columns of equal length as an `arrow_array_stream` capsule of one record batch.
///
/// `arrays` has one 1-D C-contiguous NumPy array per name. Numbers and times are not copied. Booleans are packed
/// into bits and text is copied, because Arrow stores them differently.
#[pyfunction]
pub fn arrow_stream<'py>(
    py: Python<'py>,
    names: Vec<String>,
    arrays: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = arrays.iter().map(column).collect::<PyResult<Vec<_>>>()?;
    let fields: Vec<Field> = names
        .into_iter()
        .zip(&columns)
        .map(|(name, column)| Field::new(name, column.data_type().clone(), false))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let raise = |error: arrow_schema::ArrowError| PyTypeError::new_err(error.to_string());
    let rows = columns.first().map_or(0, arrow_array::Array::len);
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    let batch =
        RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).map_err(raise)?;
    let batches = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value_and_destructor(py, stream, c"arrow_array_stream", |_, _| ())
}

/// One NumPy array as an Arrow array.
fn column(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let dtype = array.getattr("dtype")?;
    let kind: char = dtype.getattr("kind")?.extract()?;
    let size: usize = dtype.getattr("itemsize")?.extract()?;
    let arrow = match (kind, size) {
        ('b', _) => {
            let lent = BorrowedBuffer::new(array, false)?;
            return Ok(Arc::new(BooleanArray::from_iter(
                lent.bytes().iter().map(|&byte| Some(byte != 0)),
            )));
        }
        ('U' | 'T' | 'O', _) => {
            let texts: Vec<String> = array.call_method0("tolist")?.extract()?;
            return Ok(Arc::new(StringArray::from(texts)));
        }
        ('i', 1) => DataType::Int8,
        ('i', 2) => DataType::Int16,
        ('i', 4) => DataType::Int32,
        ('i', 8) => DataType::Int64,
        ('u', 1) => DataType::UInt8,
        ('u', 2) => DataType::UInt16,
        ('u', 4) => DataType::UInt32,
        ('u', 8) => DataType::UInt64,
        ('f', 2) => DataType::Float16,
        ('f', 4) => DataType::Float32,
        ('f', 8) => DataType::Float64,
        ('M', 8) => DataType::Timestamp(time_unit(&dtype)?, None),
        ('m', 8) => DataType::Duration(time_unit(&dtype)?),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "expected a dtype with an Arrow type, found {dtype}; convert the column"
            )));
        }
    };
    // NumPy does not export buffers of times, but of their integer views.
    let lent = match kind {
        'M' | 'm' => BorrowedBuffer::new(&array.call_method1("view", ("i8",))?, false)?,
        _ => BorrowedBuffer::new(array, false)?,
    };
    lend(lent, arrow)
}

/// The unit of a NumPy datetime64 or timedelta64.
fn time_unit(dtype: &Bound<'_, PyAny>) -> PyResult<TimeUnit> {
    let numpy = dtype.py().import("numpy")?;
    match numpy
        .call_method1("datetime_data", (dtype,))?
        .extract::<(String, i64)>()?
    {
        (unit, 1) if unit == "s" => Ok(TimeUnit::Second),
        (unit, 1) if unit == "ms" => Ok(TimeUnit::Millisecond),
        (unit, 1) if unit == "us" => Ok(TimeUnit::Microsecond),
        (unit, 1) if unit == "ns" => Ok(TimeUnit::Nanosecond),
        _ => Err(PyTypeError::new_err(format!(
            "expected a time unit of s, ms, us or ns, found {dtype}; convert the column"
        ))),
    }
}

/// An Arrow array that views the borrowed bytes and keeps them alive.
fn lend(lent: BorrowedBuffer, dtype: DataType) -> PyResult<ArrayRef> {
    let rows = lent.count();
    let bytes = lent.bytes();
    let (len, start) = (bytes.len(), NonNull::from(bytes).cast::<u8>());
    let owner = Arc::new(std::panic::AssertUnwindSafe(lent));
    // SAFETY: the owner holds the Python buffer, so the bytes stay valid while the Arrow buffer lives.
    let buffer = unsafe { Buffer::from_custom_allocation(start, len, owner) };
    let data = ArrayData::builder(dtype)
        .len(rows)
        .add_buffer(buffer)
        .align_buffers(true)
        .build()
        .map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(make_array(data))
}
