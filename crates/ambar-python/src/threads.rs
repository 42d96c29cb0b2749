//! Calls of the library without the GIL, on threads of this process.

use ambar::parallel::with_threads;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// Runs `call` on `threads` threads, with the GIL released.
///
/// Parallel loops must run here or in `Progress::run`. Outside of a pool of `with_threads` they would use
/// rayon's global pool, whose threads do not exist in a forked child, which would wait for them forever.
pub fn detached<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    call: impl FnOnce() -> ambar::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| with_threads(threads, call)).or_raise()
}
