//! Arrays declared since the last commit.

use std::sync::Arc;

use ambar_codec::ErrorBound;

use super::decomposition::Decomposition;
use super::incomplete_shards::IncompleteShards;
use super::owners::Owners;
use crate::array::{EntryGrid, Region, ShardEncoder};
use crate::error::Result;
use crate::metadata::ArrayMetadata;

/// Identifies an array declared since the last commit. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayId(pub u32);

/// A declared array, and the shards that this rank has written of it.
pub(super) struct DeclaredArray {
    pub name: String,
    pub metadata: ArrayMetadata,
    pub shards: EntryGrid,
    pub origins: Option<Arc<[[i64; 3]]>>,
    /// Error bounds by chunk, if they differ.
    pub chunk_bounds: Option<Arc<[ErrorBound]>>,
    /// The blocks of all ranks; `None` if this rank may write all of the array.
    pub held: Option<Arc<Decomposition>>,
    pub owners: Option<Arc<Owners>>,
    pub incomplete: IncompleteShards,
    /// Number of values that this rank wrote.
    pub written: u64,
}

impl DeclaredArray {
    /// An encoder for the shards of a region.
    pub fn encoder<'a>(&'a self, region: Region, values: &'a [u8]) -> Result<ShardEncoder<'a>> {
        let origins = self.origins.as_deref();
        let encoder = ShardEncoder::new(&self.name, &self.metadata, origins, region, values)?;
        Ok(encoder.chunk_bounds(self.chunk_bounds.clone()))
    }
}
