//! Writing one store with many ranks.

use std::path::PathBuf;
use std::sync::Arc;

use ambar::array::Region;
use ambar::codec::Profile;
use ambar::container::CreateOptions;
use ambar::ranks::{self, ArrayId, Decomposition, Placement, RankOptions};
use ambar::{Error, ErrorKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::OrRaise;
use crate::exclusive_writer::ExclusiveWriter;
use crate::json::JsonObject;
use crate::memory::BorrowedBuffer;
use crate::spec::ArraySpec;
use crate::threads::Threads;
use crate::writer::durability;

/// The decomposition of arrays of one shape into the blocks of all ranks.
#[pyclass(frozen, module = "ambar._core")]
pub struct Blocks(Arc<Decomposition>);

#[pymethods]
impl Blocks {
    /// Encodes the blocks of one rank (start and shape of each) as bytes to gather from all ranks.
    #[staticmethod]
    fn encode(
        py: Python<'_>,
        shape: Vec<u64>,
        blocks: Vec<(Vec<u64>, Vec<u64>)>,
    ) -> PyResult<Bound<'_, PyBytes>> {
        let blocks = blocks
            .into_iter()
            .map(|(start, shape)| Region { start, shape });
        let blocks: Vec<Region> = blocks.collect();
        let bytes = Decomposition::encode(&shape, &blocks).or_raise()?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Combines the bytes of all ranks, in rank order.
    #[staticmethod]
    fn gather(parts: Vec<PyBackedBytes>) -> PyResult<Self> {
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        let held = Decomposition::gather(&parts).or_raise()?;
        Ok(Self(Arc::new(held)))
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    /// Start and shape of each block of a rank.
    fn of(&self, rank: u32) -> Vec<(Vec<u64>, Vec<u64>)> {
        let own = self.0.blocks().iter().filter(|(owner, _)| *owner == rank);
        own.map(|(_, block)| (block.start.clone(), block.shape.clone()))
            .collect()
    }
}

fn placement(name: &str) -> PyResult<Placement> {
    match name {
        "counter" => Ok(Placement::Counter),
        "reserved" => Ok(Placement::Reserved),
        other => Err(PyValueError::new_err(format!(
            "invalid placement: {other:?}; must be \"counter\" or \"reserved\""
        ))),
    }
}

/// A store that many ranks write, as seen by one rank.
#[pyclass(frozen, module = "ambar._core")]
pub struct RankWriter {
    inner: ExclusiveWriter<ranks::RankWriter>,
}

#[pymethods]
impl RankWriter {
    /// Creates a store, or opens one for appending, on rank 0.
    #[staticmethod]
    #[expect(
        clippy::too_many_arguments,
        reason = "arguments of the Python function"
    )]
    #[pyo3(signature = (path, mode, *, durability, ranks, placement, alignment, extent, threads, queue))]
    fn first(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        durability: &str,
        ranks: u32,
        placement: &str,
        alignment: u64,
        extent: u64,
        threads: Threads,
        queue: Option<u64>,
    ) -> PyResult<Self> {
        let durability = self::durability(durability)?;
        let options = RankOptions {
            ranks,
            placement: self::placement(placement)?,
            alignment,
            extent,
            threads: threads.0,
            queue,
        };
        let create = CreateOptions {
            durability,
            overwrite: mode == "overwrite",
            ..CreateOptions::default()
        };
        let writer = py.detach(|| match mode {
            "append" => ranks::RankWriter::append(&path, durability, options),
            _ => ranks::RankWriter::create(&path, &create, options),
        });
        Ok(Self::new(writer.or_raise()?))
    }

    /// Joins a store with the invitation of rank 0.
    #[staticmethod]
    fn join(py: Python<'_>, invitation: PyBackedBytes, rank: u32) -> PyResult<Self> {
        let writer = py.detach(|| ranks::RankWriter::join(&invitation, rank));
        Ok(Self::new(writer.or_raise()?))
    }

    fn invitation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, ranks::RankWriter::invitation)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// True if extents come from a counter that the ranks share.
    #[getter]
    fn counts(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |writer| {
            let options = writer.options();
            Ok(options.ranks > 1 && options.placement == Placement::Counter)
        })
    }

    /// Sets the counter from which extents are taken: `reserve` adds a number to it, and returns its previous value.
    fn count_with(&self, py: Python<'_>, reserve: Py<PyAny>) -> PyResult<()> {
        let reserve = move |bytes: u64| {
            Python::attach(|py| reserve.call1(py, (bytes,))?.extract(py)).map_err(|error: PyErr| {
                Error::new(ErrorKind::Io, format!("the ranks' counter: {error}"))
            })
        };
        self.with(py, |writer| {
            writer.count_with(Box::new(reserve));
            Ok(())
        })
    }

    fn group(&self, py: Python<'_>, path: &str, attrs: JsonObject) -> PyResult<()> {
        self.with(py, |writer| writer.group(path, attrs.0))
    }

    fn begin_step(&self, py: Python<'_>, series: &str, time: f64) -> PyResult<String> {
        self.with(py, |writer| writer.begin_step(series, time))
    }

    /// Declares an array, and returns its number.
    #[pyo3(signature = (path, spec, blocks))]
    fn declare(
        &self,
        py: Python<'_>,
        path: &str,
        spec: &ArraySpec,
        blocks: Option<&Blocks>,
    ) -> PyResult<u32> {
        let spec = spec.with_default(Profile::default());
        let blocks = blocks.map(|blocks| &blocks.0);
        let array = self.with(py, |writer| writer.declare(path, &spec, blocks))?;
        Ok(array.0)
    }

    /// Writes a C-contiguous buffer into a block from `start` on.
    fn write(
        &self,
        py: Python<'_>,
        array: u32,
        data: &Bound<'_, PyAny>,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let values = BorrowedBuffer::new(data, false)?;
        let region = Region { start, shape };
        self.with(py, |writer| {
            writer.write(ArrayId(array), &region, values.bytes())
        })
    }

    /// The message for rank `to` after all values were written here, often empty.
    fn message_to<'py>(&self, py: Python<'py>, to: u32) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |writer| Ok(writer.message_to(to)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Receives the message of another rank.
    fn receive(&self, py: Python<'_>, sender: u32, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let message = BorrowedBuffer::new(message, false)?;
        self.with(py, |writer| writer.receive(sender, message.bytes()))
    }

    fn seal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, ranks::RankWriter::seal)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn commit<'py>(
        &self,
        py: Python<'py>,
        indices: Vec<PyBackedBytes>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let indices: Vec<&[u8]> = indices.iter().map(AsRef::as_ref).collect();
        let bytes = self.with(py, |writer| writer.commit(&indices))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn conclude(&self, py: Python<'_>, outcome: PyBackedBytes) -> PyResult<()> {
        self.with(py, |writer| writer.conclude(&outcome))
    }

    /// Closes the file. Uncommitted data are lost.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }
}

impl RankWriter {
    fn new(writer: ranks::RankWriter) -> Self {
        Self {
            inner: ExclusiveWriter::new(writer),
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut ranks::RankWriter) -> ambar::Result<T> + Send,
    ) -> PyResult<T> {
        self.inner.with(py, act)
    }
}
