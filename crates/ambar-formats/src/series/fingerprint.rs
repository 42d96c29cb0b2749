//! Fingerprints of the files of an output.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A hash of names, sizes and modification times of files: FNV-1a of 64 bits. It detects changes; it is not
/// cryptographic.
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Adds a file; the order of files matters.
    pub fn add_file(&mut self, name: &str, metadata: &Metadata) {
        let numbers = [
            metadata.len(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
        ];
        self.add(name.as_bytes());
        self.add(&numbers.map(u64::to_le_bytes).concat());
    }

    /// The hash as 16 hexadecimal digits.
    pub fn text(&self) -> String {
        format!("{:016x}", self.0)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length delimits the parts that are added.
        let len = (bytes.len() as u64).to_le_bytes();
        for byte in len.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
