//! Writers, each used by one thread at a time and only in the process that opened it.

use std::sync::{Mutex, PoisonError, TryLockError};

use ambar::Error;
use ambar::process::Process;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// A writer until it is closed. Forked children of the process that opened it cannot use it.
pub struct ExclusiveWriter<T> {
    inner: Mutex<Option<T>>,
    process: Process,
}

impl<T: Send> ExclusiveWriter<T> {
    /// Wraps a writer that this process has opened.
    pub fn new(writer: T) -> Self {
        Self {
            inner: Mutex::new(Some(writer)),
            process: Process::current(),
        }
    }

    /// Checks that this is not a forked child, without waiting for a thread that uses the writer.
    ///
    /// # Errors
    /// `Invalid` in a forked child.
    pub fn check(&self) -> PyResult<()> {
        self.process.check().or_raise()
    }

    /// Calls `act` with the writer, with the GIL released.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> ambar::Result<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| self.with_detached(act)).or_raise()
    }

    /// Calls `act` with the writer. The caller does not hold the GIL.
    ///
    /// # Errors
    /// `Invalid` in a forked child, and if the writer is closed or has failed; errors of `act`.
    pub fn with_detached<R>(
        &self,
        act: impl FnOnce(&mut T) -> ambar::Result<R>,
    ) -> ambar::Result<R> {
        // A child may have inherited a lock that a thread of the parent holds.
        self.process.check()?;
        // A panic may have lost values.
        let mut inner = self.inner.lock().map_err(|_| {
            Error::invalid("this writer has failed; close it, then append with another")
        })?;
        let writer = inner
            .as_mut()
            .ok_or_else(|| Error::invalid("the writer is closed; open another"))?;
        act(writer)
    }

    /// Calls `act` with the writer, unless it is closed, has failed, or this is a forked child. Then closes it.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn finish(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> ambar::Result<()> + Send,
    ) -> PyResult<()> {
        let finish = || {
            if !self.process.is_current() {
                return Ok(());
            }
            let mut inner = match self.inner.lock() {
                Ok(inner) => inner,
                Err(_) => return Ok(()),
            };
            inner.as_mut().map_or(Ok(()), act)
        };
        let finished = py.detach(finish).or_raise();
        self.close(py);
        finished
    }

    /// Closes the writer. Uncommitted data are lost. A forked child closes its copies of the file descriptors, without
    /// effect on the parent.
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

impl<T> Drop for ExclusiveWriter<T> {
    fn drop(&mut self) {
        let is_locked = matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock));
        if is_locked {
            // In a forked child, a thread of the parent may have been changing the writer.
            std::mem::forget(std::mem::replace(&mut self.inner, Mutex::new(None)));
        }
    }
}
