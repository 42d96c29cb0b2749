"""The part of a grid that overlaps a box: the smallest extent around the overlapping cells."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.select.region_cells import Extract, no_tuples
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_references import Key, in_memory
from ambar.mesh.storage.extents import cell_shape, point_shape
from ambar.mesh.vtk.decode import extent_of, floats

_EMPTY = [0, -1, 0, -1, 0, -1]
_IDENTITY = [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]
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
    if point_shape(extent) is None:
        return _extract(extent, None)
    with np.errstate(over="ignore"):
        axes = np.array(direction).reshape(3, 3) * spacing
    coordinate_of = np.abs(direction).reshape(3, 3).argmax(axis=0)
    if sorted(np.abs(direction)) == sorted(_IDENTITY) and len(set(coordinate_of)) == 3:
        spans = [
            _span(extent[2 * a :][:2], origin[c], axes[c, a], overlap.lo[c], overlap.hi[c])
            for a, c in enumerate(coordinate_of)
        ]
    else:
        spans = _oblique_spans(extent, np.array(origin), axes, overlap)
    return _extract(extent, spans)


def _span(ends: list[int], origin: float, spacing: float, lo: float, hi: float) -> Span | None:
    """Return the span of the overlapping cells of an image along an axis."""
    first, last = ends
    sign = -1 if spacing < 0 else 1
    low, high = (lo, hi) if sign > 0 else (-hi, -lo)

    def coordinate(number: int) -> float:
        return sign * (origin + number * spacing)

    numbers = range(first, last + 1)
    # From the last point before the box to the first point after it.
    start = first + max(bisect_left(numbers, low, key=coordinate) - 1, 0)
    stop = first + min(bisect_right(numbers, high, key=coordinate), len(numbers) - 1)
    if coordinate(last) < low or coordinate(first) > high or math.isnan(coordinate(first)):
        return None
    return (start, stop)


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
        sides = np.stack([values >= overlap.lo[axis], values <= overlap.hi[axis]])
        of_cells = sides if len(values) == 1 else sides[:, :-1] | sides[:, 1:]
        spans.append(_span_of(of_cells.all(axis=0), extent[2 * axis], len(values) > 1))
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
