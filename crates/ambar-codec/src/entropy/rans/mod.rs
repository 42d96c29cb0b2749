//! Static rANS with 8 or 32 interleaved states, and a frequency table for each context.
//!
//! Source of the method: J. Duda, "Asymmetric numeral systems" (arXiv:1311.2540); the word-wise
//! renormalisation and the interleaving follow F. Giesen, "Interleaved entropy coders"
//! (arXiv:1402.3392).

mod decode;
#[cfg(target_arch = "x86_64")]
mod decode_avx2;
#[cfg(target_arch = "x86_64")]
mod decode_avx512;
pub(crate) mod decode_table;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use decode_table::SymbolContexts;
pub(crate) use encode::EncodeTables;

/// Interleaved states of a short stream: independent chains of instructions for a scalar decoder.
pub(crate) const STATES: usize = 8;
/// Interleaved states of a long stream, for vector instructions.
pub(crate) const WIDE_STATES: usize = 32;
/// Streams with more bytes of coded symbols than this have `WIDE_STATES`.
pub(crate) const WIDE_STATES_MIN_BYTES: f64 = 64.0 * WIDE_STATES as f64;
/// States that are not initial states are at least this.
const LOWEST: u32 = 1 << 16;

/// The `count` lowest of the set bits.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn lowest_bits(mut bits: u32, count: usize) -> u32 {
    while bits.count_ones() as usize > count {
        bits ^= 1 << bits.ilog2();
    }
    bits
}
