"""Arrays of stores, indexed as NumPy arrays are."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util import html, text
from ambar._util.properties import cached_property
from ambar.figures.thumbnails import MAX_BYTES, thumbnail
from ambar.store.commit import Commit
from ambar.store.nodes import Attributes
from ambar.store.urls import is_url

Part: TypeAlias = int | slice | EllipsisType | list[int] | npt.NDArray[Any]
Key: TypeAlias = Part | tuple[Part, ...]


class Array:
    """An array of a store. Indexing reads only the selected part.

    Examples
    --------
    >>> density = ambar.open_store("fields.ambar")["density"]
    >>> density.shape, density.dims, density.dtype
    ((16, 24, 32), ('z', 'y', 'x'), dtype('float32'))
    >>> density[0, 10:20, ::2].shape
    (10, 16)
    """

    def __init__(self, commit: Commit, path: str) -> None:
        self._commit = commit
        self._core = commit.core.array(path)

    def __reduce__(self) -> tuple[type[Array], tuple[Commit, str]]:
        return type(self), (self._commit, self._core.path)

    @property
    def path(self) -> str:
        """The path in the store."""
        return self._core.path.strip("/")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape: a size for each dimension."""
        return tuple(self._core.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def dims(self) -> tuple[str | None, ...] | None:
        """The names of the dimensions; None for unnamed ones."""
        dims = self._core.dims
        return None if dims is None else tuple(dims)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype; object for strings and bytes of any length.

        Examples
        --------
        >>> ambar.open_store("fields.ambar")["run/names"].dtype
        dtype('O')
        """
        name = self._core.dtype
        return np.dtype(object) if name in ("string", "bytes") else np.dtype(name)

    @property
    def type_name(self) -> str:
        """The name of the dtype; "string" or "bytes" for strings and bytes of any length.

        Examples
        --------
        >>> ambar.open_store("fields.ambar")["run/names"].type_name
        'string'
        """
        return self._core.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk, the unit of decoding."""
        return tuple(self._core.chunks)

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard, the unit of writing; None for an array without shards."""
        return self._core.shards

    @property
    def codecs(self) -> str:
        """The names of the codecs, in the order of encoding."""
        return self._core.codecs

    @property
    def error_bound(self) -> float | str | None:
        """The error bound of the values: a number if it is absolute, otherwise a string.

        None if the values are stored without loss.
        """
        return self._core.error_bound

    @property
    def unwritten_values(self) -> int:
        """Number of values that no MPI rank has written; they read as `fill_value`."""
        return self._core.unwritten_values

    @cached_property
    def fill_value(self) -> Any:
        """The value of elements that were never written: a scalar of the dtype, a string, or bytes.

        Examples
        --------
        >>> ambar.open_store("fields.ambar")["density"].fill_value
        np.float32(0.0)
        """
        value = self._core.fill_value
        if self.dtype.kind != "O":
            return np.frombuffer(value, self.dtype)[0] if value else np.zeros((), self.dtype)[()]
        return value.decode() if self._core.dtype == "string" else value

    @property
    def nbytes(self) -> int:
        """Bytes of the values in memory; for strings and bytes of any length, of the pointers.

        Examples
        --------
        >>> ambar.open_store("fields.ambar")["density"].nbytes
        49152
        """
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def stored_bytes(self) -> int:
        """Bytes of the encoded chunks in the store."""
        return int(self._core.stored_bytes)

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes of the array, for reading.

        Examples
        --------
        >>> ambar.open_store("fields.ambar")["density"].attrs
        {'unit': 'g/cm3'}
        """
        return Attributes(self._core.attributes())

    @property
    def lossy_attrs(self) -> Attributes:
        """The attributes that state the loss of the values; empty if the array is lossless.

        Other Zarr readers, `xarray.open_dataset` and exports show them among the attributes of the
        array: ``lossy_compression``, ``lossy_compression_error_bound`` and, by the kind of
        bound, ``lossy_compression_nsb`` or a maximum error (docs/format.md).

        Examples
        --------
        >>> with ambar.create("bounded.ambar") as writer:
        ...     writer.create_array("x", np.linspace(0, 1, 1000), error_bound=0.01)
        >>> sorted(ambar.open_store("bounded.ambar")["x"].lossy_attrs)[0]
        'lossy_compression'
        """
        return Attributes(self._core.lossy_attributes())

    def read(
        self,
        key: Key = ...,
        *,
        downsample: int = 1,
        out: npt.NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> npt.NDArray[Any]:
        """Read a part of the array; only chunks that overlap it are read and decoded.

        Parameters
        ----------
        key : int, slice, ellipsis, list of int, array of bool, or a tuple of these; optional
            The part, as NumPy indexes arrays; by default the whole array. A list of integers
            selects these indices, an array of bools the True ones. Several lists select all
            combinations, as `numpy.ix_` does.
        downsample : int, default 1
            Step: every n-th value of each slice is returned. Steps of 2, 4 and 8 and their
            multiples decode only the coarser levels of chunks with the codec ``ambar``; other
            codecs decode whole chunks. Lists of indices are not downsampled.
        out : ndarray, optional
            A C-contiguous array of the shape and dtype of the result, into which the values are
            decoded. It does not support negative steps or strings.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        ndarray
            The values, or `out`.

        Raises
        ------
        CorruptError
            If a checksum differs.
        IndexError
            If an index is outside the array.
        ValueError
            If `key` or `out` does not fit the array, or `downsample` is not a positive integer.

        Examples
        --------
        >>> density = ambar.open_store("fields.ambar")["density"]
        >>> density.read((slice(0, 4), [3, 5], ...)).shape
        (4, 2, 32)
        >>> density.read(downsample=8).shape
        (2, 3, 4)
        """
        selection = Selection.of(key, self.shape)
        if downsample != 1:
            selection = selection.downsampled(downsample)
        if out is not None:
            return self._read_into(selection, out, threads)
        return selection.arrange(self._values(selection, threads))

    def _values(self, selection: Selection, threads: int | None) -> npt.NDArray[Any]:
        """Return the values of a selection, before `Selection.arrange`."""
        values = self._core.read(selection.ranges, None, threads)
        if isinstance(values, list):
            values = np.fromiter(values, dtype=object, count=len(values))
        return values.reshape(selection.shape)

    def _check_out(self, selection: Selection, out: npt.NDArray[Any]) -> None:
        """Raise ValueError if a selection cannot be read into `out`, TypeError if no array can."""
        if not isinstance(out, np.ndarray):
            raise TypeError(f"expected an ndarray as out=, found {out!r:.80}")
        shape = selection.arrange(np.broadcast_to(np.int8(0), selection.shape)).shape
        if selection.has_backwards or self.dtype.kind == "O":
            raise _core.InvalidError(
                "out= does not support negative steps or strings; read without out="
            )
        if out.shape != shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise _core.InvalidError(
                f"out= must be a C-contiguous array of shape {shape} and dtype {self.dtype}; it "
                f"has shape {out.shape} and dtype {out.dtype}"
            )

    def _read_into(
        self, selection: Selection, out: npt.NDArray[Any], threads: int | None
    ) -> npt.NDArray[Any]:
        self._check_out(selection, out)
        # NumPy has no buffers of datetimes, so the array is viewed as int64.
        buffer = out.view("i8") if out.dtype.kind in "mM" else out
        self._core.read(selection.ranges, buffer.reshape(-1), threads)
        return out

    def __getitem__(self, key: Key) -> Any:
        """Return a part; a scalar if all dimensions are indexed by integers, as in NumPy."""
        values = self.read(key)
        return values[()] if values.ndim == 0 else values

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return the whole array, for ``numpy.asarray``."""
        if copy is False:
            raise ValueError("copy=False is not possible: an array in a store is always read")
        values = self.read()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __len__(self) -> int:
        """Return the size of the first dimension."""
        if not self.shape:
            raise TypeError("a 0-dimensional array has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        """Return a line each for shape, dtype, chunks, size, codecs and attributes."""
        return text.representation(f"<{self._title}>", self._properties())

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks.

        A small array of numbers of two dimensions in a local store has a thumbnail.
        """
        return html.representation(self._title, self._properties(), self._thumbnail())

    def _thumbnail(self) -> str:
        is_small = self.ndim == 2 and 0 not in self.shape and self.dtype.kind in "biuf"
        if not is_small or self.nbytes > MAX_BYTES or is_url(self._commit.core.location):
            return ""
        try:
            values = self.read()
        except (_core.AmbarError, OSError):  # the properties stay readable
            return ""
        return thumbnail(values, self.path)

    @property
    def _title(self) -> str:
        return f"ambar.Array {self.path} in {self._commit.core.location}"

    def _summary(self) -> tuple[str, ...]:
        """Return shape, dtype, bytes and codecs, as a store's representation lists them."""
        dims = self.dims or (None,) * self.ndim
        named = [
            f"{size}" if dim is None else f"{dim}: {size}"
            for dim, size in zip(dims, self.shape, strict=True)
        ]
        shape = f"({', '.join(named)}{',' if self.ndim == 1 and not self.dims else ''})"
        if self.dtype.kind == "O":
            return shape, self.type_name, text.size(self.stored_bytes), self.codecs
        sizes = text.sizes(self.nbytes, self.stored_bytes)
        return shape, self.type_name, sizes, self.codecs

    def _properties(self) -> dict[str, object]:
        shape, dtype, sizes, codecs = self._summary()
        return {
            "Shape": shape,
            "Dtype": dtype,
            "Chunks": self.chunks,
            "Shards": self.shards,
            "Size": sizes,
            "Codecs": codecs,
            "Error bound": self.error_bound,
            "Not written": self.unwritten_values or None,
            "Attributes": ", ".join(self.attrs) or None,
        }


@dataclass(frozen=True)
class Selection:
    """What an index reads of an array, and its arrangement in the result."""

    parts: list[range | npt.NDArray[Any]]
    """For each dimension a range, whose step may be negative, or indices."""
    dropped: tuple[int, ...]
    """The dimensions that are indexed by an integer, and absent from the result."""

    @classmethod
    def of(cls, key: Key, shape: tuple[int, ...]) -> Selection:
        """Return the selection of `key` in an array of `shape`."""
        keys = list(key) if isinstance(key, tuple) else [key]
        ellipses = sum(part is ... for part in keys)
        if ellipses > 1 or len(keys) - ellipses > len(shape):
            raise _core.InvalidError(f"{key!r} has too many parts for an array of shape {shape}")
        at = next((i for i, part in enumerate(keys) if part is ...), len(keys))
        fill: list[Any] = [slice(None)] * (len(shape) - len(keys) + ellipses)
        keys[at : at + ellipses] = fill
        parts: list[range | npt.NDArray[Any]] = []
        dropped = []
        for axis, (part, size) in enumerate(zip(keys, shape, strict=True)):
            if isinstance(part, (list, np.ndarray)) and np.ndim(part) == 1:
                parts.append(_indices(np.asarray(part), size))
            elif isinstance(part, slice):
                parts.append(range(*part.indices(size)))
            else:
                parts.append(_one(part, size))
                dropped.append(axis)
        return cls(parts, tuple(dropped))

    def downsampled(self, step: int) -> Selection:
        """Return a selection of every `step`-th value of each slice, starting with the first."""
        if not isinstance(step, (int, np.integer)) or isinstance(step, bool) or step < 1:
            raise _core.InvalidError(f"downsample={step!r} is not a positive integer")
        parts = [part[:: int(step)] if isinstance(part, range) else part for part in self.parts]
        return Selection(parts, self.dropped)

    @property
    def ranges(self) -> list[tuple[int, int, int] | npt.NDArray[Any]]:
        """For each dimension `(start, stop, step)` with a positive step, or indices."""
        return [_forwards(part) if isinstance(part, range) else part for part in self.parts]

    @property
    def has_backwards(self) -> bool:
        """Whether a range is reversed in the result."""
        return any(isinstance(part, range) and part.step < 0 for part in self.parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that is read; 1 for dimensions indexed by an integer."""
        return tuple(map(len, self.parts))

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values that were read, arranged as in NumPy."""
        if self.has_backwards:
            steps = (part.step if isinstance(part, range) else 1 for part in self.parts)
            values = values[tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)]
        return values.squeeze(axis=self.dropped) if self.dropped else values


_LONGEST_STEP = 1 << 62
"""Longer steps do not fit into 64 bits."""


def _forwards(numbers: range) -> tuple[int, int, int]:
    """Return the start, the stop and the step of a range in ascending order."""
    if not numbers:
        return 0, 0, 1
    numbers = numbers[::-1] if numbers.step < 0 else numbers
    return numbers.start, numbers[-1] + 1, min(numbers.step, _LONGEST_STEP)


def _indices(part: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return listed indices, or those of a mask, as the extension module expects them."""
    if part.dtype == bool:
        if len(part) != size:
            raise IndexError(f"a mask of {len(part)} values for a dimension of size {size}")
        part = np.flatnonzero(part)
    if part.size and part.dtype.kind not in "iu":
        raise _core.InvalidError(f"indices are integers, not {part.dtype}")
    if part.dtype != np.uint64:
        part = part.astype(np.int64)
    bad = (part < -size) | (part >= size)
    if bad.any():
        raise IndexError(f"index {part[bad][0]} is outside a dimension of size {size}")
    return np.ascontiguousarray(np.where(part < 0, part + size, part), dtype=np.uint64)


def _one(part: Any, size: int) -> range:
    try:
        index = None if isinstance(part, bool) else operator.index(part)
    except TypeError:
        index = None
    if index is None:
        raise _core.InvalidError(
            "an array of a store is indexed with integers, lists of them, slices and ..., not "
            f"{part!r:.80}"
        )
    if not -size <= index < size:
        raise IndexError(f"index {index} is outside a dimension of size {size}")
    return range(index % size, index % size + 1)
