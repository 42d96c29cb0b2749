"""Which cells overlap a box, by their points or by the bounds of chunks of cells."""

from __future__ import annotations

import numpy as np

from ambar.mesh.storage.connectivity import Connectivity
from ambar.snapshot.regions import Bounds, Box, as_box

_ALL_SIDES = 0b111111
_BLOCK = 1 << 14
"""Number of cells that are compared in one step, so that they stay in the cache."""


class BoxOverlap:
    """Tests whether cells overlap a box: whether their bounds do, edges included.

    Parameters
    ----------
    region : Box or (x0, x1, y0, y1, z0, z1)
        The box in the coordinates of the mesh.

    Raises
    ------
    ValueError
        If it is neither, or the box does not have three coordinates.
    """

    def __init__(self, region: Box | Bounds) -> None:
        # Arrays of float64: NumPy would round Python floats to coordinates of float32.
        lo, hi = as_box(region).coordinates()
        self.lo = np.array(lo)
        self.hi = np.array(hi)

    def sides(self, points: np.ndarray) -> np.ndarray:
        """Return for points (..., 3) on which sides of the six faces they are, as bits.

        Each bit says that a point is not beyond a face, as in the outcodes of Cohen and Sutherland.
        The bounds of a cell overlap the box if its points together have all bits. NaN has none.
        """
        found = np.zeros(points.shape[:-1], np.uint8)
        for axis in range(3):
            along = points[..., axis]
            found |= (along >= self.lo[axis]).astype(np.uint8) << (2 * axis)
            found |= (along <= self.hi[axis]).astype(np.uint8) << (2 * axis + 1)
        return found

    def cells(self, cells: Connectivity, sides: np.ndarray) -> np.ndarray:
        """Return which cells overlap the box (cells,), by the `sides` of all points."""
        if not cells.size:
            return self.has_all(cells.reduce(np.bitwise_or, sides[cells.ids]))
        found = np.empty(len(cells), bool)
        for start in range(0, len(found), _BLOCK):
            columns = cells.table[start : start + _BLOCK].T
            of_cells = sides[columns[0]]
            for column in columns[1:]:
                of_cells |= sides[column]
            found[start : start + _BLOCK] = self.has_all(of_cells)
        return found

    @staticmethod
    def has_all(sides: np.ndarray) -> np.ndarray:
        """Return where all six bits are set."""
        return np.asarray(sides == _ALL_SIDES)

    def bounds(self, bounds: np.ndarray) -> np.ndarray:
        """Return which bounds (n, 2, 3), lower and upper corner, overlap; those of NaN do not."""
        overlaps = (bounds[:, 0] <= self.hi) & (bounds[:, 1] >= self.lo)
        return np.asarray(overlaps.all(axis=1))
