//! Columns in memory as a table's source: what readers of other codes' files hand over.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::numbers;
use crate::kinds::source::ColumnSource;
use crate::memory::Column;

/// Columns of equal length in memory. Ranges are computed when first asked for.
pub struct MemoryColumns {
    names: Vec<String>,
    columns: Vec<Arc<Column>>,
    ranges: Vec<OnceLock<Vec<[f64; 2]>>>,
    rows: usize,
    chunk_rows: usize,
}

impl MemoryColumns {
    /// These columns, divided into chunks of `chunk_rows` rows.
    ///
    /// # Errors
    /// `Invalid` where lengths differ, a name is taken twice, or `chunk_rows` is 0.
    pub fn new(columns: Vec<(String, Column)>, chunk_rows: u64) -> Result<Self> {
        let chunk_rows = usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        if chunk_rows == 0 {
            return Err(Error::invalid(
                "chunks of 0 rows hold nothing; give 1 or more",
            ));
        }
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.rows() != rows) {
            return Err(Error::invalid(format!(
                "column {name:?} has {} rows, {:?} has {rows}: all must have equally many",
                column.rows(),
                columns[0].0
            )));
        }
        let columns = columns.into_iter();
        let (names, columns): (Vec<String>, Vec<_>) = columns
            .map(|(name, column)| (name, Arc::new(column)))
            .unzip();
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = pair[0];
            return Err(Error::invalid(format!(
                "two columns have the name {name:?}"
            )));
        }
        Ok(Self {
            ranges: names.iter().map(|_| OnceLock::new()).collect(),
            names,
            columns,
            rows,
            chunk_rows,
        })
    }

    fn place(&self, name: &str) -> Result<usize> {
        let place = self.names.iter().position(|other| other == name);
        place.ok_or_else(|| {
            let known = self.names.join(", ");
            Error::not_found(format!("there is no column {name:?}; there are: {known}"))
        })
    }
}

impl ColumnSource for MemoryColumns {
    fn rows(&self) -> u64 {
        self.rows as u64
    }

    fn chunk_rows(&self) -> u64 {
        self.chunk_rows as u64
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn dtype(&self, name: &str) -> Result<DataType> {
        Ok(self.columns[self.place(name)?].dtype().clone())
    }

    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let column = &self.columns[self.place(name)?];
        let size = column.dtype().size().unwrap_or(0);
        let bytes = usize::try_from(rows.start)
            .ok()
            .zip(usize::try_from(rows.end).ok())
            .and_then(|(start, end)| {
                let range = start.checked_mul(size)?..end.checked_mul(size)?;
                column.bytes().get(range)
            })
            .filter(|bytes| bytes.len() == out.len());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!(
                "rows {rows:?} of column {name:?} do not fit: it has {}, the buffer {} bytes",
                self.rows,
                out.len()
            ))
        })?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        let place = self.place(name)?;
        let column = &self.columns[place];
        let ranges = self.ranges[place].get_or_init(|| {
            let chunk = self
                .chunk_rows
                .saturating_mul(column.dtype().size().unwrap_or(1));
            let chunks = column.bytes().par_chunks(chunk.max(1));
            chunks
                .map(|bytes| numbers::range(column.dtype(), bytes))
                .collect()
        });
        Ok(Some(ranges.clone()))
    }

    fn whole(&self, name: &str) -> Option<Arc<Column>> {
        let place = self.place(name).ok()?;
        Some(Arc::clone(&self.columns[place]))
    }
}
