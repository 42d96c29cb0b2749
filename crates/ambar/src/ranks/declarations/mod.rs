//! Declarations of a commit, equal on all ranks: arrays, groups, strings, and ranges of values. [`RankWriter`] makes them
//! in `declare.rs` and `collective.rs`.
//!
//! [`RankWriter`]: super::RankWriter

mod declared_array;
pub(super) mod definition;
pub(super) mod ranges;

pub use declared_array::ArrayId;
pub(super) use declared_array::DeclaredArray;
pub(super) use definition::Definition;
pub(super) use ranges::GatheredRanges;
pub(crate) use ranges::RangesId;
