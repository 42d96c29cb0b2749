"""The values of cells in patches of a store, read box by box or, of large boxes, in parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ambar import _core
from ambar.snapshot.copies.stored_group import StoredGroup

_WHOLE_BYTES = 32 << 20
"""Boxes of more bytes are read in parts, from the unit blocks."""


class PatchValues:
    """The values of fields on boxes of a store, including covered cells.

    Parameters
    ----------
    amr
        The cells.
    group
        Their group.
    """

    def __init__(self, amr: _core.Amr, group: StoredGroup) -> None:
        self._amr = amr
        self._group = group
        self._levels = group.own["levels"]
        self.boxes = [amr.boxes(level) for level in range(len(self._levels))]
        """By level, int64 of shape (boxes, 2, ndim): first cell, and after the last."""
        self._origins: dict[int, np.ndarray] = {}

    def dtype(self, field: str) -> str:
        """Return the name of the dtype of a field."""
        return self._amr.dtype(field)

    def read(self, level: int, index: int, part: np.ndarray, field: str) -> np.ndarray:
        """Return a field on a part of a box, with dimensions in the order z, y, x."""
        lo, hi = self.boxes[level][index]
        if np.prod(hi - lo) * np.dtype(self.dtype(field)).itemsize > _WHOLE_BYTES:
            return self._read_blocks(level, part, field)
        values = self._amr.read_box(level, index, field).reshape((hi - lo)[::-1])
        return values[_slices(part, lo)]

    def _read_blocks(self, level: int, part: np.ndarray, field: str) -> np.ndarray:
        """Return a field on cells that are in boxes of a level."""
        about = self._levels[level]
        base = f"{self._group.path}/level_{level}"
        array = self._group.store._array(f"{base}/{self._group.array_name(field)}")
        if level not in self._origins:
            self._origins[level] = self._amr.origins(level)
        origins, side = self._origins[level], int(about["side"])
        values = np.empty((part[1] - part[0])[::-1], array.dtype)
        is_near = ((origins < part[1]) & (origins + side > part[0])).all(axis=1)
        for rows in _by_chunk(np.flatnonzero(is_near), array.chunks[0]):
            blocks = array[int(rows[0]) : int(rows[-1]) + 1]
            for row in rows:
                origin = origins[row]
                cells = np.array([np.maximum(origin, part[0]), np.minimum(origin + side, part[1])])
                of_block = blocks[row - rows[0]][_slices(cells, origin)]
                values[_slices(cells, part[0])] = of_block
        if field in about["dropped"]:
            ratio = np.array(about["ratio"], np.int64)
            for covered in _intersections(self.boxes[level + 1] // ratio, part):
                finer = self._read_blocks(level + 1, covered * ratio, field)
                values[_slices(covered, part[0])] = _mean(finer, ratio)
        return values


def _by_chunk(rows: np.ndarray, chunk: int) -> Iterator[np.ndarray]:
    """Return increasing rows by the chunk that they are in."""
    if len(rows):
        yield from np.split(rows, np.flatnonzero(np.diff(rows // chunk)) + 1)


def _intersections(boxes: np.ndarray, part: np.ndarray) -> np.ndarray:
    cut = np.stack([np.maximum(boxes[:, 0], part[0]), np.minimum(boxes[:, 1], part[1])], axis=1)
    return cut[(cut[:, 0] < cut[:, 1]).all(axis=1)]


def _mean(values: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return the means of finer cells, as the format defines them; dimensions z, y, x."""
    steps = ratio[::-1].tolist()
    total = np.zeros([n // step for n, step in zip(values.shape, steps, strict=True)])
    for first in itertools.product(*map(range, steps)):
        total += values[tuple(slice(a, None, step) for a, step in zip(first, steps, strict=True))]
    mean: np.ndarray = total * (1.0 / np.prod(steps))
    return mean.astype(values.dtype)


def _slices(part: np.ndarray, start: np.ndarray) -> tuple[slice, ...]:
    """Return the slices of an array (z, y, x) that begins at `start` for a part of its cells."""
    return tuple(slice(a, b) for a, b in zip(*(part - start).tolist(), strict=True))[::-1]
