"""Reads the arrays of a mesh that its description refers to: those wanted, and together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.storage.array_references import Given, Key, Part
from ambar.mesh.storage.packs import NUMBERS, pack_values
from ambar.mesh.storage.references import components_of, references_in
from ambar.mesh.storage.temporal_deltas import read_row, row_dtype
from ambar.store.array import Array
from ambar.store.store import Store

_KNOWN = frozenset([np.dtype(object), *map(np.dtype, NUMBERS)])
_TOGETHER = 1 << 20
"""Stored bytes up to which an array is fetched with its neighbours."""
_SLOW = "simplices"
"""The codec that takes so long that what steps share is kept for the next step."""
_WORTH_A_SPAN = 0.9
"""The part of the chunks of a span that rows must be in for all of it to be read."""
_MOST_KEPT = 1 << 28
"""Bytes of an array up to which it is."""


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


class Source:
    """The arrays of the mesh at `base` in a store.

    Parameters
    ----------
    store
        The store.
    base
        The mesh's group.
    packs
        The description's key `packed`.
    threads
        Threads to decode with; all cores by default.

    Raises
    ------
    ValueError
        If `threads` is not a whole number from 1 on.
    """

    def __init__(self, store: Store, base: str, packs: Any, threads: int | None = None) -> None:
        if threads is not None and (type(threads) is not int or threads < 1):
            raise _core.InvalidError(
                f"invalid number of threads: {threads!r}; expected a whole number from 1 on, or "
                "None for all cores"
            )
        self._store = store
        self._base = base.strip("/")
        self._packs = packs if isinstance(packs, list) else []
        self._threads = threads
        self._values: dict[str, np.ndarray] = {}
        self._whole: dict[int, np.ndarray] = {}
        self.objects: dict[int, Any] = {}
        """VTK's objects by the identity of their descriptions: blocks that are shared are one."""

    @property
    def where(self) -> str:
        """The file and the group, for messages."""
        return f"{self._store.location}: mesh /{self._base}"

    def damaged(self, what: str) -> _core.CorruptError:
        """Return the error that says what of the description cannot be."""
        return _core.CorruptError(f"{self.where}: {what}; restore the store from a copy")

    def path_of(self, at: str) -> str:
        """Return the path in the store of what the description calls `at`."""
        return at.strip("/") if at.startswith("/") else f"{self._base}/{at}".strip("/")

    def shape_of(self, reference: Any) -> tuple[int, ...]:
        """Return the shape of an array that is not read yet."""
        if (parts := components_of(reference)) is not None:
            return (*self.shape_of(parts[0]), len(parts))
        at = self._at(reference)
        if isinstance(at, Given):
            return at.values.shape
        row = self._row(reference)
        if isinstance(at, Part):
            return self._part(at, row).shape
        if isinstance(at, list):
            return tuple(at[2:])
        return self._array(at).shape[0 if row is None else 1 :]

    def dtype_of(self, reference: Any) -> str:
        """Return the dtype of an array that is not read yet; "string" and "bytes" for texts."""
        if (parts := components_of(reference)) is not None:
            return self.dtype_of(parts[0])
        at = self.stored_at(reference)
        if isinstance(at, str):
            if self._row(reference) is not None:
                return row_dtype(self._store, self._array(at).path.strip("/"))
            return self._array(at).type_name
        pack = self._pack(at[0])
        if isinstance(pack, str):
            return self._array(pack).type_name
        return str(pack.get("dtype", "string"))

    def storage_of(self, reference: Any) -> ArrayStorage:
        """Return the space that a stored array takes in the store.

        Raises CorruptError if the description, or a pack, is damaged.
        """
        at = self.stored_at(reference)
        if isinstance(at, str):
            stored = self._storage_of_node(at)
            if self._row(reference) is None:
                return stored
            rows = max(self._array(at).shape[0], 1)
            return replace(
                stored,
                place=(stored.path, self._row(reference)),
                chunk_count=-(-stored.chunk_count // rows),
                stored_bytes=round(stored.stored_bytes / rows),
            )
        number, start, *shape = at
        count = math.prod(shape)
        pack = self._pack(number)
        try:
            whole, stored = self._storage_of_pack(pack)
            if start + count > whole:
                raise self.damaged(f"a small array ends at {start + count}, of {whole} values")
            share = round(stored.stored_bytes * count / max(whole, 1))
        except (KeyError, TypeError) as error:
            raise self.damaged(f"pack {number} of small arrays is damaged ({error!r})") from error
        return replace(stored, place=(self._base, *at), chunk_count=1, stored_bytes=share)

    def _storage_of_node(self, at: str) -> ArrayStorage:
        path, array = self.path_of(at), self._array(at)
        chunks = self._store.core.array(f"/{path}").chunk_count
        return ArrayStorage(path, array.codecs, chunks, array.stored_bytes, (path,))

    def _storage_of_pack(self, pack: Any) -> tuple[int, ArrayStorage]:
        """Return the number of values of a pack, and the space it takes."""
        if isinstance(pack, str):
            return math.prod(self._array(pack).shape), self._storage_of_node(pack)
        if "values" in pack:  # strings, deflated with the description
            return len(pack["values"]), ArrayStorage(None, "", 1, 0)
        shape, codecs, stored = pack["shape"], str(pack["codecs"]), pack["bytes"]
        return math.prod(shape), ArrayStorage(None, codecs, 1, stored)

    def load(self, description: Any) -> None:
        """Read every array that `description` refers to."""
        arrays: dict[str, None] = {}
        slices: dict[int, list[list[int]]] = {}
        for reference in references_in(description):
            at = self._at(reference)
            if isinstance(at, str):
                if self._row(reference) is None:
                    arrays[at] = None
            elif isinstance(at, list):
                slices.setdefault(at[0], []).append(at)
            elif isinstance(at, Part) and isinstance(at.at, list):
                slices.setdefault(at.at[0], []).append(at.at)
        whole = []
        for number, wanted in slices.items():
            pack = self._pack(number)
            if isinstance(pack, dict):
                self._whole[number] = pack_values(pack, self.where)
            elif self._worth(pack, wanted):
                whole.append((number, pack))
        self._read([*arrays, *(pack for _, pack in whole)])
        for number, pack in whole:
            self._whole[number] = self._values.pop(pack)

    def _worth(self, pack: str, wanted: list[list[int]]) -> bool:
        """Whether so much of a pack is wanted that all of it is read at once."""
        length = math.prod(self._array(pack).shape)
        return 2 * sum(math.prod(at[2:]) for at in wanted) > length

    def _array(self, at: str) -> Array:
        """Return the array that the description calls `at`."""
        try:
            return self._store[self.path_of(at)]
        except _core.NotFoundError:
            raise self.damaged(f"it refers to an array {at!r:.80} that does not exist") from None

    def _read(self, names: list[str]) -> None:
        arrays = {at: self._array(at) for at in names}
        near = [array.path for array in arrays.values() if array.stored_bytes < _TOGETHER]
        ahead = self._store.core.read_ahead(near) if len(near) > 1 else None
        try:
            for at, array in arrays.items():
                self._values[at] = self._decoded(at, array)
        finally:
            if ahead is not None:
                ahead.release()

    def _decoded(self, at: str, array: Array) -> np.ndarray:
        """Return the values of an array, its own memory."""
        if not at.startswith("/") or _SLOW not in array.codecs:
            return array.read(threads=self._threads)
        key = "corners that steps share"
        path, values = self._store.kept.get(key, ("", None))
        if path != array.path:
            values = array.read(threads=self._threads)
            if values.nbytes > _MOST_KEPT:
                return values
            self._store.kept[key] = (array.path, values)
        copied: np.ndarray = values.copy()
        return copied

    def get(
        self, reference: Any, what: str, *, ndim: tuple[int, ...] = (1, 2), kinds: str = "biufO"
    ) -> np.ndarray:
        """Return the values of an array.

        Parameters
        ----------
        reference
            The object of the description that refers to it.
        what
            What it is, for messages.
        ndim
            How many dimensions it may have.
        kinds
            Of which kinds of NumPy's dtypes it may be.

        Raises
        ------
        CorruptError
            If the description, or the array, is not what it must be.
        """
        if (parts := components_of(reference)) is not None:
            found = [self.get(part, what, ndim=(1, 3), kinds=kinds) for part in parts]
            if any(each.shape != found[0].shape or each.dtype != found[0].dtype for each in found):
                raise self.damaged(f"{what} has components of different shapes or dtypes")
            if found[0].ndim + 1 not in ndim:
                raise self.damaged(f"{what} has components of shape {found[0].shape}")
            return np.stack(found, axis=-1)
        at, row = self._at(reference), self._row(reference)
        if isinstance(at, Given):
            values = at.values
        elif isinstance(at, Part):
            values = self._part(at, row)
        else:
            values = self._stored(at, row)
        if values.dtype.kind not in kinds or values.ndim not in ndim:
            raise self.damaged(f"{what} has dtype {values.dtype} and shape {values.shape}")
        if values.dtype not in _KNOWN:
            raise self.damaged(f"{what} has dtype {values.dtype}, which VTK has not")
        return values

    def _stored(self, at: str | list[int], row: int | None) -> np.ndarray:
        if isinstance(at, list):
            return self._slice(at)
        if row is None:
            return self._node(at)
        return read_row(self._store, self._array(at).path.strip("/"), row, self._threads)

    def _part(self, part: Part, row: int | None) -> np.ndarray:
        """Read some of the tuples of an array, and no others where it lies as they do."""
        shape, dims = part.shape, len(part.shape)
        if isinstance(part.at, str) and row is None:
            array = self._array(part.at)
            if array.shape[:dims] == shape:
                values = _read_part(array, part.key, self._threads)
                return values.reshape(-1, *array.shape[dims:])
        values = self._stored(part.at, row)
        rest = values.shape[dims:]
        if values.shape[:dims] != shape:
            rest = values.shape[1:]
            if values.ndim == 0 or len(values) != math.prod(shape):
                raise self.damaged(f"an array has shape {values.shape}, and not {shape} tuples")
        return values.reshape(*shape, *rest)[part.key].reshape(-1, *rest)

    def _node(self, at: str) -> np.ndarray:
        if at not in self._values:
            self._read([at])
        return self._values.pop(at)  # no two of VTK's arrays share memory

    def _slice(self, at: list[int]) -> np.ndarray:
        number, start, *shape = at
        stop = start + math.prod(shape)
        whole = self._whole.get(number)
        pack = self._pack(number)
        if whole is None and isinstance(pack, dict):
            whole = self._whole[number] = pack_values(pack, self.where)
        if whole is None:
            stored = self._array(str(pack))
            if stored.ndim != 1 or stop > stored.shape[0]:
                raise self.damaged(f"a small array ends at {stop}, behind its pack {number}")
            return stored.read(slice(start, stop), threads=self._threads).reshape(shape)
        if whole.ndim != 1 or stop > len(whole):
            raise self.damaged(f"a small array ends at {stop}, behind its pack {number}")
        return whole[start:stop].reshape(shape)

    def _pack(self, number: int) -> Any:
        if number >= len(self._packs) or not isinstance(self._packs[number], (str, dict)):
            raise self.damaged(f"there is no pack {number} of small arrays")
        return self._packs[number]

    def stored_at(self, reference: Any) -> str | list[int]:
        """Return where a stored array is: a path, or [pack, start, shape...] of whole numbers.

        Raises CorruptError if the object of the description refers to none.
        """
        at = self._at(reference)
        if isinstance(at, (str, list)):
            return at
        raise self.damaged(f"{reference!r:.80} refers to no stored array")

    def _row(self, reference: Any) -> int | None:
        """Return which row of an array is meant, None for all of it."""
        row = reference.get("row")
        if row is not None and (type(row) is not int or row < 0):
            raise self.damaged(f"{reference!r:.80} refers to no row")
        return row

    def _at(self, reference: Any) -> str | list[int] | Given | Part:
        at = reference.get("at") if isinstance(reference, dict) else None
        if isinstance(at, (str, Given, Part)):
            return at
        if isinstance(at, list) and len(at) >= 3 and all(type(n) is int and n >= 0 for n in at):
            return at
        raise self.damaged(f"{reference!r:.80} refers to no array")


def _read_part(array: Array, key: Key, threads: int | None) -> np.ndarray:
    """Return what `key` chooses of an array.

    Rows in nearly all chunks of a span are picked from the whole span: the core reads a span
    several times faster than as many single rows.
    """
    (rows, *others) = key
    if others or not isinstance(rows, np.ndarray) or len(rows) == 0:
        return array.read(key, threads=threads)
    size = array.chunks[0]
    first, last = int(rows.min()) // size, int(rows.max()) // size
    touched = np.zeros(last - first + 1, bool)
    touched[rows // size - first] = True
    if np.count_nonzero(touched) < _WORTH_A_SPAN * len(touched):
        return array.read(key, threads=threads)
    start = first * size
    span = array.read(slice(start, min((last + 1) * size, array.shape[0])), threads=threads)
    return span if len(rows) == len(span) and _ascending(rows) else span[rows - start]


def _ascending(rows: np.ndarray) -> bool:
    return bool((rows[1:] > rows[:-1]).all())
