"""Writes the datasets of a family: gathers them, and appends them to the arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeAlias

import numpy as np

from ambar.collection.storage import layout
from ambar.collection.storage.attributes import make_varying, merge
from ambar.collection.storage.encodings import MISSING, NOT_A_TIME, count_missing
from ambar.collection.storage.family import Family
from ambar.collection.storage.records import ROW, Record, Variable, has_range, measure
from ambar.store.writer import Writer

BATCH = 16 << 20
"""Raw bytes of a family's datasets that are encoded together."""

FEW = 16
"""Maximum number of unwritten datasets of a family that becomes ragged for another length."""

_STRING_BYTES = 32

Statistics: TypeAlias = dict[str, tuple[Any, Any, int, int]]
"""Statistics of each variable of a dataset; see `measure`."""


class Background:
    """One thread that runs tasks in order, with at most one task in the queue.

    After an error it runs no further task, and all methods raise the error again.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "ambar-collection")
        self._process = os.getpid()
        self._last: list[Future[None]] = []
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise the error of an earlier task, if any."""
        if self._error is not None:
            raise self._error

    def submit(self, work: Callable[[], None]) -> None:
        """Queue a task; raises the error of an earlier task."""
        self.check()
        if len(self._last) > 1:
            self._finish_first()
        self._last.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait for all tasks; raises the first error, without running the tasks after it."""
        self.check()
        while self._last:
            self._finish_first()

    def close(self) -> None:
        """Finish the running task, and cancel the queued one. Does nothing in a forked child."""
        if os.getpid() != self._process:
            return
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._last.clear()

    def _finish_first(self) -> None:
        first = self._last[0]
        # Ctrl-C here leaves the task in the queue, so that it can be waited for again.
        wait([first])
        del self._last[0]
        self._error = first.exception()
        if self._error is not None:
            self.close()
            raise self._error


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
        self._pending: list[tuple[Record, Statistics]] = []
        self._bytes = 0
        self._next_row = family.rows
        self._is_written = family.rows > 0
        self.shared: dict[str, np.ndarray] = {}
        """The values of variables that are stored once."""
        # Small columns are written with the commit.
        self._columns: dict[str, list[np.ndarray]] = {}

    @property
    def can_change(self) -> bool:
        """Whether the layout of the family may change: it has few datasets, all unwritten."""
        return not self._is_written and len(self._pending) <= FEW

    def add(self, record: Record) -> int:
        """Add a dataset, which is written with the next batch; return its row."""
        # Statistics are computed here, as the writing thread has more work than this one.
        self._pending.append((record, {key: _measure(v) for key, v in record.variables.items()}))
        self._bytes += record.nbytes
        self._next_row += 1
        if self._bytes >= BATCH:
            self._flush(self._count_that_fills_shards())
        return self._next_row - 1

    def finish(self) -> None:
        """Write the gathered datasets and the metadata of the group."""
        self._flush(len(self._pending))
        self._background.submit(self._write_metadata)

    def _flush(self, count: int) -> None:
        batch, self._pending = self._pending[:count], self._pending[count:]
        self._bytes = sum(record.nbytes for record, _ in self._pending)
        if batch:
            self._is_written = True
            self._background.submit(lambda: self._write(batch))

    def _count_that_fills_shards(self) -> int:
        """Return the number of gathered datasets that fill shards, which avoids rewriting."""
        family = self._family
        if family.ragged:
            return len(self._pending)
        lengths = [self._shapes(name)[1][0] for name in family.columns if name not in self.shared]
        rows = max([n for n in lengths if n <= len(self._pending)], default=1)
        return self._next_row // rows * rows - (self._next_row - len(self._pending))

    def _write(self, batch: list[tuple[Record, Statistics]]) -> None:
        records = [record for record, _ in batch]
        if self._family.rows == 0:
            self._create_arrays(records)
        self._write_attributes(records)
        for name in self._family.columns:
            self._write_variable(name, records)
        for dim in self._family.ragged:
            counts = np.array([record.sizes[dim] for record in records], np.int64)
            self._extend(self._family.counts(dim), counts)
        for name, column in self._family.columns.items():
            path = self._family.statistics(name)
            found = [statistics[name] for _, statistics in batch]
            if has_range(column.type_name):
                ranges = np.array([row[:2] for row in found], column.type_name)
                self._extend(f"{path}_range", ranges)
            self._extend(f"{path}_counts", np.array([row[2:] for row in found], np.int64))
        self._family.rows += len(records)

    def _write_metadata(self) -> None:
        for path, parts in self._columns.items():
            self._writer.append(path, np.concatenate(parts))
        self._columns.clear()
        self._writer._create_group(self._family.group, self._family.group_attributes())
        for name in self._family.columns:
            path = self._family.path(name)
            self._writer[path].attrs = self._family.array_attributes(name)

    def _create_arrays(self, records: list[Record]) -> None:
        """Create the arrays; coordinates that are equal in all datasets are stored once."""
        family = self._family
        for name, column in family.columns.items():
            first, *others = (record.variables[name].values for record in records)
            may_share = column.coordinate and family.ragged_dim(name) is None
            column.shared = may_share and all(_are_same(first, other) for other in others)
            if column.shared:
                self.shared[name] = first
                self._writer.create_array(family.path(name), first, dims=column.dims)
            else:
                self._create_array(name)
        for dim in family.ragged:
            self._create_column(family.counts(dim), "int64", attrs={"sample_dimension": dim})
        for name, column in family.columns.items():
            path = family.statistics(name)
            if has_range(column.type_name):
                self._create_column(f"{path}_range", column.type_name, (2,))
            self._create_column(f"{path}_counts", "int64", (2,))

    def _shapes(self, name: str) -> tuple[list[int], list[int]]:
        """Return the shapes of chunks and shards of a variable's array."""
        family = self._family
        itemsize = _itemsize(family.columns[name].type_name)
        if family.ragged_dim(name) is not None:
            return layout.column(family.shape(name), itemsize)
        chunks = self._encoding.get(name, {}).get("chunks")
        return layout.cut(family.shape(name), itemsize, chunks)

    def _create_array(self, name: str) -> None:
        family, column = self._family, self._family.columns[name]
        encoding = self._encoding.get(name, {})
        chunks, shards = self._shapes(name)
        self._writer.create_array(
            family.path(name),
            shape=(0, *family.shape(name)),
            dtype=_dtype(column.type_name),
            dims=family.dims(name),
            chunks=chunks,
            shards=shards,
            fill_value=MISSING.get(column.type_name, NOT_A_TIME if column.times else None),
            profile=encoding.get("profile"),
            error_bound=encoding.get("error_bound"),
        )

    def _create_column(
        self,
        path: str,
        type_name: str,
        inner: tuple[int, ...] = (),
        attrs: dict[str, Any] | None = None,
    ) -> None:
        """Create an array (datasets, *inner)."""
        chunks, shards = layout.column(inner, _itemsize(type_name))
        self._writer.create_array(
            path,
            shape=(0, *inner),
            dtype=_dtype(type_name),
            dims=(ROW, *["value"] * len(inner)),
            chunks=chunks,
            shards=shards,
            attrs=attrs,
        )

    def _extend(self, path: str, values: np.ndarray) -> None:
        """Add rows to a column, which is written with the commit."""
        self._columns.setdefault(path, []).append(values)

    def _write_attributes(self, records: list[Record]) -> None:
        family = self._family
        columns, new = merge(family, records)
        for key in new:
            earlier = make_varying(family, key)
            self._create_column(family.attribute(key), "string")
            self._extend(family.attribute(key), np.full(family.rows, earlier, object))
        for key, column in columns.items():
            self._extend(family.attribute(key), np.array(column, object))

    def _write_variable(self, name: str, records: list[Record]) -> None:
        family, column = self._family, self._family.columns[name]
        values = [record.variables[name].values for record in records]
        column.escaped |= any(record.variables[name].escaped for record in records)
        if column.shared:
            shared = self.shared[name]
            if all(_are_same(shared, other) for other in values):
                return
            self._expand(name, shared)
        if family.ragged_dim(name) is None:
            values = [piece[np.newaxis] for piece in values]
        elif leading := family.leading(name):
            values = [piece.reshape(piece.shape[leading:]) for piece in values]
        self._writer.append(family.path(name), np.concatenate(values))

    def _expand(self, name: str, shared: np.ndarray) -> None:
        """Store a shared variable for each dataset."""
        self._family.columns[name].shared = False
        path = self._family.path(name)
        self._writer.remove(path)
        self._create_array(name)
        remaining = self._family.rows
        while remaining:
            rows = min(remaining, max(BATCH // max(shared.nbytes, 1), 1))
            self._writer.append(path, np.broadcast_to(shared, (rows, *shared.shape)))
            remaining -= rows


def _measure(variable: Variable) -> tuple[Any, Any, int, int]:
    if variable.escaped:
        return None, None, variable.values.size, count_missing(variable.values, variable.type_name)
    return measure(variable.values, variable.times is not None)


def _itemsize(type_name: str) -> int:
    return _STRING_BYTES if type_name in MISSING else np.dtype(type_name).itemsize


def _dtype(type_name: str) -> Any:
    return {"string": str, "bytes": bytes}.get(type_name, type_name)


def _are_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of equal dtype are equal bit for bit, also in NaN and -0."""
    return bool((a == b).all()) if a.dtype.kind == "O" else a.tobytes() == b.tobytes()
