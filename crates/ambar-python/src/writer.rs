//! A store open for writing.

use std::path::PathBuf;

use ambar::array::{ArrayData, ArraySpec, Region, Strings};
use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability};
use ambar::kinds::bound::{self, Compression};
use ambar::store::StoreWriter;
use ambar::{DataType, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::bound::GivenBound;
use crate::errors::OrRaise;
use crate::memory::Lent;
use crate::unshared::Unshared;

/// A compression from the name of a profile and error bounds of fields in user notation.
pub fn compression((name, bounds): (String, Vec<(String, String)>)) -> PyResult<Compression> {
    let parse = |(field, text): (String, String)| {
        // `*` is not the name of a field.
        let named = |error: Error| {
            if field == "*" {
                error
            } else {
                error.at_node(&field)
            }
        };
        let bound = bound::parse(&text).map_err(named).or_raise()?;
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
            "invalid profile: {other:?}; must be \"fast\", \"balanced\", \"small\" or \"raw\""
        ))),
    }
}

/// The durability of this name.
pub fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "none" => Ok(Durability::None),
        other => Err(PyValueError::new_err(format!(
            "invalid durability: {other:?}; must be \"full\" or \"none\""
        ))),
    }
}

/// A JSON object from its text.
pub fn object(text: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(text)
        .map_err(|error| PyValueError::new_err(format!("expected attributes as JSON: {error}")))
}

/// The specification of an array: Zarr data type as JSON text, shape, names of the dimensions, attributes as JSON
/// text, fill value, chunks, shards, profile.
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

/// The type of a Zarr data type in JSON text.
pub fn data_type(json: &str) -> PyResult<DataType> {
    let json: Value =
        serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
    DataType::from_json(&json).or_raise()
}

/// The specification of an array, with the default `profile`.
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

/// Values from Python.
enum Given {
    /// Values of fixed size, in pieces.
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

    /// Passes the values to `write` in one piece.
    fn lend<T>(&self, write: impl FnOnce(ArrayData<'_>) -> T) -> T {
        match self {
            Self::Strings(strings) => write(ArrayData::Strings(strings)),
            Self::Fixed(pieces) => {
                let all = pieces.first().map(Lent::bytes).unwrap_or_default();
                write(ArrayData::Fixed(all))
            }
        }
    }

    /// Passes the values to `write` in pieces.
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

/// Checks that values have the data type of the array at `path`: bytes of another type would be read as other values.
fn check_dtype(path: &str, expected: &DataType, found: &DataType) -> ambar::Result<()> {
    if expected == found {
        return Ok(());
    }
    let message = format!("expected values of {expected}, found values of {found}; convert them");
    Err(Error::invalid(message).at_node(path))
}

/// A store open for writing. `commit` makes writes visible.
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
            ..CreateOptions::default()
        };
        let writer = py
            .detach(|| match mode {
                "create" | "overwrite" => StoreWriter::create(&path, &options),
                "append" => StoreWriter::append(&path, durability),
                other => Err(Error::invalid(format!(
                    "invalid mode: {other:?}; must be \"create\", \"overwrite\" or \"append\""
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

    /// Raises an error in a forked child of the process that opened the writer.
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

    /// Writes an array. `data` is a C-contiguous buffer of the values, or a list of `bytes` for text and byte
    /// strings.
    #[pyo3(signature = (path, data, about, error_bound, predict, whole, cells))]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    fn array(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        about: About,
        error_bound: Option<GivenBound>,
        predict: bool,
        whole: bool,
        cells: bool,
    ) -> PyResult<()> {
        let mut spec = spec(about, self.profile)?;
        spec = spec.predict(predict).whole(whole).cells(cells);
        let values = Given::new(data, &spec.dtype)?;
        if let (Some(bound), Given::Fixed(pieces)) = (error_bound, &values) {
            let bound = bound.parse()?;
            let all = pieces.first().map(Lent::bytes).unwrap_or_default();
            spec.error_bound = Some(bound::of_values(bound, &spec.dtype, all));
        }
        self.with(py, |writer| {
            values.lend(|data| writer.write_array(path, &spec, data))
        })
    }

    /// Creates an array of its fill value.
    #[pyo3(signature = (path, about, error_bound))]
    fn declare(
        &self,
        py: Python<'_>,
        path: &str,
        about: About,
        error_bound: Option<GivenBound>,
    ) -> PyResult<()> {
        let mut spec = spec(about, self.profile)?;
        spec.error_bound = error_bound.map(|bound| bound.parse()).transpose()?;
        self.with(py, |writer| writer.declare(path, &spec))
    }

    /// Writes a region of an array from `start` on; `data` is as in `array`.
    fn write_region(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: &str,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let dtype = data_type(dtype)?;
        let values = Given::new(data, &dtype)?;
        let region = Region { start, shape };
        self.with(py, |writer| {
            check_dtype(path, &writer.type_and_shape(path)?.0, &dtype)?;
            values.lend(|data| writer.write_region(path, &region, data))
        })
    }

    /// Appends rows to an array; `shape` is that of all rows. `data` is a list of consecutive C-contiguous buffers,
    /// or a list of `bytes` for text and byte strings.
    fn append(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: &str,
        shape: Vec<u64>,
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
            let (expected, stored) = writer.type_and_shape(path)?;
            check_dtype(path, &expected, &dtype)?;
            let (Some((&rows, row)), Some((_, stored_row))) =
                (shape.split_first(), stored.split_first())
            else {
                let message = format!("rows of shape {shape:?} for an array of shape {stored:?}; both need rows");
                return Err(Error::invalid(message).at_node(path));
            };
            if row != stored_row {
                let message = format!(
                    "expected rows of shape {stored_row:?}, found rows of shape {row:?}; reshape them"
                );
                return Err(Error::invalid(message).at_node(path));
            }
            values.lend_pieces(|data| writer.append_rows(path, rows, data))
        })
    }

    fn remove(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |writer| writer.remove(path))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, StoreWriter::commit)
    }

    /// Closes the file. Uncommitted data are lost.
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
