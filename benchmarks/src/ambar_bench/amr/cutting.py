"""Fields cut into pieces: boxes, merged levels, unit blocks aligned or box by box."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ambar_bench.amr.hierarchy import Hierarchy, Level, Values

PADDING = 10
"""Unit blocks are used if padding is at most one cell in this number, as in a store."""


@dataclass
class Piece:
    """An array that a method compresses in one call."""

    values: Values
    counted: np.ndarray
    """Of the same shape: the uncovered cells, each of which is in one piece."""
    origins: np.ndarray | None = None
    """Of unit blocks (n, z, y, x): where they lie, (n, 3)."""
    state: dict[str, Any] = field(default_factory=dict)
    """What a method keeps with the piece."""


def boxes(level: Level, name: str) -> list[Piece]:
    """Return each box unchanged."""
    return [Piece(np.ascontiguousarray(box.values[name]), box.uncovered) for box in level.boxes]


def row(level: Level, name: str) -> list[Piece]:
    """Return all boxes as one row, one behind the other, as AMReX's HDF5 output has them."""
    values = np.concatenate([box.values[name].ravel() for box in level.boxes])
    return [Piece(values, np.concatenate([box.uncovered.ravel() for box in level.boxes]))]


def merged(level: Level, name: str) -> list[Piece]:
    """Return the level as one array where its boxes fill a cuboid, else box by box."""
    if not level.fills_a_cuboid():
        return boxes(level, name)
    lo, hi = level.bounds()
    values = np.empty(tuple(hi - lo), level.boxes[0].values[name].dtype)
    counted = np.empty(values.shape, bool)
    for box in level.boxes:
        place = _slices(box.lo - lo, box.hi - lo)
        values[place] = box.values[name]
        counted[place] = box.uncovered
    return [Piece(values, counted)]


def box_blocks(level: Level, name: str, side: int, ndim: int) -> list[Piece]:
    """Return unit blocks cut box by box from each box's corner; covered blocks are left out.

    Where a side of a box is not a multiple, its last cells are repeated.
    """
    sides = _sides(side, ndim)
    blocks, counted = [], []
    for box in level.boxes:
        pad = [(0, -n % s) for n, s in zip(box.shape, sides, strict=True)]
        mask = _cut(np.pad(box.uncovered, pad), sides)
        keep = mask.any(axis=(1, 2, 3))
        blocks.append(_cut(np.pad(box.values[name], pad, mode="edge"), sides)[keep])
        counted.append(mask[keep])
    return [Piece(np.concatenate(blocks), np.concatenate(counted))]


class Aligned:
    """The unit blocks of a level as a store has them: at multiples of their side, along the curve.

    Cells that are covered or in no box are NaN.
    """

    def __init__(self, level: Level, side: int, ndim: int) -> None:
        self.sides = _sides(side, ndim)
        self._level = level
        places: dict[tuple[int, ...], list[Any]] = {}
        for number, box in enumerate(level.boxes):
            first, last = box.lo // self.sides, -(-box.hi // self.sides)
            ranges = [range(int(a), int(b)) for a, b in zip(first, last, strict=True)]
            for place in product(*ranges):
                corner = np.array(place) * self.sides
                start, end = np.maximum(corner, box.lo), np.minimum(corner + self.sides, box.hi)
                from_box = _slices(start - box.lo, end - box.lo)
                if box.uncovered[from_box].any():
                    part = (number, from_box, _slices(start - corner, end - corner))
                    places.setdefault(place, []).append(part)
        ordered = sorted(places, key=_morton)
        self._parts = [places[place] for place in ordered]
        self.origins = (np.array(ordered, np.int64).reshape(-1, 3) * self.sides).astype(np.int64)
        self.counted = np.zeros((len(ordered), *self.sides), bool)
        for block, parts in zip(self.counted, self._parts, strict=True):
            for number, from_box, to in parts:
                block[to] = level.boxes[number].uncovered[from_box]

    @property
    def fits(self) -> bool:
        """Whether there is so little padding that a store would take blocks of this side."""
        kept = int(np.count_nonzero(self.counted))
        return (self.counted.size - kept) * PADDING <= kept

    def values(self, name: str) -> Values:
        """Return a field on the blocks, (n, z, y, x)."""
        dtype = self._level.boxes[0].values[name].dtype
        values = np.full(self.counted.shape, np.nan, dtype)
        for block, parts in zip(values, self._parts, strict=True):
            for number, from_box, to in parts:
                block[to] = self._level.boxes[number].values[name][from_box]
        values[~self.counted] = np.nan
        return values

    def chunks(self, name: str, cells: int) -> list[Piece]:
        """Return the blocks in chunks of about `cells` cells."""
        step = max(1, cells // int(np.prod(self.sides)))
        values = self.values(name)
        return [
            Piece(
                values[at : at + step], self.counted[at : at + step], self.origins[at : at + step]
            )
            for at in range(0, len(values), step)
        ]


def aligned(hierarchy: Hierarchy, sides: tuple[int, ...]) -> list[Aligned]:
    """Return the unit blocks of all levels, of the first of `sides` with little padding."""
    found = []
    for level in hierarchy.levels:
        tried = (Aligned(level, side, hierarchy.ndim) for side in sides)
        blocks = next(tried)
        while not blocks.fits and (smaller := next(tried, None)) is not None:
            blocks = smaller
        found.append(blocks)
    return found


def _sides(side: int, ndim: int) -> np.ndarray:
    return np.array([1] * (3 - ndim) + [side] * ndim, np.int64)


def _slices(start: np.ndarray, end: np.ndarray) -> tuple[slice, ...]:
    return tuple(slice(int(a), int(b)) for a, b in zip(start, end, strict=True))


def _cut(values: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Return an array as blocks (n, z, y, x)."""
    nz, ny, nx = (int(n // s) for n, s in zip(values.shape, sides, strict=True))
    sz, sy, sx = (int(s) for s in sides)
    parts = values.reshape(nz, sz, ny, sy, nx, sx).transpose(0, 2, 4, 1, 3, 5)
    return np.ascontiguousarray(parts.reshape(-1, sz, sy, sx))


def _morton(place: tuple[int, ...]) -> int:
    """Return a block's number along the Morton curve, x lowest; places may be negative."""
    key = 0
    for bit in range(21):
        for shift, coordinate in zip((2, 1, 0), place, strict=True):
            key |= (coordinate + (1 << 20) >> bit & 1) << 3 * bit + shift
    return key
