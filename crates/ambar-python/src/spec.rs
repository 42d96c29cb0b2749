//! Descriptions of arrays to be written.

use ambar::DataType;
use ambar::codec::Profile;
use ambar::kinds::bound::ErrorBound;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bound::BoundInput;
use crate::errors::OrRaise;
use crate::json::JsonObject;

/// The profile of this name.
pub fn profile(name: &str) -> PyResult<Profile> {
    match name {
        "fast" => Ok(Profile::Fast),
        "balanced" => Ok(Profile::Balanced),
        "small" => Ok(Profile::Small),
        "raw" => Ok(Profile::Raw),
        other => Err(PyValueError::new_err(format!(
            "invalid profile: {other:?}; must be \"fast\", \"balanced\", \"small\" or \"raw\""
        ))),
    }
}

/// A data type by the name that `Array.dtype` has.
pub struct DType(pub DataType);

impl<'py> FromPyObject<'_, 'py> for DType {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        name.parse().map(Self).or_raise()
    }
}

/// A new array: data type, shape, attributes and encoding.
#[pyclass(frozen, module = "ambar._core")]
pub struct ArraySpec {
    inner: ambar::array::ArraySpec,
    /// `None` for the profile of the writer.
    profile: Option<Profile>,
    /// As given; the bound of the specification may depend on the values.
    pub error_bound: Option<ErrorBound>,
}

#[pymethods]
impl ArraySpec {
    #[new]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (dtype, shape, *, dims=None, attrs=None, fill_value=None, chunks=None, shards=None, profile=None, error_bound=None, is_grid=false, is_read_whole=false, has_corners=false))]
    fn new(
        dtype: DType,
        shape: Vec<u64>,
        dims: Option<Vec<Option<String>>>,
        attrs: Option<JsonObject>,
        fill_value: Option<Vec<u8>>,
        chunks: Option<Vec<u64>>,
        shards: Option<Vec<u64>>,
        profile: Option<&str>,
        error_bound: Option<BoundInput>,
        is_grid: bool,
        is_read_whole: bool,
        has_corners: bool,
    ) -> PyResult<Self> {
        let mut inner = ambar::array::ArraySpec::new(dtype.0, &shape)
            .predict(is_grid)
            .whole(is_read_whole)
            .cells(has_corners)
            .attributes(attrs.unwrap_or_default().0);
        inner.dimension_names = dims.unwrap_or_default();
        inner.fill_value = fill_value;
        inner.chunk_shape = chunks;
        inner.shard_shape = shards;
        Ok(Self {
            inner,
            profile: profile.map(self::profile).transpose()?,
            error_bound: error_bound.map(|bound| bound.parse()).transpose()?,
        })
    }

    #[getter]
    fn dtype(&self) -> String {
        crate::memory::numpy_dtype(&self.inner.dtype)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.inner.shape)
    }
}

impl ArraySpec {
    /// The data type of the values.
    pub fn data_type(&self) -> &DataType {
        &self.inner.dtype
    }

    /// The specification for the library, with the profile of the writer as the default.
    pub fn with_default(&self, profile: Profile) -> ambar::array::ArraySpec {
        let mut spec = self.inner.clone();
        spec.profile = self.profile.unwrap_or(profile);
        spec.error_bound = self.error_bound;
        spec
    }
}
