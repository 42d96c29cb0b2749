"""Connectivity of cells: the point ids of all cells end to end, with offsets, as in VTK."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar.mesh.storage.references import expand_ranges

_SORT_BELOW = 1 / 16
"""Ratio of ids to points below which `used_ids` sorts the ids, and does not mark all points."""


class Connectivity:
    """Lists of ids, one for each cell: its points, or the faces of a polyhedron.

    Parameters
    ----------
    ids : ndarray (ids,)
        The lists, end to end.
    offsets : ndarray (cells + 1,), optional
        Where each list starts, and the end of the last one. None if `size` is given.
    size : int, default 0
        The length of every list, if all are equally long and not empty; else 0.
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray | None = None, size: int = 0) -> None:
        self.ids = ids
        self.size = size
        self._offsets = offsets

    @classmethod
    def of_table(cls, table: np.ndarray) -> Connectivity:
        """Return cells of one size, from ids (cells, size)."""
        return cls(table.reshape(-1), size=table.shape[1])

    @classmethod
    def of_sizes(cls, sizes: np.ndarray, ids: np.ndarray) -> Connectivity:
        """Return cells with the given sizes (cells,)."""
        return cls(ids, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    def __len__(self) -> int:
        return len(self.ids) // self.size if self.size else len(self.offsets) - 1

    @property
    def offsets(self) -> np.ndarray:
        """Where each list starts, and the end of the last one (cells + 1,)."""
        if self._offsets is None:
            count = len(self)
            self._offsets = np.arange(0, count * self.size + 1, self.size, dtype=self.ids.dtype)
        return self._offsets

    @property
    def sizes(self) -> np.ndarray:
        """The length of each list (cells,)."""
        return np.diff(self.offsets)

    @property
    def table(self) -> np.ndarray:
        """The ids (cells, size) of cells of one size."""
        return self.ids.reshape(-1, self.size)

    def take(self, rows: np.ndarray) -> Connectivity:
        """Return the cells with the given indices, or where the mask `rows` is True."""
        if rows.dtype == bool:
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        if self.size:
            return Connectivity.of_table(self.table.take(rows, axis=0))
        sizes = self.sizes[rows]
        ids = self.ids[expand_ranges(self.offsets[:-1][rows], sizes)]
        return Connectivity.of_sizes(sizes, ids)

    def reduce(self, ufunc: Any, values: np.ndarray) -> np.ndarray:
        """Reduce the values of each cell with a ufunc; 0 for cells without ids.

        `values` (ids, ...) has an item for each of `self.ids`.
        """
        rest = values.shape[1:]
        if self.size:
            found: np.ndarray = ufunc.reduce(values.reshape(-1, self.size, *rest), axis=1)
            return found
        found = np.zeros((len(self), *rest), values.dtype)
        full = self.sizes > 0
        if full.any():
            # reduceat returns the value at the start of an empty list: leave those lists out.
            found[full] = ufunc.reduceat(values, self.offsets[:-1][full], axis=0)
        return found

    def with_ids(self, ids: np.ndarray) -> Connectivity:
        """Return cells of the same sizes with other ids, converted to the dtype of these."""
        ids = ids.astype(self.ids.dtype, copy=False)
        return Connectivity(ids, None if self.size else self.offsets, self.size)


def used_ids(ids: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the ids 0 to `count` occur, ascending, and the index of each of `ids` there.

    This renumbers the points of some of the cells of a mesh.
    """
    if len(ids) < count * _SORT_BELOW:
        used, indices = np.unique(ids, return_inverse=True)
        return used.astype(np.int64), indices.reshape(-1)
    occurs = np.zeros(count, bool)
    occurs[ids] = True
    used = np.flatnonzero(occurs)
    if len(used) == count:
        return used, ids
    index_of = np.empty(count, np.int64)
    index_of[used] = np.arange(len(used))
    return used, index_of[ids]


def order_by_first_use(ids: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids 0 to `count` in the order of their first use, and the new id of each.

    Ids that do not occur come last, ascending.
    """
    first = np.full(count, len(ids), np.int64)
    # NumPy keeps the last of several values assigned to an index: assign backward.
    first[ids[::-1]] = np.arange(len(ids), dtype=np.int64)[::-1]
    order = np.argsort(first, kind="stable")
    new = np.empty(count, np.int64)
    new[order] = np.arange(count)
    return order, new
