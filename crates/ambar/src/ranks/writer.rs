//! The writer of one rank: joining the ranks, groups and attributes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::declarations::{DeclaredArray, Definition, GatheredRanges};
use super::layout::CachedOwners;
use super::message::{self, Failure, Invitation};
use super::output::{Background, Extents, Output, Placement, Reserve, SharedExtents};
use crate::container::{CreateOptions, Durability, SharedEntry, SharedFile};
use crate::error::{Error, Result};
use crate::metadata::Attributes;
use crate::parallel;
use crate::store::StoreWriter;
use serde_json::Value;

/// How ranks write together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankOptions {
    /// Number of ranks.
    pub ranks: u32,
    /// How extents of the file are assigned to ranks.
    pub placement: Placement,
    /// Extents start at multiples of it: the block or stripe size of the file system, in bytes.
    pub alignment: u64,
    /// Minimum bytes of an extent from the shared counter; 0 for 16 KiB, doubled each time up to 1 MiB.
    pub extent: u64,
    /// Threads that each rank encodes with.
    pub threads: usize,
    /// Maximum bytes of values that wait for a thread, which encodes and writes them in the background. It
    /// calls the counter of [`Placement::Counter`]. `None`: values are written before `write` returns.
    pub queue: Option<u64>,
}

impl Default for RankOptions {
    fn default() -> Self {
        Self {
            ranks: 1,
            placement: Placement::default(),
            alignment: 4096,
            extent: 0,
            threads: 1,
            queue: None,
        }
    }
}

/// Where encoded shards go.
pub(super) enum Sink {
    Direct(Output),
    Background(Background),
}

/// The end of a step that has begun.
pub(super) enum Ending {
    /// The entries of the step.
    Done(Vec<SharedEntry>),
    /// The background writes.
    Running,
}

/// The writer of one rank. See the [module](super) for the order of calls.
pub struct RankWriter {
    pub(super) rank: u32,
    pub(super) options: RankOptions,
    /// The writer of the store; `Some` only on rank 0.
    pub(super) store: Option<StoreWriter>,
    pub(super) path: PathBuf,
    pub(super) extents: SharedExtents,
    pub(super) sink: Sink,
    pub(super) ending: Option<Ending>,
    /// Arrays declared since the last commit, of which the first has the number `first_id`.
    pub(super) arrays: Vec<Option<DeclaredArray>>,
    pub(super) first_id: u32,
    /// The definitions since the last commit, which must be equal on all ranks.
    pub(super) definitions: Vec<Definition>,
    /// The names of these arrays, and their numbers of values of all ranks.
    pub(super) expected: Vec<(String, u64)>,
    /// The messages by rank: pieces of shards that it owns.
    pub(super) messages: BTreeMap<u32, Vec<u8>>,
    /// Numbers of values that this rank wrote of the arrays of the step that ends.
    pub(super) written: Vec<u64>,
    /// Maximum length of entries for which the reserved extents are too short.
    pub(super) longest: u64,
    pub(super) cached_owners: Vec<CachedOwners>,
    pub(super) gathered: Vec<GatheredRanges>,
    pub(super) failure: Option<Failure>,
}

impl RankWriter {
    /// Creates a store for `options.ranks` ranks, and returns the writer of rank 0.
    ///
    /// # Errors
    /// As [`StoreWriter::create`]; `Unsupported` for a directory; `Invalid` for no ranks.
    pub fn create(path: &Path, create: &CreateOptions, options: RankOptions) -> Result<Self> {
        Self::first(StoreWriter::create(path, create)?, options)
    }

    /// Opens the store at `path` to append with `options.ranks` ranks, and returns the writer of rank 0.
    ///
    /// # Errors
    /// As [`StoreWriter::append`]; `Unsupported` for a directory; `Invalid` for no ranks.
    pub fn append(path: &Path, durability: Durability, options: RankOptions) -> Result<Self> {
        Self::first(StoreWriter::append(path, durability)?, options)
    }

    fn first(mut store: StoreWriter, options: RankOptions) -> Result<Self> {
        if options.ranks == 0 {
            return Err(Error::invalid("0 ranks cannot write; give 1 or more"));
        }
        parallel::check_threads(options.threads)?;
        let share = store.share()?;
        let file = SharedFile::open(&share)?;
        Self::new(0, options, Some(store), file, share.end)
    }

    fn new(
        rank: u32,
        options: RankOptions,
        store: Option<StoreWriter>,
        file: SharedFile,
        end: u64,
    ) -> Result<Self> {
        let RankOptions {
            ranks,
            placement,
            alignment,
            extent,
            threads,
            queue,
        } = options;
        let extents = SharedExtents::new(Extents::new(ranks, placement, end, alignment, extent));
        let path = file.path().to_owned();
        let output = Output::new(file, extents.clone(), threads, rank, ranks);
        let sink = match queue {
            None => Sink::Direct(output),
            Some(limit) => Sink::Background(Background::start(output, limit)?),
        };
        Ok(Self {
            rank,
            options,
            store,
            path,
            extents,
            sink,
            ending: None,
            arrays: Vec::new(),
            first_id: 0,
            definitions: Vec::new(),
            expected: Vec::new(),
            messages: BTreeMap::new(),
            written: Vec::new(),
            longest: 0,
            cached_owners: Vec::new(),
            gathered: Vec::new(),
            failure: None,
        })
    }

    /// The message with which other ranks join, before anything is declared.
    ///
    /// # Errors
    /// `Invalid` on another rank than 0; `Io`.
    pub fn invitation(&mut self) -> Result<Vec<u8>> {
        let options = self.options;
        let share = self.store()?.share()?;
        message::encode(&Invitation {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ranks: options.ranks,
            share,
            alignment: options.alignment,
            extent: options.extent,
            reserved: options.placement == Placement::Reserved,
            threads: options.threads,
            queue: options.queue,
        })
    }

    /// Opens the writer of another rank, with rank 0's invitation.
    ///
    /// # Errors
    /// `Invalid` if the bytes are not an invitation, the rank is not invited, or another
    /// version of the library wrote them; `NotFound` if the file does not exist on this machine; `Io`.
    pub fn join(invitation: &[u8], rank: u32) -> Result<Self> {
        let invitation: Invitation = message::decode(invitation, "invitation to write")?;
        let ours = env!("CARGO_PKG_VERSION");
        if invitation.version != ours {
            let message = format!(
                "rank 0 has version {} of ambar, rank {rank} has {ours}; use one on all ranks",
                invitation.version
            );
            return Err(Error::invalid(message));
        }
        if rank == 0 || rank >= invitation.ranks {
            let message = format!(
                "rank {rank} is not invited; available: 1 to {}",
                invitation.ranks - 1
            );
            return Err(Error::invalid(message));
        }
        let options = RankOptions {
            ranks: invitation.ranks,
            placement: invitation.placement(),
            alignment: invitation.alignment,
            extent: invitation.extent,
            threads: invitation.threads,
            queue: invitation.queue,
        };
        let file = SharedFile::open(&invitation.share)?;
        Self::new(rank, options, None, file, invitation.share.end)
    }

    /// Sets the counter that all ranks share, which must be 0 when they join:
    /// `reserve` adds to it and returns its previous value.
    pub fn count_with(&mut self, reserve: Box<Reserve>) {
        self.extents.lock().count_with(reserve);
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How the ranks write.
    pub fn options(&self) -> RankOptions {
        self.options
    }

    /// Rank 0's writer of the store, for groups, attributes, and arrays that rank 0 writes.
    /// It may write to the file only after all ranks have sealed.
    ///
    /// # Errors
    /// `Invalid` on another rank.
    pub(crate) fn store(&mut self) -> Result<&mut StoreWriter> {
        let rank = self.rank;
        self.store
            .as_mut()
            .ok_or_else(|| Error::invalid(format!("this is rank {rank}; call this on rank 0 only")))
    }

    /// Replaces the attributes of a node, as [`StoreWriter::set_attributes`], on rank 0; does nothing on
    /// other ranks.
    ///
    /// # Errors
    /// As [`StoreWriter::set_attributes`].
    pub fn set_attributes(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.check_usable()?;
        let store = self.store.as_mut();
        let set = store.map_or(Ok(()), |store| store.set_attributes(path, attributes));
        self.record_failure(set)
    }

    /// Sets one attribute of a node, and keeps the others, on rank 0; does nothing on other ranks.
    ///
    /// # Errors
    /// As [`StoreWriter::set_attributes`].
    pub fn set_attribute(&mut self, path: &str, name: &str, value: Value) -> Result<()> {
        self.check_usable()?;
        let set = self.store.as_mut().map_or(Ok(()), |store| {
            let mut attributes = store.attributes(path)?.unwrap_or_default();
            attributes.insert(name.to_owned(), value);
            store.set_attributes(path, attributes)
        });
        self.record_failure(set)
    }

    /// Removes a node and its descendants, as [`StoreWriter::remove`], on rank 0; does nothing on other ranks.
    ///
    /// # Errors
    /// As [`StoreWriter::remove`]; `Invalid` for an array that was declared since the last commit.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.check_usable()?;
        let removed = match self.is_declared_below(path) {
            true => Err(Error::invalid(
                "the array was defined since the last commit; commit before deleting it",
            )
            .at_node(path)),
            false => (self.store.as_mut()).map_or(Ok(()), |store| store.remove(path)),
        };
        self.record_failure(removed)
    }

    /// Creates a group with these attributes, as [`StoreWriter::group`], on rank 0; does nothing on
    /// other ranks.
    ///
    /// # Errors
    /// As [`StoreWriter::group`].
    pub fn group(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.check_usable()?;
        let store = self.store.as_mut();
        let made = store.map_or(Ok(()), |store| store.group(path, attributes));
        self.record_failure(made)
    }

    /// Returns an error after an earlier one, because a part of the next commit is missing.
    ///
    /// # Errors
    /// The first error, after which this writer can only be dropped.
    pub(crate) fn check_usable(&self) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.again());
        }
        if self.ending.is_some() {
            return Err(Error::invalid(
                "a commit was begun; wait for it before the next call",
            ));
        }
        match &self.sink {
            Sink::Background(background) => match background.failure()? {
                Some(failure) => Err(failure.again()),
                None => Ok(()),
            },
            Sink::Direct(_) => Ok(()),
        }
    }

    /// Records a failure, which prevents the commit on all ranks.
    pub fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| Failure::new(error));
    }

    /// Runs long local work on this rank's threads.
    pub(crate) fn working<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        parallel::with_threads(Some(self.options.threads), f)
    }

    /// Records an error, so that nothing is committed.
    pub(crate) fn record_failure<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.fail(error);
        }
        result
    }
}

impl std::fmt::Debug for RankWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, ranks) = (self.rank, self.options.ranks);
        let path = self.path.display();
        write!(f, "RankWriter(rank {rank} of {ranks}, {path})")
    }
}
