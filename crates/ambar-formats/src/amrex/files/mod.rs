//! The files of a plotfile and their formats.

pub mod cell_header;
pub mod extrema;
pub mod fab;
pub mod folder;
pub mod header;
pub mod level;
pub mod names;
pub mod number_text;
pub mod open_files;
pub mod particle_data;
pub mod species;
pub mod text;
