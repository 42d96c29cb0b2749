"""Arrays that change from step to step: each a growing array of rows, or of what rows differ by."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ambar import _core
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "changing"
_ALONE_EVERY = 16
"""Rows after which one does not depend on others: so many are decoded at most to get at one."""
_KEPT_BYTES = 1 << 26
"""Bytes of a row up to which the last two that were read are kept for the next one."""
_TRIED = 1 << 13
"""Values that tell if differences in time are smaller."""
_WORTH = 0.95
"""The part of their bytes that they may have: otherwise rows are stored as they are."""
_CHUNK = 1 << 18
"""Raw bytes of a chunk."""
_TAKEN = frozenset("iuf")
_SMALLEST, _LARGEST = 2, 8  # bytes of a value


class Track:
    """The rows of one array that changes, on their way into a store.

    The first rows decide what it holds: the values themselves, or whole numbers that rows differ by
    from what those before them let expect.
    """

    def __init__(self, writer: Writer, path: str, before: np.ndarray | None) -> None:
        self._writer = writer
        self.path = path
        self._before = before
        self._orders: str | None = None
        self._last: list[np.ndarray] = []
        self.rows = 0

    def add(self, values: np.ndarray) -> int:
        """Write a row, and return its number."""
        if self.rows == 0:
            self._begin(values)
        row = values
        if self._orders is not None:
            order = self._order(values)
            row = numbers(values) - expected(self._last, values.dtype, order)
            # What the caller may change before the next row comes is copied.
            self._last = [*self._last[-1:], values.copy()]
            self._orders += str(order)
        self._writer.append(self.path, np.ascontiguousarray(row)[None])
        self.rows += 1
        if self._orders is not None:
            about = {"dtype": str(values.dtype), "orders": self._orders}
            self._writer.set_attributes(self.path, {"ambar": {"differences": about}})
        return self.rows - 1

    def _begin(self, values: np.ndarray) -> None:
        """Make the array, with differences if these are smaller between the first two."""
        dtype = values.dtype
        if self._before is not None:
            plain, less = (_sample(v) for v in (values, numbers(values) - numbers(self._before)))
            if _encoded(less) < _WORTH * _encoded(plain):
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
            # Chosen by the first row, which is no difference; pcodec suits those best.
            profile=None if self._orders is None else "small",
        )

    def _order(self, values: np.ndarray) -> int:
        """Return how many rows before to take this one from: those that leave the fewest bits."""
        if self.rows % _ALONE_EVERY == 0:
            return 0
        at = _places(values.size)
        few, last = values.reshape(-1)[at], [row.reshape(-1)[at] for row in self._last]
        since = self.rows % _ALONE_EVERY
        left = [
            _bits(numbers(few) - expected(last, values.dtype, order))
            for order in range(min(since, len(last)) + 1)
        ]
        return left.index(min(left))


def takes(values: np.ndarray) -> bool:
    """Whether rows of such an array can be."""
    dtype = values.dtype
    return (
        dtype.kind in _TAKEN and _SMALLEST <= dtype.itemsize <= _LARGEST and 1 <= values.ndim <= 2
    )


def numbers(values: np.ndarray) -> np.ndarray:
    """Return whole numbers, signed, in the order of the values; of floats by their bits."""
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}")
    return _turned(bits) if values.dtype.kind == "f" else bits


def _turned(bits: np.ndarray) -> np.ndarray:
    """Return bits of floats in the order of the values, or what these were the bits of."""
    info = np.iinfo(bits.dtype)
    turned: np.ndarray = bits ^ ((bits >> (info.bits - 1)) & info.max)
    return turned


def expected(last: list[np.ndarray], dtype: np.dtype[Any], order: int) -> Any:
    """Return the whole numbers that are expected after the rows `last`.

    None of these counts for order 0, the last one for 1; for 2 the two last are continued: twice
    the one less the other, of float32 in float64, rounded, and 0 where that is no finite number.
    """
    if order == 0:
        return np.zeros((), f"i{dtype.itemsize}")
    if order == 1:
        return numbers(last[-1])
    if dtype.kind != "f":
        return 2 * numbers(last[-1]) - numbers(last[-2])
    with np.errstate(over="ignore", invalid="ignore"):
        ahead = 2 * last[-1].astype(np.float64) - last[-2].astype(np.float64)
        ahead = ahead.astype(dtype)
    ahead[~np.isfinite(ahead)] = 0
    return numbers(ahead)


def restored(differences: np.ndarray, ahead: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the values that differ by so much from what was expected."""
    found = differences + ahead
    return (_turned(found) if dtype.kind == "f" else found).view(dtype)


def read_row(store: Store, path: str, row: int, threads: int | None) -> np.ndarray:
    """Return a row of the array at `path`, its own memory.

    Raises CorruptError if there is none, or its attributes are not those of one.
    """
    array = store[path]
    if array.ndim == 0 or row >= array.shape[0]:
        raise _core.CorruptError(
            f"{store.location}: /{path} has no row {row}; restore the store from a copy"
        )
    orders, dtype = _differences(store, path)
    if not orders:
        return array.read(row, threads=threads)
    key = f"rows of /{path}"
    # A row that was read before, and what the next ones need of those before it.
    at, last = store.kept.get(key, (-1, []))
    first = orders.rindex("0", 0, row + 1)
    if not first <= at < row:
        at, last = first - 1, []
    for number in range(at + 1, row + 1):
        differences = array.read(number, threads=threads)
        order = int(orders[number])
        last = [*last[-1:], restored(differences, expected(last, dtype, order), dtype)]
    found: np.ndarray = last[-1]
    if found.nbytes > _KEPT_BYTES:
        return found
    store.kept[key] = (row, last)
    return found.copy()


def row_dtype(store: Store, path: str) -> str:
    """Return the name of the dtype of an array's rows; raises CorruptError."""
    orders, dtype = _differences(store, path)
    return str(dtype) if orders else store[path].type_name


def _differences(store: Store, path: str) -> tuple[str, np.dtype[Any]]:
    """Return the orders and the dtype of an array of differences; "" of one of values."""
    array = store[path]
    ambar = array.attributes.get("ambar")
    about = ambar.get("differences") if isinstance(ambar, dict) else None
    if about is None:
        return "", array.dtype
    try:
        orders, dtype = str(about["orders"]), np.dtype(str(about["dtype"]))
    except (KeyError, TypeError):
        orders, dtype = "", np.dtype(bool)
    # A row of order n needs n rows since the last one that needs none.
    since = 0
    fits = len(orders) == array.shape[0] and dtype.kind in _TAKEN
    for order in orders:
        since = 0 if order == "0" else since + 1
        fits = fits and order in "012" and int(order) <= since
    if not fits or array.dtype != np.dtype(f"i{dtype.itemsize}"):
        raise _core.CorruptError(
            f"{store.location}: the attributes of /{path} are not those of differences: "
            f"{about!r:.80}; restore the store from a copy"
        )
    return orders, dtype


def _places(count: int) -> slice:
    """Return which values are looked at."""
    start = max(0, (count - _TRIED) // 2)
    return slice(start, start + _TRIED)


def _sample(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1)[_places(values.size)]


def _encoded(values: np.ndarray) -> int:
    codecs, encoded = _core.encode_bare_array(
        np.ascontiguousarray(values), json.dumps(str(values.dtype)), [len(values)], False
    )
    return len(encoded) + len(codecs)


def _bits(values: np.ndarray) -> float:
    """Return about how many bits a value takes, or its difference from the one before."""
    each = [np.abs(v.astype(np.float64)) for v in (values, values[1:] - values[:-1])]
    return min(float(np.log2(v + 1).mean()) if v.size else 0.0 for v in each)
