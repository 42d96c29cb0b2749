//! One store written by many processes (ranks, as MPI calls them), into one file.
//!
//! Every step that needs others is bytes in, bytes out, so that nothing here knows how they travel:
//!
//! 1. Rank 0 makes a [`RankWriter`] with [`RankWriter::create`] or [`RankWriter::append`], and gives
//!    its [`RankWriter::invitation`] to the others, who [`RankWriter::join`].
//! 2. All declare the same arrays in the same order; a commit is refused where two ranks declare one
//!    differently. Who holds what of them, their [`Decomposition`], was gathered from all before. Chunks
//!    and shards are cut along it.
//! 3. Each writes its blocks. Shards that it holds whole are encoded and go to extents of the file
//!    that it owns; no rank waits for another one. Of the others, one rank is the owner: pieces for
//!    it wait in the [`RankWriter::outbox`].
//! 4. Pieces are exchanged ([`RankWriter::inbox`]), the rest is encoded and made durable
//!    ([`RankWriter::seal`]), and rank 0 commits what all have written ([`RankWriter::commit`]). Where
//!    one has failed, nothing is committed, and all ranks get the error ([`RankWriter::conclude`]).
//!
//! `docs/decisions/0012-many-processes.md` says why.

mod commit;
mod declare;
mod declared;
mod decomposition;
mod definition;
mod digest;
mod division;
mod extents;
mod gather;
mod message;
mod owners;
mod pending;
mod ranges;
mod write;
mod writer;

#[cfg(test)]
pub(crate) mod team;
#[cfg(test)]
mod tests;

pub use declared::ArrayId;
pub use decomposition::Decomposition;
pub(crate) use digest::digest;
pub use extents::{Placement, Reserve};
pub(crate) use ranges::RangesId;
pub use writer::{RankOptions, RankWriter};
