//! Arrays: n-dimensional, cut into chunks that are decoded one by one.

mod blocks;
mod check;
mod downsample;
mod layout;
mod leaves;
mod long;
mod origins;
mod parts;
mod pieces;
mod ranges;
mod read;
mod remote;
mod shard;
mod source;
mod spec;
mod stored;
mod strings;
mod verify;
mod wanted;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::container::{Container, Entry};
use crate::dtype::DataType;
use crate::error::Result;
use crate::limits::Limits;
use crate::limits::checked_product;
use crate::metadata::{ArrayMetadata, Attributes};
use crate::process::PerProcess;

pub use crate::strings::Strings;

pub(crate) use layout::chunk_shape_of;
pub use layout::table_chunk_rows;
pub use leaves::LeafPlaces;
pub use ranges::ChunkRange;
pub use spec::{ArrayData, ArraySpec, Region};
pub use write::{Observer, choose_codecs};

/// Where the `ambar` attributes of an array say how many of its values were not written.
pub(crate) const UNWRITTEN: &str = "unwritten_values";

pub(crate) use parts::{ArrayPart, Shards, copy_common};
pub(crate) use remote::fetch_rows;
pub(crate) use source::declared;
pub(crate) use write::{Prepared, empty_entry, entries};

/// Entries of an array that are asked for one by one where the number of the store's is not known; of arrays
/// that declare more, all entries are listed.
const MOST_PROBES: u64 = 4096;

/// The part of one dimension that a read wants: `start, start + step, ...` below `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index.
    pub start: u64,
    /// One past the last index; at most the dimension's length.
    pub stop: u64,
    /// Distance between indices, at least 1.
    pub step: u64,
}

impl Slice {
    /// All of a dimension of `length`.
    pub fn all(length: u64) -> Self {
        Self {
            start: 0,
            stop: length,
            step: 1,
        }
    }

    /// Number of indices.
    pub fn len(&self) -> u64 {
        self.stop
            .saturating_sub(self.start)
            .div_ceil(self.step.max(1))
    }

    /// Whether there is no index.
    pub fn is_empty(&self) -> bool {
        self.start >= self.stop
    }
}

impl From<Range<u64>> for Slice {
    fn from(range: Range<u64>) -> Self {
        Self {
            start: range.start,
            stop: range.end,
            step: 1,
        }
    }
}

/// The indices of one dimension that a read wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indices<'a> {
    /// Those of a slice.
    Slice(Slice),
    /// Those of a list, in its order; an index may occur again.
    List(&'a [u64]),
}

impl Indices<'_> {
    /// Number of indices.
    pub fn len(&self) -> u64 {
        match self {
            Self::Slice(slice) => slice.len(),
            Self::List(indices) => indices.len() as u64,
        }
    }

    /// Whether there is no index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Slice> for Indices<'_> {
    fn from(slice: Slice) -> Self {
        Self::Slice(slice)
    }
}

/// An array of a store, open for reading. Cheap to clone; any number of threads may read from it.
#[derive(Clone)]
pub struct Array(Arc<Inner>);

struct Inner {
    container: Arc<dyn Container>,
    /// Without the leading `/`.
    name: String,
    path: String,
    metadata: Arc<ArrayMetadata>,
    limits: Limits,
    /// Whether every shard must be there, so that a missing one was lost.
    complete: bool,
    /// Indices of the shards that have been read from; `None` for one that does not exist.
    shards: PerProcess<Mutex<HashMap<u64, Option<Arc<shard::Shard>>>>>,
}

impl Array {
    /// The array `name` (without a leading `/`), which `metadata` describes.
    pub(crate) fn new(
        container: Arc<dyn Container>,
        name: &str,
        metadata: Arc<ArrayMetadata>,
        complete: bool,
        limits: Limits,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            path: format!("/{name}"),
            metadata,
            limits,
            complete,
            shards: PerProcess::new(),
            container,
        }))
    }

    /// The node's path, beginning with `/`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The values' type.
    pub fn dtype(&self) -> &DataType {
        &self.0.metadata.dtype
    }

    /// Length of each dimension; none for a single value.
    pub fn shape(&self) -> &[u64] {
        &self.0.metadata.shape
    }

    /// Number of values.
    pub fn elements(&self) -> u64 {
        // That the product fits was checked when the metadata was parsed.
        checked_product(self.shape(), 1).unwrap_or(u64::MAX)
    }

    /// Length of a chunk, the unit of decoding, in each dimension.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.0.metadata.chunk_shape
    }

    /// Length of a shard, the unit of storage, in each dimension; `None` where every chunk is
    /// stored on its own.
    pub fn shard_shape(&self) -> Option<&[u64]> {
        self.0
            .metadata
            .sharding
            .as_ref()
            .map(|sharding| sharding.shape.as_slice())
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> u64 {
        let lengths = self.shape().iter().zip(self.chunk_shape());
        lengths
            .map(|(length, chunk)| length.div_ceil(*chunk))
            .product()
    }

    /// Names of the dimensions; empty where none has a name.
    pub fn dimension_names(&self) -> &[Option<String>] {
        &self.0.metadata.dimension_names
    }

    /// The attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.0.metadata.attributes
    }

    /// Number of values that no rank had written when the array was committed; they read as the fill value.
    pub fn unwritten_values(&self) -> u64 {
        let own = self.attributes().get("ambar");
        let count = own.and_then(|own| own.get(UNWRITTEN)?.as_u64());
        count.unwrap_or(0)
    }

    /// The value of what was never written, native byte order; for strings, their bytes.
    pub fn fill_value(&self) -> &[u8] {
        &self.0.metadata.fill_value
    }

    /// The codecs of a chunk in words, such as `pcodec 8, crc32c`.
    pub fn codecs(&self) -> String {
        self.0.metadata.chain.describe()
    }

    /// The absolute error bound of the values; `None` where they are as they were written.
    pub fn error_bound(&self) -> Option<ambar_codec::ErrorBound> {
        self.0.metadata.chain.error_bound()
    }

    /// Bytes that the array's chunks take in the store, from the container's directory alone.
    ///
    /// # Errors
    /// `Io`.
    pub fn stored_bytes(&self) -> Result<u64> {
        let entries = self.stored_entries()?;
        let lengths = entries.iter().map(|(_, entry)| entry.len());
        Ok(lengths.fold(0, u64::saturating_add))
    }

    /// Number of entries (shards, or chunks where there are none) in each dimension.
    fn entry_grid(&self) -> Vec<u64> {
        let outer = self.shard_shape().unwrap_or(self.chunk_shape());
        let lengths = self.shape().iter().zip(outer);
        lengths
            .map(|(length, outer)| length.div_ceil(*outer))
            .collect()
    }

    /// The entries that the store has of the array, with their coordinates, in C order.
    ///
    /// It takes no longer than going through all entries of the store, however many chunks the array's
    /// metadata declare.
    ///
    /// # Errors
    /// `Io`.
    fn stored_entries(&self) -> Result<Vec<(Vec<u64>, Entry)>> {
        let (container, keys) = (&self.0.container, self.0.metadata.keys);
        let grid = self.entry_grid();
        let declared = checked_product(&grid, 1).unwrap_or(u64::MAX);
        let mut found = Vec::new();
        if declared == 0 {
            return Ok(found);
        }
        if declared > container.entry_count().unwrap_or(MOST_PROBES) {
            let all = container.keys()?;
            let named = all.iter().filter_map(|key| {
                let coordinates = keys.coordinates(&self.0.name, key, &grid)?;
                Some((coordinates, key))
            });
            for (coordinates, key) in named {
                found.extend(container.entry(key)?.map(|entry| (coordinates, entry)));
            }
            found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            return Ok(found);
        }
        let mut next = vec![0; grid.len()];
        loop {
            let entry = container.entry(&keys.key(&self.0.name, &next))?;
            found.extend(entry.map(|entry| (next.clone(), entry)));
            if !blocks::advance(&mut next, &grid) {
                return Ok(found);
            }
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Array({}, {}, {:?})",
            self.path(),
            self.dtype(),
            self.shape()
        )
    }
}
