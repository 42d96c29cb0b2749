"""References of a description to arrays: stored, in memory, or a selection of a stored array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property

if TYPE_CHECKING:
    from ambar.mesh.storage.array_reader import ArrayReader

Description: TypeAlias = dict[str, Any]
"""The description of a mesh, or of a part of it: an object of JSON."""
Key: TypeAlias = tuple[slice | np.ndarray, ...]
_MAX_ROWS = 1 << 32
"""The largest number of points or cells that are numbered: no array in memory has more values."""


@dataclass(frozen=True)
class InMemory:
    """Values in memory, of any shape."""

    values: np.ndarray


@dataclass(frozen=True)
class Selection:
    """Some tuples of a stored array, read as (tuples,) or (tuples, ...)."""

    at: str | list[int]
    """Where the array is: a path, or [pack, start, shape...]."""
    shape: tuple[int, ...]
    """The shape of its tuples: (tuples,), or (z, y, x) on a grid."""
    key: Key
    """The selected tuples, for each of these dimensions."""


def named_references(described: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of a description that refers to an array, with its path there."""
    items: Any = ()
    if isinstance(described, dict) and "at" in described:
        yield path, described
    elif isinstance(described, dict):
        items = described.items()
    elif isinstance(described, list):
        items = enumerate(described)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from named_references(value, f"{path}/{key}".lstrip("/"))


def references_in(described: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a description that refers to an array, at any depth."""
    for _, reference in named_references(described):
        yield reference


def components_of(reference: Any) -> list[Any] | None:
    """Return the references to each component; None if the array is stored as one."""
    components = reference.get("components_at") if isinstance(reference, dict) else None
    return components if isinstance(components, list) and components else None


def damaged(where: str, what: str) -> _core.CorruptError:
    """Return the error for a damaged part of a store."""
    return _core.CorruptError(f"{where}: {what}; restore the store from a copy")


def in_memory(values: np.ndarray, like: Any = None) -> dict[str, Any]:
    """Return a reference to values in memory, with the other keys of the reference `like`."""
    return {**(like or {}), "at": InMemory(values)}


def select_rows(
    reference: Any, shape: tuple[int, ...], key: Key, reader: ArrayReader
) -> dict[str, Any]:
    """Return a reference to some tuples of a stored array.

    Raises CorruptError if `reference` does not refer to a stored array.
    """
    if (components := components_of(reference)) is not None:
        selected = [select_rows(each, shape, key, reader) for each in components]
        return {**reference, "components_at": selected}
    if isinstance(at := reference["at"], InMemory):
        return {**reference, "at": InMemory(at.values[key])}
    return {**reference, "at": Selection(reader.stored_at(reference), shape, key)}


class RowRanges:
    """Ascending ranges of rows without overlap.

    Parameters
    ----------
    starts, stops : ndarray (ranges,), int64
        The first row of each range, and the row after its last one.
    """

    def __init__(self, starts: np.ndarray, stops: np.ndarray) -> None:
        self.starts = starts
        self.stops = stops

    @classmethod
    def all(cls, count: int) -> RowRanges:
        """Return the range of all `count` rows."""
        return cls(np.zeros(1, np.int64), np.array([count], np.int64))

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> RowRanges:
        """Return the ranges that ascending row numbers form."""
        if len(rows) == 0:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        gaps = np.flatnonzero(np.diff(rows) != 1)
        starts = rows[np.concatenate([[0], gaps + 1])]
        stops = rows[np.concatenate([gaps, [len(rows) - 1]])] + 1
        return cls(starts.astype(np.int64), stops.astype(np.int64))

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows in each range."""
        counts: np.ndarray = self.stops - self.starts
        return counts

    @cached_property
    def rows(self) -> np.ndarray:
        """The numbers of all rows, int64."""
        return expand_ranges(self.starts, self.counts)

    @property
    def key(self) -> Key:
        """A key that selects the rows of an array."""
        if len(self.starts) == 1:
            return (slice(int(self.starts[0]), int(self.stops[0])),)
        return (self.rows,)


def expand_ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return start, start + 1, ... for each range, `counts` numbers each, as int64."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    rows: np.ndarray = np.arange(total) + np.repeat(starts - ends + counts, counts)
    return rows


def rows_on_grid(shape: tuple[int, ...], key: Key) -> np.ndarray:
    """Return the numbers of the points or cells of a grid that a key of slices selects, int64.

    Raises LimitError if there are more than memory can hold.
    """
    selected = [range(*part.indices(n)) for part, n in zip(key, shape, strict=True)]  # type: ignore[union-attr]
    if (count := math.prod(map(len, selected))) > _MAX_ROWS:
        raise _core.LimitError(f"the region has {count:,} points or cells; read a smaller one")
    rows = np.zeros((1,) * len(shape), np.int64)
    stride = math.prod(shape)
    for axis, (size, part) in enumerate(zip(shape, selected, strict=True)):
        stride //= max(size, 1)
        along = np.arange(part.start, part.stop, dtype=np.int64) * stride
        rows = rows + along.reshape(-1, *(1,) * (len(shape) - axis - 1))
    return rows.reshape(-1)
