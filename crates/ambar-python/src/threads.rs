//! Calls of the library: without Python's lock, and on threads that this process has.

use ambar::parallel::with_threads;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// Runs `call` while other Python threads run, on as many threads as the caller asked for.
///
/// What may loop in parallel goes through here or through `Progress::run`: outside of a pool of
/// `with_threads` it would use rayon's global one, whose threads a forked child does not have and
/// would wait for.
pub fn detached<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    call: impl FnOnce() -> ambar::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| with_threads(threads, call)).or_raise()
}
