"""A store's groups and arrays as they lie there, whatever kind they make up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    import numpy.typing as npt

Key: TypeAlias = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]


class Array:
    """An array of a store; ``array[10:20, ::2]`` reads what is asked for, and only that."""

    def __init__(self, core: _core.Array) -> None:
        self._core = core

    @property
    def path(self) -> str:
        """Its path in the store."""
        return self._core.path

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self._core.shape)

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def dims(self) -> tuple[str | None, ...] | None:
        """Its dimensions' names, None where they have none."""
        return self._core.dims

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its NumPy dtype; object for strings and bytes of any length."""
        name = self._core.dtype
        return np.dtype(object) if name in ("string", "bytes") else np.dtype(name)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of a chunk, the unit of decoding."""
        return tuple(self._core.chunks)

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Shape of a shard, the unit of writing; None where the array has none."""
        return self._core.shards

    @property
    def codecs(self) -> str:
        """Its codecs, in short."""
        return self._core.codecs

    @property
    def nbytes(self) -> int:
        """Bytes of its values in memory."""
        return int(self._core.raw_bytes)

    @property
    def stored_bytes(self) -> int:
        """Bytes it takes in the store."""
        return int(self._core.stored_bytes)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
        attributes: dict[str, Any] = json.loads(self._core.attributes())
        return attributes

    def read(
        self,
        key: Key = ...,
        *,
        out: np.ndarray | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the part `key` of the array: integers, slices, an ellipsis, as in NumPy.

        With `out`, a C-contiguous array of the result's shape and dtype, the values are decoded
        straight into it, and it is returned; steps must then be positive.

        Raises
        ------
        CorruptError
            If a checksum differs.
        InvalidError
            If `key` or `out` does not fit the array.
        """
        selection, backwards, dropped = _selection(key, self.shape)
        if out is not None:
            return self._read_into(selection, backwards, dropped, out, threads)
        values = self._core.read(selection, None, threads)
        if any(backwards):
            values = values[tuple(slice(None, None, -1 if flip else 1) for flip in backwards)]
        return values.squeeze(axis=dropped) if dropped else values

    def _read_into(
        self,
        selection: list[tuple[int, int, int]],
        backwards: list[bool],
        dropped: tuple[int, ...],
        out: np.ndarray,
        threads: int | None,
    ) -> np.ndarray:
        full = tuple(len(range(*part)) for part in selection)
        kept = tuple(n for axis, n in enumerate(full) if axis not in dropped)
        if any(backwards):
            raise _core.InvalidError("out= takes no negative steps; read without it")
        if out.shape != kept or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise _core.InvalidError(
                f"out= must be a C-contiguous array of shape {kept} and dtype {self.dtype}; it has "
                f"shape {out.shape} and dtype {out.dtype}"
            )
        self._core.read(selection, out.reshape(full), threads)
        return out

    def __getitem__(self, key: Key) -> Any:  # noqa: ANN401 - an array, or a scalar
        """Return the part `key`, a scalar where all dimensions are indexed, as NumPy does."""
        values = self.read(key)
        return values[()] if values.ndim == 0 else values

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        """Return the whole array, for ``numpy.asarray``."""
        if copy is False:
            raise ValueError("an array in a store cannot be had without reading it: copy=False")
        values = self.read()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __len__(self) -> int:
        """Return the size of the first dimension."""
        if not self.shape:
            raise TypeError("a 0-dimensional array has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        """Return one line: path, shape, dtype, codecs."""
        return f"<ambar.Array: {self.path} {self.shape} {self._core.dtype}, {self.codecs}>"


def _selection(
    key: Key, shape: tuple[int, ...]
) -> tuple[list[tuple[int, int, int]], list[bool], tuple[int, ...]]:
    """Return `(start, stop, step)` per dimension with steps > 0, which of them run backwards in
    the result, and the dimensions that an integer takes out.
    """  # noqa: D205
    parts = list(key) if isinstance(key, tuple) else [key]
    ellipses = sum(part is ... for part in parts)
    if ellipses > 1 or len(parts) - ellipses > len(shape):
        raise _core.InvalidError(f"{key!r} has too many parts for an array of shape {shape}")
    at = next((i for i, part in enumerate(parts) if part is ...), len(parts))
    fill: list[Any] = [slice(None)] * (len(shape) - len(parts) + ellipses)
    parts[at : at + ellipses] = fill
    ranges, backwards, dropped = [], [], []
    for axis, (part, size) in enumerate(zip(parts, shape, strict=True)):
        if isinstance(part, slice):
            numbers = range(*part.indices(size))
        else:
            numbers = _one(part, size)
            dropped.append(axis)
        flip = numbers.step < 0
        if flip:
            numbers = numbers[::-1]
        stop = numbers[-1] + 1 if numbers else numbers.start
        ranges.append((numbers.start, stop, numbers.step))
        backwards.append(flip)
    return ranges, backwards, tuple(dropped)


def _one(part: Any, size: int) -> range:  # noqa: ANN401 - whatever the caller wrote
    try:
        index = part.__index__()
    except AttributeError:
        raise _core.InvalidError(
            f"an array of a store is indexed with integers, slices and ..., not {part!r}"
        ) from None
    if not -size <= index < size:
        raise IndexError(f"index {index} is outside a dimension of size {size}")
    return range(index % size, index % size + 1)


class Store(Mapping[str, Array]):
    """A store: a mapping from paths ("amr/density") to arrays.

    Only the arrays asked for are read. `groups` has the groups' paths, `attributes` what they say.
    """

    def __init__(self, core: _core.Store) -> None:
        self._core = core

    @property
    def core(self) -> _core.Store:
        """The store of the extension module."""
        return self._core

    @property
    def location(self) -> str:
        """The file or folder."""
        return self._core.location

    @cached_property
    def _nodes(self) -> dict[str, list[str]]:
        nodes: dict[str, list[str]] = {"group": [], "array": []}
        for path, node in self._core.nodes():
            nodes[node].append(path.strip("/"))
        return nodes

    @cached_property
    def _arrays(self) -> frozenset[str]:
        return frozenset(self._nodes["array"])

    @property
    def groups(self) -> list[str]:
        """Paths of all groups; the root is ""."""
        return list(self._nodes["group"])

    def attributes(self, path: str = "/") -> dict[str, Any]:
        """Return the attributes of a group or array; raises NotFoundError if there is none."""
        attributes: dict[str, Any] = json.loads(self._core.attributes(_absolute(path)))
        return attributes

    def ambar_attributes(self, path: str = "/") -> dict[str, Any]:
        """Return what ambar says of a group: its kind, version and what the kind needs."""
        found = self.attributes(path).get("ambar", {})
        return found if isinstance(found, dict) else {}

    def usage(self) -> dict[str, int]:
        """Return the bytes of the store: total, live (of the last commit), dead; and entries."""
        usage: dict[str, int] = json.loads(self._core.usage())
        return usage

    def verify(
        self,
        *,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Check every checksum; return how many bytes, entries and chunks were checked.

        `progress` is called with the bytes done and all bytes. Raises CorruptError, naming all
        damage, where there is any.
        """
        report: dict[str, int] = json.loads(self._core.verify(threads, progress))
        return report

    def __getitem__(self, path: str) -> Array:
        """Return the array at `path`; raises NotFoundError (a KeyError) if there is none."""
        return Array(self._core.array(_absolute(path)))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path.strip("/") in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes["array"])

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._nodes["array"])

    def __repr__(self) -> str:
        """Return a line per array: shape, dtype, sizes, codecs."""
        most = 40
        lines = [f"<ambar.Store: {self.location}, {len(self)} arrays>"]
        for path in list(self)[:most]:
            array = self[path]
            lines.append(
                f"  {path:<28} {array.shape!s:<18} {array.dtype!s:<10} "
                f"{array.nbytes:>13,} -> {array.stored_bytes:>13,}  {array.codecs}"
            )
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most} more")
        return "\n".join(lines)


def _absolute(path: str) -> str:
    return "/" + path.strip("/")
