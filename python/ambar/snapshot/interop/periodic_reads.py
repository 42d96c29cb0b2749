"""Rasters of boxes that continue over periodic faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ambar.snapshot.regions import cell_range

Read: TypeAlias = Callable[[Sequence[float], Sequence[float]], tuple[np.ndarray, Sequence[int]]]
"""Returns the values between two corners, by x, y, z, and the first grid cell."""

_Part: TypeAlias = tuple[int, int]
"""The first cell along an axis, and the cell after the last one."""


@dataclass(frozen=True)
class PeriodicRead:
    """Reads between two corners that may be outside of a domain, as if it were repeated."""

    read: Read
    """Reads in the domain."""
    read_weight: Read | None
    """Reads the mean of the weight along a line of sight; None for equal weights."""
    lower: np.ndarray
    """The lower corner of the domain."""
    sizes: np.ndarray
    """The sides of a grid cell."""
    counts: np.ndarray
    """The grid cells of the domain along each axis."""
    axes: tuple[int, ...]
    """The axes of the values; they are integrals or means along another axis."""
    is_integral: bool

    def __call__(
        self, lo: Sequence[float], hi: Sequence[float]
    ) -> tuple[np.ndarray, Sequence[int]]:
        """Return the values between two corners, and the first grid cell, which may be negative."""
        first, after = cell_range(lo, hi, self.lower, self.sizes)
        if (first >= 0).all() and (after <= self.counts).all():
            return self.read(lo, hi)
        ends = zip(first.tolist(), after.tolist(), self.counts.tolist(), strict=True)
        parts = [_parts(*axis) for axis in ends]
        return self._join(self.read, parts, []), first[list(self.axes)].tolist()

    def _join(
        self, read: Read, parts: Sequence[Sequence[_Part]], chosen: Sequence[_Part]
    ) -> np.ndarray:
        """Return the values of all parts; `chosen` are those of the first axes."""
        axis = len(chosen)
        if axis == len(parts):
            # Corners in the outermost cells, so that rounding adds no cells.
            inside = np.array(chosen).T + np.array([[0.25], [-0.25]])
            return read(*(self.lower + inside * self.sizes).tolist())[0]
        values = [self._join(read, parts, [*chosen, part]) for part in parts[axis]]
        if axis in self.axes:
            return np.concatenate(values, axis=self.axes.index(axis))
        if len(values) == 1:
            return values[0]
        if self.is_integral:
            return np.asarray(np.sum(values, axis=0))
        weights = [np.full_like(values[0], end - start) for start, end in parts[axis]]
        if self.read_weight is not None and read is self.read:
            means = [self._join(self.read_weight, parts, [*chosen, part]) for part in parts[axis]]
            weights = [cells * mean for cells, mean in zip(weights, means, strict=True)]
        with np.errstate(invalid="ignore", divide="ignore"):
            products = [
                np.where(weight == 0, 0.0, value * weight)
                for value, weight in zip(values, weights, strict=True)
            ]
            return np.asarray(np.sum(products, axis=0) / np.sum(weights, axis=0))


def _parts(first: int, after: int, count: int) -> list[_Part]:
    """Return the cells of a domain of `count` cells that are those from `first` on."""
    parts = []
    while first < after:
        start = first % count
        stop = min(count, start + after - first)
        parts.append((start, stop))
        first += stop - start
    return parts
