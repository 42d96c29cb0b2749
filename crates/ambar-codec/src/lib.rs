//! Compression of floating-point fields within an error bound, or without loss.
//!
//! Values are predicted by interpolation from coarser lattices, across unit blocks that touch; what
//! is left is quantised so that no value is off by more than the bound, and entropy coded under
//! contexts that say how large it is likely to be. Streams are self-contained.
//!
//! No I/O, and no threads of its own.

pub mod amric;
mod batch;
mod binary;
mod bitmap;
mod bits;
mod blocks;
mod bridge;
mod cells;
mod context;
mod continuation;
mod decode;
mod decoder;
mod element;
mod encoder;
mod error;
mod frequencies;
mod geometry;
mod groups;
mod header;
mod lattice;
mod mask;
mod order;
mod pack;
#[cfg(target_arch = "x86_64")]
mod pack512;
mod packed;
pub mod packet;
mod passes;
mod plan;
mod planes;
mod predict;
#[cfg(test)]
mod properties;
mod rans;
mod regions;
pub mod simplices;
mod slots;
mod stream;
mod tables;
mod token;
mod tune;
mod validity;
mod vectors;
#[cfg(target_feature = "avx2")]
mod wide;
#[cfg(target_feature = "avx2")]
mod wide512;

pub use decode::{Info, decode, inspect};
pub use element::Element;
pub use error::{Error, Result};
pub use header::VERSION;
pub use packed::most_bytes;
pub use plan::Plan;
pub use regions::Layout;
pub use stream::{Workspace, encode, encode_into};
pub use tune::{tune, tune_fast, tune_small};
