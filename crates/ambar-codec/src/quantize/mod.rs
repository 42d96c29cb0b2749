//! Quantization: values to residuals and tokens, and back.

pub(crate) mod float_order;
pub(crate) mod row_decoder;
pub(crate) mod row_encoder;
