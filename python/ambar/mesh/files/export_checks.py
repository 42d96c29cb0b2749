"""Checks, before an export, for the parts of a mesh that VTK's formats do not support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet, vtkDataSetAttributes

from ambar import _core
from ambar.interop.vtk_arrays import values_of

_COMPOSITES = (
    ("GetNumberOfBlocks", "GetBlock"),
    ("GetNumberOfPartitions", "GetPartition"),
    ("GetNumberOfPartitionedDataSets", "GetPartitionedDataSet"),
)
_DATA = {
    "points": "GetPointData",
    "cells": "GetCellData",
    "rows": "GetRowData",
    "field data": "GetFieldData",
}


def check_hdf(mesh: Any) -> None:
    """Raise UnsupportedError if VTK's writer of VTKHDF would omit or rename a part of a mesh.

    It omits arrays without a name, bits, and strings on points and cells, and writes the names
    ``a/b`` and ``a.b`` as ``a_b``.
    """
    for part, where, name in _parts_of(mesh):
        if name is not None:
            _check_hdf_name(name, where)
        for association, data in _data_of(part):
            arrays_of(data, f"{where}: {association}", has_strings=association == "field data")


def check_xml(mesh: Any) -> None:
    """Raise UnsupportedError for names that VTK does not escape in XML, and for missing names."""
    for part, where, name in _parts_of(mesh):
        names = [(where, name)] if name is not None else []
        for association, data in _data_of(part):
            arrays = (data.GetAbstractArray(index) for index in range(data.GetNumberOfArrays()))
            names += [(f"{where}: {association}: an array", array.GetName()) for array in arrays]
        for what, found in names:
            if not found or any(sign in found for sign in '<>&"\n'):
                raise _core.UnsupportedError(
                    f"{what} has the name {found!r}: VTK's XML supports names without <, >, & and "
                    '": rename it, or export to another format'
                )


def _parts_of(
    mesh: Any, where: str = "the mesh", name: str | None = None
) -> Iterator[tuple[Any, str, str | None]]:
    """Yield an object and its blocks, at any depth: the object, where it is, and its name."""
    yield mesh, where, name
    key = vtkCompositeDataSet.NAME()
    for count, get in _COMPOSITES:
        for index in range(getattr(mesh, count)() if hasattr(mesh, get) else 0):
            info = mesh.GetMetaData(index) if mesh.HasMetaData(index) else None
            found = info.Get(key) if info is not None and info.Has(key) else None
            yield from _parts_of(getattr(mesh, get)(index), f"{where}: block {index}", found)


def _data_of(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the associations of the arrays of an object, and the arrays."""
    for association, get in _DATA.items():
        if hasattr(part, get) and getattr(part, get)() is not None:
            yield association, getattr(part, get)()


def arrays_of(
    data: Any, where: str, *, has_strings: bool = False
) -> dict[str, tuple[np.ndarray, str | None]]:
    """Return the values of each array of a vtkFieldData, and the attribute that it is active as.

    Raises UnsupportedError for an array that VTKHDF does not support. It supports strings in field
    data only (`has_strings`).
    """
    found = {}
    for index in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(index)
        name = array.GetName()
        _check_hdf_name(name, f"{where}: an array")
        values = values_of(array, f"{where} {name}")
        if values.dtype.kind not in ("iufO" if has_strings else "iuf"):
            what = "strings" if values.dtype.kind == "O" else "bits"
            raise _core.UnsupportedError(
                f"{where}: the array {name!r} has {what}, which VTKHDF does not support: leave it "
                "out, or export to another format"
            )
        if name in found:
            raise _core.UnsupportedError(f"{where}: two arrays are named {name!r}: rename one")
        role = data.IsArrayAnAttribute(index) if hasattr(data, "IsArrayAnAttribute") else -1
        active = None if role < 0 else vtkDataSetAttributes.GetAttributeTypeAsString(role)
        found[name] = values, active
    return found


def _check_hdf_name(name: str | None, what: str) -> None:
    if not name or "/" in name or "." in name:
        raise _core.UnsupportedError(
            f"{what} has the name {name!r}: VTKHDF supports names without / and .: rename it, or "
            "export to another format"
        )
