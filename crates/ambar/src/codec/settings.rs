//! What is found out about the values of an array before its chunks are encoded.

use ambar_codec::EncoderParams;

use super::chain::{CodecChain, ValueCodec};
use super::pcodec;
use crate::dtype::DataType;

/// How the codecs of an array encode its chunks. Decoding does not need it, so that it is not stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncoderSettings {
    /// Of the codec `ambar`; if `None`, parameters are chosen for each chunk.
    pub ambar: Option<EncoderParams>,
    /// Of pcodec; if `None`, it searches in each chunk.
    pub pcodec: Option<pcodec::Findings>,
}

impl EncoderSettings {
    /// The settings with what pcodec found in sampled chunks that `chain` encoded.
    pub fn after_samples<'a>(
        self,
        chain: &CodecChain,
        dtype: &DataType,
        encoded: impl Iterator<Item = &'a [u8]>,
    ) -> Self {
        let pcodec = match chain.values {
            ValueCodec::Pcodec(_) => pcodec::Findings::in_chunks(dtype, encoded),
            _ => None,
        };
        Self { pcodec, ..self }
    }
}
