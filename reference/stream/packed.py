"""Bit-packed streams, and exceptions (format.md, 7.12)."""

import numpy as np

from .bits import Reader, check

BINS, FIXED_POINT, ORDERED_BITS = 0, 1, 2


def decode(s, reader: Reader, shape: list[int], count: int) -> np.ndarray:
    """Return the coded values of a bit-packed stream, from the part *bound* on."""
    bound, differences = (0.0, 0) if s.lossless else (reader.unpack("d"), reader.unpack("B"))
    check(s.lossless or 0 < bound < np.inf, f"invalid error bound {bound}")
    check(differences < 1 << (len(shape) - 1), "differences along a dimension that does not exist")
    words, out = np.zeros(count, np.uint64 if s.lossless else np.uint32), np.zeros(count, s.dtype)
    for start in range(0, count, 1024):
        part = slice(start, min(start + 1024, count))
        kind, exponent, block = read_block(reader, part.stop - start, words.dtype)
        check(kind in ((FIXED_POINT, ORDERED_BITS) if s.lossless else (BINS,)), "an invalid kind")
        words[part] = block
        if kind == FIXED_POINT:
            out[part] = block.view(np.int64).astype(np.float64) * 2.0**exponent
        elif kind == ORDERED_BITS:
            bits = block.astype(f"u{out.itemsize}")
            sign = bits.dtype.type(1 << (8 * out.itemsize - 1))
            out[part] = np.where(bits & sign, bits ^ ~sign, bits).view(out.dtype)
    if not s.lossless:
        words = words.reshape(shape)
        for d in range(len(shape) - 2, -1, -1):
            if differences >> d & 1:
                words = np.add.accumulate(words, axis=d, dtype=np.uint32)
        out[...] = words.ravel().view(np.int32).astype(np.float64) * (bound * (2 - 2.0**-19))
    return replace_exceptions(reader, out)


def replace_exceptions(reader: Reader, values: np.ndarray) -> np.ndarray:
    """Read exceptions into `values`, and return these."""
    at = -1
    for _ in range(reader.number()):
        at += reader.number() + 1
        check(at < len(values), "an exception outside of the values")
        values[at : at + 1] = np.frombuffer(reader.take(values.itemsize), values.dtype)
    reader.end()
    return values


def read_block(reader: Reader, size: int, word: np.dtype) -> tuple[int, int, np.ndarray]:
    """Return the kind, the exponent and the words of a block."""
    kind, order = divmod(reader.unpack("B"), 16)
    check(order <= 8 and order < size, "an invalid order")
    exponent = reader.unpack("h") if kind == FIXED_POINT else 0
    check(-960 <= exponent <= 960, "an invalid exponent")
    widths = list(reader.take(-(-size // 256)))
    check(max(widths) <= 8 * word.itemsize, "an invalid width")
    if word.itemsize == 8:
        first = np.frombuffer(reader.take(8 * max(order, 1)), word)
    else:
        numbers = [reader.number() for _ in range(max(order, 1))]
        check(max(numbers) < 1 << 32, "a first word of more than 32 bits")
        first = unfold(np.array(numbers, word))
    groups = [read_group(reader, min(256, size - 256 * i), width) for i, width in enumerate(widths)]
    words = unfold(np.concatenate(groups).astype(word))
    if order == 0:
        return kind, exponent, words + first[0]
    words[:order] = first
    for _ in range(order):
        words = np.add.accumulate(words, dtype=word)
    return kind, exponent, words


def unfold(words: np.ndarray) -> np.ndarray:
    """Return words that were folded (7.8)."""
    return (words >> 1) ^ (~(words & 1) + words.dtype.type(1))


def read_group(reader: Reader, count: int, width: int) -> np.ndarray:
    """Return the folded words of a group."""
    if width > 32:
        low = read_group(reader, count, 32)
        return low | read_group(reader, count, width - 32) << np.uint64(32)
    rows = -(-count // 8)
    length = -(-rows * width // 32)
    lanes = np.frombuffer(reader.take(32 * length), "<u4").reshape(length, 8).T
    bits = np.unpackbits(np.ascontiguousarray(lanes).view(np.uint8), axis=1, bitorder="little")
    bits = bits[:, : rows * width].reshape(8, rows, width).astype(np.uint64)
    words = (bits << np.arange(width, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    return words.T.ravel()[:count]
