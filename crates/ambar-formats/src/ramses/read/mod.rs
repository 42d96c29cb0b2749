//! Reading cells and particles of an output.

mod buffers;
mod cells;
mod domain;
mod gather;
mod leaf_tree;
pub mod on_demand;
mod particles;
mod plan;
pub mod request;
mod root;
