//! A store open for writing.

use std::path::PathBuf;
use std::sync::Mutex;

use ambar::array::{ArrayData, ArraySpec, Strings};
use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability};
use ambar::kinds::bound::{Compression, ErrorBound};
use ambar::store::StoreWriter;
use ambar::{DataType, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::errors::OrRaise;
use crate::memory::Lent;

/// A profile by its name, and error bounds of fields as users say them.
pub fn compression((name, bounds): (String, Vec<(String, String)>)) -> PyResult<Compression> {
    let parse = |(field, text): (String, String)| {
        // One bound for all fields needs no name to be found.
        let named = |error: Error| {
            if field == "*" {
                error
            } else {
                error.at_node(&field)
            }
        };
        let bound = ErrorBound::parse(&text).map_err(named).or_raise()?;
        Ok((field, bound))
    };
    Ok(Compression {
        profile: profile(&name)?,
        error_bounds: bounds.into_iter().map(parse).collect::<PyResult<_>>()?,
    })
}

/// The profile of this name.
pub fn profile(name: &str) -> PyResult<Profile> {
    match name {
        "fast" => Ok(Profile::Fast),
        "balanced" => Ok(Profile::Balanced),
        "small" => Ok(Profile::Small),
        other => Err(PyValueError::new_err(format!(
            "no profile {other:?}; there are \"fast\", \"balanced\" and \"small\""
        ))),
    }
}

/// The durability of this name.
pub fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "none" => Ok(Durability::None),
        other => Err(PyValueError::new_err(format!(
            "no durability {other:?}; there are \"full\" and \"none\""
        ))),
    }
}

/// A JSON object from its text.
pub fn object(text: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(text)
        .map_err(|error| PyValueError::new_err(format!("the attributes are not JSON: {error}")))
}

/// A store open for writing; what is written becomes visible with `commit`.
#[pyclass(frozen, module = "ambar._core")]
pub struct Writer {
    inner: Mutex<Option<StoreWriter>>,
    profile: Profile,
    threads: Option<usize>,
}

#[pymethods]
impl Writer {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        directory: bool,
        durability: &str,
        profile: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let durability = self::durability(durability)?;
        let overwrite = mode == "overwrite";
        let options = CreateOptions {
            durability,
            overwrite,
            directory,
        };
        let writer = py
            .detach(|| match mode {
                "create" | "overwrite" => StoreWriter::create(&path, &options),
                "append" => StoreWriter::append(&path, durability),
                other => Err(Error::invalid(format!(
                    "no mode {other:?}; there are \"create\", \"overwrite\" and \"append\""
                ))),
            })
            .or_raise()?;
        let profile = self::profile(profile)?;
        Ok(Self {
            inner: Mutex::new(Some(writer)),
            profile,
            threads,
        })
    }

    fn group(&self, py: Python<'_>, path: &str, attributes: &str) -> PyResult<()> {
        let attributes = object(attributes)?;
        self.with(py, move |writer| writer.group(path, attributes))
    }

    fn set_attributes(&self, py: Python<'_>, path: &str, attributes: &str) -> PyResult<()> {
        let attributes = object(attributes)?;
        self.with(py, move |writer| writer.set_attributes(path, attributes))
    }

    /// Writes an array. `data`: a C-contiguous buffer of the values' bytes, or, for text and byte
    /// strings, a list of `bytes`. `dtype`: the JSON text of the Zarr data type.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (path, data, dtype, shape, dims, attributes, fill_value, chunks, profile, error_bound))]
    fn array(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: &str,
        shape: Vec<u64>,
        dims: Option<Vec<Option<String>>>,
        attributes: &str,
        fill_value: Option<Vec<u8>>,
        chunks: Option<Vec<u64>>,
        profile: Option<&str>,
        error_bound: Option<&str>,
    ) -> PyResult<()> {
        let json: Value =
            serde_json::from_str(dtype).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let mut spec = ArraySpec::new(DataType::from_json(&json).or_raise()?, &shape);
        spec.dimension_names = dims.unwrap_or_default();
        spec.attributes = object(attributes)?;
        spec.fill_value = fill_value;
        spec.chunk_shape = chunks;
        spec.profile = profile.map_or(Ok(self.profile), self::profile)?;
        if spec.dtype.size().is_none() {
            let values: Vec<Vec<u8>> = data.extract()?;
            let strings: Strings = values.iter().collect();
            return self.with(py, |writer| {
                writer.write_array(path, &spec, ArrayData::Strings(&strings))
            });
        }
        let lent = Lent::new(data, false)?;
        if let Some(text) = error_bound {
            let bound = ErrorBound::parse(text).or_raise()?;
            spec.error_bound = Some(bound.of_values(&spec.dtype, lent.bytes()));
        }
        self.with(py, |writer| {
            writer.write_array(path, &spec, ArrayData::Fixed(lent.bytes()))
        })
    }

    fn remove(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |writer| writer.remove(path))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, StoreWriter::commit)
    }

    /// Lets go of the file. What was not committed is lost.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut inner = self
                .inner
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            *inner = None;
        });
    }
}

impl Writer {
    fn with(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut StoreWriter) -> ambar::Result<()> + Send,
    ) -> PyResult<()> {
        py.detach(|| {
            let mut inner = self
                .inner
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let writer = inner
                .as_mut()
                .ok_or_else(|| Error::invalid("the writer is closed; open another"))?;
            ambar::parallel::with_threads(self.threads, || act(writer))
        })
        .or_raise()
    }
}
