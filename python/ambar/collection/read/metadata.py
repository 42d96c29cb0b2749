"""Attributes and statistics of the datasets of one commit; they also select datasets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.arguments import check_unicode
from ambar._util.properties import cached_property
from ambar._util.text import suggestion
from ambar.collection.read.bulk_read import Reader
from ambar.collection.read.dates import is_time, iso_dates, with_iso_dates
from ambar.collection.read.indexing import Piece, by_family
from ambar.collection.storage.attributes import Key, parse, plain, restored
from ambar.collection.storage.catalogue import Catalogue
from ambar.collection.storage.encodings import decoded_dtype
from ambar.collection.storage.family import Families, Family, open_array
from ambar.collection.storage.records import ROW, has_range
from ambar.collection.storage.row_cache import blocks_of
from ambar.snapshot.table import Table
from ambar.store.array import Array
from ambar.store.dtypes import common_dtype
from ambar.store.store import Store

RANGE = ("min", "max")
"""Statistics that only datasets with values have."""
STATISTICS = (*RANGE, "count", "nulls")


class Metadata:
    """Attributes and statistics of the datasets of one commit."""

    def __init__(
        self, store: Store, catalogue: Catalogue, families: Families, reader: Reader
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._families = families
        self._reader = reader
        self._arrays: dict[tuple[int, Key], Array] = {}

    @cached_property
    def _pieces(self) -> list[Piece]:
        """All rows, by family."""
        return by_family(self._families, self._catalogue.places, {})

    @property
    def attribute_names(self) -> list[str]:
        """The names of the attributes of datasets."""
        names = (
            [*family.attributes, *(key for scope, key in family.varying if scope is None)]
            for family in self._families
        )
        return list(dict.fromkeys(name for each in names for name in each))

    @property
    def table_columns(self) -> dict[str, str]:
        """The columns of a table of datasets by attribute; `ROW` is the column of their names.

        An attribute with that name is the column ``attrs.dataset``, with the prefix again if that
        is another attribute.
        """
        columns = {name: name for name in self.attribute_names}
        if ROW in columns:
            columns[ROW] = f"attrs.{ROW}"
            while columns[ROW] in columns:
                columns[ROW] = f"attrs.{columns[ROW]}"
        return columns

    def attributes(self, family: Family, scope: str | None, row: int) -> dict[str, Any]:
        """Return the attributes of a row: of a variable, or of the dataset for None."""
        found = common_attributes(family, scope)
        for variable, key in family.varying:
            if variable == scope:
                path = self._strings(family, (scope, key)).path
                [value] = parse([blocks_of(self._store).row(path, row).item()], path)
                if value is not None:
                    found[key] = value
        return found

    def attribute(self, key: str, at: np.ndarray | None = None) -> np.ndarray:
        """Return an attribute of every dataset, or of those at some positions.

        It is None where a dataset lacks it.
        """
        if key not in self.attribute_names:
            raise _core.NotFoundError(
                f"{self._store.location}: no dataset has an attribute {key!r}; "
                f"{suggestion(key, self.attribute_names)}"
            )
        if at is None:
            values, pieces = np.empty(len(self._catalogue), object), self._pieces
        else:
            values = np.empty(len(at), object)
            pieces = by_family(self._families, self._catalogue.places_at(at), {})
        for piece in pieces:
            family = piece.family
            if (None, key) in family.varying:
                array = self._strings(family, (None, key))
                found = parse(array.read(piece.rows), array.path)
            else:
                found = [restored(family.attributes.get(key))] * len(piece.rows)
            for position, value in zip(piece.at.tolist(), found, strict=True):
                values[position] = value
        return as_column(values)

    def _strings(self, family: Family, key: Key) -> Array:
        """Return the column of an attribute that varies."""
        array = self._arrays.get((family.number, key))
        if array is None:
            array = open_array(self._store, family.attribute(key), (family.rows,), "string")
            self._arrays[family.number, key] = array
        return array

    def statistics(self, variable: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return which datasets have a variable, and its statistics in every dataset."""
        pieces = [
            piece for piece in self._pieces if len(piece.rows) and variable in piece.family.columns
        ]
        if not pieces:
            raise self._families.unknown(variable)
        having = np.zeros(len(self._catalogue), bool)
        having[np.concatenate([piece.at for piece in pieces])] = True
        found = [self._statistics(piece, variable) for piece in pieces]
        columns = {}
        for key in STATISTICS:
            parts = [
                (p.at, each[key]) for p, each in zip(pieces, found, strict=True) if key in each
            ]
            if parts:
                dtype = common_dtype(variable, {values.dtype for _, values in parts})
                parts = [(at, as_dtype(values, dtype)) for at, values in parts]
                is_object = any(values.dtype == object for _, values in parts)
                columns[key] = np.zeros(len(having), object if is_object else dtype)
                for at, values in parts:
                    columns[key][at] = values
        return having, columns

    def statistics_table(self, variable: str) -> Table:
        """Return the statistics of a variable in each dataset that has it."""
        having, columns = self.statistics(variable)
        table = {key: column[having] for key, column in self._with_names(columns).items()}
        has_no_values = table["count"] == table["nulls"]
        for key in RANGE:
            if key in table:
                table[key] = _with_missing(table[key], has_no_values)
        return Table(table, dim=ROW)

    def attributes_table(self) -> Table:
        """Return the attributes of all datasets."""
        columns = {
            column: _arrow_column(self.attribute(key)) for key, column in self.table_columns.items()
        }
        return Table(self._with_names(columns), dim=ROW)

    def _with_names(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {ROW: np.array(self._catalogue.names, dtype=str), **columns}

    def _statistics(self, piece: Piece, variable: str) -> dict[str, np.ndarray]:
        """Return the statistics of some rows of a family."""
        family, column = piece.family, piece.family.columns[variable]
        path, shape = family.statistics(variable), (family.rows, 2)
        counts = open_array(self._store, f"{path}_counts", shape, "int64").read((piece.rows, ...))
        found = {"count": counts[:, 0], "nulls": counts[:, 1]}
        if has_range(column.type_name):
            array = open_array(self._store, f"{path}_range", shape, column.type_name)
            ranges = array.read((piece.rows, ...))
            if column.times:
                ranges = ranges.view(decoded_dtype(column.times))
            found |= {"min": ranges[:, 0], "max": ranges[:, 1]}
        return found

    def positions(self, datasets: Any) -> np.ndarray:
        """Return the positions of the selected datasets: int64.

        Raises
        ------
        KeyError
            If a dataset does not exist.
        IndexError
            If a position is outside.
        ValueError
            If `datasets` is not a valid selection.
        """
        count = len(self._catalogue)
        if datasets is None:
            return np.arange(count)
        if isinstance(datasets, slice):
            return np.arange(count)[datasets]
        if isinstance(datasets, str):
            check_unicode("condition", datasets)
            names = _core.Condition(datasets).fields
            operands = {name: self.operand(name) for name in names}
            times = {name for name, values in operands.items() if is_time(values)}
            text, compared = with_iso_dates(datasets, times)
            for name in sorted(times - compared):
                raise _core.InvalidError(
                    f"{name!r} contains times, which conditions compare with dates in quotes only, "
                    f'such as {name} > "2023-01-01"; found {datasets!r}'
                )
            operands |= {name: iso_dates(operands[name]) for name in compared}
            return np.flatnonzero(_core.Condition(text).evaluate(operands))
        if isinstance(datasets, Iterable) and not isinstance(datasets, np.ndarray):
            datasets = list(datasets)
        is_sequence = isinstance(datasets, list) or np.ndim(datasets) > 0
        if is_sequence and len(datasets) == 0:
            return np.empty(0, np.int64)
        if is_sequence and isinstance(datasets[0], str):
            return np.array([self._catalogue.position(str(name)) for name in datasets], np.int64)
        numbers = np.asarray(datasets)
        if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
            raise _core.InvalidError(
                "datasets: expected names, positions, a slice, a mask or a condition, found "
                f"{datasets!r}"
            )
        if numbers.dtype == bool and len(numbers) != count:
            raise IndexError(f"datasets: expected a mask of {count} values, found {len(numbers)}")
        positions: np.ndarray = np.arange(count)[numbers]
        return positions

    def operand(self, name: str) -> np.ndarray:
        """Return an attribute, a variable of single values, or a statistic: ``temperature.max``."""
        variable, _, statistic = name.rpartition(".")
        if name in self.attribute_names:
            return self.attribute(name)
        known = {key for family in self._families for key in family.columns}
        if name in known and variable not in known:
            return self._single_values(name)
        if not variable:
            return self.attribute(name)
        having, columns = self.statistics(variable)
        if statistic not in columns:
            raise _core.NotFoundError(
                f"statistic {statistic!r} of {variable!r} does not exist; available: "
                f"{', '.join(columns)}"
            )
        values, missing = columns[statistic], ~having
        if statistic in RANGE:
            missing |= columns["count"] == columns["nulls"]
        if values.dtype.kind == "M":
            values = np.where(missing, np.datetime64("NaT"), values)
        if not missing.any() or values.dtype.kind in "mM":  # conditions refuse durations
            return values
        found = values.astype(object)
        found[missing] = None
        return found

    def _single_values(self, variable: str) -> np.ndarray:
        """Return a variable that has one value in each dataset; None where a dataset lacks it.

        Raises ValueError if it has several values in a dataset.
        """
        found = np.full(len(self._catalogue), None)
        for piece in self._pieces:
            family = piece.family
            column = family.columns.get(variable)
            if column is None or not len(piece.rows):
                continue
            sizes = [family.sizes.get(dim) for dim in column.dims]
            if family.ragged_dim(variable) is not None or any(size != 1 for size in sizes):
                raise _core.InvalidError(self._not_a_column(variable))
            count = len(piece.rows)
            alone = replace(piece, at=np.arange(count))
            values = np.asarray(self._reader.read(variable, [alone], count)[0]).reshape(count)
            if values.dtype.kind == "m":  # conditions refuse durations
                return values
            if values.dtype.kind == "M":
                found[piece.at] = [*values]
                continue
            is_text = column.type_name in ("string", "bytes") or values.dtype.kind == "S"
            found[piece.at] = [_as_text(one) if is_text else one for one in values.tolist()]
        return as_column(found)

    def _not_a_column(self, variable: str) -> str:
        """Return the message for a condition on a variable of several values."""
        have_range = all(
            has_range(family.columns[variable].type_name)
            for family in self._families
            if variable in family.columns
        )
        advice = (
            f"write {variable}.min or {variable}.max"
            if have_range
            else f"its type has no range: only {variable}.count and {variable}.nulls can be "
            "compared; keep it as an attribute of each dataset"
        )
        return (
            f"expected an attribute, a statistic or a variable of one value in the condition, "
            f"found {variable!r} of several values; {advice}"
        )


def _as_text(value: Any) -> Any:
    """Return a string, also of bytes in UTF-8; None for a missing one, other bytes unchanged."""
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def common_attributes(family: Family, scope: str | None) -> dict[str, Any]:
    """Return the attributes that are equal in all rows: of a variable, or for None of datasets."""
    common = family.attributes if scope is None else family.columns[scope].attributes
    return {key: restored(value) for key, value in common.items()}


def as_column(values: np.ndarray) -> np.ndarray:
    """Return objects as an array of a dtype that represents all exactly, or unchanged."""
    kinds = {type(value) for value in values}
    if kinds in ({str}, {bool}, {np.datetime64}):
        return np.array(values.tolist())
    if kinds and kinds <= {int, float}:
        try:
            found = np.array(values.tolist())
        except OverflowError:
            return values
        pairs = zip(found.tolist(), values, strict=True)
        if all(a == b for a, b in pairs if type(b) is int):
            return found
    return values


def as_dtype(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values as a dtype, or as objects if it would round integers."""
    found = values.astype(dtype, copy=False)
    is_rounded = values.dtype.kind in "iu" and dtype.kind == "f"
    if is_rounded and found.tolist() != values.tolist():
        return values.astype(object)
    return found


def _with_missing(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return values with NaN or NaT where they are missing, or None if float64 would round them."""
    if not missing.any():
        return values
    if values.dtype.kind in "biu":
        values = as_dtype(values, np.dtype(np.float64))
    found = values.copy()
    nothing = {"O": None, "f": np.nan}
    found[missing] = nothing.get(values.dtype.kind, "NaT")
    return found


def _arrow_column(values: np.ndarray) -> np.ndarray:
    """Return a column of a type that Arrow supports: objects become JSON."""
    if values.dtype.kind != "O":
        return values
    strings = [
        "" if value is None else value if isinstance(value, str) else json.dumps(plain(value))
        for value in values
    ]
    return np.array(strings, dtype=str)
