//! Stores: hierarchies of groups and arrays in a container, opened, written and verified.

mod open;
mod update;
mod verify;
mod writer;

pub use crate::metadata::NodeKind;
pub use open::{Group, Store};
pub use verify::Report;
pub use writer::StoreWriter;

/// A path as callers write it (`/amr/density`, `amr/density`, `/`) without its leading `/`.
pub(crate) fn name_of(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}
