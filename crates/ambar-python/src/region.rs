//! The class `Region`.

use ambar::kinds::region;
use ambar::{Column, DataType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::memory::{BorrowedBuffer, to_numpy};

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

fn clones(regions: &[PyRef<'_, Region>]) -> Vec<region::Region> {
    regions.iter().map(|region| region.inner.clone()).collect()
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

    #[staticmethod]
    fn cylinder(
        center: Vec<f64>,
        axis: Vec<f64>,
        inner: f64,
        outer: f64,
        height: f64,
    ) -> PyResult<Self> {
        Self::new(region::Region::cylinder(
            &center, &axis, inner, outer, height,
        ))
    }

    #[staticmethod]
    fn oriented_box(
        center: Vec<f64>,
        sides: Vec<f64>,
        axis: Vec<f64>,
        towards: Vec<f64>,
    ) -> PyResult<Self> {
        Self::new(region::Region::oriented_box(
            &center, &sides, &axis, &towards,
        ))
    }

    #[staticmethod]
    fn union(regions: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        Self::new(region::Region::union(clones(&regions)))
    }

    #[staticmethod]
    fn intersection(regions: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        Self::new(region::Region::intersection(clones(&regions)))
    }

    fn complement(&self) -> Self {
        let inner = self.inner.clone().complement();
        Self { inner }
    }

    fn by_volume(&self) -> Self {
        let inner = self.inner.clone().by_volume();
        Self { inner }
    }

    /// Whether each of the points with these coordinates, one array for each dimension, is inside.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        positions: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let lent = positions.iter().map(|array| {
            BorrowedBuffer::new(
                &numpy.call_method1("ascontiguousarray", (array, "f8"))?,
                false,
            )
        });
        let lent: Vec<BorrowedBuffer> = lent.collect::<PyResult<_>>()?;
        let slices = lent.iter().map(|buffer| {
            bytemuck::try_cast_slice(buffer.bytes())
                .map_err(|error| PyValueError::new_err(error.to_string()))
        });
        let slices: Vec<&[f64]> = slices.collect::<PyResult<_>>()?;
        let found = py.detach(|| self.inner.contains_all(&slices)).or_raise()?;
        let mut mask = Column::allocate(&[DataType::Bool], found.len())
            .or_raise()?
            .remove(0);
        for (to, flag) in mask.bytes_mut().iter_mut().zip(found) {
            *to = flag.into();
        }
        to_numpy(py, mask)
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
