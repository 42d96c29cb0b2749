"""Hyper-tree grids: the trees as bits, level by level, and the values in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkBitArray, vtkIdList, vtkTypeInt64Array

from ambar.interop.vtk_arrays import array_of, values_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.extents import point_shape
from ambar.mesh.storage.references import Description
from ambar.mesh.vtk.datasets import (
    below,
    build_axes,
    describe_axes,
    describe_object,
    integers,
    new,
    restore_object,
)
from ambar.mesh.vtk.fields import describe_fields, restore_fields

TREES = "HyperTreeGrid"
"""The type that `describe_trees` supports."""
_NO_LIMIT = 2**32 - 1


def describe_trees(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    """Write the arrays of a hyper-tree grid, and return its description.

    Vertices are renumbered: tree by tree, in breadth-first order. Values and mask have this order.
    """
    described: Description = {
        "type": TREES,
        "extent": [int(value) for value in mesh.GetExtent()],
        "branch_factor": int(mesh.GetBranchFactor()),
        "transposed": bool(mesh.GetTransposedRootIndexing()),
        "depth_limiter": int(mesh.GetDepthLimiter()),
        **describe_object(mesh, writer, path),
    }
    if point_shape(described["extent"]) is None:
        return described
    if mesh.GetHasInterface():
        names = mesh.GetInterfaceNormalsName(), mesh.GetInterfaceInterceptsName()
        described["interface"] = [*names]
    described |= describe_axes(mesh, writer, path)
    trees, order = _trees_of(mesh)
    described["trees"] = {
        name: writer.put(below(path, f"trees/{name}"), values, role="trees")
        for name, values in trees.items()
    }
    if mesh.HasMask():
        mask = values_of(mesh.GetMask(), path)[order]
        described["mask"] = writer.put(below(path, "mask"), mask, role="trees")
    where = below(path, "cell_data")
    if fields := describe_fields(mesh.GetCellData(), writer, where, order=order):
        described["cell_data"] = fields
    return described


def _trees_of(mesh: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the numbers of the trees, the number of bits of each, and the bits; the old order."""
    numbers, ends = [], [0]
    bits, order, depths = vtkBitArray(), vtkIdList(), vtkTypeInt64Array()
    for number in range(mesh.GetMaxNumberOfTrees()):
        tree = mesh.GetTree(number)
        if tree is not None and tree.GetNumberOfVertices():
            tree.ComputeBreadthFirstOrderDescriptor(_NO_LIMIT, None, depths, bits, order)
            numbers.append(number)
            ends.append(bits.GetNumberOfValues())
    places = [order.GetId(i) for i in range(order.GetNumberOfIds())]
    trees: dict[str, np.ndarray] = {
        "number": np.array(numbers, np.int64),
        "bits": np.diff(np.array(ends, np.int64)),
        "refined": values_of(bits, "trees"),
    }
    return trees, np.array(places, np.int64)


def build_trees(described: Description, reader: ArrayReader) -> Any:
    """Return the hyper-tree grid of a description.

    Raises CorruptError if the description or the bits of the trees are damaged.
    """
    mesh = new(TREES)
    mesh.Initialize()
    restore_object(mesh, described, reader)
    extent = integers(described.get("extent"), 6, reader, "extent")
    if point_shape(extent) is None:
        return mesh
    mesh.SetExtent(extent)
    factor = described.get("branch_factor")
    if factor not in (2, 3):
        raise reader.damaged(f"branch factor is {factor!r:.80}, not 2 or 3")
    mesh.SetBranchFactor(int(factor))
    mesh.SetTransposedRootIndexing(bool(described.get("transposed")))
    limiter = described.get("depth_limiter", _NO_LIMIT)
    if type(limiter) is not int or not 0 <= limiter <= _NO_LIMIT:
        raise reader.damaged(f"depth limiter is {limiter!r:.80}")
    mesh.SetDepthLimiter(limiter)
    build_axes(mesh, described, reader, mesh.GetDimensions())
    vertices = _build_trees(mesh, described["trees"], reader)
    if "mask" in described:
        mask = reader.get(described["mask"], "mask", ndim=(1,), kinds="b")
        if len(mask) != vertices:
            raise reader.damaged(f"mask has {len(mask)} values, the trees {vertices} vertices")
        mesh.SetMask(array_of(mask))
    fields = described.get("cell_data")
    restore_fields(mesh.GetCellData(), fields, reader, "cell data", tuples=vertices)
    if "interface" in described:
        normals, intercepts = described["interface"]
        mesh.SetHasInterface(True)
        mesh.SetInterfaceNormalsName(str(normals))
        mesh.SetInterfaceInterceptsName(str(intercepts))
    return mesh


def _build_trees(mesh: Any, trees: dict[str, Any], reader: ArrayReader) -> int:
    """Build all trees, and return their number of vertices."""
    numbers, lengths, refined = (
        reader.get(trees.get(key), f"trees' {key}", ndim=(1,), kinds=kinds)
        for key, kinds in (("number", "i"), ("bits", "i"), ("refined", "b"))
    )
    most = max(mesh.GetMaxNumberOfTrees(), 1)
    if (
        len(numbers) != len(lengths)
        or lengths.min(initial=0) < 0
        or lengths.sum() != len(refined)
        or numbers.min(initial=0) < 0
        or numbers.max(initial=0) >= most
        or (np.diff(numbers) < 1).any()
    ):
        raise reader.damaged("trees' numbers and bits do not fit")
    bits = array_of(refined)
    start = vertices = 0
    for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True):
        count = _vertex_count(refined[start : start + length], mesh.GetNumberOfChildren())
        if count < 0:
            raise reader.damaged(f"tree {number} has bits for vertices that do not exist")
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
