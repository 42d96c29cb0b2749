//! The layout `patches` of the kind `amr`: levels made of boxes, as in AMReX.

mod hierarchy;
mod source;

pub use hierarchy::{IndexBox, MAX_INDEX, PatchHierarchy, PatchLevel};
pub use source::PatchSource;
