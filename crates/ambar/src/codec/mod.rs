//! Codec pipelines: encode the values of a chunk as checksummed bytes, and decode them.
//!
//! The pipeline calls the codecs' libraries directly. It verifies checksums before it decodes anything,
//! decodes into the caller's memory and allocates nothing per chunk (`docs/decisions/0003-codec-chain.md`).

mod ambar;
mod array_to_array;
mod bare_array;
mod blosc;
mod bound_format;
mod candidates;
mod chain;
mod chain_metadata;
mod checksum;
mod choice;
mod difference_orders;
mod padding;
mod pcodec;
mod scratch;
mod settings;
mod simplices;
mod transpose;
mod vlen;

#[cfg(test)]
mod array_to_array_tests;
#[cfg(test)]
mod tests;

pub use ambar::{bound_from_json, bound_to_json};
pub use bare_array::{BareArray, decode_bare_array, encode_bare_array, encode_bare_array_with};
pub use bound_format::format_bound;
pub use chain::CodecChain;

pub(crate) use ambar::{ChunkGeometry, LeafCells, count_finite, tune};
pub(crate) use candidates::{LONG_CHUNK_BYTES, PLANE_VALUES, default_chain};
pub(crate) use checksum::check_crc32c;
pub(crate) use choice::{
    ChunkSamples, CodecChoice, Purpose, choose, choose_corners, choose_long, samples,
};
pub(crate) use padding::{ChunkPadding, PaddingValues};
pub(crate) use scratch::{AlignedBuffer, CodecScratch, Scratch, with_scratch};
pub(crate) use settings::EncoderSettings;

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
