"""Decodes streams of the codec `ambar` (format.md, chapter 7)."""

import numpy as np

from . import packed, regions, tree
from .bits import DamagedError, Reader, UnsupportedError, check, sealed
from .entropy import ESCAPE_BASE, RawBits, Symbols, Tokens, read_tables
from .prelude import Prelude
from .traversal import BY_LEVEL, BY_PLANE, Traversal

ARRAY, BLOCKS, CELLS = 0, 1, 2


def read_header(data: bytes) -> dict:
    """Return the fields of a stream's header of four bytes (7.1)."""
    check(len(data) >= 4, "a stream of less than four bytes")
    version, kind, content, mode = data[:4]
    if version != 1:
        raise UnsupportedError(f"a stream of version {version}; this reads version 1")
    check(kind in (1, 2), f"type {kind}; expected 1 or 2")
    header = {
        "version": version,
        "dtype": "float32" if kind == 1 else "float64",
        "layout": content & 3,
        "bound": ("lossless", "absolute", "mapped", "reserved")[content >> 2 & 3],
        "masked": bool(content & 16),
        "clamped": bool(content & 32),
        "contexts": mode & 3,
        "predicted_holes": bool(mode & 4),
        "group": (mode >> 3 & 3) + 1,
        "states": 32 if mode & 32 else 8,
        "packets": (mode >> 6) + 1,
    }
    header["lossless"] = lossless = header["bound"] == "lossless"
    masked, contexts = header["masked"], header["contexts"]
    check(content >> 6 == 0 and header["bound"] != "reserved", "reserved bits are set")
    check(header["packets"] == 1 or header["layout"] != CELLS, "cells in several packets")
    check(header["layout"] <= CELLS, "a layout that does not exist")
    check(contexts or (mode == 0 and content & 19 == 0), "fields that exclude each other")
    check(not (contexts == BY_PLANE and lossless), "planes without loss")
    check(header["group"] == 1 or contexts == BY_LEVEL, "groups without contexts of levels")
    holes = header["layout"] == BLOCKS and not lossless and not masked and contexts in (1, 3)
    check(holes or not header["predicted_holes"], "predicted holes where none can be")
    return header


def decode(data: bytes, expected: int | None = None) -> np.ndarray:
    """Return the values of one stream, in one dimension.

    `expected` is their number, if the caller knows it: no more memory is asked for.

    Raises
    ------
    ValueError
        If the stream is damaged, or of another version.
    """
    header = read_header(data)
    reader = Reader(sealed(data))
    reader.take(4)
    try:
        with np.errstate(all="ignore"):
            packets = []
            if header["packets"] > 1:
                reader, packets = _read_packets(data, reader, header["packets"])
            prelude = Prelude(reader, header)
            check(not (packets and prelude.exceptions), "level packets with exceptions")
            count = reader.number()
            check(expected in (None, count), f"{count} values; expected {expected}")
            if not header["contexts"]:
                coded = packed.decode(reader, header, read_shape(reader, count))
            else:
                coded = _decode_coded(reader, header, count, packets)
            return prelude.apply(coded)
    except (LookupError, ArithmeticError, MemoryError) as error:
        raise DamagedError(f"a damaged stream: {error}") from error


def _read_packets(data: bytes, reader: Reader, count: int) -> tuple[Reader, list]:
    """Return the rest of the head, and the symbols and raw bits of each level packet (7.1)."""
    head = reader.number()
    lengths = [(reader.number(), reader.number()) for _ in range(count)]
    end = reader.at + head
    rest = Reader(sealed(data[: end + 4])[reader.at :])
    packets = []
    for symbols, raw in lengths:
        begin, end = end + 4, end + 4 + symbols + raw
        packet = sealed(data[begin : end + 4])
        packets.append((packet[:symbols], packet[symbols:]))
    check(end + 8 == len(data), "packets that end elsewhere than the stream")
    return rest, packets


def _decode_coded(reader: Reader, header: dict, count: int, packets: list) -> np.ndarray:
    """Decode an entropy-coded stream; `packets` are empty where it has but one."""
    dtype = np.dtype(header["dtype"])
    places = _read_regions(reader, header, count)
    bound = 0.0 if header["lossless"] else reader.unpack("d")
    check(header["lossless"] or 0 < bound < np.inf, "a bound that is not above 0 and finite")
    shift = reader.unpack("B") if header["lossless"] else 0
    check(shift < 8 * dtype.itemsize, "a shift beyond the bits of the type")
    options = reader.unpack("B")
    check(options < 64, "reserved bits of the level options are set")
    if count == 0:
        return np.zeros(0, dtype)
    out = np.zeros(count, dtype)
    if header["masked"]:
        out[:] = np.frombuffer(reader.take(dtype.itemsize), dtype)
        places = [regions.read_mask(reader, index) for index in places]
    group = header["group"]
    groups = []
    if group > 1:
        groups = read_tables(reader.unpack("B"), reader.section(), ESCAPE_BASE[group] ** group)
    tables = read_tables(reader.unpack("B"), reader.section(), 136)
    packets = packets or [(reader.section(), reader.section())]
    reader.end()
    tokens = [
        Tokens(tables, groups, group, Symbols(symbols, header["states"]), RawBits(raw))
        for symbols, raw in packets
    ]
    traversal = Traversal(out, tokens, header["contexts"], bound, shift, options)
    for index in places:
        coded = present = index >= 0
        if header["predicted_holes"]:
            coded, present = coded | regions.edges(coded, header["side"]), np.ones_like(coded)
        traversal.region(index, coded, present)
    for packet in tokens:
        packet.raw.end()
        packet.symbols.end()
    return out


def _read_regions(reader: Reader, header: dict, count: int) -> list[np.ndarray]:
    if header["layout"] == ARRAY:
        return regions.of_array(read_shape(reader, count))
    if header["layout"] == CELLS:
        return tree.read_regions(reader, count)
    side = header["side"] = [reader.number() for _ in range(3)]
    size = side[0] * side[1] * side[2]
    check(size and count % size == 0, "values that are no blocks")
    places = regions.read_places(reader.section(), count // size)
    return regions.of_blocks(places, side, 0.4 if header["contexts"] == 2 else 0.7)


def read_shape(reader: Reader, count: int) -> list[int]:
    """Return the shape of an array of `count` values."""
    dimensions = reader.number()
    check(1 <= dimensions <= 4, "a number of dimensions that does not exist")
    shape = [reader.number() for _ in range(dimensions)]
    check(np.prod(shape, dtype=object) == count, "another number of values than the shape has")
    return shape
