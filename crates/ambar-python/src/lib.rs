//! Python bindings: each function takes Python's values, calls the library, gives Python's back.

mod arrow;
mod errors;
mod memory;

use pyo3::prelude::*;

/// The compiled part of the package `ambar`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add_function(wrap_pyfunction!(arrow::arrow_stream, module)?)?;
    Ok(())
}
