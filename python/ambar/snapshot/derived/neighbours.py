"""Gradients of fields of a tree of cells, from the face neighbours of each cell.

The neighbours of a cell are the cells of its level across its faces. Where the tree is finer there,
their value is the mean of the leaf cells in them; where it is coarser, that of the coarser cell at
its centre. A least-squares fit to the differences between cell centres is exact for linear fields,
and is the central difference where all neighbours are of one level. At faces of a box that is not
periodic, the difference is one-sided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ambar import _core
from ambar.snapshot.regions import AXES

_BITS = 63

GRADIENTS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "velocity_divergence": (("x", "x", 1), ("y", "y", 1), ("z", "z", 1)),
    "vorticity_x": (("z", "y", 1), ("y", "z", -1)),
    "vorticity_y": (("x", "z", 1), ("z", "x", -1)),
    "vorticity_z": (("y", "x", 1), ("x", "y", -1)),
    "vorticity_magnitude": (),
}
"""Fields of gradients of the velocity: sums of (component, derivative, sign)."""


class Neighbours:
    """A tree of leaf cells, in which the neighbours of cells are found by their Morton keys."""

    def __init__(
        self, level: np.ndarray, index: np.ndarray, counts: Sequence[int], periodic: Sequence[bool]
    ) -> None:
        """Sort the leaf cells.

        Parameters
        ----------
        level
            The level of each cell.
        index
            The index of each cell on its level, of shape (ndim, cells).
        counts
            Cells of level 0 in each dimension.
        periodic
            Whether the box is periodic, in each dimension.
        """
        self._level = level.astype(np.int64)
        self._ndim = len(index)
        self._finest = int(self._level.max(initial=0))
        self._sides = np.array(counts, dtype=np.int64) << self._finest
        self._periodic = periodic
        self._bits = int(self._sides.max() - 1).bit_length()
        if self._ndim * self._bits > _BITS:
            raise _core.UnsupportedError(
                f"expected at most {_BITS // self._ndim} bits of a cell index for gradients, found "
                f"cells of level {self._finest}"
            )
        corner = index.astype(np.int64) << (self._finest - self._level)
        keys = _morton(corner, self._bits)
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        sides = np.int64(1) << (self._finest - self._level)
        self._volume = (sides**self._ndim)[self._order]
        self._centres = (corner + sides / 2)[:, self._order]

    def gradients(
        self, fields: Sequence[np.ndarray], level: np.ndarray, index: np.ndarray
    ) -> list[np.ndarray]:
        """Return the derivatives of fields of the leaf cells, at some of the cells.

        Each has the shape (ndim, cells), in the unit of the field per cell of the finest level.
        """
        level = level.astype(np.int64)
        side = np.int64(1) << (self._finest - level)
        own = (index.astype(np.int64) + 0.5) * side
        corner = index.astype(np.int64) * side
        rows = self._find(_morton(corner, self._bits))
        sorted_fields = [field.astype(np.float64)[self._order] for field in fields]
        matrix = np.zeros((len(level), self._ndim, self._ndim))
        right = np.zeros((len(fields), len(level), self._ndim))
        for axis in range(self._ndim):
            for step in (-1, 1):
                place = corner.copy()
                place[axis] += step * side
                exists = np.ones(len(level), dtype=bool)
                if self._periodic[axis]:
                    place[axis] %= self._sides[axis]
                else:
                    exists = (place[axis] >= 0) & (place[axis] < self._sides[axis])
                    place[axis] = np.clip(place[axis], 0, self._sides[axis] - 1)
                first = _morton(place, self._bits)
                found = self._find(first)
                cell = np.maximum(found, 0)
                exists &= found >= 0
                is_finer = self._volume[cell] < side**self._ndim
                centre = self._centres[:, cell]
                centre[:, is_finer] = (place + side / 2)[:, is_finer]
                offset = (centre - own) / side
                for other in range(self._ndim):
                    if self._periodic[other]:
                        whole = self._sides[other] / side
                        offset[other] -= whole * np.round(offset[other] / whole)
                weight = exists / (offset**2).sum(axis=0).clip(0.25)
                matrix += np.einsum("n,in,jn->nij", weight, offset, offset)
                end = first + side**self._ndim
                for number, values in enumerate(sorted_fields):
                    beyond = self._mean(values, cell, end, is_finer & exists)
                    right[number] += (weight * (beyond - values[rows]) * offset).T
        # A singular matrix has no neighbours along an axis, whose derivative is then unknown.
        singular = np.abs(np.linalg.det(matrix)) < 1e-12
        matrix[singular] = np.eye(self._ndim)
        solved: np.ndarray = np.linalg.solve(matrix, right[..., None])[..., 0]
        solved[:, singular] = np.nan
        return [values.T / side for values in solved]

    def _find(self, keys: np.ndarray) -> np.ndarray:
        """Return the sorted leaf cell that contains each key; -1 if there is none."""
        found = np.searchsorted(self._keys, keys, side="right") - 1
        inside = (found >= 0) & (keys < self._keys[found] + self._volume[found])
        return np.where(inside, found, -1)

    def _mean(
        self, values: np.ndarray, cell: np.ndarray, end: np.ndarray, is_finer: np.ndarray
    ) -> np.ndarray:
        """Return values of cells, or the mean of the leaf cells up to the key `end`."""
        means: np.ndarray = values[cell]
        if is_finer.any():
            last = np.searchsorted(self._keys, end[is_finer], side="left")
            lengths = last - cell[is_finer]
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            rows = np.repeat(cell[is_finer] - starts, lengths) + np.arange(lengths.sum())
            volumes = self._volume[rows].astype(np.float64)
            sums = np.add.reduceat(values[rows] * volumes, starts)
            means[is_finer] = sums / np.add.reduceat(volumes, starts)
        return means


def fields_of_gradients(
    names: Sequence[str], gradients: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the fields of `GRADIENTS`; `gradients` are those of the velocity components."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        if name == "vorticity_magnitude":
            parts = [_sum(f"vorticity_{axis}", gradients) for axis in AXES]
            found[name] = np.sqrt(np.sum([part**2 for part in parts], axis=0))
        else:
            found[name] = _sum(name, gradients)
    return found


def _sum(name: str, gradients: Mapping[str, np.ndarray]) -> np.ndarray:
    terms = [
        sign * gradients[component][AXES.index(axis)]
        for component, axis, sign in GRADIENTS[name]
        if component in gradients and AXES.index(axis) < len(gradients[component])
    ]
    shape = next(iter(gradients.values())).shape[1:]
    return np.sum(terms, axis=0) if terms else np.zeros(shape)


def _morton(place: np.ndarray, bits: int) -> np.ndarray:
    """Return the Morton keys of places of shape (ndim, cells) below 2**bits."""
    ndim = len(place)
    keys = np.zeros(place.shape[1:], dtype=np.int64)
    for bit in range(bits):
        for axis in range(ndim):
            keys |= ((place[axis] >> bit) & 1) << (ndim * bit + axis)
    return keys
