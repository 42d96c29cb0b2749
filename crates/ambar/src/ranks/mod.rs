//! Stores that several processes (MPI ranks) write into one file.
//!
//! Messages between ranks are byte strings, so this module does not depend on the transport:
//!
//! 1. Rank 0 opens a [`RankWriter`] with [`RankWriter::create`] or [`RankWriter::append`], and sends
//!    its [`RankWriter::invitation`] to the other ranks, which [`RankWriter::join`].
//! 2. All ranks declare the same arrays in the same order; otherwise the commit fails. The blocks of all
//!    ranks, their [`Decomposition`], must be gathered before. Chunks and shards are aligned with it.
//! 3. Each rank writes its blocks. Shards that are inside of a block are encoded and written to extents of the
//!    file that the rank owns, without communication. Other shards have an owner: pieces for
//!    it are collected in a message ([`RankWriter::message_to`]).
//! 4. Messages are exchanged ([`RankWriter::receive`]), remaining shards are encoded and made durable
//!    ([`RankWriter::seal`]), and rank 0 commits the entries of all ranks ([`RankWriter::commit`]). If
//!    one rank has failed, nothing is committed, and all ranks get the error ([`RankWriter::conclude`]).
//!
//! With [`RankOptions::queue`] a thread encodes and writes in the background: [`RankWriter::begin_seal`] returns
//! before it is done, and `seal` waits for it. Only the thread of the program exchanges messages.
//!
//! `docs/decisions/0012-many-processes.md` gives the reasons.

mod collective;
mod commit;
mod declarations;
mod declare;
mod digest;
mod layout;
mod message;
mod output;
mod regions;
mod write;
mod writer;

#[cfg(test)]
pub(crate) mod team;
#[cfg(test)]
mod tests;

pub use declarations::ArrayId;
pub(crate) use declarations::RangesId;
pub(crate) use digest::digest;
pub use layout::Decomposition;
pub use output::{Placement, Reserve};
pub use regions::{ArrayRegion, RegionWriter, SharedCommit};
pub use writer::{RankOptions, RankWriter};
