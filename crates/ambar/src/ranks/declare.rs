//! Declares arrays on all ranks: chooses their chunks and shards, and the owner of each shard.

use std::sync::Arc;

use super::declared::{ArrayId, Declared};
use super::decomposition::Decomposition;
use super::definition::Definition;
use super::division::divide;
use super::owners::Owners;
use super::pending::Pending;
use super::writer::RankWriter;
use crate::array::{ArraySpec, Shards, declared};
use crate::container::entry_bytes;
use crate::error::{Error, Result};
use crate::metadata::{ArrayMetadata, IndexLocation};
use crate::store::name_of;

/// Number of decompositions whose owners are cached.
const KEPT_OWNERS: usize = 8;

impl RankWriter {
    /// Declares an array, to be written before the next commit: all ranks the same ones, in the same
    /// order, else the commit is refused. `held` says who writes what of it; with `None` rank 0 writes
    /// all of it. What no rank writes is the fill value.
    ///
    /// # Errors
    /// `Invalid` where the spec contradicts itself or the decomposition, or the path is taken;
    /// `Unsupported` for values without a fixed size; `Limit`.
    pub fn declare(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        held: Option<&Arc<Decomposition>>,
    ) -> Result<ArrayId> {
        self.check_usable()?;
        let declared = self.declare_here(path, spec, held);
        self.noting(declared)
    }

    fn declare_here(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        held: Option<&Arc<Decomposition>>,
    ) -> Result<ArrayId> {
        let name = name_of(path).to_owned();
        if spec.dtype.size().is_none() {
            let message = format!("values of {} are not written by many ranks", spec.dtype);
            return Err(Error::unsupported(message).at_node(name));
        }
        if self.arrays.iter().flatten().any(|array| array.name == name) {
            return Err(Error::invalid("declared twice before a commit").at_node(name));
        }
        if let Some(held) = held.filter(|held| held.shape() != spec.shape) {
            let message = format!(
                "blocks of an array of {:?} for one of {:?}",
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
        let mut metadata = declared(&spec).map_err(|error| error.at_node(&name))?;
        if let Some(sharding) = &mut metadata.sharding {
            // Ranks have all of a shard before they write it, and any caller that reads it from its start on
            // reads without a break.
            sharding.location = IndexLocation::Start;
        }
        if let Some(store) = &mut self.store {
            store.declare_as(&name, &metadata)?;
        }
        if self.options.ranks > 1 {
            let definition = Definition::array(&name, (&spec, &metadata), held.as_deref());
            self.definitions
                .push(definition.map_err(|error| error.at_node(&name))?);
        }
        let values = spec
            .shape
            .iter()
            .fold(1, |all: u64, n| all.saturating_mul(*n));
        // Blocks of cells are padded with values that no rank has.
        let expected = match held.as_ref().filter(|_| spec.block_origins.is_some()) {
            Some(held) => held.blocks().iter().map(|(_, block)| block.values()).sum(),
            None => values,
        };
        self.expected.push((name.clone(), expected));
        let owners = held.as_ref().map(|held| self.owners(held, &metadata));
        let array = Declared {
            shards: Shards::of(&metadata),
            owners: owners.transpose().map_err(|error| error.at_node(&name))?,
            name,
            origins: spec.block_origins,
            chunk_bounds: spec.chunk_bounds,
            metadata,
            held,
            pending: Pending::default(),
            written: 0,
        };
        self.reserve(&array)?;
        let id = u32::try_from(self.arrays.len())
            .ok()
            .and_then(|count| self.first_id.checked_add(count))
            .ok_or_else(|| Error::limit("a writer declares 2^32 arrays at most; open another"))?;
        self.arrays.push(Some(array));
        Ok(ArrayId(id))
    }

    /// The owners of an array's shards, as they were for the last array cut like this one.
    fn owners(
        &mut self,
        held: &Arc<Decomposition>,
        metadata: &ArrayMetadata,
    ) -> Result<Arc<Owners>> {
        let sharding = metadata.sharding.as_ref();
        let lengths = sharding.map_or(&metadata.chunk_shape, |sharding| &sharding.shape);
        let same = |known: &&(Arc<Decomposition>, Vec<u64>, Arc<Owners>)| {
            (Arc::ptr_eq(&known.0, held) || known.0 == *held) && known.1 == *lengths
        };
        if let Some((_, _, owners)) = self.known.iter().find(same) {
            return Ok(Arc::clone(owners));
        }
        let owners = Arc::new(Owners::new(&Shards::of(metadata), held)?);
        if self.known.len() == KEPT_OWNERS {
            self.known.remove(0);
        }
        self.known
            .push((Arc::clone(held), lengths.clone(), Arc::clone(&owners)));
        Ok(owners)
    }

    /// Reserves room for the entries of an array, where that is how places are given.
    fn reserve(&mut self, array: &Declared) -> Result<()> {
        let size = array.metadata.dtype.size().unwrap_or(1) as u64;
        let Some(owners) = array.owners.as_ref().filter(|_| self.extents.reserves()) else {
            return Ok(());
        };
        let chunk_values = array.metadata.chunk_shape.iter().product::<u64>().max(1);
        let mut bytes = vec![0; self.options.ranks as usize];
        for (shard, owner) in owners.all() {
            let raw = array.shards.region(shard).values().saturating_mul(size);
            // Chunks at the array's end are filled up, and each has a checksum and its place.
            let chunks = (raw / size).div_ceil(chunk_values) + 1;
            let padded = raw.saturating_add(chunks.saturating_mul(64));
            let key = array.metadata.keys.key(&array.name, shard);
            let bound = entry_bytes(&key, padded);
            bytes[owner as usize] += bound;
            self.longest = self
                .longest
                .max(bound.saturating_mul(2).saturating_add(1 << 20));
        }
        self.extents.reserve(self.rank, &bytes)
    }
}
