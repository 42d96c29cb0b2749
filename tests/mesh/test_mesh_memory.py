"""VTK's arrays keep the memory alive that they share with NumPy, whatever VTK does with them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vtkmodules")

from vtkmodules.vtkCommonCore import vtkDoubleArray, vtkLongLongArray

from ambar.interop import vtk_arrays as arrays
from ambar.interop.vtk_arrays import array_of
from ambar.mesh.storage.connectivity import Connectivity
from ambar.mesh.vtk.cells import cell_array

COUNT = 100_000


@pytest.fixture(params=["as this VTK has it", "as VTK before 9.6"])
def vtk_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the installed VTK, and in the way that is taken with older ones."""
    if request.param == "as VTK before 9.6":
        monkeypatch.setattr(arrays, "_OWNED_BY_BUFFERS", False)


def shared(values: np.ndarray, array: Any) -> bool:
    """Whether the VTK array has the memory of `values`."""
    return np.shares_memory(np.frombuffer(array, values.dtype), values)


@pytest.mark.usefixtures("vtk_of")
def test_a_shallow_copy_keeps_the_values() -> None:
    """A copy that C++ made pointed to freed memory, with VTK before 9.6, once its source had gone.

    VTK kept the NumPy array by a reference on the first VTK array alone.
    """
    values = np.random.default_rng(0).random(COUNT)
    expected, owner = values.copy(), weakref.ref(values)
    array: Any = array_of(values)
    copy: Any = vtkDoubleArray()
    copy.ShallowCopy(array)
    is_shared = shared(values, copy)
    assert is_shared == arrays._OWNED_BY_BUFFERS
    del array, values
    gc.collect()
    assert not is_shared or owner() is not None
    np.testing.assert_array_equal(np.frombuffer(copy), expected)
    del copy
    gc.collect()
    assert owner() is None


@pytest.mark.usefixtures("vtk_of")
def test_cells_keep_corners_and_offsets() -> None:
    """`vtkCellArray.SetData` keeps arrays of its own types, and copies others shallowly."""
    table = np.random.default_rng(0).integers(0, COUNT, (COUNT, 4))
    expected, owner = table.copy(), weakref.ref(table)
    cells = cell_array(Connectivity.of_table(table))
    copy: Any = vtkLongLongArray()
    copy.ShallowCopy(cells.GetConnectivityArray())
    is_shared = shared(table, copy)
    assert is_shared == arrays._OWNED_BY_BUFFERS
    offsets = np.frombuffer(cells.GetOffsetsArray(), np.int64)
    del table, cells
    gc.collect()
    assert not is_shared or owner() is not None
    np.testing.assert_array_equal(np.frombuffer(copy, np.int64), expected.reshape(-1))
    np.testing.assert_array_equal(offsets, np.arange(0, 4 * COUNT + 1, 4))
