"""Selections of a bulk read: rows of families, and indices along dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.collection.storage.family import Family

Isel: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """Rows of one family, and the selected part of each."""

    family: Family
    rows: np.ndarray
    """Rows of the family: int64."""
    at: np.ndarray
    """Their positions in the result: int64."""
    isel: Isel

    def is_all(self, count: int) -> bool:
        """Whether the rows are the whole result, in order."""
        return len(self.at) == count and bool((self.at == np.arange(count)).all())

    @cached_property
    def row_key(self) -> slice | np.ndarray:
        """The rows as an index: a slice if their distances are equal."""
        return as_slice(self.rows)


def as_slice(indices: np.ndarray) -> slice | np.ndarray:
    """Return indices as a slice if their distances are equal and positive, else unchanged."""
    if len(indices) == 0:
        return slice(0, 0)
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    if step > 0 and (np.diff(indices) == step).all():
        return slice(int(indices[0]), int(indices[-1]) + 1, step)
    return indices


def by_family(families: list[Family], places: np.ndarray, isel: Isel) -> list[Piece]:
    """Return a selection for each family; `places` are families and rows, (datasets, 2)."""
    numbers = places[:, 0]
    if not len(places):
        # An empty selection of each family still has shapes and dtypes.
        return [Piece(family, np.empty(0, int), np.empty(0, int), isel) for family in families]
    pieces = []
    for number in np.unique(numbers):
        at = np.flatnonzero(numbers == number)
        pieces.append(Piece(families[number], places[at, 1].astype(np.int64), at, isel))
    return pieces


def row_ranges(
    starts: np.ndarray, stops: np.ndarray, wanted: Any, dim: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices that `wanted` selects in each of the ranges, and their numbers."""
    lengths = stops - starts
    if isinstance(wanted, slice):
        step = 1 if wanted.step is None else int(wanted.step)
        if step < 1:
            raise _core.InvalidError(
                f"{dim} is ragged: expected a positive step, found {step}; reverse the result"
            )
        first = _bound(wanted.start, lengths, 0)
        last = _bound(wanted.stop, lengths, lengths)
        counts = np.maximum(-(-(last - first) // step), 0)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        return np.repeat(starts + first, counts) + within * step, counts
    listed = np.atleast_1d(np.asarray(wanted))
    if not listed.size:  # NumPy makes float64 of an empty list
        listed = listed.astype(np.int64)
    if listed.dtype.kind not in "iu" or listed.ndim != 1:
        raise _core.InvalidError(
            f"{dim} is ragged: expected integers, lists of integers or slices, found {wanted!r}"
        )
    signed = listed.astype(np.int64)[np.newaxis, :]
    indices = np.where(signed < 0, signed + lengths[:, np.newaxis], signed)
    outside = (indices < 0) | (indices >= lengths[:, np.newaxis])
    if outside.any():
        raise IndexError(
            f"index {listed[outside.any(axis=0)][0]} is out of range of dimension {dim!r} of "
            f"{np.count_nonzero(outside.any(axis=1))} datasets"
        )
    counts = np.full(len(lengths), len(listed))
    return (indices + starts[:, np.newaxis]).ravel(), counts


def _bound(value: Any, lengths: np.ndarray, default: Any) -> np.ndarray:
    if value is None:
        return np.broadcast_to(default, lengths.shape)
    at = lengths + value if value < 0 else np.full_like(lengths, value)
    clipped: np.ndarray = np.clip(at, 0, lengths)
    return clipped


def with_leading(values: np.ndarray, keys: tuple[Any, ...]) -> np.ndarray:
    """Return values with a dimension of length 1 before them for each key, indexed by it."""
    for key in reversed(keys):
        values = values[np.newaxis][key]
    return values
