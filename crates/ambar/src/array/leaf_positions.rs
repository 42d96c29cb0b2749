//! The positions of a tree's leaf cells, which the codec uses to predict their values.

use std::fmt::Debug;

use crate::error::Result;

/// The positions of the leaf cells in the rows of an array, chunk by chunk.
pub trait LeafPositions: Debug + Send + Sync {
    /// Number of dimensions of the tree, 1 to 3.
    fn dimensions(&self) -> usize;
    /// The levels of a chunk's cells, and their indices on these levels in z, y, x; 0 in dimensions that
    /// are not used.
    ///
    /// # Errors
    /// `Invalid` if the chunk does not exist, or the levels do not form a tree.
    fn chunk(&self, chunk: u64) -> Result<(Vec<u8>, Vec<[i64; 3]>)>;
}
