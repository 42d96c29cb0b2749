//! What a file may ask of memory: checked before any allocation whose size the file decides.

use crate::error::{Error, Result};

/// Upper bounds on sizes read from files. The defaults fit every store this library writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one metadata document (the root's holds the metadata of every node).
    pub metadata_bytes: u64,
    /// Bytes of one ZIP central directory.
    pub directory_bytes: u64,
    /// Bytes of one chunk, decoded or encoded.
    pub chunk_bytes: u64,
    /// Bytes of one shard's index.
    pub shard_index_bytes: u64,
    /// Bytes of one array, decoded; what a caller can be handed at once.
    pub array_bytes: u64,
    /// Dimensions of an array.
    pub dimensions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            metadata_bytes: 4 << 30,
            directory_bytes: 4 << 30,
            chunk_bytes: 1 << 30,
            shard_index_bytes: 1 << 28,
            array_bytes: 1 << 46,
            dimensions: 32,
        }
    }
}

impl Limits {
    /// `size` as a `usize`, or an error that says which limit (`what`) it passes.
    pub fn check(what: &str, size: u64, limit: u64) -> Result<usize> {
        if size > limit {
            return Err(Error::limit(format!(
                "{what} is {size} bytes, over the limit of {limit}"
            )));
        }
        usize::try_from(size)
            .map_err(|_| Error::limit(format!("{what} of {size} bytes does not fit in memory")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_over_the_limit_are_refused() {
        assert_eq!(Limits::check("a chunk", 5, 5).ok(), Some(5));
        assert!(Limits::check("a chunk", 6, 5).is_err());
    }
}
