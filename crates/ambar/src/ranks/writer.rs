//! The writer of one rank: joining the ranks, groups and attributes.

use std::collections::BTreeMap;
use std::path::Path;

use super::declared_array::DeclaredArray;

use super::definition::Definition;
use super::extents::{Extents, Placement, Reserve};
use super::message::{self, Failure, Invitation};
use super::owners::CachedOwners;
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
    /// How extents of the file are assigned to ranks.
    pub placement: Placement,
    /// Extents start at multiples of it: the block or stripe size of the file system, in bytes.
    pub alignment: u64,
    /// Minimum bytes of an extent from the shared counter; 0 for 16 KiB, doubled each time up to 1 MiB.
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

/// The writer of one rank. See the [module](super) for the order of calls.
pub struct RankWriter {
    pub(super) rank: u32,
    pub(super) options: RankOptions,
    /// The writer of the store; `Some` only on rank 0.
    pub(super) store: Option<StoreWriter>,
    pub(super) file: SharedFile,
    pub(super) extents: Extents,
    /// Arrays declared since the last commit, of which the first has the number `first_id`.
    pub(super) arrays: Vec<Option<DeclaredArray>>,
    pub(super) first_id: u32,
    /// The definitions since the last commit, which must be equal on all ranks.
    pub(super) definitions: Vec<Definition>,
    /// The names of these arrays, and their numbers of values of all ranks.
    pub(super) expected: Vec<(String, u64)>,
    /// The messages by rank: pieces of shards that it owns.
    pub(super) messages: BTreeMap<u32, Vec<u8>>,
    /// Entries for which the reserved extents were too short, and their maximum length.
    pub(super) late: Vec<NewEntry<'static>>,
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
        if options.ranks == 0 || options.threads == 0 {
            return Err(Error::invalid(
                "0 ranks or threads cannot write; give 1 or more",
            ));
        }
        let share = store.share()?;
        let file = SharedFile::open(&share)?;
        Ok(Self::new(0, options, Some(store), file, share.end))
    }

    fn new(
        rank: u32,
        options: RankOptions,
        store: Option<StoreWriter>,
        file: SharedFile,
        end: u64,
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
            messages: BTreeMap::new(),
            late: Vec::new(),
            longest: 0,
            cached_owners: Vec::new(),
            gathered: Vec::new(),
            failure: None,
        }
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
        };
        let file = SharedFile::open(&invitation.share)?;
        Ok(Self::new(rank, options, None, file, invitation.share.end))
    }

    /// Sets the counter that all ranks share, which must be 0 when they join:
    /// `reserve` adds to it and returns its previous value.
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
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.again()),
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

    /// Runs encoding work on this rank's threads. A single thread is the calling one, as always for calls of
    /// the counter: other threads may not call MPI.
    pub(super) fn encoding<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self.options.threads {
            1 => parallel::on_this_thread(f),
            threads => parallel::with_threads(Some(threads), f),
        }
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
        write!(f, "RankWriter(rank {rank} of {ranks}, {:?})", self.file)
    }
}
