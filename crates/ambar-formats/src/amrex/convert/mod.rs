//! Conversion of plotfiles to stores, and of stores to plotfiles.

mod export;
mod import;
mod observed_extrema;
mod options;
mod run;
mod stored;

pub use export::export;
pub use import::{Input, convert};
pub use options::{ConvertOptions, SourceInfo};
pub use run::{OpenFile, convert_run};
