"""The axes of a plain array: positions of its dimensions on the screen, and their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from ambar import _core
from ambar.interop.xarray.group_reader import attributes_of
from ambar.store.array import Array
from ambar.store.store import Group

_MAX_LABELS = 1 << 22
"""Coordinates of longer dimensions are not read."""
_UNEVEN = 1e-3
"""Largest deviation of evenly spaced coordinates, relative to their distance."""


@dataclass(frozen=True)
class Axis:
    """A dimension of an array.

    Positions are coordinates if these are numbers or times in order, otherwise indices.
    """

    name: str
    size: int
    title: str
    """The name with the unit."""
    labels: np.ndarray | None = None
    """The coordinates; None if the dimension has none."""
    start: float = 0.0
    step: float = 1.0
    """The position of index i is ``start + i * step``, unless positions are uneven."""
    uneven: np.ndarray | None = None
    """Positions in ascending or descending order."""
    is_time: bool = False
    """Whether positions are milliseconds since 1970."""

    def even(self) -> Axis:
        """Return the axis with even positions, as images have: indices if they are uneven."""
        return self if self.uneven is None else Axis(self.name, self.size, self.title, self.labels)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest position of the edges of all values."""
        edges = self.at(np.array([0, self.size - 1])) + np.array([-0.5, 0.5]) * self.step
        return float(edges.min()), float(edges.max())

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Return the positions of indices."""
        return self.start + indices * self.step if self.uneven is None else self.uneven[indices]

    def label(self, index: int) -> str:
        """Return the coordinate at an index as text."""
        return str(index) if self.labels is None else text_of(self.labels[index])

    def index(self, position: float) -> int:
        """Return the index of the value at a position, or the nearest one."""
        if self.uneven is None:
            return int(min(max(round((position - self.start) / self.step), 0), self.size - 1))
        return int(np.argmin(abs(self.uneven - position)))

    def window(self, low: float, high: float, pixels: int) -> slice:
        """Return indices that cover positions, in steps that leave at least a value per pixel.

        Examples
        --------
        >>> Axis("x", 1000, "x").window(100, 899, 100)
        slice(96, 904, 8)
        """
        first, last = sorted((self.index(low), self.index(high)))
        step = 1 << max(((last - first + 1) // max(pixels, 1)).bit_length() - 1, 0)
        return slice(first // step * step, min((last // step + 1) * step, self.size), step)

    def span(self, part: slice) -> tuple[float, float]:
        """Return the lowest position of a window of an even axis, and its width."""
        count = len(range(part.start, part.stop, part.step))
        edge = self.start + (part.start - 0.5) * self.step
        width = count * part.step * self.step
        return (edge, width) if width > 0 else (edge + width, -width)


def axes_of(group: Group, array: Array) -> list[Axis]:
    """Return the axes of an array of a store, with coordinates of variables named like them."""
    dims = array.dims or (None,) * array.ndim
    return [
        _axis(group, array, dim or f"dimension {number}", size)
        for number, (dim, size) in enumerate(zip(dims, array.shape, strict=True))
    ]


def _axis(group: Group, array: Array, name: str, size: int) -> Axis:
    plain = Axis(name, size, name)
    coordinate = _coordinate(group, array, name)
    if coordinate is None or coordinate.shape != (size,) or not 0 < size <= _MAX_LABELS:
        return plain
    try:
        labels = decode(coordinate, coordinate.read())
    except _core.AmbarError:  # damaged: the axis has indices
        return plain
    kind = labels.dtype.kind
    plain = replace(plain, title=title_of(name, coordinate, labels), labels=labels)
    if kind not in "iufM" or size < 2:
        return plain
    positions = labels.astype("M8[ns]").astype("f8") / 1e6 if kind == "M" else labels.astype("f8")
    step = float(positions[-1] - positions[0]) / (size - 1)
    if not np.all(np.diff(positions) * np.sign(step) > 0):
        return plain
    even = positions[0] + np.arange(size) * step
    is_even = bool(np.all(abs(positions - even) <= _UNEVEN * abs(step)))
    return replace(
        plain,
        start=float(positions[0]),
        step=step,
        uneven=None if is_even else positions,
        is_time=kind == "M",
    )


def _coordinate(group: Group, array: Array, name: str) -> Array | None:
    """Return the variable of a dimension, in the group of an array or the nearest one above."""
    folder = array.path
    while folder:
        folder = folder.rpartition("/")[0]
        path = f"{folder}/{name}".removeprefix(group.path).strip("/")
        if path in group and isinstance(found := group[path], Array):
            return found
    return None


def decode(array: Array, values: np.ndarray) -> np.ndarray:
    """Decode a part of an array by the CF conventions, as xarray does: fill values, scales, times.

    Returns the values unchanged if the attributes cannot be decoded.
    """
    dims = [f"axis {number}" for number in range(values.ndim)]
    variable: Any = xr.Variable(dims, values, attributes_of(array))
    try:
        found: np.ndarray = xr.conventions.decode_cf_variable(array.path, variable).values
    except (TypeError, ValueError, OverflowError):
        return values
    return values if found.dtype.kind == "O" else found


def title_of(name: str, array: Array, values: np.ndarray | None = None) -> str:
    """Return the name of a variable with its unit, which times do not have."""
    unit = array.attrs.get("units", array.attrs.get("unit"))
    is_time = values is not None and values.dtype.kind in "mM"
    return f"{name} ({unit})" if isinstance(unit, str) and unit.strip() and not is_time else name


def text_of(value: Any) -> str:
    """Return a coordinate or a value as short text.

    Examples
    --------
    >>> text_of(np.datetime64("2020-01-01T06:00:00.000000000")), text_of(np.float32(0.1))
    ('2020-01-01 06:00', '0.1')
    """
    if isinstance(value, np.datetime64):
        text = np.datetime_as_string(value, unit="ms").replace("T", " ")
        return str(text).removesuffix(".000").removesuffix(":00").removesuffix(" 00:00")
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.7g}"
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
