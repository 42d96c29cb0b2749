//! What programs in C see of ambar: no logic, only its calling convention.
//!
//! `include/ambar.h` is made from these files by `cargo test -p ambar-capi`, which fails where the two
//! differ.

#[cfg(feature = "api")]
pub mod api;
pub mod hdf5;
