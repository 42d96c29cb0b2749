//! N-dimensional arrays, divided into chunks that are encoded and decoded independently.

mod block_origins;
mod chunk_grid;
mod chunk_ranges;
mod chunk_requests;
mod chunk_source;
mod downsampled_read;
mod leaf_positions;
mod long_chunks;
mod prefetch;
mod read;
mod read_plan;
mod row_pieces;
mod shard;
mod shard_encoder;
mod spec;
mod storage;
mod strings;
mod validation;
mod verify;
mod windows;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::container::Container;
use crate::dtype::DataType;
use crate::error::Result;
use crate::limits::Limits;
use crate::limits::checked_product;
use crate::metadata::{ArrayMetadata, Attributes, lossy_attributes};
use crate::process::PerProcess;

pub use crate::strings::Strings;

pub(crate) use chunk_grid::chunk_shape_of;
pub use chunk_grid::table_chunk_rows;
pub use chunk_ranges::ChunkRange;
pub use leaf_positions::LeafPositions;
pub use spec::{ArrayData, ArraySpec, Region};
pub use write::{NewArray, Observer, choose_codecs};

/// The key of the `ambar` attributes that holds the number of an array's unwritten values.
pub(crate) const UNWRITTEN: &str = "unwritten_values";

pub(crate) use chunk_source::metadata_of;
pub(crate) use prefetch::fetch_rows;
pub(crate) use shard_encoder::{EntryGrid, ShardEncoder, copy_intersection};
pub(crate) use windows::{WindowWriter, WindowedArray, sample_rows};
pub(crate) use write::{WriteBatch, WrittenArray, choose_region_codecs, empty_entry, entries};

/// The selected indices of one dimension: `start, start + step, ...` below `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index.
    pub start: u64,
    /// The index after the last one; at most the dimension's length.
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

    /// Whether no index is selected.
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

/// The selected indices of one dimension: a slice, or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indices<'a> {
    /// Those of a slice.
    Slice(Slice),
    /// Those of a list, in its order; an index may occur more than once.
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

    /// Whether no index is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Slice> for Indices<'_> {
    fn from(slice: Slice) -> Self {
        Self::Slice(slice)
    }
}

/// An array of a store, open for reading. Cheap to clone; threads can read concurrently.
#[derive(Clone)]
pub struct Array(Arc<Inner>);

struct Inner {
    container: Arc<dyn Container>,
    /// The path without the leading `/`.
    name: String,
    path: String,
    metadata: Arc<ArrayMetadata>,
    limits: Limits,
    /// Whether the writer writes every shard, so that a missing one is an error.
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

    /// Length of each dimension; empty for a single value.
    pub fn shape(&self) -> &[u64] {
        &self.0.metadata.shape
    }

    /// Number of values.
    pub fn elements(&self) -> u64 {
        // The product was checked when the metadata was parsed.
        checked_product(self.shape(), 1).unwrap_or(u64::MAX)
    }

    /// Length of a chunk, the unit of decoding, in each dimension.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.0.metadata.chunk_shape
    }

    /// Length of a shard, the unit of storage, in each dimension; `None` if every chunk is an entry.
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

    /// Names of the dimensions; empty if none has a name.
    pub fn dimension_names(&self) -> &[Option<String>] {
        &self.0.metadata.dimension_names
    }

    /// The attributes that state the loss of the values, in the style of the CF conventions; empty for lossless arrays.
    /// The array's document contains them for other Zarr readers, but `attributes` leaves them out.
    pub fn lossy_attributes(&self) -> Attributes {
        lossy_attributes(self.error_bound())
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

    /// The value of elements that were never written, in native byte order; for strings, their bytes.
    pub fn fill_value(&self) -> &[u8] {
        &self.0.metadata.fill_value
    }

    /// A short description of the codecs, such as `pcodec 8, crc32c`.
    pub fn codecs(&self) -> String {
        self.0.metadata.chain.describe()
    }

    /// The error bound of the values; `None` if they are lossless.
    pub fn error_bound(&self) -> Option<ambar_codec::ErrorBound> {
        self.0.metadata.chain.error_bound()
    }

    /// Stored bytes of the array's chunks. Reads only the container's directory.
    ///
    /// # Errors
    /// `Io`.
    pub fn stored_bytes(&self) -> Result<u64> {
        let entries = self.stored_entries()?;
        let lengths = entries.iter().map(|(_, entry)| entry.len());
        Ok(lengths.fold(0, u64::saturating_add))
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
