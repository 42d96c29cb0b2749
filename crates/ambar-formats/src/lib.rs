//! Readers and writers of simulation output formats, in terms of the data kinds of the `ambar` crate.
//!
//! - [`ramses`]: reads RAMSES outputs and converts them to stores.
//! - [`amrex`]: reads and writes AMReX plotfiles, and converts both ways.
//! - [`series`]: converts the outputs of a run to one store, output by output.

pub mod amrex;
mod progress;
pub mod ramses;
pub mod series;
