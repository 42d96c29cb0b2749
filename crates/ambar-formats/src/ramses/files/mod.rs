//! The files of an output and their formats.

pub mod amr;
pub mod blocks;
pub mod cell_files;
pub mod field_names;
pub mod folder;
pub mod fortran;
pub mod fortran_real;
pub mod info;
pub mod particle_files;
pub mod text_tables;
