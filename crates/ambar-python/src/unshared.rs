//! Writers: used by one thread after the other, in the process that opened them.

use std::sync::{Mutex, PoisonError, TryLockError};

use ambar::Error;
use ambar::process::Process;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// A writer, until it is closed. A forked child of the process that opened it cannot use it.
pub struct Unshared<T> {
    inner: Mutex<Option<T>>,
    process: Process,
}

impl<T: Send> Unshared<T> {
    /// Holds a writer that this process has opened.
    pub fn new(writer: T) -> Self {
        Self {
            inner: Mutex::new(Some(writer)),
            process: Process::current(),
        }
    }

    /// Fails in a forked child. Does not wait for a thread that uses the writer.
    pub fn check(&self) -> PyResult<()> {
        self.process.check().or_raise()
    }

    /// Calls `act` with the writer, while other Python threads run.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> ambar::Result<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            // A thread of the parent may hold the lock that a child has inherited.
            self.process.check()?;
            // After a panic the writer may have lost values.
            let mut inner = self.inner.lock().map_err(|_| {
                Error::invalid("this writer has failed before; close it, then append")
            })?;
            let writer = inner
                .as_mut()
                .ok_or_else(|| Error::invalid("the writer is closed; open another"))?;
            act(writer)
        })
        .or_raise()
    }

    /// Closes the writer. What was not committed is lost. In a forked child it closes the child's copies of
    /// the file descriptors, and changes nothing for the parent.
    pub fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let closed = if self.process.is_current() {
                let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
                inner.take()
            } else {
                self.inner
                    .try_lock()
                    .ok()
                    .and_then(|mut inner| inner.take())
            };
            drop(closed);
        });
    }
}

impl<T> Drop for Unshared<T> {
    fn drop(&mut self) {
        let is_locked = matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock));
        if is_locked {
            // In a forked child: a thread of the parent was changing the writer, which may be half changed.
            std::mem::forget(std::mem::replace(&mut self.inner, Mutex::new(None)));
        }
    }
}
