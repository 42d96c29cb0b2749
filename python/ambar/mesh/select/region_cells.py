"""The cells of surfaces and unstructured grids that touch a box, with their points renumbered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar.mesh.select.touching import Touching
from ambar.mesh.storage.array_references import Key, Runs, given, part_of
from ambar.mesh.storage.extents import POLY_CELLS, lattice_points
from ambar.mesh.storage.ragged_cells import Ragged, used
from ambar.mesh.storage.source import Source
from ambar.mesh.vtk.cells import Chosen, lists_of, sizes_of, starts_of

Tuples = tuple[tuple[int, ...], Key]
"""How the tuples of points or cells lie, and which of them are meant."""


@dataclass(frozen=True)
class Cut:
    """A part of a mesh."""

    geometry: dict[str, Any]
    """What its description says in place of the whole one's."""
    points: Tuples
    """Its points."""
    cells: Tuples
    """Its cells."""


def none_of(shape: tuple[int, ...] | None) -> Tuples:
    """Return none of the tuples."""
    shape = shape or (0,)
    return shape, (slice(0, 0),) * len(shape)


class _Points:
    """The points of a mesh, of which some are read."""

    def __init__(self, described: Any, source: Source, what: str) -> None:
        self._described = described
        self._source = source
        self._what = f"{what}points"
        self._axes: list[np.ndarray] | None = None
        self._every: np.ndarray | None = None
        # Points that have been read: numbers, ascending, and coordinates.
        self._known: tuple[np.ndarray, np.ndarray] | None = None
        self.count = 0
        if described is None:
            return
        if not isinstance(described, dict):
            raise source.damaged(f"{what}points are not described")
        if "lattice" not in described:
            self.count = source.shape_of(described)[0]
            return
        parts = described["lattice"]
        if not isinstance(parts, list) or len(parts) != 3:
            raise source.damaged(f"{what}points: a lattice has three axes")
        self._axes = [source.get(p, f"{what}points axis", ndim=(1,), kinds="iuf") for p in parts]
        self.count = math.prod(len(axis) for axis in self._axes)

    def every(self) -> np.ndarray:
        """Return the coordinates (points, 3) of all points, which are read once."""
        if self._every is None:
            self._every = self._read_every()
            self._known = None
        return self._every

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the coordinates (rows, 3) of points of ascending numbers, each read once."""
        if self._every is not None:
            return self._every if len(rows) == self.count else self._every.take(rows, axis=0)
        if self._known is None:
            self._known = rows, self._read(rows)
            return self._known[1]
        numbers, values = self._known
        new = rows[~np.isin(rows, numbers, assume_unique=True)]
        if len(new):
            order = np.argsort(numbers := np.concatenate([numbers, new]))
            values = np.concatenate([values, self._read(new)])[order]
            self._known = numbers[order], values
        found: np.ndarray = values[np.searchsorted(self._known[0], rows)]
        return found

    def _read_every(self) -> np.ndarray:
        if self._axes is not None:
            return lattice_points(*self._axes)
        if self._described is None:
            return np.zeros((0, 3))
        return self._checked(self._source.get(self._described, self._what, ndim=(2,), kinds="iuf"))

    def _read(self, rows: np.ndarray) -> np.ndarray:
        if self._axes is not None:
            x, y, z = self._axes
            layer = len(x) * len(y)
            picked = x[rows % len(x)], y[rows // len(x) % len(y)], z[rows // layer]
            return np.stack(picked, axis=1)
        if self._described is None:  # and so no cell has a corner
            return np.zeros((0, 3))
        key = Runs.of_rows(rows).key
        reference = part_of(self._described, (self.count,), key, self._source)
        return self._checked(self._source.get(reference, self._what, ndim=(2,), kinds="iuf"))

    def _checked(self, values: np.ndarray) -> np.ndarray:
        if values.shape[1] != 3:
            raise self._source.damaged(f"{self._what} have shape {values.shape}")
        return values

    def described(self, values: np.ndarray) -> dict[str, Any] | None:
        """Return the description of some of them."""
        if self._described is None:
            return None
        return given(values, {k: v for k, v in self._described.items() if k != "lattice"})


@dataclass(frozen=True)
class _Cells:
    """The cells of one kind that touch the box."""

    rows: np.ndarray
    """Their numbers among the cells of the kind."""
    count: int
    """How many of the kind there are in all."""
    corners: Ragged
    """Their corners."""
    types: np.ndarray | None
    """Their types, where the cells are of several."""


def cut_points(described: dict[str, Any], source: Source, touching: Touching, what: str) -> Cut:
    """Return the points in the box of what has no cells."""
    points = _Points(described.get("points"), source, what)
    if described.get("points") is None:
        return Cut({}, none_of(None), none_of(None))
    values = source.get(described["points"], f"{what}points", ndim=(2,), kinds="iuf")
    if values.shape[1] != 3:
        raise source.damaged(f"{what}points have shape {values.shape}")
    rows = np.flatnonzero(touching.met(touching.sides(values)))
    geometry = {"points": points.described(values[rows])}
    return Cut(geometry, ((points.count,), (rows,)), none_of(None))


def cut_poly(described: dict[str, Any], source: Source, touching: Touching, what: str) -> Cut:
    """Return the part of a surface: of its verts, lines, polygons and strips each."""
    points = _Points(described.get("points"), source, what)
    kinds = {
        name: _touching(described, name, points, source, touching, what)
        for name in POLY_CELLS
        if described.get(name) is not None
    }
    rows, base = [np.zeros(0, np.int64)], 0
    for kind in kinds.values():
        rows.append(kind.rows + base)
        base += kind.count
    lists = [kind.corners.values for kind in kinds.values()]
    numbers, local = used(np.concatenate([np.zeros(0, np.int64), *lists]), points.count)
    geometry: dict[str, Any] = {"points": points.described(points.at(numbers))}
    parts = np.split(local, np.cumsum([len(values) for values in lists])) if lists else []
    for (name, kind), part in zip(kinds.items(), parts, strict=False):
        geometry[name] = _described_cells(described[name], kind.corners.numbered(part))
    return Cut(geometry, ((points.count,), (numbers,)), ((base,), (np.concatenate(rows),)))


def cut_unstructured(
    described: dict[str, Any], source: Source, touching: Touching, what: str
) -> Cut:
    """Return the part of an unstructured grid."""
    points = _Points(described.get("points"), source, what)
    if described.get("cells") is None:
        empty = points.described(points.at(np.zeros(0, np.int64))) if points.count else None
        return Cut({"points": empty or described.get("points")}, *_nothing(points.count))
    found = _touching(described, "cells", points, source, touching, what)
    numbers_of = [found.corners.values]
    faces = of_cells = None
    if "faces" in described:
        of_cells, faces = _faces(described, source, what, points.count, found)
        numbers_of.append(faces.values)
    numbers, local = used(np.concatenate(numbers_of), points.count)
    count = len(found.corners.values)
    geometry = {
        "points": points.described(points.at(numbers)),
        "cells": _described_cells(described["cells"], found.corners.numbered(local[:count])),
    }
    if found.types is not None:
        geometry["types"] = given(found.types)
    if faces is not None and of_cells is not None:
        geometry["faces"] = _described_cells(described["faces"], faces.numbered(local[count:]))
        geometry["cell_faces"] = _described_cells(described["cell_faces"], of_cells)
    return Cut(geometry, ((points.count,), (numbers,)), ((found.count,), (found.rows,)))


def _nothing(points: int) -> tuple[Tuples, Tuples]:
    return ((points,), (slice(0, 0),)), none_of(None)


def _touching(
    described: dict[str, Any],
    name: str,
    points: _Points,
    source: Source,
    touching: Touching,
    what: str,
) -> _Cells:
    """Return the cells of one kind that touch the box; only chunks of cells that do are read."""
    cells, kinds = described[name], described.get("types")
    if not isinstance(cells, dict):
        raise source.damaged(f"{what}{name} are not described")
    of_kinds = kinds if isinstance(kinds, dict) else None
    count = _count(cells, of_kinds, source)
    runs, starts = _runs(described, name, count, source, touching, what)
    types = None
    if of_kinds is not None:
        reference = part_of(of_kinds, (count,), runs.key, source)
        types = source.get(reference, f"{what}types", ndim=(1,), kinds="u")
    chosen = Chosen(count, runs, starts)
    corners = lists_of(cells, source, f"{what}{name}", points.count, types, chosen)
    if len(corners) == count:
        # Most points belong to these cells: finding out which takes longer than reading all.
        touch = touching.cells(corners, touching.sides(points.every()))
    else:
        numbers, local = used(corners.values, points.count)
        touch = touching.cells(corners.numbered(local), touching.sides(points.at(numbers)))
    kept = None if types is None else types[touch]
    numbers = np.flatnonzero(touch)
    rows = numbers if len(corners) == count else runs.rows[numbers]
    return _Cells(rows, count, corners.take(touch), kept)


def _count(cells: dict[str, Any], types: dict[str, Any] | None, source: Source) -> int:
    """Return how many cells there are."""
    sizes = cells.get("sizes")
    if sizes is None:
        return source.shape_of(cells.get("corners"))[0]
    of_types = isinstance(sizes, dict) and "of_types" in sizes
    return source.shape_of(types if of_types else sizes)[0]


def _runs(
    described: dict[str, Any],
    name: str,
    count: int,
    source: Source,
    touching: Touching,
    what: str,
) -> tuple[Runs, np.ndarray | None]:
    """Return which cells may touch the box, and where the corners of each run of them begin.

    All of them, and None, where the mesh has no index.
    """
    index = described.get("index")
    if index is None or not isinstance(index, dict) or name not in index:
        return Runs.all(count), None
    rows, entry = index.get("rows"), index[name]
    if type(rows) is not int or not 1 <= rows < 2**62 or not isinstance(entry, dict):
        raise source.damaged(f"{what}index of {name} is not described")
    chunks = -(-count // rows)
    bounds = source.get(entry.get("box"), f"{what}boxes of {name}", ndim=(3,), kinds="f")
    if bounds.shape != (chunks, 2, 3):
        raise source.damaged(f"{what}boxes of {name} are {bounds.shape} of {chunks} chunks")
    touched = Runs.of_rows(np.flatnonzero(touching.bounds(bounds)))
    runs = Runs(touched.first * rows, np.minimum(touched.stop * rows, count))
    if "start" not in entry:
        return runs, None
    starts = source.get(entry["start"], f"{what}starts of {name}", ndim=(2,), kinds="i")
    if len(starts) != chunks:
        raise source.damaged(f"{what}starts of {name} are {len(starts)} of {chunks} chunks")
    return runs, starts[touched.first].astype(np.int64)


def _faces(
    described: dict[str, Any], source: Source, what: str, points: int, cells: _Cells
) -> tuple[Ragged, Ragged]:
    """Return the numbers of the faces of cells, and the corners of these faces.

    How many faces each cell has, and how many corners each face, is read of all of them.
    """
    of_faces = _count(described["faces"], None, source)
    where = f"{what}faces of cells"
    chosen = _chosen(described["cell_faces"], source, where, cells.rows)
    if chosen.count != cells.count:
        raise source.damaged(f"{what}faces are of {chosen.count} cells, not {cells.count}")
    of_cells = lists_of(described["cell_faces"], source, where, of_faces, None, chosen)
    numbers, local = used(of_cells.values, of_faces)
    where = f"{what}faces"
    chosen = _chosen(described["faces"], source, where, numbers)
    faces = lists_of(described["faces"], source, where, points, None, chosen)
    return of_cells.numbered(local), faces


def _chosen(cells: Any, source: Source, what: str, rows: np.ndarray) -> Chosen:
    """Return some of the cells, wherever they are."""
    count = _count(cells, None, source)
    runs = Runs.of_rows(rows)
    if "sizes" not in cells:
        return Chosen(count, runs, None)
    widths = None
    if "corners" not in cells:
        widths = [source.shape_of(part)[-1] for part in cells["by_size"]]
    sizes = sizes_of(cells["sizes"], source, what)
    return Chosen(count, runs, starts_of(sizes, runs.first, widths))


def _described_cells(described: dict[str, Any], lists: Ragged) -> dict[str, Any]:
    """Return the description of some of the cells that `described` describes."""
    kept: dict[str, Any] = {k: described[k] for k in ("storage", "fixed") if k in described}
    if lists.size:
        return {**kept, "corners": given(lists.table)}
    sizes = lists.sizes.astype(np.int64)
    return {**kept, "sizes": given(sizes), "corners": given(lists.values)}
