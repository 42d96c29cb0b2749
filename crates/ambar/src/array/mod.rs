//! Arrays: n-dimensional, cut into chunks that are decoded one by one.

mod spec;

use std::ops::Range;

pub use spec::{ArrayData, ArraySpec, Strings, table_chunk_rows};

use crate::dtype::DataType;
use crate::error::Result;
use crate::metadata::Attributes;

/// The part of one dimension that a read wants: `start, start + step, ...` below `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index.
    pub start: u64,
    /// Behind the last index; at most the dimension's length.
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

/// An array of a store, open for reading. Cheap to clone; any number of threads may read from it.
#[derive(Clone, Debug)]
pub struct Array {
    attributes: Attributes,
}

impl Array {
    /// The node's path, beginning with `/`.
    pub fn path(&self) -> &str {
        ""
    }

    /// The values' type.
    pub fn dtype(&self) -> &DataType {
        &DataType::Bool
    }

    /// Length of each dimension; none for a single value.
    pub fn shape(&self) -> &[u64] {
        &[]
    }

    /// Number of values.
    pub fn elements(&self) -> u64 {
        0
    }

    /// Length of a chunk, the unit of decoding, in each dimension.
    pub fn chunk_shape(&self) -> &[u64] {
        &[]
    }

    /// Length of a shard, the unit of storage, in each dimension; `None` where every chunk is
    /// stored on its own.
    pub fn shard_shape(&self) -> Option<&[u64]> {
        None
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> u64 {
        0
    }

    /// Names of the dimensions; empty where none has a name.
    pub fn dimension_names(&self) -> &[Option<String>] {
        &[]
    }

    /// The attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The value of what was never written, native byte order; for strings, their bytes.
    pub fn fill_value(&self) -> &[u8] {
        &[]
    }

    /// The codecs of a chunk in words, such as `pcodec 8, crc32c`.
    pub fn codecs(&self) -> String {
        String::new()
    }

    /// Bytes the array takes in the store, from the container's directory alone.
    ///
    /// # Errors
    /// `Io`.
    pub fn stored_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    /// Reads a selection, one slice a dimension, into `out` in C order, native byte order, on the
    /// threads of the current pool. `out` has exactly `product of lengths * dtype size` bytes.
    /// Only the chunks that the selection touches are read.
    ///
    /// # Errors
    /// `Invalid` for a selection outside of the array, an `out` of another size or a dtype without
    /// fixed size; `Corrupt` where a checksum differs; `Io`.
    pub fn read(&self, _selection: &[Slice], _out: &mut [u8]) -> Result<()> {
        Ok(())
    }

    /// Reads rows of a 1-D array on the calling thread; else as `read`.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_rows(&self, _rows: Range<u64>, _out: &mut [u8]) -> Result<()> {
        Ok(())
    }

    /// Reads a selection of an array of strings or bytes.
    ///
    /// # Errors
    /// As `read`; `Invalid` where the dtype has a fixed size.
    pub fn read_strings(&self, _selection: &[Slice]) -> Result<Strings> {
        Ok(Strings::default())
    }
}
