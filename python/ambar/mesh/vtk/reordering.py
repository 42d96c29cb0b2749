"""Cells sorted along a Morton curve, points by first use, and the bounds of chunks of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkPoints

from ambar.interop.vtk_arrays import array_of, type_name, values_of
from ambar.mesh.storage.ragged_cells import Ragged, by_first_use
from ambar.mesh.storage.sink import Sink
from ambar.mesh.vtk.cells import (
    cell_array,
    distinct,
    is_fixed,
    is_usual,
    lists_in,
    polyhedron_faces,
    starts_of,
)

_CHUNKS = 1024
_LEAST, _MOST = 2048, 32768
"""Into how many chunks cells are cut, and the fewest and most rows of one."""
_TOGETHER = 8192
"""Cells whose bounds are found together, so that they stay in the cache."""
_BITS = 21
"""Of each coordinate of a centre: three of them make a key of 63."""


@dataclass(frozen=True)
class Reordered:
    """A mesh whose cells and points lie in another order."""

    mesh: Any
    """The VTK object, without arrays on points, cells and the whole."""
    points: np.ndarray
    """The numbers that its points had, int64."""
    cells: np.ndarray
    """The numbers that its cells had, int64."""
    lists: dict[str, Ragged]
    """The corners of its cells, by their names in stores."""
    rows: int
    """How many of these make a chunk, which is read alone; and points."""
    boxes: dict[str, np.ndarray]
    """The bounds of each chunk of cells (chunks, 2, 3), lower and upper corner."""


def reordered(mesh: Any, kinds: dict[str, str], types: np.ndarray | None, path: str) -> Reordered:
    """Return a mesh with its cells along the curve; `kinds` are names in stores, and VTK's.

    Cells of each kind, and those whose centres lie together, keep their order. `types` are those of
    the cells of an unstructured grid.

    Raises ValueError if a corner is not the number of a point, or offsets are invalid.
    """
    points = mesh.GetPoints()
    xyz = np.zeros((0, 3)) if points is None else values_of(points.GetData(), path)
    stored = {name: getattr(mesh, f"Get{vtk_name}")() for name, vtk_name in kinds.items()}
    lists = {
        name: lists_in(cells, f"{path}/{name}".strip("/"), len(xyz))
        for name, cells in stored.items()
        if not is_usual(cells)
    }
    bounds = {name: bounds_of(each, xyz) for name, each in lists.items()}
    orders = {name: curve(each) for name, each in bounds.items()}
    rows = min(max(sum(map(len, lists.values())) // _CHUNKS, _LEAST), _MOST)
    boxes = {name: _joined(each[orders[name]], rows) for name, each in bounds.items()}
    lists = {name: each.take(orders[name]) for name, each in lists.items()}
    of_cells = faces = None
    if types is not None and polyhedron_faces(mesh, path) is not None and "cells" in lists:
        of_cells, faces = _faces(mesh, orders["cells"], len(xyz), path)
    numbers = [each.values for each in (*lists.values(), *([] if faces is None else [faces]))]
    order, place = by_first_use(np.concatenate([np.zeros(0, np.int64), *numbers]), len(xyz))
    lists = {name: each.numbered(place[each.values]) for name, each in lists.items()}
    made = mesh.NewInstance()
    if points is not None:
        made.SetPoints(_points(points, xyz[order]))
    arrays = {name: cell_array(each, fixed=is_fixed(stored[name])) for name, each in lists.items()}
    if types is None:
        for name, array in arrays.items():
            getattr(made, f"Set{kinds[name]}")(array)
    elif arrays:
        kept = (None, None)
        if of_cells is not None and faces is not None:
            kept = (cell_array(of_cells), cell_array(faces.numbered(place[faces.values])))
        made.SetPolyhedralCells(array_of(types[orders["cells"]]), arrays["cells"], *kept)
    base, numbers = 0, [np.zeros(0, np.int64)]
    for name, each in lists.items():
        numbers.append(orders[name] + base)
        base += len(each)
    return Reordered(made, order, np.concatenate(numbers), lists, rows, boxes)


def _points(points: Any, xyz: np.ndarray) -> Any:
    """Return a vtkPoints of coordinates in another order."""
    old, made = points.GetData(), vtkPoints()
    array = array_of(xyz, type_name(old, xyz))
    array.SetName(old.GetName())
    made.SetData(array)
    return made


def _faces(mesh: Any, order: np.ndarray, points: int, path: str) -> tuple[Ragged, Ragged]:
    """Return the numbers of the faces of cells in their new order, and the faces by first use."""
    stored = mesh.GetPolyhedronFaces()
    faces = lists_in(stored, f"{path}/faces".strip("/"), points)
    of_cells = lists_in(
        mesh.GetPolyhedronFaceLocations(),
        f"{path}/cell_faces".strip("/"),
        stored.GetNumberOfCells(),
        "face",
    ).take(order)
    numbers, place = by_first_use(of_cells.values, len(faces))
    return of_cells.numbered(place[of_cells.values]), faces.take(numbers)


def bounds_of(lists: Ragged, xyz: np.ndarray) -> np.ndarray:
    """Return the bounds of cells (cells, 2, 3); NaN counts for nothing, and is those of none."""
    bounds = np.empty((len(lists), 2, 3), np.result_type(xyz.dtype, np.float32))
    with_nan = bool(np.isnan(xyz).any())
    reach = (np.fmin, np.fmax) if with_nan else (np.minimum, np.maximum)
    if not lists.size:
        corners = xyz[lists.values].astype(bounds.dtype)
        for side, ufunc in enumerate(reach):
            bounds[:, side] = lists.reduce(ufunc, corners)
        bounds[lists.sizes == 0] = np.nan
        return bounds
    for start in range(0, len(lists), _TOGETHER):
        columns = lists.table[start : start + _TOGETHER].T
        for side, ufunc in enumerate(reach):
            found = xyz[columns[0]]
            for column in columns[1:]:
                ufunc(found, xyz[column], out=found)
            bounds[start : start + _TOGETHER, side] = found
    return bounds


def _joined(bounds: np.ndarray, rows: int) -> np.ndarray:
    """Return the bounds of each chunk of so many cells (chunks, 2, 3)."""
    first = np.arange(0, len(bounds), rows)
    joined = np.zeros((len(first), 2, 3))
    if len(first):
        joined[:, 0] = np.fmin.reduceat(bounds[:, 0], first)
        joined[:, 1] = np.fmax.reduceat(bounds[:, 1], first)
    return joined


def curve(bounds: np.ndarray) -> np.ndarray:
    """Return the order of cells by the places of their centres, of `bounds`, on a Morton curve.

    The key takes the bits of the three coordinates by turns, x lowest, in units of 2^-21 of the
    largest side of the box around all centres. Cells of one key keep their order, and those
    whose centre is not finite have that of the first one that is.
    """
    middles = []
    for axis in range(3):
        with np.errstate(over="ignore", invalid="ignore"):
            middle = bounds[:, 0, axis].astype(np.float64) / 2
            middle += bounds[:, 1, axis].astype(np.float64) / 2
        middles.append(middle)
    finite = np.isfinite(middles[0]) & np.isfinite(middles[1]) & np.isfinite(middles[2])
    if not finite.any():
        return np.arange(len(bounds))
    if not finite.all():
        middles = [np.where(finite, middle, middle[finite.argmax()]) for middle in middles]
    low = [middle.min() for middle in middles]
    with np.errstate(over="ignore"):
        side = max(float(middle.max() - start) for middle, start in zip(middles, low, strict=True))
    scale = (2**_BITS - 1) / side if 0 < side < np.inf else 0.0
    key = np.zeros(len(bounds), np.uint64)
    for axis, (middle, start) in enumerate(zip(middles, low, strict=True)):
        if scale:
            steps = ((middle - start) * scale).astype(np.uint64)
            key |= _spread(steps) << np.uint64(axis)
    order: np.ndarray = np.argsort(key, kind="stable")
    return order


def _spread(values: np.ndarray) -> np.ndarray:
    """Return whole numbers of 21 bits with two zeros behind each bit."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        values |= values << np.uint64(shift)
        values &= np.uint64(mask)
    return values


def describe_order(
    found: Reordered, described: dict[str, Any], sink: Sink, path: str
) -> dict[str, Any]:
    """Put the index and the order into the store; return the keys that describe them.

    `described` describes the cells already.
    """
    index: dict[str, Any] = {"rows": found.rows}
    for name, lists in found.lists.items():
        first = np.arange(0, len(lists), found.rows)
        where = f"{path}/index/{name}".strip("/")
        index[name] = {"box": sink.put(f"{where}/box", found.boxes[name], role="index")}
        if "sizes" in described[name]:
            widths = None if "corners" in described[name] else distinct(lists.sizes)
            starts = starts_of(lists.sizes, first, widths)
            index[name]["start"] = sink.put(f"{where}/start", starts, role="index")
    order = {
        name: sink.put(f"{path}/order/{name}".strip("/"), _small(numbers), role="order")
        for name, numbers in (("points", found.points), ("cells", found.cells))
    }
    return {"index": index, "order": order}


def _small(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int32) if len(numbers) < 2**31 else numbers
