//! An adaptive binary range coder for the small parts of a stream: masks, block keys, frequency tables, trees.
//!
//! Probabilities have 12 bits and adapt to the coded bits. Source of the method: G. N. N. Martin, "Range encoding"
//! (1979); the carry propagation is that of LZMA.

use crate::error::{Result, corrupt};

/// Bits of a probability.
const BITS: u32 = 12;
/// Adaptation moves a probability by its distance from 0 or 1, shifted right by this.
const RATE: u32 = 4;

/// The probability of a 0, out of 2^12.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probability(u16);

impl Default for Probability {
    fn default() -> Self {
        Self(1 << (BITS - 1))
    }
}

impl Probability {
    fn adapt(&mut self, bit: bool) {
        if bit {
            self.0 -= self.0 >> RATE;
        } else {
            self.0 += ((1 << BITS) - self.0) >> RATE;
        }
    }

    fn bound(self, range: u32) -> u32 {
        (range >> BITS) * u32::from(self.0.clamp(1, (1 << BITS) - 1))
    }
}

/// Encodes bits.
pub(crate) struct BinaryEncoder {
    low: u64,
    range: u32,
    pending_byte: u8,
    pending_count: u64,
    out: Vec<u8>,
}

impl BinaryEncoder {
    pub(crate) fn new() -> Self {
        Self {
            low: 0,
            range: u32::MAX,
            pending_byte: 0,
            pending_count: 1,
            out: Vec::new(),
        }
    }

    /// Encodes a bit, and adapts its probability.
    pub(crate) fn bit(&mut self, probability: &mut Probability, bit: bool) {
        let bound = probability.bound(self.range);
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        probability.adapt(bit);
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
    }

    /// Encodes a bit whose probability of being 1 is `one`, in parts of 2^16, at least 1 of them and less than all.
    #[inline(always)]
    pub(crate) fn bit_with(&mut self, one: u32, bit: bool) {
        let bound = (self.range >> 16) * one;
        if bit {
            self.range = bound;
        } else {
            self.low += u64::from(bound);
            self.range -= bound;
        }
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
    }

    /// Encodes a number below `count`, at most 2^16, with uniform probabilities.
    pub(crate) fn uniform(&mut self, value: u32, count: u32) {
        self.range /= count;
        self.low += u64::from(value * self.range);
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
    }

    /// Encodes the lowest `width` bits of `value` with a tree of 2^width probabilities.
    pub(crate) fn tree(&mut self, probabilities: &mut [Probability], value: u32, width: u32) {
        let mut node = 1;
        for place in (0..width).rev() {
            let bit = value >> place & 1 == 1;
            self.bit(&mut probabilities[node], bit);
            node = 2 * node + usize::from(bit);
        }
    }

    fn shift(&mut self) {
        if (self.low as u32) < 0xff00_0000 || self.low >> 32 != 0 {
            let carry = (self.low >> 32) as u8;
            let mut byte = self.pending_byte;
            for _ in 0..self.pending_count {
                self.out.push(byte.wrapping_add(carry));
                byte = 0xff;
            }
            self.pending_count = 0;
            self.pending_byte = (self.low >> 24) as u8;
        }
        self.pending_count += 1;
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// The bytes, without trailing zeros, which the decoder supplies.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        // Of the numbers that the decoder may read, one with the most zeros at its end.
        let end = self.low + u64::from(self.range);
        let ending_in_zeros = (1..=32).map(|bits| self.low.div_ceil(1 << bits) << bits);
        self.low = ending_in_zeros
            .take_while(|x| *x < end)
            .last()
            .unwrap_or(self.low);
        for _ in 0..5 {
            self.shift();
        }
        // The first byte is always 0.
        let mut bytes = self.out.split_off(1);
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }
}

/// Decodes what [`BinaryEncoder`] wrote. Reads zeros after the end.
pub(crate) struct BinaryDecoder<'a> {
    bytes: std::slice::Iter<'a, u8>,
    range: u32,
    code: u32,
}

impl<'a> BinaryDecoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes: bytes.iter(),
            range: u32::MAX,
            code: 0,
        };
        for _ in 0..4 {
            decoder.code = decoder.code << 8 | decoder.next();
        }
        decoder
    }

    fn next(&mut self) -> u32 {
        self.bytes.next().copied().map_or(0, u32::from)
    }

    /// Decodes a bit, and adapts its probability.
    pub(crate) fn bit(&mut self, probability: &mut Probability) -> bool {
        let bound = probability.bound(self.range);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        probability.adapt(bit);
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
        bit
    }

    /// Decodes a bit whose probability of being 1 is `one`, in parts of 2^16.
    #[inline(always)]
    pub(crate) fn bit_with(&mut self, one: u32) -> bool {
        let bound = (self.range >> 16) * one;
        let bit = self.code < bound;
        if bit {
            self.range = bound;
        } else {
            self.code -= bound;
            self.range -= bound;
        }
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
        bit
    }

    /// Decodes a number below `count`, at most 2^16.
    pub(crate) fn uniform(&mut self, count: u32) -> u32 {
        self.range /= count;
        // The remainder of the division belongs to no number.
        let value = (self.code / self.range).min(count - 1);
        self.code -= value * self.range;
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
        value
    }

    /// Decodes `width` bits with a tree of 2^width probabilities.
    pub(crate) fn tree(&mut self, probabilities: &mut [Probability], width: u32) -> u32 {
        let mut node = 1;
        for _ in 0..width {
            node = 2 * node + usize::from(self.bit(&mut probabilities[node]));
        }
        node as u32 - (1 << width)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.bytes.as_slice().is_empty() {
            Ok(())
        } else {
            Err(corrupt!(
                "expected the end of a section after its last bit; found {} more bytes",
                self.bytes.len()
            ))
        }
    }
}

/// Probabilities of integers: of their lengths in bits, and of the bits below the highest.
pub(crate) struct NumberModel {
    lengths: Vec<Probability>,
    bits: Vec<Probability>,
}

impl NumberModel {
    pub(crate) fn new() -> Self {
        Self {
            lengths: vec![Probability::default(); 128],
            bits: vec![Probability::default(); 64 * 64],
        }
    }

    /// Encodes a number.
    pub(crate) fn write(&mut self, encoder: &mut BinaryEncoder, value: u64) {
        let length = 64 - value.leading_zeros();
        encoder.tree(&mut self.lengths, length, 7);
        for place in (0..length.saturating_sub(1)).rev() {
            let probability = &mut self.bits[(length as usize - 1) * 64 + place as usize];
            encoder.bit(probability, value >> place & 1 == 1);
        }
    }

    /// Decodes a number.
    pub(crate) fn read(&mut self, decoder: &mut BinaryDecoder<'_>) -> u64 {
        let length = decoder.tree(&mut self.lengths, 7).min(64);
        if length == 0 {
            return 0;
        }
        let mut value = 1u64;
        for place in (0..length - 1).rev() {
            let probability = &mut self.bits[(length as usize - 1) * 64 + place as usize];
            value = value << 1 | u64::from(decoder.bit(probability));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_numbers_and_bits_round_trip() {
        let counts = [1, 2, 3, 63, 64, 1000, 65_535, 65_536];
        let values = (0..4000u32).map(|i| {
            let count = counts[i as usize % counts.len()];
            (i.wrapping_mul(2_654_435_761) % count, count)
        });
        let (mut encoder, mut probability) = (BinaryEncoder::new(), Probability::default());
        for (value, count) in values.clone() {
            encoder.uniform(value, count);
            encoder.uniform(count - 1, count);
            encoder.bit(&mut probability, value % 5 == 0);
        }
        let bytes = encoder.finish();
        let (mut decoder, mut probability) = (BinaryDecoder::new(&bytes), Probability::default());
        for (value, count) in values {
            assert_eq!(decoder.uniform(count), value);
            assert_eq!(decoder.uniform(count), count - 1);
            assert_eq!(decoder.bit(&mut probability), value % 5 == 0);
        }
    }

    #[test]
    fn numbers_round_trip() {
        let values: Vec<u64> = (0..5000u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64)) * u64::from(i % 7 != 0))
            .chain([u64::MAX, 0, 1])
            .collect();
        let (mut encoder, mut numbers) = (BinaryEncoder::new(), NumberModel::new());
        for value in &values {
            numbers.write(&mut encoder, *value);
        }
        let bytes = encoder.finish();
        let (mut decoder, mut numbers) = (BinaryDecoder::new(&bytes), NumberModel::new());
        for value in &values {
            assert_eq!(numbers.read(&mut decoder), *value);
        }
    }
}
