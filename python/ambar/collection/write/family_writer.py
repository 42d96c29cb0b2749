"""Writes the datasets of a family: gathers them, and appends them to the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ambar.collection.storage import layout
from ambar.collection.storage.attributes import Key, forget, merge
from ambar.collection.storage.family import Column, Family
from ambar.collection.storage.records import ROW, Record, Variable
from ambar.collection.storage.statistics import has_range, measure
from ambar.collection.storage.strings import MISSING, count_missing
from ambar.collection.storage.times import NOT_A_TIME
from ambar.collection.write.background import Background
from ambar.store.dtypes import to_zarr
from ambar.store.writer import Writer

BATCH = 16 << 20
"""Raw bytes of a family's datasets that are encoded together."""

FEW = 16
"""A family of at most so many unwritten datasets becomes ragged if another length is added."""

_STRING_BYTES = 32

Statistics: TypeAlias = dict[str, tuple[Any, Any, int, int]]
"""Statistics of each variable of a dataset; see `measure`."""


class FamilyWriter:
    """Appends datasets to one family, on the thread of a `Background`."""

    def __init__(
        self,
        writer: Writer,
        family: Family,
        encoding: Mapping[str, Mapping[str, Any]],
        background: Background,
    ) -> None:
        self._writer = writer
        self._family = family
        self._encoding = encoding
        self._background = background
        self._pending: list[Record] = []
        self._measured: list[Statistics] = []
        self._bytes = 0
        self._next_row = family.rows
        self._made = family.rows > 0
        self._begun = self._made
        self._shared: dict[str, np.ndarray] = {}
        # Small columns are written with the commit.
        self._columns: dict[str, list[np.ndarray]] = {}

    @property
    def can_change(self) -> bool:
        """Whether the layout of the family may change: it has few datasets, all unwritten."""
        return not self._begun and len(self._pending) <= FEW

    def add(self, record: Record) -> int:
        """Add a dataset, which is written with the next batch; return its row."""
        self._pending.append(record)
        # The writing thread has more work than this one.
        self._measured.append({name: _measure(v) for name, v in record.variables.items()})
        self._bytes += record.nbytes
        if self._bytes >= BATCH:
            self._flush(self._filling())
        self._next_row += 1
        return self._next_row - 1

    def finish(self) -> None:
        """Write the gathered datasets and the metadata of the group."""
        self._flush(len(self._pending))
        self._background.submit(self._finish)

    def _flush(self, count: int) -> None:
        records, self._pending = self._pending[:count], self._pending[count:]
        measured, self._measured = self._measured[:count], self._measured[count:]
        self._bytes = sum(record.nbytes for record in self._pending)
        if records:
            self._begun = True
            self._background.submit(lambda: self._write(records, measured))

    def _write(self, records: list[Record], measured: list[Statistics]) -> None:
        if not self._made:
            self._make(records)
        self._write_attributes(records)
        for name in self._family.columns:
            self._write_variable(name, records)
        self._count(records)
        self._keep(measured)
        self._family.rows += len(records)

    def _finish(self) -> None:
        for path, parts in self._columns.items():
            self._writer.append(path, np.concatenate(parts))
        self._columns.clear()
        self._writer.create_group(self._family.group, self._family.group_attributes())
        for name in self._family.columns:
            self._writer.set_attributes(
                self._family.path(name), self._family.array_attributes(name)
            )

    def share(self, name: str, values: np.ndarray) -> None:
        """Set the values of a shared variable that the store has."""
        self._shared[name] = values

    def _filling(self) -> int:
        """Return the number of gathered datasets that fill shards, which avoids rewriting."""
        family = self._family
        if family.ragged:
            return len(self._pending)
        lengths = [self._cut(name)[1][0] for name in family.columns if name not in self._shared]
        first = self._next_row + 1 - len(self._pending)
        rows = max([n for n in lengths if n <= len(self._pending)], default=1)
        return (self._next_row + 1) // rows * rows - first

    def _make(self, records: list[Record]) -> None:
        """Create the arrays; coordinates that are equal in all datasets are stored once."""
        family = self._family
        for name, column in family.columns.items():
            values = [record.variables[name].values for record in records]
            alike = column.coordinate and family.ragged_dim(name) is None
            column.shared = alike and all(_are_same(values[0], other) for other in values)
            if column.shared:
                self._shared[name] = values[0]
                self._writer.create_array(family.path(name), values[0], dims=list(column.dims))
            else:
                self._declare(name)
        for dim in family.ragged:
            self._declare_column(family.counts(dim), np.int64, {"sample_dimension": dim})
        for name, column in family.columns.items():
            path = f"{family.group}/statistics/{name}"
            if has_range(column.type_name):
                self._declare_column(f"{path}_range", column.type_name, width=2)
            self._declare_column(f"{path}_counts", np.int64, width=2)
        self._made = True

    def _cut(self, name: str) -> tuple[list[int], list[int]]:
        family, column = self._family, self._family.columns[name]
        kind = column.type_name
        itemsize = _STRING_BYTES if kind in ("string", "bytes") else np.dtype(kind).itemsize
        chunks = self._encoding.get(name, {}).get("chunks")
        if family.ragged_dim(name) is not None:
            inner = family.shape(name)
            rows, shards = layout.column(itemsize * int(np.prod(inner, dtype=int)) or 1)
            return rows + [max(n, 1) for n in inner], shards + [max(n, 1) for n in inner]
        return layout.cut(family.shape(name), itemsize, chunks)

    def _declare(self, name: str) -> None:
        family, column = self._family, self._family.columns[name]
        encoding = self._encoding.get(name, {})
        chunks, shards = self._cut(name)
        self._writer.create_array(
            family.path(name),
            shape=(0, *family.shape(name)),
            dtype=_dtype(column.type_name),
            dims=family.dims(name),
            chunks=chunks,
            shards=shards,
            fill_value=_fill_value(column),
            profile=encoding.get("profile"),
            error_bound=encoding.get("error_bound"),
        )

    def _declare_column(
        self,
        path: str,
        dtype: Any,
        attributes: dict[str, Any] | None = None,
        *,
        width: int | None = None,
    ) -> None:
        """Create a column of one value for each dataset, or of `width` values."""
        itemsize = _STRING_BYTES if dtype is str else np.dtype(dtype).itemsize
        rows, shards = layout.column(itemsize * (width or 1))
        inner = [] if width is None else [width]
        self._writer.create_array(
            path,
            shape=(0, *inner),
            dtype=dtype,
            dims=(ROW, *(["value"] if inner else [])),
            chunks=rows + inner,
            shards=shards + inner,
            attrs=attributes,
        )

    def _write_attributes(self, records: list[Record]) -> None:
        family = self._family
        found, new = merge(family, records)
        for key in new:
            earlier = forget(family, key)
            path = self._column(key)
            self._declare_column(path, str)
            self._columns[path] = [np.full(family.rows, earlier, object)]
        for key, column in found.items():
            self._columns.setdefault(self._column(key), []).append(np.array(column, object))

    def _column(self, key: Key) -> str:
        return f"{self._family.group}/attributes/{self._family.varying.index(key)}"

    def _write_variable(self, name: str, records: list[Record]) -> None:
        family, column = self._family, self._family.columns[name]
        values = [record.variables[name].values for record in records]
        column.escaped |= any(record.variables[name].escaped for record in records)
        if column.shared:
            shared = self._shared[name]
            if all(_are_same(shared, other) for other in values):
                return
            self._expand(name, shared)
        if family.ragged_dim(name) is None:
            values = [piece[np.newaxis] for piece in values]
        elif leading := family.leading(name):
            values = [piece.reshape(piece.shape[leading:]) for piece in values]
        self._append(family.path(name), values)

    def _expand(self, name: str, shared: np.ndarray) -> None:
        """Store a shared variable for each dataset."""
        self._family.columns[name].shared = False
        path = self._family.path(name)
        self._writer.remove(path)
        self._declare(name)
        rest = self._family.rows
        while rest:
            rows = min(rest, max(BATCH // max(shared.nbytes, 1), 1))
            self._append(path, [shared[np.newaxis]] * rows)
            rest -= rows

    def _append(self, path: str, pieces: list[np.ndarray]) -> None:
        """Append arrays of equal dtype, which are not checked again."""
        first = pieces[0]
        if first.dtype.kind == "O":
            self._writer.append(path, *pieces)
            return
        shape = [sum(len(piece) for piece in pieces), *first.shape[1:]]
        dtype, _ = to_zarr(first[:0])
        self._writer._core.append(f"/{path}", pieces, dtype, shape)

    def _count(self, records: list[Record]) -> None:
        for dim in self._family.ragged:
            counts = np.array([record.sizes[dim] for record in records], np.int64)
            self._columns.setdefault(self._family.counts(dim), []).append(counts)

    def _keep(self, measured: list[Statistics]) -> None:
        for name, column in self._family.columns.items():
            path = f"{self._family.group}/statistics/{name}"
            found = [row[name] for row in measured]
            if has_range(column.type_name):
                ranges = np.array([row[:2] for row in found], column.type_name)
                self._columns.setdefault(f"{path}_range", []).append(ranges)
            counts = np.array([row[2:] for row in found], np.int64)
            self._columns.setdefault(f"{path}_counts", []).append(counts)


def _measure(variable: Variable) -> tuple[Any, Any, int, int]:
    if variable.escaped:
        return None, None, variable.values.size, count_missing(variable.values, variable.type_name)
    return measure(variable.values, variable.times is not None)


def _fill_value(column: Column) -> Any:
    if column.type_name in MISSING:
        return MISSING[column.type_name]
    return NOT_A_TIME if column.times else None


def _dtype(type_name: str) -> Any:
    return {"string": str, "bytes": bytes}.get(type_name, type_name)


def _are_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of equal dtype are equal bit for bit, also in NaN and -0."""
    return bool((a == b).all()) if a.dtype.kind == "O" else a.tobytes() == b.tobytes()
