//! The coder of a traversal, which is shared by encoder and decoder.

use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Probability};

/// The number of bits below the highest one of a number that have adaptive probabilities; lower bits are uniform.
const ADAPTIVE_BITS: u32 = 3;
/// Maximum number of uniform bits that are coded in one call.
const UNIFORM_BITS: u32 = 16;

/// Codes decisions. An encoder writes the given decision; a decoder ignores it and reads one. Both return the decision.
pub(super) trait Coder {
    /// Whether decisions are known before they are coded: true for encoders.
    const WRITES: bool;

    /// Codes a bit.
    fn bit(&mut self, probability: &mut Probability, bit: bool) -> bool;

    /// Codes a uniform number below `count`, at most 2^16.
    fn uniform(&mut self, value: u32, count: u32) -> u32;

    /// Codes a number of `width` bits with a tree of 2^width probabilities.
    #[inline(always)]
    fn tree(&mut self, probabilities: &mut [Probability], value: u32, width: u32) -> u32 {
        let mut node = 1;
        for place in (0..width).rev() {
            let bit = self.bit(&mut probabilities[node], value >> place & 1 == 1);
            node = 2 * node + usize::from(bit);
        }
        node as u32 - (1 << width)
    }
}

impl Coder for BinaryEncoder {
    const WRITES: bool = true;

    #[inline(always)]
    fn bit(&mut self, probability: &mut Probability, bit: bool) -> bool {
        Self::bit(self, probability, bit);
        bit
    }

    #[inline(always)]
    fn uniform(&mut self, value: u32, count: u32) -> u32 {
        Self::uniform(self, value, count);
        value
    }
}

impl Coder for BinaryDecoder<'_> {
    const WRITES: bool = false;

    #[inline(always)]
    fn bit(&mut self, probability: &mut Probability, _: bool) -> bool {
        Self::bit(self, probability)
    }

    #[inline(always)]
    fn uniform(&mut self, _: u32, count: u32) -> u32 {
        Self::uniform(self, count)
    }
}

/// Probabilities of integers, by their lengths in bits.
pub(super) struct Magnitudes {
    /// The width of the tree of lengths.
    width: u32,
    lengths: [Probability; 128],
    /// For each length, the bits below the highest.
    highest: [[Probability; 1 << ADAPTIVE_BITS]; 65],
}

impl Magnitudes {
    /// For numbers up to `max`.
    pub fn new(max: u64) -> Self {
        Self {
            width: 32 - (64 - max.leading_zeros()).leading_zeros(),
            lengths: [Probability::default(); 128],
            highest: [[Probability::default(); 1 << ADAPTIVE_BITS]; 65],
        }
    }

    /// Codes a number. A decoder may return one above the maximum.
    #[inline(always)]
    pub fn code<C: Coder>(&mut self, coder: &mut C, value: u64) -> u64 {
        let length = 64 - value.leading_zeros();
        let length = coder.tree(&mut self.lengths, length, self.width).min(64);
        if length < 2 {
            return u64::from(length);
        }
        let below = length - 1;
        let learnt = below.min(ADAPTIVE_BITS);
        let mut left = below - learnt;
        let bits = (value >> left) as u32 & ((1 << learnt) - 1);
        let highest = &mut self.highest[length as usize];
        let mut found = 1 << learnt | u64::from(coder.tree(highest, bits, learnt));
        while left > 0 {
            let width = left.min(UNIFORM_BITS);
            left -= width;
            let bits = (value >> left) as u32 & ((1 << width) - 1);
            found = found << width | u64::from(coder.uniform(bits, 1 << width));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_round_trip_for_all_maxima() {
        for max in [1u64, 2, 7, 8, 4095, 1 << 40, u64::MAX] {
            let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64);
            let values = || (0..2000u64).map(move |i| noise(i).min(max)).chain([0, max]);
            let (mut encoder, mut numbers) = (BinaryEncoder::new(), Magnitudes::new(max));
            for value in values() {
                numbers.code(&mut encoder, value);
            }
            let bytes = encoder.finish();
            let (mut decoder, mut numbers) = (BinaryDecoder::new(&bytes), Magnitudes::new(max));
            for value in values() {
                assert_eq!(numbers.code(&mut decoder, 0), value, "maximum {max}");
            }
        }
    }
}
