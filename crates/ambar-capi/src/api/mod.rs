//! The C API: `ambar.h`.
//!
//! Every function returns a status and writes results to pointers; panics are caught. `arguments::from_c` converts
//! arguments.

mod amr;
mod arguments;
mod blocks;
mod particles;
mod ranks;
mod snapshot;
mod spec;
mod status;
mod store;
mod writer;

pub use amr::*;
pub use arguments::{ambar_bytes, ambar_bytes_free};
pub use blocks::*;
pub use particles::*;
pub use ranks::*;
pub use snapshot::*;
pub use spec::*;
pub use status::*;
pub use store::*;
pub use writer::*;
