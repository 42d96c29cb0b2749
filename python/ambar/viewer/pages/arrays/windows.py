"""Reading the visible part of an array at the resolution of the screen, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ambar import _core
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


class Difference:
    """The difference of two arrays of equal shape: the values of the other one minus the first's.

    Complex numbers and times are compared as they are drawn: by magnitudes and milliseconds.
    """

    def __init__(self, original: Array, other: Array) -> None:
        self._versions = original, other
        self.chunks, self.dtype = original.chunks, np.dtype("f8")

    def numbers(self, key: Key) -> np.ndarray:
        """Return the values of a window as floats."""
        original, other = (numbers_of(array, key).astype("f8") for array in self._versions)
        return np.asarray(other - original)


@dataclass(frozen=True)
class Window:
    """Values as floats, and the errors of damaged chunks, whose values are NaN."""

    values: np.ndarray
    errors: tuple[Exception, ...] = ()


def numbers_of(array: Array | Difference, key: Key) -> np.ndarray:
    """Return decoded values of a window as floats; complex numbers become their magnitude."""
    if isinstance(array, Difference):
        return array.numbers(key)
    return as_floats(decode(array, array.read(tuple(key))))


def read_image(array: Array | Difference, key: Key, rows: int) -> Iterator[Window]:
    """Yield a two-dimensional window of an array, more of it each time; the rest is NaN.

    Parameters
    ----------
    array : Array or Difference
        The array.
    key : sequence of int or slice
        Two slices with steps, and the indices of all other dimensions.
    rows : int
        The number of the dimension that becomes the rows of the image.

    Yields
    ------
    Window
        Its values have the shape (rows, columns).

    Raises
    ------
    CorruptError
        If all chunks of the window are damaged.
    """
    slices = _slices(key)
    first = min(slices)
    whole = slices[first]
    image = None
    errors: list[Exception] = []
    for piece in _pieces(array, slices):
        found = _read_intact(array, _with(key, first, piece))
        errors += found.errors
        if image is None:
            image = np.full([_length(part) for part in slices.values()], np.nan, found.values.dtype)
        at = (piece.start - whole.start) // whole.step
        image[at : at + len(found.values)] = found.values
        if not errors or not np.isnan(image).all():
            yield Window(image if rows == first else image.T, tuple(errors))
    if image is not None and errors and np.isnan(image).all():
        raise errors[0]


def _read_intact(array: Array | Difference, key: Key) -> Window:
    """Return a window; if a chunk is damaged, without its values."""
    try:
        return Window(numbers_of(array, key))
    except _core.CorruptError as error:
        halves = _halves(array.chunks, key)
        if halves is None:
            shape = [_length(part) for part in _slices(key).values()]
            # Another exception, because the traceback of this one keeps arrays.
            return Window(np.full(shape, np.nan, np.float32), (_core.CorruptError(str(error)),))
    axis, parts = halves
    found = [_read_intact(array, part) for part in parts]
    values = np.concatenate([one.values for one in found], axis=list(_slices(key)).index(axis))
    return Window(values, tuple(error for one in found for error in one.errors))


def _halves(chunks: Sequence[int], key: Key) -> tuple[int, list[Key]] | None:
    """Return the dimension along which a window has most chunks, and both halves of the window.

    None for a window in one chunk.
    """
    touched = {
        axis: range(part.start // chunks[axis], (part.stop - 1) // chunks[axis] + 1)
        for axis, part in _slices(key).items()
    }
    axis = max(touched, key=lambda axis: len(touched[axis]))
    if len(touched[axis]) < 2:
        return None
    part = _slices(key)[axis]
    border = touched[axis][len(touched[axis]) // 2] * chunks[axis]
    middle = part.start + -(-(border - part.start) // part.step) * part.step
    halves = slice(part.start, border, part.step), slice(middle, part.stop, part.step)
    return axis, [_with(key, axis, half) for half in halves if _length(half)]


def _length(part: slice) -> int:
    return len(range(part.start, part.stop, part.step))


def _slices(key: Key) -> dict[int, slice]:
    """Return the slices of a key by their dimension."""
    return {axis: part for axis, part in enumerate(key) if isinstance(part, slice)}


def _with(key: Key, axis: int, part: slice) -> Key:
    return (*key[:axis], part, *key[axis + 1 :])


def _pieces(array: Array | Difference, slices: dict[int, slice]) -> Iterator[slice]:
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


@dataclass(frozen=True)
class LineWindow:
    """Indices along a dimension, their values, and the errors of damaged chunks."""

    indices: np.ndarray
    values: np.ndarray
    errors: tuple[Exception, ...] = ()


def read_line(array: Array | Difference, key: Key, bins: int) -> Iterator[LineWindow]:
    """Yield indices and values along the only slice of a key, more of them each time.

    A line of more than two values per bin has the smallest and the largest value of each bin, so
    that no spike is lost. Raises CorruptError if all chunks of the window are damaged.
    """
    [(axis, whole)] = _slices(key).items()
    width = max((whole.stop - whole.start) // bins, 1)
    length = max(_LINE_PIECE // width, 1) * width
    indices, values = np.empty(0, np.int64), np.empty(0)
    errors: list[Exception] = []
    for start in range(whole.start, whole.stop, length):
        piece = slice(start, min(start + length, whole.stop), 1)
        window = _read_intact(array, _with(key, axis, piece))
        found = window.values
        errors += window.errors
        places, shown = bin_extremes(found, width) if width > 2 else (np.arange(len(found)), found)
        indices = np.concatenate([indices, start + places])
        values = np.concatenate([values, shown])
        if not errors or not np.isnan(values).all():
            yield LineWindow(indices, values, tuple(errors))
    if errors and np.isnan(values).all():
        raise errors[0]
