"""Selects datasets of a collection by name, position, mask or condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar import _core
from ambar._util.text import suggestion
from ambar.collection.read.indexing import by_family
from ambar.collection.storage.catalogue import Catalogue
from ambar.collection.storage.families import Families
from ambar.collection.storage.metadata_columns import (
    RANGE,
    STATISTICS,
    Columns,
    as_column,
    as_dtype,
)
from ambar.store.dtypes import common_dtype


class DatasetSelector:
    """Selects datasets of one commit by name, position, mask or condition."""

    def __init__(self, catalogue: Catalogue, families: Families, columns: Columns) -> None:
        self._catalogue = catalogue
        self._families = families
        self._columns = columns

    @property
    def attribute_names(self) -> list[str]:
        """The names of all datasets' own attributes."""
        found: dict[str, None] = {}
        for family in self._families:
            found.update(dict.fromkeys(family.attributes))
            found.update(dict.fromkeys(key for scope, key in family.varying if scope is None))
        return list(found)

    def attribute(self, key: str) -> np.ndarray:
        """Return an attribute of every dataset; None where one lacks it."""
        if key not in self.attribute_names:
            raise _core.NotFoundError(
                f"no dataset has an attribute {key!r}; {suggestion(key, self.attribute_names)}"
            )
        values: list[Any] = [None] * len(self._catalogue)
        for piece in by_family(list(self._families), self._catalogue.places, {}):
            found = self._columns.column(piece.family, key, piece.rows)
            for at, value in zip(piece.at.tolist(), found, strict=True):
                values[at] = value
        return as_column(values)

    def statistics(self, variable: str) -> dict[str, np.ndarray]:
        """Return the statistics of a variable in every dataset, and `having`: which have it."""
        count = len(self._catalogue)
        having = np.zeros(count, bool)
        columns: dict[str, np.ndarray] = {}
        for piece in by_family(list(self._families), self._catalogue.places, {}):
            if variable not in piece.family.columns:
                continue
            having[piece.at] = True
            for key, values in self._columns.statistics(piece.family, variable, piece.rows).items():
                whole = columns.get(key)
                if whole is None:
                    whole = np.zeros(count, values.dtype)
                dtype = common_dtype(variable, {whole.dtype, values.dtype})
                part, whole = as_dtype(values, dtype), as_dtype(whole, dtype)
                columns[key] = whole.astype(object) if part.dtype == object else whole
                columns[key][piece.at] = part
        if not having.any():
            known = dict.fromkeys(name for family in self._families for name in family.columns)
            raise _core.NotFoundError(
                f"no dataset has a variable {variable!r}; {suggestion(variable, known)}"
            )
        ordered = {key: columns[key] for key in STATISTICS if key in columns}
        return {**ordered, "having": having}

    def positions(self, datasets: Any) -> np.ndarray:
        """Return the positions of the datasets wanted: int64.

        Raises
        ------
        KeyError
            If a dataset does not exist.
        IndexError
            If a position is outside.
        ValueError
            If `datasets` is nothing of what may be given.
        """
        count = len(self._catalogue)
        if datasets is None:
            return np.arange(count)
        if isinstance(datasets, slice):
            return np.arange(count)[datasets]
        if isinstance(datasets, str):
            condition = _core.Condition(datasets)
            return np.flatnonzero(
                condition.evaluate({name: self._column(name) for name in condition.fields})
            )
        listed = list(datasets) if not isinstance(datasets, np.ndarray) else datasets
        if len(listed) == 0:
            return np.empty(0, np.int64)
        if isinstance(listed[0], str):
            return np.array([self._catalogue.position(str(name)) for name in listed], np.int64)
        numbers = np.asarray(listed)
        if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
            raise _core.InvalidError(
                "datasets are chosen by names, positions, a slice, a mask or a condition, not by "
                f"{datasets!r}"
            )
        if numbers.dtype == bool and len(numbers) != count:
            raise IndexError(f"a mask of {len(numbers)} values for {count} datasets")
        chosen: np.ndarray = np.arange(count)[numbers]
        return chosen

    def _column(self, name: str) -> np.ndarray:
        """Return an attribute, or a statistic of a variable: ``temperature.max``."""
        variable, _, statistic = name.rpartition(".")
        if not variable or name in self.attribute_names:
            return self.attribute(name)
        columns = self.statistics(variable)
        having = columns.pop("having")
        if statistic not in columns:
            raise _core.NotFoundError(
                f"statistic {statistic!r} of {variable!r} does not exist; available: "
                f"{', '.join(columns)}"
            )
        values = columns[statistic]
        missing = ~having
        if statistic in RANGE:
            missing |= columns["count"] == columns["nulls"]
        if not missing.any() or values.dtype.kind in "mM":  # conditions refuse times
            return values
        known = values.astype(object)
        known[missing] = None
        return known
