"""Composites: multi-block, partitioned and AMR data, described and built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vtkmodules.vtkCommonCore import vtkIndent
from vtkmodules.vtkCommonDataModel import vtkAMRBox, vtkDataAssembly

from ambar import _core
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.description import split_block
from ambar.mesh.vtk.decode import floats, integers, new, restore_object
from ambar.mesh.vtk.encode import below, describe_object
from ambar.mesh.vtk.information import information_of, numbers, restore_information

Describe = Callable[[Any, ArrayWriter, str], dict[str, Any] | None]
Build = Callable[[Any, ArrayReader, str], Any]

_LISTS = {
    "MultiBlockDataSet": ("GetNumberOfBlocks", "GetBlock", "SetNumberOfBlocks", "SetBlock"),
    "MultiPieceDataSet": (
        "GetNumberOfPieces",
        "GetPieceAsDataObject",
        "SetNumberOfPieces",
        "SetPiece",
    ),
    "PartitionedDataSet": (
        "GetNumberOfPartitions",
        "GetPartitionAsDataObject",
        "SetNumberOfPartitions",
        "SetPartition",
    ),
    "PartitionedDataSetCollection": (
        "GetNumberOfPartitionedDataSets",
        "GetPartitionedDataSet",
        "SetNumberOfPartitionedDataSets",
        "SetPartitionedDataSet",
    ),
}
_AMR = ("OverlappingAMR", "NonOverlappingAMR")
COMPOSITES = (*_LISTS, *_AMR)
"""The types of composites."""


def describe_composite(
    mesh: Any, type_name: str, writer: ArrayWriter, path: str, describe: Describe
) -> dict[str, Any]:
    """Write all blocks, and return the description of the composite.

    `describe` writes a block and returns its description.
    """
    described: dict[str, Any] = {"type": type_name}
    if type_name in _AMR:
        described |= _describe_amr(mesh, writer, path, describe)
    else:
        count, get = (getattr(mesh, name) for name in _LISTS[type_name][:2])
        blocks = []
        for index in range(count()):
            block = _describe_block(get(index), writer, below(path, f"blocks/{index}"), describe)
            info = information_of(mesh.GetMetaData(index)) if mesh.HasMetaData(index) else None
            blocks.append({"info": info, "block": block} if info else block)
        described["blocks"] = blocks
    if type_name == "PartitionedDataSetCollection" and mesh.GetDataAssembly() is not None:
        described["assembly"] = mesh.GetDataAssembly().SerializeToXML(vtkIndent())
    return described | describe_object(mesh, writer, path)


def _describe_block(
    block: Any, writer: ArrayWriter, path: str, describe: Describe
) -> dict[str, Any] | None:
    """Return the description of a block; of a block that occurs again the path of the first one."""
    # Nested composites are described each time: readers could not bound the size of shared ones.
    if block is not None and not block.IsA("vtkCompositeDataSet"):
        first = writer.first_path(block, path)
        if first != path:
            return {"same": first}
    return describe(block, writer, path)


def _describe_amr(mesh: Any, writer: ArrayWriter, path: str, describe: Describe) -> dict[str, Any]:
    _check_vtk_version(mesh)
    is_overlapping = mesh.IsA("vtkOverlappingAMR")
    count = mesh.GetNumberOfLevels()
    described: dict[str, Any] = {"levels": []}
    if count:
        described["grid"] = int(mesh.GetGridDescription())
    if count and is_overlapping:
        described["origin"] = numbers(_triple(mesh.GetOverlappingAMRMetaData().GetOrigin))
    for level in range(count):
        about: dict[str, Any] = {"blocks": []}
        if is_overlapping:
            about["spacing"] = numbers(_triple(mesh.GetSpacing, level))
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


def _check_vtk_version(mesh: Any) -> None:
    """Raise UnsupportedError if AMR data are those of VTK before 9.6."""
    if not hasattr(mesh, "GetAMRMetaData"):
        raise _core.UnsupportedError("AMR data need VTK 9.6 or newer: pip install -U vtk")


def _triple(get: Callable[..., Any], *arguments: int) -> list[float]:
    """Return the three numbers that a method of VTK writes into its last argument."""
    values = [0.0, 0.0, 0.0]
    get(*arguments, values)
    return values


def build_composite(described: dict[str, Any], reader: ArrayReader, what: str, build: Build) -> Any:
    """Return the composite of a description; `build` returns the object of a block.

    Raises CorruptError if the description is damaged.
    """
    type_name = described["type"]
    mesh = new(type_name)
    if type_name in _AMR:
        _build_amr(mesh, described, reader, what, build)
    else:
        _build_blocks(mesh, described, reader, what, build)
    if isinstance(described.get("assembly"), str):
        assembly = vtkDataAssembly()
        if not assembly.InitializeFromXML(described["assembly"]):
            raise reader.damaged(f"{what}assembly is not the XML of a vtkDataAssembly")
        mesh.SetDataAssembly(assembly)
    restore_object(mesh, described, reader, what)
    return mesh


def _build_blocks(
    mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str, build: Build
) -> None:
    blocks = described["blocks"]
    resize, put = (getattr(mesh, name) for name in _LISTS[described["type"]][2:])
    resize(len(blocks))
    for index, entry in enumerate(blocks):
        where = f"{what}block {index} "
        block, info = split_block(entry)
        built = reader.objects.get(id(block))
        if built is None:
            built = reader.objects[id(block)] = build(block, reader, where)
        if built is not None:
            put(index, built)
        if info:
            restore_information(mesh.GetMetaData(index), info)


def _build_amr(
    mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str, build: Build
) -> None:
    levels = described["levels"]
    if not levels:
        return
    _check_vtk_version(mesh)
    is_overlapping = described["type"] == "OverlappingAMR"
    mesh.Initialize([len(level["blocks"]) for level in levels])
    mesh.SetGridDescription(integers([described.get("grid")], 1, reader, f"{what}grid")[0])
    if is_overlapping:
        mesh.SetOrigin(floats(described.get("origin"), 3, reader, f"{what}origin"))
    for number, level in enumerate(levels):
        if is_overlapping:
            mesh.SetSpacing(number, floats(level.get("spacing"), 3, reader, f"{what}spacing"))
        for index, entry in enumerate(level["blocks"]):
            where = f"{what}level {number} block {index} "
            if is_overlapping:
                box = integers(entry.get("box"), 6, reader, f"{where}box")
                mesh.SetAMRBox(number, index, vtkAMRBox(*box[::2], *box[1::2]))
            grid = build(entry.get("block"), reader, where)
            if grid is not None:
                mesh.SetDataSet(number, index, grid)
