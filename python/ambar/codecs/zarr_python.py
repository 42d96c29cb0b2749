"""The codecs for zarr-python and Zarr v3: "ambar" with its options, and "ambar.simplices"."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON, parse_named_configuration

from ambar import _core
from ambar.codecs import (
    SIMPLICES,
    checked_bound,
    checked_corners,
    checked_dtype,
    decode,
    decode_corners,
    encode,
    encode_corners,
)

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer


class _Streams(ArrayBytesCodec):
    """A codec that makes a stream of each chunk, on a thread of asyncio's."""

    is_fixed_size = False

    @abstractmethod
    def _encode(self, values: np.ndarray[Any, np.dtype[Any]]) -> bytes: ...

    @abstractmethod
    def _decode(
        self, stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> np.ndarray[Any, np.dtype[Any]]: ...

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        stream = await asyncio.to_thread(self._encode, chunk_array.as_numpy_array())
        return chunk_spec.prototype.buffer.from_bytes(stream)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype = np.dtype(chunk_spec.dtype.to_native_dtype())
        stream = np.ascontiguousarray(chunk_bytes.as_numpy_array())
        values = await asyncio.to_thread(self._decode, stream, dtype, chunk_spec.shape)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Raise NotImplementedError: the size depends on the values."""
        raise NotImplementedError


@dataclass(frozen=True)
class AmbarCodec(_Streams):
    """The codec ``ambar`` of zarr-python: chunks of float32 or float64, within an error bound.

    Parameters
    ----------
    error_bound : float or str
        A number (absolute; 0: lossless), or a string such as "1e-3 relative", "12 bits" or
        "1e-3 relative above 1e-10". NaN and infinities do not change.
    fast : bool, default False
        Whether speed, near that of memory, is more important than size.

    Examples
    --------
    >>> import zarr
    >>> from ambar.codecs.zarr_python import AmbarCodec
    >>> codec = AmbarCodec(error_bound=0.5)
    >>> array = zarr.create_array({}, data=np.arange(8.0), serializer=codec, compressors=None)
    >>> bool(abs(array[:] - np.arange(8)).max() <= 0.5)
    True
    """

    error_bound: float | str
    fast: bool = False

    def __init__(self, *, error_bound: float | str, fast: bool = False) -> None:
        object.__setattr__(self, "error_bound", checked_bound(error_bound))
        object.__setattr__(self, "fast", bool(fast))

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Return the codec that the metadata of an array describe."""
        _, configuration = parse_named_configuration(data, "ambar")
        options: dict[str, Any] = dict(configuration)
        bound = checked_bound(options.pop("error_bound", None))
        fast = options.pop("fast", False)
        if not isinstance(fast, bool):
            raise _core.InvalidError(f"the codec ambar is fast or not (true, false), not {fast!r}")
        if options:
            raise ValueError(f"the codec ambar has no {', '.join(sorted(options))}")
        return cls(error_bound=bound, fast=fast)

    def to_dict(self) -> dict[str, JSON]:
        """Return the codec as the metadata of an array describe it."""
        options: dict[str, JSON] = {"error_bound": self.error_bound}
        if self.fast:
            options["fast"] = True
        return {"name": "ambar", "configuration": options}

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return the codec; raises ValueError if the dtype of the array is not supported."""
        checked_dtype(np.dtype(array_spec.dtype.to_native_dtype()))
        return self

    def _encode(self, values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
        return encode(values, self.error_bound, fast=self.fast, is_padded=True)

    def _decode(
        self, stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> np.ndarray[Any, np.dtype[Any]]:
        return decode(stream, dtype, shape)


@dataclass(frozen=True)
class SimplicesCodec(_Streams):
    """The codec ``ambar.simplices`` of zarr-python: connectivity of lines, triangles, tetrahedra.

    Chunks are whole rows: integers of 32 or 64 bits, shape (cells, 2 to 4).

    Examples
    --------
    >>> import zarr
    >>> from ambar.codecs.zarr_python import SimplicesCodec
    >>> cells = np.array([[0, 1, 2], [1, 2, 3]])
    >>> array = zarr.create_array({}, data=cells, serializer=SimplicesCodec(), compressors=None)
    >>> array[1]
    array([1, 2, 3])
    """

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Return the codec; it has no options."""
        _, configuration = parse_named_configuration(data, SIMPLICES, require_configuration=False)
        if configuration:
            raise ValueError(f"the codec {SIMPLICES} has no {', '.join(sorted(configuration))}")
        return cls()

    def to_dict(self) -> dict[str, JSON]:
        """Return the codec as the metadata of an array describe it."""
        return {"name": SIMPLICES}

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return the codec; raises ValueError if the dtype or the chunks are not supported."""
        checked_corners(np.dtype(array_spec.dtype.to_native_dtype()), array_spec.shape)
        return self

    def _encode(self, values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
        return encode_corners(values)

    def _decode(
        self, stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> np.ndarray[Any, np.dtype[Any]]:
        return decode_corners(stream, dtype, shape)
