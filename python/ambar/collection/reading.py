"""Reading a variable of many datasets at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar.collection.family import Family
from ambar.collection.ragged import Ragged
from ambar.collection.selecting import Isel, Piece, row_ranges
from ambar.collection.times import decoded_dtype
from ambar.store import Store


@dataclass(frozen=True)
class Bulk(Mapping[str, "np.ndarray | Ragged"]):
    """What was read of many datasets: an array (datasets, ...) a variable, or a `Ragged`."""

    names: list[str]
    """The datasets, in the order of the arrays' first dimension."""
    missing: dict[str, np.ndarray]
    """bool (datasets,) a variable: which lack it; the arrays have NaN, NaT, 0 or "" there."""
    _arrays: dict[str, np.ndarray | Ragged] = field(repr=False)

    def __getitem__(self, variable: str) -> np.ndarray | Ragged:
        return self._arrays[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self._arrays)


class Reader:
    """Reads from the families of one commit."""

    def __init__(self, store: Store, threads: int | None = None) -> None:
        self._store = store
        self._threads = threads
        self._counts: dict[int, np.ndarray] = {}

    def offsets(self, family: Family) -> np.ndarray:
        """Return where the rows of a ragged family begin: int64 (rows + 1)."""
        if family.number not in self._counts:
            counts = self._store[family.counts].read()
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
            if len(counts) != family.rows or (counts < 0).any():
                raise _core.CorruptError(
                    f"{self._store.location}: /{family.counts} does not count {family.rows} rows; "
                    "restore the store from a copy"
                )
            self._counts[family.number] = starts
        return self._counts[family.number]

    def dtype(self, family: Family, variable: str) -> np.dtype[Any]:
        """Return the dtype of a variable as it is read."""
        column = family.columns[variable]
        if column.times:
            return decoded_dtype(column.times)
        return np.dtype(object if column.type_name in ("string", "bytes") else column.type_name)

    def read(
        self,
        variable: str,
        pieces: list[Piece],
        count: int,
        out: np.ndarray | None,
        stack: bool,
    ) -> tuple[np.ndarray | Ragged, np.ndarray]:
        """Read a variable of `count` datasets; return its values and which datasets lack it."""
        having = [piece for piece in pieces if variable in piece.family.columns]
        missing = np.ones(count, bool)
        for piece in having:
            missing[piece.at] = False
        dtype = np.result_type(*{self.dtype(piece.family, variable) for piece in having})
        if len(having) == 1 and having[0].is_all(count):
            values = self._piece(variable, having[0], out, stack)
            if out is not None and values is not out:
                _check_out(out, values)
                out[...] = values
            return (values if out is None else out), missing
        found = [self._piece(variable, piece, None, stack) for piece in having]
        shapes = {values.shape[1:] for values in found if isinstance(values, np.ndarray)}
        if len(shapes) == 1 and all(isinstance(values, np.ndarray) for values in found):
            stacked = _nulls((count, *shapes.pop()), dtype)
            if out is not None:
                _check_out(out, stacked)
                out[...] = stacked
                stacked = out
            for piece, values in zip(having, found, strict=True):
                stacked[piece.at] = values
            return stacked, missing
        if out is not None:
            raise _core.InvalidError(f"out=: the shapes of {variable} differ between datasets")
        return _in_order(having, found, count, dtype), missing

    def _piece(
        self, variable: str, piece: Piece, out: np.ndarray | None, stack: bool
    ) -> np.ndarray | Ragged:
        """Read the rows of one family."""
        family, column = piece.family, piece.family.columns[variable]
        if family.is_ragged(variable):
            return self._ragged_piece(variable, piece, stack)
        keys = tuple(piece.isel.get(dim, slice(None)) for dim in column.dims)
        array = self._store[family.path(variable)]
        if column.shared:
            values = self._decode(family, variable, array.read(keys, threads=self._threads))
            return np.broadcast_to(values, (len(piece.at), *values.shape)).copy()
        key = (piece.row_key, *keys)
        if out is not None and out.dtype == array.dtype and array.dtype.kind != "O":
            return array.read(key, out=out, threads=self._threads)
        return self._decode(family, variable, array.read(key, threads=self._threads))

    def _ragged_piece(self, variable: str, piece: Piece, stack: bool) -> np.ndarray | Ragged:
        family, dims = piece.family, piece.family.columns[variable].dims
        starts = self.offsets(family)
        wanted = piece.isel.get(dims[0], slice(None))
        rows = piece.rows
        indices, counts = row_ranges(starts[rows], starts[rows + 1], wanted, dims[0])
        inner = tuple(piece.isel.get(dim, slice(None)) for dim in dims[1:])
        array = self._store[family.path(variable)]
        key: Any = indices
        if indices.size and indices[-1] - indices[0] + 1 == indices.size and _ascending(indices):
            key = slice(int(indices[0]), int(indices[-1]) + 1)
        values = array.read((key, *inner), threads=self._threads)
        values = self._decode(family, variable, values)
        if isinstance(wanted, (int, np.integer)):
            return values
        if stack and counts.size and (counts == counts[0]).all():
            return values.reshape(len(counts), int(counts[0]), *values.shape[1:])
        return Ragged(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))

    def _decode(self, family: Family, variable: str, values: np.ndarray) -> np.ndarray:
        times = family.columns[variable].times
        return values.view(decoded_dtype(times)) if times else values

    def coordinate(self, family: Family, dim: str, rows: np.ndarray) -> np.ndarray:
        """Return a coordinate: (length,) where all rows share it, else (rows, length)."""
        column = family.columns[dim]
        values = self._store[family.path(dim)].read(... if column.shared else (rows,))
        return self._decode(family, dim, values)


def isel_dims(isel: Isel, families: list[Family], variables: list[str]) -> None:
    """Check that each dimension of a selection is one of a variable's."""
    known = {
        dim
        for family in families
        for variable in variables
        if variable in family.columns
        for dim in family.columns[variable].dims
    }
    for dim in isel:
        if dim not in known:
            raise _core.InvalidError(
                f"no variable read has a dimension {dim!r}; there are: {', '.join(sorted(known))}"
            )


def _ascending(indices: np.ndarray) -> bool:
    return bool((np.diff(indices) == 1).all())


def _nulls(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array of what stands for missing values."""
    kind = dtype.kind
    if kind == "O":
        return np.full(shape, "", object)
    if kind in "fcmM":
        return np.full(shape, np.array("NaT" if kind in "mM" else np.nan, dtype))
    return np.zeros(shape, dtype)


def _check_out(out: np.ndarray, values: np.ndarray | Ragged) -> None:
    if isinstance(values, Ragged) or out.shape != values.shape or out.dtype != values.dtype:
        found = "ragged" if isinstance(values, Ragged) else f"{values.dtype}{values.shape}"
        raise _core.InvalidError(
            f"out= is {out.dtype}{out.shape}, but the selection is {found}; give one that fits"
        )


def _in_order(
    pieces: list[Piece],
    found: list[np.ndarray | Ragged],
    count: int,
    dtype: np.dtype[Any],
) -> Ragged:
    """Return the parts of all datasets in their order; those that lack the variable have none."""
    example = found[0][0] if len(found[0]) else np.empty((0,), dtype)
    empty = np.empty((0,) * max(example.ndim, 1), dtype)
    if example.ndim > 1:
        empty = np.empty((0, *example.shape[1:]), dtype)
    parts = [empty] * count
    for piece, values in zip(pieces, found, strict=True):
        for at, part in zip(piece.at, values, strict=True):
            parts[at] = part
    return Ragged.of(parts)
