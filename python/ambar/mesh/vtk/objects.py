"""VTK objects of every supported type, described and built; multi-block, partitioned and AMR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vtkmodules.vtkCommonCore import vtkIndent
from vtkmodules.vtkCommonDataModel import (
    vtkAMRBox,
    vtkDataAssembly,
    vtkDataObject,
    vtkDataObjectTypes,
)

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
    floats,
    integers,
    new,
    restore_object,
)
from ambar.mesh.vtk.information import information_of, numbers, restore_information
from ambar.mesh.vtk.trees import TREES, build_trees, describe_trees

_DEEPEST = 30
_LISTS = {
    "MultiBlockDataSet": ("Blocks", "Block", "Block"),
    "MultiPieceDataSet": ("Pieces", "PieceAsDataObject", "Piece"),
    "PartitionedDataSet": ("Partitions", "PartitionAsDataObject", "Partition"),
    "PartitionedDataSetCollection": ("PartitionedDataSets", *["PartitionedDataSet"] * 2),
}
"""The names of the number of blocks, of a block to get, and of a block to set, in VTK's methods."""
_AMR = ("OverlappingAMR", "NonOverlappingAMR")


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
    if name == TREES:
        return describe_trees(mesh, writer, path)
    if name not in (*_LISTS, *_AMR):
        raise _core.UnsupportedError(
            f"a {mesh.GetClassName()} cannot be stored; data sets, tables, hyper-tree grids, and "
            "multi-block, partitioned and AMR data can"
        )
    if path.count("/") > 2 * _DEEPEST:
        raise _core.UnsupportedError(f"/{path}: blocks are nested more than {_DEEPEST} levels deep")
    blocks = _describe_amr if name in _AMR else _describe_blocks
    described = {"type": name, **blocks(mesh, writer, path)}
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
    if name == TREES:
        return build_trees(described, reader)
    if name not in (*_LISTS, *_AMR):
        raise _core.UnsupportedError(
            f"{reader.where}: it has type {name!r:.80}, which this version of ambar does not "
            "support"
        )
    mesh = new(str(name))
    blocks = _build_amr if name in _AMR else _build_blocks
    blocks(mesh, described, reader)
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


def _describe_amr(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    _check_vtk_version(mesh)
    is_overlapping = mesh.IsA("vtkOverlappingAMR")
    described: Description = {"levels": []}
    if mesh.GetNumberOfLevels():
        described["grid"] = int(mesh.GetGridDescription())
        if is_overlapping:
            described["origin"] = _triple(mesh.GetOverlappingAMRMetaData().GetOrigin)
    for level in range(mesh.GetNumberOfLevels()):
        about: dict[str, Any] = {"blocks": []}
        if is_overlapping:
            about["spacing"] = _triple(mesh.GetSpacing, level)
        for index in range(mesh.GetNumberOfBlocks(level)):
            block = mesh.GetDataSetAsCartesianGrid(level, index)
            where = below(path, f"levels/{level}/{index}")
            entry: dict[str, Any] = {"block": describe(block, writer, where)}
            if is_overlapping:
                entry["box"] = [0] * 6
                mesh.GetAMRBox(level, index).GetDimensions(entry["box"])
            about["blocks"].append(entry)
        described["levels"].append(about)
    return described


def _build_amr(mesh: Any, described: Description, reader: ArrayReader) -> None:
    levels = described["levels"]
    if not levels:
        return
    _check_vtk_version(mesh)
    is_overlapping = described["type"] == "OverlappingAMR"
    mesh.Initialize([len(level["blocks"]) for level in levels])
    mesh.SetGridDescription(integers([described.get("grid")], 1, reader, "grid")[0])
    if is_overlapping:
        mesh.SetOrigin(floats(described.get("origin"), 3, reader, "origin"))
    for number, level in enumerate(levels):
        if is_overlapping:
            mesh.SetSpacing(number, floats(level.get("spacing"), 3, reader, "spacing"))
        for index, entry in enumerate(level["blocks"]):
            with reader.within(f"level {number} block {index}"):
                if is_overlapping:
                    box = integers(entry.get("box"), 6, reader, "box")
                    mesh.SetAMRBox(number, index, vtkAMRBox(*box[::2], *box[1::2]))
                if (grid := build(entry.get("block"), reader)) is not None:
                    mesh.SetDataSet(number, index, grid)


def _check_vtk_version(mesh: Any) -> None:
    """Raise UnsupportedError if AMR data are those of VTK before 9.6."""
    if not hasattr(mesh, "GetAMRMetaData"):
        raise _core.UnsupportedError("AMR data need VTK 9.6 or newer: pip install -U vtk")


def _triple(get: Callable[..., Any], *arguments: int) -> list[float | str]:
    """Return the three numbers that a method of VTK writes into its last argument."""
    values = [0.0, 0.0, 0.0]
    get(*arguments, values)
    return numbers(values)
