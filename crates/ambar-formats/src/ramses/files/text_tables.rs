//! Tables in text files: sinks (comma-separated) and clumps (separated by blanks).

use std::path::PathBuf;

use ambar::{Column, DataType, Error, Result};

use super::field_names;
use super::folder::{Folder, read_text};
use super::fortran_real::parse_real;
use crate::ramses::component::{Field, MissingReason};

/// Columns of integers; all others are reals.
const INTEGER_COLUMNS: [&str; 6] = ["id", "level", "halo", "lev", "parent", "ncell"];

/// The columns of sink files without a header (RAMSES of 2017 and before).
const OLD_SINKS: [&str; 13] = [
    "id", "msink", "x", "y", "z", "vx", "vy", "vz", "lx", "ly", "lz", "age", "acc_rate",
];

/// The values of a column.
enum ColumnValues {
    Integer(Vec<i64>),
    Real(Vec<f64>),
}

fn field(name: &str, unit: Option<&str>) -> Field {
    let dtype = if INTEGER_COLUMNS.contains(&name) {
        DataType::Int64
    } else {
        DataType::Float64
    };
    Field {
        unit: unit.map(str::to_owned),
        ..field_names::field(name, dtype)
    }
}

/// The columns of the sink file.
pub fn sink_fields(folder: &Folder) -> Result<Vec<Field>> {
    let text = folder.numbered_text("sink", ".csv")?.unwrap_or_default();
    Ok(SinkText::split(&text).fields)
}

/// The parts of a sink file.
struct SinkText<'a> {
    fields: Vec<Field>,
    /// The lines of values, with their numbers in the file.
    rows: Vec<(usize, &'a str)>,
}

impl<'a> SinkText<'a> {
    fn split(text: &'a str) -> Self {
        let lines = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| !line.trim().is_empty());
        let (heads, rows): (Vec<_>, Vec<_>) =
            lines.partition(|(line, _)| line.trim_start().starts_with('#'));
        let head = |i: usize| {
            heads
                .get(i)
                .map(|(line, _)| line.trim_start().trim_start_matches('#'))
        };
        let fields = match head(0) {
            Some(names) => {
                let units: Vec<_> = head(1).unwrap_or("").split(',').map(str::trim).collect();
                let unit = |i: usize| units.get(i).copied().filter(|unit| !unit.is_empty());
                let names =
                    field_names::distinct(names.split(',').map(|name| name.trim().to_owned()));
                let names = names.iter().enumerate();
                names.map(|(i, name)| field(name, unit(i))).collect()
            }
            None => {
                let columns = rows
                    .first()
                    .map_or(OLD_SINKS.len(), |(line, _)| line.split(',').count());
                (0..columns)
                    .map(|i| field(&old_sink(i, columns), None))
                    .collect()
            }
        };
        let rows = rows.into_iter().map(|(line, number)| (number, line));
        Self {
            fields,
            rows: rows.collect(),
        }
    }
}

/// The name of a column in a sink file without a header. If the number of columns is not the usual one,
/// only identity, mass, position and velocity are known.
fn old_sink(column: usize, columns: usize) -> String {
    let known = if columns == OLD_SINKS.len() {
        columns
    } else {
        8
    };
    match OLD_SINKS.get(column) {
        Some(name) if column < known => (*name).to_owned(),
        _ => format!("column_{:02}", column + 1),
    }
}

/// Reads the sinks; see `Output::read_sinks`.
pub fn read_sinks(folder: &Folder) -> Result<Option<Vec<(String, Column)>>> {
    let Some(path) = folder.numbered("sink", ".csv") else {
        return Ok(None);
    };
    let text = read_text(&path)?;
    let SinkText { fields, rows } = SinkText::split(&text);
    let mut table = TextTable::new(fields);
    for (number, line) in rows {
        table.add(line.split(',').map(str::trim)).map_err(|error| {
            error
                .at_node(format!("line {number}"))
                .in_file(path.display())
        })?;
    }
    table.finish().map(Some)
}

/// The paths of the clump files of all domains.
fn clump_files(folder: &Folder, ncpu: u64) -> Result<Option<Vec<PathBuf>>> {
    match folder.missing("clump", "txt", ncpu) {
        Some(MissingReason::Absent(_)) => Ok(None),
        Some(MissingReason::Broken(why)) => Err(Error::corrupt(why)
            .at_node("clumps")
            .in_file(folder.path.display())),
        None => {
            let path = |domain: u64| folder.numbered("clump", &format!(".txt{domain:05}"));
            Ok(Some((1..=ncpu).filter_map(path).collect()))
        }
    }
}

/// The columns of the clump files.
pub fn clump_fields(folder: &Folder) -> Result<Vec<Field>> {
    let text = folder
        .numbered_text("clump", ".txt00001")?
        .unwrap_or_default();
    Ok(clump_head(&text))
}

fn clump_head(text: &str) -> Vec<Field> {
    let names = text.lines().next().unwrap_or("").split_whitespace();
    let names = names.map(|name| match name.trim_start_matches('#') {
        // In a stored table, `index` is the group of chunk statistics.
        "index" => "id".to_owned(),
        name => name.to_owned(),
    });
    let names = field_names::distinct(names);
    names.iter().map(|name| field(name, None)).collect()
}

/// Reads the clumps; see `Output::read_clumps`.
pub fn read_clumps(folder: &Folder, ncpu: u64) -> Result<Option<Vec<(String, Column)>>> {
    let Some(paths) = clump_files(folder, ncpu)? else {
        return Ok(None);
    };
    let mut table = TextTable::new(clump_fields(folder)?);
    for path in paths {
        let text = read_text(&path)?;
        if clump_head(&text) != table.fields {
            return Err(Error::corrupt(
                "line 1: expected the column names of the first domain's file, found others; copy \
                 the output again",
            )
            .in_file(path.display()));
        }
        for (line, number) in text.lines().zip(1..).skip(1) {
            let mut values = line.split_whitespace().peekable();
            if values.peek().is_some() {
                table.add(values).map_err(|error| {
                    error
                        .at_node(format!("line {number}"))
                        .in_file(path.display())
                })?;
            }
        }
    }
    table.finish().map(Some)
}

/// A table to which lines are added.
struct TextTable {
    fields: Vec<Field>,
    values: Vec<ColumnValues>,
}

impl TextTable {
    fn new(fields: Vec<Field>) -> Self {
        let values = fields.iter().map(|field| match field.dtype {
            DataType::Int64 => ColumnValues::Integer(Vec::new()),
            _ => ColumnValues::Real(Vec::new()),
        });
        let values = values.collect();
        Self { fields, values }
    }

    fn add<'t>(&mut self, mut texts: impl Iterator<Item = &'t str>) -> Result<()> {
        for (field, values) in self.fields.iter().zip(&mut self.values) {
            let text = texts.next().ok_or_else(|| {
                Error::corrupt(format!(
                    "expected a value of {:?}, found the end of the line; copy the file again",
                    field.name
                ))
            })?;
            let read = match values {
                ColumnValues::Integer(values) => text.parse().map(|value| values.push(value)).ok(),
                ColumnValues::Real(values) => parse_real(text).map(|value| values.push(value)),
            };
            read.ok_or_else(|| {
                Error::corrupt(format!(
                    "expected a value of {:?} ({}), found {text:?}; copy the file again",
                    field.name, field.dtype
                ))
            })?;
        }
        match texts.next() {
            None => Ok(()),
            Some(text) => Err(Error::corrupt(format!(
                "expected {} columns, found another value {text:?}; copy the file again",
                self.fields.len()
            ))),
        }
    }

    fn finish(self) -> Result<Vec<(String, Column)>> {
        let rows = self.values.first().map_or(0, |values| match values {
            ColumnValues::Integer(values) => values.len(),
            ColumnValues::Real(values) => values.len(),
        });
        let dtypes: Vec<_> = self
            .fields
            .iter()
            .map(|field| field.dtype.clone())
            .collect();
        let mut columns = Column::allocate(&dtypes, rows)?;
        for (column, values) in columns.iter_mut().zip(&self.values) {
            match values {
                ColumnValues::Integer(values) => column.values_mut().copy_from_slice(values),
                ColumnValues::Real(values) => column.values_mut().copy_from_slice(values),
            }
        }
        Ok(self
            .fields
            .into_iter()
            .map(|field| field.name)
            .zip(columns)
            .collect())
    }
}
