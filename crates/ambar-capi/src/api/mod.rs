//! The C API: `ambar.h`.
//!
//! Every function returns a status and leaves its results behind pointers; no panic crosses. Nothing
//! is said twice: what a call does is told where the library does it.

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
pub use blocks::*;
pub use particles::*;
pub use ranks::*;
pub use snapshot::*;
pub use spec::*;
pub use status::*;
pub use store::*;
pub use writer::*;
