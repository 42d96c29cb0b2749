//! Bits of any width, the lowest first, and whole numbers of variable length.

use crate::entropy::token::QUICK_TOKENS;
use crate::error::{Corrupt, Result};
use crc_fast::crc32_iscsi as crc32c;

/// Bits behind each other in bytes.
#[derive(Default)]
pub(crate) struct BitWriter {
    /// With room behind `position`.
    bytes: Vec<u8>,
    /// Bytes that are complete.
    position: usize,
    /// The bits of the next byte.
    word: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of `value`, at most 64; the others must be 0.
    #[inline(always)]
    pub(crate) fn write(&mut self, value: u64, width: u32) {
        if width > 56 {
            self.write_few(value & 0xffff_ffff, 32);
            self.write_few(value >> 32, width - 32);
        } else {
            self.write_few(value, width);
        }
    }

    /// Appends at most 56 bits.
    #[inline(always)]
    fn write_few(&mut self, value: u64, width: u32) {
        self.word |= value << self.filled;
        self.filled += width;
        if self.position + 8 > self.bytes.len() {
            self.grow();
        }
        if let Some(room) = self.bytes[self.position..].first_chunk_mut() {
            *room = self.word.to_le_bytes();
        }
        let whole = self.filled / 8;
        self.position += whole as usize;
        // At most seven bytes are complete.
        self.word >>= 8 * whole;
        self.filled %= 8;
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len() + 4096, 0);
    }

    /// Number of bits written.
    pub(crate) fn bits(&self) -> usize {
        8 * self.position + self.filled as usize
    }

    /// The bytes; the last is filled up with zeros.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.bits().div_ceil(8)]
    }

    /// Forgets the bits, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        (self.position, self.word, self.filled) = (0, 0, 0);
    }
}

/// Reads what [`BitWriter`] wrote. Beyond the end there are zeros: `finish` finds out.
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next `width` bits, at most 64.
    #[inline]
    pub(crate) fn read(&mut self, width: u32) -> u64 {
        if width > 56 {
            let low = self.read(32);
            return low | self.read(width - 32) << 32;
        }
        let byte = self.position >> 3;
        let word = match self
            .bytes
            .get(byte..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last(byte),
        };
        let value = word >> (self.position & 7) & ((1u64 << width) - 1);
        self.position += width as usize;
        value
    }

    /// The residuals of quick tokens.
    #[inline]
    pub(crate) fn read_residuals(&mut self, tokens: &[u8], residuals: &mut [u64]) {
        let mut position = self.position;
        for (token, residual) in tokens.iter().zip(residuals) {
            let (base, bits) = QUICK_TOKENS[usize::from(*token)];
            let byte = position >> 3;
            let word = match self
                .bytes
                .get(byte..byte + 8)
                .and_then(|word| word.first_chunk())
            {
                Some(word) => u64::from_le_bytes(*word),
                None => self.last(byte),
            };
            *residual = base | word >> (position & 7) & ((1 << bits) - 1);
            position += usize::from(bits);
        }
        self.position = position;
    }

    #[cold]
    fn last(&self, byte: usize) -> u64 {
        let rest = self.bytes.get(byte..).unwrap_or_default();
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    /// Checks that all bytes were read, and no more.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.position.div_ceil(8) == self.bytes.len() {
            Ok(())
        } else {
            Err(Corrupt(
                "the raw bits do not end at the end of their section",
            ))
        }
    }
}

/// Appends a whole number, seven bits a byte, the lowest first.
pub(crate) fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A cursor over a stream's bytes.
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The bytes of a stream before the checksum at its end, which must be theirs.
    pub(crate) fn verified(stream: &'a [u8]) -> Result<Self> {
        let (body, checksum) = stream
            .split_last_chunk::<4>()
            .ok_or(Corrupt("the stream is truncated"))?;
        if crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(Corrupt("the stream's checksum differs"));
        }
        Ok(Self(body))
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Corrupt("the stream is truncated"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// The next whole number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Corrupt("a variable-length integer exceeds 9 bytes"))
    }

    /// The next whole number, which is at most `most`.
    pub(crate) fn number_to(&mut self, most: usize) -> Result<usize> {
        match usize::try_from(self.number()?) {
            Ok(number) if number <= most => Ok(number),
            _ => Err(Corrupt("a length or count exceeds its maximum")),
        }
    }

    /// Eight bytes as a little-endian word.
    pub(crate) fn word(&mut self) -> Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }
}
