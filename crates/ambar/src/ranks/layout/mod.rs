//! How an array is divided: into blocks of ranks, into chunks and shards, and shards among the ranks.

mod decomposition;
mod division;
mod owners;

pub use decomposition::Decomposition;
pub(in crate::ranks) use division::divide;
pub(in crate::ranks) use owners::{CachedOwners, Owners};
