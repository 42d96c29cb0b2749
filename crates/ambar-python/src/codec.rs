//! The codec on single chunks.

use std::cell::RefCell;

use ambar::codec::Profile;
use ambar::{Column, DataType};
use ambar_codec::{Element, EncoderParams, Error, ErrorBound, Layout, Workspace};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bound::{BoundInput, BoundOutput};
use crate::errors::OrRaise;
use crate::memory::{BorrowedBuffer, StableBytes, to_numpy};
use crate::spec::{self, DType};

/// Maximum number of values of a chunk whose workspace is reused for the next chunk.
const MAX_CACHED_WORKSPACE: usize = 1 << 21;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CodecPlan>()?;
    module.add_class::<StreamInfo>()?;
    module.add_function(wrap_pyfunction!(codec_tune, module)?)?;
    module.add_function(wrap_pyfunction!(codec_encode, module)?)?;
    module.add_function(wrap_pyfunction!(codec_decode, module)?)?;
    module.add_function(wrap_pyfunction!(codec_inspect, module)?)?;
    module.add_function(wrap_pyfunction!(encode_bare_array, module)?)?;
    module.add_function(wrap_pyfunction!(encode_bare_array_with, module)?)?;
    module.add_function(wrap_pyfunction!(decode_bare_array, module)?)
}

/// Encoder parameters that were chosen for sample values.
#[pyclass(frozen, module = "ambar._core")]
pub struct CodecPlan(EncoderParams);

/// Converts a result of the codec; errors become exceptions.
pub fn codec_result<T>(result: ambar_codec::Result<T>) -> PyResult<T> {
    result
        .map_err(|error| match error {
            Error::Corrupt(_) | Error::ReservedBits { .. } => {
                ambar::Error::corrupt(error.to_string())
            }
            Error::UnsupportedVersion { .. } => ambar::Error::unsupported(error.to_string()),
            Error::Invalid(message) => ambar::Error::invalid(message),
        })
        .or_raise()
}

/// A type of values, with a workspace per thread.
trait Value: Element + bytemuck::Pod {
    const DTYPE: DataType;

    /// Calls `work` with the workspace of the thread, or with a new one for large chunks.
    fn with_workspace<R>(values: usize, work: impl FnOnce(&mut Workspace<Self>) -> R) -> R;
}

macro_rules! value {
    ($type:ty, $dtype:expr) => {
        impl Value for $type {
            const DTYPE: DataType = $dtype;

            fn with_workspace<R>(values: usize, work: impl FnOnce(&mut Workspace<Self>) -> R) -> R {
                thread_local! {
                    static WORKSPACE: RefCell<Workspace<$type>> = RefCell::default();
                }
                if values > MAX_CACHED_WORKSPACE {
                    return work(&mut Workspace::default());
                }
                WORKSPACE.with_borrow_mut(work)
            }
        }
    };
}

value!(f32, DataType::Float32);
value!(f64, DataType::Float64);

fn values<T: Value>(lent: &BorrowedBuffer) -> PyResult<&[T]> {
    if lent.bytes().is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(lent.bytes()).map_err(|_| {
        PyValueError::new_err("expected an aligned array, found an unaligned one; copy it")
    })
}

/// Calls a function with the type of a buffer's values.
macro_rules! by_format {
    ($lent:expr, $function:ident($($argument:expr),*)) => {
        match $lent.format() {
            "f" | "<f" => $function::<f32>($($argument),*),
            "d" | "<d" => $function::<f64>($($argument),*),
            other => Err(PyTypeError::new_err(format!(
                "expected float32 or float64 values in native byte order, found {other:?}; convert them"
            ))),
        }
    };
}

/// Calls a function with the type of this name.
macro_rules! by_name {
    ($name:expr, $function:ident($($argument:expr),*)) => {
        match $name {
            "float32" => $function::<f32>($($argument),*),
            "float64" => $function::<f64>($($argument),*),
            other => Err(PyTypeError::new_err(format!(
                "expected float32 or float64, found {other:?}; convert the values"
            ))),
        }
    };
}

/// The arrangement of values: a shape, and the origins of unit blocks, whose shape is (n, z, y, x).
struct ValueLayout {
    shape: Vec<usize>,
    origins: Option<Vec<[i64; 3]>>,
}

impl ValueLayout {
    fn new(lent: &BorrowedBuffer, origins: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let origins = origins.map(self::origins).transpose()?;
        Ok(Self {
            shape: lent.shape().to_vec(),
            origins,
        })
    }

    fn layout(&self) -> PyResult<Layout<'_>> {
        match (&self.origins, &self.shape[..]) {
            (None, shape) => Ok(Layout::Array(shape)),
            (Some(origins), [n, z, y, x]) if *n == origins.len() => Ok(Layout::Blocks {
                side: [*z, *y, *x],
                origins,
            }),
            (Some(origins), shape) => Err(PyValueError::new_err(format!(
                "expected unit blocks of shape ({0}, z, y, x) for {0} origins, found {shape:?}; reshape them",
                origins.len()
            ))),
        }
    }
}

fn origins(array: &Bound<'_, PyAny>) -> PyResult<Vec<[i64; 3]>> {
    let lent = BorrowedBuffer::new(array, false)?;
    match (lent.format(), lent.shape()) {
        ("l" | "q" | "<l" | "<q", [_, 3]) => {
            bytemuck::try_cast_slice(lent.bytes()).map(<[[i64; 3]]>::to_vec)
        }
        (format, shape) => {
            return Err(PyTypeError::new_err(format!(
                "expected origins as int64 of shape (n, 3), found {format:?} of shape {shape:?}; convert them"
            )));
        }
    }
    .map_err(|_| PyValueError::new_err("expected aligned origins, found an unaligned array; copy it"))
}

/// Chooses encoder parameters from sample values, for all chunks of an array with a profile.
#[pyfunction]
#[pyo3(signature = (values, origins, bound, profile="balanced"))]
fn codec_tune(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    origins: Option<&Bound<'_, PyAny>>,
    bound: BoundInput,
    profile: &str,
) -> PyResult<CodecPlan> {
    let (bound, profile) = (bound.parse()?, spec::profile(profile)?);
    let lent = BorrowedBuffer::new(values, false)?;
    let layout = ValueLayout::new(&lent, origins)?;
    by_format!(lent, tune(py, &lent, &layout, bound, profile))
}

fn tune<T: Value>(
    py: Python<'_>,
    lent: &BorrowedBuffer,
    layout: &ValueLayout,
    bound: ErrorBound,
    profile: Profile,
) -> PyResult<CodecPlan> {
    let (values, layout) = (values::<T>(lent)?, layout.layout()?);
    let plan = py.detach(|| match profile {
        Profile::Fast => ambar_codec::tune_fast(values, &layout, bound),
        Profile::Small => ambar_codec::tune_small(values, &layout, bound),
        Profile::Balanced | Profile::Raw => ambar_codec::tune(values, &layout, bound),
    });
    codec_result(plan).map(CodecPlan)
}

/// Encodes an array, or unit blocks with their origins, within an error bound. `is_padded`: values equal to the last
/// one may be padding, whose errors do not count.
#[pyfunction]
#[pyo3(signature = (values, origins, bound, plan=None, fast=false, is_padded=false))]
fn codec_encode<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    origins: Option<&Bound<'py, PyAny>>,
    bound: BoundInput,
    plan: Option<Bound<'py, CodecPlan>>,
    fast: bool,
    is_padded: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let bound = bound.parse()?;
    let lent = BorrowedBuffer::new(values, false)?;
    let layout = ValueLayout::new(&lent, origins)?;
    let plan = plan.map(|plan| plan.get().0);
    by_format!(
        lent,
        encode(py, &lent, &layout, bound, is_padded, plan, fast)
    )
}

fn encode<'py, T: Value>(
    py: Python<'py>,
    lent: &BorrowedBuffer,
    layout: &ValueLayout,
    bound: ErrorBound,
    is_padded: bool,
    mut plan: Option<EncoderParams>,
    fast: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let (values, layout) = (values::<T>(lent)?, layout.layout()?);
    let stream = py.detach(|| {
        let bound = if is_padded {
            bound.of_padded(values)
        } else {
            bound
        };
        if fast && plan.is_none() {
            plan = Some(ambar_codec::tune_fast(values, &layout, bound)?);
        }
        T::with_workspace(values.len(), |workspace| {
            ambar_codec::encode(values, &layout, bound, plan, workspace)
        })
    });
    Ok(PyBytes::new(py, &codec_result(stream)?))
}

/// The header of a stream.
#[pyclass(frozen, get_all, module = "ambar._core")]
pub struct StreamInfo {
    dtype: &'static str,
    /// The number of values.
    values: usize,
    error_bound: BoundOutput,
}

/// Reads the header of a stream.
#[pyfunction]
fn codec_inspect(stream: &Bound<'_, PyAny>) -> PyResult<StreamInfo> {
    let stream = StableBytes::new(stream)?;
    let info = codec_result(ambar_codec::inspect(stream.bytes()))?;
    let dtype = if info.value_size == f32::SIZE {
        "float32"
    } else {
        "float64"
    };
    Ok(StreamInfo {
        dtype,
        values: info.values,
        error_bound: info.bound.into(),
    })
}

/// Decodes a stream of values of this type and shape.
#[pyfunction]
fn codec_decode<'py>(
    py: Python<'py>,
    stream: &Bound<'py, PyAny>,
    dtype: &str,
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let stream = StableBytes::new(stream)?;
    let stream = stream.bytes();
    by_name!(dtype, decode(py, stream, shape))
}

fn decode<'py, T: Value>(
    py: Python<'py>,
    stream: &[u8],
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    // Compared before memory is allocated.
    let info = codec_result(ambar_codec::inspect(stream))?;
    if count(&shape)? != info.values || T::SIZE != info.value_size {
        let message = format!(
            "expected values of shape {shape:?} and type {}, found a stream of {} values of {} bytes; read the chunk \
             with its own shape and type",
            T::DTYPE,
            info.values,
            info.value_size
        );
        return Err(ambar::Error::corrupt(message)).or_raise();
    }
    decoded::<T>(py, shape, |out| {
        T::with_workspace(out.len(), |workspace| {
            ambar_codec::decode(stream, out, workspace)
        })
    })
}

/// Encodes a small array. Returns the names of its codecs, and its bytes.
#[pyfunction]
fn encode_bare_array<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    dtype: DType,
    shape: Vec<u64>,
    predict: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let lent = BorrowedBuffer::new(values, false)?;
    let array = py
        .detach(|| ambar::codec::encode_bare_array(&dtype.0, &shape, lent.bytes(), predict))
        .or_raise()?;
    Ok((array.codecs, PyBytes::new(py, &array.bytes)))
}

/// Encodes an array with the codecs of these names.
#[pyfunction]
fn encode_bare_array_with<'py>(
    py: Python<'py>,
    codecs: &str,
    values: &Bound<'py, PyAny>,
    dtype: DType,
    shape: Vec<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lent = BorrowedBuffer::new(values, false)?;
    let stream =
        py.detach(|| ambar::codec::encode_bare_array_with(codecs, &dtype.0, &shape, lent.bytes()));
    Ok(PyBytes::new(py, &stream.or_raise()?))
}

/// Decodes the result of `encode_bare_array` into an array of its type and shape.
#[pyfunction]
fn decode_bare_array(
    py: Python<'_>,
    codecs: &str,
    dtype: DType,
    shape: Vec<u64>,
    encoded: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // A copy unless the memory is read-only: `out` may overlap it.
    let encoded = StableBytes::new(encoded)?;
    let mut out = BorrowedBuffer::new(out, true)?;
    let (stored, values) = (encoded.bytes(), out.bytes_mut());
    py.detach(|| {
        ambar::codec::decode_bare_array(
            codecs,
            &dtype.0,
            &shape,
            stored,
            values,
            &ambar::limits::Limits::default(),
        )
    })
    .or_raise()
}

fn count(shape: &[usize]) -> PyResult<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "invalid shape: {shape:?}; expected fewer than 2^64 values"
            ))
        })
}

/// Allocates an array of this shape and calls `fill` with its memory.
fn decoded<'py, T: Value>(
    py: Python<'py>,
    shape: Vec<usize>,
    fill: impl FnOnce(&mut [T]) -> ambar_codec::Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let count = count(&shape)?;
    let columns = Column::allocate(&[T::DTYPE], count).or_raise()?;
    let mut columns = columns.into_iter();
    let Some(mut column) = columns.next() else {
        return Err(PyValueError::new_err(
            "the values of a chunk were not allocated",
        ));
    };
    codec_result(py.detach(|| fill(column.values_mut::<T>())))?;
    to_numpy(py, column)?.call_method1("reshape", (shape,))
}
