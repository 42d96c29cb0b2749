//! Reads patches: selections of leaf cells, images, covering grids, and boxes.

mod boxes;
pub(super) mod derived_columns;
mod grid;
mod project;
mod select;
mod window;

pub use derived_columns::is_derived;
