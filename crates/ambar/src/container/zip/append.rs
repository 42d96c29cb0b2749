//! Appending to a file: small pieces gathered into large writes, large pieces written as they are.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::super::{Durability, file};
use crate::error::{Error, Result};

/// Small pieces are buffered up to this number of bytes.
const BUFFER: usize = 1 << 20;

/// The end of a file, as far as its writer is concerned.
pub struct Appender {
    file: Arc<File>,
    path: PathBuf,
    durability: Durability,
    /// File offset of the first byte that waits in `buffer`.
    written: u64,
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
            buffer: Vec::new(),
        }
    }

    /// File offset of the next byte.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends `bytes`. They are in the file after `flush`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            return self.write_through(&[bytes]);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends `parts`, one after the other: together with one call where they are long enough.
    pub fn write_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if len < BUFFER as u64 {
            return parts.iter().try_for_each(|part| self.write(part));
        }
        // What waits is short: the first call takes it along.
        let waiting = std::mem::take(&mut self.buffer);
        let all: Vec<&[u8]> = std::iter::once(&waiting[..])
            .chain(parts.iter().copied())
            .collect();
        self.write_through(&all)?;
        self.buffer = waiting;
        self.buffer.clear();
        Ok(())
    }

    /// Hands what waits to the operating system.
    pub fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write_through(&[&buffer])?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
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
            Error::limit("the file would pass 2^63 bytes").in_file(self.path.display())
        })?;
        #[cfg(test)]
        super::super::faults::step(&self.path)?;
        file::write_parts(&self.file, parts, self.written)
            .map_err(|source| Error::io(source, &self.path, "writing"))?;
        if self.durability == Durability::Full && len >= BUFFER as u64 {
            file::start_writing(&self.file, self.written, len);
        }
        self.written = end;
        Ok(())
    }
}
