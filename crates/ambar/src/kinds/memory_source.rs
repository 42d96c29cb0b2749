//! Columns in memory as a source: the result of readers of the files of simulation codes.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::source::ColumnSource;
use crate::memory::Column;
use crate::numbers;
use crate::process::SetOnce;

/// Loads columns by their names. Returns one column for each name, in the same order, of the declared
/// type and length.
pub type Loader = Box<dyn Fn(&[&str]) -> Result<Vec<Column>> + Send + Sync>;

/// Columns of equal length in memory, or loaded into it on the first access. Ranges are computed on
/// the first access.
pub struct MemoryColumns {
    names: Vec<String>,
    dtypes: Vec<DataType>,
    columns: Vec<SetOnce<Arc<Column>>>,
    ranges: Vec<SetOnce<Vec<[f64; 2]>>>,
    rows: usize,
    chunk_rows: usize,
    loader: Option<Loader>,
}

impl MemoryColumns {
    /// These columns, divided into chunks of `chunk_rows` rows.
    ///
    /// # Errors
    /// `Invalid` if lengths differ, two columns have the same name, or `chunk_rows` is 0.
    pub fn new(columns: Vec<(String, Column)>, chunk_rows: u64) -> Result<Self> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        Self::loading(columns, Vec::new(), None, rows, chunk_rows)
    }

    /// As `new`, of `rows` rows. `loader` returns the columns `later`, with their types, on the first
    /// access; they stay in memory.
    ///
    /// # Errors
    /// As `new`.
    pub fn loading(
        columns: Vec<(String, Column)>,
        later: Vec<(String, DataType)>,
        loader: Option<Loader>,
        rows: usize,
        chunk_rows: u64,
    ) -> Result<Self> {
        let chunk_rows = usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        if chunk_rows == 0 {
            return Err(Error::invalid("expected chunks of at least 1 row, found 0"));
        }
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.rows() != rows) {
            return Err(Error::invalid(format!(
                "expected columns of equal length: column {name:?} has {} rows, {:?} has {rows}",
                column.rows(),
                columns[0].0
            )));
        }
        let mut memory = Self {
            names: Vec::new(),
            dtypes: Vec::new(),
            columns: Vec::new(),
            ranges: Vec::new(),
            rows,
            chunk_rows,
            loader,
        };
        for (name, column) in columns {
            memory.names.push(name);
            memory.dtypes.push(column.dtype().clone());
            let loaded = SetOnce::new();
            loaded.get_or_set(Arc::new(column));
            memory.columns.push(loaded);
        }
        for (name, dtype) in later {
            memory.names.push(name);
            memory.dtypes.push(dtype);
            memory.columns.push(SetOnce::new());
        }
        memory.ranges = memory.names.iter().map(|_| SetOnce::new()).collect();
        let mut sorted: Vec<&String> = memory.names.iter().collect();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = pair[0];
            return Err(Error::invalid(format!(
                "two columns have the name {name:?}"
            )));
        }
        Ok(memory)
    }

    /// The column at `place`; it is loaded on the first access.
    fn column(&self, place: usize) -> Result<&Arc<Column>> {
        if self.columns[place].get().is_none() {
            self.prepare(&[&self.names[place]])?;
        }
        self.columns[place].get().ok_or_else(|| {
            let name = &self.names[place];
            Error::not_found(format!("the column {name:?} has no loader"))
        })
    }

    fn place(&self, name: &str) -> Result<usize> {
        let place = self.names.iter().position(|other| other == name);
        place.ok_or_else(|| Error::unknown("column", name, &self.names))
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
        Ok(self.dtypes[self.place(name)?].clone())
    }

    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let column = self.column(self.place(name)?)?;
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
                "rows {rows:?} of column {name:?} do not fit: the column has {} rows, the buffer {} bytes",
                self.rows,
                out.len()
            ))
        })?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn prepare(&self, names: &[&str]) -> Result<()> {
        let is_missing = |place: &usize| self.columns[*place].get().is_none();
        let mut places: Vec<usize> = names
            .iter()
            .filter_map(|name| self.place(name).ok())
            .filter(is_missing)
            .collect();
        places.sort_unstable();
        places.dedup();
        let Some(loader) = self.loader.as_ref().filter(|_| !places.is_empty()) else {
            return Ok(());
        };
        let missing: Vec<&str> = places.iter().map(|place| &self.names[*place][..]).collect();
        // Without a lock: two threads may load the same column; the first result is kept.
        let columns = loader(&missing)?;
        for (place, column) in places.iter().zip(columns) {
            if column.rows() != self.rows || *column.dtype() != self.dtypes[*place] {
                return Err(Error::invalid(format!(
                    "column {:?} was loaded with {} rows of {}; expected {} rows of {}",
                    self.names[*place],
                    column.rows(),
                    column.dtype(),
                    self.rows,
                    self.dtypes[*place]
                )));
            }
            self.columns[*place].get_or_set(Arc::new(column));
        }
        Ok(())
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        let place = self.place(name)?;
        let column = self.column(place)?;
        if let Some(ranges) = self.ranges[place].get() {
            return Ok(Some(ranges.clone()));
        }
        let size = column.dtype().size().unwrap_or(1);
        let chunk = self.chunk_rows.saturating_mul(size).max(1);
        let chunks = column.bytes().par_chunks(chunk);
        let ranges = chunks.map(|bytes| numbers::range(column.dtype(), bytes));
        Ok(Some(
            self.ranges[place].get_or_set(ranges.collect()).clone(),
        ))
    }

    fn whole(&self, name: &str) -> Option<Arc<Column>> {
        let place = self.place(name).ok()?;
        self.columns[place].get().cloned()
    }
}
