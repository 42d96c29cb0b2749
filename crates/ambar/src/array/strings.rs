//! Texts and byte strings of any length, and reading them.

use super::blocks::{Plan, advance};
use super::{Array, Indices, Slice};
use crate::codec::with_scratch;
use crate::error::{Error, Result};
use crate::limits::{check_memory, zeroed};

/// Texts or byte strings: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// One more than there are values; begins with 0, never decreases. Empty means no values.
    pub offsets: Vec<u64>,
    /// All values, one behind the other.
    pub bytes: Vec<u8>,
}

impl Strings {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value `index`; `None` behind the last.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = usize::try_from(*self.offsets.get(index)?).ok()?;
        let stop = usize::try_from(*self.offsets.get(index.checked_add(1)?)?).ok()?;
        self.bytes.get(start..stop)
    }

    /// Appends a value.
    pub fn push(&mut self, value: &[u8]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as u64);
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut strings = Self {
            offsets: vec![0],
            bytes: Vec::new(),
        };
        for value in values {
            strings.push(value.as_ref());
        }
        strings
    }
}

impl Array {
    /// Reads a selection, one slice a dimension, of an array of texts or byte strings, in C order,
    /// on the threads of the current pool. Only the chunks that the selection touches are read.
    ///
    /// # Errors
    /// As `read`; `Invalid` where the dtype has a fixed size.
    pub fn read_strings(&self, selection: &[Slice]) -> Result<Strings> {
        let selection: Vec<Indices<'_>> = selection.iter().copied().map(Indices::Slice).collect();
        self.read_string_indices(&selection)
    }

    /// As `read_strings`, with slices or lists of indices, as `read_indices`.
    ///
    /// # Errors
    /// As `read_strings`.
    pub fn read_string_indices(&self, selection: &[Indices<'_>]) -> Result<Strings> {
        self.try_read_strings(selection)
            .map_err(|error| self.place(error))
    }

    fn try_read_strings(&self, selection: &[Indices<'_>]) -> Result<Strings> {
        if self.dtype().size().is_some() {
            return Err(Error::invalid(format!(
                "values of {} are no texts",
                self.dtype()
            )));
        }
        let plan = Plan::new(self.shape(), self.chunk_shape(), selection)?;
        let count: u64 = plan.out_shape.iter().product();
        // Each takes its offset at least, and as many bytes as the fill value where it was not written.
        let least = 8 + self.fill_value().len() as u64;
        check_memory("the strings", count.saturating_mul(least))?;
        let mut strings = Strings {
            offsets: zeroed("the offsets of strings", count as usize + 1)?,
            bytes: Vec::new(),
        };
        strings.offsets.clear();
        strings.offsets.push(0);
        if count == 0 {
            return Ok(strings);
        }
        let in_chunk = self.chunk_shape().iter().product::<u64>() as usize;
        let chunk = |index| Some(plan.block(index)?.chunk);
        let chunks = self.try_map_chunks(plan.count, chunk, |index| {
            let Some(block) = plan.block(index) else {
                return Ok(None);
            };
            with_scratch(|scratch| {
                let Some(stored) = self.locate(&block.chunk, scratch)? else {
                    return Ok(None);
                };
                self.with_encoded(&stored, scratch, |encoded, _, codecs| {
                    self.0
                        .metadata
                        .chain
                        .decode_strings(encoded, in_chunk, &self.0.limits, codecs)
                        .map(Some)
                })
            })
            .map_err(|error| self.place_chunk(error, &block.chunk))
        })?;
        let mut position = vec![0; plan.out_shape.len()];
        loop {
            let (chunk, inside) = plan.locate(&position);
            let value = match chunks.get(chunk) {
                Some(Some(chunk)) => chunk.get(inside).unwrap_or_default(),
                _ => self.fill_value(),
            };
            strings.push(value);
            if !advance(&mut position, &plan.out_shape) {
                return Ok(strings);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_by_their_offsets() {
        let strings: Strings = ["a", "", "žlu"].into_iter().collect();
        assert_eq!(strings.len(), 3);
        assert_eq!(strings.get(1), Some(&b""[..]));
        assert_eq!(strings.get(2), Some("žlu".as_bytes()));
        assert_eq!(strings.get(3), None);
    }
}
