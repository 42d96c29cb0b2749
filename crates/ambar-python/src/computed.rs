//! The class `ComputedColumns`: columns that are computed from others when they are read.

use std::sync::Arc;

use ambar::condition::Expression;
use ambar::kinds::computed::{self, ColumnFunction, Formula, RegionFraction};
use ambar::{Column, DataType, Error};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::OrRaise;
use crate::memory::{BorrowedBuffer, to_numpy};
use crate::region::Region;

/// Columns that are computed from others when they are read.
#[pyclass(frozen, module = "ambar._core")]
pub struct ComputedColumns(Arc<computed::ComputedColumns>);

impl ComputedColumns {
    /// The columns of `given`; no columns for `None`.
    pub fn of(given: Option<&Self>) -> Arc<computed::ComputedColumns> {
        given.map(|given| Arc::clone(&given.0)).unwrap_or_default()
    }
}

/// The formula of a column: an expression, or the names of columns and a function of their arrays.
/// The fraction of cells in a region has the names of their coordinates and sides, and the region.
#[derive(FromPyObject)]
enum FormulaArgument {
    Expression(String),
    Fraction(Vec<String>, Py<Region>),
    Function(Vec<String>, Py<PyAny>),
}

#[pymethods]
impl ComputedColumns {
    /// Formulas by name. A formula can contain the names of columns before it.
    #[new]
    fn new(columns: Vec<(String, FormulaArgument)>) -> PyResult<Self> {
        let mut all = computed::ComputedColumns::default();
        for (name, formula) in columns {
            let formula = match formula {
                FormulaArgument::Expression(text) => {
                    Formula::Expression(Expression::parse(&text).or_raise()?)
                }
                FormulaArgument::Fraction(inputs, region) => {
                    let fraction = RegionFraction(region.get().inner.clone());
                    Formula::Function(inputs, Arc::new(fraction))
                }
                FormulaArgument::Function(inputs, function) => {
                    let call = PythonFunction {
                        name: name.clone(),
                        function,
                    };
                    Formula::Function(inputs, Arc::new(call))
                }
            };
            all.insert(name, formula).or_raise()?;
        }
        Ok(Self(Arc::new(all)))
    }

    /// The stored and derived columns that `names` need.
    fn needed(&self, names: Vec<String>) -> Vec<String> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let needed = self.0.needed(&names).into_iter();
        needed.map(str::to_owned).collect()
    }
}

/// The fields that an expression names.
#[pyfunction]
pub fn expression_fields(text: &str) -> PyResult<Vec<String>> {
    let expression = Expression::parse(text).or_raise()?;
    let fields = expression.fields().into_iter();
    Ok(fields.map(str::to_owned).collect())
}

/// A Python function that computes a column.
struct PythonFunction {
    name: String,
    function: Py<PyAny>,
}

impl ColumnFunction for PythonFunction {
    fn call(&self, inputs: &[&[f64]], out: &mut [f64]) -> ambar::Result<()> {
        let columns = inputs.iter().map(|values| {
            let mut column = Column::allocate(&[DataType::Float64], values.len())?.remove(0);
            column.values_mut::<f64>().copy_from_slice(values);
            Ok(column)
        });
        let columns: Vec<Column> = columns.collect::<ambar::Result<_>>()?;
        let found = Python::attach(|py| {
            let arrays = columns.into_iter().map(|column| to_numpy(py, column));
            let arrays = PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
            let values = self.function.bind(py).call1(arrays)?;
            let numpy = py.import("numpy")?;
            let values = numpy.call_method1("ascontiguousarray", (values, "f8"))?;
            let lent = BorrowedBuffer::new(&values, false)?;
            if let Ok(values) = bytemuck::try_cast_slice::<u8, f64>(lent.bytes())
                && values.len() == out.len()
            {
                out.copy_from_slice(values);
            }
            PyResult::Ok(lent.count())
        });
        match found {
            Ok(found) if found == out.len() => Ok(()),
            Ok(found) => Err(Error::invalid(format!(
                "the function of the field {:?} returned {found} values for {} rows; return one for each row",
                self.name,
                out.len()
            ))),
            Err(error) => {
                let message = format!("the function of the field {:?} failed: {error}", self.name);
                Err(Error::invalid(message).caused_by(error))
            }
        }
    }
}
