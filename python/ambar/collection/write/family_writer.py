"""Writes the datasets of a family: gathers them, and appends them to the arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ambar.collection.storage import layout
from ambar.collection.storage.attributes import make_varying, merge
from ambar.collection.storage.encodings import MISSING, NOT_A_TIME, count_missing
from ambar.collection.storage.family import Family
from ambar.collection.storage.records import (
    ROW,
    BoxReader,
    DeferredValues,
    Record,
    Variable,
    has_range,
    measure,
    merged_statistics,
)
from ambar.collection.storage.tails import GROUP as TAIL
from ambar.collection.storage.tails import MAX_BYTES, array_of, dtype_of, raw_bytes, write_tail
from ambar.collection.write.writer_thread import WriterThread
from ambar.store.store import Store
from ambar.store.writer import Writer

RECORDS = 8 << 20
"""Bytes in memory of datasets that become rows together."""

BATCH = 32 << 20
"""Raw bytes of the rows of a family that are encoded together."""

FEW = 16
"""Maximum number of unwritten datasets of a family that becomes ragged for another length."""

_STRING_BYTES = 32
"""Estimated bytes of a string."""


class FamilyWriter:
    """Appends datasets to one family, on a `WriterThread`."""

    def __init__(
        self,
        writer: Writer,
        family: Family,
        encoding: Mapping[str, Mapping[str, Any]],
        thread: WriterThread,
    ) -> None:
        self._writer = writer
        self._family = family
        self._encoding = encoding
        self._thread = thread
        self._pending: list[Record] = []
        self._bytes = 0
        self._next_row = family.rows
        self._is_written = family.rows > 0
        self.shared: dict[str, np.ndarray] = {}
        """The values of variables that are stored once."""
        # The rows that follow those of the arrays: tails, and rows that are not written yet.
        self._rows: dict[str, list[np.ndarray]] = {}
        self._row_bytes = 0
        self._has_tail = False
        self._main_rows: dict[str, int] = {}
        self._main_bytes = 0
        self._shards: dict[str, Sequence[int]] = {}
        self._added_to_arrays = False
        self._is_changed = False

    def load(self, store: Store) -> None:
        """Read the variables that are stored once, and the tails."""
        family = self._family
        for name, column in family.columns.items():
            if column.shared:
                self.shared[name] = store._array(family.path(name)).read()
        for path in self._paths():
            array = store._array(path)
            self._main_rows[path] = len(array)
            self._shards[path] = array.shards or array.chunks
            self._main_bytes += array.nbytes
            tail = array_of(store, path)[len(array) :]
            if len(tail):
                self._rows[path] = [tail]
                self._row_bytes += raw_bytes(tail)
                self._has_tail = True

    def _paths(self) -> Iterator[str]:
        """Yield the paths of the arrays of rows."""
        family = self._family
        for name, column in family.columns.items():
            if not column.shared:
                yield family.path(name)
            if has_range(column.type_name):
                yield f"{family.statistics(name)}_range"
            yield f"{family.statistics(name)}_counts"
        yield from map(family.counts, family.ragged)
        yield from map(family.attribute, family.varying)

    @property
    def number(self) -> int:
        """The number of the family."""
        return self._family.number

    @property
    def can_change(self) -> bool:
        """Whether the layout of the family may change: it has few datasets, all unwritten."""
        return not self._is_written and len(self._pending) <= FEW

    def add(self, record: Record) -> int:
        """Add a dataset, which is written with the next batch; return its row.

        A dataset with `DeferredValues` is written before the method returns.
        """
        if record.read is not None:
            self._flush()
        self._pending.append(record)
        self._bytes += record.nbytes
        self._next_row += 1
        if self._bytes >= RECORDS or record.read is not None:
            self._flush()
        if record.read is not None:
            self._thread.wait()
            record.read.check()
        return self._next_row - 1

    def add_rows(self, record: Record, values: Mapping[str, np.ndarray]) -> int:
        """Add datasets like `record`, with values (datasets, ...); return the row of the first."""
        self._flush()
        self._is_written = True
        self._thread.submit(lambda: self._write([record], values))
        row = self._next_row
        self._next_row += _count(values)
        return row

    def finish(self) -> None:
        """Write the gathered datasets and the metadata of the group."""
        self._flush()
        self._thread.submit(self._write_metadata)

    def _flush(self) -> None:
        batch, self._pending, self._bytes = self._pending, [], 0
        if batch:
            self._is_written = True
            self._thread.submit(lambda: self._write(batch))

    def _write(
        self, records: list[Record], stacked: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Write datasets; one that represents all, and the values of all, if they are `stacked`."""
        family = self._family
        repeats = 1 if stacked is None else _count(stacked)
        self._is_changed = True
        if family.rows == 0:
            self._create_arrays(records)
        self._write_attributes(records, repeats)
        for name in family.columns:
            self._write_variable(name, records, None if stacked is None else stacked[name])
            if records[0].read is not None and self._row_bytes > BATCH:
                self._fill_shards(family.path(name))
        for dim in family.ragged:
            counts = np.array([record.sizes[dim] for record in records], np.int64)
            self._extend(family.counts(dim), np.repeat(counts, repeats))
        family.rows += len(records) * repeats
        if self._row_bytes > BATCH:
            for path in list(self._rows):
                self._fill_shards(path)
        if self._row_bytes > BATCH:
            self._add_to_arrays()

    def _write_metadata(self) -> None:
        if not self._is_changed:
            return
        is_short = not self._added_to_arrays and self._row_bytes <= MAX_BYTES
        if is_short and self._main_bytes > MAX_BYTES:
            self._write_tails()
        else:
            self._add_to_arrays()
        self._added_to_arrays = self._is_changed = False
        self._writer._create_group(self._family.group, self._family.group_attributes())
        for name in self._family.columns:
            path = self._family.path(name)
            self._writer[path].attrs = self._family.array_attributes(name)

    def _fill_shards(self, path: str) -> None:
        """Append the rows that fill shards, which are not written again."""
        rows, shard = sum(map(len, self._rows.get(path, []))), self._shards[path][0]
        have = self._main_rows[path]
        count = (have + rows) // shard * shard - have
        if count > 0:
            parts = self._rows.pop(path)
            ends = np.cumsum([len(part) for part in parts])
            at = int(np.searchsorted(ends, count))
            first = count - (ends[at] - len(parts[at]))
            self._rows[path] = [parts[at][first:].copy(), *parts[at + 1 :]]
            self._append(path, *parts[:at], parts[at][:first])

    def _add_to_arrays(self) -> None:
        """Append all rows that are in memory."""
        for path, parts in self._rows.items():
            self._append(path, *parts)
        self._rows.clear()

    def _append(self, path: str, *parts: np.ndarray) -> None:
        """Append rows to an array; with the commit all others are appended, too."""
        nbytes = sum(map(raw_bytes, parts))
        self._row_bytes -= nbytes
        self._count_appended(path, sum(map(len, parts)), nbytes)
        self._writer.append(path, *parts)

    def _count_appended(self, path: str, rows: int, nbytes: int) -> None:
        self._main_rows[path] += rows
        self._main_bytes += nbytes
        self._added_to_arrays = True
        if self._has_tail:
            self._writer.remove(f"{TAIL}/{self._family.group}")
            self._has_tail = False

    def _write_tails(self) -> None:
        for path, parts in self._rows.items():
            parts[:] = [np.concatenate(parts)]
            write_tail(self._writer, path, parts[0], self._type_of(path, parts[0]))
        self._has_tail = True

    def _type_of(self, path: str, values: np.ndarray) -> str:
        if values.dtype.kind != "O":
            return values.dtype.str
        columns = self._family.columns.items()
        is_bytes = any(c.type_name == "bytes" and self._family.path(n) == path for n, c in columns)
        return "bytes" if is_bytes else "string"

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

    def _create_array(self, name: str, rows: int = 0) -> None:
        family, column = self._family, self._family.columns[name]
        encoding = self._encoding.get(name, {})
        chunks, shards = self._shapes(name)
        path = family.path(name)
        self._main_rows[path], self._shards[path] = 0, shards
        self._writer.create_array(
            path,
            shape=(rows, *family.shape(name)),
            dtype=dtype_of(column.type_name),
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
        self._main_rows[path], self._shards[path] = 0, shards
        self._writer.create_array(
            path,
            shape=(0, *inner),
            dtype=dtype_of(type_name),
            dims=(ROW, *["value"] * len(inner)),
            chunks=chunks,
            shards=shards,
            attrs=attrs,
        )

    def _extend(self, path: str, values: np.ndarray) -> None:
        """Add rows, which are written when there are many, or with the commit."""
        self._rows.setdefault(path, []).append(values)
        self._row_bytes += raw_bytes(values)

    def _write_attributes(self, records: list[Record], repeats: int) -> None:
        family = self._family
        columns, new = merge(family, records)
        for key in new:
            earlier = make_varying(family, key)
            self._create_column(family.attribute(key), "string")
            self._extend(family.attribute(key), np.full(family.rows, earlier, object))
            self._added_to_arrays = True  # also the rows of the tails
        for key, column in columns.items():
            self._extend(family.attribute(key), np.array(column * repeats, object))

    def _write_variable(self, name: str, records: list[Record], stacked: np.ndarray | None) -> None:
        family, column = self._family, self._family.columns[name]
        variables = [record.variables[name] for record in records]
        if isinstance(variables[0].values, DeferredValues):
            self._write_parts(name, variables[0], cast("BoxReader", records[0].read))
            return
        values = [variable.values for variable in variables]
        shape = values[0].shape
        leading = family.leading(name)
        if stacked is not None:
            sizes = np.full(len(stacked), values[0].size)
            rows = stacked
            if family.ragged_dim(name) is not None:
                length = len(stacked) * shape[leading]
                rows = stacked.reshape(length, *shape[leading + 1 :])
        elif family.ragged_dim(name) is not None:
            sizes = np.array([piece.size for piece in values], np.int64)
            if leading:
                values = [piece.reshape(piece.shape[leading:]) for piece in values]
            rows = _joined(values)
        else:
            sizes = np.full(len(values), values[0].size)
            rows = _joined(values) if shape else np.stack(values)
            rows = rows.reshape(len(values), *shape)
        if column.shared and not _are_equal_rows(rows, self.shared[name]):
            self._expand(name, self.shared[name])
        if not column.shared:
            self._extend(family.path(name), rows)
        ranges, counts = measure(rows.reshape(-1), sizes, column.times is not None)
        for row, variable in enumerate(variables) if rows.dtype.kind == "O" else ():
            if variable.escaped:
                column.escaped = True
                counts[row, 1] = count_missing(variable.values, column.type_name)
        self._extend_statistics(name, ranges, counts)

    def _write_parts(self, name: str, variable: Variable, read: BoxReader) -> None:
        """Write the values of a variable of one dataset, which are read in parts."""
        family, path = self._family, self._family.path(name)
        shape, dtype = variable.values.shape, variable.values.dtype
        rows, *inner = self._shards[path]
        is_ragged, leading = family.ragged_dim(name) is not None, family.leading(name)
        if is_ragged:
            shard = rows * math.prod(shape[leading + 1 :]) * dtype.itemsize
            rows *= max(layout.LARGEST_SHARD // shard, 1)
            part = [*shape[:leading], rows, *shape[leading + 1 :]]
        else:
            part = inner if rows == 1 else list(shape)
        boxes = list(layout.boxes(shape, part))
        has_regions = not is_ragged and len(boxes) > 1
        if has_regions:
            self._append_empty_row(name, variable.values.nbytes)
        statistics = []
        for box, values in zip(boxes, read(name, boxes, dtype), strict=True):
            statistics.append(measure(values.reshape(-1), np.array([values.size]), False))
            if has_regions:
                start = [self._main_rows[path] - 1, *(along.start for along in box)]
                self._writer.write_region(path, values[None], start)
            else:
                new = values.shape[leading:] if is_ragged else (1, *values.shape)
                self._extend(path, values.reshape(new))
                self._fill_shards(path)
        self._extend_statistics(name, *merged_statistics(statistics))

    def _append_empty_row(self, name: str, nbytes: int) -> None:
        """Append the row of a dataset, whose values are written in regions."""
        path = self._family.path(name)
        if earlier := self._rows.pop(path, None):
            self._append(path, *earlier)
        if self._main_rows[path]:
            column = self._family.columns[name]
            # The system does not allocate memory for zeros that are only read.
            row = np.zeros((1, *self._family.shape(name)), column.type_name)
            self._writer.append(path, row)
        else:  # the first region determines the codecs
            self._create_array(name, rows=1)
        self._count_appended(path, 1, nbytes)

    def _extend_statistics(self, name: str, ranges: np.ndarray | None, counts: np.ndarray) -> None:
        path = self._family.statistics(name)
        if ranges is not None:
            self._extend(f"{path}_range", ranges)
        self._extend(f"{path}_counts", counts)

    def _expand(self, name: str, shared: np.ndarray) -> None:
        """Store a shared variable for each dataset."""
        self._family.columns[name].shared = False
        path = self._family.path(name)
        self._writer.remove(path)
        self._create_array(name)
        self._added_to_arrays = True  # also the rows of the tails
        remaining = self._family.rows
        while remaining:
            rows = min(remaining, max(BATCH // max(shared.nbytes, 1), 1))
            self._extend(path, np.broadcast_to(shared, (rows, *shared.shape)))
            self._fill_shards(path)
            remaining -= rows


def _itemsize(type_name: str) -> int:
    return _STRING_BYTES if type_name in MISSING else np.dtype(type_name).itemsize


def _count(stacked: Mapping[str, np.ndarray]) -> int:
    """Return the number of datasets."""
    return len(next(iter(stacked.values())))


def _joined(values: list[np.ndarray]) -> np.ndarray:
    """Return arrays as one; a single one is not copied."""
    return values[0] if len(values) == 1 else np.concatenate(values)


def _are_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of equal dtype are equal bit for bit, also in NaN and -0."""
    return bool((a == b).all()) if a.dtype.kind == "O" else a.tobytes() == b.tobytes()


def _are_equal_rows(rows: np.ndarray, row: np.ndarray) -> bool:
    """Whether all rows are equal to another array bit for bit."""
    if rows.dtype.kind == "O":
        return bool((rows == row).all())
    return rows.tobytes() == row.tobytes() * len(rows)
