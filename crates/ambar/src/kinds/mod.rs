//! The kinds: what a group of arrays means, and how parts of it are read.

pub mod amr;
pub mod region;
pub mod source;
