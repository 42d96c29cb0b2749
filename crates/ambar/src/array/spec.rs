//! Specs of arrays to be written: type, shape, division and codecs.

use ambar_codec::ErrorBound;
use std::sync::Arc;

use super::leaf_positions::LeafPositions;
use crate::codec::{CodecChain, Profile};
use crate::dtype::DataType;
use crate::metadata::Attributes;
use crate::strings::Strings;

/// The values of an array to be written, in C order.
#[derive(Clone, Copy, Debug)]
pub enum ArrayData<'a> {
    /// Values of a fixed size, in native byte order.
    Fixed(&'a [u8]),
    /// The same in pieces that are consecutive along the first dimension, each of whole rows.
    Pieces(&'a [&'a [u8]]),
    /// Strings or byte strings.
    Strings(&'a Strings),
}

/// An array to be written.
#[derive(Clone, Debug)]
pub struct ArraySpec {
    /// The values' type.
    pub dtype: DataType,
    /// Length of each dimension.
    pub shape: Vec<u64>,
    /// Names of the dimensions; empty for none.
    pub dimension_names: Vec<Option<String>>,
    /// Length of a chunk in each dimension; `None` for the default (256 KiB of raw data).
    pub chunk_shape: Option<Vec<u64>>,
    /// Length of a shard in each dimension, multiples of a chunk's; `None` for the default, without shards
    /// for an array of one chunk. Set it for arrays to be extended.
    pub shard_shape: Option<Vec<u64>>,
    /// The trade-off between size and speed.
    pub profile: Profile,
    /// The error bound of every value; `None` for lossless.
    pub error_bound: Option<ErrorBound>,
    /// Error bounds by chunk along the first dimension, the only one that is divided; each at least as strict as
    /// `error_bound`. `None` for `error_bound` in all chunks.
    pub chunk_bounds: Option<Arc<[ErrorBound]>>,
    /// The codecs; if `None`, they are chosen by profile, error bound and values.
    pub codecs: Option<CodecChain>,
    /// Whether the codec `ambar` may predict lossless values along the dimensions of a grid: smooth fields
    /// become smaller, but readers need ambar. With `fast`, this applies to declared arrays, which are then
    /// encoded near the speed of memory.
    pub predict: bool,
    /// Whether it is mostly read as a whole, so that long chunks may make it smaller.
    pub whole: bool,
    /// Whether its rows are the corners of touching cells, which may be encoded as a mesh, in long chunks;
    /// readers need ambar then.
    pub cells: bool,
    /// The origins of unit blocks, one for each index of the first dimension: index of the first cell in z, y, x,
    /// along the Morton curve, multiples of the other dimensions' lengths. Codecs predict across
    /// touching blocks. `None` for other arrays.
    pub block_origins: Option<Arc<[[i64; 3]]>>,
    /// The positions of the leaf cells of a tree, one for each row: within an error bound the codec may predict
    /// values from neighbouring cells. `None` for other arrays.
    pub leaves: Option<Arc<dyn LeafPositions>>,
    /// The value of elements that were never written, in native byte order; `None` for the default of the type.
    pub fill_value: Option<Vec<u8>>,
    /// The attributes.
    pub attributes: Attributes,
}

impl ArraySpec {
    /// An array of the default profile, without names and attributes.
    pub fn new(dtype: DataType, shape: &[u64]) -> Self {
        Self {
            dtype,
            shape: shape.to_vec(),
            dimension_names: Vec::new(),
            chunk_shape: None,
            shard_shape: None,
            profile: Profile::default(),
            error_bound: None,
            chunk_bounds: None,
            codecs: None,
            predict: false,
            whole: false,
            cells: false,
            block_origins: None,
            leaves: None,
            fill_value: None,
            attributes: Attributes::new(),
        }
    }

    /// Names every dimension.
    #[must_use]
    pub fn dimensions(mut self, names: &[&str]) -> Self {
        self.dimension_names = names.iter().map(|name| Some((*name).to_owned())).collect();
        self
    }

    /// Sets the length of a chunk in each dimension.
    #[must_use]
    pub fn chunks(mut self, chunk_shape: &[u64]) -> Self {
        self.chunk_shape = Some(chunk_shape.to_vec());
        self
    }

    /// Sets the length of a shard in each dimension.
    #[must_use]
    pub fn shards(mut self, shard_shape: &[u64]) -> Self {
        self.shard_shape = Some(shard_shape.to_vec());
        self
    }

    /// Sets the profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the error bound: a number is an absolute one.
    #[must_use]
    pub fn error_bound(mut self, error_bound: Option<impl Into<ErrorBound>>) -> Self {
        self.error_bound = error_bound.map(Into::into);
        self
    }

    /// Sets the error bounds by chunk.
    #[must_use]
    pub fn chunk_bounds(mut self, bounds: Option<Arc<[ErrorBound]>>) -> Self {
        self.chunk_bounds = bounds;
        self
    }

    /// The error bound, unless it is lossless.
    pub(crate) fn lossy_bound(&self) -> Option<ErrorBound> {
        self.error_bound.filter(|bound| !bound.is_lossless())
    }

    /// Sets the codecs, which take precedence over profile and error bound.
    #[must_use]
    pub fn codecs(mut self, codecs: Option<CodecChain>) -> Self {
        self.codecs = codecs;
        self
    }

    /// Sets whether the codec `ambar` may predict lossless values along the dimensions.
    #[must_use]
    pub fn predict(mut self, predict: bool) -> Self {
        self.predict = predict;
        self
    }

    /// Sets whether it is mostly read as a whole.
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Sets whether its rows are the corners of cells.
    #[must_use]
    pub fn cells(mut self, cells: bool) -> Self {
        self.cells = cells;
        self
    }

    /// Sets the origins of unit blocks, one for each index of the first dimension.
    #[must_use]
    pub fn blocks(mut self, origins: Arc<[[i64; 3]]>) -> Self {
        self.block_origins = Some(origins);
        self
    }

    /// Sets the positions of the leaf cells, one for each row; they have the chunks of the array.
    #[must_use]
    pub fn leaves(mut self, leaves: Option<Arc<dyn LeafPositions>>) -> Self {
        self.leaves = leaves;
        self
    }

    /// Sets the attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }
}

/// A contiguous region of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first index in each dimension.
    pub start: Vec<u64>,
    /// Length in each dimension.
    pub shape: Vec<u64>,
}

impl Region {
    /// All of an array of `shape`.
    pub fn all(shape: &[u64]) -> Self {
        Self {
            start: vec![0; shape.len()],
            shape: shape.to_vec(),
        }
    }

    /// The index after the last one of dimension `d`.
    pub(super) fn stop(&self, d: usize) -> u64 {
        self.start[d] + self.shape[d]
    }

    /// Number of values.
    pub fn values(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The intersection with another region of as many dimensions; `None` if it is empty.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let dimensions = 0..self.start.len();
        let start: Vec<u64> = dimensions
            .clone()
            .map(|d| self.start[d].max(other.start[d]))
            .collect();
        let lengths = dimensions.map(|d| {
            let stop = self.stop(d).min(other.stop(d));
            stop.checked_sub(start[d]).filter(|length| *length > 0)
        });
        let shape = lengths.collect::<Option<Vec<u64>>>()?;
        Some(Self { start, shape })
    }

    /// Whether it contains another region of as many dimensions.
    pub fn contains(&self, other: &Self) -> bool {
        (0..self.start.len())
            .all(|d| self.start[d] <= other.start[d] && other.stop(d) <= self.stop(d))
    }

    /// Whether it is inside of an array of `shape`.
    pub(crate) fn is_inside(&self, shape: &[u64]) -> bool {
        let lengths = (self.start.iter().zip(&self.shape)).zip(shape);
        self.start.len() == shape.len()
            && self.shape.len() == shape.len()
            && lengths
                .into_iter()
                .all(|((start, length), all)| start.checked_add(*length).is_some_and(|s| s <= *all))
    }
}
