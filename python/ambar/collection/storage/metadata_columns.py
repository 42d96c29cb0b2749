"""Attributes and statistics of datasets, as columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ambar.collection.storage.attributes import parse, plain, restored
from ambar.collection.storage.family import Family, open_array
from ambar.collection.storage.statistics import has_range
from ambar.collection.storage.times import decoded_dtype
from ambar.store.store import Store

RANGE = ("min", "max")
"""Statistics that only datasets with values have."""
STATISTICS = (*RANGE, "count", "nulls")


class Columns:
    """The columns of the families of one commit, with a cache of their chunks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[tuple[str, int], np.ndarray] = {}
        self._asked: set[tuple[str, int]] = set()

    def attributes(self, family: Family, scope: str | None, row: int) -> dict[str, Any]:
        """Return the attributes of a row: of a variable, or of the dataset for None."""
        found = common_attributes(family, scope)
        for index, (variable, key) in enumerate(family.varying):
            if variable == scope:
                value = self._attribute(family, index, row)
                if value is not None:
                    found[key] = value
        return found

    def _attribute(self, family: Family, index: int, row: int) -> Any:
        """Return an attribute of one row; None if the dataset lacks it."""
        path = _path(family, index)
        array = open_array(self._store, path, (family.rows,), "string")
        length = array.chunks[0]
        part = row // length
        if (path, part) in self._parts:
            return parse([self._parts[path, part][row % length]], path)[0]
        if (path, part) in self._asked:
            # A second row of this chunk: more are likely to follow.
            self._parts[path, part] = array.read(slice(part * length, (part + 1) * length))
        self._asked.add((path, part))
        return parse(array.read([row]), path)[0]

    def column(self, family: Family, key: str, rows: np.ndarray) -> list[Any]:
        """Return an attribute of some rows."""
        if (None, key) in family.varying:
            path = _path(family, family.varying.index((None, key)))
            array = open_array(self._store, path, (family.rows,), "string")
            return parse(array.read(rows), path)
        return [restored(family.attributes.get(key))] * len(rows)

    def statistics(self, family: Family, variable: str, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return min, max, count and nulls of some rows."""
        column = family.columns[variable]
        path = f"{family.group}/statistics/{variable}"
        counted = open_array(self._store, f"{path}_counts", (family.rows, 2), "int64")
        counts = counted.read((rows, slice(None)))
        found = {"count": counts[:, 0], "nulls": counts[:, 1]}
        if has_range(column.type_name):
            ranged = open_array(self._store, f"{path}_range", (family.rows, 2), column.type_name)
            ranges = ranged.read((rows, slice(None)))
            if column.times:
                ranges = ranges.view(decoded_dtype(column.times))
            found |= {"min": ranges[:, 0], "max": ranges[:, 1]}
        return found


def common_attributes(family: Family, scope: str | None) -> dict[str, Any]:
    """Return the attributes that are equal in all rows: of a variable, or for None of datasets."""
    common = family.attributes if scope is None else family.columns[scope].attributes
    return {key: restored(value) for key, value in common.items()}


def _path(family: Family, index: int) -> str:
    return f"{family.group}/attributes/{index}"


def as_column(values: list[Any]) -> np.ndarray:
    """Return values as an array of a dtype that represents all exactly, or of objects."""
    column = np.empty(len(values), object)
    column[:] = values
    kinds = {type(value) for value in values}
    if not values:
        return column
    if kinds <= {str} or kinds <= {bool} or kinds == {np.datetime64}:
        return np.array(values)
    if kinds <= {int, float}:
        try:
            found = np.array(values)
        except OverflowError:
            return column
        pairs = zip(found.tolist(), values, strict=True)
        if all(a == b for a, b in pairs if type(b) is int):
            return found
    return column


def as_dtype(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values as a dtype, or as objects if it would round integers."""
    found = values.astype(dtype, copy=False)
    is_rounded = values.dtype.kind in "iu" and dtype.kind == "f"
    if is_rounded and found.tolist() != values.tolist():
        return values.astype(object)
    return found


def with_missing(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return values with NaN or NaT where they are missing, or None if float64 would round them."""
    if not missing.any():
        return values
    if values.dtype.kind in "biu":
        values = as_dtype(values, np.dtype(np.float64))
    found = values.copy()
    nothing = {"O": None, "f": np.nan}
    found[missing] = nothing.get(values.dtype.kind, "NaT")
    return found


def arrow_column(values: np.ndarray) -> np.ndarray:
    """Return a column of a type that Arrow supports: objects become JSON."""
    if values.dtype.kind != "O":
        return values
    strings = [
        "" if value is None else value if isinstance(value, str) else json.dumps(plain(value))
        for value in values
    ]
    return np.array(strings, dtype=str)
