"""Packets of the HDF5 filter (format.md, 8.2)."""

import math

import numcodecs
import numpy as np

from . import decode as decode_stream
from .bits import Reader, UnsupportedError, check, damage, sealed

RAW, ARRAY, BYTES = range(3)


@damage()
def decode(data: bytes, expected: int | None = None) -> bytes:
    """Return the bytes of the chunk of a packet; `expected` is their number, if known."""
    reader = Reader(data)
    version, form, kind, flags = reader.take(4)
    check(version <= 1 and form <= BYTES, f"version {version}, form {form}", UnsupportedError)
    length, size = reader.number(), reader.number()
    at = len(data) - size - 4
    check(at >= reader.at, "a truncated packet")
    content, stream = Reader(sealed(data[:at] + data[-4:])), data[at : at + size]
    content.take(reader.at)
    check(expected in (None, length), "another length than expected")
    check(version == 1 and flags < 2, "invalid version or flags")
    check(kind == 0 if form in (RAW, BYTES) else kind in (1, 2), "an invalid type")
    if form == RAW:
        out = content.take(length)
    elif form == BYTES:
        width = content.number()
        check(1 <= width <= 16 and length % width == 0, "an invalid size of values")
        planes = numcodecs.Zstd().decode(content.take(at - content.at))
        out = np.frombuffer(planes, np.uint8).reshape(width, -1).T.tobytes()
    else:
        dtype = np.dtype("f4" if kind == 1 else "f8")

        def values(count: int) -> np.ndarray:
            check(count * dtype.itemsize <= length, "more values than the chunk has")
            found = decode_stream(stream, count) if size else np.zeros(0, dtype)
            check(found.dtype == dtype and found.size == count, "other values than expected")
            return found

        out = read_array(content, values, dtype, length)
        out = (out.byteswap() if flags else out).tobytes()
    content.end()
    check(len(out) == length, "another length than that of the chunk")
    return out


def read_array(content: Reader, values, dtype: np.dtype, length: int) -> np.ndarray:
    """Return the values of the form *array*."""
    shape, stored = ([content.number() for _ in range(content.number())] for _ in range(2))
    check(1 <= len(shape) <= 4 and len(shape) == len(stored), "an invalid number of dimensions")
    check(all(k <= n for k, n in zip(stored, shape)), "stored lengths above those of the shape")
    check(math.prod(shape) * dtype.itemsize == length, "another length than that of the shape")
    out = np.zeros(shape, dtype)
    if stored != shape:
        out[...] = np.frombuffer(content.take(dtype.itemsize), dtype)[0]
    out[tuple(map(slice, stored))] = values(math.prod(stored)).reshape(stored)
    return out
