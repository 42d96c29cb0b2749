//! The single-file container: a ZIP64 of entries, appended to and committed through slots.

mod appender;
mod commit_record;
#[cfg(test)]
mod crash_tests;
mod deflate;
mod entry_record;
mod entry_table;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod hostile_files;
mod last_commit;
mod next_commit;
mod reader;
mod records;
mod repair;
mod shared_file;
mod slot;
#[cfg(feature = "object-store")]
mod upload;
mod writer;

pub use reader::ZipReader;
pub use repair::{compact, repair};
pub use shared_file::{SharedFile, entry_bytes};
#[cfg(feature = "object-store")]
pub use upload::{Upload, UploadWriter};
pub use writer::ZipWriter;
