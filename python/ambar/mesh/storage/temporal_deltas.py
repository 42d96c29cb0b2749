"""Arrays of time steps: equal arrays are stored once, changing ones as rows or differences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar.mesh.storage.references import damaged
from ambar.store.nodes import absolute
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "changing"
"""The group of the arrays, whose names are numbers."""
_KEYFRAME_INTERVAL = 16
"""Rows from one that depends on no other row to the next: the most that one read decodes."""
_CACHED_BYTES = 1 << 26
"""The largest row that stays in memory, because the next row depends on it."""
_SAMPLED = 1 << 13
"""Number of values that are sampled to compare encodings."""
_WORTH = 0.95
"""Size ratio of differences to values below which differences are stored."""
_CHUNK = 1 << 18
"""Bytes of a chunk before encoding."""
_KINDS = frozenset("iuf")


class DeltaWriter:
    """Writes an array of a series that changes: one row for each step.

    The first rows decide what is stored: values, or integer differences from a prediction. The
    prediction of order 0 is zero, that of order 1 the row before, and that of order 2 the linear
    extrapolation of the two rows before.

    After an exception in `append`, what it wrote is unknown: drop the object, and never append to
    the array again.

    Parameters
    ----------
    writer : Writer
        The writer of the store.
    path : str
        The path of the array.
    before : ndarray
        The values of an earlier step. The first row is compared with it.
    """

    def __init__(self, writer: Writer, path: str, before: np.ndarray) -> None:
        self._writer = writer
        self.path = path
        self._before: np.ndarray | None = before
        self._orders: str | None = None
        self._last: list[np.ndarray] = []
        self.rows = 0

    def append(self, values: np.ndarray) -> int:
        """Write a row, and return its number."""
        if self.rows == 0:
            self._create(values)
        if self._orders is None:
            self._writer.append(self.path, np.ascontiguousarray(values)[None])
        else:
            order = self._best_order(values)
            row = to_integers(values) - predict(self._last, values.dtype, order)
            # Before the attributes: readers accept more rows than orders.
            self._writer.append(self.path, np.ascontiguousarray(row)[None])
            self._orders += str(order)
            about = {"dtype": str(values.dtype), "orders": self._orders}
            self._writer._core.update_attributes(
                absolute(self.path), {"ambar": {"differences": about}}, []
            )
            # Copied, because the caller may change the array before the next step.
            self._last = [*self._last[-1:], values.copy()]
        self.rows += 1
        return self.rows - 1

    def _create(self, values: np.ndarray) -> None:
        """Create the array: of differences, if those of the first two rows are smaller."""
        dtype = values.dtype
        if self._before is not None:
            differences = to_integers(values) - to_integers(self._before)
            if _encoded_size(differences) < _WORTH * _encoded_size(values):
                self._orders, dtype = "", np.dtype(f"i{dtype.itemsize}")
            self._before = None
        row = math.prod(values.shape[1:]) * dtype.itemsize
        chunks = max(1, round(len(values) * row / _CHUNK))
        length = max(1, -(-len(values) // chunks))
        self._writer.create_array(
            self.path,
            shape=(0, *values.shape),
            dtype=dtype,
            dims=["step", *[None] * values.ndim],
            chunks=(1, length, *values.shape[1:]),
            shards=(1, -(-len(values) // length) * length, *values.shape[1:]),
            # The writer would choose codecs by the first row, which is not a difference; pcodec
            # is the best one for differences.
            profile=None if self._orders is None else "small",
        )

    def _best_order(self, values: np.ndarray) -> int:
        """Return the order of the prediction that leaves the smallest differences."""
        since = self.rows % _KEYFRAME_INTERVAL
        if since == 0:
            return 0
        sample, last = _sample(values), [_sample(row) for row in self._last]
        bits = [
            _bits(to_integers(sample) - predict(last, values.dtype, order))
            for order in range(min(since, len(last)) + 1)
        ]
        return bits.index(min(bits))


def can_change(values: np.ndarray) -> bool:
    """Whether arrays of this dtype and shape can be rows."""
    dtype = values.dtype
    return dtype.kind in _KINDS and 2 <= dtype.itemsize <= 8 and 1 <= values.ndim <= 2


def to_integers(values: np.ndarray) -> np.ndarray:
    """Return signed integers in the order of the values; those of floats are made of their bits."""
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}")
    return _flip_negative(bits) if values.dtype.kind == "f" else bits


def _flip_negative(bits: np.ndarray) -> np.ndarray:
    """Turn bits of floats into integers of the same order; its own inverse."""
    info = np.iinfo(bits.dtype)
    flipped: np.ndarray = bits ^ ((bits >> (info.bits - 1)) & info.max)
    return flipped


def predict(last: list[np.ndarray], dtype: np.dtype[Any], order: int) -> Any:
    """Return the predicted integers of the row after `last`.

    The extrapolation of float32 is computed in float64 and rounded. It is 0 where it is not finite.
    """
    if order == 0:
        return np.zeros((), f"i{dtype.itemsize}")
    if order == 1:
        return to_integers(last[-1])
    if dtype.kind != "f":
        return 2 * to_integers(last[-1]) - to_integers(last[-2])
    with np.errstate(over="ignore", invalid="ignore"):
        ahead = 2 * last[-1].astype(np.float64) - last[-2].astype(np.float64)
        ahead = ahead.astype(dtype)
    ahead[~np.isfinite(ahead)] = 0
    return to_integers(ahead)


def decode(differences: np.ndarray, predicted: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the values of a row."""
    integers = differences + predicted
    return (_flip_negative(integers) if dtype.kind == "f" else integers).view(dtype)


def read_row(store: Store, path: str, row: int, threads: int | None) -> np.ndarray:
    """Return a row of the array at `path`; the caller may change the values.

    Raises CorruptError if the row does not exist, or the attributes of the array are damaged.
    """
    array = store._array(path)
    orders, dtype = _differences(store, path)
    if array.ndim == 0 or row >= (len(orders) or array.shape[0]):
        raise damaged(store.location, f"/{path} has no row {row}")
    if not orders:
        return array.read(row, threads=threads)
    # The last row that was read, and the rows that the next one depends on.
    key = f"rows of /{path}"
    at, last = store._cache.get(key, (-1, []))
    keyframe = orders.rindex("0", 0, row + 1)
    if not keyframe <= at < row:
        at, last = keyframe - 1, []
    for number in range(at + 1, row + 1):
        differences = array.read(number, threads=threads)
        predicted = predict(last, dtype, int(orders[number]))
        last = [*last[-1:], decode(differences, predicted, dtype)]
    found: np.ndarray = last[-1]
    if found.nbytes > _CACHED_BYTES:
        return found
    store._cache[key] = (row, last)
    return found.copy()


def row_dtype(store: Store, path: str) -> str:
    """Return the name of the dtype of the rows of an array; raises CorruptError."""
    orders, dtype = _differences(store, path)
    return str(dtype) if orders else store._array(path).type_name


def _differences(store: Store, path: str) -> tuple[str, np.dtype[Any]]:
    """Return the orders of predictions, and the dtype of the rows; "" if values are stored."""
    array = store._array(path)
    ambar = array.attrs.get("ambar")
    about = ambar.get("differences") if isinstance(ambar, dict) else None
    if about is None:
        return "", array.dtype
    try:
        orders, dtype = str(about["orders"]), np.dtype(str(about["dtype"]))
    except (KeyError, TypeError):
        orders, dtype = "", np.dtype(bool)
    # A row of order n depends on n rows after the last keyframe. The last rows have no order if
    # writing their step was interrupted.
    since = 0
    is_valid = array.ndim > 0 and 0 < len(orders) <= array.shape[0] and dtype.kind in _KINDS
    for order in orders:
        since = 0 if order == "0" else since + 1
        is_valid = is_valid and order in "012" and int(order) <= since
    if not is_valid or array.dtype != np.dtype(f"i{dtype.itemsize}"):
        where = f"{store.location}: /{path}"
        raise damaged(where, f"its attributes are not those of differences: {about!r:.80}")
    return orders, dtype


def _sample(values: np.ndarray) -> np.ndarray:
    """Return values from the middle of an array."""
    start = max(0, (values.size - _SAMPLED) // 2)
    return values.reshape(-1)[start : start + _SAMPLED]


def _encoded_size(values: np.ndarray) -> int:
    sample = np.ascontiguousarray(_sample(values))
    dtype = str(values.dtype)
    codecs, encoded = _core.encode_bare_array(sample, dtype, [len(sample)], False)
    return len(encoded) + len(codecs)


def _bits(values: np.ndarray) -> float:
    """Return about how many bits a value takes, or its difference from the value before."""
    each = [np.abs(v.astype(np.float64)) for v in (values, values[1:] - values[:-1])]
    return min(float(np.log2(v + 1).mean()) if v.size else 0.0 for v in each)


_ArrayKey: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Path within a step, dtype and shape."""


class Deduplicator:
    """References to the arrays of the meshes in one store, by digests of their content.

    Two arrays are the same if dtype, shape, error bound and all bits are equal. Strings are not
    deduplicated: their digest takes as long as writing them.

    What a step adds is for that step alone until `commit`. `roll_back` forgets it. An exception may
    interrupt both: called again, they do the rest.
    """

    def __init__(self) -> None:
        self._references: dict[str, dict[str, Any]] = {}
        self._new_references: dict[str, dict[str, Any]] = {}
        self._new_digests: dict[str, str] = {}
        self._before: dict[_ArrayKey, np.ndarray] = {}
        self._delta_writers: dict[_ArrayKey, DeltaWriter] = {}
        self._templates: dict[str, str] = {}
        self._new_templates: dict[str, str] = {}
        self._delta_count = 0
        self.bounds: dict[str, list[float] | None] = {}
        """The bounds of the steps that were written, by their groups."""

    def register_step(self, base: str, digests: Mapping[str, str]) -> None:
        """Add the arrays of a mesh that the store has at `base`: their digests by path."""
        for path, digest in digests.items():
            self._references.setdefault(digest, {"at": f"/{base}/{path}"})

    def register_deltas(self, count: int) -> None:
        """Set the number of arrays of rows that the store has."""
        self._delta_count = count

    def find(
        self, values: np.ndarray, bound: float | str | None
    ) -> tuple[str | None, dict[str, Any] | None]:
        """Return the digest of an array (None for strings), and the reference to an equal one."""
        if values.dtype.kind == "O":
            return None, None
        content = hashlib.blake2b(digest_size=16)
        content.update(f"{values.dtype.str} {values.shape} {bound}".encode())
        content.update(np.ascontiguousarray(values).data)
        digest = content.hexdigest()
        return digest, self._new_references.get(digest) or self._references.get(digest)

    def add(self, digest: str, base: str, path: str) -> None:
        """Add an array that is being written at `path` below `base`."""
        self._new_references[digest] = {"at": f"/{base}/{path}"}
        self._new_digests[path] = digest

    def append_row(
        self, writer: Writer, path: str, values: np.ndarray, digest: str | None
    ) -> dict[str, Any] | None:
        """Write an array that differs from that of an earlier step; return the reference to it.

        `path` is the path within a step. Returns None for the first array of its kind, which the
        caller writes.
        """
        if digest is None or not can_change(values):
            return None
        key = (path, values.dtype.str, values.shape)
        # Taken out while it writes: after an exception the next step starts another array.
        deltas = self._delta_writers.pop(key, None)
        if deltas is None:
            if key not in self._before:
                # Copied, because the caller may change the array before the next step.
                self._before[key] = values.copy()
                return None
            name = f"{GROUP}/{self._delta_count}"
            self._delta_count += 1
            deltas = DeltaWriter(writer, name, self._before.pop(key))
        reference = {"at": f"/{deltas.path}", "row": deltas.append(values)}
        self._delta_writers[key] = deltas
        self._new_references[digest] = reference
        return reference

    def find_step(self, template: str, base: str) -> str | None:
        """Return the earlier step whose description differs only in rows; None if it is new."""
        known = self._templates.get(template)
        if known is None:
            self._new_templates[template] = base
        return known

    @property
    def new_digests(self) -> dict[str, str]:
        """The digests of the arrays that were written since the last `commit`, by path."""
        return dict(self._new_digests)

    def commit(self) -> None:
        """Keep what was added: the step is committed."""
        self._references |= self._new_references
        self._templates |= self._new_templates
        self.roll_back()

    def roll_back(self) -> None:
        """Forget what was added since the last `commit`."""
        self._new_references, self._new_digests, self._new_templates = {}, {}, {}
