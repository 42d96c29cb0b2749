"""What VTK's formats cannot keep of a mesh, refused before it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet

from ambar import _core
from ambar.interop.vtk_arrays import values_of

_ROLES = (
    "Scalars",
    "Vectors",
    "Normals",
    "TCoords",
    "Tensors",
    "GlobalIds",
    "PedigreeIds",
    "EdgeFlag",
    "Tangents",
    "RationalWeights",
    "HigherOrderDegrees",
)
"""What `vtkDataSetAttributes` calls its attributes, by their numbers."""
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
    """Raise UnsupportedError if VTK's own writer of VTKHDF would lose, or rename, a part of a mesh.

    It leaves out arrays without a name, bits, and texts on points and cells, and writes ``a/b`` and
    ``a.b`` as ``a_b``.
    """
    for part, where, name in _parts_of(mesh):
        if name is not None:
            _check_hdf_name(name, where)
        for association, data in _data_of(part):
            arrays_of(data, f"{where}: {association}", texts=association == "field data")


def check_xml(mesh: Any) -> None:
    """Raise UnsupportedError for names that make no XML as VTK writes it, or for arrays of none.

    VTK writes characters that have a meaning in XML as they are; no program reads such a file.
    """
    for part, where, name in _parts_of(mesh):
        names = [(where, name)] if name is not None else []
        for association, data in _data_of(part):
            arrays = (data.GetAbstractArray(index) for index in range(data.GetNumberOfArrays()))
            names += [(f"{where}: {association}: an array", array.GetName()) for array in arrays]
        for what, called in names:
            if not called or any(sign in called for sign in '<>&"\n'):
                raise _core.UnsupportedError(
                    f"{what} is called {called!r}: VTK's XML has no such names, without <, >, & "
                    'and ": rename it, or export to another format'
                )


def _parts_of(mesh: Any, where: str = "the mesh") -> Iterator[tuple[Any, str, str | None]]:
    """Yield an object and the blocks in it, at any depth: what it is, where, and its name."""
    yield mesh, where, None
    for count, get in _COMPOSITES:
        for index in range(getattr(mesh, count)() if hasattr(mesh, get) else 0):
            block, name = getattr(mesh, get)(index), f"{where}: block {index}"
            if mesh.HasMetaData(index) and mesh.GetMetaData(index).Has(vtkCompositeDataSet.NAME()):
                yield None, name, mesh.GetMetaData(index).Get(vtkCompositeDataSet.NAME())
            if block is not None:
                yield from _parts_of(block, name)


def _data_of(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object has arrays on: a word for it, and the arrays."""
    for association, get in _DATA.items():
        data = getattr(part, get)() if hasattr(part, get) else None
        if data is not None:
            yield association, data


def arrays_of(
    data: Any, where: str, *, texts: bool = False
) -> dict[str, tuple[np.ndarray, str | None]]:
    """Return the arrays of points, cells or a whole: values, and as what each is active.

    Raises UnsupportedError for one that VTKHDF cannot hold. With `texts` strings are accepted,
    which it holds in field data only.
    """
    found = {}
    for index in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(index)
        name = array.GetName()
        _check_hdf_name(name, f"{where}: an array")
        values = values_of(array, f"{where} {name}")
        if values.dtype.kind not in ("iufO" if texts else "iuf"):
            what = "texts" if values.dtype.kind == "O" else "bits"
            raise _core.UnsupportedError(
                f"{where}: the array {name!r} is of {what}, which VTKHDF does not keep: leave it "
                "out, or export to another format"
            )
        if name in found:
            raise _core.UnsupportedError(f"{where}: two arrays are called {name!r}: rename one")
        role = data.IsArrayAnAttribute(index) if hasattr(data, "IsArrayAnAttribute") else -1
        found[name] = values, _ROLES[role] if 0 <= role < len(_ROLES) else None
    return found


def _check_hdf_name(name: str | None, what: str) -> None:
    if not name or "/" in name or "." in name:
        raise _core.UnsupportedError(
            f"{what} is called {name!r}: VTKHDF has no such names, without / and .: rename it, or "
            "export to another format"
        )
