//! The end of a step: all ranks seal, rank 0 commits, all learn what became of it.

use std::borrow::Cow;

use super::message::{self, Failure, Index, Outcome};
use super::writer::RankWriter;
use crate::container::{Foreign, entry_bytes};
use crate::error::{Error, Result};
use crate::parallel;

impl RankWriter {
    /// Encodes what is left, brings all of this rank's data to the disk, and says what was written:
    /// bytes for rank 0. A failure is in the bytes, too, so that nobody waits in vain.
    ///
    /// # Errors
    /// `Invalid` where the bytes cannot be made.
    pub fn seal(&mut self) -> Result<Vec<u8>> {
        let sealed = match &self.failure {
            Some(failure) => Err(failure.error()),
            None => self.seal_here(),
        };
        let ranges = self.told();
        let index = match self.noting(sealed) {
            Ok(entries) => Index {
                failure: None,
                entries,
                ranges,
            },
            Err(error) => Index {
                failure: Some(Failure::new(&error)),
                entries: Vec::new(),
                ranges: Vec::new(),
            },
        };
        message::encode(&index)
    }

    fn seal_here(&mut self) -> Result<Vec<Foreign>> {
        if let Some((rank, _)) = self.outbox.iter().find(|(_, bytes)| !bytes.is_empty()) {
            let message = format!("values for rank {rank} were not given to it");
            return Err(Error::invalid(message));
        }
        for mut array in std::mem::take(&mut self.arrays).into_iter().flatten() {
            for (shard, waiting) in array.pending.take() {
                self.encode(&array, &shard, &waiting)
                    .map_err(|error| error.at_node(&array.name))?;
            }
        }
        for (index, (key, parts)) in (0..).zip(std::mem::take(&mut self.late)) {
            let len = parts.iter().map(|part| part.len() as u64).sum();
            let bytes = entry_bytes(&key, len);
            if bytes > self.longest {
                let message = format!("{bytes} bytes became of a shard of less than half as many");
                return Err(Error::limit(message).at_node(key));
            }
            let ranks = (self.rank, self.options.ranks);
            let offset = self.extents.behind(ranks, index, self.longest)?;
            let parts = parts.into_iter().map(Cow::Owned).collect();
            self.file.write(offset, key, parts)?;
        }
        self.file.finish()
    }

    /// Commits what all ranks have sealed, by their bytes in the order of the ranks, or nothing where
    /// one has failed: bytes for all ranks. Rank 0 does it.
    ///
    /// # Errors
    /// `Invalid` on another rank, or where the bytes cannot be made.
    pub fn commit(&mut self, indices: &[&[u8]]) -> Result<Vec<u8>> {
        self.store()?;
        let committed = self.commit_here(indices);
        let outcome = match committed {
            Ok(next) => Outcome {
                failure: None,
                next,
            },
            Err(error) => Outcome {
                failure: Some(Failure::new(&error)),
                next: 0,
            },
        };
        message::encode(&outcome)
    }

    fn commit_here(&mut self, indices: &[&[u8]]) -> Result<u64> {
        if indices.len() != self.options.ranks as usize {
            let (found, ranks) = (indices.len(), self.options.ranks);
            return Err(Error::invalid(format!("{found} indices of {ranks} ranks")));
        }
        let (mut all, mut told) = (Vec::new(), Vec::new());
        for (rank, bytes) in indices.iter().enumerate() {
            let index: Index = message::decode(bytes, "index of a rank")?;
            if let Some(failure) = index.failure {
                return Err(failure.of_rank(rank).error());
            }
            all.extend(index.entries);
            told.push(index.ranges);
        }
        let gathered = std::mem::take(&mut self.gathered);
        let threads = self.options.threads;
        let store = self.store()?;
        store.adopt(all)?;
        let end = parallel::with_threads(Some(threads), || {
            for (number, gathered) in gathered.into_iter().enumerate() {
                let of_ranks = told.iter().filter_map(|ranges| ranges.get(number));
                gathered.finish(store, of_ranks.map(Vec::as_slice))?;
            }
            store.commit()?;
            Ok(store.share()?.end)
        })?;
        self.extents.next_base(end)
    }

    /// Learns from rank 0's bytes what became of the commit; rank 0 does so, too.
    ///
    /// # Errors
    /// What kept any rank from committing; this writer is then of no further use, and the last
    /// commit stands.
    pub fn conclude(&mut self, outcome: &[u8]) -> Result<()> {
        let outcome: Result<Outcome> = message::decode(outcome, "outcome of a commit");
        let next = outcome.and_then(|outcome| match outcome.failure {
            Some(failure) => Err(failure.error()),
            None => Ok(outcome.next),
        });
        let next = self.noting(next)?;
        self.gathered.clear();
        self.extents.rebase(next);
        self.longest = 0;
        Ok(())
    }

    /// Commits, where there is one rank.
    ///
    /// # Errors
    /// As `conclude`; `Invalid` where there are several.
    pub fn commit_alone(&mut self) -> Result<()> {
        let index = self.seal()?;
        let outcome = self.commit(&[&index])?;
        self.conclude(&outcome)
    }
}
