//! Quantization: residuals of values to tokens and raw bits, and back.

pub(crate) mod float_order;
pub(crate) mod row_decoder;
pub(crate) mod row_encoder;
