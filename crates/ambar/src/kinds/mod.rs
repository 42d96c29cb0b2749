//! The kinds: what a group of arrays means, and how parts of it are read.

pub mod amr;
pub mod attributes;
pub mod bound;
mod filling;
pub mod memory_source;
pub mod morton;
pub(crate) mod numbers;
pub mod particles;
pub mod predicate;
pub mod rank_particles;
pub mod region;
pub(crate) mod rows;
pub mod select;
pub mod source;
pub mod steps;
pub mod stored;
pub mod table;
pub mod write;

#[cfg(test)]
mod tests;
