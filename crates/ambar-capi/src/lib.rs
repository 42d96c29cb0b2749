//! The C API of ambar and its HDF5 filter: the calling convention only, without logic of its own.
//!
//! `include/ambar.h` is generated from these files; `cargo test -p ambar-capi` fails if they differ.

#[cfg(feature = "api")]
pub mod api;
pub mod hdf5;
