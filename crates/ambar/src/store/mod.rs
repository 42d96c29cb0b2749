//! Stores: hierarchies of groups and arrays in a container, opened, written and verified.

mod copy;
mod history;
mod open;
mod update;
mod verify;
mod writer;

pub use crate::metadata::NodeKind;
pub use copy::CopiedNode;
pub use history::{Change, compact};
pub use open::{Group, Store};
pub use verify::Report;
pub use writer::StoreWriter;

/// Strips the leading `/` of a caller's path (`/amr/density`, `amr/density`, `/`).
pub(crate) fn name_of(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}
