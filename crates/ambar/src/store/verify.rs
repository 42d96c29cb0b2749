//! Verifies all checksums of a store.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{NodeKind, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;

/// The result of [`Store::verify`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bytes of entries that were read and checked.
    pub bytes: u64,
    /// Entries of the container that were checked.
    pub entries: u64,
    /// Chunks whose own checksum was checked.
    pub chunks: u64,
    /// Bytes of an unfinished write after the last commit, which a killed writer left.
    pub unfinished: u64,
    /// The damage found, one sentence each; empty for an intact store.
    pub damage: Vec<String>,
}

/// Reports progress to the caller, who may cancel.
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
    /// Verifies every checksum of the store on the threads of the current pool: of the container's records,
    /// of each entry, of each shard's index and of each chunk. Nothing is decoded. `progress` is called
    /// with (bytes checked, bytes in total) from any thread, and cancels by returning `false`.
    ///
    /// # Errors
    /// `Io`, and `Invalid` if `progress` cancelled. Damage is reported, and is not an error.
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
        // An Io error ends the check; other errors are reported, and the check continues.
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
        let mut unfinished = 0;
        note(
            self.container()
                .verify_records()
                .map(|bytes| unfinished = bytes),
        )?;
        let total = match in_one_file {
            0 => 0,
            _ => self.container().usage()?.total,
        };
        if in_one_file > total {
            // Entries of a hostile file can share bytes, and exceed its length together.
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
            unfinished,
            damage,
        })
    }
}
