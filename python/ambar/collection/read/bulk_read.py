"""Reading a variable of many datasets in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar._util import text
from ambar.collection.read.indexing import Piece, as_slice, row_ranges, with_leading
from ambar.collection.storage.encodings import MISSING, decode_strings, decoded_dtype
from ambar.collection.storage.family import Column, Family, open_array
from ambar.collection.storage.ragged import RaggedArray, offsets_of
from ambar.collection.storage.row_cache import blocks_of
from ambar.store.array import Array
from ambar.store.dtypes import common_dtype
from ambar.store.store import Store


@dataclass(frozen=True, repr=False, eq=False)
class CollectionData(Mapping[str, Any]):
    """Variables of many datasets in memory, as `Collection.read` returns them.

    A mapping from the name of a variable to its values: an array (datasets, ...), or a
    `RaggedArray` if the shapes of the datasets differ.

    Examples
    --------
    >>> data = ambar.open_collection("profiles.ambar").read(["temperature", "depth"])
    >>> data
    <ambar.CollectionData> 2 variables of 4 datasets
      temperature  (4, 30)  float32
      depth        (4, 30)  float64
    >>> data.names[:2]
    ['station_0040', 'station_0041']
    >>> data.missing["temperature"].any()
    np.False_
    """

    names: list[str]
    """The names of the datasets, in the order of the first dimension of the arrays."""
    missing: dict[str, np.ndarray]
    """bool (datasets,) by variable: the datasets without it, whose values are NaN, NaT, 0 or ""."""
    _arrays: dict[str, np.ndarray | RaggedArray] = field(repr=False)

    def __getitem__(self, variable: str) -> Any:
        try:
            return self._arrays[variable]
        except KeyError:
            raise _core.NotFoundError(
                f"no variable {variable!r} was read; available: {', '.join(self._arrays)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    # Mappings compare values, and the truth value of an array is ambiguous.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self._arrays)

    def __repr__(self) -> str:
        rows: list[tuple[object, ...]] = [
            (name, "ragged", array.values.dtype)
            if isinstance(array, RaggedArray)
            else (name, array.shape, array.dtype)
            for name, array in self._arrays.items()
        ]
        sizes = text.plural(len(self), "variable"), text.plural(len(self.names), "dataset")
        title = f"<ambar.CollectionData> {' of '.join(sizes)}"
        return text.representation(title, {}, text.columns(rows))


class Reader:
    """Reads the arrays of the families of one commit."""

    def __init__(self, store: Store, threads: int | None = None) -> None:
        self._store = store
        self._threads = threads
        self._offsets: dict[tuple[int, str], np.ndarray] = {}
        self._arrays: dict[tuple[int, str], Array] = {}

    def array(self, family: Family, variable: str) -> Array:
        """Return the array of a variable; raises CorruptError if it does not match the family."""
        found = self._arrays.get((family.number, variable))
        if found is None:
            column = family.columns[variable]
            shape: tuple[int, ...] = family.shape(variable)
            dim = family.ragged_dim(variable)
            if dim is not None:
                shape = (int(self.offsets(family, dim)[-1]), *shape)
            elif not column.shared:
                shape = (family.rows, *shape)
            found = open_array(self._store, family.path(variable), shape, column.type_name)
            self._arrays[family.number, variable] = found
        return found

    def offsets(self, family: Family, dim: str) -> np.ndarray:
        """Return the offsets of the rows of a family along a ragged dimension: int64 (rows + 1)."""
        key = family.number, dim
        if key not in self._offsets:
            path = family.counts(dim)
            counts = open_array(self._store, path, (family.rows,), "int64").read()
            starts = offsets_of(counts)
            if len(counts) != family.rows or (counts < 0).any() or (starts < 0).any():
                raise _core.CorruptError(
                    f"{self._store.location}: /{path} has {len(counts)} counts, expected "
                    f"{family.rows} of at least 0; restore the store from a copy"
                )
            self._offsets[key] = starts
        return self._offsets[key]

    def read_many(
        self,
        variables: Sequence[str],
        pieces: list[Piece],
        names: list[str],
        out: np.ndarray | Mapping[str, np.ndarray] | None,
        stack: bool,
    ) -> CollectionData:
        """Read variables of datasets; `names` are those of all datasets of the pieces."""
        arrays: dict[str, np.ndarray | RaggedArray] = {}
        missing = {}
        for name in variables:
            if not any(name in piece.family.columns for piece in pieces):
                raise _core.NotFoundError(
                    f"{self._store.location}: expected selected datasets with the variable "
                    f"{name!r}, found none; select other datasets"
                )
            _check_numbers_of_dims(name, pieces, names)
            into = out.get(name) if isinstance(out, Mapping) else out
            arrays[name], missing[name] = self.read(name, pieces, len(names), into, stack)
        return CollectionData(names, missing, arrays)

    def read(
        self,
        variable: str,
        pieces: list[Piece],
        count: int,
        out: np.ndarray | None = None,
        stack: bool = True,
    ) -> tuple[np.ndarray | RaggedArray, np.ndarray]:
        """Read a variable of `count` datasets; return its values, and a mask of missing ones."""
        pieces = [piece for piece in pieces if variable in piece.family.columns]
        missing = np.ones(count, bool)
        for piece in pieces:
            missing[piece.at] = False
        dtype = common_dtype(
            variable, {dtype_of(piece.family.columns[variable]) for piece in pieces}
        )
        if len(pieces) == 1 and pieces[0].is_all(count):
            values = self._piece(variable, pieces[0], out, stack)
        else:
            found = [self._piece(variable, piece, None, stack) for piece in pieces]
            values = _joined(pieces, found, count, dtype)
        if out is None or values is out:
            return values, missing
        if isinstance(values, RaggedArray):
            raise _core.InvalidError(f"out=: the shapes of {variable} differ between datasets")
        if out.shape != values.shape or out.dtype != values.dtype:
            raise _core.InvalidError(
                f"out= is {out.dtype}{out.shape}, expected {values.dtype}{values.shape} as the "
                "selection"
            )
        out[...] = values
        return out, missing

    def value(self, family: Family, variable: str, row: int) -> np.ndarray:
        """Return a variable of one dataset."""
        column = family.columns[variable]
        if column.shared:
            return self.shared(family, variable)
        if family.ragged_dim(variable) is not None:
            piece = Piece(family, np.array([row]), np.zeros(1, np.int64), {})
            return np.asarray(self.read(variable, [piece], 1)[0][0])
        self.array(family, variable)
        return decoded(column, blocks_of(self._store).row(family.path(variable), row))

    def _piece(
        self, variable: str, piece: Piece, out: np.ndarray | None, stack: bool
    ) -> np.ndarray | RaggedArray:
        """Read the rows of one family."""
        family, column = piece.family, piece.family.columns[variable]
        if family.ragged_dim(variable) is not None:
            return self._ragged_piece(variable, piece, stack)
        keys = tuple(piece.isel.get(dim, slice(None)) for dim in column.dims)
        array = self.array(family, variable)
        if column.shared:
            values = decoded(column, array.read(keys, threads=self._threads))
            return np.broadcast_to(values, (len(piece.at), *values.shape)).copy()
        key = (piece.row_key, *keys)
        if out is not None and out.dtype == array.dtype and array.dtype.kind != "O":
            return array.read(key, out=out, threads=self._threads)
        return decoded(column, array.read(key, threads=self._threads))

    def _ragged_piece(self, variable: str, piece: Piece, stack: bool) -> np.ndarray | RaggedArray:
        dims = piece.family.columns[variable].dims
        leading = piece.family.leading(variable)
        keys = tuple(piece.isel.get(dim, slice(None)) for dim in dims[:leading])
        values, counts = self.end_to_end(variable, piece)
        # The dimensions before the ragged one have length 1; indices remove or repeat them.
        before = with_leading(np.empty(()), keys).shape
        is_index = _is_removed(dims[leading], piece)
        if is_index or (stack and counts.size and (counts == counts[0]).all()):
            each = values.shape[1:] if is_index else (int(counts[0]), *values.shape[1:])
            stacked = values.reshape(len(counts), *(1,) * len(before), *each)
            if not before:
                return stacked
            return np.broadcast_to(stacked, (len(counts), *before, *each)).copy()
        found = RaggedArray(values, offsets_of(counts))
        if not (before and len(found)):
            return found
        return RaggedArray.of([np.broadcast_to(part, (*before, *part.shape)) for part in found])

    def end_to_end(self, variable: str, piece: Piece) -> tuple[np.ndarray, np.ndarray]:
        """Read a ragged variable, without the dimensions before the ragged one.

        Returns the values of all rows consecutively, and the number of values of each row.
        """
        family, column = piece.family, piece.family.columns[variable]
        dim, *after = column.dims[family.leading(variable) :]
        array = self.array(family, variable)  # its length is checked against the offsets
        starts = self.offsets(family, dim)
        rows = piece.rows
        wanted = piece.isel.get(dim, slice(None))
        indices, counts = row_ranges(starts[rows], starts[rows + 1], wanted, dim)
        inner = tuple(piece.isel.get(dim, slice(None)) for dim in after)
        values = array.read((as_slice(indices), *inner), threads=self._threads)
        return decoded(column, values), counts

    def shared(self, family: Family, variable: str) -> np.ndarray:
        """Return the values of a variable that are equal in all rows."""
        return decoded(family.columns[variable], self.array(family, variable).read())

    def coordinate(self, family: Family, dim: str, rows: np.ndarray) -> np.ndarray:
        """Return a coordinate: (length,) if it is shared by all rows, otherwise (rows, length)."""
        if family.columns[dim].shared:
            return self.shared(family, dim)
        return decoded(family.columns[dim], self.array(family, dim).read((rows,)))


def dtype_of(column: Column) -> np.dtype[Any]:
    """Return the dtype of decoded values."""
    if column.times:
        return decoded_dtype(column.times)
    return np.dtype(object if column.type_name in MISSING else column.type_name)


def decoded(column: Column, values: np.ndarray) -> np.ndarray:
    """Return decoded values: times and strings."""
    if column.times:
        return values.view(decoded_dtype(column.times))
    return decode_strings(values, column.type_name) if column.escaped else values


def check_dims(dims: Iterable[str], pieces: list[Piece], variables: list[str]) -> None:
    """Raise ValueError if variables exist, and none of them has one of the dimensions."""
    columns = [
        piece.family.columns[variable]
        for piece in pieces
        for variable in variables
        if variable in piece.family.columns
    ]
    if not columns:
        return
    known = {dim for column in columns for dim in column.dims}
    for dim in dims:
        if dim not in known:
            raise _core.InvalidError(
                f"no variable read has a dimension {dim!r}; available: {', '.join(sorted(known))}"
            )


def _check_numbers_of_dims(variable: str, pieces: list[Piece], names: list[str]) -> None:
    """Raise ValueError if the selected values of a variable differ in the number of dimensions."""
    found: dict[int, tuple[tuple[str, ...], int]] = {}
    for piece in pieces:
        if variable in piece.family.columns and len(piece.at):
            dims = piece.family.columns[variable].dims
            kept = [dim for dim in dims if not _is_removed(dim, piece)]
            found.setdefault(len(kept), (dims, int(piece.at[0])))
    if len(found) > 1:
        listed = ", ".join(f"({', '.join(dims)}) in {names[at]!r}" for dims, at in found.values())
        raise _core.InvalidError(
            f"the variable {variable!r} has different numbers of dimensions: {listed}; select "
            "datasets of one family"
        )


def _is_removed(dim: str, piece: Piece) -> bool:
    """Return whether one index is selected along a dimension, which removes it."""
    key = piece.isel.get(dim, slice(None))
    return not isinstance(key, slice) and np.ndim(key) == 0


def _nulls(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array of missing values: NaN, NaT, 0 or an empty string."""
    kind = dtype.kind
    if kind == "O":
        return np.full(shape, "", object)
    if kind in "fcmM":
        return np.full(shape, np.array("NaT" if kind in "mM" else np.nan, dtype))
    return np.zeros(shape, dtype)


def _joined(
    pieces: list[Piece],
    found: list[np.ndarray | RaggedArray],
    count: int,
    dtype: np.dtype[Any],
) -> np.ndarray | RaggedArray:
    """Return the values of all datasets in order; datasets without the variable have nulls."""
    shapes = {None if isinstance(values, RaggedArray) else values.shape[1:] for values in found}
    if len(shapes) == 1 and (shape := shapes.pop()) is not None:
        stacked = _nulls((count, *shape), dtype)
        for piece, values in zip(pieces, found, strict=True):
            stacked[piece.at] = values
        return stacked
    if not count:
        inner = found[0].values.shape[1:] if isinstance(found[0], RaggedArray) else ()
        return RaggedArray(np.empty((0, *inner), dtype), offsets_of([]))
    firsts = [np.asarray(values[0]) for values in found if len(values)]
    inner = firsts[0].shape[1:] if firsts else ()
    parts = [np.empty((0, *inner), dtype)] * count
    for piece, values in zip(pieces, found, strict=True):
        for at, part in zip(piece.at, values, strict=True):
            parts[at] = part
    return RaggedArray.of(parts)
