//! AMReX plotfiles: folders of FABs, the values of one box each, with texts that say where they lie.

mod cellh;
mod fab;
mod files;
mod folder;
mod header;
mod level;
mod numbers;
mod particles;
mod plotfile;
mod species;
mod text;

pub use cellh::Extrema;
pub use plotfile::{LeftOut, Plotfile, Species, is_plotfile};
