"""A collection as an operand of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ambar import _core
from ambar.collection.collection import Collection
from ambar.collection.storage.family import Family
from ambar.collection.storage.ragged import RaggedArray
from ambar.collection.storage.tails import array_of
from ambar.comparison.operands import Operand
from ambar.store.error_bounds import PartBound, as_text


class CollectionArrays(Operand):
    """The variables of a collection, of the datasets that both versions have.

    The values of a variable are those of all these datasets, consecutively.
    """

    def __init__(self, collection: Collection, threads: int | None) -> None:
        self._collection = collection
        collection._threads = threads
        self._families = collection._families
        self.location = collection.location
        self.ndim = 1
        self.datasets = collection.names
        self.fields = collection.variables
        self._common = self.datasets

    def values(self, name: str) -> np.ndarray:
        """Return the values of a variable in all common datasets, flat."""
        return self._values(name, self._common)

    def pairs(self, other: Operand, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the values of a variable in both, for each pair of families of a dataset.

        All families together may have no dtype that represents their values exactly.
        """
        if not isinstance(other, CollectionArrays):
            return super().pairs(other, name)
        datasets: dict[tuple[int, int], list[str]] = {}
        for dataset in self._common:
            families = self._row_of(dataset)[0], other._row_of(dataset)[0]
            datasets.setdefault(families, []).append(dataset)
        found = []
        for (mine, theirs), names in datasets.items():
            is_here = name in self._families[mine].columns
            if is_here != (name in other._families[theirs].columns):
                owner = self if is_here else other
                raise _core.InvalidError(
                    f"dataset {names[0]!r} has {name} only in {owner.location}; expected two "
                    "versions of the same data"
                )
            if is_here:
                found.append((self._values(name, names), other._values(name, names)))
        return found or [(np.empty(0), np.empty(0))]

    def _values(self, name: str, datasets: Sequence[str]) -> np.ndarray:
        read = self._collection.read(name, datasets)[name]
        return (read.values if isinstance(read, RaggedArray) else read).reshape(-1)

    def bound(self, name: str) -> float | str | None:
        """Return the error bound of the arrays of a variable; None if families differ."""
        bounds = {
            self._collection.store._array(family.path(name)).error_bound or 0.0
            for family in self._families
            if name in family.columns
        }
        return bounds.pop() if len(bounds) == 1 else None

    def recorded_bounds(self, name: str) -> list[PartBound]:
        """Return the error bound of a variable in the settings of the collection."""
        given = self._collection.settings["encoding"].get(name, {}).get("error_bound")
        return [] if given is None else [PartBound(None, None, name, as_text(given))]

    def bytes(self, name: str) -> int:
        """Return the stored bytes of a variable in all datasets."""
        families = (family for family in self._families if name in family.columns)
        return sum(array_of(self._collection.store, f.path(name)).stored_bytes for f in families)

    def match(self, other: Operand) -> np.ndarray | None:
        """Limit both to their common datasets, whose variables must have the same shapes."""
        if not isinstance(other, CollectionArrays):
            raise self._different_kind(other, "collections")
        self._common = other._common = [name for name in self.datasets if name in other._collection]
        if not self._common:
            raise _core.InvalidError(
                f"{self.location} and {other.location} have no dataset in common; expected two "
                "versions of the same data"
            )
        self._check_same_shapes(other)
        return None

    def _check_same_shapes(self, other: CollectionArrays) -> None:
        """Raise ValueError if a variable of a common dataset has different dimensions."""
        rows = np.array([side._row_of(name) for name in self._common for side in (self, other)])
        rows = rows.reshape(-1, 4)  # family and row, of both
        for mine, theirs in np.unique(rows[:, ::2], axis=0).tolist():
            at = np.flatnonzero((rows[:, 0] == mine) & (rows[:, 2] == theirs))
            a, b = self._families[mine], other._families[theirs]
            for name in a.columns.keys() & b.columns.keys():
                dims = a.columns[name].dims
                differ = np.full(len(at), dims != b.columns[name].dims)
                for dim in dims if dims == b.columns[name].dims else ():
                    lengths = self._lengths(a, dim, rows[at, 1])
                    differ |= lengths != other._lengths(b, dim, rows[at, 3])
                if differ.any():
                    raise _core.InvalidError(
                        f"dataset {self._common[at[differ.argmax()]]!r}: {name} has different "
                        f"dimensions in {self.location} and {other.location}; expected two "
                        "versions of the same data"
                    )

    def _row_of(self, name: str) -> tuple[int, int]:
        family, row = self._collection._place(name)
        return family.number, row

    def _lengths(self, family: Family, dim: str, rows: np.ndarray) -> np.ndarray:
        """Return the length of a dimension in some rows of a family."""
        if dim in family.ragged:
            lengths: np.ndarray = np.diff(self._collection._reader.offsets(family, dim))[rows]
            return lengths
        return np.full(len(rows), family.sizes[dim])
