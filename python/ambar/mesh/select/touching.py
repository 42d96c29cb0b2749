"""Which cells touch a box: by the corners of each, or the bounds of chunks of them."""

from __future__ import annotations

import numpy as np

from ambar.mesh.storage.ragged_cells import Ragged
from ambar.snapshot.regions import Bounds, Box, as_box

_ALL = 0b111111
_TOGETHER = 1 << 14
"""Cells whose corners are looked at together, so that they stay in the cache."""


class Touching:
    """A box with its faces; a cell touches it if its bounds do.

    Parameters
    ----------
    region
        The box, or bounds (x0, x1, y0, y1, z0, z1), in the mesh's coordinates.

    Raises
    ------
    ValueError
        If it is neither, or a box of other than three coordinates.
    """

    def __init__(self, region: Box | Bounds) -> None:
        # Doubles in NumPy's sense: a plain float would be rounded to coordinates of float32.
        lo, hi = as_box(region).coordinates()
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
        """Return which cells touch it (cells,), by the `sides` of the points that corners count."""
        if not corners.size:
            return self.met(corners.reduce(np.bitwise_or, sides[corners.values]))
        found = np.empty(len(corners), bool)
        for start in range(0, len(found), _TOGETHER):
            columns = corners.table[start : start + _TOGETHER].T
            met = sides[columns[0]]
            for column in columns[1:]:
                met |= sides[column]
            found[start : start + _TOGETHER] = self.met(met)
        return found

    @staticmethod
    def met(sides: np.ndarray) -> np.ndarray:
        """Return where all six conditions are met."""
        return np.asarray(sides == _ALL)

    def bounds(self, bounds: np.ndarray) -> np.ndarray:
        """Return which bounds (n, 2, 3), lower and upper corners, touch it; those of NaN do not."""
        touch = (bounds[:, 0] <= self.hi) & (bounds[:, 1] >= self.lo)
        return np.asarray(touch.all(axis=1))
