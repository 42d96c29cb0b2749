//! What is found out about the values of an array before its chunks are encoded.

use ambar_codec::EncoderParams;

use super::pcodec;

/// How the codecs of an array encode its chunks. Decoding does not need it, so that it is not stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncoderSettings {
    /// Of the codec `ambar`; if `None`, parameters are chosen for each chunk.
    pub ambar: Option<EncoderParams>,
    /// Of pcodec; if `None`, it searches in each chunk.
    pub pcodec: Option<pcodec::Findings>,
}
