//! Streams: the header, encoding and decoding, the settings and how they are tuned, and HDF5's packets.

pub(crate) mod compress;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod header;
#[cfg(test)]
mod kinds_of_bounds;
pub mod packet;
pub(crate) mod params;
pub(crate) mod prelude;
#[cfg(test)]
pub(crate) mod properties;
pub(crate) mod tune;
