"""The cells of surfaces and unstructured grids that overlap a box, with renumbered points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.connectivity import Connectivity, used_ids
from ambar.mesh.storage.extents import POLY_CELLS, cell_count, corner_count
from ambar.mesh.storage.references import Description, Key, RowRanges, in_memory, select_rows
from ambar.mesh.vtk.cells import CellSelection, read_connectivity
from ambar.mesh.vtk.fields import read_lattice, read_points
from ambar.snapshot.regions import Bounds, Box, as_box

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
    """The points of a described mesh, of which some are read."""

    def __init__(self, described: Description, reader: ArrayReader) -> None:
        self._described = described.get("points")
        self._reader = reader
        self._all: np.ndarray | None = None
        self._ids, self._coordinates = _NO_IDS, np.zeros((0, 3))
        if self._described is None:
            self._all = self._coordinates
        elif "lattice" in self._described:
            most = corner_count(described.get("cells"), reader)
            self._all = read_lattice(self._described["lattice"], reader, most)
        self.count = reader.shape_of(self._described)[0] if self._all is None else len(self._all)

    def read_all(self) -> np.ndarray:
        """Return the coordinates (points, 3) of all points, which are read once."""
        if self._all is None:
            self._all = read_points(self._described, self._reader)
        return self._all

    def at(self, ids: np.ndarray) -> np.ndarray:
        """Return the coordinates (ids, 3) of points with ascending ids."""
        if self._all is not None:
            return self._all if len(ids) == self.count else self._all.take(ids, axis=0)
        # The points of the cells in the box are among those of the last chunks that were read.
        if not np.isin(ids, self._ids, assume_unique=True).all():
            key = RowRanges.of_rows(ids).key
            reference = select_rows(self._described, (self.count,), key, self._reader)
            self._ids, self._coordinates = ids, read_points(reference, self._reader)
        found: np.ndarray = self._coordinates[np.searchsorted(self._ids, ids)]
        return found

    def describe(self, coordinates: np.ndarray) -> Description | None:
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


def extract_points(described: Description, reader: ArrayReader, criteria: Criteria) -> Extract:
    """Return some of the points of a point set."""
    points = Points(described, reader)
    coordinates = points.read_all()
    matches = np.ones(points.count, bool) if criteria.points is None else criteria.points
    if criteria.overlap is not None:
        matches = matches & criteria.overlap.has_all(criteria.overlap.sides(coordinates))
    rows = np.flatnonzero(matches)
    geometry = {"points": points.describe(coordinates[rows])}
    return Extract(geometry, ((points.count,), (rows,)), no_tuples(None))


def extract_cells(described: Description, reader: ArrayReader, criteria: Criteria) -> Extract:
    """Return some of the cells of an unstructured grid, or of each kind of cells of a surface."""
    points, base, rows, kinds = Points(described, reader), 0, [_NO_IDS], {}
    for name in ("cells", *POLY_CELLS):
        if described.get(name) is not None:
            kinds[name] = _matching_cells(described, name, base, points, reader, criteria)
            rows.append(kinds[name].rows + base)
            base += kinds[name].count
    parts = {name: cells.connectivity for name, cells in kinds.items()}
    geometry: dict[str, Any] = {}
    if "cells" in kinds and kinds["cells"].types is not None:
        geometry["types"] = in_memory(kinds["cells"].types)
    if "faces" in described and "cells" in kinds:
        of_cells, parts["faces"] = _read_faces(described, reader, points.count, kinds["cells"])
        geometry["cell_faces"] = _describe_cells(described["cell_faces"], of_cells)
    ids = np.concatenate([_NO_IDS, *(cells.ids for cells in parts.values())])
    used, new_ids = used_ids(ids, points.count)
    geometry["points"] = points.describe(points.at(used))
    start = 0
    for name, cells in parts.items():
        stop = start + len(cells.ids)
        geometry[name] = _describe_cells(described[name], cells.with_ids(new_ids[start:stop]))
        start = stop
    return Extract(geometry, ((points.count,), (used,)), ((base,), (np.concatenate(rows),)))


def _matching_cells(
    described: Description,
    name: str,
    base: int,
    points: Points,
    reader: ArrayReader,
    criteria: Criteria,
) -> _Cells:
    """Return the cells of one kind that satisfy criteria; only chunks near the box are read.

    `base` is the number of the first of these cells in the mesh.
    """
    overlap, about, types = criteria.overlap, described[name], described.get("types")
    count = cell_count(about, types, reader)
    selection = None
    if overlap is not None and name in (index := described.get("index") or {}):
        selection = _candidates(index, name, count, reader, overlap)
    ranges = RowRanges.all(count) if selection is None else selection.ranges
    if isinstance(types, dict):
        types = reader.get(
            select_rows(types, (count,), ranges.key, reader), "types", ndim=(1,), kinds="u"
        )
    else:
        types = None
    cells = read_connectivity(about, reader, name, points.count, types, selection)
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
    index: dict[str, Any], name: str, count: int, reader: ArrayReader, overlap: BoxOverlap
) -> CellSelection:
    """Return the cells in chunks that overlap the box, by the index."""
    rows, entry = index.get("rows"), index[name]
    if type(rows) is not int or not 1 <= rows < 2**62:
        raise reader.damaged(f"index of {name} is not described")
    chunks = -(-count // rows)
    boxes = reader.get(entry.get("box"), f"boxes of {name}", ndim=(3,), kinds="f")
    if boxes.shape != (chunks, 2, 3):
        raise reader.damaged(f"boxes of {name} are {boxes.shape} of {chunks} chunks")
    found = RowRanges.of_rows(np.flatnonzero(overlap.bounds(boxes)))
    ranges = RowRanges(found.starts * rows, np.minimum(found.stops * rows, count))
    starts = np.zeros((chunks, 0), np.int64)
    if "start" in entry:
        starts = reader.get(entry["start"], f"starts of {name}", ndim=(2,), kinds="i")
    if len(starts) != chunks:
        raise reader.damaged(f"starts of {name} are {len(starts)} of {chunks} chunks")
    return CellSelection(count, ranges, starts[found.starts].astype(np.int64))


def _read_faces(
    described: Description, reader: ArrayReader, points: int, cells: _Cells
) -> tuple[Connectivity, Connectivity]:
    """Return the face ids of polyhedra, and the connectivity of these faces.

    All faces are read for this.
    """
    faces = read_connectivity(described["faces"], reader, "faces", points)
    of_cells = read_connectivity(described["cell_faces"], reader, "faces of cells", len(faces))
    if len(of_cells) != cells.count:
        raise reader.damaged(f"faces are of {len(of_cells)} cells, not {cells.count}")
    of_cells = of_cells.take(cells.rows)
    used, new_ids = used_ids(of_cells.ids, len(faces))
    return of_cells.with_ids(new_ids), faces.take(used)


def _describe_cells(described: Description, cells: Connectivity) -> Description:
    """Return the description of cells in memory, of the storage of `described`."""
    about: dict[str, Any] = {k: described[k] for k in ("storage", "fixed") if k in described}
    if cells.size:
        return {**about, "corners": in_memory(cells.table)}
    sizes = cells.sizes.astype(np.int64)
    return {**about, "sizes": in_memory(sizes), "corners": in_memory(cells.ids)}


_ALL_SIDES = 0b111111
_BLOCK = 1 << 14
"""Number of cells that are compared in one step, so that they stay in the cache."""


class BoxOverlap:
    """Tests whether cells overlap a box: whether their bounds do, edges included.

    Parameters
    ----------
    region : Box or (x0, x1, y0, y1, z0, z1)
        The box in the coordinates of the mesh.

    Raises
    ------
    ValueError
        If it is neither, or the box does not have three coordinates.
    """

    def __init__(self, region: Box | Bounds) -> None:
        # Arrays of float64: NumPy would round Python floats to coordinates of float32.
        lo, hi = as_box(region).coordinates()
        self.lo = np.array(lo)
        self.hi = np.array(hi)

    def sides(self, points: np.ndarray) -> np.ndarray:
        """Return for points (..., 3) on which sides of the six faces they are, as bits.

        Each bit says that a point is not beyond a face, as in the outcodes of Cohen and Sutherland.
        The bounds of a cell overlap the box if its points together have all bits. NaN has none.
        """
        found = np.zeros(points.shape[:-1], np.uint8)
        for axis in range(3):
            along = points[..., axis]
            found |= (along >= self.lo[axis]).astype(np.uint8) << (2 * axis)
            found |= (along <= self.hi[axis]).astype(np.uint8) << (2 * axis + 1)
        return found

    def cells(self, cells: Connectivity, sides: np.ndarray) -> np.ndarray:
        """Return which cells overlap the box (cells,), by the `sides` of all points."""
        if not cells.size:
            return self.has_all(cells.reduce(np.bitwise_or, sides[cells.ids]))
        found = np.empty(len(cells), bool)
        for start in range(0, len(found), _BLOCK):
            columns = cells.table[start : start + _BLOCK].T
            of_cells = sides[columns[0]]
            for column in columns[1:]:
                of_cells |= sides[column]
            found[start : start + _BLOCK] = self.has_all(of_cells)
        return found

    @staticmethod
    def has_all(sides: np.ndarray) -> np.ndarray:
        """Return where all six bits are set."""
        return np.asarray(sides == _ALL_SIDES)

    def bounds(self, bounds: np.ndarray) -> np.ndarray:
        """Return which bounds (n, 2, 3), lower and upper corner, overlap; those of NaN do not."""
        overlaps = (bounds[:, 0] <= self.hi) & (bounds[:, 1] >= self.lo)
        return np.asarray(overlaps.all(axis=1))
