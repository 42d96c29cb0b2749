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
from ambar.formats.yt.source import Key, YtField, name_of
from ambar.snapshot.amrex_info import AmrexLevel
from ambar.snapshot.interop.patch_levels import joined_to_boxes

_CACHED_BYTES = 1 << 28
"""Most bytes of fields that are kept for later reads, besides one field."""
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

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._ndim = int(dataset.dimensionality)
        self._lock = Lock()
        self._cache: OrderedDict[tuple[Any, ...], np.ndarray] = OrderedDict()

    @property
    def info(self) -> tuple[AmrexLevel, ...]:
        """The levels, for the run information."""
        return tuple(
            AmrexLevel(
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
        keys = {field.name: field for field in fields}

        def read(level: int, box: int, name: str, start: int, stop: int) -> np.ndarray:
            with self._lock:  # yt is not safe for threads
                values = self._read(level, box, keys[name].key, start, stop)
            return np.ascontiguousarray(values, np.float64)

        return _core.Patches(self._description(list(keys)), read)

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
        total = sum(one.nbytes for one in self._cache.values())
        while total > _CACHED_BYTES and len(self._cache) > 1:
            total -= self._cache.popitem(last=False)[1].nbytes
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
            levels.append(
                BoxLevel(boxes, tuple(cells.tolist()), size, (ratio,) * self._ndim)
            )
            self._grids.append(grids)
        self.levels = levels
        self.has_parents = not self._is_nested()
        if self.has_parents:
            self.levels = with_parents(levels)

    def _is_nested(self) -> bool:
        """Return whether the boxes of each level are inside those of the next coarser one."""
        try:
            _core.Patches(self._description([]), lambda *_: None).amr([])
        except _core.InvalidError:
            return False
        return True

    def _read(self, level: int, box: int, key: Key, start: int, stop: int) -> np.ndarray:
        grids = self._grids[level]
        if box >= len(grids):
            return np.full(stop - start, np.nan)

        def values() -> np.ndarray:
            grid = self._dataset.index.grids[grids[box]]
            read = np.asarray(grid[key], np.float64).ravel(order="F")
            grid.clear_data()
            return read

        return self._cached((level, box, key), values)[start:stop]


class OctreeCells(Cells):
    """The leaf cells of an octree, joined to boxes level by level."""

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
        own: list[np.ndarray] = []
        self._rows: list[np.ndarray] = []
        shapes = [
            tuple(int(cells) for cells in np.rint(root * 2.0**number))
            for number in range(first, last + 1)
        ]
        for number, shape in zip(range(first, last + 1), shapes, strict=True):
            rows = np.flatnonzero(numbers == number)
            cells = np.floor((centers[rows] - lower) / (width / shape)).astype(np.int64)
            boxes, order = joined_to_boxes(cells)
            own.append(boxes)
            self._rows.append(rows[order])
        self._starts = [
            np.concatenate([[0], np.cumsum((boxes[:, 1] - boxes[:, 0]).prod(axis=1))])
            for boxes in own
        ]
        self.has_parents = len(own) > 1
        refined = np.empty((0, self._ndim), np.int64)
        boxes_of: list[np.ndarray] = []
        for place in range(len(own) - 1, -1, -1):
            parents = joined_to_boxes(refined)[0]
            boxes_of.insert(0, np.concatenate([own[place], parents]))
            leaves = _cells_of(own[place])
            refined = np.unique(np.concatenate([leaves, refined]) >> 1, axis=0)
        self.levels = [
            BoxLevel(
                boxes,
                shape,
                tuple((width / shape).tolist()),
                (1 if place == len(own) - 1 else 2,) * self._ndim,
            )
            for place, (boxes, shape) in enumerate(zip(boxes_of, shapes, strict=True))
        ]

    def _read(self, level: int, box: int, key: Key, start: int, stop: int) -> np.ndarray:
        starts = self._starts[level]
        if box >= len(starts) - 1:
            return np.full(stop - start, np.nan)

        def values() -> np.ndarray:
            read = np.asarray(self._data[key], np.float64)
            self._data.clear_data()
            return read

        rows = self._rows[level][starts[box] + start : starts[box] + stop]
        return self._cached((key,), values)[rows]


def _cells_of(boxes: np.ndarray) -> np.ndarray:
    """Return the cells of boxes: (cells, ndim)."""
    sides = boxes[:, 1] - boxes[:, 0]
    found = [np.empty((0, boxes.shape[2]), np.int64)]
    for shape in np.unique(sides, axis=0):
        inside = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
        corners = boxes[(sides == shape).all(axis=1), 0]
        found.append((corners[:, None] + inside.reshape(1, -1, len(shape))).reshape(-1, len(shape)))
    return np.concatenate(found)


def with_parents(levels: Sequence[BoxLevel]) -> list[BoxLevel]:
    """Return levels with boxes under all finer ones: those that are missing are added at the end."""
    found = list(levels)
    for place in range(len(found) - 1, 0, -1):
        coarser = found[place - 1]
        needed = _coarsened(found[place].boxes, coarser.ratio)
        missing = _uncovered(needed, coarser.boxes)
        boxes = np.concatenate([coarser.boxes, missing])
        found[place - 1] = BoxLevel(boxes, coarser.shape, coarser.cell_size, coarser.ratio)
    return found


def _coarsened(boxes: np.ndarray, ratio: Iterable[int]) -> np.ndarray:
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
