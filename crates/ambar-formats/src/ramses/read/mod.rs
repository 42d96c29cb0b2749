//! Reading cells and particles of an output.

mod buffers;
pub mod cells;
mod domain;
mod gather;
mod leaf_tree;
pub mod on_demand;
mod particles;
mod plan;
pub mod request;
mod root;
pub mod sorted_particles;

#[cfg(test)]
mod window_tests;
