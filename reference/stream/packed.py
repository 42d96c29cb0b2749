"""Bit-packed streams of the codec `ambar` (format.md, 7.12)."""

import math

import numpy as np

from .bits import Reader, check

STEPS, FIXED_POINT, ORDERED_BITS = 0, 1, 2


def decode(reader: Reader, header: dict, shape: list[int]) -> np.ndarray:
    """Return the values of a bit-packed stream, behind whose shape `reader` is."""
    dtype, lossless = np.dtype(header["dtype"]), header["lossless"]
    count = math.prod(shape)
    bound, across = 0.0, 0
    if not lossless:
        bound, across = reader.unpack("d"), reader.unpack("B")
        check(0 < bound < np.inf, "a bound that is not above 0 and finite")
        check(across < 1 << (len(shape) - 1), "differences along a dimension that does not exist")
    words = np.zeros(count, np.uint64 if lossless else np.uint32)
    out = np.zeros(count, dtype)
    for start in range(0, count, 1024):
        size = min(1024, count - start)
        kind, exponent, block = _read_block(reader, size, words.itemsize)
        check(kind in ((1, 2) if lossless else (0,)), "a kind of block that does not exist")
        words[start : start + size] = block
        if kind == FIXED_POINT:
            values = block.view(np.int64).astype(np.float64) * 2.0**exponent
            out[start : start + size] = values.astype(dtype)
        elif kind == ORDERED_BITS:
            bits = block.astype(np.uint32 if dtype.itemsize == 4 else np.uint64)
            sign = bits >> bits.dtype.type(8 * dtype.itemsize - 1)
            flip = bits.dtype.type((1 << (8 * dtype.itemsize - 1)) - 1)
            out[start : start + size] = np.where(sign, bits ^ flip, bits).view(dtype)
    if not lossless:
        grid = words.reshape(shape)
        for d in range(len(shape) - 2, -1, -1):
            if across >> d & 1:
                grid = np.add.accumulate(grid, axis=d, dtype=np.uint32)
        step = np.float64(bound) * (2 - 2.0**-19)
        out = (grid.reshape(-1).view(np.int32).astype(np.float64) * step).astype(dtype)
    at = -1
    for number in range(reader.number()):
        at += reader.number() + (number > 0 or 1)
        check(at < count, "an exception outside of the array")
        out[at : at + 1] = np.frombuffer(reader.take(dtype.itemsize), dtype)
    reader.end()
    return out


def _read_block(reader: Reader, size: int, itemsize: int) -> tuple[int, int, np.ndarray]:
    """Return the kind, the exponent and the words of one block (7.12)."""
    order, kind = (byte := reader.unpack("B")) & 15, byte >> 4
    check(order <= 8 and order < size, "an order that does not exist")
    exponent = reader.unpack("h") if kind == FIXED_POINT else 0
    check(-960 <= exponent <= 960, "an exponent that does not exist")
    lengths = [min(256, size - start) for start in range(0, size, 256)]
    widths = list(reader.take(len(lengths)))
    check(max(widths) <= 8 * itemsize, "a width that does not exist")
    word = np.dtype(f"u{itemsize}")
    if itemsize == 8:
        head = np.frombuffer(reader.take(8 * max(order, 1)), word)
    else:
        numbers = [reader.number() for _ in range(max(order, 1))]
        check(max(numbers) < 1 << 32, "a head of more than 32 bits")
        head = _unfold(np.array(numbers, word))
    words = np.concatenate(
        [_read_group(reader, n, w) for n, w in zip(lengths, widths, strict=True)]
    )
    words = _unfold(words.astype(word))
    if order == 0:
        return kind, exponent, words + head[0]
    words[:order] = head
    for _ in range(order):
        words = np.add.accumulate(words, dtype=word)
    return kind, exponent, words


def _unfold(words: np.ndarray) -> np.ndarray:
    one = words.dtype.type(1)
    return (words >> one) ^ (~(words & one) + one)


def _read_group(reader: Reader, count: int, width: int) -> np.ndarray:
    """Return the folded words of one group (7.12)."""
    if width > 32:
        low = _read_group(reader, count, 32)
        return low | _read_group(reader, count, width - 32) << np.uint64(32)
    rows = -(-count // 8)
    lengths = -(-rows * width // 32)
    lanes = np.frombuffer(reader.take(32 * lengths), "<u4").reshape(lengths, 8).T
    bits = np.unpackbits(np.ascontiguousarray(lanes).view(np.uint8), axis=1, bitorder="little")
    bits = bits[:, : rows * width].reshape(8, rows, width).astype(np.uint64)
    words = (bits << np.arange(width, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    return words.T.reshape(-1)[:count]
