//! The kind `amr`: hierarchies of cells. This release holds its tree layout.

pub mod tree;
