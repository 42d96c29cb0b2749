//! Arrays that tasks of other processes write in regions.

use ambar::array::Region;
use ambar::ranks::{self, ArrayRegion};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::OrRaise;
use crate::exclusive_writer::ExclusiveWriter;
use crate::memory::BorrowedBuffer;
use crate::spec::DType;
use crate::threads::Threads;
use crate::writer::check_dtype;

/// Path, start and shape of a region of an array.
type PathRegion = (String, Vec<u64>, Vec<u64>);

/// A commit whose arrays tasks write.
#[pyclass(frozen, module = "ambar._core")]
pub struct SharedCommit {
    pub inner: ExclusiveWriter<ranks::SharedCommit>,
}

impl SharedCommit {
    pub fn new(shared: ranks::SharedCommit) -> Self {
        Self {
            inner: ExclusiveWriter::new(shared),
        }
    }
}

#[pymethods]
impl SharedCommit {
    fn invitation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self
            .inner
            .with(py, |shared| Ok(shared.invitation().to_vec()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The expected regions that no receipt has, by path, start and shape.
    fn missing(
        &self,
        py: Python<'_>,
        receipts: Vec<PyBackedBytes>,
        expected: Vec<PathRegion>,
    ) -> PyResult<Vec<PathRegion>> {
        let receipts: Vec<&[u8]> = receipts.iter().map(AsRef::as_ref).collect();
        let expected = expected
            .into_iter()
            .map(|(path, start, shape)| ArrayRegion {
                path,
                region: Region { start, shape },
            });
        let expected: Vec<ArrayRegion> = expected.collect();
        let missing = self
            .inner
            .with(py, |shared| shared.missing(&receipts, &expected))?;
        let missing = missing
            .into_iter()
            .map(|ArrayRegion { path, region }| (path, region.start, region.shape));
        Ok(missing.collect())
    }

    /// Ends the commit: tasks cannot write any more.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }
}

/// The writer of one task.
#[pyclass(frozen, module = "ambar._core")]
pub struct RegionWriter {
    inner: ExclusiveWriter<ranks::RegionWriter>,
}

#[pymethods]
impl RegionWriter {
    #[new]
    fn new(py: Python<'_>, invitation: PyBackedBytes, threads: Option<Threads>) -> PyResult<Self> {
        let writer =
            py.detach(|| ranks::RegionWriter::join(&invitation, threads.map(|threads| threads.0)));
        Ok(Self {
            inner: ExclusiveWriter::new(writer.or_raise()?),
        })
    }

    /// Writes a C-contiguous buffer from `start` on.
    fn write(
        &self,
        py: Python<'_>,
        path: &str,
        data: &Bound<'_, PyAny>,
        dtype: DType,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<()> {
        let values = BorrowedBuffer::new(data, false)?;
        let region = Region { start, shape };
        self.inner.with(py, |writer| {
            check_dtype(path, writer.dtype_of(path)?, &dtype.0, &region.shape)?;
            writer.write(path, &region, values.bytes())
        })
    }

    /// Makes all values durable, and returns the receipt.
    fn receipt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.inner.with(py, ranks::RegionWriter::receipt)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Closes the file. Values without a receipt are lost.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }
}
