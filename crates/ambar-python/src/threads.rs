//! Calls of the library without the GIL, on threads of this process.

use ambar::Error;
use ambar::parallel::{self, MAX_THREADS, check_threads};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::errors::{OrRaise, exception};

/// A checked number of threads: the argument `threads` of all functions.
#[derive(Clone, Copy)]
pub struct Threads(pub usize);

impl<'py> FromPyObject<'_, 'py> for Threads {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // True is 1 for Python.
        let is_bool = value.is_instance_of::<PyBool>();
        let Some(threads) = value.extract::<usize>().ok().filter(|_| !is_bool) else {
            let message = format!(
                "invalid number of threads: {}; expected an integer from 1 to {MAX_THREADS}, or None for all cores",
                value.repr()?
            );
            return Err(exception(&Error::invalid(message)));
        };
        check_threads(threads).or_raise()?;
        Ok(Self(threads))
    }
}

/// Checks the argument `threads` of a function in Python.
#[pyfunction(name = "check_threads")]
#[pyo3(signature = (threads))]
pub fn check_argument(threads: Option<Threads>) {
    // The conversion of the argument has checked it.
    let _ = threads;
}

/// Runs `call` on `threads` threads; the GIL is released.
pub fn with_threads<T: Send>(
    threads: Option<Threads>,
    call: impl FnOnce() -> ambar::Result<T> + Send,
) -> ambar::Result<T> {
    parallel::with_threads(threads.map(|threads| threads.0), call)
}

/// Releases the GIL, and runs `call` on `threads` threads.
///
/// Parallel loops must run here or in `Progress::run`. Outside of a pool of `with_threads` they would use
/// rayon's global pool, whose threads do not exist in a forked child, which would wait for them forever.
pub fn detached<T: Send>(
    py: Python<'_>,
    threads: Option<Threads>,
    call: impl FnOnce() -> ambar::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| with_threads(threads, call)).or_raise()
}
