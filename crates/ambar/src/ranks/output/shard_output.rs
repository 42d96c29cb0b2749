//! Encodes the shards of a rank, and writes them to its extents of the file.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::encoding::Encoding;
use super::extents::Extents;
use crate::array::Region;
use crate::container::{NewEntry, SharedEntry, SharedFile, entry_bytes};
use crate::error::{Error, Result};
use crate::parallel;

/// The extents of a rank, which arrays reserve while earlier values are written in the background.
#[derive(Clone)]
pub(in crate::ranks) struct SharedExtents(Arc<Mutex<Extents>>);

impl SharedExtents {
    pub fn new(extents: Extents) -> Self {
        Self(Arc::new(Mutex::new(extents)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Extents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a rank writes its shards. Used by one thread at a time.
pub(in crate::ranks) struct Output {
    file: SharedFile,
    extents: SharedExtents,
    threads: usize,
    rank: u32,
    ranks: u32,
    /// Entries for which the reserved extents were too short.
    late: Vec<NewEntry<'static>>,
}

impl Output {
    pub fn new(
        file: SharedFile,
        extents: SharedExtents,
        threads: usize,
        rank: u32,
        ranks: u32,
    ) -> Self {
        Self {
            file,
            extents,
            threads,
            rank,
            ranks,
            late: Vec::new(),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Encodes the shards of `region` that it contains, and writes them.
    pub fn write(
        &mut self,
        array: &Encoding,
        region: &Region,
        values: &[u8],
        shards: &[Vec<u64>],
    ) -> Result<()> {
        let threads = self.threads;
        let encoder = encoding(threads, || array.encoder(region.clone(), values))?;
        let is_plain = array.metadata.chain.is_plain(&array.metadata.dtype);
        for (done, shard) in shards.iter().enumerate() {
            let entry = encoding(threads, || encoder.encode(shard))?;
            let remaining = shards.len() - 1 - done;
            // Later shards should be adjacent: files are read faster in long runs. Raw shards have equal
            // lengths; for others, at most as much space is allocated as was used already.
            let more = if is_plain {
                remaining
            } else {
                remaining.min(done)
            };
            self.write_entry(entry, more)?;
        }
        Ok(())
    }

    /// Allocates bytes for an entry, to be followed by `more` of about its length, and writes it.
    fn write_entry(&mut self, entry: NewEntry<'_>, more: usize) -> Result<()> {
        let len = entry.parts.iter().map(|part| part.len() as u64).sum();
        let bytes = entry_bytes(&entry.key, len);
        let offset = self.extents.lock().allocate(bytes, more as u64)?;
        match offset {
            Some(offset) => self.file.write(offset, entry),
            None => {
                let parts = entry.parts.into_iter();
                let parts = parts.map(|part| Cow::Owned(part.into_owned())).collect();
                self.late.push(NewEntry { parts, ..entry });
                Ok(())
            }
        }
    }

    /// Writes the late entries, of at most `longest` bytes, and makes all entries durable. Returns those written
    /// since the last call.
    pub fn finish(&mut self, longest: u64) -> Result<Vec<SharedEntry>> {
        for (index, entry) in (0..).zip(std::mem::take(&mut self.late)) {
            let len = entry.parts.iter().map(|part| part.len() as u64).sum();
            let bytes = entry_bytes(&entry.key, len);
            if bytes > longest {
                let message = format!(
                    "an encoded shard has {bytes} bytes, more than twice its raw bytes; choose other codecs"
                );
                return Err(Error::limit(message).at_node(entry.key));
            }
            let extents = self.extents.lock();
            let offset = extents.overflow(self.rank, self.ranks, index, longest)?;
            drop(extents);
            self.file.write(offset, entry)?;
        }
        self.file.finish()
    }
}

/// Runs encoding work on `threads` threads. A single thread is the calling one, as always for calls of the
/// counter: other threads may not call MPI.
fn encoding<T: Send>(threads: usize, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match threads {
        1 => parallel::on_this_thread(f),
        threads => parallel::with_threads(Some(threads), f),
    }
}
