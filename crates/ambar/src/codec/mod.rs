//! Codec pipelines: encode the values of a chunk as checksummed bytes, and decode them.
//!
//! The pipeline calls the codecs' libraries directly: it verifies checksums before it decodes anything,
//! decodes into the caller's memory and allocates nothing per chunk (`docs/decisions/0003-codec-chain.md`).

mod alone;
mod ambar;
mod arrays;
mod blosc;
mod candidates;
mod chain;
mod checksum;
mod choose;
mod config;
mod pcodec;
mod scratch;
mod simplices;
mod transpose;
mod vlen;

#[cfg(test)]
mod array_tests;
#[cfg(test)]
mod tests;

pub use alone::{Alone, decode_alone, encode_alone, encode_alone_with};
pub use ambar::{bound_from_json, bound_to_json};
pub use chain::CodecChain;

pub(crate) use ambar::{ChunkPlace, LeafCells, tune};
pub(crate) use candidates::{LONG_CHUNK, PLANE, usual};
pub(crate) use checksum::check_crc32c;
pub(crate) use choose::{Chosen, Purpose, Samples, choose, choose_corners, choose_long, samples};
pub(crate) use scratch::{CodecScratch, Scratch, Words, with_scratch};

/// The trade-off between size and speed of an array's codecs. Without an error bound all are lossless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Reads at the speed of memory: uncompressed, or byte shuffle and LZ4; within an error bound, the
    /// simplest contexts.
    Fast,
    /// Small if that costs little time in reading.
    #[default]
    Balanced,
    /// As small as possible; fields on unit blocks use the codec `ambar`, which is not a standard Zarr codec.
    Small,
    /// Uncompressed, with checksums: for disks that are faster than any codec.
    Raw,
}
