//! Where the chunks of an array are stored.

use std::sync::Arc;

use super::shard::{ChunkLocation, Shard};
use crate::container::Entry;

/// Where a chunk is stored.
pub(super) enum StoredChunk {
    /// All of the entry of this key.
    Whole(String, Entry),
    /// A part of a shard.
    Part(Arc<Shard>, ChunkLocation),
}

impl StoredChunk {
    /// The entry that contains the chunk, its offset there, and its length.
    pub(super) fn place(&self) -> (&Entry, u64, u64) {
        match self {
            Self::Whole(_, entry) => (entry, 0, entry.len()),
            Self::Part(shard, place) => (&shard.entry, place.offset, place.len),
        }
    }

    /// The chunk's tag; `None` where the store has none.
    pub(super) fn tag(&self) -> Option<u32> {
        match self {
            Self::Whole(_, entry) => entry.seal(),
            Self::Part(_, place) => place.tag,
        }
    }
}
