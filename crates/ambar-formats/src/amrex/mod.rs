//! AMReX plotfiles: folders of FABs, the values of one box each, with texts that say where they lie.

mod cellh;
mod convert;
mod export;
mod fab;
mod files;
mod folder;
mod header;
pub mod json;
mod layout;
mod level;
mod numbers;
mod particles;
mod plotfile;
mod species;
mod text;
mod write;
mod write_fields;
mod write_particles;

pub use cellh::Extrema;
pub use convert::{About, ConvertOptions, Converted, convert, convert_source};
pub use export::export;
pub use layout::{Layout, Run, RunLevel, field_names, renamed};
pub use plotfile::{LeftOut, Plotfile, Species, is_plotfile};
pub use write::{Progress, SpeciesData, WriteRequest, write_plotfile};
