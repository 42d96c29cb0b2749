//! Conversion of plotfiles to stores, and of stores to plotfiles.

mod export;
mod import;
mod options;
mod stored;

pub use export::export;
pub use import::{convert, convert_source};
pub use options::{ConvertOptions, ConvertReport, SourceInfo};
