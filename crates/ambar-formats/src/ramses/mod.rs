//! RAMSES outputs: folders of Fortran files, with one file of each component for every domain.
//!
//! - `files`: the file formats (Fortran records, info, amr, cell, particle and text files).
//! - `tree`: octs along the Morton curve, and the selection of cells and domains.
//! - `output`: one output, with its headers read.
//! - `read`: reading cells and particles, in one call or on demand.
//! - `convert`: outputs and series of outputs to stores.

mod component;
mod convert;
mod files;
pub mod json;
mod output;
mod read;
mod tree;

pub use crate::progress::Progress;
pub use component::{Component, ComponentKind, Field, MissingReason};
pub use convert::{ConvertOptions, convert};
pub use files::info::Info;
pub use output::Output;
pub use read::on_demand::{OutputCells, particles_on_demand};
pub use read::request::{CellsRequest, LeafCells, ParticlesRequest};
