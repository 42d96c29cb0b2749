//! The chunks that a read needs, and the stored bytes of each.

use crate::container::EntryRange;

/// The chunks of a read, by number.
pub(super) struct ChunkRequests<C, P> {
    /// Returns the chunk of a number; `None` if the read skips it.
    pub chunk: C,
    /// Returns the parts that are fetched of a chunk's stored bytes.
    pub parts: P,
}

/// All stored bytes of a chunk.
pub(super) fn whole(_: usize, part: EntryRange) -> Vec<EntryRange> {
    vec![part]
}
