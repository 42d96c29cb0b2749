//! The single-file container: a ZIP64 of stored entries, appended to and committed through slots.

mod append;
mod locate;
mod parse;
mod reader;
mod records;
mod slot;
mod writer;

pub use reader::ZipReader;
pub use writer::ZipWriter;
