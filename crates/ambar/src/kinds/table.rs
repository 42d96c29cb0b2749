//! The kind `table`: columns of equal length, and selections of their rows.

use std::ops::Range;
use std::sync::Arc;

use crate::array::table_chunk_rows;
use crate::condition::Condition;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::attributes::{self, names};
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::memory_source::{Loader, MemoryColumns};
use crate::kinds::select::{Rows, Selection, chunk_lengths, select};
use crate::kinds::source::ColumnSource;
use crate::kinds::stored::StoredColumns;
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::store::Store;

/// The columns of positions of particles, of RAMSES sinks and of RAMSES clumps.
const POSITIONS: [[&str; 3]; 3] = [
    ["position_x", "position_y", "position_z"],
    ["x", "y", "z"],
    ["peak_x", "peak_y", "peak_z"],
];

/// Columns of equal length, in a store or in memory.
///
/// Values are read on demand. All methods run on the current rayon pool.
pub struct Table {
    source: Arc<dyn ColumnSource>,
    /// The columns of positions. If it is empty, regions apply to the columns named in `POSITIONS`.
    positions: Vec<String>,
    attributes: Attributes,
}

impl Table {
    /// Opens the table in the group at `path`, of kind `table` or `particles`. Reads metadata only.
    ///
    /// # Errors
    /// `NotFound` if the group does not exist; `Invalid` if it is of another kind;
    /// `Unsupported` if a newer version wrote it; `Corrupt`, `Io`.
    pub fn open(store: &Store, path: &str) -> Result<Self> {
        let attributes = attributes::of_kind(store, path, &["table", "particles"])?;
        Self::from_attributes(store, path, attributes, Vec::new())
    }

    pub(crate) fn from_attributes(
        store: &Store,
        path: &str,
        attributes: Attributes,
        positions: Vec<String>,
    ) -> Result<Self> {
        let columns = names(&attributes, "columns")
            .map_err(|error| error.at_node(path).in_file(store.location()))?;
        Ok(Self {
            source: Arc::new(StoredColumns::open(store, path, &columns)?),
            positions,
            attributes,
        })
    }

    /// A table in memory.
    ///
    /// # Errors
    /// `Invalid` if columns differ in length or two have the same name.
    pub fn from_columns(columns: Vec<(String, Column)>) -> Result<Self> {
        Self::with_positions(columns, Vec::new())
    }

    pub(crate) fn with_positions(
        columns: Vec<(String, Column)>,
        positions: Vec<String>,
    ) -> Result<Self> {
        let rows = columns
            .first()
            .map_or(0, |(_, column)| column.rows() as u64);
        Self::with_chunks(columns, positions, table_chunk_rows(rows))
    }

    /// A table of `rows` rows in memory with the columns of positions `positions`. The `columns`,
    /// with their types, are loaded on the first access.
    ///
    /// # Errors
    /// As `from_columns`.
    pub(crate) fn loading(
        columns: Vec<(String, DataType)>,
        positions: Vec<String>,
        rows: usize,
        loader: Loader,
    ) -> Result<Self> {
        let chunk_rows = table_chunk_rows(rows as u64);
        let loader = Some(loader);
        let source = MemoryColumns::loading(Vec::new(), columns, loader, rows, chunk_rows)?;
        Ok(Self {
            source: Arc::new(source),
            positions,
            attributes: Attributes::new(),
        })
    }

    pub(crate) fn with_chunks(
        columns: Vec<(String, Column)>,
        positions: Vec<String>,
        chunk_rows: u64,
    ) -> Result<Self> {
        Ok(Self {
            source: Arc::new(MemoryColumns::new(columns, chunk_rows)?),
            positions,
            attributes: Attributes::new(),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.source.rows()
    }

    /// Names of the columns, in their order in the file.
    pub fn columns(&self) -> &[String] {
        self.source.names()
    }

    /// The type of a column.
    ///
    /// # Errors
    /// `NotFound`, with the available columns.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        Rows::dtype(self, name)
    }

    /// The `ambar` attributes of the group; empty for a table in memory.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The stored columns.
    pub fn source(&self) -> &Arc<dyn ColumnSource> {
        &self.source
    }

    /// The number of rows of each chunk.
    pub fn chunk_lengths(&self) -> Vec<u64> {
        chunk_lengths(&*self.source)
    }

    /// Bounds of the values of a column in each chunk, NaN excluded; `None` if they are unknown.
    ///
    /// # Errors
    /// `NotFound` if the column does not exist, `Invalid` if it is not numeric; `Corrupt`, `Io`.
    pub fn bounds(
        &self,
        column: &str,
        computed: &ComputedColumns,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        WithComputed::new(self, computed).bounds(column)
    }

    /// Some columns of the selected rows, as a table in memory.
    ///
    /// # Errors
    /// As `read`.
    pub fn load(&self, columns: &[&str], selection: &Selection) -> Result<Self> {
        let has_positions = self
            .positions
            .iter()
            .all(|name| columns.contains(&&name[..]));
        let positions = if has_positions {
            self.positions.clone()
        } else {
            Vec::new()
        };
        Self::with_positions(self.read(columns, selection)?, positions)
    }

    /// Columns of the selected rows, in the order of the file. Only chunks that may contain such rows
    /// are read.
    ///
    /// A region of fewer dimensions than the positions selects a column: RAMSES sinks have three
    /// coordinates in runs of all dimensions. The caller checks the dimensions of the run.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Unsupported` for strings of variable
    /// length; `Invalid` for a region without positions, for levels, and for a condition on columns that
    /// are not numbers; `Corrupt`, `Io`.
    pub fn read(&self, columns: &[&str], selection: &Selection) -> Result<Vec<(String, Column)>> {
        if selection.levels.is_some() {
            return Err(Error::invalid(
                "levels do not apply to this selection: only cells have levels; use a condition on a column",
            ));
        }
        let mut rows = Self {
            source: Arc::clone(&self.source),
            positions: self.positions.clone(),
            attributes: Attributes::new(),
        };
        if let Some(region) = &selection.region {
            if rows.positions.is_empty() {
                rows.positions = self.named_positions(region.ndim());
            }
            if rows.positions.is_empty() {
                return Err(Error::invalid(
                    "a region does not apply to this selection: the rows have no positions; use a condition",
                ));
            }
            region.check(rows.positions.len())?;
        }
        let conditions: Vec<&Condition> = selection.condition.iter().collect();
        let mut names = columns.to_vec();
        names.extend(conditions.iter().flat_map(|condition| condition.fields()));
        let mut needed = selection.computed.needed(&names);
        if selection.region.is_some() {
            needed.extend(rows.positions.iter().map(String::as_str));
        }
        self.source.prepare(&needed)?;
        select(&rows, columns, selection, &conditions)
    }

    /// The first columns of `POSITIONS` that exist as float64, one for each dimension of a region; empty if there are
    /// none.
    fn named_positions(&self, ndim: usize) -> Vec<String> {
        let is_position = |name: &&str| matches!(self.dtype(name), Ok(DataType::Float64));
        let mut candidates = POSITIONS.iter().map(|names| &names[..ndim.min(3)]);
        let found = candidates.find(|names| names.iter().all(is_position));
        let names = found.into_iter().flatten();
        names.map(|&name| name.to_owned()).collect()
    }
}

impl Rows for Table {
    fn source(&self) -> &dyn ColumnSource {
        &*self.source
    }

    fn names(&self) -> Vec<String> {
        self.source.names().to_vec()
    }

    fn derived(&self, _name: &str) -> Option<DataType> {
        None
    }

    fn derive(&self, _rows: Range<u64>, names: &[&str], _outs: &mut [&mut [u8]]) -> Result<()> {
        Err(Error::not_found(format!(
            "a table has no derived columns, found {names:?}"
        )))
    }

    fn positions(&self) -> Vec<String> {
        self.positions.clone()
    }

    fn boxes(&self, _with_sides: bool) -> Result<Option<Vec<[[f64; 3]; 2]>>> {
        let mut ranges = Vec::new();
        for name in &self.positions {
            match self.source.ranges(name)? {
                Some(of_column) => ranges.push(of_column),
                None => return Ok(None),
            }
        }
        let chunks = ranges.first().map_or(0, Vec::len);
        let at = |chunk: usize, side: usize| {
            std::array::from_fn(|d| ranges.get(d).map_or(0.0, |range| range[chunk][side]))
        };
        Ok(Some(
            (0..chunks)
                .map(|chunk| [at(chunk, 0), at(chunk, 1)])
                .collect(),
        ))
    }

    fn boxes_hold_all(&self) -> bool {
        // Positions can be NaN, which ranges exclude.
        false
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        self.source.ranges(name)
    }
}
