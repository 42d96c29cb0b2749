"""A field on a plane through the cells: a slice, or a projection, at each resolution.

Pixels are cells of a level. Planes of a tree have a resolution for each level from that of one
pixel on; those of patches for each level, and coarser ones of averages.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ambar.snapshot.interop.raster import raster_reader
from ambar.snapshot.regions import Box, domain_part
from ambar.viewer.sampling import as_float32

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr

Method: TypeAlias = Literal["slice", "project", "grid"]


@dataclass(frozen=True)
class Resolution:
    """The pixels of a plane: cells of a level, or the mean of `factor` cells along each side."""

    level: int
    factor: int
    pixel: tuple[float, float]
    """Sides of a pixel, code length."""
    shape: tuple[int, int]
    """Columns and rows of the whole plane."""


@dataclass(frozen=True)
class Pixels:
    """A rectangle of pixels of a plane, from the lower left one."""

    left: int
    right: int
    bottom: int
    top: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return max(self.top - self.bottom, 0), max(self.right - self.left, 0)


@dataclass(frozen=True)
class Plane:
    """A field on a plane perpendicular to an axis of the box; of two dimensions, the box itself."""

    amr: Amr
    field: str
    method: Method = "slice"
    axis: int = 2
    at: float = 0.0
    """Position of a slice on the axis, code length."""
    weight: str | None = None
    """The weight of a projection; None for the integral."""
    unit: str = "code"
    is_exact: bool = False
    """Whether values keep their precision; otherwise they are float32, as the screen shows them."""

    @property
    def axes(self) -> tuple[int, int]:
        """The numbers of the horizontal and the vertical axis."""
        first, second = (axis for axis in range(3) if axis != self.axis)
        return first, second

    @cached_property
    def lower(self) -> tuple[float, float]:
        """The lower left corner, code length."""
        first, second = self.axes
        return self.amr.lower[first], self.amr.lower[second]

    @cached_property
    def upper(self) -> tuple[float, float]:
        """The upper right corner, code length."""
        first, second = self.axes
        return self.amr._core.upper[first], self.amr._core.upper[second]

    @cached_property
    def resolutions(self) -> list[Resolution]:
        """The resolutions, the finest first."""
        lowest, highest = self.amr.levels
        if self.amr.layout == "tree":
            return [self._resolution(level) for level in range(highest, -1, -1)]
        found = [self._resolution(level) for level in range(highest, lowest - 1, -1)]
        factor = 1
        while max(found[-1].shape) > 64:
            factor *= 2
            found.append(self._resolution(lowest, factor))
        return found

    def neighbours(self, resolution: Resolution) -> tuple[Resolution, Resolution]:
        """Return the finer and the coarser resolution; the same at the ends."""
        known = self.resolutions
        place = known.index(resolution)
        return known[max(place - 1, 0)], known[min(place + 1, len(known) - 1)]

    def _resolution(self, level: int, factor: int = 1) -> Resolution:
        sizes = self.amr.cell_size(level)
        pixel = (sizes[self.axes[0]] * factor, sizes[self.axes[1]] * factor)
        ends = zip(self.lower, self.upper, pixel, strict=True)
        columns, rows = (math.ceil((high - low) / side - 1e-6) for low, high, side in ends)
        return Resolution(level, factor, pixel, (columns, rows))

    def key(self, resolution: Resolution) -> tuple[object, ...]:
        """Return what identifies the pixels of a resolution; slices of one layer of cells agree."""
        layer: object = None
        if self.method == "slice":
            size = self.amr.cell_size(resolution.level)[self.axis]
            layer = math.floor((self.at - self.amr.lower[self.axis]) / size)
        what = (self.field, self.method, self.axis, layer, self.weight, self.unit, self.is_exact)
        # The cache of tiles outlives pages: a weak reference lets it not keep files open.
        return (weakref.ref(self.amr), *what, resolution.level, resolution.factor)

    def read(self, resolution: Resolution, pixels: Pixels) -> np.ndarray:
        """Return the values of some pixels, row by row from the lowest one.

        Raises CorruptError if a chunk is damaged.
        """
        factor = resolution.factor
        sides = [side / factor for side in resolution.pixel]
        # Corners a quarter of a cell inside are never rounded to the next cell.
        starts = (pixels.left * factor + 0.25, pixels.bottom * factor + 0.25)
        ends = (pixels.right * factor - 0.25, pixels.top * factor - 0.25)
        low, high = self._corners(starts, sides), self._corners(ends, sides)
        options: dict[str, Any] = {"preview": False}
        if self.method == "slice":
            options = {"axis": self.axis, "at": self.at}
        elif self.method == "project":
            options = {"axis": self.axis, "weight": self.weight}
        core, box = self.amr._core, Box(low, high, "code")
        reader = raster_reader(
            self.amr,
            self.method,
            self.field,
            self.axes,
            resolution.level,
            domain_part(box, self.amr.info, core.lower, core.upper),
            self.unit,
            None,
            options,
        )
        values = _averaged(reader.image(), factor)
        return values if self.is_exact else as_float32(values)

    def _corners(self, cells: tuple[float, float], sides: list[float]) -> list[float | None]:
        corner: list[float | None] = [None] * self.amr.ndim
        for axis, low, cell, side in zip(self.axes, self.lower, cells, sides, strict=True):
            corner[axis] = low + cell * side
        return corner


def _averaged(values: np.ndarray, factor: int) -> np.ndarray:
    """Return the means of blocks of `factor` x `factor` values; those at the end may be smaller."""
    if factor == 1:
        return values
    rows, columns = (-(-size // factor) * factor for size in values.shape)
    padding = [(0, rows - values.shape[0]), (0, columns - values.shape[1])]
    padded = np.pad(values, padding, constant_values=np.nan)
    blocks = padded.reshape(rows // factor, factor, columns // factor, factor)
    with np.errstate(invalid="ignore"):
        counts = np.isfinite(blocks).sum(axis=(1, 3))
        means: np.ndarray = np.nansum(blocks, axis=(1, 3)) / np.where(counts, counts, np.nan)
    return means
