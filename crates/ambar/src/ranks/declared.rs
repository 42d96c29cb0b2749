//! Arrays that were declared since the last commit.

use std::sync::Arc;

use ambar_codec::ErrorBound;

use super::decomposition::Decomposition;
use super::owners::Owners;
use super::pending::Pending;
use crate::array::{ArrayPart, Region, Shards};
use crate::error::Result;
use crate::metadata::ArrayMetadata;

/// Identifies an array that was declared since the last commit. Its number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayId(pub u32);

/// A declared array, and what this rank has written of it.
pub(super) struct Declared {
    pub name: String,
    pub metadata: ArrayMetadata,
    pub shards: Shards,
    pub origins: Option<Arc<[[i64; 3]]>>,
    /// Error bounds by chunk, where these differ.
    pub chunk_bounds: Option<Arc<[ErrorBound]>>,
    /// `None`: this rank may write all of it.
    pub held: Option<Arc<Decomposition>>,
    pub owners: Option<Arc<Owners>>,
    pub pending: Pending,
    /// Number of values that this rank wrote.
    pub written: u64,
}

impl Declared {
    /// Values of the array that hold whole shards.
    pub fn part<'a>(&'a self, region: Region, values: &'a [u8]) -> Result<ArrayPart<'a>> {
        let origins = self.origins.as_deref();
        let part = ArrayPart::new(&self.name, &self.metadata, origins, region, values)?;
        Ok(part.chunk_bounds(self.chunk_bounds.clone()))
    }
}
