//! Arrays declared since the last commit.

use std::sync::Arc;

use crate::array::EntryGrid;
use crate::ranks::layout::{Decomposition, Owners};
use crate::ranks::output::{Encoding, IncompleteShards};

/// Identifies an array declared since the last commit. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayId(pub u32);

/// A declared array, and the shards that this rank has written of it.
pub(in crate::ranks) struct DeclaredArray {
    pub encoding: Arc<Encoding>,
    pub shards: EntryGrid,
    /// The blocks of all ranks; `None` if this rank may write all of the array.
    pub held: Option<Arc<Decomposition>>,
    pub owners: Option<Arc<Owners>>,
    pub incomplete: IncompleteShards,
    /// Number of values that this rank wrote.
    pub written: u64,
}
