"""Streams of the codec `ambar`: their parts, and values from coded values (7.1 and 7.13)."""

import math
from types import SimpleNamespace

import numpy as np

from . import packed, regions, tree
from .adaptive import AdaptivePacket
from .bits import Reader, UnsupportedError, check, damage, sealed
from .entropy import GROUP_BASE, Packet, read_tables
from .traversal import BY_LEVEL, BY_PLANE, BY_ROW, DIAGONALS, Traversal
from .wavelet import Wavelet

ARRAY, BLOCKS, CELLS = 0, 1, 2
HEADER = (  # of each field of 7.1: byte, lowest bit, number of bits, name and values
    (0, 0, 8, "version", {1: 1}),
    (1, 0, 8, "dtype", {1: "float32", 2: "float64"}),
    (2, 0, 2, "layout", {0: ARRAY, 1: BLOCKS, 2: CELLS}),
    (2, 2, 2, "bound", {0: "lossless", 1: "absolute", 2: "mapped"}),
    (2, 4, 1, "masked", {0: False, 1: True}),
    (2, 5, 1, "clamped", {0: False, 1: True}),
    (2, 6, 1, "components", {0: False, 1: True}),
    (2, 7, 1, "reserved", {0: 0}),
    (3, 0, 2, "contexts", {0: 0, 1: BY_LEVEL, 2: BY_ROW, 3: BY_PLANE}),
    (3, 2, 1, "predicted_holes", {0: False, 1: True}),
    (3, 3, 2, "group", {0: 1, 1: 2, 2: 3, 3: 4}),
    (3, 5, 1, "states", {0: 8, 1: 32}),
    (3, 6, 2, "packets", {0: 1, 1: 2, 2: 3, 3: 4}),
)


def read_header(data: bytes) -> dict:
    """Return the fields of the header of a stream (7.1)."""
    check(len(data) >= 4, "a stream of less than four bytes")
    check(data[0] == 1, f"a stream of version {data[0]}; expected 1", UnsupportedError)
    header = {}
    for byte, first, bits, name, values in HEADER:
        value = data[byte] >> first & (1 << bits) - 1
        check(value in values, f"{name} of a stream is {value}; expected one of {[*values]}")
        header[name] = values[value]
    del header["reserved"]
    header["lossless"] = lossless = header["bound"] == "lossless"
    contexts, plain = header["contexts"], not lossless and not header["masked"]
    check(contexts or (data[2] & 19 == 0 and data[3] == 0), "invalid fields of a bit-packed stream")
    check(contexts != BY_PLANE or not lossless, "contexts by plane in a lossless stream")
    adaptive = contexts in (BY_ROW, BY_PLANE) and (header["group"], header["states"]) == (2, 8)
    if adaptive:  # bit 3 states adaptive tokens, not groups
        header["group"] = 1
    header["adaptive"] = adaptive
    check(contexts == BY_LEVEL or header["group"] == 1, "groups without contexts by level")
    check(header["packets"] == 1 or header["layout"] != CELLS, "cells in several packets")
    array = header["layout"] == ARRAY and header["packets"] == 1
    check(array or not header["components"], "components in several packets, or of no array")
    holes = header["layout"] == BLOCKS and contexts in (BY_LEVEL, BY_PLANE) and plain
    check(holes or not header["predicted_holes"], "hole prediction does not apply to the stream")
    return header


@damage()
@np.errstate(all="ignore")
def decode(data: bytes, expected: int | None = None) -> np.ndarray:
    """Return the values of a stream, in one dimension; `expected` is their number, if known."""
    s, reader, packets = SimpleNamespace(**read_header(data)), Reader(sealed(data)), []
    reader.take(4)
    if s.packets > 1:
        reader, packets = read_packets(data, reader, s.packets)
    read_prelude(s, reader)
    check(not (packets and s.exceptions), "exceptions in a stream with level packets")
    count = reader.number()
    check(expected in (None, count), f"{count} values; expected {expected}")
    check(count % (s.components or 1) == 0, f"{count} values of {s.components} components")
    if s.contexts == 0:
        return restore(s, packed.decode(s, reader, read_shape(reader, count), count))
    return restore(s, decode_coded(s, reader, count, packets))


def read_packets(data: bytes, reader: Reader, count: int) -> tuple[Reader, list]:
    """Return the head, and symbols and raw bits of each level packet (7.1)."""
    head = reader.number()
    lengths = [(reader.number(), reader.number()) for _ in range(count)]
    end, packets = reader.at + head, []
    rest = Reader(sealed(data[: end + 4])[reader.at :])
    for symbols, raw in lengths:
        packet = sealed(data[end + 4 : end + symbols + raw + 8])
        packets.append((packet[:symbols], packet[symbols:]))
        end += symbols + raw + 4
    check(end + 8 == len(data), "the lengths of the packets differ from that of the stream")
    return rest, packets


def read_prelude(s, reader: Reader) -> None:
    """Read the prelude (7.13)."""
    s.exceptions, s.dtype = b"", np.dtype(s.dtype)
    if s.bound == "mapped":
        s.relative, s.floor, s.unit = (reader.unpack("d") for _ in range(3))
        check(0 < s.relative < 1 and 0 <= s.floor < np.inf, "a relative bound out of range")
        check(2.0**-1022 <= s.unit < np.inf, "a unit out of range")
        s.exceptions = reader.section()
    if s.clamped:
        s.minimum = np.frombuffer(reader.take(s.dtype.itemsize), s.dtype)
    if s.components:
        s.components = reader.number()
        check(s.components >= 2, f"{s.components} components; expected at least 2")


def read_shape(reader: Reader, count: int) -> list[int]:
    """Return the shape of an array of `count` values (7.1)."""
    dimensions = reader.number()
    check(1 <= dimensions <= 4, "an invalid number of dimensions")
    shape = [reader.number() for _ in range(dimensions)]
    check(math.prod(shape) == count, f"{count} values; expected those of the shape {shape}")
    return shape


def decode_coded(s, reader: Reader, count: int, packets: list) -> np.ndarray:
    """Return the coded values of an entropy-coded stream, from its layout on (7.1)."""
    places = read_regions(s, reader, count)
    s.error_bound, s.shift = (0.0, reader.unpack("B")) if s.lossless else (reader.unpack("d"), 0)
    check(s.lossless or 0 < s.error_bound < np.inf, f"invalid bound {s.error_bound}")
    check(s.shift < 8 * s.dtype.itemsize, "a shift out of range")
    read_level_options(s, reader)
    if s.omitted is not None:
        check_wavelet(s, count)
    if s.layout == BLOCKS:
        limit = 1.0 if s.omitted is not None else 0.4 if s.contexts == BY_ROW else 0.7
        places = regions.of_blocks(places, s.side, limit)
    s.out = np.zeros(count + 1, s.dtype)  # the last one is for points without a value
    if count == 0:
        return s.out[:0]
    if s.masked:
        s.out[:] = np.frombuffer(reader.take(s.dtype.itemsize), s.dtype)
        places = [regions.read_mask(reader, region) for region in places]
    groups = read_tables(reader, GROUP_BASE[s.group] ** s.group) if s.group > 1 else []
    tables = [] if s.adaptive else read_tables(reader, 136)
    packets = packets or [(reader.section(), reader.section())]
    reader.end()
    if s.adaptive:
        s.packets = [AdaptivePacket(*packet) for packet in packets]
    else:
        s.packets = [Packet(*packet, s.states, tables, groups, s.group) for packet in packets]
    traversal = Traversal(s) if s.omitted is None else Wavelet(s)
    for region in places:
        coded = present = region >= 0
        if s.predicted_holes:
            coded = coded | regions.predicted_holes(coded, s.side)
            present = np.ones_like(coded)
        traversal.region(region, coded, present)
    for packet in s.packets:
        packet.end()
    return s.out[:-1]


def read_level_options(s, reader: Reader) -> None:
    """Read the level options (7.1)."""
    options = reader.unpack("B")
    s.level_scaling, s.interpolations, s.omitted, s.coefficient_bound = 0, [], None, None
    if options in (32, 96):
        s.omitted = reader.unpack("B")
        check(s.omitted < 7, f"{s.omitted} omitted levels; expected less than 7")
        if options == 96:
            s.coefficient_bound = bound = reader.unpack("d")
            check(0 < bound < np.inf, f"invalid bound of coefficients {bound}")
        return
    check(options < 32, "reserved bits of the level options are set")
    s.level_scaling = options & 7
    check(s.level_scaling < 5, f"unknown level scaling {s.level_scaling}")
    s.interpolations, s.weights = [], []
    for _ in range(options >> 3):
        bits = reader.unpack("H")
        ignores_all = any(bits >> n & 3 == 3 for n in (6, 8, 10)) or bits >> 12 & 7 == 7
        misplaced = bits >> 15 and (bits & 56 or s.contexts == BY_LEVEL)
        check(not ignores_all and not misplaced, f"invalid interpolation {bits:#x}")
        s.interpolations.append(bits)
        s.weights.append({})
        for t in DIAGONALS if bits >> 15 else ():
            s.weights[-1][t] = read_weights(reader, t, bits)


def read_weights(reader: Reader, t: int, bits: int) -> list[float]:
    """Return the weights of a phase (7.7): sharpness, outer points, slopes, each of its pairs."""
    units = [64, *[128] * (bits & 1), *[64] * (bits >> 2 & 1), *[32] * len(DIAGONALS[t])]
    if bits & 2:
        weights = np.frombuffer(reader.take(2 * len(units)), "<i2") / 8192
    else:
        weights = np.frombuffer(reader.take(len(units)), np.int8) / np.array(units)
    sharpness, *others = weights.tolist()
    outer = others.pop(0) if bits & 1 else 0.0
    slope = others.pop(0) if bits & 4 else 0.0
    return [sharpness, outer, slope, *others]


def check_wavelet(s, count: int) -> None:
    """Check that a stream may hold wavelet coefficients (7.1)."""
    bounds = ("absolute", "mapped") if s.coefficient_bound else ("absolute",)
    plain = count > 0 and s.layout != CELLS and s.bound in bounds and not s.masked
    check(plain and s.contexts == BY_ROW and s.packets == 1, "wavelets do not apply to the stream")


def read_regions(s, reader: Reader, count: int) -> list[np.ndarray] | np.ndarray:
    """Read the layout of a stream; return its regions, or the places of its blocks (7.1)."""
    if s.layout == ARRAY:
        return regions.of_array(read_shape(reader, count), count)
    if s.layout == CELLS:
        return tree.read_regions(reader, count)
    s.side = [reader.number() for _ in range(3)]
    size = math.prod(s.side)
    check(size and count % size == 0, "the number of values is not a multiple of that of a block")
    return regions.read_places(reader, count // size)


def restore(s, coded: np.ndarray) -> np.ndarray:
    """Return the values of coded values (7.13)."""
    values = coded
    if s.bound == "mapped":
        c = 0.07695
        b = (1 - 4 * c) / 3
        a = 1 - b - c
        y = coded.astype(np.float64)
        size = np.abs(y)
        linear = np.where((s.floor < s.unit) & (size < 1 / a / 2), 0.0, y * a * s.unit)
        t = np.clip(np.nan_to_num(size - 1 / a, posinf=0.0), 0, 2046)
        k = np.floor(t).astype(np.int64)
        f = t - k
        p = 1 + f * (a + f * (b + f * c))
        magnitude = s.unit * p * np.ldexp(1.0, k // 2) * np.ldexp(1.0, k - k // 2)
        x = np.where(size <= 1 / a, linear, np.copysign(magnitude, y))
        values = np.where(np.isfinite(y), x.astype(s.dtype), coded)
    if s.clamped:
        values = np.where(values < s.minimum, s.minimum, values)
    if s.exceptions:
        values = packed.replace_exceptions(Reader(s.exceptions), values)
    return values.reshape(s.components, -1).T.ravel() if s.components else values
