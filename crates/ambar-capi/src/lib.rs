//! What programs in C see of ambar: no logic, only its calling convention.

pub mod hdf5;
