//! Appends to a file: small pieces are collected into large writes, large pieces are written directly.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::super::{Durability, file};
use super::next_commit::Output;
use crate::error::{Error, Result};

/// Small pieces are buffered up to this number of bytes.
const BUFFER: usize = 1 << 20;

/// The end of the file that a writer appends to.
pub struct Appender {
    file: Arc<File>,
    path: PathBuf,
    durability: Durability,
    /// File offset of the first byte in `buffer`.
    written: u64,
    /// The file offset after the last written byte.
    flushed: u64,
    buffer: Vec<u8>,
}

impl Appender {
    /// Appends to `file`, which has `path`, from the offset `end` on.
    pub fn new(file: Arc<File>, path: PathBuf, durability: Durability, end: u64) -> Self {
        Self {
            file,
            path,
            durability,
            written: end,
            flushed: 0,
            buffer: Vec::new(),
        }
    }

    /// Writes the buffered bytes to the file.
    pub fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write_through(&[&buffer])?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// The file offset after the last written byte; 0 before the first write.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Continues from the offset `end` on; nothing may be buffered.
    pub fn restart(&mut self, end: u64) {
        self.written = end;
    }

    /// Leaves a hole of `len` bytes.
    #[cfg(test)]
    pub fn skip(&mut self, len: u64) {
        self.written += len;
    }

    fn write_through(&mut self, parts: &[&[u8]]) -> Result<()> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let end = self.written.checked_add(len);
        let end = end.filter(|end| *end <= i64::MAX as u64).ok_or_else(|| {
            Error::limit("the file would exceed 2^63 bytes; write less")
                .in_file(self.path.display())
        })?;
        #[cfg(test)]
        super::super::faults::step(&self.path)?;
        file::write_parts(&self.file, parts, self.written)
            .map_err(|source| Error::io(source, &self.path, "writing"))?;
        if self.durability == Durability::Full && len >= BUFFER as u64 {
            file::start_writing(&self.file, self.written, len);
        }
        self.written = end;
        if len > 0 {
            self.flushed = end;
        }
        Ok(())
    }
}

impl Output for Appender {
    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            return self.write_through(&[bytes]);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if len < BUFFER as u64 {
            return parts.iter().try_for_each(|part| self.write(part));
        }
        // The buffered bytes are few: they are written with the same call.
        let buffered = std::mem::take(&mut self.buffer);
        let all: Vec<&[u8]> = std::iter::once(&buffered[..])
            .chain(parts.iter().copied())
            .collect();
        self.write_through(&all)?;
        self.buffer = buffered;
        self.buffer.clear();
        Ok(())
    }
}
