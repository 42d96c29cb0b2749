//! Streams: header, encoder, decoder, choice of encoder parameters, and packets of HDF5 chunks.

#[cfg(test)]
mod bound_properties;
pub(crate) mod bound_search;
pub(crate) mod choice;
pub(crate) mod coefficients;
pub(crate) mod compress;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod header;
pub(crate) mod input;
pub(crate) mod mean_error;
pub mod packet;
#[cfg(test)]
mod padding_properties;
pub(crate) mod params;
pub(crate) mod prelude;
#[cfg(test)]
pub(crate) mod properties;
mod write;
