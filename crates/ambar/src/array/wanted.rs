//! Which chunks are read, and what of their stored bytes.

use crate::container::EntryRange;

/// What reading a number of chunks needs.
pub(super) struct Wanted<C, P> {
    /// Which chunk a number is of.
    pub chunk: C,
    /// The parts of its stored bytes that are to be fetched, all of which are given.
    pub parts: P,
}

/// All bytes of a chunk.
pub(super) fn whole(_: usize, part: EntryRange) -> Vec<EntryRange> {
    vec![part]
}
