"""Ragged arrays: the values of many datasets in one array, and the offset of each dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, repr=False, eq=False)
class RaggedArray(Sequence[np.ndarray]):
    """A variable of datasets whose shapes differ: a sequence of an array for each dataset.

    Examples
    --------
    >>> oxygen = ambar.RaggedArray.of([np.array([210.0, 195.5]), np.array([180.0])])
    >>> oxygen
    <ambar.RaggedArray> 2 datasets, 3 values of float64
    >>> oxygen[0]
    array([210. , 195.5])
    >>> oxygen.values, oxygen.counts
    (array([210. , 195.5, 180. ]), array([2, 1]))
    """

    values: np.ndarray
    """The values of all datasets, in their order: (total, ...)."""
    offsets: np.ndarray
    """int64 (datasets + 1): dataset i has the values from ``offsets[i]`` to ``offsets[i + 1]``."""
    shapes: np.ndarray | None = None
    """int64 (datasets, dimensions), with flat `values`; None if only the first length differs."""

    @property
    def counts(self) -> np.ndarray:
        """The number of values of each dataset, along the first dimension of `values`: int64."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Return the number of datasets."""
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        """Return the values of one dataset, a view; a list of several for a slice."""
        at = range(len(self))[index]
        if isinstance(at, range):
            return [self[i] for i in at]
        part = self.values[self.offsets[at] : self.offsets[at + 1]]
        return part if self.shapes is None else part.reshape(self.shapes[at])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        dtype = "objects" if self.values.dtype == object else self.values.dtype
        return f"<ambar.RaggedArray> {len(self):,} datasets, {self.values.size:,} values of {dtype}"

    @classmethod
    def of(cls, parts: list[np.ndarray]) -> RaggedArray:
        """Return a ragged array of arrays.

        Parameters
        ----------
        parts : list of ndarray
            An array for each dataset, of any shape and of equal numbers of dimensions.

        Returns
        -------
        RaggedArray

        Examples
        --------
        >>> ambar.RaggedArray.of([np.zeros((2, 3)), np.zeros((5, 1))])[1].shape
        (5, 1)
        """
        inner = {part.shape[1:] for part in parts}
        if len(inner) <= 1 and all(part.ndim for part in parts):
            return cls(np.concatenate(parts), offsets_of([len(part) for part in parts]))
        flat = np.concatenate([part.ravel() for part in parts])
        return cls(
            flat,
            offsets_of([part.size for part in parts]),
            np.array([part.shape for part in parts], np.int64),
        )


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the offsets of consecutive parts: int64 (parts + 1)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
