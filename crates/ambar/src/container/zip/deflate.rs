//! DEFLATE (RFC 1951), with which documents are stored.

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::io::Read;

use crate::error::{Error, Result};

/// A document is at most this many times as long as its bytes in the file, so that a small file cannot claim
/// a large one.
pub const MAX_TIMES: u64 = 64;

/// Returns `content` deflated; `None` if that is not shorter, or too short (see [`MAX_TIMES`]).
pub fn deflate(content: &[u8]) -> Option<Vec<u8>> {
    let mut deflated = Vec::new();
    let mut encoder = DeflateEncoder::new(content, Compression::best());
    // Reading from memory does not fail.
    encoder.read_to_end(&mut deflated).ok()?;
    let longest = deflated.len() as u64 * MAX_TIMES;
    (deflated.len() < content.len() && content.len() as u64 <= longest).then_some(deflated)
}

/// Returns the content of `len` bytes that `deflated` contains. Memory grows with the bytes that are found, not
/// with `len`, which may be wrong.
///
/// # Errors
/// `Corrupt` if the length differs, or `deflated` has other bytes behind the content.
pub fn inflate(deflated: &[u8], len: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut decoder = DeflateDecoder::new(deflated).take(len + 1);
    let read = decoder.read_to_end(&mut content);
    let used = decoder.get_ref().total_in();
    if read.is_ok() && content.len() as u64 == len && used == deflated.len() as u64 {
        return Ok(content);
    }
    Err(Error::corrupt(format!(
        "the {} bytes in the file do not inflate to {len} bytes; restore the file from a copy",
        deflated.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn contents_are_restored() {
        let content = b"{\"a\":1,\"b\":1}".repeat(40);
        let deflated = deflate(&content).unwrap();
        assert!(deflated.len() < content.len() / 10);
        assert_eq!(inflate(&deflated, content.len() as u64).unwrap(), content);
        assert_eq!(deflate(b"{}"), None);
        assert_eq!(deflate(&[0; 100_000]), None);
    }

    #[test]
    fn wrong_lengths_and_damage_are_corrupt() {
        let content: Vec<u8> = (0..10_000u32).map(|i| ((i * i) >> 9) as u8).collect();
        let mut deflated = deflate(&content).unwrap();
        for len in [0, 9_999, 10_001, u64::MAX - 1] {
            let error = inflate(&deflated, len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
        assert!(inflate(&deflated[..deflated.len() - 1], 10_000).is_err());
        deflated.push(0);
        assert!(inflate(&deflated, 10_000).is_err());
    }
}
