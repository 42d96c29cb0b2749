//! The directory container: one file per entry; a commit renames a new list of entries to its final name.
//!
//! ambar's own files are in the folder `.ambar` of the directory: `commit`, the list of the last commit's
//! entries; `commit-next`, the next list while it is written; `lock`; and `new-<number>`, entries that have
//! not been moved to their keys yet.

#[cfg(test)]
mod durability;
mod folder;
mod list;
mod place;
mod reader;
mod repair;
mod tree;
mod writer;

#[cfg(feature = "object-store")]
pub use list::{FileRecord, List};
pub use reader::DirectoryReader;
pub use repair::{compact, repair};
#[cfg(feature = "object-store")]
pub use tree::{LIST, OWN, staged_key};
pub use writer::DirectoryWriter;
