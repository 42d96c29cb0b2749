"""What a description may refer to in place of a stored array: values in memory, or part of one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.mesh.storage.references import components_of

if TYPE_CHECKING:
    from ambar.mesh.storage.source import Source

Key: TypeAlias = tuple[slice | np.ndarray, ...]
_MOST = 1 << 32
"""Points or cells of a grid that are numbered at most: more than arrays in memory have values."""


@dataclass(frozen=True)
class Given:
    """Values in memory, of any shape."""

    values: np.ndarray


@dataclass(frozen=True)
class Part:
    """Some of the tuples of a stored array, one behind the other: (tuples,) or (tuples, ...)."""

    at: str | list[int]
    """Where the array is: a path, or [pack, start, shape...]."""
    shape: tuple[int, ...]
    """How its tuples lie: (tuples,), or on a grid (z, y, x)."""
    key: Key
    """Which of them, along each of these dimensions."""


def given(values: np.ndarray, like: Any = None) -> dict[str, Any]:
    """Return a reference to values in memory, with what `like` says of those that it refers to."""
    kept = {key: value for key, value in like.items() if key != "at"} if like else {}
    return {**kept, "at": Given(values)}


def part_of(reference: Any, shape: tuple[int, ...], key: Key, source: Source) -> dict[str, Any]:
    """Return a reference to some of the tuples of an array.

    Raises CorruptError if `reference` refers to no stored array.
    """
    if (parts := components_of(reference)) is not None:
        chosen = [part_of(part, shape, key, source) for part in parts]
        return {**reference, "components_at": chosen}
    at = source.stored_at(reference)
    return {**reference, "at": Part(at, shape, key)}


class Runs:
    """Runs of tuples, ascending and without overlap.

    Parameters
    ----------
    first, stop
        The first tuple of each run, and the one behind its last, int64.
    """

    def __init__(self, first: np.ndarray, stop: np.ndarray) -> None:
        self.first = first
        self.stop = stop

    @classmethod
    def all(cls, count: int) -> Runs:
        """All of `count` tuples."""
        return cls(np.zeros(1, np.int64), np.array([count], np.int64))

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> Runs:
        """Return the runs that ascending numbers of tuples make."""
        if len(rows) == 0:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        gaps = np.flatnonzero(np.diff(rows) != 1)
        first = rows[np.concatenate([[0], gaps + 1])]
        stop = rows[np.concatenate([gaps, [len(rows) - 1]])] + 1
        return cls(first.astype(np.int64), stop.astype(np.int64))

    @cached_property
    def counts(self) -> np.ndarray:
        """How many tuples each run has."""
        counts: np.ndarray = self.stop - self.first
        return counts

    @cached_property
    def rows(self) -> np.ndarray:
        """The numbers of all tuples, int64."""
        return spread(self.first, self.counts)

    @property
    def key(self) -> Key:
        """What chooses the tuples."""
        if len(self.first) == 1:
            return (slice(int(self.first[0]), int(self.stop[0])),)
        return (self.rows,)


def spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return start, start + 1, ..., `counts` numbers from each of `starts` on, as int64."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    numbers: np.ndarray = np.arange(total) + np.repeat(starts - ends + counts, counts)
    return numbers


def rows_on_grid(shape: tuple[int, ...], key: Key) -> np.ndarray:
    """Return the numbers of the points or cells of a grid that a key of slices chooses, int64.

    Raises LimitError if these are too many for memory.
    """
    chosen = [range(*part.indices(n)) for part, n in zip(key, shape, strict=True)]  # type: ignore[union-attr]
    if math.prod(map(len, chosen)) > _MOST:
        raise _core.LimitError(f"{math.prod(map(len, chosen))} tuples are too many to number")
    numbers = np.zeros((1,) * len(shape), np.int64)
    stride = math.prod(shape)
    for axis, (size, part) in enumerate(zip(shape, chosen, strict=True)):
        stride //= max(size, 1)
        along = np.arange(part.start, part.stop, dtype=np.int64) * stride
        numbers = numbers + along.reshape(-1, *(1,) * (len(shape) - axis - 1))
    return numbers.reshape(-1)
