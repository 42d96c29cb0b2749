//! Codecs: from a chunk's values to checksummed bytes, and back.

/// How an array is to be compressed; all profiles are lossless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Reads at the speed of memory: raw, or byte shuffle and LZ4.
    Fast,
    /// Small where that costs little time in reading.
    #[default]
    Balanced,
    /// As small as the standard codecs get it.
    Small,
}
