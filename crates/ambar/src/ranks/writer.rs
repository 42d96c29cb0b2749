//! The writer of one rank, and how ranks join.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::declared::Declared;
use super::decomposition::Decomposition;
use super::definition::Definition;
use super::extents::{Extents, Placement, Reserve};
use super::message::{self, Failure, Invitation};
use super::owners::Owners;
use super::ranges::GatheredRanges;
use crate::container::{CreateOptions, Durability, NewEntry, SharedFile};
use crate::error::{Error, Result};
use crate::metadata::Attributes;
use crate::parallel;
use crate::store::StoreWriter;

/// How ranks write together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankOptions {
    /// Number of ranks.
    pub ranks: u32,
    /// How they get their extents of the file.
    pub placement: Placement,
    /// Extents begin at multiples of it: the block or stripe of the file system, in bytes.
    pub alignment: u64,
    /// Bytes that a rank takes from the shared counter at least; 0 for 16 KiB, doubled each time up to 1 MiB.
    pub extent: u64,
    /// Threads that each rank encodes with.
    pub threads: usize,
}

impl Default for RankOptions {
    fn default() -> Self {
        Self {
            ranks: 1,
            placement: Placement::default(),
            alignment: 4096,
            extent: 0,
            threads: 1,
        }
    }
}

/// One rank's end of a store that many write. See the [module](super) for the order of calls.
pub struct RankWriter {
    pub(super) rank: u32,
    pub(super) options: RankOptions,
    /// Rank 0's.
    pub(super) store: Option<StoreWriter>,
    pub(super) file: SharedFile,
    pub(super) extents: Extents,
    /// Arrays that were declared since the last commit, the first of which has the number `first_id`.
    pub(super) arrays: Vec<Option<Declared>>,
    pub(super) first_id: u32,
    /// What this rank said of what all ranks define alike, since the last commit.
    pub(super) definitions: Vec<Definition>,
    /// The names of these arrays, and the number of values that all ranks together write.
    pub(super) expected: Vec<(String, u64)>,
    /// By rank: pieces of shards that it owns.
    pub(super) outbox: BTreeMap<u32, Vec<u8>>,
    /// Entries for which nothing was reserved, and how long one may be.
    pub(super) late: Vec<NewEntry<'static>>,
    pub(super) longest: u64,
    pub(super) known: Vec<(Arc<Decomposition>, Vec<u64>, Arc<Owners>)>,
    pub(super) gathered: Vec<GatheredRanges>,
    pub(super) failure: Option<Failure>,
}

impl RankWriter {
    /// Creates a store that `options.ranks` write: rank 0's end of it.
    ///
    /// # Errors
    /// As [`StoreWriter::create`]; `Unsupported` for a directory; `Invalid` for no ranks.
    pub fn create(path: &Path, create: &CreateOptions, options: RankOptions) -> Result<Self> {
        Self::first(StoreWriter::create(path, create)?, options)
    }

    /// Opens the store at `path` so that `options.ranks` add to it: rank 0's end of it.
    ///
    /// # Errors
    /// As [`StoreWriter::append`]; `Unsupported` for a directory; `Invalid` for no ranks.
    pub fn append(path: &Path, durability: Durability, options: RankOptions) -> Result<Self> {
        Self::first(StoreWriter::append(path, durability)?, options)
    }

    fn first(mut store: StoreWriter, options: RankOptions) -> Result<Self> {
        if options.ranks == 0 || options.threads == 0 {
            return Err(Error::invalid(
                "at least one rank and one thread must write",
            ));
        }
        let share = store.share()?;
        let file = SharedFile::open(&share)?;
        Ok(Self::new(0, options, Some(store), (file, share.end)))
    }

    fn new(
        rank: u32,
        options: RankOptions,
        store: Option<StoreWriter>,
        (file, end): (SharedFile, u64),
    ) -> Self {
        let RankOptions {
            ranks,
            placement,
            alignment,
            extent,
            ..
        } = options;
        Self {
            rank,
            options,
            store,
            file,
            extents: Extents::new(ranks, placement, end, alignment, extent),
            arrays: Vec::new(),
            first_id: 0,
            definitions: Vec::new(),
            expected: Vec::new(),
            outbox: BTreeMap::new(),
            late: Vec::new(),
            longest: 0,
            known: Vec::new(),
            gathered: Vec::new(),
            failure: None,
        }
    }

    /// What the other ranks need to join, before anything is declared.
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
        })
    }

    /// Another rank's end of the store, by rank 0's invitation.
    ///
    /// # Errors
    /// `Invalid` where the bytes are no invitation, the rank is none of those invited, or another
    /// version of the library wrote them; `NotFound` where this rank does not see the file; `Io`.
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
            let message = format!("rank {rank} is not invited; invited: {}", invitation.ranks);
            return Err(Error::invalid(message));
        }
        let options = RankOptions {
            ranks: invitation.ranks,
            placement: invitation.placement(),
            alignment: invitation.alignment,
            extent: invitation.extent,
            threads: invitation.threads,
        };
        let file = SharedFile::open(&invitation.share)?;
        Ok(Self::new(rank, options, None, (file, invitation.share.end)))
    }

    /// Has extents come from a counter that all ranks share and that was 0 when they came together:
    /// `reserve` adds to it and returns what it was before.
    pub fn count_with(&mut self, reserve: Box<Reserve>) {
        self.extents.count_with(reserve);
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How the ranks write.
    pub fn options(&self) -> RankOptions {
        self.options
    }

    /// Rank 0's writer of the store: for groups, attributes, and all that one process writes alone.
    /// What it puts into the file must wait until the ranks have sealed.
    ///
    /// # Errors
    /// `Invalid` on another rank.
    pub(crate) fn store(&mut self) -> Result<&mut StoreWriter> {
        let rank = self.rank;
        self.store.as_mut().ok_or_else(|| {
            Error::invalid(format!("only rank 0 does this, and this is rank {rank}"))
        })
    }

    /// Replaces the attributes of a node, as [`StoreWriter::set_attributes`]; other ranks than 0 leave
    /// it to that one.
    ///
    /// # Errors
    /// As that.
    pub fn set_attributes(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.check_usable()?;
        let store = self.store.as_mut();
        let set = store.map_or(Ok(()), |store| store.set_attributes(path, attributes));
        self.noting(set)
    }

    /// Makes a group with these attributes, as [`StoreWriter::group`]; other ranks than 0 leave it to
    /// that one.
    ///
    /// # Errors
    /// As [`StoreWriter::group`].
    pub fn group(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.check_usable()?;
        let store = self.store.as_mut();
        let made = store.map_or(Ok(()), |store| store.group(path, attributes));
        self.noting(made)
    }

    /// Refuses whatever follows an error: a part of what was to be committed is missing.
    ///
    /// # Errors
    /// The first error, after which this writer can only be dropped.
    pub(crate) fn check_usable(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.again()),
        }
    }

    /// Keeps all ranks from committing: something that was to be written was not.
    pub fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| Failure::new(error));
    }

    /// Runs long local work on this rank's threads.
    pub(crate) fn working<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        parallel::with_threads(Some(self.options.threads), f)
    }

    /// Runs what encodes on this rank's threads. With one thread it stays on the caller's, as do calls of
    /// the counter always: MPI may not be called from others.
    pub(super) fn encoding<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self.options.threads {
            1 => parallel::alone(f),
            threads => parallel::with_threads(Some(threads), f),
        }
    }

    /// Remembers that something has failed, so that nothing is committed.
    pub(crate) fn noting<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.fail(error);
        }
        result
    }
}

impl std::fmt::Debug for RankWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, ranks) = (self.rank, self.options.ranks);
        write!(f, "RankWriter(rank {rank} of {ranks}, {:?})", self.file)
    }
}
