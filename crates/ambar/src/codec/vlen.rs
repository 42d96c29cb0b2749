//! The codecs `vlen-utf8` and `vlen-bytes`: values of any length, each preceded by its length.
//!
//! Layout (numcodecs): the number of values, then for each its length and its bytes; all numbers
//! are unsigned 32-bit little-endian.

use crate::error::{Error, Result};
use crate::strings::Strings;

/// Encodes `values` into `out`, which is cleared first.
pub(super) fn encode<'a>(
    values: impl ExactSizeIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let number = |n: usize, what: &str| {
        u32::try_from(n).map_err(|_| {
            Error::invalid(format!(
                "{what} is {n}, over 2^32 - 1; choose smaller chunks"
            ))
        })
    };
    out.clear();
    out.extend_from_slice(&number(values.len(), "the number of strings in a chunk")?.to_le_bytes());
    for value in values {
        out.extend_from_slice(&number(value.len(), "the length of a string")?.to_le_bytes());
        out.extend_from_slice(value);
    }
    Ok(())
}

/// Decodes exactly `count` values, which must fill `source`; strings must be UTF-8.
pub(super) fn decode(source: &[u8], count: usize, utf8: bool) -> Result<Strings> {
    let short = || Error::corrupt("a chunk of strings ends within a value");
    let (header, mut rest) = source.split_first_chunk::<4>().ok_or_else(short)?;
    let stored = u32::from_le_bytes(*header);
    if usize::try_from(stored) != Ok(count) {
        return Err(Error::corrupt(format!(
            "a chunk of strings has {stored} values; expected {count}"
        )));
    }
    // Every value has at least the 4 bytes of its length, which bounds the allocation.
    if rest.len() / 4 < count {
        return Err(short());
    }
    let mut strings = Strings {
        offsets: Vec::with_capacity(count + 1),
        bytes: Vec::with_capacity(rest.len() - 4 * count),
    };
    strings.offsets.push(0);
    for _ in 0..count {
        let (length, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (value, tail) = tail.split_at_checked(length).ok_or_else(short)?;
        if utf8 && std::str::from_utf8(value).is_err() {
            return Err(Error::corrupt("a string is not UTF-8"));
        }
        strings.push(value);
        rest = tail;
    }
    if rest.is_empty() {
        Ok(strings)
    } else {
        Err(Error::corrupt(format!(
            "{} bytes follow a chunk of strings",
            rest.len()
        )))
    }
}
