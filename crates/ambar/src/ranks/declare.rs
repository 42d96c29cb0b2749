//! Declares arrays on all ranks: chooses their chunks and shards, and the owner of each shard.

use std::sync::Arc;

use super::declarations::{ArrayId, DeclaredArray, Definition};
use super::layout::{CachedOwners, Decomposition, Owners, divide};
use super::output::{Encoding, IncompleteShards};
use super::writer::RankWriter;
use crate::array::{ArraySpec, EntryGrid, metadata_of};
use crate::container::entry_bytes;
use crate::error::{Error, Result};
use crate::metadata::{ArrayMetadata, IndexLocation};
use crate::store::name_of;

/// Number of decompositions whose owners are cached.
const CACHED_OWNERS: usize = 8;

impl RankWriter {
    /// Declares an array, to be written before the next commit. All ranks must declare the same arrays in the
    /// same order; otherwise the commit fails. `held` has the blocks that each rank writes; with `None` rank 0
    /// writes all of the array. Values that no rank writes are the fill value.
    ///
    /// # Errors
    /// `Invalid` if the spec is inconsistent or does not fit the decomposition, or the path exists;
    /// `Unsupported` for values without a fixed size; `Limit`.
    pub fn declare(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        held: Option<&Arc<Decomposition>>,
    ) -> Result<ArrayId> {
        self.check_usable()?;
        let declared = self.declare_here(path, spec, held);
        self.record_failure(declared)
    }

    fn declare_here(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        held: Option<&Arc<Decomposition>>,
    ) -> Result<ArrayId> {
        let name = name_of(path).to_owned();
        if spec.dtype.size().is_none() {
            let message = format!(
                "values of {} have no fixed size, so ranks cannot write them; write them on rank 0",
                spec.dtype
            );
            return Err(Error::unsupported(message).at_node(name));
        }
        if self.is_declared(&name) {
            let message = "the array is declared twice; commit before declaring it again";
            return Err(Error::invalid(message).at_node(name));
        }
        if let Some(held) = held.filter(|held| held.shape() != spec.shape) {
            let message = format!(
                "the blocks are of an array of {:?}; expected {:?}, the shape of the spec",
                held.shape(),
                spec.shape
            );
            return Err(Error::invalid(message).at_node(name));
        }
        let held = match held {
            Some(held) => Some(Arc::clone(held)),
            None if self.options.ranks == 1 => None,
            None => Some(Arc::new(Decomposition::whole(&spec.shape))),
        };
        let whole = Decomposition::whole(&spec.shape);
        let spec = divide(spec, held.as_deref().unwrap_or(&whole))?;
        let mut metadata = metadata_of(&spec).map_err(|error| error.at_node(&name))?;
        if let Some(sharding) = &mut metadata.sharding {
            // Ranks have all of a shard before they write it; with the index at the start, readers read
            // sequentially.
            sharding.location = IndexLocation::Start;
        }
        if let Some(store) = &mut self.store {
            store.declare_as(&name, &metadata)?;
        }
        if self.options.ranks > 1 {
            let definition = Definition::array(&name, &spec, &metadata, held.as_deref());
            self.definitions
                .push(definition.map_err(|error| error.at_node(&name))?);
        }
        let values = spec
            .shape
            .iter()
            .fold(1, |all: u64, n| all.saturating_mul(*n));
        // Blocks of cells are padded with values of no rank.
        let expected = match held.as_ref().filter(|_| spec.block_origins.is_some()) {
            Some(held) => held.blocks().iter().map(|(_, block)| block.values()).sum(),
            None => values,
        };
        self.expected.push((name.clone(), expected));
        let owners = held.as_ref().map(|held| self.owners(held, &metadata));
        let array = DeclaredArray {
            shards: EntryGrid::of(&metadata),
            owners: owners.transpose().map_err(|error| error.at_node(&name))?,
            encoding: Arc::new(Encoding {
                name,
                metadata,
                origins: spec.block_origins,
                chunk_bounds: spec.chunk_bounds,
            }),
            held,
            incomplete: IncompleteShards::default(),
            written: 0,
        };
        self.reserve(&array)?;
        let id = u32::try_from(self.arrays.len())
            .ok()
            .and_then(|count| self.first_id.checked_add(count))
            .ok_or_else(|| {
                Error::limit("the writer has declared 2^32 arrays, the limit; open another")
            })?;
        self.arrays.push(Some(array));
        Ok(ArrayId(id))
    }

    /// Whether the node at `path`, or one below it, was declared since the last commit.
    pub(super) fn is_declared_below(&self, path: &str) -> bool {
        let name = name_of(path);
        let mut declared = self.arrays.iter().flatten();
        declared.any(|array| {
            let below = array.encoding.name.strip_prefix(name);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }

    fn is_declared(&self, name: &str) -> bool {
        let mut declared = self.arrays.iter().flatten();
        declared.any(|array| array.encoding.name == name)
    }

    /// The owners of an array's shards, cached for arrays of equal decomposition and shards.
    fn owners(
        &mut self,
        held: &Arc<Decomposition>,
        metadata: &ArrayMetadata,
    ) -> Result<Arc<Owners>> {
        let sharding = metadata.sharding.as_ref();
        let lengths = sharding.map_or(&metadata.chunk_shape, |sharding| &sharding.shape);
        let is_same = |cached: &&CachedOwners| {
            (Arc::ptr_eq(&cached.held, held) || cached.held == *held) && cached.lengths == *lengths
        };
        if let Some(cached) = self.cached_owners.iter().find(is_same) {
            return Ok(Arc::clone(&cached.owners));
        }
        let owners = Arc::new(Owners::new(&EntryGrid::of(metadata), held)?);
        if self.cached_owners.len() == CACHED_OWNERS {
            self.cached_owners.remove(0);
        }
        self.cached_owners.push(CachedOwners {
            held: Arc::clone(held),
            lengths: lengths.clone(),
            owners: Arc::clone(&owners),
        });
        Ok(owners)
    }

    /// Reserves extents for the entries of an array, if extents are reserved.
    fn reserve(&mut self, array: &DeclaredArray) -> Result<()> {
        let Encoding { name, metadata, .. } = &*array.encoding;
        let size = metadata.dtype.size().unwrap_or(1) as u64;
        let mut extents = self.extents.lock();
        let Some(owners) = array.owners.as_ref().filter(|_| extents.reserves()) else {
            return Ok(());
        };
        let chunk_values = metadata.chunk_shape.iter().product::<u64>().max(1);
        let mut bytes = vec![0; self.options.ranks as usize];
        for (shard, owner) in owners.all() {
            let raw = array.shards.region(shard).values().saturating_mul(size);
            // Chunks at the array's end are padded, and each has a checksum and an index entry.
            let chunks = (raw / size).div_ceil(chunk_values) + 1;
            let padded = raw.saturating_add(chunks.saturating_mul(64));
            let key = metadata.keys.key(name, shard);
            let bound = entry_bytes(&key, padded);
            bytes[owner as usize] += bound;
            self.longest = self
                .longest
                .max(bound.saturating_mul(2).saturating_add(1 << 20));
        }
        extents.reserve(self.rank, &bytes)
    }
}
