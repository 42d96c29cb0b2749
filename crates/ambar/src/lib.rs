//! ambar: one store for simulation output.
//!
//! Data's way in: reader or caller -> [`kinds`] (names the arrays, cuts the chunks) -> codec
//! chain, in parallel -> shard -> container. Its way out is the same way back.

pub mod array;
mod buffers;
#[cfg(test)]
#[path = "../tests/cases/mod.rs"]
mod cases;
pub mod codec;
pub mod condition;
pub mod container;
pub mod dtype;
pub mod error;
pub mod kinds;
pub mod limits;
pub mod memory;
pub mod metadata;
mod numbers;
pub mod parallel;
pub mod process;
mod random;
pub mod ranks;
pub mod store;
mod strings;

pub use dtype::DataType;
pub use error::{Error, ErrorKind, Result};
pub use limits::{Limits, memory as memory_limit, set_memory as set_memory_limit};
pub use memory::Column;
