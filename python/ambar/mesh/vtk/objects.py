"""VTK objects of every supported type, described and built: data sets, multi-block, partitioned."""

from __future__ import annotations

from typing import Any

from vtkmodules.vtkCommonCore import vtkIndent
from vtkmodules.vtkCommonDataModel import vtkDataAssembly, vtkDataObject, vtkDataObjectTypes

from ambar import _core
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.description import split_block
from ambar.mesh.storage.references import Description
from ambar.mesh.vtk.datasets import (
    DATASETS,
    below,
    build_dataset,
    describe_dataset,
    describe_object,
    new,
    restore_object,
)
from ambar.mesh.vtk.fields import information_of, restore_information

_DEEPEST = 30
_LISTS = {
    "MultiBlockDataSet": ("Blocks", "Block", "Block"),
    "MultiPieceDataSet": ("Pieces", "PieceAsDataObject", "Piece"),
    "PartitionedDataSet": ("Partitions", "PartitionAsDataObject", "Partition"),
    "PartitionedDataSetCollection": ("PartitionedDataSets", *["PartitionedDataSet"] * 2),
}
"""The names of the number of blocks, of a block to get, and of a block to set, in VTK's methods."""


def describe(mesh: Any, writer: ArrayWriter, path: str = "") -> Description | None:
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
    name = type_of(mesh)
    if name in DATASETS:
        return describe_dataset(mesh, name, writer, path)
    if name not in _LISTS:
        raise _core.UnsupportedError(
            f"a {mesh.GetClassName()} cannot be stored; expected a data set, a table, multi-block "
            "or partitioned data; convert it to one of them"
        )
    if path.count("/") > 2 * _DEEPEST:
        raise _core.UnsupportedError(f"/{path}: blocks are nested more than {_DEEPEST} levels deep")
    described = {"type": name, **_describe_blocks(mesh, writer, path)}
    if name == "PartitionedDataSetCollection" and mesh.GetDataAssembly() is not None:
        described["assembly"] = mesh.GetDataAssembly().SerializeToXML(vtkIndent())
    return described | describe_object(mesh, writer, path)


def type_of(mesh: Any) -> str:
    """Return the type of a VTK or PyVista object, without the prefix vtk."""
    name = vtkDataObjectTypes.GetClassNameFromTypeId(mesh.GetDataObjectType())
    return str(name).removeprefix("vtk")


def build(described: Any, reader: ArrayReader) -> Any:
    """Return the VTK object of a description; None for None.

    Raises CorruptError if the description or an array is damaged, UnsupportedError if the type is
    unknown.
    """
    if described is None:
        return None
    name = described.get("type") if isinstance(described, dict) else None
    if name in DATASETS:
        return build_dataset(described, reader)
    if name not in _LISTS:
        raise _core.UnsupportedError(
            f"{reader.where}: it has type {name!r:.80}, which this version of ambar does not "
            "support"
        )
    mesh = new(str(name))
    _build_blocks(mesh, described, reader)
    if isinstance(described.get("assembly"), str):
        assembly = vtkDataAssembly()
        if not assembly.InitializeFromXML(described["assembly"]):
            raise reader.damaged("assembly is not the XML of a vtkDataAssembly")
        mesh.SetDataAssembly(assembly)
    restore_object(mesh, described, reader)
    return mesh


def _describe_blocks(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    count, get, _ = _LISTS[type_of(mesh)]
    blocks = []
    for index in range(getattr(mesh, f"GetNumberOf{count}")()):
        part = getattr(mesh, f"Get{get}")(index)
        where = first = below(path, f"blocks/{index}")
        # Nested composites are described each time: readers could not bound the size of shared
        # ones.
        if part is not None and not part.IsA("vtkCompositeDataSet"):
            first = writer.first_path(part, where)
        block = describe(part, writer, where) if first == where else {"same": first}
        info = information_of(mesh.GetMetaData(index)) if mesh.HasMetaData(index) else None
        blocks.append({"info": info, "block": block} if info else block)
    return {"blocks": blocks}


def _build_blocks(mesh: Any, described: Description, reader: ArrayReader) -> None:
    count, _, put = _LISTS[described["type"]]
    getattr(mesh, f"SetNumberOf{count}")(len(described["blocks"]))
    for index, entry in enumerate(described["blocks"]):
        block, info = split_block(entry)
        if id(block) not in reader.objects:
            with reader.within(f"block {index}"):
                reader.objects[id(block)] = build(block, reader)
        if (built := reader.objects[id(block)]) is not None:
            getattr(mesh, f"Set{put}")(index, built)
        if info:
            restore_information(mesh.GetMetaData(index), info)
