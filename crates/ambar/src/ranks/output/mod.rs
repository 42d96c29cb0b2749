//! Encodes the shards of a rank, and writes them to the extents of the file that it owns.

mod background;
mod encoding;
mod extents;
mod incomplete_shards;
mod shard_output;

pub(super) use background::{Background, ShardJob, Values};
pub(super) use encoding::Encoding;
pub(super) use extents::Extents;
pub use extents::{Placement, Reserve};
pub(super) use incomplete_shards::IncompleteShards;
pub(super) use shard_output::{Output, SharedExtents};
