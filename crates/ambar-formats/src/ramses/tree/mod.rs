//! The octree of an output: octs and cells along the Morton curve, and which of them a read needs.

pub mod cell_order;
pub mod hilbert;
pub mod lattice;
pub mod morton_key;
pub mod octs;
pub mod region_bounds;
