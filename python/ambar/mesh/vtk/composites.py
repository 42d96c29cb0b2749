"""Objects made of other objects: multi-block, partitioned, and AMR data, described and built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vtkmodules.vtkCommonCore import vtkIndent
from vtkmodules.vtkCommonDataModel import vtkAMRBox, vtkDataAssembly

from ambar import _core
from ambar.mesh.storage.sink import Sink
from ambar.mesh.storage.source import Source
from ambar.mesh.vtk.decode import floats, new, restore_object, whole_numbers
from ambar.mesh.vtk.encode import below, describe_object
from ambar.mesh.vtk.information import information_of, numbers, restore_information

Describe = Callable[[Any, Sink, str], dict[str, Any] | None]
Build = Callable[[Any, Source, str], Any]

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
"""The types of objects made of others."""
_MOST_BLOCKS = 1 << 24


def describe_composite(
    mesh: Any, type_name: str, sink: Sink, path: str, describe: Describe
) -> dict[str, Any]:
    """Put all blocks into the store, and return the description of the whole.

    `describe` describes a block; it returns None for None.
    """
    described: dict[str, Any] = {"type": type_name}
    if type_name in _AMR:
        described |= _describe_amr(mesh, sink, path, describe)
    else:
        count, get = (getattr(mesh, name) for name in _LISTS[type_name][:2])
        blocks = []
        for index in range(count()):
            block = _describe_block(get(index), sink, below(path, f"blocks/{index}"), describe)
            info = information_of(mesh.GetMetaData(index)) if mesh.HasMetaData(index) else None
            blocks.append({"info": info, "block": block} if info else block)
        described["blocks"] = blocks
    if type_name == "PartitionedDataSetCollection" and mesh.GetDataAssembly() is not None:
        described["assembly"] = mesh.GetDataAssembly().SerializeToXML(vtkIndent())
    return described | describe_object(mesh, sink, path)


def _describe_block(block: Any, sink: Sink, path: str, describe: Describe) -> dict[str, Any] | None:
    """Return the description of a block, of one that was described before where that is."""
    # Objects of others are described each time: shared in turn, they would multiply in readers.
    if block is not None and not block.IsA("vtkCompositeDataSet"):
        first = sink.block_at(block, path)
        if first != path:
            return {"same": first}
    return describe(block, sink, path)


def _describe_amr(mesh: Any, sink: Sink, path: str, describe: Describe) -> dict[str, Any]:
    _check_amr(mesh)
    overlapping = mesh.IsA("vtkOverlappingAMR")
    count = mesh.GetNumberOfLevels()
    described: dict[str, Any] = {"levels": []}
    if count:
        described["grid"] = int(mesh.GetGridDescription())
    if count and overlapping:
        described["origin"] = numbers(_triple(mesh.GetOverlappingAMRMetaData().GetOrigin))
    for level in range(count):
        about: dict[str, Any] = {"blocks": []}
        if overlapping:
            about["spacing"] = numbers(_triple(mesh.GetSpacing, level))
        for index in range(mesh.GetNumberOfBlocks(level)):
            block = mesh.GetDataSetAsCartesianGrid(level, index)
            where = below(path, f"levels/{level}/{index}")
            entry: dict[str, Any] = {"block": describe(block, sink, where)}
            if overlapping:
                entry["box"] = [0] * 6
                mesh.GetAMRBox(level, index).GetDimensions(entry["box"])
            about["blocks"].append(entry)
        described["levels"].append(about)
    return described


def _check_amr(mesh: Any) -> None:
    """Raise UnsupportedError where AMR data are those of an older VTK."""
    if not hasattr(mesh, "GetAMRMetaData"):
        raise _core.UnsupportedError("AMR data need VTK 9.6 or newer: pip install -U vtk")


def _triple(get: Callable[..., Any], *arguments: int) -> list[float]:
    """Return the three numbers that a method of VTK writes into its last argument."""
    values = [0.0, 0.0, 0.0]
    get(*arguments, values)
    return values


def build_composite(described: dict[str, Any], source: Source, what: str, build: Build) -> Any:
    """Return the object that `describe_composite` described; `build` builds a block.

    Raises CorruptError if the description is not what it must be.
    """
    type_name = described["type"]
    mesh = new(type_name)
    if type_name in _AMR:
        _build_amr(mesh, described, source, what, build)
    else:
        blocks = described.get("blocks")
        if not isinstance(blocks, list) or len(blocks) > _MOST_BLOCKS:
            raise source.damaged(f"{what}blocks are no list")
        resize, put = (getattr(mesh, name) for name in _LISTS[type_name][2:])
        resize(len(blocks))
        for index, entry in enumerate(blocks):
            where = f"{what}block {index} "
            block, info = block_of(entry)
            built = source.objects.get(id(block))
            if built is None:
                built = build(block, source, where)
                source.objects[id(block)] = built
            if built is not None:
                _put(put, index, built, source, where)
            if info:
                restore_information(mesh.GetMetaData(index), info)
    if isinstance(described.get("assembly"), str):
        assembly = vtkDataAssembly()
        if not assembly.InitializeFromXML(described["assembly"]):
            raise source.damaged(f"{what}assembly is none")
        mesh.SetDataAssembly(assembly)
    restore_object(mesh, described, source, what)
    return mesh


def _put(put: Any, index: int, built: Any, source: Source, where: str) -> None:
    try:
        put(index, built)
    except TypeError:
        kind = built.GetClassName()
        raise source.damaged(f"{where}is a {kind}, which does not belong there") from None


def block_of(entry: Any) -> tuple[Any, Any]:
    """Return a block's description and its information."""
    if isinstance(entry, dict) and "block" in entry:
        return entry["block"], entry.get("info")
    return entry, None


def _build_amr(
    mesh: Any, described: dict[str, Any], source: Source, what: str, build: Build
) -> None:
    levels = described.get("levels")
    if not isinstance(levels, list) or not all(
        isinstance(level, dict) and isinstance(level.get("blocks"), list) for level in levels
    ):
        raise source.damaged(f"{what}levels are no lists of blocks")
    if not levels:
        return
    _check_amr(mesh)
    overlapping = described["type"] == "OverlappingAMR"
    mesh.Initialize([len(level["blocks"]) for level in levels])
    mesh.SetGridDescription(whole_numbers([described.get("grid")], 1, source, f"{what}grid")[0])
    if overlapping:
        mesh.SetOrigin(floats(described.get("origin"), 3, source, f"{what}origin"))
    for number, level in enumerate(levels):
        if overlapping:
            mesh.SetSpacing(number, floats(level.get("spacing"), 3, source, f"{what}spacing"))
        for index, entry in enumerate(level["blocks"]):
            where = f"{what}level {number} block {index} "
            if not isinstance(entry, dict):
                raise source.damaged(f"{where}is not described")
            if overlapping:
                _set_box(mesh, number, index, entry, source, where)
            _set_grid(mesh, number, index, build(entry.get("block"), source, where), source, where)


def _set_grid(mesh: Any, level: int, index: int, built: Any, source: Source, where: str) -> None:
    if built is None:
        return
    if not built.IsA("vtkCartesianGrid"):
        raise source.damaged(f"{where}is a {built.GetClassName()}, and no regular grid")
    mesh.SetDataSet(level, index, built)


def _set_box(
    mesh: Any, level: int, index: int, entry: dict[str, Any], source: Source, where: str
) -> None:
    box = whole_numbers(entry.get("box"), 6, source, f"{where}box")
    mesh.SetAMRBox(level, index, vtkAMRBox(*box[::2], *box[1::2]))


def unsupported(mesh: Any) -> _core.UnsupportedError:
    """Return the error for an object that is none of those that can be stored."""
    return _core.UnsupportedError(
        f"a {mesh.GetClassName()} cannot be stored as a mesh; data sets, tables, hyper-tree grids, "
        "and multi-block, partitioned and AMR data can"
    )
