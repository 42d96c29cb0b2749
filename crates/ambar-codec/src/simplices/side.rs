//! The two sides of a walk: one writes what it knows, the other reads it.

use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Probability};

/// Bits below the highest one of a number that follow what was coded; all others are taken to be noise.
const LEARNT: u32 = 3;
/// Bits of noise that are coded at a time.
const NOISE: u32 = 16;

/// Codes decisions: a writer is given them, a reader finds them out and ignores what it is given.
pub(super) trait Coder {
    /// Whether decisions are known before they are coded.
    const WRITES: bool;

    /// A yes or no; gives it back.
    fn bit(&mut self, probability: &mut Probability, bit: bool) -> bool;

    /// A number below `count`, at most 2^16; gives it back.
    fn uniform(&mut self, value: u32, count: u32) -> u32;

    /// A number of `width` bits under a tree of 2^width probabilities; gives it back.
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

/// Whole numbers of which small ones, or some lengths, are likelier than others.
pub(super) struct Magnitudes {
    /// Of a tree whose leaves are the lengths in bits.
    width: u32,
    lengths: [Probability; 128],
    /// For each length the bits below the highest.
    highest: [[Probability; 1 << LEARNT]; 65],
}

impl Magnitudes {
    /// For numbers up to `most`.
    pub fn new(most: u64) -> Self {
        Self {
            width: 32 - (64 - most.leading_zeros()).leading_zeros(),
            lengths: [Probability::default(); 128],
            highest: [[Probability::default(); 1 << LEARNT]; 65],
        }
    }

    /// Codes a number and gives it back; a reader may find one above the most.
    #[inline(always)]
    pub fn code<C: Coder>(&mut self, coder: &mut C, value: u64) -> u64 {
        let length = 64 - value.leading_zeros();
        let length = coder.tree(&mut self.lengths, length, self.width).min(64);
        if length < 2 {
            return u64::from(length);
        }
        let below = length - 1;
        let learnt = below.min(LEARNT);
        let mut left = below - learnt;
        let bits = (value >> left) as u32 & ((1 << learnt) - 1);
        let highest = &mut self.highest[length as usize];
        let mut found = 1 << learnt | u64::from(coder.tree(highest, bits, learnt));
        while left > 0 {
            let width = left.min(NOISE);
            left -= width;
            let bits = (value >> left) as u32 & ((1 << width) - 1);
            found = found << width | u64::from(coder.uniform(bits, 1 << width));
        }
        found
    }
}

/// A signed number as one that is not: 0, -1, 1, -2, 2 and so on.
pub(super) fn folded(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The number that was folded.
pub(super) fn unfolded(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_come_back_whatever_their_most() {
        for most in [1u64, 2, 7, 8, 4095, 1 << 40, u64::MAX] {
            let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64);
            let values = || {
                (0..2000u64)
                    .map(move |i| noise(i).min(most))
                    .chain([0, most])
            };
            let (mut encoder, mut numbers) = (BinaryEncoder::new(), Magnitudes::new(most));
            for value in values() {
                numbers.code(&mut encoder, value);
            }
            let bytes = encoder.finish();
            let (mut decoder, mut numbers) = (BinaryDecoder::new(&bytes), Magnitudes::new(most));
            for value in values() {
                assert_eq!(numbers.code(&mut decoder, 0), value, "most {most}");
            }
        }
    }

    #[test]
    fn folding_is_undone() {
        for value in [0, 1, -1, 77, -77, i64::MAX, i64::MIN] {
            assert_eq!(unfolded(folded(value)), value);
        }
        assert_eq!([0, -1, 1, -2, 2].map(folded), [0, 1, 2, 3, 4]);
    }
}
