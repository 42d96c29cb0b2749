"""Cells as NumPy arrays: lists of corners end to end, some of them taken, or renumbered."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar.mesh.storage.array_references import spread

_FEW = 16
"""How many times fewer numbers there must be than what they number for these to be sorted."""


class Ragged:
    """Lists of numbers of points (or faces), one list a cell, end to end.

    Parameters
    ----------
    values
        The lists, end to end.
    offsets
        Where each list begins, and behind the last one the end (cells + 1,); None with `size`.
    size
        How many numbers each list has if all have as many, at least 1; else 0.
    """

    def __init__(
        self, values: np.ndarray, offsets: np.ndarray | None = None, size: int = 0
    ) -> None:
        self.values = values
        self.size = size
        self._offsets = offsets

    @classmethod
    def of_table(cls, table: np.ndarray) -> Ragged:
        """Return lists of one size (cells, size)."""
        return cls(table.reshape(-1), size=table.shape[1])

    @classmethod
    def of_sizes(cls, sizes: np.ndarray, values: np.ndarray) -> Ragged:
        """Return lists of given sizes."""
        return cls(values, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    def __len__(self) -> int:
        return len(self.values) // self.size if self.size else len(self.offsets) - 1

    @property
    def offsets(self) -> np.ndarray:
        """Where each list begins, and behind the last one the end (cells + 1,)."""
        if self._offsets is None:
            count = len(self)
            self._offsets = np.arange(0, count * self.size + 1, self.size, dtype=self.values.dtype)
        return self._offsets

    @property
    def sizes(self) -> np.ndarray:
        """How many numbers each list has (cells,)."""
        return np.diff(self.offsets)

    @property
    def table(self) -> np.ndarray:
        """The lists (cells, size), where all have one size."""
        return self.values.reshape(-1, self.size)

    def take(self, rows: np.ndarray) -> Ragged:
        """Return the lists of given numbers, or those where `rows` is True."""
        if rows.dtype == bool:
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        if self.size:
            return Ragged.of_table(self.table.take(rows, axis=0))
        sizes = self.sizes[rows]
        values = self.values[spread(self.offsets[:-1][rows], sizes)]
        return Ragged.of_sizes(sizes, values)

    def reduce(self, ufunc: Any, values: np.ndarray) -> np.ndarray:
        """Return what `ufunc` makes of the values of each list, 0 of empty lists.

        `values` are one, or a row, for each of `self.values`.
        """
        rest = values.shape[1:]
        if self.size:
            found: np.ndarray = ufunc.reduce(values.reshape(-1, self.size, *rest), axis=1)
            return found
        found = np.zeros((len(self), *rest), values.dtype)
        full = self.sizes > 0
        if full.any():
            # Starts of empty lists would be taken for lists of one number.
            found[full] = ufunc.reduceat(values, self.offsets[:-1][full], axis=0)
        return found

    def numbered(self, local: np.ndarray) -> Ragged:
        """Return the same lists of other numbers of the same dtype, which lie as `values` do."""
        values = local.astype(self.values.dtype, copy=False)
        return Ragged(values, None if self.size else self.offsets, self.size)


def used(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of `count` numbers occur, ascending, and of each value its place among these."""
    if len(values) < count // _FEW:
        numbers, local = np.unique(values, return_inverse=True)
        return numbers.astype(np.int64), local.reshape(-1)
    occurs = np.zeros(count, bool)
    occurs[values] = True
    numbers = np.flatnonzero(occurs)
    if len(numbers) == count:
        return numbers, values
    place = np.empty(count, np.int64)
    place[numbers] = np.arange(len(numbers))
    return numbers, place[values]


def by_first_use(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` numbers in the order in which they first occur, and the new number of each.

    Those that do not occur come last, ascending.
    """
    first = np.full(count, len(values), np.int64)
    # Of several values for one number the last one written stays.
    first[values[::-1]] = np.arange(len(values), dtype=np.int64)[::-1]
    order = np.argsort(first, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    return order, place
