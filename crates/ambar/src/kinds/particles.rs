//! The kind `particles`: a table whose rows have positions and are sorted along the Morton curve.

use serde_json::{Value, json};

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::AXES;
use crate::kinds::attributes::{self, names};
use crate::kinds::memory_source::Loader;
use crate::kinds::morton;
use crate::kinds::select::Selection;
use crate::kinds::source::ColumnSource;
use crate::kinds::table::Table;
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::numbers;
use crate::store::Store;

/// Particles, in a store or in memory.
///
/// Values are read on demand. All methods run on the current rayon pool.
pub struct Particles {
    table: Table,
    ndim: usize,
    boxlen: f64,
}

/// The names of the columns of positions in `ndim` dimensions: `position_x`, ...
pub fn position_names(ndim: usize) -> Vec<String> {
    AXES.iter()
        .take(ndim)
        .map(|axis| format!("position_{axis}"))
        .collect()
}

impl Particles {
    /// Opens the particles in the group at `path`. Reads metadata only.
    ///
    /// # Errors
    /// As `Table::open`.
    pub fn open(store: &Store, path: &str) -> Result<Self> {
        let attributes = attributes::of_kind(store, path, &["particles"])?;
        let missing = || {
            Error::corrupt("the attribute \"positions\" or \"boxlen\" of the particles is missing")
                .at_node(path)
                .in_file(store.location())
        };
        let positions = names(&attributes, "positions").map_err(|_| missing())?;
        let boxlen = attributes
            .get("boxlen")
            .and_then(Value::as_f64)
            .ok_or_else(missing)?;
        if positions.len() > AXES.len() {
            return Err(missing());
        }
        Ok(Self {
            ndim: positions.len(),
            boxlen,
            table: Table::from_attributes(store, path, attributes, positions)?,
        })
    }

    /// Particles in memory, in any order. Their positions are the columns `position_x`, ... in code
    /// length.
    ///
    /// # Errors
    /// `Invalid` if columns differ in length, two have the same name, or a position is missing.
    pub fn from_columns(columns: Vec<(String, Column)>, ndim: usize, boxlen: f64) -> Result<Self> {
        let positions = position_names(ndim);
        check_positions(types(&columns), &positions)?;
        let table = Table::with_positions(columns, positions)?;
        Ok(Self {
            table,
            ndim,
            boxlen,
        })
    }

    /// As `from_columns`, of `rows` particles whose columns, with their types, are loaded on the first
    /// access.
    ///
    /// # Errors
    /// As `from_columns`.
    pub fn loading(
        columns: Vec<(String, DataType)>,
        rows: usize,
        ndim: usize,
        boxlen: f64,
        loader: Loader,
    ) -> Result<Self> {
        let positions = position_names(ndim);
        let types = columns.iter().map(|(name, dtype)| (&name[..], dtype));
        check_positions(types, &positions)?;
        let table = Table::loading(columns, positions, rows, loader)?;
        Ok(Self {
            table,
            ndim,
            boxlen,
        })
    }

    /// Dimensions, 1 to 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Size of the box in x, in code length.
    pub fn boxlen(&self) -> f64 {
        self.boxlen
    }

    /// Number of particles.
    pub fn rows(&self) -> u64 {
        self.table.rows()
    }

    /// Names of the columns, in their order in the file.
    pub fn columns(&self) -> &[String] {
        self.table.columns()
    }

    /// The type of a column.
    ///
    /// # Errors
    /// `NotFound`, with the available columns.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        self.table.dtype(name)
    }

    /// The particles as a plain table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The stored columns.
    pub fn source(&self) -> &dyn ColumnSource {
        &**self.table.source()
    }

    /// Columns of the selected particles, in the order of the file. A particle is in a region if its
    /// position is. Only chunks that may contain such particles are read.
    ///
    /// # Errors
    /// As `Table::read`.
    pub fn read(&self, columns: &[&str], selection: &Selection) -> Result<Vec<(String, Column)>> {
        self.table.read(columns, selection)
    }
}

/// Checks that the columns, of these names and types, have positions.
pub(crate) fn check_positions<'a>(
    columns: impl Iterator<Item = (&'a str, &'a DataType)>,
    positions: &[String],
) -> Result<()> {
    let columns: Vec<_> = columns.collect();
    for name in positions {
        let column = columns.iter().find(|(other, _)| other == name);
        let (_, dtype) = column.ok_or_else(|| {
            Error::invalid(format!(
                "expected a column {name:?} with positions of particles"
            ))
        })?;
        if !numbers::is_number(dtype) {
            return Err(numbers::not_numeric(name, dtype));
        }
    }
    Ok(())
}

/// Names and types of columns in memory.
fn types(columns: &[(String, Column)]) -> impl Iterator<Item = (&str, &DataType)> {
    let columns = columns.iter();
    columns.map(|(name, column)| (&name[..], column.dtype()))
}

/// Sorts particles along the Morton curve through a lattice of 2^21 points a side over the box. The
/// sort is stable. Parallel.
///
/// # Errors
/// `Invalid` if columns differ in length or a position is missing; `Limit` for 2^32 or more rows.
pub fn sort(columns: &mut [(String, Column)], ndim: usize, boxlen: f64) -> Result<()> {
    sort_from(columns, ndim, [0.0; 3], boxlen)
}

/// As `sort`, in a cube of side `boxlen` whose lower corner is at `lower`.
///
/// # Errors
/// As `sort`.
pub fn sort_from(
    columns: &mut [(String, Column)],
    ndim: usize,
    lower: [f64; 3],
    boxlen: f64,
) -> Result<()> {
    let positions = position_names(ndim);
    check_positions(types(columns), &positions)?;
    let mut axes = Vec::with_capacity(ndim);
    for name in &positions {
        for (_, column) in columns.iter().filter(|(other, _)| other == name) {
            let mut values = vec![0.0; column.rows()];
            numbers::to_f64(name, column.dtype(), column.bytes(), &mut values)?;
            axes.push(values);
        }
    }
    if axes.iter().any(|x| x.len() != axes[0].len()) {
        return Err(Error::invalid(
            "expected columns of positions of equal length",
        ));
    }
    let slices: Vec<&[f64]> = axes.iter().map(|x| &x[..]).collect();
    let order = morton::order_of_positions(&slices, lower, boxlen)?;
    if order.is_sorted() {
        return Ok(());
    }
    morton::permute(columns.iter_mut().map(|(_, column)| column), &order)
}

/// The attributes of a group of particles.
pub(crate) fn attributes(ndim: usize, boxlen: f64) -> Attributes {
    let mut own = Attributes::new();
    own.insert("ndim".into(), json!(ndim));
    own.insert("boxlen".into(), json!(boxlen));
    own.insert("positions".into(), json!(position_names(ndim)));
    own
}
