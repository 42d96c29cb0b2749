"""The part of a grid that overlaps a box: the smallest extent around the overlapping cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.select.region_cells import Extract, no_tuples
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.extents import cell_shape, lattice_points, point_shape
from ambar.mesh.storage.references import Description, Key, in_memory
from ambar.mesh.vtk.datasets import extent_of, floats
from ambar.mesh.vtk.points import read_points

_CELL_TYPES = {1: 1, 2: 3, 4: 9, 8: 12}
"""VTK's types of cells (vertex, line, quadrilateral, hexahedron) by their numbers of corners."""
_IDENTITY = [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]
_MOST_POINTS = 1 << 27
"""The largest number of points along an axis of an image."""
Span = tuple[int, int]
"""The first and the last point along an axis."""


def _frame_of(described: Description, reader: ArrayReader) -> tuple[np.ndarray, np.ndarray]:
    """Return the origin of an image, and the vectors between neighboring points, as columns."""
    origin = floats(described.get("origin"), 3, reader, "origin")
    spacing = floats(described.get("spacing"), 3, reader, "spacing")
    direction = floats(described.get("direction", _IDENTITY), 9, reader, "direction")
    with np.errstate(over="ignore"):
        return np.array(origin), np.array(direction).reshape(3, 3) * spacing


def extract_image(described: Description, reader: ArrayReader, overlap: BoxOverlap) -> Extract:
    """Return the part of an image; an extent around it, if its axes are not those of the box."""
    extent, (origin, axes) = extent_of(described, reader), _frame_of(described, reader)
    shape = point_shape(extent)
    if shape is None:
        return _extract(extent, [None])
    if max(shape) > _MOST_POINTS:
        raise reader.damaged(f"extent {extent} has too many points along an axis")
    direction = np.abs(np.reshape(described.get("direction", _IDENTITY), (3, 3)))
    coordinate_of = direction.argmax(axis=0)
    if sorted(direction.flat) != sorted(_IDENTITY) or len(set(coordinate_of)) < 3:
        return _extract(extent, _oblique_spans(extent, origin, axes, overlap))
    spans = []
    for axis, c in enumerate(coordinate_of):
        first, last = extent[2 * axis : 2 * axis + 2]
        values = origin[c] + np.arange(first, last + 1) * axes[c, axis]
        spans.append(_axis_span(values, overlap.lo[c], overlap.hi[c], first))
    return _extract(extent, spans)


def _axis_span(values: np.ndarray, lo: float, hi: float, first: int) -> Span | None:
    """Return the span of the overlapping cells between coordinates along an axis."""
    sides = _sides_of_cells(np.stack([values >= lo, values <= hi]), 1)
    return _span_of(sides.all(axis=0), first, len(values) > 1)


def _sides_of_cells(sides: np.ndarray, axis: int) -> np.ndarray:
    """Combine the sides of neighboring points along an axis; a single point is a cell."""
    if sides.shape[axis] == 1:
        return sides
    combined: np.ndarray = np.delete(sides, -1, axis) | np.delete(sides, 0, axis)
    return combined


def _span_of(overlaps: Any, first: int, has_cells: bool) -> Span | None:
    """Return the span around the overlapping cells along an axis.

    `first` is the first point. Without cells, the axis has a single point.
    """
    numbers = np.flatnonzero(overlaps)
    if len(numbers) == 0:
        return None
    return (first + int(numbers[0]), first + int(numbers[-1]) + int(has_cells))


def _oblique_spans(
    extent: list[int], origin: np.ndarray, axes: np.ndarray, overlap: BoxOverlap
) -> list[Span | None]:
    """Return spans around the overlapping cells of an image with any direction."""
    ends = np.array(extent, float).reshape(3, 2)
    corners = lattice_points(*ends) @ axes.T + origin
    # Points of overlapping cells are at most as far from the box as the bounds of a cell are wide,
    # plus rounding errors.
    reach = np.abs(axes).sum(axis=1) + 1e-13 * np.abs(corners).max(axis=0)
    lo = np.maximum(overlap.lo - reach, corners.min(axis=0))
    hi = np.minimum(overlap.hi + reach, corners.max(axis=0))
    if not ((lo <= hi).all() and np.isfinite([lo, hi]).all()) or np.linalg.det(axes) == 0:
        return [None]
    places = np.linalg.solve(axes, (lattice_points(*np.stack([lo, hi], axis=1)) - origin).T)
    low, high = np.floor(places.min(axis=1)), np.floor(places.max(axis=1)) + 1
    first, last = ends.T
    if (low > last).any() or (high < first).any():
        return [None]
    start = np.clip(low, first, np.maximum(first, last - 1))
    stop = np.clip(high, np.minimum(first + 1, last), last)
    return [(int(a), int(b)) for a, b in zip(start, stop, strict=True)]


def extract_rectilinear(
    described: Description, reader: ArrayReader, overlap: BoxOverlap
) -> Extract:
    """Return the part of a rectilinear grid."""
    extent = extent_of(described, reader)
    if point_shape(extent) is None:
        return _extract(extent, [None])
    spans, axes = [], {}
    for axis, name in enumerate("xyz"):
        where, (first, last) = f"{name} coordinates", extent[2 * axis : 2 * axis + 2]
        values = axes[name] = reader.get(described.get(name), where, ndim=(1,), kinds="iuf")
        if len(values) != last - first + 1:
            raise reader.damaged(f"{where} are {len(values)}")
        spans.append(_axis_span(values, overlap.lo[axis], overlap.hi[axis], first))
    found = _extract(extent, spans)
    for part, name in zip(found.points[1], "zyx", strict=True):
        found.geometry[name] = in_memory(axes[name][part], described[name])
    return found


def extract_structured(described: Description, reader: ArrayReader, overlap: BoxOverlap) -> Extract:
    """Return the part of a structured grid; all its points are read."""
    extent = extent_of(described, reader)
    shape = point_shape(extent)
    if shape is None or described.get("points") is None:
        return _extract(extent, [None])
    points = read_points(described["points"], reader)
    if len(points) != math.prod(shape):
        raise reader.damaged(f"points have shape {points.shape}, the extent {shape}")
    points = points.reshape(*shape, 3)
    sides = overlap.sides(points)
    for axis in range(3):
        sides = _sides_of_cells(sides, axis)
    overlaps = overlap.has_all(sides)
    spans = [
        _span_of(overlaps.any(axis=others), extent[2 * axis], shape[2 - axis] > 1)
        for axis, others in enumerate(((0, 1), (0, 2), (1, 2)))
    ]
    found = _extract(extent, spans)
    part = points[found.points[1]].reshape(-1, 3)
    found.geometry["points"] = in_memory(part, described["points"])
    return found


def to_unstructured(described: Description, reader: ArrayReader) -> Description:
    """Return the description of a grid as an unstructured grid of the same points and cells."""
    extent = extent_of(described, reader)
    shape = point_shape(extent) or (0, 0, 0)
    points = described.get("points")
    if described["type"] == "RectilinearGrid":
        axes = [reader.get(described[name], f"{name} coordinates") for name in "xyz"]
        points = in_memory(lattice_points(*axes))
    elif described["type"] != "StructuredGrid":
        numbers = [np.arange(extent[2 * i], extent[2 * i + 1] + 1.0) for i in range(3)]
        origin, vectors = _frame_of(described, reader)
        points = in_memory(lattice_points(*numbers) @ vectors.T + origin)
    elif points is None:
        shape = (0, 0, 0)
    else:
        points = in_memory(read_points(points, reader), points)
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


def _extract(extent: list[int], spans: Sequence[Span | None]) -> Extract:
    """Return the part of a grid within spans along x, y and z; nothing if one of them is None."""
    points, cells = point_shape(extent), cell_shape(extent)
    found = [span for span in spans if span is not None]
    if points is None or cells is None or len(found) < 3:
        return Extract({"extent": [0, -1] * 3}, no_tuples(points), no_tuples(cells))
    of_points, of_cells = [], []
    for axis in (2, 1, 0):
        first, last = (number - extent[2 * axis] for number in found[axis])
        of_points.append(slice(first, last + 1))
        of_cells.append(slice(first, max(last, first + 1)))
    key: Key = tuple(of_points)
    cell_key: Key = tuple(of_cells)
    new = [number for span in found for number in span]
    return Extract({"extent": new}, (points, key), (cells, cell_key))
