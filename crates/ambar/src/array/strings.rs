//! Reads arrays of variable-length strings and byte strings.

use super::chunk_requests::{ChunkRequests, whole};
use super::read_plan::{ReadPlan, advance};
use super::{Array, Indices, Slice};
use crate::codec::with_scratch;
use crate::error::{Error, Result};
use crate::limits::{check_memory, zeroed};
use crate::strings::Strings;

impl Array {
    /// Reads a selection, one slice for each dimension, of an array of strings or byte strings, in C order,
    /// on the threads of the current pool. Only chunks that overlap the selection are read.
    ///
    /// # Errors
    /// As `read`; `Invalid` if the dtype has a fixed size.
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
            .map_err(|error| self.with_path(error))
    }

    fn try_read_strings(&self, selection: &[Indices<'_>]) -> Result<Strings> {
        if self.dtype().size().is_some() {
            return Err(Error::invalid(format!(
                "expected strings or byte strings, found values of {}",
                self.dtype()
            )));
        }
        let plan = ReadPlan::new(self.shape(), self.chunk_shape(), selection)?;
        let count: u64 = plan.out_shape.iter().product();
        // Each has at least its offset, and the bytes of the fill value if it was not written.
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
        let wanted = ChunkRequests {
            chunk: |index: usize| Some(plan.block(index)?.chunk),
            parts: whole,
        };
        let chunks = self.try_map_chunks(plan.count, wanted, |index| {
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
            .map_err(|error| self.with_chunk_path(error, &block.chunk))
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
