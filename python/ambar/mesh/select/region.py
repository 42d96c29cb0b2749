"""The part of a mesh in a box, or where a condition holds: its description.

The description replaces that of the whole mesh, and refers to rows of its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.text import suggestion
from ambar.mesh.select.region_cells import (
    BoxOverlap,
    Criteria,
    Extract,
    Points,
    extract_cells,
    extract_points,
    no_tuples,
)
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import ORIGINAL_IDS, split_block
from ambar.mesh.storage.extents import cell_shape, lattice_points, point_shape
from ambar.mesh.storage.references import Description, Key, in_memory, rows_on_grid, select_rows
from ambar.mesh.vtk.datasets import extent_of, floats
from ambar.mesh.vtk.fields import read_points

_WITH_BLOCKS = (
    "MultiBlockDataSet",
    "MultiPieceDataSet",
    "PartitionedDataSet",
    "PartitionedDataSetCollection",
)


@dataclass(frozen=True)
class PartReader:
    """Describes the part of a mesh in a box for which a condition holds.

    Parameters
    ----------
    reader
        Reads the arrays.
    overlap
        The box; None for all cells.
    condition
        The condition on arrays; None for all cells.
    original_ids
        Whether to add arrays of the original ids of points and cells, if these differ from 0, 1, 2
        and so on.
    """

    reader: ArrayReader
    overlap: BoxOverlap | None
    condition: _core.Condition | None
    original_ids: bool
    _parts: dict[int, Any] = field(default_factory=dict)
    """The results of blocks by the identity of the description: shared blocks stay shared."""

    def extract(self, described: Any) -> Any:
        """Return the description of a part.

        Blocks without such cells become empty. The descriptions of index and order are left out.

        Raises
        ------
        CorruptError
            If the description or an array is damaged.
        UnsupportedError
            If there is a box or a condition, and the type of the object does not support them.
        KeyError
            If the condition names an array that does not exist.
        ValueError
            If the condition does not apply to the arrays.
        """
        if not isinstance(described, dict):
            return described
        if described.get("type") not in _WITH_BLOCKS:
            return self._extract_dataset(described)
        blocks = []
        for number, entry in enumerate(described["blocks"]):
            block, info = split_block(entry)
            is_table = isinstance(block, dict) and block.get("type") == "Table"
            if not (is_table and self._has_criteria):
                if id(block) not in self._parts:
                    with self.reader.within(f"block {number}"):
                        self._parts[id(block)] = self.extract(block)
                block = self._parts[id(block)]
            blocks.append(block if info is None else {"block": block, "info": info})
        return {**described, "blocks": blocks}

    @property
    def _has_criteria(self) -> bool:
        return self.overlap is not None or self.condition is not None

    def _extract_dataset(self, described: Description) -> dict[str, Any]:
        part = {key: value for key, value in described.items() if key not in ("index", "order")}
        order = described.get("order") if self.original_ids else None
        if not self._has_criteria:
            return part if order is None else _add_original_ids(part, self.reader, order, None)
        type_name = str(described.get("type"))
        if type_name not in (*_GRIDS, *_OF_CELLS):
            raise _core.UnsupportedError(
                f"{self.reader.where}: a {type_name} does not support region= and where=; read it "
                "without these, or a block of it with block="
            )
        if self.overlap is not None and self.condition is None and type_name in _GRIDS:
            found = _GRIDS[type_name](described, self.reader, self.overlap)
        else:
            if type_name in _GRIDS:
                described = part = to_unstructured(part, self.reader)
            masks = {}
            if self.condition is not None:
                masks = evaluate_condition(self.condition, described, self.reader)
            criteria = Criteria(self.overlap, **masks)
            found = _OF_CELLS[described["type"]](described, self.reader, criteria)
        part |= found.geometry
        for key, selection in (("point_data", found.points), ("cell_data", found.cells)):
            entries = part.get(key) or ()
            part[key] = [select_rows(entry, *selection, self.reader) for entry in entries]
        return _add_original_ids(part, self.reader, order, found) if self.original_ids else part


def _add_original_ids(
    described: Description, reader: ArrayReader, order: Any, found: Extract | None
) -> Description:
    """Add arrays of the original ids of points and cells to a description, and return it."""
    for association, name in ORIGINAL_IDS.items():
        reference = None if order is None else order.get(f"{association}s")
        if found is not None:
            shape, key = found.points if association == "point" else found.cells
            if reference is not None:
                reference = select_rows(reference, shape, key, reader)
            elif isinstance(key[0], np.ndarray):
                reference = in_memory(key[0])
            else:
                reference = in_memory(rows_on_grid(shape, key))
        ids = reader.get(reference, name, ndim=(1,), kinds="i")
        entry = {"name": name, "type": "id type", **in_memory(ids.astype(np.int64))}
        others = described.get(f"{association}_data") or []
        others = [other for other in others if other.get("name") != name]
        described[f"{association}_data"] = [*others, entry]
    return described


_Column = tuple[dict[str, Any], int | None]
"""The description of an array, and a component of it; None for the only one."""


def parse_condition(text: str) -> _core.Condition:
    """Return a condition; raises ValueError if it is invalid, or has units."""
    condition = _core.Condition(text)
    if condition.units:
        raise _core.InvalidError(
            f"invalid condition {text!r}: expected numbers without units, found "
            f"{condition.units[0]!r}; the units of meshes are not known"
        )
    return condition


def evaluate_condition(
    condition: _core.Condition, described: Description, reader: ArrayReader
) -> dict[str, np.ndarray]:
    """Return where a condition holds: {"points": bools} or {"cells": bools}.

    Raises
    ------
    KeyError
        If an array does not exist.
    ValueError
        If the condition names arrays on points and arrays on cells, arrays that both have, or an
        array of several components.
    """
    on_points, on_cells = (
        {entry["name"]: entry for entry in described.get(key) or ()}
        for key in ("point_data", "cell_data")
    )
    known = {**on_points, **on_cells}
    # The coordinates are the components of an array without a name.
    names = {axis: f".{axis}" for axis in "xyz" if axis not in known}
    if names.keys() & set(condition.fields):
        on_points[""] = in_memory(Points(described, reader).read_all(), {"name": ""})
    found = {
        association: [_column(names.get(name, name), arrays) for name in condition.fields]
        for association, arrays in (("points", on_points), ("cells", on_cells))
    }
    found = {association: columns for association, columns in found.items() if None not in columns}
    if len(found) > 1 and condition.fields:
        raise _core.InvalidError(
            f"{reader.where}: expected a condition on points or on cells, found that both have "
            f"arrays named {', '.join(condition.fields)}; read the mesh, and select in it"
        )
    for association, columns in found.items():
        values = [_values(column, reader) for column in columns if column]
        pairs = zip(condition.fields, values, strict=True)
        return {association: condition.evaluate(dict(pairs))}
    for name in condition.fields:
        if name not in names and _column(name, known) is None:
            raise _core.NotFoundError(
                f"{reader.where}: no array {name!r} on points or cells; "
                f"{suggestion(name, map(str, known))}"
            )
    raise _core.InvalidError(
        f"{reader.where}: expected a condition on points or on cells, found arrays on both "
        f"in {', '.join(condition.fields)}; x, y and z are coordinates of points"
    )


def _column(name: str, arrays: dict[str, dict[str, Any]]) -> _Column | None:
    """Return the array that a name in a condition refers to; None if it does not exist."""
    if name in arrays:
        return arrays[name], None
    base, _, component = name.rpartition(".")
    is_component = base in arrays and component in ("x", "y", "z")
    return (arrays[base], "xyz".index(component)) if is_component else None


def _values(column: _Column, reader: ArrayReader) -> np.ndarray:
    entry, component = column
    where = f"array {entry['name']!r}"
    values = reader.get(entry, where, ndim=(1, 2, 3, 4))
    values = values.reshape(-1, *values.shape[3:]) if values.ndim > 2 else values
    if values.ndim == 1 and component is None:
        return values
    if values.ndim == 1 or component is None or component >= values.shape[1]:
        raise _core.InvalidError(
            f"{reader.where}: {where} in a condition: expected one of its components, such as "
            f"{entry['name']}.x, found {values.shape[1:] or 'no'} components"
        )
    return values[:, component]


_CELL_TYPES = {1: 1, 2: 3, 4: 9, 8: 12}
"""VTK's types of cells (vertex, line, quadrilateral, hexahedron) by their numbers of corners."""
_IDENTITY = [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]
_MAX_POINTS = 1 << 27
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
    if max(shape) > _MAX_POINTS:
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


_GRIDS: dict[str, Callable[[Description, ArrayReader, BoxOverlap], Extract]] = {
    "ImageData": extract_image,
    "UniformGrid": extract_image,
    "StructuredPoints": extract_image,
    "RectilinearGrid": extract_rectilinear,
    "StructuredGrid": extract_structured,
}
_OF_CELLS: dict[str, Callable[[Description, ArrayReader, Criteria], Extract]] = {
    "PolyData": extract_cells,
    "UnstructuredGrid": extract_cells,
    "PointSet": extract_points,
}
