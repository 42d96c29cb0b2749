"""Cells sorted along a Morton curve, points by first use, and the bounds of chunks of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar._util.morton import morton_keys
from ambar.interop.vtk_arrays import array_of, values_of
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.connectivity import Connectivity, order_by_first_use
from ambar.mesh.storage.extents import POLY_CELLS
from ambar.mesh.storage.references import Description
from ambar.mesh.vtk.cells import (
    cell_array,
    connectivity_of,
    distinct_sizes,
    is_fixed,
    is_new,
    polyhedron_faces,
    starts_of,
    types_of,
)
from ambar.mesh.vtk.fields import about_array, vtk_points

_CHUNKS = 1024
_MIN_ROWS, _MAX_ROWS = 2048, 32768
"""The number of chunks of cells, and the smallest and largest number of cells in one."""
_BLOCK = 8192
"""Number of cells whose bounds are computed in one step, so that they stay in the cache."""
_BITS = 21
"""Bits of each coordinate of a center in the Morton key of 63 bits."""


@dataclass(frozen=True)
class ReorderedMesh:
    """A mesh with sorted cells and points."""

    mesh: Any
    """The VTK object, without arrays on points and cells and without field data."""
    points: np.ndarray
    """The original ids of its points, int64."""
    cells: np.ndarray
    """The original ids of its cells, int64."""
    connectivity: dict[str, Connectivity]
    """The connectivity of its cells, by the keys of descriptions."""
    rows: int
    """The number of cells or points in a chunk, which is read alone."""
    boxes: dict[str, np.ndarray]
    """The bounds of each chunk of cells (chunks, 2, 3), lower and upper corner."""


def reorder_cells(mesh: Any, path: str) -> ReorderedMesh:
    """Return a mesh with its cells sorted along a Morton curve.

    The cells of each kind are sorted separately. The sort is stable.

    Parameters
    ----------
    mesh : vtkPolyData or vtkUnstructuredGrid
        The mesh.
    path : str
        The path of the mesh, for messages.

    Raises
    ------
    ValueError
        If an id is not that of a point, or offsets are invalid.
    """
    kinds = POLY_CELLS if mesh.IsA("vtkPolyData") else {"cells": "Cells"}
    points = mesh.GetPoints()
    xyz = np.zeros((0, 3)) if points is None else values_of(points.GetData(), path)
    arrays = {name: getattr(mesh, f"Get{vtk_name}")() for name, vtk_name in kinds.items()}
    arrays = {name: array for name, array in arrays.items() if not is_new(array)}
    connectivity, boxes, numbers, base = {}, {}, [np.zeros(0, np.int64)], 0
    count = sum(array.GetNumberOfCells() for array in arrays.values())
    rows = min(max(count // _CHUNKS, _MIN_ROWS), _MAX_ROWS)
    for name, array in arrays.items():
        cells = connectivity_of(array, f"{path}/{name}".strip("/"), len(xyz))
        bounds = bounds_of_cells(cells, xyz)
        order = morton_order(bounds)
        connectivity[name] = cells.take(order)
        boxes[name] = _bounds_of_chunks(bounds[order], rows)
        numbers.append(order + base)
        base += len(cells)
    ids = [cells.ids for cells in connectivity.values()]
    faces = of_cells = None
    if "cells" in arrays and polyhedron_faces(mesh):
        of_cells, faces = _reorder_faces(mesh, numbers[-1], len(xyz), path)
        ids.append(faces.ids)
    order, new = order_by_first_use(np.concatenate([np.zeros(0, np.int64), *ids]), len(xyz))
    made = mesh.NewInstance()
    if points is not None:
        about = about_array(points.GetData(), xyz, "Points")
        made.SetPoints(vtk_points(xyz[order], about))
    for name, cells in connectivity.items():
        connectivity[name] = cells.with_ids(new[cells.ids])
        array = cell_array(connectivity[name], fixed=is_fixed(arrays[name]))
        if name != "cells":
            getattr(made, f"Set{kinds[name]}")(array)
            continue
        polyhedra = (None, None)
        if of_cells is not None and faces is not None:
            polyhedra = cell_array(of_cells), cell_array(faces.with_ids(new[faces.ids]))
        types = types_of(mesh, path)[numbers[-1]]
        # SetCells would search all cells for polyhedra.
        made.SetPolyhedralCells(array_of(types), array, *polyhedra)
    return ReorderedMesh(made, order, np.concatenate(numbers), connectivity, rows, boxes)


def _reorder_faces(
    mesh: Any, order: np.ndarray, points: int, path: str
) -> tuple[Connectivity, Connectivity]:
    """Return the face ids of cells in their new order, and the faces by first use."""
    faces = connectivity_of(mesh.GetPolyhedronFaces(), f"{path}/faces".strip("/"), points)
    array, where = mesh.GetPolyhedronFaceLocations(), f"{path}/cell_faces".strip("/")
    of_cells = connectivity_of(array, where, len(faces), "face").take(order)
    face_order, new = order_by_first_use(of_cells.ids, len(faces))
    return of_cells.with_ids(new[of_cells.ids]), faces.take(face_order)


def bounds_of_cells(cells: Connectivity, xyz: np.ndarray) -> np.ndarray:
    """Return the bounds of cells (cells, 2, 3), ignoring NaN; NaN for cells without points."""
    bounds = np.empty((len(cells), 2, 3), np.result_type(xyz.dtype, np.float32))
    with_nan = bool(np.isnan(xyz).any())
    ufuncs = (np.fmin, np.fmax) if with_nan else (np.minimum, np.maximum)
    if not cells.size:
        corners = xyz[cells.ids].astype(bounds.dtype, copy=False)
        for side, ufunc in enumerate(ufuncs):
            bounds[:, side] = cells.reduce(ufunc, corners)
        bounds[cells.sizes == 0] = np.nan
        return bounds
    for start in range(0, len(cells), _BLOCK):
        columns = cells.table[start : start + _BLOCK].T
        for side, ufunc in enumerate(ufuncs):
            found = xyz[columns[0]]
            for column in columns[1:]:
                ufunc(found, xyz[column], out=found)
            bounds[start : start + _BLOCK, side] = found
    return bounds


def _bounds_of_chunks(bounds: np.ndarray, rows: int) -> np.ndarray:
    """Return the bounds of each chunk of `rows` cells (chunks, 2, 3)."""
    first = np.arange(0, len(bounds), rows)
    boxes = np.zeros((len(first), 2, 3))
    if len(first):
        boxes[:, 0] = np.fmin.reduceat(bounds[:, 0], first)
        boxes[:, 1] = np.fmax.reduceat(bounds[:, 1], first)
    return boxes


def morton_order(bounds: np.ndarray) -> np.ndarray:
    """Return the order of cells by the places of the centers of their bounds on a Morton curve.

    The key interleaves the bits of the three coordinates, x lowest, in units of 2^-21 of the
    longest side of the box around all centers. The sort is stable. A center that is not finite is
    replaced by the first one that is.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centers = bounds[:, 0].T.astype(np.float64, order="C") / 2
        centers += bounds[:, 1].T.astype(np.float64, order="C") / 2
    finite = np.isfinite(centers).all(axis=0)
    if not finite.any():
        return np.arange(len(bounds))
    if not finite.all():
        centers = np.where(finite, centers, centers[:, [finite.argmax()]])
    low = centers.min(axis=1)
    with np.errstate(over="ignore"):
        side = float((centers.max(axis=1) - low).max())
    if not 0 < side < np.inf:
        return np.arange(len(bounds))
    steps = ((centers - low[:, None]) * ((2**_BITS - 1) / side)).astype(np.int64)
    order: np.ndarray = np.argsort(morton_keys(steps), kind="stable")
    return order


def describe_order(
    reordered: ReorderedMesh, described: Description, writer: ArrayWriter, path: str
) -> Description:
    """Write the index and the order; return the keys that describe them.

    `described` has the description of the cells.
    """
    index: dict[str, Any] = {"rows": reordered.rows}
    for name, cells in reordered.connectivity.items():
        first = np.arange(0, len(cells), reordered.rows)
        where = f"{path}/index/{name}".strip("/")
        index[name] = {"box": writer.put(f"{where}/box", reordered.boxes[name], role="index")}
        if "sizes" in described[name]:
            widths = None if "corners" in described[name] else distinct_sizes(cells.sizes)
            starts = starts_of(cells.sizes, first, widths)
            index[name]["start"] = writer.put(f"{where}/start", starts, role="index")
    order = {}
    for name, ids in (("points", reordered.points), ("cells", reordered.cells)):
        small = ids.astype(np.int32) if len(ids) < 2**31 else ids
        order[name] = writer.put(f"{path}/order/{name}".strip("/"), small, role="order")
    return {"index": index, "order": order}
