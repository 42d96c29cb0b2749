//! The class `Camera`: maps of cells and particles along any direction.

use ambar::kinds::render::{self, Footprint, RenderRows};
use ambar::{Column, DataType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::memory::{BorrowedBuffer, to_numpy};
use crate::threads::{Threads, detached};

/// A view of the domain along a direction.
#[pyclass(frozen, module = "ambar._core")]
pub struct Camera(render::Camera);

/// The form of rows in a map.
#[derive(FromPyObject)]
enum FootprintArgument<'py> {
    /// "nearest" or "cloud".
    Name(String),
    /// Sides of cells along three axes, or radii of splines.
    Lengths(Vec<Bound<'py, PyAny>>),
}

#[pymethods]
impl Camera {
    #[new]
    #[pyo3(signature = (*, center, axes, pixel, shape, depth, periods))]
    fn new(
        center: [f64; 3],
        axes: [[f64; 3]; 3],
        pixel: f64,
        shape: [usize; 2],
        depth: f64,
        periods: [f64; 3],
    ) -> Self {
        Self(render::Camera {
            centre: center,
            axes,
            pixel,
            shape,
            depth,
            periods,
        })
    }

    /// Sums values of rows over pixels: float64 (values, layers, right, up). `footprint` has the sides of cells along
    /// three axes, the radii of splines, or is "nearest" or "cloud".
    #[pyo3(signature = (positions, footprint, values, layers=None, layer_count=1, is_maximum=false, threads=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    fn render<'py>(
        &self,
        py: Python<'py>,
        positions: [Bound<'py, PyAny>; 3],
        footprint: FootprintArgument<'py>,
        values: Vec<Bound<'py, PyAny>>,
        layers: Option<Bound<'py, PyAny>>,
        layer_count: usize,
        is_maximum: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let positions = floats(&positions)?;
        let values = floats(&values)?;
        let (name, lengths) = match &footprint {
            FootprintArgument::Name(name) => (name.as_str(), Vec::new()),
            FootprintArgument::Lengths(arrays) => ("", floats(arrays)?),
        };
        let layers = match layers {
            Some(layers) => Some(contiguous(&layers, "i8")?),
            None => None,
        };
        let numbers = layers.as_ref().map(words::<i64>).transpose()?;
        let [x, y, z] = slices(&positions)?[..] else {
            return Err(PyValueError::new_err("expected three coordinates"));
        };
        let lengths = slices(&lengths)?;
        let footprint = match (name, &lengths[..]) {
            ("nearest", []) => Footprint::Nearest,
            ("cloud", []) => Footprint::Cloud,
            ("", [radii]) => Footprint::Spline(radii),
            ("", [dx, dy, dz]) => Footprint::Cells([dx, dy, dz]),
            _ => {
                return Err(PyValueError::new_err(
                    "expected \"nearest\", \"cloud\", radii, or sides along three axes",
                ));
            }
        };
        let values = slices(&values)?;
        let rows = RenderRows {
            positions: [x, y, z],
            footprint,
            values: &values,
            layers: numbers.map(|layers| (layers, layer_count)),
            is_maximum,
        };
        let sums = detached(py, threads, || render::render(&self.0, &rows))?;
        let mut column = Column::allocate(&[DataType::Float64], sums.len())
            .or_raise()?
            .remove(0);
        column.values_mut::<f64>().copy_from_slice(&sums);
        let [width, height] = self.0.shape;
        let shape = (values.len(), layer_count, width, height);
        to_numpy(py, column)?.call_method1("reshape", (shape,))
    }
}

fn contiguous(array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<BorrowedBuffer> {
    let numpy = array.py().import("numpy")?;
    BorrowedBuffer::new(
        &numpy.call_method1("ascontiguousarray", (array, dtype))?,
        false,
    )
}

pub fn floats(arrays: &[Bound<'_, PyAny>]) -> PyResult<Vec<BorrowedBuffer>> {
    arrays.iter().map(|array| contiguous(array, "f8")).collect()
}

fn words<T: bytemuck::Pod>(buffer: &BorrowedBuffer) -> PyResult<&[T]> {
    bytemuck::try_cast_slice(buffer.bytes())
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

pub fn slices(buffers: &[BorrowedBuffer]) -> PyResult<Vec<&[f64]>> {
    buffers.iter().map(words).collect()
}
