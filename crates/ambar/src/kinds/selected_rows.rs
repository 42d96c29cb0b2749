//! The selected rows of cells or particles as columns that are read while they are written.

use std::ops::Range;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::select::Selection;
use crate::kinds::streamed::StreamedColumns;
use crate::memory::Column;

/// Rows of the chunks that are read together.
const BATCH_ROWS: u64 = if cfg!(test) { 1 << 7 } else { 1 << 20 };

/// Reads columns of the rows of a selection.
pub(crate) type SelectionReader<'a> =
    dyn Fn(&[&str], &Selection) -> Result<Vec<(String, Column)>> + Sync + 'a;

/// The selected rows of a table, in batches of whole chunks.
pub(crate) struct SelectedRows<'a> {
    selection: &'a Selection,
    read: &'a SelectionReader<'a>,
    /// Chunks, and the selected rows in them, counted over all batches.
    batches: Vec<(Range<u64>, Range<usize>)>,
}

impl<'a> SelectedRows<'a> {
    /// Counts the selected rows. `chunk_lengths` are the rows of each chunk. `visit` is called with `columns` of each
    /// batch.
    ///
    /// # Errors
    /// Errors of `read` and `visit`.
    pub fn new(
        selection: &'a Selection,
        chunk_lengths: &[u64],
        read: &'a SelectionReader<'a>,
        columns: &[&str],
        mut visit: impl FnMut(&[(String, Column)]) -> Result<()>,
    ) -> Result<Self> {
        let mut rows = Self {
            selection,
            read,
            batches: Vec::new(),
        };
        let chunks = chunk_lengths.len() as u64;
        let longest = chunk_lengths.iter().max().copied().unwrap_or(1).max(1);
        let step = (BATCH_ROWS / longest).max(1);
        let mut first = 0;
        for start in (0..chunks).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let batch = start..start.saturating_add(step).min(chunks);
            let values = rows.read_batch(&batch, columns)?;
            visit(&values)?;
            let count = values.first().map_or(0, |(_, column)| column.rows());
            rows.batches.push((batch, first..first + count));
            first += count;
        }
        Ok(rows)
    }

    /// The number of selected rows.
    pub fn len(&self) -> usize {
        self.batches.last().map_or(0, |(_, rows)| rows.end)
    }

    /// Columns, given by names and types, as columns that are read while they are written.
    pub fn columns<'s>(&'s self, columns: Vec<(String, DataType)>) -> StreamedColumns<'s> {
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        StreamedColumns {
            columns,
            rows: self.len(),
            read: Box::new(move |wanted, rows, out| {
                let wanted: Vec<&str> = wanted.iter().map(|place| &names[*place][..]).collect();
                self.fill(&wanted, rows, out)
            }),
        }
    }

    fn read_batch(&self, chunks: &Range<u64>, columns: &[&str]) -> Result<Vec<(String, Column)>> {
        let selection = Selection {
            chunks: Some(chunks.clone()),
            ..self.selection.clone()
        };
        (self.read)(columns, &selection)
    }

    /// Reads some of the selected rows.
    fn fill(&self, columns: &[&str], wanted: Range<usize>, out: &mut [Column]) -> Result<()> {
        for (chunks, rows) in &self.batches {
            let (start, end) = (rows.start.max(wanted.start), rows.end.min(wanted.end));
            if start >= end {
                continue;
            }
            let values = self.read_batch(chunks, columns)?;
            for (out, (_, values)) in out.iter_mut().zip(&values) {
                let size = values.dtype().size().unwrap_or(1);
                let from = (start - rows.start) * size..(end - rows.start) * size;
                let to = (start - wanted.start) * size..(end - wanted.start) * size;
                out.bytes_mut()[to].copy_from_slice(&values.bytes()[from]);
            }
        }
        Ok(())
    }
}
