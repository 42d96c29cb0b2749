//! The library's errors as Python exceptions.

use ambar::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileExistsError, PyKeyError, PyMemoryError, PyOSError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    ambar,
    AmbarError,
    PyException,
    "Base class of the errors of ambar. The reference lists the built-in errors that ambar raises, too."
);
create_exception!(
    ambar,
    CorruptError,
    AmbarError,
    "The bytes are damaged, truncated or malicious: restore them from a copy."
);
create_exception!(
    ambar,
    UnsupportedError,
    AmbarError,
    "The file is valid, but needs a feature that this version lacks: use a newer version."
);
create_exception!(
    ambar,
    BusyError,
    AmbarError,
    "Another writer has the file open, or it changed while it was read: wait, or open it again."
);
create_exception!(
    ambar,
    LimitError,
    AmbarError,
    "A limit on memory or size was exceeded: request less."
);

/// Creates an exception that also derives from a built-in one, so that `except ValueError` and
/// `except KeyError` catch it.
fn with_second_base(
    py: Python<'_>,
    name: &str,
    base: &Bound<'_, PyAny>,
    doc: &str,
) -> PyResult<Py<PyAny>> {
    let namespace = pyo3::types::PyDict::new(py);
    namespace.set_item("__module__", "ambar")?;
    namespace.set_item("__doc__", doc)?;
    // `str` of a KeyError is the repr of its argument, which is unreadable for a sentence.
    namespace.set_item("__str__", py.get_type::<PyException>().getattr("__str__")?)?;
    let bases = (py.get_type::<AmbarError>(), base);
    let class = py
        .get_type::<pyo3::types::PyType>()
        .call1((name, bases, namespace))?;
    Ok(class.unbind())
}

static INVALID: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
static NOT_FOUND: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();

fn invalid(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    INVALID.get_or_try_init(py, || {
        let doc = "An argument or the order of calls is invalid: change the call.";
        with_second_base(
            py,
            "InvalidError",
            py.get_type::<PyValueError>().as_any(),
            doc,
        )
    })
}

fn not_found(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    NOT_FOUND.get_or_try_init(py, || {
        let doc = "The file, node, field or component does not exist: request another.";
        with_second_base(
            py,
            "NotFoundError",
            py.get_type::<PyKeyError>().as_any(),
            doc,
        )
    })
}

/// Adds the exceptions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AmbarError", py.get_type::<AmbarError>())?;
    module.add("CorruptError", py.get_type::<CorruptError>())?;
    module.add("UnsupportedError", py.get_type::<UnsupportedError>())?;
    module.add("BusyError", py.get_type::<BusyError>())?;
    module.add("LimitError", py.get_type::<LimitError>())?;
    module.add("InvalidError", invalid(py)?)?;
    module.add("NotFoundError", not_found(py)?)
}

/// The exception for `error`. An exception of a Python function that caused it is its cause, or is
/// raised itself (`is_raised_itself`). Errors of the operating system become an `OSError` with their
/// number, which Python maps to `FileNotFoundError`, `PermissionError` and so on.
pub fn exception(error: &ambar::Error) -> PyErr {
    let Some(cause) = error.cause::<PyErr>() else {
        return without_cause(error);
    };
    Python::attach(|py| {
        let cause = cause.clone_ref(py);
        if is_raised_itself(py, &cause) {
            return cause;
        }
        let raised = without_cause(error);
        raised.set_cause(py, Some(cause));
        raised
    })
}

/// Whether an exception needs no other one: those of this library, which name file and node; `KeyboardInterrupt` and others
/// that are not an `Exception`; a lack of memory; and errors of the operating system, which have a number. Those of HDF5 for
/// damaged files have none.
fn is_raised_itself(py: Python<'_>, error: &PyErr) -> bool {
    let number = || error.value(py).getattr("errno");
    !error.is_instance_of::<PyException>(py)
        || error.is_instance_of::<AmbarError>(py)
        || error.is_instance_of::<PyMemoryError>(py)
        || error.is_instance_of::<PyOSError>(py) && number().is_ok_and(|number| !number.is_none())
}

fn without_cause(error: &ambar::Error) -> PyErr {
    // The option `overwrite` of Rust and C is a mode in Python.
    let in_python = |text: &str| text.replace("`overwrite`", "mode=\"w\"");
    let message = in_python(&error.to_string());
    if let Some(number) = error.raw_os_error() {
        let file = Some(error.file().to_owned()).filter(|file| !file.is_empty());
        // Python writes the number before the message.
        let message = error
            .message()
            .replace(&format!(" (os error {number})"), "");
        return PyOSError::new_err((number, in_python(&message), file));
    }
    let dynamic = |class: fn(Python<'_>) -> PyResult<&Py<PyAny>>| {
        Python::attach(
            |py| match class(py).and_then(|class| class.call1(py, (&message,))) {
                Ok(value) => PyErr::from_value(value.into_bound(py)),
                Err(error) => error,
            },
        )
    };
    match error.kind() {
        ErrorKind::Corrupt => CorruptError::new_err(message),
        ErrorKind::Unsupported => UnsupportedError::new_err(message),
        ErrorKind::Invalid => dynamic(invalid),
        ErrorKind::NotFound => dynamic(not_found),
        // Of another rank, whose number was not sent.
        ErrorKind::Exists => PyFileExistsError::new_err(message),
        ErrorKind::Busy => BusyError::new_err(message),
        ErrorKind::Limit => LimitError::new_err(message),
        _ => AmbarError::new_err(message),
    }
}

/// Converts results of the library to results of Python.
pub trait OrRaise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for ambar::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
