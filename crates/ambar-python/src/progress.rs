//! Progress reports to a Python callable, and handling of Ctrl-C.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ambar::process::start_threads;
use ambar::{Error, ErrorKind};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::threads::{Threads, with_threads};

/// Minimum time between two calls of the callable, so that loops over small items stay fast.
const INTERVAL: Duration = Duration::from_millis(50);

/// Converts the answer of a progress callback to an error if it cancels.
///
/// # Errors
/// `Interrupted`.
pub fn check_cancelled(go_on: bool) -> ambar::Result<()> {
    if go_on {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Interrupted, "interrupted"))
    }
}

/// A callable `progress(done, total)`, called at the start and at most twenty times a second. An exception from it, or
/// Ctrl-C, cancels the work.
pub struct Progress {
    callable: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    last: Option<Instant>,
    raised: Option<PyErr>,
}

impl Progress {
    /// Reports to `callable`, if it is given.
    pub fn new(callable: Option<Py<PyAny>>) -> Self {
        let state = State {
            last: None,
            raised: None,
        };
        Self {
            callable,
            state: Mutex::new(state),
        }
    }

    /// Runs `work` on `threads` threads, while this thread handles Ctrl-C: Python handles signals on its main thread only.
    /// An exception of the callable takes precedence over the result of the work.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        threads: Option<Threads>,
        work: impl FnOnce() -> ambar::Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| {
            std::thread::scope(|scope| {
                let (working, done) = mpsc::channel::<()>();
                let worker = start_threads(|| {
                    scope.spawn(move || {
                        let _working = working;
                        with_threads(threads, work)
                    })
                });
                while done.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        self.state().raised = Some(error);
                    }
                }
                worker.join().unwrap_or_else(|panic| resume_unwind(panic))
            })
        });
        match self.state().raised.take() {
            Some(error) => Err(error),
            None => result.or_raise(),
        }
    }

    /// Reports that `done` of `total` units are done. Returns `false` to cancel the work. May be called from any
    /// thread, without the GIL.
    pub fn report(&self, done: u64, total: u64) -> bool {
        let Ok(mut state) = self.state.try_lock() else {
            return true;
        };
        if state.raised.is_some() {
            return false;
        }
        let recent = state.last.is_some_and(|last| last.elapsed() < INTERVAL);
        if recent && done < total {
            return true;
        }
        state.last = Some(Instant::now());
        if let Some(callable) = &self.callable {
            let called = Python::attach(|py| callable.call1(py, (done, total)).map(|_| ()));
            state.raised = called.err();
        }
        state.raised.is_none()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
