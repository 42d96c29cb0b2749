//! A store open for writing.

use std::path::PathBuf;

use ambar::array::{ArrayData, ArraySpec, Region, Strings};
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
use crate::unshared::Unshared;

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
        "raw" => Ok(Profile::Raw),
        other => Err(PyValueError::new_err(format!(
            "no profile {other:?}; there are \"fast\", \"balanced\", \"small\" and \"raw\""
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

/// What Python says of an array: JSON text of the Zarr data type, shape, names of the dimensions, JSON
/// text of the attributes, fill value, chunks, shards, profile.
pub type About = (
    String,
    Vec<u64>,
    Option<Vec<Option<String>>>,
    String,
    Option<Vec<u8>>,
    Option<Vec<u64>>,
    Option<Vec<u64>>,
    Option<String>,
);

/// The type that the JSON text of a Zarr data type says.
pub fn data_type(json: &str) -> PyResult<DataType> {
    let json: Value =
        serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
    DataType::from_json(&json).or_raise()
}

/// What Python says of an array, of `profile` where it says no other.
pub fn spec(about: About, profile: Profile) -> PyResult<ArraySpec> {
    let (dtype, shape, dims, attributes, fill_value, chunks, shards, named) = about;
    let mut spec = ArraySpec::new(data_type(&dtype)?, &shape);
    spec.dimension_names = dims.unwrap_or_default();
    spec.attributes = object(&attributes)?;
    spec.fill_value = fill_value;
    spec.chunk_shape = chunks;
    spec.shard_shape = shards;
    spec.profile = match named {
        Some(name) => self::profile(&name)?,
        None => profile,
    };
    Ok(spec)
}

/// Values that Python gives.
enum Given {
    /// Of a fixed size, in pieces.
    Fixed(Vec<Lent>),
    Strings(Strings),
}

impl Given {
    fn new(data: &Bound<'_, PyAny>, dtype: &DataType) -> PyResult<Self> {
        if dtype.size().is_some() {
            return Ok(Self::Fixed(vec![Lent::new(data, false)?]));
        }
        let values: Vec<Vec<u8>> = data.extract()?;
        Ok(Self::Strings(values.iter().collect()))
    }

    /// Hands them to `write` in one piece.
    fn lend<T>(&self, write: impl FnOnce(ArrayData<'_>) -> T) -> T {
        match self {
            Self::Strings(strings) => write(ArrayData::Strings(strings)),
            Self::Fixed(pieces) => {
                let all = pieces.first().map(Lent::bytes).unwrap_or_default();
                write(ArrayData::Fixed(all))
            }
        }
    }

    /// Hands them to `write` in pieces.
    fn lend_pieces<T>(&self, write: impl FnOnce(ArrayData<'_>) -> T) -> T {
        match self {
            Self::Strings(strings) => write(ArrayData::Strings(strings)),
            Self::Fixed(pieces) => {
                let pieces: Vec<&[u8]> = pieces.iter().map(Lent::bytes).collect();
                write(ArrayData::Pieces(&pieces))
            }
        }
    }
}

/// A store open for writing; what is written becomes visible with `commit`.
#[pyclass(frozen, module = "ambar._core")]
pub struct Writer {
    inner: Unshared<StoreWriter>,
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
            inner: Unshared::new(writer),
            profile,
            threads,
        })
    }

    /// Fails in a forked child of the process that opened the writer.
    fn check(&self) -> PyResult<()> {
        self.inner.check()
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
    /// strings, a list of `bytes`.
    #[pyo3(signature = (path, data, about, error_bound, predict, whole, cells))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of Python's")]
    fn array(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        about: About,
        error_bound: Option<&str>,
        predict: bool,
        whole: bool,
        cells: bool,
    ) -> PyResult<()> {
        let mut spec = spec(about, self.profile)?;
        spec = spec.predict(predict).whole(whole).cells(cells);
        let values = Given::new(data, &spec.dtype)?;
        if let (Some(text), Given::Fixed(pieces)) = (error_bound, &values) {
            let bound = ErrorBound::parse(text).or_raise()?;
            let all = pieces.first().map(Lent::bytes).unwrap_or_default();
            spec.error_bound = Some(bound.of_values(&spec.dtype, all));
        }
        self.with(py, |writer| {
            values.lend(|data| writer.write_array(path, &spec, data))
        })
    }

    /// Makes an array that has its fill value everywhere; `error_bound` is absolute.
    #[pyo3(signature = (path, about, error_bound))]
    fn declare(
        &self,
        py: Python<'_>,
        path: &str,
        about: About,
        error_bound: Option<f64>,
    ) -> PyResult<()> {
        let mut spec = spec(about, self.profile)?;
        spec.error_bound = error_bound;
        self.with(py, |writer| writer.declare(path, &spec))
    }

    /// Writes a region of an array that begins at `start`; `data` as for `array`.
    fn write_region(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: &str,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let values = Given::new(data, &data_type(dtype)?)?;
        let region = Region { start, shape };
        self.with(py, |writer| {
            values.lend(|data| writer.write_region(path, &region, data))
        })
    }

    /// Writes rows behind the last of an array; `data`: a list of C-contiguous buffers, one behind
    /// the other, or a list of `bytes` for text and byte strings.
    fn append(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: &str,
        rows: u64,
    ) -> PyResult<()> {
        let dtype = data_type(dtype)?;
        let values = match dtype.size() {
            None => Given::new(data, &dtype)?,
            Some(_) => {
                let pieces = data.try_iter()?;
                let lent = pieces.map(|piece| Lent::new(&piece?, false));
                Given::Fixed(lent.collect::<PyResult<_>>()?)
            }
        };
        self.with(py, |writer| {
            values.lend_pieces(|data| writer.append_rows(path, rows, data))
        })
    }

    fn remove(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |writer| writer.remove(path))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, StoreWriter::commit)
    }

    /// Closes the file. What was not committed is lost.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }
}

impl Writer {
    fn with(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut StoreWriter) -> ambar::Result<()> + Send,
    ) -> PyResult<()> {
        let threads = self.threads;
        self.inner.with(py, |writer| {
            ambar::parallel::with_threads(threads, || act(writer))
        })
    }
}
