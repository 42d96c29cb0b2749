//! Columns that are computed from others when they are read: arithmetic, or a function of the caller.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::condition::{ColumnValues, Expression};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::region::Region;
use crate::kinds::rows::Rows;
use crate::kinds::source::ColumnSource;
use crate::numbers;

/// A function of the caller: computes values from those of other columns in the same rows.
pub trait ColumnFunction: Send + Sync {
    /// Writes a value for each row to `out`. Each of `inputs` has as many rows.
    ///
    /// # Errors
    /// Those of the function.
    fn call(&self, inputs: &[&[f64]], out: &mut [f64]) -> Result<()>;
}

/// The fraction of the volume of cells that is in a region, from the coordinates of their centres and their sides: one for
/// cubes, otherwise one for each dimension.
#[derive(Clone, Debug)]
pub struct RegionFraction(pub Region);

impl ColumnFunction for RegionFraction {
    fn call(&self, inputs: &[&[f64]], out: &mut [f64]) -> Result<()> {
        let ndim = self.0.ndim();
        if inputs.len() <= ndim {
            return Err(Error::invalid(format!(
                "expected {ndim} coordinates of centres and the sides of cells, found {} columns",
                inputs.len()
            )));
        }
        let (positions, sides) = inputs.split_at(ndim);
        self.0.fractions(positions, sides, out);
        Ok(())
    }
}

/// How the values of a computed column derive from other columns.
#[derive(Clone)]
pub enum Formula {
    /// Arithmetic.
    Expression(Expression),
    /// A function, and the columns that it needs.
    Function(Vec<String>, Arc<dyn ColumnFunction>),
}

impl Formula {
    /// The columns that it needs.
    fn inputs(&self) -> Vec<&str> {
        match self {
            Self::Expression(expression) => expression.fields(),
            Self::Function(inputs, _) => inputs.iter().map(String::as_str).collect(),
        }
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(expression) => expression.fmt(f),
            Self::Function(inputs, _) => write!(f, "Function({inputs:?})"),
        }
    }
}

/// Columns of float64 that are computed from stored and derived columns, chunk by chunk.
///
/// ```
/// use ambar::condition::Expression;
/// use ambar::kinds::computed::{ComputedColumns, Formula};
///
/// let mut computed = ComputedColumns::default();
/// let speed = Expression::parse("sqrt(vx**2 + vy**2)")?;
/// computed.insert("speed".to_owned(), Formula::Expression(speed))?;
/// assert_eq!(computed.needed(&["speed", "rho"]), ["vx", "vy", "rho"]);
/// # Ok::<(), ambar::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ComputedColumns {
    columns: BTreeMap<String, Formula>,
}

impl ComputedColumns {
    /// No columns.
    pub const NONE: Self = Self {
        columns: BTreeMap::new(),
    };

    /// Adds a column. Its formula may name computed columns that were added before.
    ///
    /// # Errors
    /// `Invalid` if the name exists already, or the formula names the column itself.
    pub fn insert(&mut self, name: String, formula: Formula) -> Result<()> {
        if self.columns.contains_key(&name) || formula.inputs().contains(&&*name) {
            return Err(Error::invalid(format!(
                "invalid computed column: {name:?}; expected a new name that its formula does not contain"
            )));
        }
        self.columns.insert(name, formula);
        Ok(())
    }

    /// Whether a computed column has this name.
    pub fn contains(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// The stored and derived columns that `names` need, each once.
    pub fn needed<'a>(&'a self, names: &[&'a str]) -> Vec<&'a str> {
        let mut needed = Vec::new();
        // In reverse, because the last one is taken first.
        let mut open: Vec<&str> = names.iter().rev().copied().collect();
        let mut seen: Vec<&str> = Vec::new();
        while let Some(name) = open.pop() {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            match self.columns.get(name) {
                Some(formula) => open.extend(formula.inputs().into_iter().rev()),
                None => needed.push(name),
            }
        }
        needed
    }
}

/// Rows with computed columns besides the stored and derived ones.
pub(crate) struct WithComputed<'a> {
    rows: &'a dyn Rows,
    computed: &'a ComputedColumns,
}

/// Columns of some rows.
type Known<'a> = HashMap<&'a str, KnownValues>;

/// The values of a column.
enum KnownValues {
    /// Of a stored or derived column.
    Read(DataType, Vec<u8>),
    Computed(Vec<f64>),
}

impl KnownValues {
    fn dtype(&self) -> &DataType {
        match self {
            Self::Read(dtype, _) => dtype,
            Self::Computed(_) => &DataType::Float64,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(_, bytes) => bytes,
            Self::Computed(values) => bytemuck::must_cast_slice(values),
        }
    }
}

impl<'a> WithComputed<'a> {
    pub fn new(rows: &'a dyn Rows, computed: &'a ComputedColumns) -> Self {
        Self { rows, computed }
    }

    /// Reads any column of rows of one chunk.
    pub fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        match self.derived(name) {
            Some(_) => self.derive(rows, &[name], &mut [out]),
            None => self.source().read(name, rows, out),
        }
    }

    /// An error if a column does not exist, or does not contain real numbers.
    pub fn check_number(&self, name: &str) -> Result<()> {
        let dtype = self.dtype(name)?;
        if !numbers::is_number(&dtype) {
            return Err(numbers::not_numeric(name, &dtype));
        }
        let needed = self.computed.needed(&[name]);
        needed
            .into_iter()
            .filter(|input| *input != name)
            .try_for_each(|input| self.check_number(input))
    }

    /// Reads the stored and derived columns that `names` need, each once.
    fn inputs<'k>(&'k self, names: &[&'k str], rows: &Range<u64>) -> Result<Known<'k>> {
        let count = (rows.end - rows.start) as usize;
        let mut known = Known::new();
        let (mut derived, mut buffers) = (Vec::new(), Vec::new());
        for name in self.computed.needed(names) {
            let dtype = self.dtype(name)?;
            let size = dtype
                .size()
                .ok_or_else(|| numbers::not_numeric(name, &dtype))?;
            let mut bytes = vec![0; count * size];
            if self.rows.derived(name).is_some() {
                derived.push(name);
                buffers.push((dtype, bytes));
            } else {
                self.source().read(name, rows.clone(), &mut bytes)?;
                known.insert(name, KnownValues::Read(dtype, bytes));
            }
        }
        if !derived.is_empty() {
            let outs = buffers.iter_mut().map(|(_, bytes)| &mut bytes[..]);
            let mut outs: Vec<&mut [u8]> = outs.collect();
            self.rows.derive(rows.clone(), &derived, &mut outs)?;
        }
        let buffers = buffers.into_iter();
        let buffers = buffers.map(|(dtype, bytes)| KnownValues::Read(dtype, bytes));
        known.extend(derived.into_iter().zip(buffers));
        Ok(known)
    }

    /// Computes a column, and the computed ones that it needs, unless they are known.
    fn compute<'k>(&'k self, name: &'k str, count: usize, known: &mut Known<'k>) -> Result<()> {
        let Some(formula) = self.computed.columns.get(name) else {
            return Ok(());
        };
        if known.contains_key(name) {
            return Ok(());
        }
        let inputs = formula.inputs();
        for input in &inputs {
            self.compute(input, count, known)?;
        }
        let values = match formula {
            Formula::Expression(expression) => expression.evaluate(count, |input| {
                let input = &known[input];
                Ok(ColumnValues::Numbers(input.dtype(), input.bytes()))
            })?,
            Formula::Function(_, function) => {
                let floats = inputs.iter().map(|input| {
                    let known = &known[input];
                    let mut values = vec![0.0; count];
                    numbers::to_f64(input, known.dtype(), known.bytes(), &mut values)?;
                    Ok(values)
                });
                let floats: Vec<Vec<f64>> = floats.collect::<Result<_>>()?;
                let slices: Vec<&[f64]> = floats.iter().map(Vec::as_slice).collect();
                let mut values = vec![0.0; count];
                function.call(&slices, &mut values)?;
                values
            }
        };
        known.insert(name, KnownValues::Computed(values));
        Ok(())
    }
}

/// Ranges of columns by chunk; `None` where they are unknown.
type KnownRanges<'a> = HashMap<&'a str, Option<Vec<[f64; 2]>>>;

impl WithComputed<'_> {
    /// The ranges of a column. Formulas can share inputs, whose ranges are computed once.
    fn ranges_of<'k>(
        &'k self,
        name: &'k str,
        known: &mut KnownRanges<'k>,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        let formula = match self.computed.columns.get(name) {
            None => return self.rows.ranges(name),
            Some(Formula::Function(..)) => return Ok(None),
            Some(Formula::Expression(expression)) => expression,
        };
        let mut chunks = usize::MAX;
        for input in formula.fields() {
            if !known.contains_key(input) {
                let ranges = self.ranges_of(input, known)?;
                known.insert(input, ranges);
            }
            let Some(Some(ranges)) = known.get(input) else {
                return Ok(None);
            };
            chunks = chunks.min(ranges.len());
        }
        if formula.fields().is_empty() {
            return Ok(None);
        }
        let mut has_nan = HashMap::new();
        for input in formula.fields() {
            has_nan.insert(input, numbers::has_nan(&self.dtype(input)?));
        }
        let range = |chunk: usize| {
            formula.range(|input| {
                let ranges = known.get(input)?.as_ref()?;
                Some((*ranges.get(chunk)?, *has_nan.get(input)?))
            })
        };
        Ok(Some((0..chunks).map(range).collect()))
    }
}

impl WithComputed<'_> {
    /// Bounds of the values of any column in each chunk, NaN excluded; `None` if they are unknown.
    ///
    /// # Errors
    /// As [`ColumnSource::read`].
    pub fn bounds(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        self.check_number(name)?;
        self.source().prepare(&self.computed.needed(&[name]))?;
        self.ranges(name)
    }
}

impl Rows for WithComputed<'_> {
    fn source(&self) -> &dyn ColumnSource {
        self.rows.source()
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.rows.names();
        names.extend(self.computed.columns.keys().cloned());
        names
    }

    fn derived(&self, name: &str) -> Option<DataType> {
        match self.computed.contains(name) {
            true => Some(DataType::Float64),
            false => self.rows.derived(name),
        }
    }

    fn derive(&self, rows: Range<u64>, names: &[&str], outs: &mut [&mut [u8]]) -> Result<()> {
        if names.iter().all(|name| self.rows.derived(name).is_some()) {
            return self.rows.derive(rows, names, outs);
        }
        let count = (rows.end - rows.start) as usize;
        let mut known = self.inputs(names, &rows)?;
        for (name, out) in names.iter().zip(outs) {
            self.compute(name, count, &mut known)?;
            out.copy_from_slice(known[name].bytes());
        }
        Ok(())
    }

    fn positions(&self) -> Vec<String> {
        self.rows.positions()
    }

    fn sides(&self) -> Vec<String> {
        self.rows.sides()
    }

    fn boxes(&self, with_sides: bool) -> Result<Option<Vec<[[f64; 3]; 2]>>> {
        self.rows.boxes(with_sides)
    }

    fn boxes_hold_all(&self) -> bool {
        self.rows.boxes_hold_all()
    }

    fn may_reach(&self, chunk: usize, region: &Region) -> Result<bool> {
        self.rows.may_reach(chunk, region)
    }

    fn narrow(&self, rows: Range<u64>, region: &Region, mask: &mut [bool]) -> Result<bool> {
        self.rows.narrow(rows, region, mask)
    }

    fn is_masked(&self) -> bool {
        self.rows.is_masked()
    }

    fn mask(&self, rows: Range<u64>) -> Result<Vec<bool>> {
        self.rows.mask(rows)
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        self.ranges_of(name, &mut HashMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::kinds::select::Selection;
    use crate::kinds::table::Table;
    use crate::memory::Column;

    struct Larger;

    impl ColumnFunction for Larger {
        fn call(&self, inputs: &[&[f64]], out: &mut [f64]) -> Result<()> {
            for (row, out) in out.iter_mut().enumerate() {
                *out = inputs[0][row].max(inputs[1][row]);
            }
            Ok(())
        }
    }

    fn column(values: &[f64]) -> Column {
        let mut column = Column::allocate(&[DataType::Float64], values.len())
            .unwrap()
            .remove(0);
        column.values_mut::<f64>().copy_from_slice(values);
        column
    }

    fn expression(text: &str) -> Formula {
        Formula::Expression(Expression::parse(text).unwrap())
    }

    fn computed() -> Arc<ComputedColumns> {
        let mut computed = ComputedColumns::default();
        computed
            .insert("square".to_owned(), expression("a**2"))
            .unwrap();
        computed
            .insert("sum".to_owned(), expression("square + b"))
            .unwrap();
        let larger = Formula::Function(vec!["a".to_owned(), "sum".to_owned()], Arc::new(Larger));
        computed.insert("larger".to_owned(), larger).unwrap();
        Arc::new(computed)
    }

    fn table(rows: usize) -> Table {
        let a: Vec<f64> = (0..rows).map(|row| row as f64 - 3.0).collect();
        let b: Vec<f64> = (0..rows).map(|row| -(row as f64)).collect();
        Table::from_columns(vec![
            ("a".to_owned(), column(&a)),
            ("b".to_owned(), column(&b)),
        ])
        .unwrap()
    }

    #[test]
    fn computed_columns_are_read_and_selected_by() {
        let table = table(100_000);
        let condition = Condition::parse("sum >= 20 and larger < 1e11").unwrap();
        let selection = Selection {
            condition: Some(condition),
            computed: computed(),
            ..Selection::default()
        };
        let read = table.read(&["larger", "a", "sum"], &selection).unwrap();
        let values = |place: usize| read[place].1.values::<f64>();
        assert!(values(0).len() > 99_000);
        for (row, a) in values(1).iter().enumerate() {
            let sum = a * a - (a + 3.0);
            assert_eq!(values(2)[row], sum);
            assert!(sum >= 20.0);
            assert_eq!(values(0)[row], a.max(sum));
        }
    }

    #[test]
    fn invalid_computed_columns_are_errors() {
        let mut columns = ComputedColumns::default();
        assert!(columns.insert("x".to_owned(), expression("x + 1")).is_err());
        columns
            .insert("x".to_owned(), expression("missing * 2"))
            .unwrap();
        assert!(columns.insert("x".to_owned(), expression("a")).is_err());
        let selection = Selection {
            computed: Arc::new(columns),
            ..Selection::default()
        };
        let error = table(4).read(&["x"], &selection).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn ranges_of_expressions_contain_their_values() {
        let table = table(100_000);
        let computed = computed();
        let rows = WithComputed::new(&table, &computed);
        let found = rows.ranges("sum").unwrap().unwrap();
        let read = table.read(&["a", "b"], &Selection::default()).unwrap();
        let (a, b) = (read[0].1.values::<f64>(), read[1].1.values::<f64>());
        let length = table.source().chunk_rows() as usize;
        for (row, (a, b)) in a.iter().zip(b).enumerate() {
            let [lo, hi] = found[row / length];
            assert!(lo <= a * a + b && a * a + b <= hi);
        }
        assert!(rows.ranges("larger").unwrap().is_none());
        let range = Expression::parse("a**2 + b")
            .unwrap()
            .range(|name| match name {
                "a" => Some(([-2.0, 3.0], false)),
                _ => Some(([1.0, 2.0], false)),
            });
        assert!(
            range[0] <= 1.0 && 11.0 <= range[1] && range[1] < 12.0,
            "{range:?}"
        );
    }
}
