//! Reconstruction of values from predictions and tokens.

use crate::element::Element;
use crate::entropy::token::DIRECT;
use crate::simd::LANES;
use crate::simd::dispatch::vectorised;

/// Adds the residual of a token to a prediction. Tokens with raw bits, which exist only if `RAW`, leave the prediction
/// unchanged.
#[inline(always)]
pub(crate) fn add_token<T: Element, const RAW: bool>(prediction: T, token: u8, step: T) -> T {
    let folded = i32::from(token);
    let residual = T::from_i32(folded >> 1 ^ -(folded & 1)).times(step);
    // Adding -0 changes no number, not even -0.
    let neg_zero = T::from_f64(-0.0);
    prediction.plus(if RAW && token >= DIRECT {
        neg_zero
    } else {
        residual
    })
}

vectorised! {
    /// Adds the residuals of tokens to predictions. Returns the bitwise or of the tokens, which is at least `DIRECT` if any
    /// has raw bits.
    pub(crate) fn add_tokens [T: Element] of [T] (
        tokens: &[u8],
        step: T,
        predictions: &[T],
        values: &mut [T],
    ) -> u8 {
        let n = values.len() / LANES * LANES;
        let (tokens, predictions, values) = (&tokens[..n], &predictions[..n], &mut values[..n]);
        for k in 0..n {
            values[k] = add_token::<T, false>(predictions[k], tokens[k], step);
        }
        tokens.iter().fold(0, |any, token| any | token)
    }
}

vectorised! {
    /// As [`add_tokens`], and stores residual magnitudes.
    pub(crate) fn add_and_store_magnitudes [T: Element] of [T] (
        tokens: &[u8],
        step: T,
        predictions: &[T],
        values: &mut [T],
        magnitudes: &mut [u8],
    ) -> u8 {
        let n = values.len() / LANES * LANES;
        let (tokens, predictions, values) = (&tokens[..n], &predictions[..n], &mut values[..n]);
        let magnitudes = &mut magnitudes[..n];
        for k in 0..n {
            magnitudes[k] = (tokens[k] + 1) >> 1;
        }
        for k in 0..n {
            values[k] = add_token::<T, false>(predictions[k], tokens[k], step);
        }
        tokens.iter().fold(0, |any, token| any | token)
    }
}
