//! Bit input and output, the lowest bits first; variable-length integers; the cursor over a stream.

use crate::entropy::token::SHORT_RAW_TOKENS;
use crate::error::{Error, Result, corrupt};
use crc_fast::crc32_iscsi as crc32c;

/// Writes consecutive bits.
#[derive(Default)]
pub(crate) struct BitWriter {
    /// Complete bytes up to `position`, then free space.
    bytes: Vec<u8>,
    /// The number of complete bytes.
    position: usize,
    /// The `filled` pending bits.
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
        // `whole` is at most 7, because `width` is at most 56.
        self.word >>= 8 * whole;
        self.filled %= 8;
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len() + 4096, 0);
    }

    /// The number of written bits.
    pub(crate) fn bits(&self) -> usize {
        8 * self.position + self.filled as usize
    }

    /// The bytes; the last is padded with zeros.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.bits().div_ceil(8)]
    }

    /// Discards the bits, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        (self.position, self.word, self.filled) = (0, 0, 0);
    }
}

/// Reads what [`BitWriter`] wrote, and zeros beyond the end, which `finish` detects.
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

    /// Reads the residuals of tokens below [`FIRST_LONG_TOKEN`](crate::entropy::token::FIRST_LONG_TOKEN).
    #[inline]
    pub(crate) fn read_residuals(&mut self, tokens: &[u8], residuals: &mut [u64]) {
        let mut position = self.position;
        for (token, residual) in tokens.iter().zip(residuals) {
            let (base, bits) = SHORT_RAW_TOKENS[usize::from(*token)];
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

    /// Checks that exactly all bytes were read.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.position.div_ceil(8) == self.bytes.len() {
            Ok(())
        } else {
            Err(corrupt!(
                "the raw bits fill {} bytes; expected the {} of their section",
                self.position.div_ceil(8),
                self.bytes.len()
            ))
        }
    }
}

/// Appends a variable-length integer: seven bits per byte, the lowest first.
pub(crate) fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The error of a stream that ends too early.
#[cold]
pub(crate) fn truncated(expected: usize, found: usize) -> Error {
    corrupt!("the stream is truncated: expected {expected} more bytes, found {found}")
}

/// A cursor over the remaining bytes of a stream.
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The bytes of a stream before its checksum, which is verified.
    pub(crate) fn verified(stream: &'a [u8]) -> Result<Self> {
        let (body, checksum) = stream
            .split_last_chunk::<4>()
            .ok_or_else(|| corrupt!("the stream is truncated: it has {} bytes", stream.len()))?;
        let (found, stored) = (crc32c(body), u32::from_le_bytes(*checksum));
        if found != stored {
            return Err(corrupt!(
                "the checksum of the stream is {found:#010x}; expected {stored:#010x}"
            ));
        }
        Ok(Self(body))
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| truncated(count, self.0.len()))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// The next variable-length integer.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt!("a variable-length integer exceeds 9 bytes"))
    }

    /// The next variable-length integer, which must be at most `max`.
    pub(crate) fn number_to(&mut self, max: usize) -> Result<usize> {
        let number = self.number()?;
        match usize::try_from(number) {
            Ok(number) if number <= max => Ok(number),
            _ => Err(corrupt!(
                "a length or count is {number}; expected at most {max}"
            )),
        }
    }

    /// The next eight bytes, as a little-endian word.
    pub(crate) fn word(&mut self) -> Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }
}
