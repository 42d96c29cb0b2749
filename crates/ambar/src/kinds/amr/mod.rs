//! The kind `amr`: hierarchies of cells, in the layout `tree` or `patches`.

mod image;
pub mod patches;
mod raster;
pub mod tree;
mod window;

pub use image::Weight;
pub use patches::PatchAmr;
pub use tree::{AmrTree, Jump, LEVEL, Leaves, TreeShape};
pub use window::Window;

/// Names of the coordinates.
pub const AXES: [&str; 3] = ["x", "y", "z"];
