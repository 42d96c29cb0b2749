"""The part of a grid that overlaps a box: the smallest extent around the overlapping cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.select.region_cells import Extract, no_tuples
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_references import Key, in_memory
from ambar.mesh.storage.extents import cell_shape, lattice_points, point_shape
from ambar.mesh.vtk.decode import extent_of, floats

_CELL_TYPES = {1: 1, 2: 3, 4: 9, 8: 12}
"""VTK's types of cells (vertex, line, quadrilateral, hexahedron) by their numbers of corners."""
_EMPTY = [0, -1, 0, -1, 0, -1]
_IDENTITY = [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]
_MOST_POINTS = 1 << 27
"""The largest number of points along an axis of an image."""
Span = tuple[int, int]
"""The first and the last point along an axis."""


def extract_image(
    described: dict[str, Any], reader: ArrayReader, overlap: BoxOverlap, what: str
) -> Extract:
    """Return the part of an image; an extent around it, if its axes are not those of the box."""
    extent = extent_of(described, reader, what)
    origin = floats(described.get("origin"), 3, reader, f"{what}origin")
    spacing = floats(described.get("spacing"), 3, reader, f"{what}spacing")
    direction = floats(described.get("direction", _IDENTITY), 9, reader, f"{what}direction")
    shape = point_shape(extent)
    if shape is None:
        return _extract(extent, None)
    if max(shape) > _MOST_POINTS:
        raise reader.damaged(f"{what}extent {extent} has too many points along an axis")
    with np.errstate(over="ignore"):
        axes = np.array(direction).reshape(3, 3) * spacing
    coordinate_of = np.abs(direction).reshape(3, 3).argmax(axis=0)
    if sorted(np.abs(direction)) == sorted(_IDENTITY) and len(set(coordinate_of)) == 3:
        spans = []
        for axis, c in enumerate(coordinate_of):
            first, last = extent[2 * axis : 2 * axis + 2]
            values = origin[c] + np.arange(first, last + 1) * axes[c, axis]
            spans.append(_axis_span(values, overlap.lo[c], overlap.hi[c], first))
    else:
        spans = _oblique_spans(extent, np.array(origin), axes, overlap)
    return _extract(extent, spans)


def _axis_span(values: np.ndarray, lo: float, hi: float, first: int) -> Span | None:
    """Return the span of the overlapping cells between coordinates along an axis."""
    sides = np.stack([values >= lo, values <= hi])
    of_cells = sides if len(values) == 1 else sides[:, :-1] | sides[:, 1:]
    return _span_of(of_cells.all(axis=0), first, len(values) > 1)


def _oblique_spans(
    extent: list[int], origin: np.ndarray, axes: np.ndarray, overlap: BoxOverlap
) -> list[Span | None]:
    """Return spans around the overlapping cells of an image with any direction."""
    none: list[Span | None] = [None] * 3
    ends = np.array(extent, float).reshape(3, 2)
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 3) @ axes.T + origin
    # Points of overlapping cells are at most as far from the box as the bounds of a cell are wide,
    # plus rounding errors.
    reach = np.abs(axes).sum(axis=1) + 1e-13 * np.abs(corners).max(axis=0)
    lo = np.maximum(overlap.lo - reach, corners.min(axis=0))
    hi = np.minimum(overlap.hi + reach, corners.max(axis=0))
    if not ((lo <= hi).all() and np.isfinite([lo, hi]).all()) or np.linalg.det(axes) == 0:
        return none
    box = np.stack(np.meshgrid(*np.stack([lo, hi], axis=1), indexing="ij"), axis=-1).reshape(-1, 3)
    places = np.linalg.solve(axes, (box - origin).T)
    spans: list[Span | None] = []
    for (first, last), along in zip(ends, places, strict=True):
        start, stop = max(first, math.floor(along.min())), min(last, math.ceil(along.max()))
        if start == stop < last:
            stop += 1
        elif first < start == stop:
            start -= 1
        spans.append((int(start), int(stop)) if start <= stop else None)
    return spans


def extract_rectilinear(
    described: dict[str, Any], reader: ArrayReader, overlap: BoxOverlap, what: str
) -> Extract:
    """Return the part of a rectilinear grid."""
    extent = extent_of(described, reader, what)
    if point_shape(extent) is None:
        return _extract(extent, None)
    spans: list[Span | None] = []
    axes = {}
    for axis, name in enumerate("xyz"):
        where = f"{what}{name} coordinates"
        values = axes[name] = reader.get(described.get(name), where, ndim=(1,), kinds="iuf")
        if len(values) != extent[2 * axis + 1] - extent[2 * axis] + 1:
            raise reader.damaged(f"{where} are {len(values)}")
        spans.append(_axis_span(values, overlap.lo[axis], overlap.hi[axis], extent[2 * axis]))
    found = _extract(extent, spans)
    for axis, name in enumerate("xyz"):
        first, last = found.geometry["extent"][2 * axis : 2 * axis + 2]
        start = first - extent[2 * axis]
        values = axes[name][start : start + last - first + 1] if last >= first else axes[name][:0]
        found.geometry[name] = in_memory(values, described[name])
    return found


def extract_structured(
    described: dict[str, Any], reader: ArrayReader, overlap: BoxOverlap, what: str
) -> Extract:
    """Return the part of a structured grid; all its points are read."""
    extent = extent_of(described, reader, what)
    shape = point_shape(extent)
    if shape is None or described.get("points") is None:
        return _extract(extent, None)
    points = reader.get(described["points"], f"{what}points", ndim=(2, 4), kinds="iuf")
    if points.size != 3 * math.prod(shape) or points.shape[-1] != 3:
        raise reader.damaged(f"{what}points have shape {points.shape}, the extent {shape}")
    points = points.reshape(*shape, 3)
    sides = overlap.sides(points)
    for axis in range(3):
        if (count := sides.shape[axis]) > 1:
            sides = np.take(sides, range(count - 1), axis) | np.take(sides, range(1, count), axis)
    overlaps = overlap.has_all(sides)
    spans = []
    for axis in range(3):
        others = tuple(other for other in range(3) if other != 2 - axis)
        along = overlaps.any(axis=others)
        spans.append(_span_of(along, extent[2 * axis], shape[2 - axis] > 1))
    found = _extract(extent, spans)
    found.geometry["points"] = in_memory(
        points[found.points[1]].reshape(-1, 3), described["points"]
    )
    return found


def _span_of(overlaps: Any, first: int, has_cells: bool) -> Span | None:
    """Return the span around the overlapping cells along an axis.

    `first` is the first point. Without cells, the axis has a single point.
    """
    numbers = np.flatnonzero(overlaps)
    if len(numbers) == 0:
        return None
    return (first + int(numbers[0]), first + int(numbers[-1]) + int(has_cells))


def to_unstructured(described: dict[str, Any], reader: ArrayReader, what: str) -> dict[str, Any]:
    """Return the description of a grid as an unstructured grid of the same points and cells."""
    extent = extent_of(described, reader, what)
    shape = point_shape(extent) or (0, 0, 0)
    points = described.get("points")
    if described["type"] == "RectilinearGrid":
        axes = [reader.get(described[name], f"{what}{name} coordinates") for name in "xyz"]
        points = in_memory(lattice_points(*axes))
    elif described["type"] == "StructuredGrid":
        if points is None:
            shape = (0, 0, 0)
        else:
            values = reader.get(points, f"{what}points", ndim=(2, 4), kinds="iuf")
            points = in_memory(values.reshape(-1, 3), points)
    else:
        numbers = [np.arange(extent[2 * i], extent[2 * i + 1] + 1.0) for i in range(3)]
        direction = np.reshape(described.get("direction", _IDENTITY), (3, 3)).astype(float)
        axes_of_cells = direction * np.array(described["spacing"], float)
        origin = np.array(described["origin"], float)
        points = in_memory(lattice_points(*numbers) @ axes_of_cells.T + origin)
    corners = [np.arange(math.prod(shape)).reshape(shape)]
    for axis in (2, 1, 0):  # x, y, z
        if shape[axis] > 1:
            lower = [np.delete(ids, -1, axis) for ids in corners]
            upper = [np.delete(ids, 0, axis) for ids in corners]
            # The corners of a quadrilateral are in cyclic order.
            corners = lower + (upper[::-1] if len(upper) == 2 else upper)
    table = np.stack(corners, axis=-1).reshape(-1, len(corners))
    cells = {"cells": {"corners": in_memory(table)}, "types": _CELL_TYPES[len(corners)]}
    return {**described, "type": "UnstructuredGrid", "points": points, **cells}


def _extract(extent: list[int], spans: list[Span | None] | None) -> Extract:
    """Return the part of a grid within spans along x, y and z; nothing if one of them is None."""
    points, cells = point_shape(extent), cell_shape(extent)
    if points is None or cells is None or spans is None or any(span is None for span in spans):
        return Extract({"extent": list(_EMPTY)}, no_tuples(points), no_tuples(cells))
    found = [span for span in spans if span is not None]
    of_points, of_cells = [], []
    for axis in (2, 1, 0):
        first, last = (number - extent[2 * axis] for number in found[axis])
        of_points.append(slice(first, last + 1))
        of_cells.append(slice(first, max(last, first + 1)))
    key: Key = tuple(of_points)
    cell_key: Key = tuple(of_cells)
    new = [number for span in found for number in span]
    return Extract({"extent": new}, (points, key), (cells, cell_key))
