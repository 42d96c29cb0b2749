//! The kinds of groups of arrays: tables, particles, AMR cells; and reads of parts of them.

pub mod amr;
pub mod attributes;
pub mod binning;
pub mod bound;
pub mod computed;
mod filling;
pub mod memory_source;
pub mod morton;
pub mod particles;
pub mod rank_particles;
pub mod region;
pub mod render;
pub(crate) mod rows;
pub mod select;
pub(crate) mod selected_rows;
pub mod source;
pub mod steps;
pub mod stored;
pub mod streamed;
pub mod table;
pub mod write;
mod write_selected;

#[cfg(test)]
mod tests;
