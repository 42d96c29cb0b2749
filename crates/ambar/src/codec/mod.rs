//! Codecs: from a chunk's values to checksummed bytes, and back.
//!
//! A chain of our own, directly over the codecs' libraries: it verifies checksums before it decodes
//! anything, decodes straight into the caller's memory and allocates nothing per chunk.
//! `docs/decisions/0003-codec-chain.md` says why.

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
pub use chain::CodecChain;

pub(crate) use ambar::{ChunkPlace, LeafCells, tune};
pub(crate) use candidates::{LONG_CHUNK, PLANE, usual};
pub(crate) use checksum::check_crc32c;
pub(crate) use choose::{Chosen, Purpose, Samples, choose, choose_corners, choose_long, samples};
pub(crate) use scratch::{CodecScratch, Scratch, Words, with_scratch};

/// How an array is to be compressed, where no error bound says more; all profiles are lossless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Reads at the speed of memory: raw, or byte shuffle and LZ4; within an error bound with the
    /// simplest contexts.
    Fast,
    /// Small where that costs little time in reading.
    #[default]
    Balanced,
    /// As small as it gets; fields on unit blocks with the codec `ambar`, which is not one of Zarr's.
    Small,
    /// As they are, with their checksums: where the disk is faster than any codec.
    Raw,
}
