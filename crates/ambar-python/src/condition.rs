//! The class `Condition`: conditions on NumPy arrays.

use std::collections::HashMap;
use std::fmt::Display;

use ambar::condition::{self, ColumnValues, UnitSystem, Value};
use ambar::{Column, DataType};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::errors::{OrRaise, exception};
use crate::memory::{BorrowedBuffer, to_numpy};

/// A condition on the values of fields.
#[pyclass(frozen, module = "ambar._core")]
pub struct Condition {
    pub inner: condition::Condition,
    text: String,
}

/// A physical quantity.
#[pyclass(frozen, module = "ambar._core")]
pub struct Quantity(condition::Quantity);

#[pymethods]
impl Quantity {
    /// `dimension` has the exponents of length, mass and time, `units` the factors that values in code
    /// units are multiplied by.
    #[new]
    #[pyo3(signature = (name, *, dimension, units))]
    fn new(name: String, dimension: [f64; 3], units: &Bound<'_, PyDict>) -> PyResult<Self> {
        let units = units.iter();
        let units = units.map(|(unit, factor)| Ok((unit.extract()?, factor.extract()?)));
        Ok(Self(condition::Quantity {
            name,
            dimension,
            units: units.collect::<PyResult<_>>()?,
        }))
    }
}

#[pymethods]
impl Condition {
    #[new]
    fn new(text: String) -> PyResult<Self> {
        let inner = condition::Condition::parse(&text).or_raise()?;
        Ok(Self { inner, text })
    }

    #[getter]
    fn fields(&self) -> Vec<&str> {
        self.inner.fields()
    }

    #[getter]
    fn units(&self) -> Vec<&str> {
        self.inner.units()
    }

    fn rename(&self, names: HashMap<String, String>) -> Self {
        let mut inner = self.inner.clone();
        inner.rename(|name| names.get(name).cloned());
        let text = self.text.clone();
        Self { inner, text }
    }

    fn convert_units(
        &self,
        quantities: Vec<PyRef<'_, Quantity>>,
        fields: HashMap<String, String>,
        spellings: HashMap<String, String>,
    ) -> PyResult<Self> {
        let system = UnitSystem {
            quantities: quantities
                .iter()
                .map(|quantity| quantity.0.clone())
                .collect(),
            spellings,
            fields,
        };
        let inner = self.inner.convert_units(&system).or_raise()?;
        let text = self.text.clone();
        Ok(Self { inner, text })
    }

    fn evaluate<'py>(&self, columns: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = columns.py();
        let names = self.inner.fields();
        let values = names.iter().map(|name| columns.get_item(name));
        let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
        let numpy = py.import("numpy")?;
        let arrays = numpy.call_method1("broadcast_arrays", values)?;
        let mut shape = None;
        let mut read: HashMap<&str, Values> = HashMap::new();
        for (name, array) in names.iter().zip(arrays.try_iter()?) {
            let array = array?;
            shape = Some(array.getattr("shape")?);
            read.insert(name, Values::new(name, &array)?);
        }
        let rows = read.values().next().map_or(0, Values::rows);
        let found = py.detach(|| {
            self.inner.evaluate(rows, |name| {
                let missing = || ambar::Error::not_found(format!("{name:?} was not read"));
                read.get(name).map(Values::view).ok_or_else(missing)
            })
        });
        let mut mask = Column::allocate(&[DataType::Bool], rows)
            .or_raise()?
            .remove(0);
        for (to, flag) in mask.bytes_mut().iter_mut().zip(found.or_raise()?) {
            *to = flag.into();
        }
        to_numpy(py, mask)?.call_method1("reshape", (shape,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = PyString::new(py, &self.text).repr()?;
        Ok(format!("Condition({text})"))
    }
}

/// The values of a field.
enum Values {
    /// A contiguous array in native byte order.
    Numbers(DataType, BorrowedBuffer),
    Objects(Vec<Value>),
}

impl Values {
    /// The values of an array in C order.
    fn new(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let dtype = array.getattr("dtype")?;
        let kind: char = dtype.getattr("kind")?.extract()?;
        let size: usize = dtype.getattr("itemsize")?.extract()?;
        let (ours, numpys) = match (kind, size) {
            ('b', _) => (DataType::Bool, "?"),
            ('i', 1) => (DataType::Int8, "i1"),
            ('i', 2) => (DataType::Int16, "i2"),
            ('i', 4) => (DataType::Int32, "i4"),
            ('i', 8) => (DataType::Int64, "i8"),
            ('u', 1) => (DataType::UInt8, "u1"),
            ('u', 2) => (DataType::UInt16, "u2"),
            ('u', 4) => (DataType::UInt32, "u4"),
            ('u', 8) => (DataType::UInt64, "u8"),
            ('f', 2) => (DataType::Float16, "f2"),
            ('f', 4) => (DataType::Float32, "f4"),
            ('f', _) => (DataType::Float64, "f8"),
            ('U' | 'T' | 'O', _) => {
                let items = array
                    .call_method0("ravel")?
                    .call_method0("tolist")?
                    .try_iter()?;
                return Ok(Self::Objects(
                    items
                        .map(|item| value(name, &item?))
                        .collect::<PyResult<_>>()?,
                ));
            }
            _ => return Err(not_comparable(name, &dtype)),
        };
        let numpy = array.py().import("numpy")?;
        let array = numpy.call_method1("ascontiguousarray", (array, numpys))?;
        Ok(Self::Numbers(ours, BorrowedBuffer::new(&array, false)?))
    }

    fn rows(&self) -> usize {
        match self {
            Self::Numbers(_, lent) => lent.count(),
            Self::Objects(values) => values.len(),
        }
    }

    fn view(&self) -> ColumnValues<'_> {
        match self {
            Self::Numbers(dtype, lent) => ColumnValues::Numbers(dtype, lent.bytes()),
            Self::Objects(values) => ColumnValues::Values(values),
        }
    }
}

/// A Python object as a value. Only None is a missing value.
fn value(name: &str, item: &Bound<'_, PyAny>) -> PyResult<Value> {
    if item.is_none() {
        return Ok(Value::Missing);
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Value::Text(text.extract()?));
    }
    if let Ok(flag) = item.cast::<PyBool>() {
        return Ok(Value::Integer(flag.is_true().into()));
    }
    if let Ok(float) = item.cast::<PyFloat>() {
        return Ok(Value::Float(float.value()));
    }
    let kind = || item.getattr("dtype")?.getattr("kind")?.extract::<char>();
    if item.is_instance_of::<PyInt>() || kind().is_ok_and(|kind| "biuf".contains(kind)) {
        // Integers beyond i128 are rounded.
        return match item.extract::<i128>() {
            Ok(integer) => Ok(Value::Integer(integer)),
            Err(_) => item.extract().map(Value::Float),
        };
    }
    Err(not_comparable(name, &item.get_type().name()?))
}

fn not_comparable(name: &str, found: &impl Display) -> PyErr {
    exception(&ambar::Error::invalid(format!(
        "{name:?} contains {found} values; expected numbers or strings. Select with a mask that \
         NumPy computes, or store numbers or strings"
    )))
}
