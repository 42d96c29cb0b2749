"""Describes and builds VTK objects of every supported type."""

from __future__ import annotations

from typing import Any

from vtkmodules.vtkCommonDataModel import vtkDataObject, vtkDataObjectTypes

from ambar import _core
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.vtk.composites import COMPOSITES, build_composite, describe_composite
from ambar.mesh.vtk.decode import build_dataset
from ambar.mesh.vtk.encode import DATASETS, describe_dataset
from ambar.mesh.vtk.trees import TREES, build_trees, describe_trees

_DEEPEST = 30


def describe(mesh: Any, writer: ArrayWriter, path: str = "") -> dict[str, Any] | None:
    """Write the arrays of a VTK object, and return its description; None for None.

    Raises
    ------
    ValueError
        If it is not a VTK object, or is inconsistent.
    UnsupportedError
        If its type, or the values of an array, cannot be stored.
    """
    if mesh is None:
        return None
    if not isinstance(mesh, vtkDataObject):
        raise _core.InvalidError(f"expected a VTK object, found a {type(mesh).__name__}")
    name = vtkDataObjectTypes.GetClassNameFromTypeId(mesh.GetDataObjectType())
    name = name.removeprefix("vtk")
    if name in DATASETS:
        return describe_dataset(mesh, name, writer, path)
    if name in TREES:
        return describe_trees(mesh, name, writer, path)
    if name not in COMPOSITES:
        raise _core.UnsupportedError(
            f"a {mesh.GetClassName()} cannot be stored; data sets, tables, hyper-tree grids, and "
            "multi-block, partitioned and AMR data can"
        )
    if path.count("/") > 2 * _DEEPEST:
        raise _core.UnsupportedError(f"/{path}: blocks are nested more than {_DEEPEST} levels deep")
    return describe_composite(mesh, name, writer, path, describe)


def build(described: Any, reader: ArrayReader, what: str = "") -> Any:
    """Return the VTK object of a description; None for None.

    Raises CorruptError if the description or an array is damaged, UnsupportedError if the type is
    unknown.
    """
    if described is None:
        return None
    name = described.get("type") if isinstance(described, dict) else None
    if name in DATASETS:
        return build_dataset(described, reader, what)
    if name in TREES:
        return build_trees(described, reader, what)
    if name in COMPOSITES:
        return build_composite(described, reader, what, build)
    raise _core.UnsupportedError(
        f"{reader.where}: {what}has type {name!r:.80}, which this version of ambar does not support"
    )
