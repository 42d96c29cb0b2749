//! Encoder settings that are chosen once for an array.

use ambar_codec::EncoderParams;

use super::pcodec;

/// How the codecs of an array encode its chunks. Decoding does not need it, so that it is not stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncoderSettings {
    /// Parameters of the codec `ambar`; if `None`, they are chosen for each chunk.
    pub ambar: Option<EncoderParams>,
    /// The order of differences for pcodec; if `None`, pco searches in each chunk.
    pub pcodec: Option<pcodec::KnownDeltas>,
}
