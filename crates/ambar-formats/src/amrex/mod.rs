//! AMReX plotfiles: folders of FABs (the values of one box each), with text files that describe them.
//!
//! - `files`: the file formats (`Header`, `Cell_H`, FABs, particle species).
//! - `plotfile`: one plotfile, opened and checked, and reading its values.
//! - `layout`: the arrangement of a plotfile's files, with which it can be written again byte for byte.
//! - `write`: writing plotfiles.
//! - `convert`: plotfiles to stores, and stores to plotfiles.

mod convert;
mod files;
pub mod json;
mod layout;
mod plotfile;
mod write;

pub use crate::progress::Progress;
pub use convert::{ConvertOptions, Input, OpenFile, SourceInfo, convert, convert_run, export};
pub use files::extrema::Extrema;
pub use files::folder::{FileUsage, IgnoredEntry};
pub use files::names::{field_names, renamed};
pub use layout::PlotfileLayout;
pub use layout::run::{RunInfo, RunLevel};
pub use plotfile::{Plotfile, Species, is_plotfile};
pub use write::request::{SpeciesData, WriteRequest};
pub use write::write_plotfile;
