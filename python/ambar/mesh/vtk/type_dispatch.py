"""Any VTK object that can be stored, described and built again, by its type."""

from __future__ import annotations

from typing import Any

from vtkmodules.vtkCommonDataModel import vtkDataObject, vtkDataObjectTypes

from ambar import _core
from ambar.mesh.storage.sink import Sink
from ambar.mesh.storage.source import Source
from ambar.mesh.vtk.composites import COMPOSITES, build_composite, describe_composite, unsupported
from ambar.mesh.vtk.decode import build_dataset
from ambar.mesh.vtk.encode import DATASETS, describe_dataset
from ambar.mesh.vtk.trees import TREES, build_trees, describe_trees

_DEEPEST = 30


def describe(mesh: Any, sink: Sink, path: str = "") -> dict[str, Any] | None:
    """Put the arrays of a VTK object into the store, and return its description; None of None.

    Raises
    ------
    ValueError
        If it is no VTK object, or an inconsistent one.
    UnsupportedError
        If it is of a type, or has values, that cannot be stored.
    """
    if mesh is None:
        return None
    if not isinstance(mesh, vtkDataObject):
        raise _core.InvalidError(f"a mesh is a VTK object, not a {type(mesh).__name__}")
    name = vtkDataObjectTypes.GetClassNameFromTypeId(mesh.GetDataObjectType())
    name = name.removeprefix("vtk")
    if name in DATASETS:
        return describe_dataset(mesh, name, sink, path)
    if name in TREES:
        return describe_trees(mesh, name, sink, path)
    if name not in COMPOSITES:
        raise unsupported(mesh)
    if path.count("/") > 2 * _DEEPEST:
        raise _core.UnsupportedError(f"/{path}: blocks in more than {_DEEPEST} others")
    return describe_composite(mesh, name, sink, path, describe)


def build(described: Any, source: Source, what: str = "") -> Any:
    """Return the VTK object that `describe` described; None of None.

    Raises CorruptError if the description, or an array, is not what it must be, UnsupportedError if
    the object is of a type that there is not.
    """
    if described is None:
        return None
    name = described.get("type") if isinstance(described, dict) else None
    if name in DATASETS:
        return build_dataset(described, source, what)
    if name in TREES:
        return build_trees(described, source, what)
    if name in COMPOSITES:
        return build_composite(described, source, what, build)
    raise _core.UnsupportedError(
        f"{source.where}: {what}is of type {name!r:.80}, which this version of ambar does not know"
    )
