//! What ranks declare for a commit, in the same order: arrays, groups, and ranges of values that they report.

mod collective;
mod declaration;
mod declared_array;
pub(super) mod definition;
mod ranges;

pub use declared_array::ArrayId;
pub(super) use declared_array::DeclaredArray;
pub(super) use definition::Definition;
pub(super) use ranges::GatheredRanges;
pub(crate) use ranges::RangesId;
