//! Selects the rows of a table in two passes.
//!
//! The first pass uses bounding boxes and value ranges of chunks. It skips chunks without selected
//! rows, and takes chunks whose rows are all selected. For other chunks it reads the columns of the
//! region and the conditions. The number of selected rows is then known. The second pass allocates
//! the result, and decodes every chunk once into its place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::condition::{ColumnValues, Condition, Outcome};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::filling::fill;
use crate::kinds::morton::gather;
use crate::kinds::region::Region;
use crate::kinds::rows::{PickedRows, WantedColumn};
pub(crate) use crate::kinds::rows::{Rows, chunk_count, chunk_range};
use crate::kinds::source::ColumnSource;
use crate::memory::Column;
use crate::numbers;

/// A selection of rows: those that meet all of its criteria. The default is all rows.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Cells whose centre is in it, or that share volume with it if it is by volume; particles whose position is in it.
    pub region: Option<Region>,
    /// Cells from the first level to the last, inclusive. Only for cells.
    pub levels: Option<(u8, u8)>,
    /// A condition on the values of any columns.
    pub condition: Option<Condition>,
    /// Rows of these chunks, numbered consecutively over the levels of `levels`.
    pub chunks: Option<Range<u64>>,
    /// Computed columns, which the condition and the request may name.
    pub computed: Arc<ComputedColumns>,
}

impl Selection {
    /// True if it selects all rows.
    pub fn is_all(&self) -> bool {
        self.region.is_none()
            && self.levels.is_none()
            && self.condition.is_none()
            && self.chunks.is_none()
    }
}

/// Reads `columns` of the rows in the region and the chunks of `selection` that meet all `conditions`,
/// in the order of the file. Runs on the current rayon pool.
pub(crate) fn select(
    table: &dyn Rows,
    columns: &[&str],
    selection: &Selection,
    conditions: &[&Condition],
) -> Result<Vec<(String, Column)>> {
    select_all(table, &[table], columns, selection, conditions)
}

/// As `select`, of several tables, concatenated. All have the columns of `schema`.
pub(crate) fn select_all(
    schema: &dyn Rows,
    tables: &[&dyn Rows],
    columns: &[&str],
    selection: &Selection,
    conditions: &[&Condition],
) -> Result<Vec<(String, Column)>> {
    let computed = &*selection.computed;
    let tables: Vec<WithComputed<'_>> = tables
        .iter()
        .map(|table| WithComputed::new(*table, computed))
        .collect();
    let schema = WithComputed::new(schema, computed);
    for name in columns {
        if computed.contains(name) {
            schema.check_number(name)?;
        }
    }
    let region = selection.region.as_ref();
    let formulas: Vec<&str> = columns
        .iter()
        .copied()
        .filter(|name| computed.contains(name))
        .collect();
    let inputs = computed.needed(&formulas);
    let wanted = columns
        .iter()
        .map(|name| {
            let dtype = schema.dtype(name)?;
            Ok(WantedColumn {
                name,
                size: fixed_size(name, &dtype)?,
                dtype,
                derived: schema.derived(name).is_some(),
                is_input: inputs.contains(name),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let mut parts = Vec::new();
    let mut first = 0;
    for table in &tables {
        let count = chunk_count(table.source());
        let chunks = selection.chunks.as_ref().map_or(0..count, |all| {
            let end = all.end.saturating_sub(first).min(count);
            all.start.saturating_sub(first).min(end)..end
        });
        parts.extend(pick(table, &wanted, region, conditions, chunks)?);
        first += count;
    }
    let rows = parts.iter().map(PickedRows::len).sum();
    let dtypes: Vec<DataType> = wanted.iter().map(|column| column.dtype.clone()).collect();
    let mut columns = Column::allocate(&dtypes, rows)?;
    fill(&wanted, &parts, &mut columns)?;
    let names = wanted.iter().map(|column| column.name.to_owned());
    Ok(names.zip(columns).collect())
}

/// The number of rows of each chunk.
pub(crate) fn chunk_lengths(source: &dyn ColumnSource) -> Vec<u64> {
    let lengths = (0..chunk_count(source)).map(|chunk| chunk_range(source, chunk));
    lengths.map(|rows| rows.end - rows.start).collect()
}

fn fixed_size(name: &str, dtype: &DataType) -> Result<usize> {
    dtype.size().ok_or_else(|| {
        Error::unsupported(format!(
            "expected a column of values of fixed size, found {name:?} of {dtype}; read it as an array"
        ))
    })
}

/// The first pass: the selected rows of chunks.
fn pick<'a>(
    table: &'a dyn Rows,
    wanted: &[WantedColumn<'_>],
    region: Option<&Region>,
    conditions: &[&Condition],
    chunks: Range<u64>,
) -> Result<Vec<PickedRows<'a>>> {
    let source = table.source();
    let whole = |chunk: u64| PickedRows {
        table,
        rows: chunk_range(source, chunk),
        picked: None,
        kept: HashMap::new(),
    };
    let masked = table.is_masked();
    if region.is_none() && conditions.is_empty() && !masked {
        return Ok(chunks.map(whole).collect());
    }
    let pruning = Pruning::new(table, region, conditions)?;
    let parts = (chunks.start as usize..chunks.end as usize)
        .into_par_iter()
        .with_max_len(1)
        .map(|place| match pruning.undecided(place)? {
            None => Ok(None),
            Some(undecided) if undecided.is_empty() && !masked => Ok(Some(whole(place as u64))),
            Some(undecided) => decide(table, wanted, chunk_range(source, place as u64), &undecided),
        })
        .collect::<Result<Vec<Option<PickedRows<'a>>>>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Number of chunks that a read of this selection decodes: those that may contain selected rows.
pub(crate) fn touched(
    table: &dyn Rows,
    selection: &Selection,
    conditions: &[&Condition],
) -> Result<u64> {
    let table = &WithComputed::new(table, &selection.computed);
    let region = selection.region.as_ref();
    let pruning = Pruning::new(table, region, conditions)?;
    let chunks = 0..chunk_count(table.source());
    let touched = chunks.into_par_iter().map(|place| {
        let mut touched = pruning.undecided(place as usize)?.is_some();
        if touched && table.is_masked() {
            let rows = chunk_range(table.source(), place);
            touched = table.mask(rows)?.contains(&true);
        }
        Ok(u64::from(touched))
    });
    touched.sum()
}

/// A selection, with the bounding boxes and the value ranges of chunks.
struct Pruning<'a> {
    table: &'a dyn Rows,
    region: Option<&'a Region>,
    conditions: &'a [&'a Condition],
    ranges: Ranges,
    boxes: Option<Vec<[[f64; 3]; 2]>>,
}

/// The criteria that the bounds of a chunk do not decide. Its values have to be read.
struct Undecided<'a> {
    region: Option<&'a Region>,
    conditions: Vec<&'a Condition>,
}

impl Undecided<'_> {
    fn is_empty(&self) -> bool {
        self.region.is_none() && self.conditions.is_empty()
    }
}

impl<'a> Pruning<'a> {
    fn new(
        table: &'a dyn Rows,
        region: Option<&'a Region>,
        conditions: &'a [&'a Condition],
    ) -> Result<Self> {
        Ok(Self {
            table,
            region,
            conditions,
            ranges: condition_ranges(table, conditions)?,
            boxes: region.map_or(Ok(None), |region| table.boxes(region.is_by_volume()))?,
        })
    }

    /// The undecided criteria of a chunk; `None` if it contains no selected row.
    fn undecided(&self, chunk: usize) -> Result<Option<Undecided<'a>>> {
        let extent = self.boxes.as_ref().and_then(|boxes| boxes.get(chunk));
        let mut region = self.region;
        if let (Some(whole), Some([lo, hi])) = (region, extent) {
            if whole.covers(lo, hi) && self.table.boxes_hold_all() {
                region = None;
            } else if !(whole.may_touch(lo, hi) && self.table.may_reach(chunk, whole)?) {
                return Ok(None);
            }
        }
        let mut conditions = Vec::new();
        for condition in self.conditions {
            let outcome = outcome(condition, &self.ranges, chunk)?;
            if !outcome.may_hold {
                return Ok(None);
            }
            if outcome.may_fail {
                conditions.push(*condition);
            }
        }
        Ok(Some(Undecided { region, conditions }))
    }
}

/// Ranges by chunk of the fields in conditions, and whether the fields can contain NaN.
type Ranges = HashMap<String, (Vec<[f64; 2]>, bool)>;

fn condition_ranges(table: &dyn Rows, conditions: &[&Condition]) -> Result<Ranges> {
    let mut all = Ranges::new();
    for name in conditions.iter().flat_map(|condition| condition.fields()) {
        let dtype = table.dtype(name)?;
        if !numbers::is_number(&dtype) {
            return Err(numbers::not_numeric(name, &dtype));
        }
        if let Some(ranges) = table.ranges(name)? {
            all.insert(name.to_owned(), (ranges, numbers::has_nan(&dtype)));
        }
    }
    Ok(all)
}

fn outcome(condition: &Condition, ranges: &Ranges, chunk: usize) -> Result<Outcome> {
    condition.outcome(|name| {
        let known = ranges.get(name);
        Ok(known.and_then(|(ranges, nan)| Some((*ranges.get(chunk)?, *nan))))
    })
}

/// Reads the columns of undecided criteria of a chunk. `None` if no row is selected.
fn decide<'a>(
    table: &'a dyn Rows,
    wanted: &[WantedColumn<'_>],
    rows: Range<u64>,
    undecided: &Undecided<'_>,
) -> Result<Option<PickedRows<'a>>> {
    let Undecided { region, conditions } = undecided;
    let mut mask = if table.is_masked() {
        table.mask(rows.clone())?
    } else {
        vec![true; (rows.end - rows.start) as usize]
    };
    if !mask.contains(&true) {
        return Ok(None);
    }
    let mut loaded = Loaded {
        table,
        rows: rows.clone(),
        columns: HashMap::new(),
    };
    // One pass computes all derived columns, also those of the second pass.
    let mut needed: Vec<&str> = conditions.iter().flat_map(|c| c.fields()).collect();
    let derived = wanted.iter().filter(|column| column.derived);
    needed.extend(derived.map(|column| column.name));
    needed.retain(|name| table.derived(name).is_some());
    // Columns that are derived anyway give the positions, too.
    if let Some(region) = region
        && (region.is_by_volume()
            || !needed.is_empty()
            || !table.narrow(rows.clone(), region, &mut mask)?)
    {
        let mut names = table.positions();
        let ndim = names.len();
        if region.is_by_volume() {
            names.extend(table.sides());
        }
        loaded.load(names.iter().map(String::as_str), &needed)?;
        let columns = names
            .iter()
            .map(|name| loaded.floats(name))
            .collect::<Result<Vec<Cow<'_, [f64]>>>>()?;
        let slices: Vec<&[f64]> = columns.iter().map(|x| &x[..]).collect();
        match slices.split_at(ndim) {
            (positions, []) => region.narrow(positions, &mut mask),
            (positions, sides) => region.narrow_cells(positions, sides, &mut mask),
        }
    }
    for condition in conditions {
        if !mask.contains(&true) {
            break;
        }
        loaded.load(condition.fields().into_iter(), &needed)?;
        condition.narrow(&mut mask, |name| {
            let (dtype, bytes) = loaded.get(name)?;
            Ok(ColumnValues::Numbers(dtype, bytes))
        })?;
    }
    let picked: Vec<u32> = (0..)
        .zip(&mask)
        .filter(|(_, keep)| **keep)
        .map(|(row, _)| row)
        .collect();
    if picked.is_empty() {
        return Ok(None);
    }
    let all = picked.len() == mask.len();
    if !all {
        loaded.load(needed.iter().copied(), &[])?;
    }
    let mut kept = HashMap::new();
    for (place, column) in wanted.iter().enumerate() {
        if let Ok((_, bytes)) = loaded.get(column.name) {
            let mut values = vec![0; picked.len() * column.size];
            gather(bytes, column.size, &picked, &mut values);
            kept.insert(place, values);
        }
    }
    let picked = (!all).then_some(picked);
    Ok(Some(PickedRows {
        table,
        rows,
        picked,
        kept,
    }))
}

/// The columns of one chunk that have been read.
struct Loaded<'a> {
    table: &'a dyn Rows,
    rows: Range<u64>,
    columns: HashMap<String, (DataType, Vec<u8>)>,
}

impl Loaded<'_> {
    /// Reads the columns `names` that are not loaded yet. If one of them is derived, it computes the
    /// derived columns `along` as well.
    fn load<'n>(&mut self, names: impl Iterator<Item = &'n str>, along: &[&'n str]) -> Result<()> {
        let mut derived: Vec<&str> = Vec::new();
        for name in names {
            if self.columns.contains_key(name) {
                continue;
            }
            if self.table.derived(name).is_some() {
                derived.push(name);
                continue;
            }
            let (dtype, mut bytes) = self.buffer(name)?;
            self.table
                .source()
                .read(name, self.rows.clone(), &mut bytes)?;
            self.columns.insert(name.to_owned(), (dtype, bytes));
        }
        if derived.is_empty() {
            return Ok(());
        }
        derived.extend(along);
        derived.sort_unstable();
        derived.dedup();
        derived.retain(|name| !self.columns.contains_key(*name));
        let mut buffers = derived
            .iter()
            .map(|name| self.buffer(name))
            .collect::<Result<Vec<_>>>()?;
        let mut outs: Vec<&mut [u8]> = buffers
            .iter_mut()
            .map(|(_, bytes)| &mut bytes[..])
            .collect();
        self.table.derive(self.rows.clone(), &derived, &mut outs)?;
        let names = derived.iter().map(|name| (*name).to_owned());
        self.columns.extend(names.zip(buffers));
        Ok(())
    }

    fn buffer(&self, name: &str) -> Result<(DataType, Vec<u8>)> {
        let dtype = self.table.dtype(name)?;
        let size = fixed_size(name, &dtype)?;
        let rows = (self.rows.end - self.rows.start) as usize;
        Ok((dtype, vec![0; rows * size]))
    }

    fn get(&self, name: &str) -> Result<(&DataType, &[u8])> {
        let column = self.columns.get(name);
        let column = column.ok_or_else(|| Error::not_found(format!("{name:?} was not read")))?;
        Ok((&column.0, &column.1))
    }

    fn floats(&self, name: &str) -> Result<Cow<'_, [f64]>> {
        let (dtype, bytes) = self.get(name)?;
        if *dtype == DataType::Float64
            && let Ok(values) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Cow::Borrowed(values));
        }
        let mut values = vec![0.0; (self.rows.end - self.rows.start) as usize];
        numbers::to_f64(name, dtype, bytes, &mut values)?;
        Ok(Cow::Owned(values))
    }
}
