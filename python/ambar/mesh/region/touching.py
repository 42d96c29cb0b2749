"""Which cells touch a box: by the corners of each, or the bounds of chunks of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.ragged import Ragged
from ambar.regions import Box

_ALL = 0b111111


class Touching:
    """A box with its faces; a cell touches it if its bounds do.

    Parameters
    ----------
    region
        The box, in the mesh's coordinates.

    Raises
    ------
    InvalidError
        If `region` is no `Box`, or not one of three coordinates.
    """

    def __init__(self, region: Any) -> None:
        if not isinstance(region, Box):
            raise _core.InvalidError(f"a part of a mesh is an ambar.Box, not {region!r:.80}")
        # Doubles in NumPy's sense: a plain float would be rounded to coordinates of float32.
        lo, hi = region.coordinates()
        self.lo = np.array(lo)
        self.hi = np.array(hi)

    def sides(self, points: np.ndarray) -> np.ndarray:
        """Return of points (..., 3) which of the six conditions of the box they meet, as bits.

        A cell touches the box if each is met by one of its corners; NaN meets none.
        """
        found = np.zeros(points.shape[:-1], np.uint8)
        for axis in range(3):
            along = points[..., axis]
            found |= (along >= self.lo[axis]).astype(np.uint8) << (2 * axis)
            found |= (along <= self.hi[axis]).astype(np.uint8) << (2 * axis + 1)
        return found

    def cells(self, corners: Ragged, sides: np.ndarray) -> np.ndarray:
        """Return which cells touch it (cells,), by the `sides` of each of their corners."""
        return self.met(corners.reduce(np.bitwise_or, sides))

    @staticmethod
    def met(sides: np.ndarray) -> np.ndarray:
        """Return where all six conditions are met."""
        return np.asarray(sides == _ALL)

    def bounds(self, bounds: np.ndarray) -> np.ndarray:
        """Return which bounds (n, 2, 3), lower and upper corners, touch it; those of NaN do not."""
        touch = (bounds[:, 0] <= self.hi) & (bounds[:, 1] >= self.lo)
        return np.asarray(touch.all(axis=1))
