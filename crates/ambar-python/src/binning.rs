//! The class `Binning`: the bins of rows in histograms.

use ambar::kinds::binning::{Bins, bin_rows};
use ambar::{Column, DataType};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::memory::to_numpy;
use crate::render::{floats, slices};

/// Bins in one or more dimensions.
#[pyclass(frozen, module = "ambar._core")]
pub struct Binning(Vec<Bins>);

#[pymethods]
impl Binning {
    /// The increasing edges of the bins in each dimension, and whether they are about equidistant in the logarithm.
    #[new]
    fn new(dimensions: Vec<(Vec<f64>, bool)>) -> PyResult<Self> {
        let bins = dimensions.into_iter();
        let bins = bins.map(|(edges, is_log)| Bins::new(edges, is_log));
        Ok(Self(bins.collect::<ambar::Result<_>>().or_raise()?))
    }

    /// The bin of each row, from a column for each dimension: int64, the last dimension fastest; the number of all bins for
    /// rows outside.
    fn index<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = floats(&columns)?;
        let columns = slices(&columns)?;
        let rows = columns.first().map_or(0, |column| column.len());
        let mut found = Column::allocate(&[DataType::Int64], rows)
            .or_raise()?
            .remove(0);
        py.detach(|| bin_rows(&self.0, &columns, found.values_mut()))
            .or_raise()?;
        to_numpy(py, found)
    }
}
