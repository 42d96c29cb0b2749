"""Hyper-tree grids: the trees as bits, level by level, and the values in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkBitArray, vtkIdList, vtkTypeInt64Array

from ambar.interop.vtk_arrays import array_of, values_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.extents import point_shape
from ambar.mesh.vtk.decode import axis_of, integers, new, restore_object
from ambar.mesh.vtk.encode import below, describe_axis, describe_object
from ambar.mesh.vtk.fields import describe_fields, restore_fields

TREES = ("HyperTreeGrid",)
"""The types that `describe_trees` supports."""
_NO_LIMIT = 2**32 - 1


def describe_trees(mesh: Any, type_name: str, writer: ArrayWriter, path: str) -> dict[str, Any]:
    """Write the arrays of a hyper-tree grid, and return its description.

    Vertices are renumbered: tree by tree, in breadth-first order. Values and mask have this order.
    """
    described: dict[str, Any] = {
        "type": type_name,
        "extent": [int(value) for value in mesh.GetExtent()],
        "branch_factor": int(mesh.GetBranchFactor()),
        "transposed": bool(mesh.GetTransposedRootIndexing()),
        "depth_limiter": int(mesh.GetDepthLimiter()),
    }
    if point_shape(described["extent"]) is None:
        return described | describe_object(mesh, writer, path)
    if mesh.GetHasInterface():
        described["interface"] = [
            mesh.GetInterfaceNormalsName(),
            mesh.GetInterfaceInterceptsName(),
        ]
    for name in "xyz":
        array = getattr(mesh, f"Get{name.upper()}Coordinates")()
        described[name] = describe_axis(array, writer, below(path, name))
    numbers, lengths, bits, order = _trees_of(mesh)
    where = below(path, "trees")
    described["trees"] = {
        "number": writer.put(f"{where}/number", numbers, role="trees"),
        "bits": writer.put(f"{where}/bits", lengths, role="trees"),
        "refined": writer.put(f"{where}/refined", bits, role="trees"),
    }
    if mesh.HasMask():
        mask = values_of(mesh.GetMask(), where)
        described["mask"] = writer.put(below(path, "mask"), mask[order], role="trees")
    described["cell_data"] = describe_fields(
        mesh.GetCellData(), writer, below(path, "cell_data"), order=order
    )
    return described | describe_object(mesh, writer, path)


def _trees_of(mesh: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of the trees, the number of bits of each, the bits, and the old order."""
    numbers, lengths = [], []
    bits, order, depths = vtkBitArray(), vtkIdList(), vtkTypeInt64Array()
    for number in range(mesh.GetMaxNumberOfTrees()):
        tree = mesh.GetTree(number)
        if tree is None or tree.GetNumberOfVertices() == 0:
            continue
        before = bits.GetNumberOfValues()
        tree.ComputeBreadthFirstOrderDescriptor(_NO_LIMIT, None, depths, bits, order)
        numbers.append(number)
        lengths.append(bits.GetNumberOfValues() - before)
    places = np.array([order.GetId(i) for i in range(order.GetNumberOfIds())], np.int64)
    return (
        np.array(numbers, np.int64),
        np.array(lengths, np.int64),
        values_of(bits, "trees"),
        places,
    )


def build_trees(described: dict[str, Any], reader: ArrayReader, what: str) -> Any:
    """Return the hyper-tree grid of a description.

    Raises CorruptError if the description or the bits of the trees are damaged.
    """
    mesh = new(described["type"])
    mesh.Initialize()
    extent = integers(described.get("extent"), 6, reader, f"{what}extent")
    if point_shape(extent) is None:
        restore_object(mesh, described, reader, what)
        return mesh
    mesh.SetExtent(extent)
    factor = integers([described.get("branch_factor")], 1, reader, f"{what}branch factor")[0]
    if factor not in (2, 3):
        raise reader.damaged(f"{what}branch factor is {factor}, not 2 or 3")
    mesh.SetBranchFactor(factor)
    mesh.SetTransposedRootIndexing(bool(described.get("transposed")))
    limiter = described.get("depth_limiter", _NO_LIMIT)
    if type(limiter) is not int or not 0 <= limiter <= _NO_LIMIT:
        raise reader.damaged(f"{what}depth limiter is {limiter!r:.80}")
    mesh.SetDepthLimiter(limiter)
    cells = mesh.GetDimensions()
    for name, count in zip("xyz", cells, strict=True):
        array = axis_of(described.get(name), reader, f"{what}{name} coordinates")
        if array is None or array.GetNumberOfTuples() != count:
            raise reader.damaged(f"{what}{name} coordinates are not {count}")
        getattr(mesh, f"Set{name.upper()}Coordinates")(array)
    vertices = _build_trees(mesh, described.get("trees"), reader, what)
    if "mask" in described:
        mask = reader.get(described["mask"], f"{what}mask", ndim=(1,), kinds="b")
        if len(mask) != vertices:
            raise reader.damaged(
                f"{what}mask has {len(mask)} values, the trees {vertices} vertices"
            )
        mesh.SetMask(array_of(mask))
    restore_fields(
        mesh.GetCellData(), described.get("cell_data"), reader, f"{what}cell data", tuples=vertices
    )
    names = described.get("interface")
    if isinstance(names, list) and len(names) == 2:
        mesh.SetHasInterface(True)
        mesh.SetInterfaceNormalsName(str(names[0]))
        mesh.SetInterfaceInterceptsName(str(names[1]))
    restore_object(mesh, described, reader, what)
    return mesh


def _build_trees(mesh: Any, trees: Any, reader: ArrayReader, what: str) -> int:
    """Build all trees, and return their number of vertices."""
    if not isinstance(trees, dict):
        raise reader.damaged(f"{what}trees are not described")
    numbers, lengths = (
        reader.get(trees.get(key), f"{what}trees' {key}", ndim=(1,), kinds="i")
        for key in ("number", "bits")
    )
    refined = reader.get(trees.get("refined"), f"{what}trees' bits", ndim=(1,), kinds="b")
    most = mesh.GetMaxNumberOfTrees()
    if (
        len(numbers) != len(lengths)
        or lengths.min(initial=0) < 0
        or lengths.sum() != len(refined)
        or numbers.min(initial=0) < 0
        or numbers.max(initial=0) >= max(most, 1)
        or (np.diff(numbers) < 1).any()
    ):
        raise reader.damaged(f"{what}trees' numbers and bits do not fit")
    children = mesh.GetNumberOfChildren()
    bits = array_of(refined)
    start = vertices = 0
    for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True):
        count = _vertex_count(refined[start : start + length], children)
        if count < 0:
            raise reader.damaged(f"{what}tree {number} has bits for vertices that do not exist")
        tree = mesh.GetTree(number, True)
        tree.BuildFromBreadthFirstOrderDescriptor(bits, length, start)
        tree.SetGlobalIndexStart(vertices)
        start += length
        vertices += count
    return vertices


def _vertex_count(bits: np.ndarray, children: int) -> int:
    """Return the number of vertices of a tree; -1 if its bits do not describe a tree."""
    total = level = 1
    start = 0
    while start < len(bits):
        if start + level > len(bits) or level == 0:
            return -1
        level, start = children * int(bits[start : start + level].sum()), start + level
        total += level
    return total
