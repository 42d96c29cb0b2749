"""Packets of the filter of HDF5 (format.md, chapter 8)."""

import math

import numpy as np

from . import decode as decode_stream
from . import tree
from .bits import Reader, check, check_supported, sealed, unzip

RAW, ARRAY, BOXES, BYTES = range(4)


def decode(data: bytes, expected: int | None = None) -> bytes:
    """Return the bytes of the chunk that a packet holds.

    `expected` is their number, if the caller knows it: no more memory is asked for.

    Raises
    ------
    ValueError
        If the packet is damaged, or of another version.
    """
    reader = Reader(data)
    version, form, kind, flags = reader.take(4)
    check_supported(version <= 1 and form <= BYTES, f"a packet of version {version}, form {form}")
    length, size = reader.number(), reader.number()
    check(expected in (None, length), "another length than expected")
    check(len(data) >= reader.at + size + 4, "a packet that is cut short")
    at = len(data) - size - 4
    sealed(data[:at] + data[-4:])
    content, stream = Reader(data[reader.at : at]), data[at : at + size]
    check(version == 1 and flags < 2, "version or flags that do not exist")
    check(kind == 0 if form in (RAW, BYTES) else kind in (1, 2), "a type that does not exist")
    if form == RAW:
        out = content.take(length)
    elif form == BYTES:
        width = content.number()
        check(1 <= width <= 16 and length % width == 0, "a width that does not exist")
        frame = content.take(len(content.data) - content.at)
        planes = unzip(frame)
        check(len(planes) == length, "another length than the frame's")
        out = np.frombuffer(planes, np.uint8).reshape(width, -1).T.tobytes()
    else:
        dtype = np.dtype("f4" if kind == 1 else "f8")

        def values(count: int) -> np.ndarray:
            check(count * dtype.itemsize <= length, "more values than the chunk has")
            found = decode_stream(stream, count) if size else np.zeros(0, dtype)
            check(found.dtype == dtype and found.size == count, "other values than expected")
            return found

        out = (_array if form == ARRAY else _boxes)(content, values, dtype, length)
        out = (out.byteswap() if flags else out).tobytes()
    content.end()
    check(len(out) == length, "another length than the chunk's")
    return out


def _array(content: Reader, values, dtype: np.dtype, length: int) -> np.ndarray:
    """Return the values of the form *array*."""
    shape, kept = ([content.number() for _ in range(content.number())] for _ in range(2))
    check(1 <= len(shape) <= 4 and len(shape) == len(kept), "dimensions that do not exist")
    check(all(k <= n for k, n in zip(kept, shape, strict=True)), "more is kept than there is")
    check(math.prod(shape) * dtype.itemsize == length, "another length than the shape's")
    out = np.zeros(shape, dtype)
    if kept != shape:
        out[...] = np.frombuffer(content.take(dtype.itemsize), dtype)[0]
    out[tuple(map(slice, kept))] = values(math.prod(kept)).reshape(kept)
    return out


def _boxes(content: Reader, values, dtype: np.dtype, length: int) -> np.ndarray:
    """Return the values of the form *boxes*."""
    padding = content.take(dtype.itemsize)
    side = [content.number() for _ in range(3)]
    size = math.prod(side)
    check(size >= 16, "unit blocks of fewer than 16 values")
    boxes = [[content.number() for _ in range(6)] for _ in range(content.number())]
    check(all(n < 1 << 20 for box in boxes for n in box), "a place that is too large")
    decoded = values(size * sum(math.prod(box[3:]) for box in boxes))
    grids = [np.indices(box[3:]).reshape(3, -1).T + box[:3] for box in boxes]
    keys = [tree.interleave(place) for grid in grids for place in grid.tolist()]
    check(len(set(keys)) == len(keys), "a block in two boxes")
    order = np.argsort(np.argsort(keys))  # of each block, its place among the keys
    blocks, at, out = decoded.reshape(-1, *side)[order], 0, b""
    for box in boxes:
        count = math.prod(box[3:])
        part = blocks[at : at + count].reshape(*box[3:], *side).transpose(0, 3, 1, 4, 2, 5)
        out, at = out + part.tobytes(), at + count
    rest = (length - len(out)) // dtype.itemsize
    return np.frombuffer(out + padding * rest, dtype)
