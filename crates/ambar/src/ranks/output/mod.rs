//! Output of a rank: encoded shards, in extents of the file that the rank owns.

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
