"""Grids of openPMD meshes: which meshes form the cells of a snapshot, their levels and boxes."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ambar.formats.openpmd.description import SCALAR, value_of

_LEVEL = re.compile(r"(.+?)_lvl(\d+)")
_SIDE = 64
"""The longest side of a box, in cells: boxes are read one by one."""
_BLOCK = 8
"""The side of the blocks in which unwritten cells of a refined level are searched."""


class MeshComponent(NamedTuple):
    """The place of a component in a description."""

    mesh: str
    component: str

    @property
    def field(self) -> str:
        """The name of the field: "E_x", "rho"; without the level."""
        match = _LEVEL.fullmatch(self.mesh)
        name = match[1] if match else self.mesh
        return name if self.component == SCALAR else f"{name}_{self.component}"

    @property
    def level(self) -> int:
        """The refinement level that WarpX appends to the name: 1 for "E_lvl1"."""
        match = _LEVEL.fullmatch(self.mesh)
        return int(match[2]) if match else 0


@dataclass(frozen=True)
class Grid:
    """A regular grid; tuples are in the order of the dimensions of its arrays."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    offset: tuple[float, ...]
    unit: float
    """gridUnitSI: meters of one unit of length."""

    @property
    def order(self) -> list[int]:
        """The dimensions of the arrays in ambar's order: x, y, z if these are the axes."""
        if len(set(self.axes)) == len(self.axes) and set(self.axes) <= set("xyz"):
            return [self.axes.index(axis) for axis in sorted(self.axes)]
        return list(reversed(range(len(self.axes))))


def axes_of(mesh: Mapping[str, Any], name: str) -> Any:
    """Return a list of values for each axis, in the order of the dimensions of the arrays."""
    values = value_of(mesh["attributes"], name) or []
    return tuple(reversed(values) if value_of(mesh["attributes"], "dataOrder") == "F" else values)


def grid_of(mesh: Mapping[str, Any], component: str) -> Grid | None:
    """Return the grid of a component; None unless it is cartesian, in 2 or 3 dimensions."""
    part = mesh["components"][component]
    attributes = mesh["attributes"]
    grid = Grid(
        axes=axes_of(mesh, "axisLabels"),
        shape=tuple(part["shape"]),
        spacing=tuple(map(float, axes_of(mesh, "gridSpacing"))),
        offset=tuple(map(float, axes_of(mesh, "gridGlobalOffset"))),
        unit=float(value_of(attributes, "gridUnitSI", 1.0)),
    )
    ndim = len(grid.shape)
    is_regular = (
        value_of(attributes, "geometry", "cartesian") == "cartesian"
        and ndim in (2, 3)
        and {len(grid.axes), len(grid.spacing), len(grid.offset)} == {ndim}
        and min(grid.shape) > 0
        and all(0 < side < math.inf for side in grid.spacing)
        and all(map(math.isfinite, grid.offset))
        and 0 < grid.unit < math.inf
    )
    return grid if is_regular else None


@dataclass(frozen=True)
class CellLevel:
    """A level of cells; lists are in ambar's order of axes."""

    grid: Grid
    ratio: list[int]
    """How much finer its cells are than those of the level below; 1 for the coarsest."""
    refinement: list[int]
    """How much finer its cells are than those of level 0."""
    start: list[int]
    """The index of the first cell of its arrays on the lattice of the level."""


@dataclass(frozen=True)
class CellMeshes:
    """The meshes that form the cells of a snapshot."""

    levels: list[CellLevel]
    fields: dict[str, list[MeshComponent]]
    """The component of each field on each level."""

    @property
    def coarsest(self) -> Grid:
        """The grid of level 0."""
        return self.levels[0].grid


def cells_of(meshes: Mapping[str, Any]) -> CellMeshes | None:
    """Return the fields that share a grid on each level: the largest such set; None for none."""
    found: dict[int, dict[str, tuple[MeshComponent, Grid]]] = {}
    for name, mesh in meshes.items():
        for component, part in mesh["components"].items():
            place = MeshComponent(name, component)
            grid = grid_of(mesh, component)
            fields = found.setdefault(place.level, {})
            if grid and part["dtype"] in ("float32", "float64") and place.field not in fields:
                fields[place.field] = (place, grid)
    if not found.get(0):
        return None
    grid = _most_common(found[0].values())
    dimensions = [1] * len(grid.shape)
    levels = [CellLevel(grid, dimensions, dimensions, [0] * len(grid.shape))]
    chosen = {name: [place] for name, (place, own) in found[0].items() if own == grid}

    def dtype(place: MeshComponent) -> str:
        return str(meshes[place.mesh]["components"][place.component]["dtype"])

    for number in itertools.count(1):
        finer = {
            name: pair
            for name, pair in found.get(number, {}).items()
            if name in chosen and dtype(pair[0]) == dtype(chosen[name][0])
        }
        grid = _most_common(finer.values()) if finer else grid
        level = _refined(levels, grid) if finer else None
        if level is None:
            break
        levels.append(level)
        chosen = {
            name: [*chosen[name], place] for name, (place, own) in finer.items() if own == grid
        }
    return CellMeshes(levels, chosen)


def _most_common(pairs: Iterable[tuple[MeshComponent, Grid]]) -> Grid:
    return Counter(grid for _, grid in pairs).most_common(1)[0][0]


def _refined(levels: Sequence[CellLevel], grid: Grid) -> CellLevel | None:
    """Return the next level; None if its cells do not divide those of the last level."""
    base, below = levels[0].grid, levels[-1]
    if grid.axes != base.axes or not math.isclose(grid.unit, base.unit):
        return None
    ratios, starts = [], []
    for k, d in enumerate(base.order):
        exact = below.grid.spacing[d] / grid.spacing[d]
        start = (grid.offset[d] - base.offset[d]) / grid.spacing[d]
        ratio, first = round(exact), round(start)
        end = base.shape[d] * below.refinement[k] * ratio
        is_aligned = abs(exact - ratio) < 1e-6 * exact and abs(start - first) < 1e-3
        if not is_aligned or ratio < 1 or first < 0 or first + grid.shape[d] > end:
            return None
        ratios.append(ratio)
        starts.append(first)
    if max(ratios) == 1 or max(ratios) > 1024:
        return None
    refinement = [own * more for own, more in zip(below.refinement, ratios, strict=True)]
    return CellLevel(grid, ratios, refinement, starts)


Corners = tuple[tuple[int, ...], tuple[int, ...]]
"""The first index of a part of an array, and its shape."""


class WrittenBoxes(NamedTuple):
    """The boxes of a level that have values."""

    boxes: np.ndarray
    """int64 (boxes, 2, ndim), in ambar's order of axes, on the lattice of the level."""
    are_others_zero: bool
    """Whether cells outside of the boxes are 0 in the file; otherwise they are not in it."""


def written_boxes(
    level: CellLevel,
    parts: Sequence[Any],
    tables: Sequence[Sequence[Corners]],
    load: Callable[[Any, Corners], np.ndarray],
    *,
    is_refined: bool,
) -> WrittenBoxes:
    """Return the boxes of a level.

    Parameters
    ----------
    level
        The level.
    parts
        The component of each field.
    tables
        The chunks of each component in the file, as start and shape.
    load
        Reads a part of a component.
    is_refined
        Whether only a part of the cells may have been written, as on refined levels. Files of
        HDF5 do not state which; blocks of zeros in all fields count as not written.
    """
    shape = level.grid.shape
    whole = (tuple([0] * len(shape)), shape)
    first = tables[0]
    is_same = all(set(table) == set(first) for table in tables)
    chunks = list(dict.fromkeys(first)) if is_same and _are_disjoint(first, shape) else [whole]
    is_complete = sum(math.prod(extent) for _, extent in chunks) == math.prod(shape)
    if is_complete and is_refined:
        chunks = _nonzero(shape, parts, load) or [whole]
    elif not is_complete and not is_refined:
        chunks = [whole]
    tiles = [tile for chunk in chunks for tile in tiles_of(*chunk)]
    order = level.grid.order
    start = np.array([lower for lower, _ in tiles], np.int64)[:, order] + level.start
    extent = np.array([sides for _, sides in tiles], np.int64)[:, order]
    return WrittenBoxes(np.stack([start, start + extent], axis=1), is_complete)


def tiles_of(start: Sequence[int], extent: Sequence[int], side: int = _SIDE) -> Iterator[Corners]:
    """Cut a part of an array into tiles of at most `side` cells a side."""
    steps = [range(0, length, side) for length in extent]
    for corner in itertools.product(*steps):
        lower = tuple(a + b for a, b in zip(start, corner, strict=True))
        yield (
            lower,
            tuple(min(side, length - c) for length, c in zip(extent, corner, strict=True)),
        )


def overlaps(
    boxes: np.ndarray, start: Sequence[int], sides: Sequence[int]
) -> Iterator[tuple[int, tuple[slice, ...], tuple[slice, ...]]]:
    """Yield the boxes that overlap a tile: index, and the overlap as a part of tile and box.

    `boxes` is (boxes, 2, ndim): the first and the last index + 1 of each.
    """
    corner = np.array(start)
    low, high = np.maximum(boxes[:, 0], corner), np.minimum(boxes[:, 1], corner + sides)
    for index in np.flatnonzero(np.all(low < high, axis=1)).tolist():
        ends = low[index], high[index]
        own, theirs = (
            tuple(map(slice, *(end - first for end in ends))) for first in (corner, boxes[index, 0])
        )
        yield index, own, theirs


def _are_disjoint(parts: Sequence[Corners], shape: Sequence[int]) -> bool:
    """Whether parts of an array are in it, and none overlaps another."""
    parts = list(dict.fromkeys(parts))
    start = np.array([lower for lower, _ in parts], np.int64).reshape(-1, len(shape))
    stop = start + np.array([extent for _, extent in parts], np.int64).reshape(-1, len(shape))
    if not parts or np.any(start < 0) or np.any(start >= stop) or np.any(stop > shape):
        return False
    # Only parts that begin before the end of a part along this axis can overlap it.
    axis = int(np.argmax([len(np.unique(column)) for column in start.T]))
    order = np.argsort(start[:, axis])
    start, stop = start[order], stop[order]
    ends = np.searchsorted(start[:, axis], stop[:, axis])
    return not any(
        np.any(np.all((start[i + 1 : end] < stop[i]) & (start[i] < stop[i + 1 : end]), axis=1))
        for i, end in enumerate(ends)
    )


def _nonzero(
    shape: tuple[int, ...], parts: Sequence[Any], load: Callable[[Any, Corners], np.ndarray]
) -> list[Corners]:
    """Return boxes around the blocks in which a value of a field is not +0."""
    mask = np.zeros([-(-side // _BLOCK) for side in shape], bool)
    for tile in tiles_of([0] * len(shape), shape):
        start, extent = tile
        blocks = [-(-side // _BLOCK) for side in extent]
        own = tuple(slice(a // _BLOCK, a // _BLOCK + n) for a, n in zip(start, blocks, strict=True))
        for part in parts:
            if mask[own].all():
                break
            values = load(part, tile)
            bits = values.view(f"u{values.dtype.itemsize}") != 0
            padding = [(0, n * _BLOCK - side) for n, side in zip(blocks, extent, strict=True)]
            sides = [part for n in blocks for part in (n, _BLOCK)]
            within = tuple(range(1, 2 * len(shape), 2))
            mask[own] |= np.pad(bits, padding).reshape(sides).any(axis=within)
    boxes = []
    for lower, extent in _filled(mask, tuple([0] * mask.ndim)):
        start = tuple(a * _BLOCK for a in lower)
        stop = (min((a + n) * _BLOCK, s) for a, n, s in zip(lower, extent, shape, strict=True))
        boxes.append((start, tuple(b - a for a, b in zip(start, stop, strict=True))))
    return boxes


def _filled(mask: np.ndarray, start: tuple[int, ...]) -> Iterator[Corners]:
    """Cut the true elements into boxes, by halving the longest side of mixed ones."""
    if not mask.any():
        return
    if mask.all():
        yield start, mask.shape
        return
    axis = int(np.argmax(mask.shape))
    middle = mask.shape[axis] // 2
    first, second = np.split(mask, [middle], axis)
    yield from _filled(first, start)
    moved = tuple(a + middle * (d == axis) for d, a in enumerate(start))
    yield from _filled(second, moved)
