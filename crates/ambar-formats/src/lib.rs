//! Readers of other codes' files: each yields the kinds of the `ambar` library.

pub mod amrex;
pub mod ramses;
