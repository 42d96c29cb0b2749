//! The directory container: a file an entry, committed by a list of entries that is renamed in place.
//!
//! ambar's own files lie in the folder `.ambar` of the directory: `commit`, the list of the last
//! commit's entries; `lock`; and `new-<number>`, entries that have not got their place yet.

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
pub use list::List;
pub use reader::DirectoryReader;
pub use repair::{compact, repair};
#[cfg(feature = "object-store")]
pub use tree::{LIST, OWN, waiting};
pub use writer::DirectoryWriter;
