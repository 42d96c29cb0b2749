"""Cells of yt datasets as levels of boxes: grids, and octrees whose leaf cells are joined to boxes.

Codes that write leaf cells only, such as Athena++ and those of octrees, have no values where a
level is refined. The layout needs boxes there: they are added, and their values are the means of
the finer cells, which are not stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from ambar import _core
from ambar.formats.yt.source import (
    Key,
    YtField,
    has_single_precision,
    name_of,
    reading,
)
from ambar.snapshot.amrex_info import PatchLevel
from ambar.snapshot.interop.patch_levels import joined_to_boxes

_CACHED_BYTES = 1 << 27
"""Most bytes of fields that are kept for later reads, besides one field."""
_REFINED = -1
"""The row of a refined cell, which has no value."""
_ALIGNED = 1e-3
"""How far the corner of a box may be from that of a cell, in cells."""


@dataclass(frozen=True)
class BoxLevel:
    """A level."""

    boxes: np.ndarray
    """int64 of shape (boxes, 2, ndim): first cell, and after the last, from the lower corner."""
    shape: tuple[int, ...]
    """Cells of the domain in each dimension."""
    cell_size: tuple[float, ...]
    """Sides of a cell, code length."""
    ratio: tuple[int, ...]
    """Refinement ratio to the next level; 1 for the finest level."""

    @property
    def cells(self) -> int:
        """The number of cells in the boxes."""
        return int((self.boxes[:, 1] - self.boxes[:, 0]).prod(axis=1).sum())


class Cells(ABC):
    """The cells of a dataset, in boxes."""

    levels: list[BoxLevel]
    has_parents: bool
    """Whether boxes without values were added: the last ones of their levels."""
    is_single = False
    """Whether fields on disk are stored as float32; False after a value that is not one."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._ndim = int(dataset.dimensionality)
        self._lock = Lock()
        self._cache: OrderedDict[tuple[Any, ...], np.ndarray] = OrderedDict()
        self._cached_bytes = 0
        self._on_disk = set(dataset.field_list)

    @property
    def info(self) -> tuple[PatchLevel, ...]:
        """The levels, for the run information."""
        return tuple(
            PatchLevel(
                lo=(0,) * self._ndim,
                hi=level.shape,
                cell_size=level.cell_size,
                ratio=level.ratio,
                boxes=len(level.boxes),
                cells=level.cells,
            )
            for level in self.levels
        )

    def patches(self, fields: Sequence[YtField]) -> _core.Patches:
        """Return the boxes and their values."""
        keys = {field.name: field.key for field in fields}
        dtypes = {
            name: np.dtype(np.float32 if self.is_single and key in self._on_disk else np.float64)
            for name, key in keys.items()
        }

        def read(level: int, box: int, name: str, start: int, stop: int) -> np.ndarray:
            with self._lock, reading(self._dataset, name):  # yt is not safe for threads
                values = self._read(level, box, keys[name], start, stop)
            stored = np.ascontiguousarray(values, dtypes[name])
            if dtypes[name] != values.dtype and not np.array_equal(stored, values, equal_nan=True):
                self.is_single = False
                raise ValueError(f"values of {name} are not float32")
            return stored

        description = self._description(list(keys))
        return _core.Patches({**description, "dtypes": [str(one) for one in dtypes.values()]}, read)

    def _description(self, names: list[str]) -> dict[str, Any]:
        lower = self._dataset.domain_left_edge.to_value("code_length")[: self._ndim]
        upper = self._dataset.domain_right_edge.to_value("code_length")[: self._ndim]
        levels = [
            {
                "domain": [[0] * self._ndim, list(level.shape)],
                "boxes": level.boxes.tolist(),
                "cell_size": list(level.cell_size),
                "ratio": list(level.ratio),
            }
            for level in self.levels
        ]
        return {
            "ndim": self._ndim,
            "lower": lower.tolist(),
            "upper": upper.tolist(),
            "fields": names,
            "dtypes": ["float64"] * len(names),
            "levels": levels,
        }

    @abstractmethod
    def _read(self, level: int, box: int, key: Key, start: int, stop: int) -> np.ndarray:
        """Return a field on the cells `start` to `stop` of a box, x fastest."""

    def _cached(self, name: tuple[Any, ...], read: Callable[[], np.ndarray]) -> np.ndarray:
        """Return values, of the cache or read."""
        if name in self._cache:
            self._cache.move_to_end(name)
            return self._cache[name]
        values = read()
        self._cache[name] = values
        self._cached_bytes += values.nbytes
        while self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return values


class GridCells(Cells):
    """The cells of a dataset of grids."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        index = dataset.index
        axes = slice(0, self._ndim)
        numbers = np.asarray(index.grid_levels).ravel().astype(np.int64)
        self._first = int(numbers.min())
        lower = dataset.domain_left_edge.to_value("code_length")[axes]
        width = dataset.domain_width.to_value("code_length")[axes]
        shape = np.asarray(dataset.domain_dimensions, np.int64)[axes]
        corners = index.grid_left_edge.to_value("code_length")[:, axes]
        sides = np.asarray(index.grid_dimensions, np.int64)[:, axes]
        levels = []
        self._grids: list[np.ndarray] = []
        for number in range(self._first, int(numbers.max()) + 1):
            cells = shape * int(dataset.relative_refinement(0, number))
            last = number == numbers.max()
            ratio = 1 if last else int(dataset.relative_refinement(number, number + 1))
            grids = np.flatnonzero(numbers == number)
            exact = (corners[grids] - lower) / (width / cells)
            lo = np.rint(exact).astype(np.int64)
            if grids.size and np.abs(exact - lo).max() > _ALIGNED:
                raise _core.UnsupportedError(
                    f"{name_of(dataset)}: expected grids of whole cells of a level of the domain, "
                    f"found a grid of level {number} at {corners[grids][0].tolist()}; convert "
                    "fields of dataset.covering_grid with ambar.create"
                )
            boxes = np.stack([lo, lo + sides[grids]], axis=1)
            size = tuple((width / cells).tolist())
            levels.append(BoxLevel(boxes, tuple(cells.tolist()), size, (ratio,) * self._ndim))
            self._grids.append(grids)
        self.levels = levels
        self.has_parents = not self._is_nested()
        if self.has_parents:
            self.levels = with_parents(levels)
        self.is_single = has_single_precision(dataset)

    def _is_nested(self) -> bool:
        """Return whether the boxes of each level are inside those of the next coarser one."""
        try:
            _core.Patches(self._description([]), lambda *_: b"").amr([])
        except _core.InvalidError:
            return False
        return True

    def _read(self, level: int, box: int, key: Key, start: int, stop: int) -> np.ndarray:
        grids = self._grids[level]
        if box >= len(grids):
            return np.full(stop - start, np.nan)

        def values() -> np.ndarray:
            grid = self._dataset.index.grids[grids[box]]
            grid.field_data.pop(key, None)  # which may be in other units
            read = np.asarray(grid[key], np.float64).ravel(order="F")
            if key in self._on_disk:
                del grid.field_data[key]
            else:
                grid.clear_data()
            return read

        return self._cached((level, box, key), values)[start:stop]


class OctreeCells(Cells):
    """The cells of an octree: octs joined to boxes, level by level."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._data = dataset.all_data()
        axes = slice(0, self._ndim)
        lower = dataset.domain_left_edge.to_value("code_length")[axes]
        width = dataset.domain_width.to_value("code_length")[axes]
        root = np.asarray(dataset.domain_dimensions, np.int64)[axes]
        sides = self._data.fwidth[:, 0].to_value("code_length")
        numbers = np.rint(np.log2(width[0] / root[0] / sides)).astype(np.int64)
        del sides
        centers = self._data.fcoords.to_value("code_length")[:, axes]
        first, last = min(int(numbers.min(initial=0)), 0), int(numbers.max(initial=0))
        self._rows: list[np.ndarray] = []
        self._starts: list[np.ndarray] = []
        self.levels = []
        refined = np.empty((0, self._ndim), np.int64)
        for number in range(last, first - 1, -1):
            shape = tuple(int(cells) for cells in np.rint(root * 2.0**number))
            rows = np.flatnonzero(numbers == number)
            leaves = np.floor((centers[rows] - lower) / (width / shape)).astype(np.int64)
            cells = np.concatenate([leaves, refined])
            rows = np.concatenate([rows, np.full(len(refined), _REFINED)])
            side = 1 if number == first else 2
            octs = np.unique(cells // side, axis=0)
            if len(octs) * side**self._ndim != len(cells):
                raise _core.UnsupportedError(
                    f"{name_of(dataset)}: expected octs with all of their cells once, found "
                    f"{len(cells)} cells in {len(octs)} octs of level {number}; convert fields of "
                    "dataset.arbitrary_grid with ambar.create"
                )
            boxes = joined_to_boxes(octs)[0] * side
            self._rows.insert(0, rows[_order_in(boxes, cells)])
            counts = (boxes[:, 1] - boxes[:, 0]).prod(axis=1)
            self._starts.insert(0, np.concatenate([[0], np.cumsum(counts)]))
            size = tuple((width / shape).tolist())
            ratio = (1 if number == last else 2,) * self._ndim
            self.levels.insert(0, BoxLevel(boxes, shape, size, ratio))
            refined = octs
        self.has_parents = len(self.levels) > 1

    def _read(self, level: int, box: int, key: Key, start: int, stop: int) -> np.ndarray:
        first = self._starts[level][box]

        def values() -> np.ndarray:
            read: np.ndarray = np.asarray(self._data[key], np.float64)
            self._data.clear_data()
            return read

        rows = self._rows[level][first + start : first + stop]
        found: np.ndarray = self._cached((key,), values)[rows]
        found[rows == _REFINED] = np.nan
        return found


def _order_in(boxes: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the indices of cells box by box, x fastest in each box; boxes consist of the cells."""
    inside = _cells_of(boxes)
    sorting, wanted = np.lexsort(cells.T), np.lexsort(inside.T)
    order = np.empty_like(sorting)
    order[wanted] = sorting
    return order


def _cells_of(boxes: np.ndarray) -> np.ndarray:
    """Return the cells of boxes, box by box, x fastest in each box: (cells, ndim)."""
    sides = boxes[:, 1] - boxes[:, 0]
    counts = sides.prod(axis=1)
    starts = np.cumsum(counts) - counts
    place = np.arange(counts.sum()) - np.repeat(starts, counts)
    found = np.empty((len(place), boxes.shape[2]), np.int64)
    for axis in range(boxes.shape[2]):
        side = np.repeat(sides[:, axis], counts)
        found[:, axis] = np.repeat(boxes[:, 0, axis], counts) + place % side
        place //= side
    return found


def with_parents(levels: Sequence[BoxLevel]) -> list[BoxLevel]:
    """Return levels with boxes under all finer ones; missing ones are added at the end."""
    found = list(levels)
    for place in range(len(found) - 1, 0, -1):
        coarser = found[place - 1]
        needed = _coarsened(found[place].boxes, coarser.ratio)
        if place > 1:  # boxes consist of whole cells of the next coarser level
            above = np.asarray(found[place - 2].ratio)
            needed = _coarsened(needed, above) * above
        missing = _uncovered(needed, coarser.boxes)
        boxes = np.concatenate([coarser.boxes, missing])
        found[place - 1] = BoxLevel(boxes, coarser.shape, coarser.cell_size, coarser.ratio)
    return found


def _coarsened(boxes: np.ndarray, ratio: Iterable[int] | np.ndarray) -> np.ndarray:
    ratios = np.asarray(list(ratio), np.int64)
    return np.stack([boxes[:, 0] // ratios, -(-boxes[:, 1] // ratios)], axis=1)


def _uncovered(needed: np.ndarray, existing: np.ndarray) -> np.ndarray:
    """Return the part of boxes that other boxes do not cover, as boxes.

    Boxes are compared in tiles: the largest of which all boxes consist.
    """
    ends = np.concatenate([needed, existing]).reshape(-1, needed.shape[2])
    if not len(needed):
        return needed
    tile = np.maximum(np.gcd.reduce(ends, axis=0), 1)
    shape = (ends.max(axis=0) // tile + 1).tolist()
    wanted, there = (
        np.ravel_multi_index(tuple(_cells_of(boxes // tile).T), shape)
        for boxes in (needed, existing)
    )
    missing = np.setdiff1d(wanted, there)
    tiles = np.stack(np.unravel_index(missing, shape), axis=1).astype(np.int64)
    found: np.ndarray = joined_to_boxes(tiles)[0] * tile
    return found
