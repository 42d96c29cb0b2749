//! Conversion between JSON values and Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};
use serde_json::{Map, Number, Value};

use crate::errors::exception;

/// Maximum nesting of lists and dictionaries. The parser of metadata documents accepts 128 levels, some of which
/// belong to the document.
const MAX_DEPTH: usize = 100;

/// A JSON value: None, bool, int, float, str, list or dict.
pub struct Json(pub Value);

/// A JSON object, such as the attributes of a node.
#[derive(Default)]
pub struct JsonObject(pub Map<String, Value>);

impl<'py> FromPyObject<'_, 'py> for Json {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value(&object, 0).map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for JsonObject {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value(&object, 0)? {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(invalid(format!(
                "expected a mapping, found {}; pass a dict",
                object.get_type().name()?
            ))),
        }
    }
}

impl<'py> IntoPyObject<'py> for Json {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

impl<'py> IntoPyObject<'py> for JsonObject {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, &self.0)
    }
}

fn to_dict<'py>(py: Python<'py>, members: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, member) in members {
        dict.set_item(name, to_python(py, member)?)?;
    }
    Ok(dict)
}

fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (_, Some(number)) => number.into_bound_py_any(py),
            _ => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_bound_py_any(py)
        }
        Value::Object(members) => to_dict(py, members)?.into_bound_py_any(py),
    }
}

/// Converts a Python object that JSON can represent; NumPy scalars and arrays count as numbers, strings and lists.
fn value(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return string(text).map(Value::String);
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object).map(Value::Number);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(number(float.value()));
    }
    if depth == MAX_DEPTH {
        return Err(invalid(format!(
            "expected at most {MAX_DEPTH} nested lists and mappings, found more, or one that contains itself; flatten \
             them"
        )));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return members(&dict.items(), depth).map(Value::Object);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?;
        let items = items.map(|item| value(&item?, depth + 1));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    if is_numpy(object)? && !is_time(object)? {
        let plain = object.call_method0("tolist")?;
        if !is_numpy(&plain)? {
            // An array of n dimensions becomes n nested lists.
            return value(&plain, depth);
        }
    } else if let Ok(mapping) = object.cast::<PyMapping>() {
        return members(&mapping.items()?, depth).map(Value::Object);
    }
    Err(invalid(format!(
        "expected values that JSON can represent (None, bool, int, float, str, list, dict), found {}; convert it",
        object.get_type().name()?
    )))
}

/// A float; one that is not finite is `{"float": "nan"}`, `"inf"` or `"-inf"`, as in attributes of collections.
fn number(float: f64) -> Value {
    Number::from_f64(float).map_or_else(
        || {
            let name = if float.is_nan() {
                "nan".into()
            } else {
                float.to_string()
            };
            Value::Object(Map::from_iter([("float".into(), Value::String(name))]))
        },
        Value::Number,
    )
}

/// Converts the items of a mapping. `items` is a copy, because Python code that runs meanwhile can change the mapping.
fn members(items: &Bound<'_, PyList>, depth: usize) -> PyResult<Map<String, Value>> {
    let mut members = Map::with_capacity(items.len());
    for item in items {
        let (key, member): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let key = key.cast::<PyString>().map_err(|_| {
            let kind = key.get_type();
            invalid(format!(
                "expected strings as names, found {} ({kind}); convert it",
                key.repr()
                    .map_or_else(|_| kind.to_string(), |key| key.to_string())
            ))
        })?;
        let member = value(&member, depth + 1);
        let member = if depth == 0 {
            member.map_err(|error| named(key, error))?
        } else {
            member?
        };
        members.insert(string(key)?, member);
    }
    Ok(members)
}

/// An error about a value, with the name of the member that contains it.
fn named(key: &Bound<'_, PyString>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyValueError>(key.py()) {
        return invalid(format!(
            "{:?}: {}",
            key.to_string_lossy(),
            error.value(key.py())
        ));
    }
    error
}

fn string(text: &Bound<'_, PyString>) -> PyResult<String> {
    text.extract::<String>().map_err(|_| {
        invalid(format!(
            "expected Unicode strings, found {} with a lone surrogate; remove it",
            text.repr().map_or_else(
                |_| "one".to_owned(),
                |text| text.to_string_lossy().into_owned()
            )
        ))
    })
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(number.into());
    }
    object.extract::<u64>().map(Number::from).map_err(|_| {
        invalid(format!(
            "expected integers of 64 bits, found {object}; store it as a string or a float"
        ))
    })
}

static NUMPY: PyOnceLock<[Py<PyType>; 2]> = PyOnceLock::new();

/// Imports NumPy's base classes when the module is loaded, as in `memory::register`.
pub fn register(py: Python<'_>) -> PyResult<()> {
    numpy_classes(py).map(|_| ())
}

fn numpy_classes(py: Python<'_>) -> PyResult<&[Py<PyType>; 2]> {
    NUMPY.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        let class = |name| PyResult::Ok(numpy.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok([class("generic")?, class("ndarray")?])
    })
}

fn is_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let [generic, array] = numpy_classes(object.py())?;
    Ok(object.is_instance(generic.bind(object.py()))?
        || object.is_instance(array.bind(object.py()))?)
}

/// Whether NumPy values are times, which are integers as Python objects in some units.
fn is_time(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    Ok(kind == "M" || kind == "m")
}

fn invalid(message: String) -> PyErr {
    exception(&ambar::Error::invalid(message))
}
