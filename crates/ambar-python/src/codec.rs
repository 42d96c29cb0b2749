//! The codec on single chunks.

use std::cell::RefCell;

use ambar::{Column, DataType};
use ambar_codec::{Element, EncoderParams, Error, ErrorBound, Layout, Workspace};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bound::{FoundBound, GivenBound};
use crate::errors::OrRaise;
use crate::memory::{Lent, Stable, to_numpy};
use crate::writer::data_type;

/// Values of the largest chunk whose workspace is kept for the next one.
const KEPT: usize = 1 << 21;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CodecPlan>()?;
    module.add_function(wrap_pyfunction!(codec_tune, module)?)?;
    module.add_function(wrap_pyfunction!(codec_encode, module)?)?;
    module.add_function(wrap_pyfunction!(codec_decode, module)?)?;
    module.add_function(wrap_pyfunction!(codec_inspect, module)?)?;
    module.add_function(wrap_pyfunction!(encode_bare_array, module)?)?;
    module.add_function(wrap_pyfunction!(encode_bare_array_with, module)?)?;
    module.add_function(wrap_pyfunction!(decode_bare_array, module)?)
}

/// What the codec chose for values like those it was shown.
#[pyclass(frozen, module = "ambar._core")]
pub struct CodecPlan(EncoderParams);

#[pymethods]
impl CodecPlan {
    /// The same with the simplest contexts, as the profile "fast" has it: quicker, and larger.
    fn quick(&self) -> Self {
        Self(self.0.with_level_contexts())
    }
}

/// A codec's result as the library's, whose errors become exceptions.
pub fn told<T>(result: ambar_codec::Result<T>) -> PyResult<T> {
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

/// A type of values, and where its workspaces are kept.
trait Value: Element + bytemuck::Pod {
    const DTYPE: DataType;

    /// Lends a workspace: the thread's own, or for much a new one.
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
                if values > KEPT {
                    return work(&mut Workspace::default());
                }
                WORKSPACE.with_borrow_mut(work)
            }
        }
    };
}

value!(f32, DataType::Float32);
value!(f64, DataType::Float64);

fn values<T: Value>(lent: &Lent) -> PyResult<&[T]> {
    if lent.bytes().is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(lent.bytes())
        .map_err(|_| PyValueError::new_err("the array must be aligned"))
}

/// Calls a function with the type of a buffer's values.
macro_rules! by_format {
    ($lent:expr, $function:ident($($argument:expr),*)) => {
        match $lent.format() {
            "f" | "<f" => $function::<f32>($($argument),*),
            "d" | "<d" => $function::<f64>($($argument),*),
            other => Err(PyTypeError::new_err(format!(
                "the array must be of float32 or float64 in this machine's byte order, not {other:?}"
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
                "the values must be float32 or float64, not {other:?}"
            ))),
        }
    };
}

/// What a call says of how values lie: a shape, or for unit blocks (n, z, y, x) their origins.
struct Lie {
    shape: Vec<usize>,
    origins: Option<Vec<[i64; 3]>>,
}

impl Lie {
    fn new(lent: &Lent, origins: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
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
                "unit blocks with {} origins have the shape ({0}, z, y, x), not {shape:?}",
                origins.len()
            ))),
        }
    }
}

fn origins(array: &Bound<'_, PyAny>) -> PyResult<Vec<[i64; 3]>> {
    let lent = Lent::new(array, false)?;
    match (lent.format(), lent.shape()) {
        ("l" | "q" | "<l" | "<q", [_, 3]) => {
            bytemuck::try_cast_slice(lent.bytes()).map(<[[i64; 3]]>::to_vec)
        }
        (format, shape) => {
            return Err(PyTypeError::new_err(format!(
                "origins are int64 of shape (n, 3), not {format:?} of {shape:?}"
            )));
        }
    }
    .map_err(|_| PyValueError::new_err("the origins must be aligned"))
}

/// Chooses settings for values like these, to be used for all chunks of an array; where `small`, as the
/// profile of that name does.
#[pyfunction]
#[pyo3(signature = (values, origins, bound, small=false))]
fn codec_tune(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    origins: Option<&Bound<'_, PyAny>>,
    bound: GivenBound,
    small: bool,
) -> PyResult<CodecPlan> {
    let bound = bound.parse()?;
    let lent = Lent::new(values, false)?;
    let lie = Lie::new(&lent, origins)?;
    by_format!(lent, tune(py, &lent, &lie, (bound, small)))
}

fn tune<T: Value>(
    py: Python<'_>,
    lent: &Lent,
    lie: &Lie,
    (bound, small): (ErrorBound, bool),
) -> PyResult<CodecPlan> {
    let (values, layout) = (values::<T>(lent)?, lie.layout()?);
    let plan = py.detach(|| match small {
        true => ambar_codec::tune_small(values, &layout, bound),
        false => ambar_codec::tune(values, &layout, bound),
    });
    told(plan).map(CodecPlan)
}

/// Encodes an array, or unit blocks with their origins, within an error bound. `is_padded`: values equal to the last
/// one may be padding, whose errors do not count.
#[pyfunction]
#[pyo3(signature = (values, origins, bound, plan=None, fast=false, is_padded=false))]
fn codec_encode<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    origins: Option<&Bound<'py, PyAny>>,
    bound: GivenBound,
    plan: Option<Bound<'py, CodecPlan>>,
    fast: bool,
    is_padded: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let bound = bound.parse()?;
    let lent = Lent::new(values, false)?;
    let lie = Lie::new(&lent, origins)?;
    let plan = plan.map(|plan| plan.get().0);
    by_format!(
        lent,
        encode(py, &lent, &lie, (bound, is_padded), (plan, fast))
    )
}

fn encode<'py, T: Value>(
    py: Python<'py>,
    lent: &Lent,
    lie: &Lie,
    (bound, is_padded): (ErrorBound, bool),
    (mut plan, fast): (Option<EncoderParams>, bool),
) -> PyResult<Bound<'py, PyBytes>> {
    let (values, layout) = (values::<T>(lent)?, lie.layout()?);
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
    Ok(PyBytes::new(py, &told(stream)?))
}

/// What a stream says of itself: type and number of its values, and their bound.
#[pyfunction]
fn codec_inspect(stream: &Bound<'_, PyAny>) -> PyResult<(&'static str, usize, FoundBound)> {
    let stream = Stable::new(stream)?;
    let info = told(ambar_codec::inspect(stream.bytes()))?;
    let dtype = if info.value_size == f32::SIZE {
        "float32"
    } else {
        "float64"
    };
    Ok((dtype, info.values, info.bound.into()))
}

/// Decodes a stream of values of this type and shape.
#[pyfunction]
fn codec_decode<'py>(
    py: Python<'py>,
    stream: &Bound<'py, PyAny>,
    dtype: &str,
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let stream = Stable::new(stream)?;
    let stream = stream.bytes();
    by_name!(dtype, decode(py, stream, shape))
}

fn decode<'py, T: Value>(
    py: Python<'py>,
    stream: &[u8],
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    // What the stream says is compared before memory is asked for.
    let info = told(ambar_codec::inspect(stream))?;
    if count(&shape)? != info.values || T::SIZE != info.value_size {
        let message = format!(
            "the stream holds {} values of {} bytes, expected the shape {shape:?} of {}",
            info.values,
            info.value_size,
            T::DTYPE
        );
        return Err(ambar::Error::corrupt(message)).or_raise();
    }
    decoded::<T>(py, shape, |out| {
        T::with_workspace(out.len(), |workspace| {
            ambar_codec::decode(stream, out, workspace)
        })
    })
}

/// Encodes a small array; `dtype` is the type as JSON. Returns the names of its codecs, and its bytes.
#[pyfunction]
fn encode_bare_array<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    dtype: &str,
    shape: Vec<u64>,
    predict: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let (lent, dtype) = (Lent::new(values, false)?, data_type(dtype)?);
    let array = py
        .detach(|| ambar::codec::encode_bare_array(&dtype, &shape, lent.bytes(), predict))
        .or_raise()?;
    Ok((array.codecs, PyBytes::new(py, &array.bytes)))
}

/// Encodes an array with the codecs of these names; `dtype` is the type as JSON.
#[pyfunction]
fn encode_bare_array_with<'py>(
    py: Python<'py>,
    codecs: &str,
    values: &Bound<'py, PyAny>,
    dtype: &str,
    shape: Vec<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (lent, dtype) = (Lent::new(values, false)?, data_type(dtype)?);
    let stream =
        py.detach(|| ambar::codec::encode_bare_array_with(codecs, &dtype, &shape, lent.bytes()));
    Ok(PyBytes::new(py, &stream.or_raise()?))
}

/// Decodes the result of `encode_bare_array` into an array of its type and shape.
#[pyfunction]
fn decode_bare_array(
    py: Python<'_>,
    codecs: &str,
    dtype: &str,
    shape: Vec<u64>,
    encoded: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // A copy unless the memory is read-only: `out` may overlap it.
    let (encoded, dtype) = (Stable::new(encoded)?, data_type(dtype)?);
    let mut out = Lent::new(out, true)?;
    let (stored, values) = (encoded.bytes(), out.bytes_mut());
    py.detach(|| {
        ambar::codec::decode_bare_array(
            codecs,
            &dtype,
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
        .ok_or_else(|| PyValueError::new_err(format!("the shape {shape:?} is too large")))
}

/// A new array of this shape, filled by `fill`.
fn decoded<'py, T: Value>(
    py: Python<'py>,
    shape: Vec<usize>,
    fill: impl FnOnce(&mut [T]) -> ambar_codec::Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let count = count(&shape)?;
    let columns = Column::allocate(&[T::DTYPE], count).or_raise()?;
    let mut columns = columns.into_iter();
    let Some(mut column) = columns.next() else {
        return Err(PyValueError::new_err("no memory was given"));
    };
    told(py.detach(|| fill(column.values_mut::<T>())))?;
    to_numpy(py, column)?.call_method1("reshape", (shape,))
}
