//! The class `Region`.

use ambar::kinds::region;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// A part of the domain, in code length.
#[pyclass(frozen, eq, module = "ambar._core")]
#[derive(PartialEq)]
pub struct Region {
    pub inner: region::Region,
}

impl Region {
    fn new(region: ambar::Result<region::Region>) -> PyResult<Self> {
        region.or_raise().map(|inner| Self { inner })
    }
}

#[pymethods]
impl Region {
    #[staticmethod]
    #[pyo3(name = "box")]
    fn cuboid(lo: Vec<f64>, hi: Vec<f64>) -> PyResult<Self> {
        Self::new(region::Region::cuboid(&lo, &hi))
    }

    #[staticmethod]
    fn sphere(center: Vec<f64>, radius: f64) -> PyResult<Self> {
        Self::new(region::Region::sphere(&center, radius))
    }

    #[staticmethod]
    fn shell(center: Vec<f64>, inner: f64, outer: f64) -> PyResult<Self> {
        Self::new(region::Region::shell(&center, inner, outer))
    }

    /// The region in a box with this lower corner and these sides, infinite in dimensions that are
    /// not periodic.
    fn in_periodic_box(&self, lower: Vec<f64>, sides: Vec<f64>) -> PyResult<Self> {
        Self::new(self.inner.in_periodic_box(&lower, &sides))
    }

    /// False only if no point of a box is inside.
    fn may_overlap(&self, lower: Vec<f64>, upper: Vec<f64>) -> bool {
        let corner = |coordinates: Vec<f64>| {
            std::array::from_fn(|d| coordinates.get(d).copied().unwrap_or_default())
        };
        self.inner.may_touch(&corner(lower), &corner(upper))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}
