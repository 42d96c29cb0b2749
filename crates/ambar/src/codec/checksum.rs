//! The codec `crc32c`: a checksum of four bytes after the bytes that it protects.

use crate::error::{Error, Result};
use crc_fast::crc32_iscsi as crc32c;

/// The CRC-32C of any bytes that end with their own CRC-32C.
pub(super) const OF_CHECKED: [u8; 4] = 0x4867_4bc7_u32.to_le_bytes();

/// Verifies the trailing checksum and returns the bytes before it. `what` names them in messages.
pub(crate) fn split_crc32c<'a>(bytes: &'a [u8], what: &str) -> Result<&'a [u8]> {
    let Some((content, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(Error::corrupt(format!(
            "{what} is {} bytes, too short for its checksum; restore the file from a copy",
            bytes.len()
        )));
    };
    check_crc32c(content, *stored, what)?;
    Ok(content)
}

/// Verifies the checksum `stored` of `content`, which messages call `what`.
pub(crate) fn check_crc32c(content: &[u8], stored: [u8; 4], what: &str) -> Result<()> {
    let stored = u32::from_le_bytes(stored);
    let actual = crc32c(content);
    if stored == actual {
        Ok(())
    } else {
        Err(Error::corrupt(format!(
            "the checksum of {what} is {actual:08x}; expected {stored:08x}: the file is \
             damaged; restore it from a copy"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_bytes_with_their_checksum_is_constant() {
        for length in [0, 1, 7, 1000] {
            let mut bytes: Vec<u8> = (0..length).map(|i| (i * 37) as u8).collect();
            bytes.extend(crc32c(&bytes).to_le_bytes());
            assert_eq!(crc32c(&bytes).to_le_bytes(), OF_CHECKED);
        }
    }
}
