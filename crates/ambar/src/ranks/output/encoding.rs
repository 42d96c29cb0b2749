//! How the shards of a declared array are encoded.

use std::sync::Arc;

use ambar_codec::ErrorBound;

use crate::array::{Region, ShardEncoder};
use crate::error::Result;
use crate::metadata::ArrayMetadata;

/// How the shards of an array are encoded.
pub(in crate::ranks) struct Encoding {
    pub name: String,
    pub metadata: ArrayMetadata,
    pub origins: Option<Arc<[[i64; 3]]>>,
    /// Error bounds by chunk, if they differ.
    pub chunk_bounds: Option<Arc<[ErrorBound]>>,
}

impl Encoding {
    /// An encoder for the shards of a region.
    pub fn encoder<'a>(&'a self, region: Region, values: &'a [u8]) -> Result<ShardEncoder<'a>> {
        let origins = self.origins.as_deref();
        let encoder = ShardEncoder::new(&self.name, &self.metadata, origins, region, values)?;
        Ok(encoder.chunk_bounds(self.chunk_bounds.clone()))
    }
}
