//! A thread that encodes and writes the shards of a rank while the program computes.
//!
//! The program's thread queues values; the thread of this module owns the [`Output`]. The bytes of queued
//! copies are limited: the program waits while the queue is full. After an error the thread discards what is
//! queued, so that borrowed values are released soon.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::encoding::Encoding;
use super::shard_output::Output;
use crate::array::Region;
use crate::container::SharedEntry;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{Process, start_threads};
use crate::ranks::message::Failure;

/// Values of the program.
pub(in crate::ranks) enum Values<'a> {
    /// Borrowed until the call returns.
    Call(&'a [u8]),
    /// Borrowed until the commit or the end of the writer.
    Commit(&'static [u8]),
    Owned(Vec<u8>),
}

impl Values<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Call(bytes) | Self::Commit(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    /// Values that outlive the call, and the bytes of memory that they need.
    fn kept(self) -> Result<(Values<'static>, usize)> {
        let owned = match self {
            Self::Commit(bytes) => return Ok((Values::Commit(bytes), 0)),
            Self::Owned(bytes) => bytes,
            Self::Call(bytes) => {
                let mut owned = Vec::new();
                owned.try_reserve_exact(bytes.len()).map_err(|_| {
                    Error::limit("cannot allocate memory for queued values; write smaller regions")
                })?;
                owned.extend_from_slice(bytes);
                owned
            }
        };
        let bytes = owned.len();
        Ok((Values::Owned(owned), bytes))
    }
}

/// Shards to encode and write.
pub(in crate::ranks) struct ShardJob<'a> {
    pub array: Arc<Encoding>,
    pub region: Region,
    pub values: Values<'a>,
    pub shards: Vec<Vec<u64>>,
}

impl ShardJob<'_> {
    /// Does the job on this thread.
    pub fn run(&self, output: &mut Output) -> Result<()> {
        let (region, values) = (&self.region, self.values.bytes());
        output.write(&self.array, region, values, &self.shards)
    }
}

enum Job {
    Write(ShardJob<'static>),
    /// The end of a step, with the maximum bytes of late entries.
    Finish(u64),
}

#[derive(Default)]
struct State {
    /// Jobs, and the bytes of memory that each needs.
    jobs: VecDeque<(Job, usize)>,
    /// The bytes of the queued jobs and of the running one.
    bytes: usize,
    is_running: bool,
    is_closed: bool,
    failure: Option<Failure>,
    /// The entries of the ended step.
    finished: Option<Vec<SharedEntry>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_done`.
    fn wait(&self, is_done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| !is_done(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread, and its queue.
pub(in crate::ranks) struct Background {
    shared: Arc<Shared>,
    /// Maximum bytes of queued copies.
    limit: usize,
    process: Process,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts the thread. A value larger than `limit` bytes is queued alone.
    pub fn start(output: Output, limit: u64) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let builder = std::thread::Builder::new().name("ambar-background".into());
        let theirs = Arc::clone(&shared);
        let thread = start_threads(|| builder.spawn(move || serve(&theirs, output)));
        let thread = thread.map_err(|error| {
            let message = format!("starting a thread: {error}; end other threads");
            Error::new(ErrorKind::Io, message)
        })?;
        Ok(Self {
            shared,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            process: Process::current(),
            thread: Some(thread),
        })
    }

    /// The error of an earlier job.
    pub fn failure(&self) -> Result<Option<Failure>> {
        // The lock may be held by a thread that a forked child does not have.
        self.process.check()?;
        Ok(self.shared.lock().failure.clone())
    }

    /// Queues a job; waits while the queue is full.
    pub fn write(&self, job: ShardJob<'_>) -> Result<()> {
        let ShardJob {
            array,
            region,
            values,
            shards,
        } = job;
        let room = |bytes: usize| {
            self.shared.wait(|state| {
                let is_full = state.bytes > 0 && state.bytes.saturating_add(bytes) > self.limit;
                !is_full || state.failure.is_some()
            })
        };
        self.process.check()?;
        if let Values::Call(bytes) = values {
            // Waits before the copy is made.
            drop(room(bytes.len()));
        }
        let (values, bytes) = values.kept()?;
        let job = ShardJob {
            array,
            region,
            values,
            shards,
        };
        let mut state = room(bytes);
        if let Some(failure) = &state.failure {
            return Err(failure.error());
        }
        state.bytes += bytes;
        state.jobs.push_back((Job::Write(job), bytes));
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Queues the end of a step.
    pub fn finish(&self, longest: u64) -> Result<()> {
        self.process.check()?;
        self.shared.lock().jobs.push_back((Job::Finish(longest), 0));
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Whether `finished` returns without waiting.
    pub fn is_finished(&self) -> Result<bool> {
        self.process.check()?;
        let state = self.shared.lock();
        Ok(state.finished.is_some() || (state.failure.is_some() && !state.is_running))
    }

    /// Waits for the end of the step, and returns its entries.
    pub fn finished(&self) -> Result<Vec<SharedEntry>> {
        self.process.check()?;
        let is_done = |state: &State| {
            state.finished.is_some() || (state.failure.is_some() && !state.is_running)
        };
        let mut state = self.shared.wait(is_done);
        match &state.failure {
            Some(failure) => Err(failure.error()),
            None => Ok(state.finished.take().unwrap_or_default()),
        }
    }

    /// Discards what is queued, and waits until no values are in use.
    pub fn cancel(&self) {
        if !self.process.is_current() {
            return;
        }
        let mut state = self.shared.lock();
        let discarded = std::mem::take(&mut state.jobs);
        state.bytes -= discarded.iter().map(|(_, bytes)| bytes).sum::<usize>();
        drop(state);
        drop(discarded);
        drop(self.shared.wait(|state| !state.is_running));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A forked child does not have the thread, which may hold the lock.
            std::mem::forget((Arc::clone(&self.shared), self.thread.take()));
            return;
        }
        self.cancel();
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // Its errors are in the state.
            let _ = thread.join();
        }
    }
}

/// Does the jobs of the queue until the writer is closed.
fn serve(shared: &Shared, mut output: Output) {
    loop {
        let mut state = shared.wait(|state| state.is_closed || !state.jobs.is_empty());
        let Some((job, bytes)) = state.jobs.pop_front() else {
            return;
        };
        if state.failure.is_some() {
            state.bytes -= bytes;
            shared.changed.notify_all();
            continue;
        }
        state.is_running = true;
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(|| match &job {
            Job::Write(job) => match job.run(&mut output) {
                Ok(()) => Ok(None),
                Err(error) => Err(error.at_node(&job.array.name)),
            },
            Job::Finish(longest) => output.finish(*longest).map(Some),
        }));
        // Owned values are freed, and borrowed ones no longer used, before the program is informed.
        drop(job);
        let done = done.unwrap_or_else(|_| {
            Err(Error::invalid(
                "a bug in ambar; please report it with the message printed above",
            ))
        });
        let mut state = shared.lock();
        match done {
            Ok(None) => {}
            Ok(Some(entries)) => state.finished = Some(entries),
            Err(error) => {
                let error = error.in_file(output.path().display());
                state.failure = Some(Failure::new(&error));
            }
        }
        state.is_running = false;
        state.bytes -= bytes;
        drop(state);
        shared.changed.notify_all();
    }
}
