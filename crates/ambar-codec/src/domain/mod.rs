//! Positions of values: layouts, their regions and lattices, and which points are present.

pub(crate) mod bitmap;
pub(crate) mod blocks;
pub(crate) mod components;
pub(crate) mod holes;
pub(crate) mod lattice;
pub(crate) mod mask;
pub(crate) mod padding;
pub(crate) mod regions;
pub(crate) mod tree;
