//! HDF5 chunks that are encoded before they are passed to HDF5.

use ambar_codec::packet::{CellBox, ValueType, Workspaces, encode_boxes};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bound::BoundInput;
use crate::codec::codec_result;
use crate::memory::BorrowedBuffer;

/// Encodes a chunk of consecutive boxes of cells, for decoding by the HDF5 filter.
#[pyfunction]
#[pyo3(signature = (values, boxes, bound))]
pub fn hdf5_boxes<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    boxes: &Bound<'py, PyAny>,
    bound: BoundInput,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let bound = bound.parse()?;
    let (values, boxes) = (
        BorrowedBuffer::new(values, false)?,
        BorrowedBuffer::new(boxes, false)?,
    );
    let of = match values.format() {
        "f" | "<f" => ValueType::Float32,
        "d" | "<d" => ValueType::Float64,
        other => {
            return Err(PyTypeError::new_err(format!(
                "expected float32 or float64 values in native byte order, found {other:?}; convert them"
            )));
        }
    };
    let boxes = boxes_of(&boxes)?;
    let encode = || {
        let mut workspaces = Workspaces::default();
        encode_boxes(values.bytes(), of, &boxes, bound, &mut workspaces)
    };
    let packet = codec_result(py.detach(encode))?;
    Ok(packet.map(|packet| PyBytes::new(py, &packet)))
}

/// Boxes from an int64 array (n, 2, 3): first cells and numbers of cells.
fn boxes_of(lent: &BorrowedBuffer) -> PyResult<Vec<CellBox>> {
    let ("l" | "q" | "<l" | "<q", [_, 2, 3]) = (lent.format(), lent.shape()) else {
        return Err(PyTypeError::new_err(format!(
            "expected boxes as int64 of shape (n, 2, 3), found {:?} of shape {:?}; convert them",
            lent.format(),
            lent.shape()
        )));
    };
    let numbers: &[[[i64; 3]; 2]] = bytemuck::try_cast_slice(lent.bytes()).map_err(|_| {
        PyValueError::new_err("expected aligned boxes, found an unaligned array; copy it")
    })?;
    let cell_box = |[first, lengths]: &[[i64; 3]; 2]| -> PyResult<CellBox> {
        let mut cells = [0; 3];
        for (to, n) in cells.iter_mut().zip(lengths) {
            *to = usize::try_from(*n).ok().filter(|n| *n > 0).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "expected boxes of at least one cell, found {lengths:?} cells; leave out empty boxes"
                ))
            })?;
        }
        Ok(CellBox {
            first: *first,
            lengths: cells,
        })
    };
    numbers.iter().map(cell_box).collect()
}
