"""The part of a grid that touches a box: the smallest extent around the cells that do."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from ambar.mesh.select.region_cells import Cut, none_of
from ambar.mesh.select.touching import Touching
from ambar.mesh.storage.array_references import Key, given
from ambar.mesh.storage.extents import cell_shape, point_shape
from ambar.mesh.storage.source import Source
from ambar.mesh.vtk.decode import floats, whole_numbers

_EMPTY = [0, -1, 0, -1, 0, -1]
_IDENTITY = [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]
Span = tuple[int, int]


def cut_image(described: dict[str, Any], source: Source, touching: Touching, what: str) -> Cut:
    """Return the part of an image; of one turned out of the axes one around all that touch."""
    extent = _extent(described, source, what)
    origin = floats(described.get("origin"), 3, source, f"{what}origin")
    spacing = floats(described.get("spacing"), 3, source, f"{what}spacing")
    direction = floats(described.get("direction", _IDENTITY), 9, source, f"{what}direction")
    if point_shape(extent) is None:
        return _cut(extent, None)
    with np.errstate(over="ignore"):
        axes = np.array(direction).reshape(3, 3) * spacing
    of_axis = np.abs(direction).reshape(3, 3).argmax(axis=0)
    if sorted(np.abs(direction)) == sorted(_IDENTITY) and len(set(of_axis)) == 3:
        ends = [extent[2 * a : 2 * a + 2] for a in range(3)]
        spans = [
            _span(ends[a], origin[b], float(axes[b, a]), touching.lo[b], touching.hi[b])
            for a, b in enumerate(of_axis)
        ]
    else:
        spans = _turned(extent, np.array(origin), axes, touching)
    return _cut(extent, spans)


def _span(ends: list[int], origin: float, spacing: float, lo: float, hi: float) -> Span | None:
    """Return the first and last point of the cells that touch along an axis."""
    first, last = ends
    sign = -1 if spacing < 0 else 1
    low, high = (lo, hi) if sign > 0 else (-hi, -lo)

    def place(number: int) -> float:
        return sign * (origin + number * spacing)

    numbers = range(first, last + 1)
    # The last point before the box, and the first one behind it.
    start = first + max(bisect_left(numbers, low, key=place) - 1, 0)
    stop = first + min(bisect_right(numbers, high, key=place), len(numbers) - 1)
    if place(last) < low or place(first) > high or math.isnan(place(first)):
        return None
    return (start, stop)


def _turned(
    extent: list[int], origin: np.ndarray, axes: np.ndarray, touching: Touching
) -> list[Span | None]:
    """Return the first and last point along each axis around the cells whose bounds touch."""
    none: list[Span | None] = [None] * 3
    ends = np.array(extent, float).reshape(3, 2)
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 3) @ axes.T + origin
    # Points of cells that touch are not farther from the box than the bounds of a cell are large;
    # and a bit more, as numbers are rounded.
    reach = np.abs(axes).sum(axis=1) + 1e-13 * np.abs(corners).max(axis=0)
    lo = np.maximum(touching.lo - reach, corners.min(axis=0))
    hi = np.minimum(touching.hi + reach, corners.max(axis=0))
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


def cut_rectilinear(
    described: dict[str, Any], source: Source, touching: Touching, what: str
) -> Cut:
    """Return the part of a rectilinear grid."""
    extent = _extent(described, source, what)
    if point_shape(extent) is None:
        return _cut(extent, None)
    spans: list[Span | None] = []
    axes = {}
    for axis, name in enumerate("xyz"):
        values = source.get(
            described.get(name), f"{what}{name} coordinates", ndim=(1,), kinds="iuf"
        )
        if len(values) != extent[2 * axis + 1] - extent[2 * axis] + 1:
            raise source.damaged(f"{what}{name} coordinates are {len(values)}")
        inside = np.stack([values >= touching.lo[axis], values <= touching.hi[axis]])
        cells = inside if len(values) == 1 else inside[:, :-1] | inside[:, 1:]
        span = _around(cells.all(axis=0), extent[2 * axis], len(values) > 1)
        spans.append(span)
        axes[name] = values
    cut = _cut(extent, spans)
    for axis, name in enumerate("xyz"):
        first, last = cut.geometry["extent"][2 * axis : 2 * axis + 2]
        values = axes[name][first - extent[2 * axis] : last + 1 - extent[2 * axis]]
        cut.geometry[name] = given(values if last >= first else values[:0], described[name])
    return cut


def cut_structured(described: dict[str, Any], source: Source, touching: Touching, what: str) -> Cut:
    """Return the part of a structured grid, whose points are all read."""
    extent = _extent(described, source, what)
    shape = point_shape(extent)
    if shape is None or described.get("points") is None:
        return _cut(extent, None)
    points = source.get(described["points"], f"{what}points", ndim=(2, 4), kinds="iuf")
    if points.size != 3 * math.prod(shape) or points.shape[-1] != 3:
        raise source.damaged(f"{what}points have shape {points.shape}, the extent {shape}")
    points = points.reshape(*shape, 3)
    sides = touching.sides(points)
    for axis in range(3):
        if sides.shape[axis] > 1:
            before, behind = (np.take(sides, r, axis) for r in _neighbours(sides.shape[axis]))
            sides = before | behind
    met = touching.met(sides)
    spans = []
    for axis in range(3):
        others = tuple(other for other in range(3) if other != 2 - axis)
        spans.append(_around(met.any(axis=others), extent[2 * axis], shape[2 - axis] > 1))
    cut = _cut(extent, spans)
    kept = points[cut.points[1]].reshape(-1, 3)
    cut.geometry["points"] = given(kept, described["points"])
    return cut


def _neighbours(count: int) -> tuple[range, range]:
    return range(count - 1), range(1, count)


def _around(cells: Any, first: int, wide: bool) -> Span | None:
    """Return the first and last point of the cells that touch along an axis."""
    places = np.flatnonzero(cells)
    if len(places) == 0:
        return None
    return (first + int(places[0]), first + int(places[-1]) + int(wide))


def _cut(extent: list[int], spans: list[Span | None] | None) -> Cut:
    """Return what is cut out of a grid: `spans` are first and last point in x, y, z."""
    points, cells = point_shape(extent), cell_shape(extent)
    if points is None or cells is None or spans is None or any(span is None for span in spans):
        return Cut({"extent": list(_EMPTY)}, none_of(points), none_of(cells))
    chosen = [span for span in spans if span is not None]
    keys: list[list[slice]] = [[], []]
    for axis in (2, 1, 0):
        first, last = (number - extent[2 * axis] for number in chosen[axis])
        keys[0].append(slice(first, last + 1))
        keys[1].append(slice(first, max(last, first + 1)))
    of_points: Key = tuple(keys[0])
    of_cells: Key = tuple(keys[1])
    new = [number for span in chosen for number in span]
    return Cut({"extent": new}, (points, of_points), (cells, of_cells))


def _extent(described: dict[str, Any], source: Source, what: str) -> list[int]:
    extent = whole_numbers(described.get("extent"), 6, source, f"{what}extent")
    if math.prod(point_shape(extent) or (0,)) > 2**62:
        raise source.damaged(f"{what}extent {extent} has too many points")
    return extent
