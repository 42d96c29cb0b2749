//! The end of a step: all ranks seal, rank 0 commits, and all ranks conclude.

use std::collections::HashMap;

use super::declarations::definition;
use super::message::{self, Failure, Outcome, RankIndex};
use super::writer::{Ending, RankWriter, Sink};
use crate::container::SharedEntry;
use crate::error::{Error, Result};
use crate::parallel;

impl RankWriter {
    /// Begins the end of this rank's part of the step, after messages were exchanged. With a queue it returns
    /// before values are encoded and durable, and until [`RankWriter::seal`] the program can do other work, but
    /// not call other functions of this writer.
    ///
    /// # Errors
    /// `Invalid` if messages were not exchanged; `Io`; an earlier error. `seal` reports them to rank 0.
    pub fn begin_seal(&mut self) -> Result<()> {
        self.check_usable()?;
        let begun = self.begin_seal_here();
        self.record_failure(begun)
    }

    fn begin_seal_here(&mut self) -> Result<()> {
        if let Some((rank, _)) = self.messages.iter().find(|(_, bytes)| !bytes.is_empty()) {
            let message = format!(
                "the message for rank {rank} was not sent; exchange messages before sealing"
            );
            return Err(Error::invalid(message));
        }
        let arrays = std::mem::take(&mut self.arrays);
        self.first_id = (self.first_id)
            .checked_add(arrays.len() as u32)
            .ok_or_else(|| {
                Error::limit("the writer has declared 2^32 arrays, the limit; open another")
            })?;
        let written = arrays.iter().flatten().map(|array| array.written);
        self.written = written.collect();
        for mut array in arrays.into_iter().flatten() {
            for (shard, values) in array.incomplete.take() {
                self.encode(values.job(&array.encoding, &shard))
                    .map_err(|error| error.at_node(&array.encoding.name))?;
            }
        }
        self.ending = Some(match &mut self.sink {
            Sink::Direct(output) => Ending::Done(output.finish(self.longest)?),
            Sink::Background(background) => {
                background.finish(self.longest)?;
                Ending::Running
            }
        });
        Ok(())
    }

    /// Whether [`RankWriter::seal`] returns without waiting for the background; true without one, and if no
    /// end of a step has begun.
    ///
    /// # Errors
    /// `Invalid` in a forked child.
    pub fn is_sealed(&self) -> Result<bool> {
        match (&self.ending, &self.sink) {
            (Some(Ending::Running), Sink::Background(background)) => background.is_finished(),
            _ => Ok(true),
        }
    }

    /// Checks that the end of a step has begun.
    ///
    /// # Errors
    /// `Invalid` otherwise; an earlier error.
    pub fn check_begun(&self) -> Result<()> {
        match (&self.failure, &self.ending) {
            (Some(failure), _) => Err(failure.again()),
            (None, None) => Err(Error::invalid(
                "no commit was begun; begin one before waiting",
            )),
            (None, Some(_)) => Ok(()),
        }
    }

    /// Waits until all values of this rank are encoded and durable, and returns their index as bytes for rank 0.
    /// The bytes also report failures, so that no rank waits forever. Begins the end of the step unless
    /// [`RankWriter::begin_seal`] did.
    ///
    /// # Errors
    /// `Invalid` if the index cannot be encoded.
    pub fn seal(&mut self) -> Result<Vec<u8>> {
        let mut index = RankIndex {
            failure: None,
            entries: Vec::new(),
            written: Vec::new(),
            ranges: Vec::new(),
        };
        let sealed = self.seal_here();
        match self.record_failure(sealed) {
            Ok(entries) => {
                index.entries = entries;
                index.written = std::mem::take(&mut self.written);
                index.ranges = self.reported_ranges();
            }
            Err(_) => {
                if let Sink::Background(background) = &self.sink {
                    background.cancel();
                }
                index.failure = self.failure.clone();
            }
        }
        let definitions = definition::encode(&std::mem::take(&mut self.definitions))?;
        index.encode(&definitions)
    }

    fn seal_here(&mut self) -> Result<Vec<SharedEntry>> {
        if let Some(failure) = &self.failure {
            return Err(failure.error());
        }
        if self.ending.is_none() {
            self.begin_seal()?;
        }
        match (self.ending.take(), &self.sink) {
            (Some(Ending::Done(entries)), _) => Ok(entries),
            (_, Sink::Background(background)) => background.finished(),
            (_, Sink::Direct(_)) => Ok(Vec::new()),
        }
    }

    /// Commits the sealed entries of all ranks, or nothing if one has failed. Rank 0 calls it with the bytes of
    /// all ranks in their order; the result is for all ranks.
    ///
    /// # Errors
    /// `Invalid` on another rank, or if the outcome cannot be encoded.
    pub fn commit(&mut self, indices: &[&[u8]]) -> Result<Vec<u8>> {
        self.store()?;
        let committed = self.commit_here(indices);
        let outcome = match self.record_failure(committed) {
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
            return Err(Error::invalid(format!(
                "{found} indices were given; expected one of each of {ranks} ranks"
            )));
        }
        let indices = indices.iter().map(|bytes| RankIndex::decode(bytes));
        let indices = indices.collect::<Result<Vec<_>>>()?;
        check_alike(&indices)?;
        self.check_usable()?;
        let expected = std::mem::take(&mut self.expected);
        let gathered = std::mem::take(&mut self.gathered);
        let threads = self.options.threads;
        let store = self.store()?;
        for (number, (name, expected)) in expected.into_iter().enumerate() {
            let written = indices
                .iter()
                .filter_map(|(index, _)| index.written.get(number));
            let written = written.fold(0, |all: u64, count| all.saturating_add(*count));
            if written < expected {
                store.note_unwritten(&name, expected - written)?;
            }
        }
        let (mut all, mut reported) = (Vec::new(), Vec::new());
        for (index, _) in indices {
            all.extend(index.entries);
            reported.push(index.ranges);
        }
        store.adopt(all, 0)?;
        let end = parallel::with_threads(Some(threads), || {
            for (number, gathered) in gathered.into_iter().enumerate() {
                let of_ranks = reported.iter().filter_map(|ranges| ranges.get(number));
                gathered.finish(store, of_ranks.map(Vec::as_slice))?;
            }
            store.commit()?;
            Ok(store.share()?.end)
        })?;
        self.extents.lock().next_base(end)
    }

    /// Reads the outcome of the commit from rank 0's bytes; every rank calls it.
    ///
    /// # Errors
    /// The failure of any rank; this writer is then unusable, and the last commit remains.
    pub fn conclude(&mut self, outcome: &[u8]) -> Result<()> {
        let outcome: Result<Outcome> = message::decode(outcome, "outcome of a commit");
        let next = outcome.and_then(|outcome| match outcome.failure {
            Some(failure) => Err(failure.error()),
            None => Ok(outcome.next),
        });
        let next = self.record_failure(next)?;
        self.gathered.clear();
        self.expected.clear();
        self.extents.lock().rebase(next);
        self.longest = 0;
        Ok(())
    }

    /// Commits the store of a single rank.
    ///
    /// # Errors
    /// As `conclude`; `Invalid` for several ranks.
    pub fn commit_alone(&mut self) -> Result<()> {
        let index = self.seal()?;
        let outcome = self.commit(&[&index])?;
        self.conclude(&outcome)
    }
}

/// Checks that no rank has failed, all have the same definitions, and no two have written the same values.
fn check_alike(indices: &[(RankIndex, &[u8])]) -> Result<()> {
    let failed = |received: bool| {
        let failures = indices.iter().enumerate();
        let mut failures =
            failures.filter_map(|(rank, (index, _))| Some((rank, index.failure.clone()?)));
        failures.find(|(_, failure)| !failure.received || received)
    };
    if let Some((rank, failure)) = failed(false) {
        return Err(failure.of_rank(rank).error());
    }
    for (rank, (_, definitions)) in indices.iter().enumerate().skip(1) {
        definition::compare(indices[0].1, definitions, rank)?;
    }
    if let Some((rank, failure)) = failed(true) {
        return Err(failure.of_rank(rank).error());
    }
    let mut writers: HashMap<&str, usize> = HashMap::new();
    for (rank, (index, _)) in indices.iter().enumerate() {
        for entry in &index.entries {
            if let Some(other) = writers.insert(&entry.key, rank) {
                let message = format!(
                    "rank {other} and rank {rank} have written the same values: their blocks overlap; \
                     give each value to one rank"
                );
                return Err(Error::invalid(message).at_node(&entry.key));
            }
        }
    }
    Ok(())
}
