//! Compression of floating-point fields within an error bound, or without loss.
//!
//! Values are predicted by interpolation from coarser lattices, across unit blocks that touch; what
//! is left is quantised so that no value is off by more than the bound, and entropy coded under
//! contexts that say how large it is likely to be. Streams are self-contained.
//!
//! No I/O, and no threads of its own.

mod bitpack;
mod bound;
mod domain;
mod element;
mod entropy;
mod error;
mod predict;
mod quantize;
mod simd;
pub mod simplices;
mod stream;

pub use bitpack::most_bytes;
pub use bound::{ErrorBound, InvalidBound};
pub use domain::regions::Layout;
pub use element::Element;
pub use error::{Error, Result};
pub use stream::compress::{encode, encode_into, tune, tune_fast, tune_small};
pub use stream::decode::{Info, LENGTHS_BYTES, Prefix, decode, decode_prefix, inspect, prefix};
pub use stream::encode::Workspace;
pub use stream::header::VERSION;
pub use stream::packet;
pub use stream::params::Plan;
