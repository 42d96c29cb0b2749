"""What a VTK data object holds, as NumPy arrays, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]


def contents(found: Any) -> dict[str, Values]:
    """Return all arrays of a data object by their place in it; a mapping is returned unchanged.

    Geometry, cells as connectivity, offsets and types, and the data of points, cells and fields,
    those of blocks too.
    """
    if isinstance(found, Mapping):
        return dict(found)
    arrays: dict[str, Values] = {}
    _collect(found, "", arrays)
    return arrays


def raw_bytes(arrays: Mapping[str, Values]) -> int:
    """Return the bytes of all arrays."""
    return sum(values.nbytes for values in arrays.values())


def _collect(found: Any, place: str, arrays: dict[str, Values]) -> None:
    if found.IsA("vtkMultiBlockDataSet"):
        _collect_data(found.GetFieldData(), f"{place}field_data", arrays)
        for number in range(found.GetNumberOfBlocks()):
            if (block := found.GetBlock(number)) is not None:
                _collect(block, f"{place}{number}/", arrays)
        return
    _collect_geometry(found, place, arrays)
    _collect_cells(found, place, arrays)
    for name, data in (
        ("point_data", found.GetPointData()),
        ("cell_data", found.GetCellData()),
        ("field_data", found.GetFieldData()),
    ):
        _collect_data(data, place + name, arrays)


def _collect_geometry(found: Any, place: str, arrays: dict[str, Values]) -> None:
    if found.IsA("vtkImageData"):
        arrays[f"{place}origin"] = np.array(found.GetOrigin())
        arrays[f"{place}spacing"] = np.array(found.GetSpacing())
        matrix = found.GetDirectionMatrix()
        arrays[f"{place}direction"] = np.array(
            [[matrix.GetElement(row, column) for column in range(3)] for row in range(3)]
        )
    elif found.IsA("vtkRectilinearGrid"):
        for axis in "xyz":
            values = getattr(found, f"Get{axis.upper()}Coordinates")()
            arrays[place + axis] = _values(values)
    elif found.GetPoints() is not None:
        arrays[f"{place}points"] = _values(found.GetPoints().GetData())
    if hasattr(found, "GetExtent"):
        arrays[f"{place}extent"] = np.array(found.GetExtent())


def _collect_cells(found: Any, place: str, arrays: dict[str, Values]) -> None:
    kinds: dict[str, Any] = {}
    if found.IsA("vtkUnstructuredGrid"):
        arrays[f"{place}cells/types"] = _values(found.GetCellTypes())
        kinds = {
            "cells": found.GetCells(),
            "faces": found.GetPolyhedronFaces(),
            "polyhedra": found.GetPolyhedronFaceLocations(),
        }
    elif found.IsA("vtkExplicitStructuredGrid"):
        kinds = {"cells": found.GetCells()}
    elif found.IsA("vtkPolyData"):
        kinds = {
            "verts": found.GetVerts(),
            "lines": found.GetLines(),
            "polys": found.GetPolys(),
            "strips": found.GetStrips(),
        }
    for kind, cells in kinds.items():
        if cells is not None and cells.GetNumberOfCells():
            arrays[f"{place}{kind}/connectivity"] = _values(cells.GetConnectivityArray())
            arrays[f"{place}{kind}/offsets"] = _values(cells.GetOffsetsArray())


def _collect_data(data: Any, place: str, arrays: dict[str, Values]) -> None:
    for number in range(data.GetNumberOfArrays() if data is not None else 0):
        array = data.GetAbstractArray(number)
        arrays[f"{place}/{array.GetName() or number}"] = _values(array)


def _values(array: Any) -> Values:
    import pyvista as pv

    return np.asarray(pv.convert_array(array))


def differences(truth: Mapping[str, Values], found: Mapping[str, Values]) -> list[str]:
    """Return the arrays that are missing or hold other values; of any dtype that holds them all."""
    return [name for name, values in truth.items() if not _same(values, found.get(name))]


def retyped(truth: Mapping[str, Values], found: Mapping[str, Values]) -> list[str]:
    """Return, as text, the arrays whose values came back in another dtype."""
    return [
        f"{name} {values.dtype} as {found[name].dtype}"
        for name, values in truth.items()
        if name in found and found[name].dtype != values.dtype
    ]


def _same(expected: Values, found: Values | None) -> bool:
    """Return whether values are equal: bit for bit where dtypes are, so that NaN and -0 count."""
    if found is None or found.shape != expected.shape:
        return False
    if found.dtype == expected.dtype and expected.dtype.kind not in "OUS":
        return np.array_equal(_bytes(found), _bytes(expected))
    number = found.dtype.kind in "fc" and expected.dtype.kind in "fc"
    return np.array_equal(found, expected, equal_nan=number)


def _bytes(values: Values) -> Values:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
