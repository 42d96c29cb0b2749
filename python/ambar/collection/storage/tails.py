"""Tails of arrays of rows: a commit of few rows writes a tail instead of the last shard again.

The rows of an array ``PATH`` of a collection continue in the array ``tail/PATH``, if it exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar import _core
from ambar.store.array import Array, Selection
from ambar.store.commit import Commit
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "tail"
MAX_BYTES = 64 << 10
"""Raw bytes of all tails of a family, or of the catalogue; more rows are added to the arrays."""


class TailedArray(Array):
    """An array whose last rows are in another array, its tail."""

    def __init__(self, commit: Commit, path: str) -> None:
        super().__init__(commit, path)
        self._tail = Array(commit, f"/{GROUP}/{self.path}")
        found, main = self._tail, super().shape
        if (
            not main
            or found.type_name != self.type_name
            or found.shape[:1] > found.chunks[:1]  # one chunk bounds the memory
            or (found.ndim, found.shape[1:]) != (len(main), main[1:])
        ):
            raise _core.CorruptError(
                f"{commit.core.location}: /{found.path} is {found.type_name}{found.shape} in "
                f"chunks {found.chunks}, expected one chunk of rows of {self.type_name}{main}; "
                "restore the store from a copy"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, including the tail."""
        rows, *inner = super().shape
        return (rows + len(self._tail), *inner)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the encoded chunks, including the tail."""
        return super().stored_bytes + self._tail.stored_bytes

    def _values(self, selection: Selection, threads: int | None) -> np.ndarray:
        rows, *inner = selection.parts
        if isinstance(rows, range) and rows.step < 0:
            rows = rows[::-1]  # `Selection.arrange` reverses the values
        main = super().shape[0]
        if len(rows) == 0 or (rows[-1] if isinstance(rows, range) else rows.max()) < main:
            return super()._values(selection, threads)
        if isinstance(rows, range):
            count = len(range(rows.start, min(main, rows.stop), rows.step))
            before: Any = rows[:count]
            after: Any = range(rows[count] - main, rows[-1] + 1 - main, rows.step)
            order = None
        else:
            is_after = rows >= main
            before, after = rows[~is_after], rows[is_after] - np.uint64(main)
            order = np.argsort(np.argsort(is_after, kind="stable"), kind="stable")
        values = self._tail._values(Selection([after, *inner], ()), threads)
        if len(before):
            first = super()._values(Selection([before, *inner], ()), threads)
            values = np.concatenate([first, values])
        return values if order is None else values[order]

    def _read_into(self, selection: Selection, out: np.ndarray, threads: int | None) -> np.ndarray:
        self._check_out(selection, out)
        out[...] = selection.arrange(self._values(selection, threads))
        return out


def array_of(store: Store, path: str) -> Array:
    """Return an array of a collection, with its tail."""
    if f"{GROUP}/{path}" in store:
        return TailedArray(store._commit, f"/{path}")
    return store._array(path)


def write_tail(writer: Writer, path: str, values: np.ndarray, type_name: str) -> None:
    """Replace the tail of an array."""
    tail = f"{GROUP}/{path}"
    chunk = [max(size, 1) for size in values.shape]
    shape = (0, *values.shape[1:])
    writer.create_array(tail, shape=shape, dtype=dtype_of(type_name), chunks=chunk)
    writer.append(tail, values)


def raw_bytes(values: np.ndarray) -> int:
    """Return the bytes of values, with those of strings."""
    if values.dtype.kind == "O":
        return sum(map(len, values.flat)) + values.nbytes
    return values.nbytes


def dtype_of(type_name: str) -> Any:
    """Return the dtype with which `Writer.create_array` makes an array of a type."""
    return {"string": str, "bytes": bytes}.get(type_name, type_name)
