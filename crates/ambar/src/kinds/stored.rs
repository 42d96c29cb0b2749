//! The columns of a table kept in a store: a group's 1-D arrays, and the index arrays beside them.

use std::ops::Range;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::source::ColumnSource;
use crate::store::Store;

/// Columns of a group, read on demand.
pub struct StoredColumns {
    names: Vec<String>,
}

impl StoredColumns {
    /// The columns `names` of the group at `path`: 1-D arrays of equal length and chunks.
    /// Their ranges come from `<path>/index/range`, float64 (columns, chunks, 2), whose first
    /// dimension goes along `ranged` (the group's `fields` or `columns`).
    ///
    /// # Errors
    /// `NotFound` for a column or group that is not there; `Corrupt` where lengths or chunks
    /// differ.
    pub fn open(_store: &Store, _path: &str, names: &[String]) -> Result<Self> {
        Ok(Self {
            names: names.to_vec(),
        })
    }
}

impl ColumnSource for StoredColumns {
    fn rows(&self) -> u64 {
        0
    }

    fn chunk_rows(&self) -> u64 {
        1
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn dtype(&self, name: &str) -> Result<DataType> {
        Err(Error::not_found(name))
    }

    fn read(&self, name: &str, _rows: Range<u64>, _out: &mut [u8]) -> Result<()> {
        Err(Error::not_found(name))
    }

    fn ranges(&self, _name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        Ok(None)
    }
}
