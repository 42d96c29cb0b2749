"""Reads the arrays that the description of a mesh refers to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.storage.packs import NUMBERS, decode_pack
from ambar.mesh.storage.references import (
    InMemory,
    Key,
    Selection,
    components_of,
    damaged,
    references_in,
)
from ambar.mesh.storage.temporal_deltas import read_row, row_dtype
from ambar.store.array import Array
from ambar.store.store import Store

_DTYPES = frozenset([np.dtype(object), *map(np.dtype, NUMBERS)])
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_READ_AHEAD_BELOW = 1 << 20
"""Stored bytes up to which an array is fetched together with its neighbors."""
_SLOW_CODEC = "simplices"
"""Arrays of this codec are cached, if steps share them: decoding is slow."""
_MAX_CACHED = 1 << 28
"""Bytes of the largest array that is cached."""
_DENSE = 0.9
"""Fraction of the chunks of a span that rows must be in, for the whole span to be read."""


@dataclass(frozen=True)
class ArrayStorage:
    """The space that an array of a mesh takes in the store."""

    path: str | None
    """The path of the array of the store; None if the description of the mesh has the values."""
    codecs: str
    chunk_count: int
    stored_bytes: int
    place: tuple[Any, ...] = ()
    """Identifies the values in the store."""


class ArrayReader:
    """Reads the arrays of the mesh at `base` in a store.

    Parameters
    ----------
    store : Store
        The store.
    base : str
        The group of the mesh.
    packs
        The description's key `packed`.
    threads : int, optional
        The number of threads that decode; all cores by default.

    Raises
    ------
    ValueError
        If `threads` is not an integer from 1 to 1024.
    """

    def __init__(self, store: Store, base: str, packs: Any, threads: int | None = None) -> None:
        _core.check_threads(threads)
        self._store = store
        self._base = base.strip("/")
        self._block = ""
        self._packs = packs if isinstance(packs, list) else []
        self._threads = threads
        self._values: dict[str, np.ndarray] = {}
        self._pack_values: dict[int, np.ndarray] = {}
        self.objects: dict[int, Any] = {}
        """VTK objects by the identity of their descriptions: shared blocks are one object."""

    @property
    def where(self) -> str:
        """The file, the group and the block, for messages."""
        mesh = f"{self._base}{self._block}".strip("/")
        return f"{self._store.location}: mesh {mesh}" if mesh else self._store.location

    @contextmanager
    def within(self, block: str) -> Iterator[None]:
        """Name a block of the mesh in messages, also in those of errors that leave it."""
        before, self._block = self._block, f"{self._block} {block}"
        yield
        self._block = before

    def damaged(self, what: str) -> _core.CorruptError:
        """Return the error for a damaged description."""
        return damaged(self.where, what)

    @contextmanager
    def damage_as_errors(self) -> Iterator[None]:
        """Raise CorruptError for the exceptions that a damaged description causes."""
        try:
            yield
        except _core.AmbarError:
            raise
        except _DAMAGE as error:
            raise self.damaged(f"its description is damaged: {error!r}") from error

    def path_of(self, at: str) -> str:
        """Return the path in the store of a path in the description."""
        return at.strip("/") if at.startswith("/") else f"{self._base}/{at}".strip("/")

    # Metadata of arrays

    def shape_of(self, reference: Any) -> tuple[int, ...]:
        """Return the shape of an array."""
        if (components := components_of(reference)) is not None:
            return (*self.shape_of(components[0]), len(components))
        at, row = self._at(reference), self._row(reference)
        if isinstance(at, (InMemory, Selection)):
            return self._values_at(at, row).shape
        if isinstance(at, list):
            return tuple(at[2:])
        return self._array(at).shape[0 if row is None else 1 :]

    def dtype_of(self, reference: Any) -> str:
        """Return the name of the dtype of a stored array; "string" or "bytes" for strings."""
        if (components := components_of(reference)) is not None:
            return self.dtype_of(components[0])
        at = self.stored_at(reference)
        if isinstance(at, list):
            pack = self._pack(at[0])
            if isinstance(pack, dict):
                return str(pack.get("dtype", "string"))
            at = pack
        elif self._row(reference) is not None:
            return row_dtype(self._store, self._array(at).path)
        return self._array(at).type_name

    def storage_of(self, reference: Any) -> ArrayStorage:
        """Return the space that a stored array takes.

        Raises CorruptError if the description, or a pack, is damaged.
        """
        at, row = self.stored_at(reference), self._row(reference)
        if isinstance(at, str):
            stored = self._storage_of_array(at)
            if row is None:
                return stored
            rows = max(self._array(at).shape[0], 1)
            return replace(
                stored,
                place=(stored.path, row),
                chunk_count=-(-stored.chunk_count // rows),
                stored_bytes=round(stored.stored_bytes / rows),
            )
        number, start, *shape = at
        stop = start + math.prod(shape)
        try:
            whole, stored = self._storage_of_pack(self._pack(number))
            share = round(stored.stored_bytes * math.prod(shape) / max(whole, 1))
        except (KeyError, TypeError) as error:
            raise self.damaged(f"pack {number} of small arrays is damaged ({error!r})") from error
        if stop > whole:
            raise self.damaged(f"a small array ends at {stop}, of {whole} values")
        return replace(stored, place=(self._base, *at), chunk_count=1, stored_bytes=share)

    def _storage_of_array(self, at: str) -> ArrayStorage:
        path, array = self.path_of(at), self._array(at)
        chunks = self._store._core.array(f"/{path}").chunk_count
        return ArrayStorage(path, array.codecs, chunks, array.stored_bytes, (path,))

    def _storage_of_pack(self, pack: Any) -> tuple[int, ArrayStorage]:
        """Return the number of values of a pack, and the space it takes."""
        if isinstance(pack, str):
            return math.prod(self._array(pack).shape), self._storage_of_array(pack)
        if "values" in pack:  # strings, deflated with the description
            return len(pack["values"]), ArrayStorage(None, "", 1, 0)
        shape, codecs, stored = pack["shape"], str(pack["codecs"]), pack["bytes"]
        return math.prod(shape), ArrayStorage(None, codecs, 1, stored)

    # Values of arrays

    def load(self, description: Any) -> None:
        """Read every array that `description` refers to."""
        arrays: dict[str, None] = {}
        slices: dict[int, list[list[int]]] = {}
        for reference in references_in(description):
            at = self._at(reference)
            if isinstance(at, str) and self._row(reference) is None:
                arrays[at] = None
            elif isinstance(at, Selection):
                at = at.at
            if isinstance(at, list):
                slices.setdefault(at[0], []).append(at)
        whole = {}
        for number, wanted in slices.items():
            pack = self._pack(number)
            if isinstance(pack, dict):
                self._pack_values[number] = decode_pack(pack, self.where)
            elif 2 * sum(math.prod(at[2:]) for at in wanted) > math.prod(self._array(pack).shape):
                whole[number] = pack
        self._read([*arrays, *whole.values()])
        for number, pack in whole.items():
            self._pack_values[number] = self._values.pop(pack)

    def get(
        self, reference: Any, what: str, *, ndim: tuple[int, ...] = (1, 2), kinds: str = "biufO"
    ) -> np.ndarray:
        """Return the values of an array.

        Parameters
        ----------
        reference
            The reference in the description.
        what
            What the array is, for messages.
        ndim
            The allowed numbers of dimensions.
        kinds
            The allowed kinds of NumPy dtypes.

        Raises
        ------
        CorruptError
            If the description or the array is damaged.
        """
        if (components := components_of(reference)) is not None:
            found = [self.get(each, what, ndim=(1, 3), kinds=kinds) for each in components]
            if any(each.shape != found[0].shape or each.dtype != found[0].dtype for each in found):
                raise self.damaged(f"{what} has components of different shapes or dtypes")
            if found[0].ndim + 1 not in ndim:
                raise self.damaged(f"{what} has components of shape {found[0].shape}")
            return np.stack(found, axis=-1)
        values = self._values_at(self._at(reference), self._row(reference))
        is_known = values.dtype in _DTYPES and values.dtype.kind in kinds
        if not is_known or values.ndim not in ndim:
            raise self.damaged(f"{what} has dtype {values.dtype} and shape {values.shape}")
        return values

    def stored_at(self, reference: Any) -> str | list[int]:
        """Return where a stored array is: a path, or [pack, start, shape...] of whole numbers.

        Raises CorruptError if the object is not a reference to a stored array.
        """
        at = self._at(reference)
        if isinstance(at, (str, list)):
            return at
        raise self.damaged(f"{reference!r:.80} is not a reference to a stored array")

    def _read(self, names: list[str]) -> None:
        """Read arrays into `_values`; small ones are fetched together."""
        arrays = {at: self._array(at) for at in names}
        near = [a.path for a in arrays.values() if a.stored_bytes < _READ_AHEAD_BELOW]
        ahead = self._store._core.read_ahead(near) if len(near) > 1 else None
        try:
            for at, array in arrays.items():
                self._values[at] = self._decoded(at, array)
        finally:
            if ahead is not None:
                ahead.release()

    def _decoded(self, at: str, array: Array) -> np.ndarray:
        """Return the values of an array; the caller may change them."""
        if not at.startswith("/") or _SLOW_CODEC not in array.codecs:
            return array.read(threads=self._threads)
        key = "connectivity that steps share"
        path, values = self._store._cache.get(key, ("", None))
        if path != array.path:
            values = array.read(threads=self._threads)
            if values.nbytes > _MAX_CACHED:
                return values
            self._store._cache[key] = (array.path, values)
        copied: np.ndarray = values.copy()
        return copied

    def _values_at(self, at: str | list[int] | InMemory | Selection, row: int | None) -> np.ndarray:
        """Return the values of an array, or of one of its rows."""
        if isinstance(at, InMemory):
            return at.values
        if isinstance(at, Selection):
            return self._read_selection(at, row)
        if isinstance(at, list):
            return self._read_from_pack(at)
        if row is not None:
            return read_row(self._store, self._array(at).path, row, self._threads)
        if at not in self._values:
            self._read([at])
        return self._values.pop(at)  # two VTK arrays must not share memory

    def _read_selection(self, selection: Selection, row: int | None) -> np.ndarray:
        """Read the selected tuples, and only these if the array has the shape of the selection."""
        shape, dims = selection.shape, len(selection.shape)
        if isinstance(selection.at, str) and row is None:
            array = self._array(selection.at)
            if array.shape[:dims] == shape:
                values = _read_key(array, selection.key, self._threads)
                return values.reshape(-1, *array.shape[dims:])
        values = self._values_at(selection.at, row)
        if dims == 1 and values.ndim > 2:  # a grid
            values = values.reshape(-1, *values.shape[3:])
        rest = values.shape[dims:]
        if values.shape[:dims] != shape:
            rest = values.shape[1:]
            if values.ndim == 0 or len(values) != math.prod(shape):
                raise self.damaged(f"an array has shape {values.shape}, not {shape} tuples")
        return values.reshape(*shape, *rest)[selection.key].reshape(-1, *rest)

    def _read_from_pack(self, at: list[int]) -> np.ndarray:
        number, start, *shape = at
        stop = start + math.prod(shape)
        pack, values = self._pack(number), self._pack_values.get(number)
        if values is None and isinstance(pack, dict):
            values = self._pack_values[number] = decode_pack(pack, self.where)
        stored = self._array(str(pack)) if values is None else values
        if stored.ndim != 1 or stop > stored.shape[0]:
            raise self.damaged(f"a small array ends at {stop}, after the end of its pack {number}")
        if values is None:
            values = self._array(str(pack)).read(slice(start, stop), threads=self._threads)
            return values.reshape(shape)
        return values[start:stop].reshape(shape)

    # Parts of references

    def _array(self, at: str) -> Array:
        try:
            return self._store._array(self.path_of(at))
        except _core.NotFoundError:
            raise self.damaged(f"it refers to an array {at!r:.80} that does not exist") from None

    def _pack(self, number: int) -> Any:
        if number >= len(self._packs) or not isinstance(self._packs[number], (str, dict)):
            raise self.damaged(f"it refers to pack {number} of small arrays, which does not exist")
        return self._packs[number]

    def _row(self, reference: Any) -> int | None:
        """Return the row of an array that a reference means; None for the whole array."""
        row = reference.get("row")
        if row is not None and (type(row) is not int or row < 0):
            raise self.damaged(f"{reference!r:.80} is not a reference to a row")
        return row

    def _at(self, reference: Any) -> str | list[int] | InMemory | Selection:
        at = reference.get("at") if isinstance(reference, dict) else None
        if isinstance(at, (str, InMemory, Selection)):
            return at
        if isinstance(at, list) and len(at) >= 3 and all(type(n) is int and n >= 0 for n in at):
            return at
        raise self.damaged(f"{reference!r:.80} is not a reference to an array")


def _read_key(array: Array, key: Key, threads: int | None) -> np.ndarray:
    """Return the selected part of an array.

    Rows that are in nearly all chunks of a span are taken from the whole span: reading a span is
    several times faster than reading as many single rows.
    """
    (rows, *others) = key
    if others or not isinstance(rows, np.ndarray) or len(rows) == 0:
        return array.read(key, threads=threads)
    size = array.chunks[0]
    first, last = int(rows.min()) // size, int(rows.max()) // size
    is_needed = np.zeros(last - first + 1, bool)
    is_needed[rows // size - first] = True
    if np.count_nonzero(is_needed) < _DENSE * len(is_needed):
        return array.read(key, threads=threads)
    start = first * size
    span = array.read(slice(start, min((last + 1) * size, array.shape[0])), threads=threads)
    is_all = len(rows) == len(span) and bool((rows[1:] > rows[:-1]).all())
    return span if is_all else span[rows - start]
