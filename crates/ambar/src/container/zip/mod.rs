//! The single-file container: a ZIP64 of stored entries, appended to and committed through slots.

mod append;
#[cfg(test)]
mod hostile;
mod index;
mod locate;
mod parse;
mod reader;
mod records;
mod repair;
mod shared;
mod slot;
mod writer;

pub use reader::ZipReader;
pub use repair::{compact, repair};
pub use shared::{SharedFile, entry_bytes};
pub use writer::ZipWriter;
