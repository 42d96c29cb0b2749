"""Reading the visible part of an array at the resolution of the screen, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ambar.figures.panels import bin_extremes
from ambar.store.array import Array
from ambar.viewer.pages.arrays.axes import decode
from ambar.viewer.sampling import as_floats

_PIECE = 32 << 20
"""Bytes of chunks that are decoded before a picture is shown: larger windows fill gradually."""
_LINE_PIECE = 1 << 22
"""Values of a line that are in memory together."""

Key: TypeAlias = Sequence[int | slice]
"""The index of each dimension: slices with start, stop and step along those that are drawn."""


def read_image(array: Array, key: Key, rows: int) -> Iterator[np.ndarray]:
    """Yield a two-dimensional window of an array, more of it each time; the rest is NaN.

    Parameters
    ----------
    array : Array
        The array.
    key : sequence of int or slice
        Two slices with steps, and the indices of all other dimensions.
    rows : int
        The number of the dimension that becomes the rows of the image.

    Yields
    ------
    ndarray (rows, columns)
        Decoded values as floats. Complex numbers become their magnitude.
    """
    slices = _slices(key)
    first = min(slices)
    whole = slices[first]
    image = None
    for piece in _pieces(array, slices):
        values = as_floats(decode(array, array.read(_with(key, first, piece))))
        if image is None:
            shape = [len(range(part.start, part.stop, part.step)) for part in slices.values()]
            image = np.full(shape, np.nan, values.dtype)
        at = (piece.start - whole.start) // whole.step
        image[at : at + len(values)] = values
        yield image if rows == first else image.T


def _slices(key: Key) -> dict[int, slice]:
    """Return the slices of a key by their dimension."""
    return {axis: part for axis, part in enumerate(key) if isinstance(part, slice)}


def _with(key: Key, axis: int, part: slice) -> tuple[int | slice, ...]:
    return (*key[:axis], part, *key[axis + 1 :])


def _pieces(array: Array, slices: dict[int, slice]) -> Iterator[slice]:
    """Yield parts of the first slice: whole rows of chunks, of about `_PIECE` bytes."""
    (axis, whole), *others = slices.items()
    chunks = array.chunks
    touched = ((p.stop - 1) // chunks[n] - p.start // chunks[n] + 1 for n, p in others)
    row = math.prod(touched) * math.prod(chunks) * array.dtype.itemsize
    length = max(_PIECE // max(row, 1), 1) * chunks[axis]
    start = whole.start
    while start < whole.stop:
        end = (start // length + 1) * length
        end = min(start + -(-(end - start) // whole.step) * whole.step, whole.stop)
        yield slice(start, end, whole.step)
        start = end


def read_line(array: Array, key: Key, bins: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices and values along the only slice of a key, more of them each time.

    A line of more than two values per bin has the smallest and the largest value of each bin, so
    that no spike is lost.
    """
    [(axis, whole)] = _slices(key).items()
    width = max((whole.stop - whole.start) // bins, 1)
    length = max(_LINE_PIECE // width, 1) * width
    indices, values = np.empty(0, np.int64), np.empty(0)
    for start in range(whole.start, whole.stop, length):
        piece = slice(start, min(start + length, whole.stop))
        found = as_floats(decode(array, array.read(_with(key, axis, piece))))
        places, shown = bin_extremes(found, width) if width > 2 else (np.arange(len(found)), found)
        indices = np.concatenate([indices, start + places])
        values = np.concatenate([values, shown])
        yield indices, values
