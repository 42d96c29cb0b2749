//! The positions of the leaf cells of a tree, by which their values can be predicted.

use std::fmt::Debug;

use crate::error::Result;

/// The positions of the leaf cells in the rows of an array, chunk by chunk.
pub trait LeafPlaces: Debug + Send + Sync {
    /// Dimensions of the tree, 1 to 3.
    fn dimensions(&self) -> usize;
    /// The levels of a chunk's cells, and their indices on these in z, y, x; 0 in dimensions that
    /// are not used.
    ///
    /// # Errors
    /// `Invalid` where the chunk does not exist, or the levels make no tree.
    fn chunk(&self, chunk: u64) -> Result<(Vec<u8>, Vec<[i64; 3]>)>;
}
