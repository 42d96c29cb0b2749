//! The threads that send requests to object stores, started on first use.

use std::future::Future;
use std::sync::{Arc, Mutex, mpsc};

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Result};
use crate::process::{PerProcess, start_threads};

/// Threads that move bytes between sockets and memory. Two saturate most networks; decoding has
/// other threads.
const THREADS: usize = 2;

/// The runtime. A forked child has none of its parent's threads, so it starts its own.
static RUNTIME: PerProcess<Mutex<Option<Arc<Runtime>>>> = PerProcess::new();

/// Runs `future` on these threads and waits for its result. Can be called from any thread, including those
/// of another runtime.
///
/// # Errors
/// `Io` if the system gives no threads, or the future panicked.
pub fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    Task::start(future)?.wait()
}

/// A future that runs on these threads. Dropping it cancels the future.
pub struct Task<T> {
    result: mpsc::Receiver<T>,
    handle: AbortHandle,
}

impl<T: Send + 'static> Task<T> {
    /// Starts `future`.
    ///
    /// # Errors
    /// `Io` if the system gives no threads.
    pub fn start(future: impl Future<Output = T> + Send + 'static) -> Result<Self> {
        let (sender, result) = mpsc::sync_channel(1);
        let task = runtime()?.spawn(async move {
            // Sending fails only if the receiver is gone: ignore it.
            let _ = sender.send(future.await);
        });
        let handle = task.abort_handle();
        Ok(Self { result, handle })
    }

    /// Waits for the result. Can be called from any thread.
    ///
    /// # Errors
    /// `Io` if the future panicked.
    pub fn wait(self) -> Result<T> {
        let stopped = |_| {
            Error::new(
                ErrorKind::Io,
                "a request was cancelled, because its thread has stopped; try again",
            )
        };
        self.result.recv().map_err(stopped)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

fn runtime() -> Result<Arc<Runtime>> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(Arc::clone(runtime));
    }
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(THREADS)
        .thread_name("ambar-net")
        .enable_io()
        .enable_time();
    let new = start_threads(|| builder.build())
        .map_err(|error| Error::new(ErrorKind::Io, format!("starting threads: {error}")))?;
    let new = Arc::new(new);
    *runtime = Some(Arc::clone(&new));
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_returns_results_and_panics_are_errors() {
        assert_eq!(wait(async { 7 }).unwrap(), 7);
        let failed = wait(async { panic!("on purpose") });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn another_runtime_can_call() {
        let outer = Builder::new_current_thread().build().unwrap();
        assert_eq!(outer.block_on(async { wait(async { 7 }).unwrap() }), 7);
    }
}
