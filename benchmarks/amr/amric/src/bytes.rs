//! Reading and writing streams: variable-length integers, fixed words, slices.

use crate::schemes::{Error, Result};

/// Appends an unsigned integer in LEB128: seven bits a byte, the lowest first.
pub(crate) fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The unread bytes of a stream.
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, tail) = self
            .0
            .split_at_checked(count)
            .ok_or(Error(c"the stream ends early"))?;
        self.0 = tail;
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
        Err(Error(c"an integer has more than 63 bits"))
    }

    /// The next variable-length integer, which must be at most `most`.
    pub(crate) fn number_to(&mut self, most: usize) -> Result<usize> {
        match usize::try_from(self.number()?) {
            Ok(number) if number <= most => Ok(number),
            _ => Err(Error(c"a count is larger than the block allows")),
        }
    }

    /// The next eight bytes as a little-endian word.
    pub(crate) fn word(&mut self) -> Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }
}
