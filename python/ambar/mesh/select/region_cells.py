"""Some of the cells of surfaces and unstructured grids, with renumbered points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_references import Key, RowRanges, in_memory, select_rows
from ambar.mesh.storage.connectivity import Connectivity, used_ids
from ambar.mesh.storage.extents import POLY_CELLS, cell_count, corner_count
from ambar.mesh.vtk.cells import CellSelection, read_connectivity
from ambar.mesh.vtk.points import read_lattice

Tuples = tuple[tuple[int, ...], Key]
"""The shape of the tuples of points or cells, and the selected ones."""
_NO_IDS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Extract:
    """A part of a mesh."""

    geometry: dict[str, Any]
    """The keys that replace those of the description of the whole mesh."""
    points: Tuples
    """Its points."""
    cells: Tuples
    """Its cells."""


def no_tuples(shape: tuple[int, ...] | None) -> Tuples:
    """Return an empty selection."""
    shape = shape or (0,)
    return shape, (slice(0, 0),) * len(shape)


@dataclass(frozen=True)
class Criteria:
    """The criteria for the cells of a data set."""

    overlap: BoxOverlap | None = None
    """The box that their bounds overlap; None for all cells."""
    points: np.ndarray | None = None
    """True for points for which a condition holds; it must hold for all points of a cell."""
    cells: np.ndarray | None = None
    """True for cells for which a condition holds."""


class Points:
    """The points of a mesh, of which some are read."""

    def __init__(self, described: Any, reader: ArrayReader, what: str, most: int = 0) -> None:
        self._described = described
        self._reader = reader
        self._what = f"{what}points"
        self._all: np.ndarray | None = None
        self._ids, self._coordinates = _NO_IDS, np.zeros((0, 3))
        if described is None:
            self._all = self._coordinates
        elif "lattice" in described:
            self._all = read_lattice(described["lattice"], reader, self._what, most)
        self.count = reader.shape_of(described)[0] if self._all is None else len(self._all)

    def read_all(self) -> np.ndarray:
        """Return the coordinates (points, 3) of all points, which are read once."""
        if self._all is None:
            self._all = self._get(self._described)
        return self._all

    def at(self, ids: np.ndarray) -> np.ndarray:
        """Return the coordinates (ids, 3) of points with ascending ids."""
        if self._all is not None:
            return self._all if len(ids) == self.count else self._all.take(ids, axis=0)
        # The points of the cells in the box are among those of the last chunks that were read.
        if not np.isin(ids, self._ids, assume_unique=True).all():
            key = RowRanges.of_rows(ids).key
            reference = select_rows(self._described, (self.count,), key, self._reader)
            self._ids, self._coordinates = ids, self._get(reference)
        found: np.ndarray = self._coordinates[np.searchsorted(self._ids, ids)]
        return found

    def _get(self, reference: Any) -> np.ndarray:
        values = self._reader.get(reference, self._what, ndim=(2,), kinds="iuf")
        if values.shape[1] != 3:
            raise self._reader.damaged(f"{self._what} have shape {values.shape}")
        return values

    def describe(self, coordinates: np.ndarray) -> dict[str, Any] | None:
        """Return the description of points with the given coordinates."""
        if self._described is None:
            return None
        like = {key: value for key, value in self._described.items() if key != "lattice"}
        return in_memory(coordinates, like)


@dataclass(frozen=True)
class _Cells:
    """The cells of one kind that satisfy the criteria."""

    rows: np.ndarray
    """Their numbers among the cells of the kind."""
    count: int
    """The number of all cells of the kind."""
    connectivity: Connectivity
    types: np.ndarray | None
    """Their types, if these are stored for each cell."""


def extract_points(
    described: dict[str, Any], reader: ArrayReader, criteria: Criteria, what: str
) -> Extract:
    """Return some of the points of a point set."""
    points = Points(described.get("points"), reader, what)
    if described.get("points") is None:
        return Extract({}, no_tuples(None), no_tuples(None))
    coordinates = points.read_all()
    matches = np.ones(points.count, bool) if criteria.points is None else criteria.points
    if criteria.overlap is not None:
        matches = matches & criteria.overlap.has_all(criteria.overlap.sides(coordinates))
    rows = np.flatnonzero(matches)
    geometry = {"points": points.describe(coordinates[rows])}
    return Extract(geometry, ((points.count,), (rows,)), no_tuples(None))


def extract_poly(
    described: dict[str, Any], reader: ArrayReader, criteria: Criteria, what: str
) -> Extract:
    """Return some of the vertices, lines, polygons and strips of a surface."""
    points = Points(described.get("points"), reader, what)
    rows, base = [_NO_IDS], 0
    kinds = {}
    for name in POLY_CELLS:
        if described.get(name) is not None:
            cells = _matching_cells(described, name, base, points, reader, criteria, what)
            kinds[name] = cells
            rows.append(cells.rows + base)
            base += cells.count
    ids = [cells.connectivity.ids for cells in kinds.values()]
    used, new_ids = used_ids(np.concatenate([_NO_IDS, *ids]), points.count)
    geometry: dict[str, Any] = {"points": points.describe(points.at(used))}
    start = 0
    for name, cells in kinds.items():
        stop = start + len(cells.connectivity.ids)
        renumbered = cells.connectivity.with_ids(new_ids[start:stop])
        geometry[name] = _describe_cells(described[name], renumbered)
        start = stop
    return Extract(geometry, ((points.count,), (used,)), ((base,), (np.concatenate(rows),)))


def extract_unstructured(
    described: dict[str, Any], reader: ArrayReader, criteria: Criteria, what: str
) -> Extract:
    """Return some of the cells of an unstructured grid."""
    most = corner_count(described.get("cells"), reader)
    points = Points(described.get("points"), reader, what, most)
    if described.get("cells") is None:
        empty = points.describe(points.at(_NO_IDS)) if points.count else None
        geometry = {"points": empty or described.get("points")}
        return Extract(geometry, ((points.count,), (slice(0, 0),)), no_tuples(None))
    cells = _matching_cells(described, "cells", 0, points, reader, criteria, what)
    ids = [cells.connectivity.ids]
    faces = of_cells = None
    if "faces" in described:
        of_cells, faces = _read_faces(described, reader, what, points.count, cells)
        ids.append(faces.ids)
    used, new_ids = used_ids(np.concatenate(ids), points.count)
    count = len(cells.connectivity.ids)
    renumbered = cells.connectivity.with_ids(new_ids[:count])
    geometry = {
        "points": points.describe(points.at(used)),
        "cells": _describe_cells(described["cells"], renumbered),
    }
    if cells.types is not None:
        geometry["types"] = in_memory(cells.types)
    if faces is not None and of_cells is not None:
        geometry["faces"] = _describe_cells(described["faces"], faces.with_ids(new_ids[count:]))
        geometry["cell_faces"] = _describe_cells(described["cell_faces"], of_cells)
    return Extract(geometry, ((points.count,), (used,)), ((cells.count,), (cells.rows,)))


def _matching_cells(
    described: dict[str, Any],
    name: str,
    base: int,
    points: Points,
    reader: ArrayReader,
    criteria: Criteria,
    what: str,
) -> _Cells:
    """Return the cells of one kind that satisfy criteria; only chunks near the box are read.

    `base` is the number of the first of these cells in the mesh.
    """
    overlap = criteria.overlap
    about, types_of_cells = described[name], described.get("types")
    count = cell_count(about, types_of_cells, reader)
    ranges, starts = _candidates(described, name, count, reader, overlap, what)
    types = None
    if isinstance(types_of_cells, dict):
        reference = select_rows(types_of_cells, (count,), ranges.key, reader)
        types = reader.get(reference, f"{what}types", ndim=(1,), kinds="u")
    selection = CellSelection(count, ranges, starts)
    cells = read_connectivity(about, reader, f"{what}{name}", points.count, types, selection)
    matches = np.ones(len(cells), bool)
    if overlap is not None and len(cells) == count:
        # These are all cells, which use most points: read all points, and do not look for them.
        matches = overlap.cells(cells, overlap.sides(points.read_all()))
    elif overlap is not None:
        used, new_ids = used_ids(cells.ids, points.count)
        matches = overlap.cells(cells.with_ids(new_ids), overlap.sides(points.at(used)))
    if criteria.points is not None:
        matches &= cells.reduce(np.logical_and, criteria.points[cells.ids])
    if criteria.cells is not None:
        matches &= criteria.cells[base:][ranges.rows]
    rows = np.flatnonzero(matches) if len(cells) == count else ranges.rows[matches]
    return _Cells(rows, count, cells.take(matches), None if types is None else types[matches])


def _candidates(
    described: dict[str, Any],
    name: str,
    count: int,
    reader: ArrayReader,
    overlap: BoxOverlap | None,
    what: str,
) -> tuple[RowRanges, np.ndarray | None]:
    """Return the cells in chunks that overlap the box, and where their corners start.

    Without an index these are all cells, and None.
    """
    index = described.get("index") or {}
    if overlap is None or name not in index:
        return RowRanges.all(count), None
    rows, entry = index.get("rows"), index[name]
    if type(rows) is not int or not 1 <= rows < 2**62:
        raise reader.damaged(f"{what}index of {name} is not described")
    chunks = -(-count // rows)
    boxes = reader.get(entry.get("box"), f"{what}boxes of {name}", ndim=(3,), kinds="f")
    if boxes.shape != (chunks, 2, 3):
        raise reader.damaged(f"{what}boxes of {name} are {boxes.shape} of {chunks} chunks")
    found = RowRanges.of_rows(np.flatnonzero(overlap.bounds(boxes)))
    ranges = RowRanges(found.starts * rows, np.minimum(found.stops * rows, count))
    if "start" not in entry:
        return ranges, None
    starts = reader.get(entry["start"], f"{what}starts of {name}", ndim=(2,), kinds="i")
    if len(starts) != chunks:
        raise reader.damaged(f"{what}starts of {name} are {len(starts)} of {chunks} chunks")
    return ranges, starts[found.starts].astype(np.int64)


def _read_faces(
    described: dict[str, Any], reader: ArrayReader, what: str, points: int, cells: _Cells
) -> tuple[Connectivity, Connectivity]:
    """Return the face ids of polyhedra, and the connectivity of these faces.

    All faces are read for this.
    """
    faces = read_connectivity(described["faces"], reader, f"{what}faces", points)
    where = f"{what}faces of cells"
    of_cells = read_connectivity(described["cell_faces"], reader, where, len(faces))
    if len(of_cells) != cells.count:
        raise reader.damaged(f"{what}faces are of {len(of_cells)} cells, not {cells.count}")
    of_cells = of_cells.take(cells.rows)
    used, new_ids = used_ids(of_cells.ids, len(faces))
    return of_cells.with_ids(new_ids), faces.take(used)


def _describe_cells(described: dict[str, Any], cells: Connectivity) -> dict[str, Any]:
    """Return the description of cells in memory, of the storage of `described`."""
    about: dict[str, Any] = {k: described[k] for k in ("storage", "fixed") if k in described}
    if cells.size:
        return {**about, "corners": in_memory(cells.table)}
    sizes = cells.sizes.astype(np.int64)
    return {**about, "sizes": in_memory(sizes), "corners": in_memory(cells.ids)}
