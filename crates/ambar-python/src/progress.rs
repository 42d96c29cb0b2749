//! Progress reported to a Python callable, and Ctrl-C listened for meanwhile.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::errors::OrRaise;

/// Time between two calls of the callable, so that a loop over small things is not slowed.
const INTERVAL: Duration = Duration::from_millis(50);

/// A callable `progress(done, total)`, called at once and at most twenty times a second. An exception it
/// raises, or Ctrl-C, ends the work.
pub struct Progress {
    callable: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    last: Option<Instant>,
    raised: Option<PyErr>,
}

impl Progress {
    /// Reports to `callable`, if there is one.
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

    /// Reports that `done` of `total` are done. `false`: end the work. May be called from any
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
        let called = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.callable {
                callable.call1(py, (done, total))?;
            }
            Ok(())
        });
        state.raised = called.err();
        state.raised.is_none()
    }

    /// The work's result; what the callable raised comes first.
    pub fn finish<T>(&self, result: ambar::Result<T>) -> PyResult<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.raised.take() {
            Some(error) => Err(error),
            None => result.or_raise(),
        }
    }
}
