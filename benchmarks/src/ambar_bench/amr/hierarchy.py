"""The boxes of a plotfile and all their values, covered cells too, as the methods get them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Box:
    """A box of a level."""

    lo: np.ndarray
    """(3,) int64: its first cell, z, y, x."""
    shape: tuple[int, int, int]
    """Cells in z, y, x."""
    owner: str
    """What is the same for boxes that one rank wrote: the name of their file."""
    values: dict[str, Values]
    """Fields of this shape."""
    uncovered: np.ndarray
    """Of this shape: cells that no finer level covers."""

    @property
    def hi(self) -> np.ndarray:
        """The cell after the last one, z, y, x."""
        return self.lo + self.shape


@dataclass
class Level:
    """A level: its boxes, and how many times finer it is than the one below, z, y, x."""

    boxes: list[Box]
    ratio: np.ndarray = field(default_factory=lambda: np.ones(3, np.int64))

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first cell of all boxes and the one after the last."""
        lo = np.min([box.lo for box in self.boxes], axis=0)
        return lo, np.max([box.hi for box in self.boxes], axis=0)

    def fills_a_cuboid(self) -> bool:
        """Whether the boxes lie side by side and leave nothing out."""
        lo, hi = self.bounds()
        return int(np.prod(hi - lo)) == sum(box.uncovered.size for box in self.boxes)


@dataclass
class Hierarchy:
    """What a plotfile holds. Plotfiles of fewer dimensions have one cell in the missing ones."""

    path: str
    ndim: int
    fields: list[str]
    levels: list[Level]

    def boxes(self) -> Iterator[Box]:
        """Yield the boxes of all levels, the coarsest first."""
        for level in self.levels:
            yield from level.boxes

    def raw_bytes(self, name: str) -> int:
        """Return the bytes of a field in the plotfile, covered cells too."""
        return sum(box.values[name].nbytes for box in self.boxes())

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type of a field."""
        return next(self.boxes()).values[name].dtype

    def value_range(self, name: str) -> float:
        """Return largest minus smallest finite value of a field in uncovered cells."""
        lowest, highest = np.inf, -np.inf
        for box in self.boxes():
            values = box.values[name][box.uncovered].astype(np.float64)
            values = values[np.isfinite(values)]
            if values.size:
                lowest, highest = min(lowest, values.min()), max(highest, values.max())
        return float(highest - lowest) if highest > lowest else 0.0

    def cells(self) -> tuple[int, int]:
        """Return the number of all cells and of the uncovered ones."""
        boxes = list(self.boxes())
        total = sum(box.uncovered.size for box in boxes)
        return total, int(sum(np.count_nonzero(box.uncovered) for box in boxes))

    def by_owner(self) -> list[Hierarchy]:
        """Return a hierarchy of one level for the boxes of each level and owner."""
        parts = []
        for level in self.levels:
            owners = dict.fromkeys(box.owner for box in level.boxes)
            for owner in owners:
                boxes = [box for box in level.boxes if box.owner == owner]
                parts.append(Hierarchy(self.path, self.ndim, self.fields, [Level(boxes)]))
        return parts


def load_levels(path: Path) -> Hierarchy:
    """Read a plotfile, native or in HDF5: all fields of all boxes.

    Raises
    ------
    ValueError
        If it is not a plotfile.
    """
    from ambar_bench.amr import plotfile

    read = plotfile.read_hdf5_plotfile if path.is_file() else plotfile.read_plotfile
    hierarchy = read(path)
    for coarse, fine in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        _mark_covered(coarse, fine)
    return hierarchy


def _mark_covered(coarse: Level, fine: Level) -> None:
    for covering in fine.boxes:
        lo = covering.lo // fine.ratio
        hi = -(-covering.hi // fine.ratio)
        for box in coarse.boxes:
            start = np.maximum(lo, box.lo) - box.lo
            end = np.minimum(hi, box.hi) - box.lo
            if (start < end).all():
                place = tuple(slice(a, b) for a, b in zip(start, end, strict=True))
                box.uncovered[place] = False
