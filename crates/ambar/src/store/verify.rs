//! Verifying a store: every checksum there is.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{NodeKind, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;

/// What [`Store::verify`] found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bytes of entries that were read and checked.
    pub bytes: u64,
    /// Entries of the container that were checked.
    pub entries: u64,
    /// Chunks whose own checksum was checked.
    pub chunks: u64,
    /// What is damaged, one sentence each; empty for a sound store.
    pub damage: Vec<String>,
}

/// Counts bytes for the caller, and learns from it whether to go on.
struct Progress<'a> {
    done: AtomicU64,
    total: u64,
    stopped: AtomicBool,
    call: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

impl Progress<'_> {
    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !(self.call)(done.min(self.total), self.total) {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn check(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::invalid("the verification was stopped by its caller"));
        }
        Ok(())
    }
}

impl Store {
    /// Checks every checksum of the store, on the threads of the current pool, and gives what was
    /// found: of the container's records, of each entry as a whole, of each shard's index and of each chunk. Nothing is
    /// decoded. `progress` is called with (bytes checked, bytes in all), from any thread, and ends
    /// the work by returning `false`.
    ///
    /// # Errors
    /// `Io`, and `Invalid` where `progress` ended the work; damage is not an error here but in the
    /// report.
    pub fn verify(&self, progress: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Report> {
        let keys = self.container().keys()?;
        let (mut bytes, mut in_one_file) = (0u64, 0u64);
        for key in &keys {
            let Some(entry) = self.container().entry(key)? else {
                continue;
            };
            bytes = bytes.saturating_add(entry.len());
            let is_in_one_file = entry.file_offset().is_some();
            in_one_file = in_one_file.saturating_add(if is_in_one_file { entry.len() } else { 0 });
        }
        let damage = Mutex::new(Vec::new());
        // Io ends the work; whatever else is wrong with the file is noted, and the rest checked.
        let note = |result: Result<()>| match result {
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => {
                damage
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(error.to_string());
                Ok(())
            }
            Ok(()) => Ok(()),
        };
        let progress = Progress {
            done: AtomicU64::new(0),
            total: bytes.saturating_mul(2).max(1),
            stopped: AtomicBool::new(false),
            call: progress,
        };
        note(self.container().verify_records())?;
        let total = match in_one_file {
            0 => 0,
            _ => self.container().usage()?.total,
        };
        if in_one_file > total {
            // Entries that share bytes can be any number of times as long as the file.
            note(Err(Error::corrupt(format!(
                "the entries have {bytes} bytes, but the file only {total}: some of them share bytes, so that \
                 none is verified; restore the store from a copy"
            ))
            .in_file(self.location())))?;
            return Ok(Report {
                damage: damage.into_inner().unwrap_or_else(PoisonError::into_inner),
                ..Report::default()
            });
        }
        parallel::try_for_each(keys.len(), |index| {
            progress.check()?;
            note(
                self.container()
                    .verify(&keys[index], &mut |bytes| progress.add(bytes)),
            )
        })?;
        let chunks = AtomicU64::new(0);
        for (path, kind) in self.nodes()? {
            if kind == NodeKind::Group {
                note(self.group(&path).map(|_| ()))?;
                continue;
            }
            match self.array(&path) {
                Err(error) => note(Err(error))?,
                Ok(array) => {
                    let checked = array.verify(
                        &|bytes| {
                            progress.add(bytes);
                            progress.check()
                        },
                        &note,
                    )?;
                    chunks.fetch_add(checked, Ordering::Relaxed);
                }
            }
        }
        progress.check()?;
        (progress.call)(progress.total, progress.total);
        let mut damage = damage.into_inner().unwrap_or_else(PoisonError::into_inner);
        damage.sort();
        let entries = keys.len() as u64;
        Ok(Report {
            bytes,
            entries,
            chunks: chunks.into_inner(),
            damage,
        })
    }
}
