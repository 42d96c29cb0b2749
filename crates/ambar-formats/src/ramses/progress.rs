//! Counts files read, and tells the caller.

use std::sync::atomic::{AtomicU64, Ordering};

use ambar::Result;

use super::request::Progress;

/// The count of a read.
pub struct Counter<'a> {
    progress: Option<&'a Progress<'a>>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Counter<'a> {
    /// Counts up to `total`.
    pub fn new(progress: Option<&'a Progress<'a>>, total: u64) -> Self {
        Self {
            progress,
            done: AtomicU64::new(0),
            total: AtomicU64::new(total),
        }
    }

    /// More files are to be read than was thought.
    pub fn more(&self, files: u64) {
        self.total.fetch_add(files, Ordering::Relaxed);
    }

    /// One more file is read.
    ///
    /// # Errors
    /// Those of the caller's function, which stop the read.
    pub fn step(&self) -> Result<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match self.progress {
            Some(progress) => progress(done, self.total.load(Ordering::Relaxed)),
            None => Ok(()),
        }
    }
}
