"""The arrays of ambar's stores, decoded as docs/format.md, 2.2, 2.3 and 3, says, and without ambar.

Compressed data go to numcodecs and pcodec, once it is known that nothing lies behind them.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from independent_container import StoreError, crc32c, need

CHUNK_LIMIT, INDEX_LIMIT, DIMENSIONS_LIMIT = 2**30, 2**28, 32
ABSENT = 2**64 - 1
NUMBERS = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
NUMBERS |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
VARIABLE = {"string": "vlen-utf8", "variable_length_bytes": "vlen-bytes"}
CHAIN_END = ["bytes", "crc32c"]
Shape = tuple[int, ...]


def named(value: Any) -> tuple[str, dict[str, Any]]:
    """Return name and configuration of a codec, a type, a grid or an encoding."""
    if isinstance(value, str):
        return value, {}
    need(set(value) <= {"name", "configuration"}, f"fields of {value}")
    return value["name"], value.get("configuration", {})


def sizes(value: Any, *, least: int) -> Shape:
    """Return lengths, whose product must fit 64 bits."""
    need(isinstance(value, list) and len(value) <= DIMENSIONS_LIMIT, f"lengths {value}")
    need(all(type(size) is int and size >= least for size in value), f"lengths {value}")
    need(math.prod(value) < 2**64, f"lengths {value}")
    return tuple(value)


def data_type(value: Any) -> np.dtype[Any]:
    """Return NumPy's type, which is `object` for values of any length."""
    name, configuration = named(value)
    if name in NUMBERS:
        return np.dtype(name)
    if name in VARIABLE:
        return np.dtype(object)
    if name in ("fixed_length_utf32", "null_terminated_bytes"):
        width = 4 if name == "fixed_length_utf32" else 1
        length, rest = divmod(configuration["length_bytes"], width)
        need(rest == 0 and length > 0, f"type {value}")
        return np.dtype(f"{'U' if width == 4 else 'S'}{length}")
    need(name in ("numpy.datetime64", "numpy.timedelta64"), f"type {value}")
    unit = configuration["unit"]
    step = "" if unit == "generic" else f"[{configuration['scale_factor']}{unit}]"
    return np.dtype(f"{name[6:]}{step}")


def real(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a float of a document, which JSON has as a number or a text."""
    if isinstance(value, str) and value.startswith("0x"):
        digits = 2 * dtype.itemsize
        need(re.fullmatch(f"0x[0-9a-fA-F]{{{digits}}}", value), f"fill value {value}")
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)
    need(value in ("NaN", "Infinity", "-Infinity") or type(value) in (int, float), "fill value")
    return np.array(float(value), dtype)


def fill_value(value: Any, kind: Any, dtype: np.dtype[Any]) -> Any:
    """Return the fill value, which must be a value of the type (2.2)."""
    if dtype.kind == "f":
        return real(value, dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        first, second = value
        return np.array([real(first, part), real(second, part)], part).view(dtype)[0]
    if dtype.kind == "S" or kind == "variable_length_bytes":
        content = base64.b64decode(value, validate=True)
        need(dtype.kind == "O" or len(content) <= dtype.itemsize, f"fill value {value}")
        return content
    expected = {"b": bool, "U": str, "O": str}.get(dtype.kind, int)
    need(type(value) is expected, f"fill value {value}")
    need(dtype.kind != "U" or 4 * len(value) <= dtype.itemsize, f"fill value {value}")
    return np.array(value, "i8").view(dtype) if dtype.kind in "mM" else np.array(value, dtype)


def zstd(data: bytes) -> bytes:
    """Decode one zstd frame that says its size, and has nothing behind it."""
    from numcodecs import zstd as library

    need(data[:4] == b"\x28\xb5\x2f\xfd", "this is no zstd frame")
    descriptor, single = data[4], data[4] >> 5 & 1
    width = [single, 2, 4, 8][descriptor >> 6]
    at = 6 - single + [0, 1, 2, 4][descriptor & 3]
    size = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
    need(width > 0 and size <= CHUNK_LIMIT, f"a zstd frame of {size} bytes")
    at, last = at + width, 0
    while not last:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind = header & 1, header >> 1 & 3
        at += 3 + (1 if kind == 1 else header >> 3)
        need(at <= len(data), "a zstd frame was cut short")
    need(at + (4 if descriptor & 4 else 0) == len(data), "bytes behind a zstd frame")
    content: bytes = library.decompress(data)
    need(len(content) == size, "size of a zstd frame")
    return content


def blosc(data: bytes) -> bytes:
    """Decode a buffer of blosc 1."""
    from numcodecs import blosc as library

    version, _, flags, _, size, _, stored = struct.unpack_from("<4B3I", data)
    need(version == 2 and stored == len(data) and size <= CHUNK_LIMIT, "header of blosc")
    need(flags >> 5 in (0, 1, 4), f"compressor {flags >> 5} of blosc")
    content: bytes = library.decompress(data)
    need(len(content) == size, "size of a blosc buffer")
    return content


def strip_crc32c(data: bytes) -> bytes:
    """Verify the last four bytes, and leave them out."""
    need(data[-4:] == struct.pack("<I", crc32c(data[:-4])), "checksum of a chunk")
    return data[:-4]


def pcodec(data: bytes, dtype: np.dtype[Any], count: int) -> np.ndarray:
    """Decode a standalone file of pco."""
    from pcodec import standalone

    need(dtype.kind in "iuf" and dtype.itemsize > 1, f"{dtype} in pcodec")
    values = np.empty(count, dtype)
    progress = standalone.simple_decompress_into(data, values)
    need(progress.n_processed == count and progress.finished, "numbers of a pco file")
    try:  # the library does not say how much it has read
        standalone.simple_decompress_into(data[:-1], np.empty(count, dtype))
    except RuntimeError:
        return values
    raise StoreError("bytes behind a pco file")


def variable(data: bytes, count: int, *, text: bool) -> np.ndarray:
    """Decode values of any length."""
    values = np.empty(count, object)
    (found,) = struct.unpack_from("<I", data)
    need(found == count, f"{found} values, not {count}")
    at = 4
    for row in range(count):
        (size,) = struct.unpack_from("<I", data, at)
        need(at + 4 + size <= len(data), "a value was cut short")
        content = data[at + 4 : at + 4 + size]
        values[row] = content.decode() if text else content
        at += 4 + size
    need(at == len(data), "bytes behind the last value")
    return values


def decode(codecs: list[Any], data: bytes, dtype: np.dtype[Any], shape: Shape) -> np.ndarray:
    """Undo a chain of codecs (chapter 3)."""
    (first, configuration), *rest = map(named, codecs)
    count = math.prod(shape)
    for name, _ in reversed(rest):
        need(name in ("blosc", "zstd", "crc32c"), f"codec {name}")
        data = {"blosc": blosc, "zstd": zstd, "crc32c": strip_crc32c}[name](data)
    if dtype.kind == "O":
        need(first in VARIABLE.values(), f"codec {first}")
        return variable(data, count, text=first == "vlen-utf8").reshape(shape)
    need(first in ("bytes", "numcodecs.pcodec"), f"codec {first}")
    if first == "numcodecs.pcodec":
        return pcodec(data, dtype, count).reshape(shape)
    words = dtype.itemsize > 1 and dtype.kind != "S"
    big = {"little": False, "big": True}[configuration["endian"]] if words else False
    need(len(data) == count * dtype.itemsize, f"{len(data)} bytes for {count} values")
    values = np.frombuffer(data, dtype.newbyteorder(">" if big else "<"))
    return values.astype(dtype).reshape(shape)


@dataclass(frozen=True)
class Layout:
    """How an array is stored: the shapes of itself, its entries and its chunks, and the codecs."""

    shape: Shape
    entry: Shape
    chunk: Shape
    dtype: np.dtype[Any]
    fill: Any
    codecs: list[Any]
    index: list[Any] | None
    index_first: bool

    @classmethod
    def of(cls, document: dict[str, Any]) -> Layout:
        """Read it from an array's document (2.2)."""
        shape = sizes(document["shape"], least=0)
        grid, configuration = named(document["chunk_grid"])
        entry = chunk = sizes(configuration["chunk_shape"], least=1)
        names = document.get("dimension_names") or [None] * len(shape)
        need(all(name is None or isinstance(name, str) for name in names), "dimension names")
        need(len(shape) == len(chunk) == len(names), "numbers of dimensions")
        separator = {"separator": "/"}
        encoding, settings = named(document["chunk_key_encoding"])
        need(grid == "regular" and encoding == "default", f"{grid} grid, {encoding} encoding")
        need(settings in ({}, separator), f"encoding of keys {settings}")
        need(not document.get("storage_transformers"), "storage transformers")
        kind, dtype = document["data_type"], data_type(document["data_type"])
        codecs, index, first = document["codecs"], None, False
        name, sharding = named(codecs[0])
        if name == "sharding_indexed":
            chunk, index = sizes(sharding["chunk_shape"], least=1), sharding["index_codecs"]
            need([named(codec)[0] for codec in index] == CHAIN_END, "codecs of the index")
            need(len(codecs) == 1 and len(chunk) == len(entry), "sharding")
            need(not any(a % b for a, b in zip(entry, chunk, strict=True)), "parts of chunks")
            first = {"start": True, "end": False}[sharding.get("index_location", "end")]
            codecs = sharding["codecs"]
        need(math.prod(chunk) * dtype.itemsize <= CHUNK_LIMIT, f"chunks of {chunk} values")
        name = named(codecs[0])[0]
        need(dtype.kind != "O" or name == VARIABLE[named(kind)[0]], f"codec {name}")
        fill = fill_value(document["fill_value"], kind, dtype)
        return cls(shape, entry, chunk, dtype, fill, codecs, index, first)

    def decode(self, data: bytes) -> np.ndarray:
        """Decode a chunk, or a shard (2.3)."""
        if self.index is None:
            return decode(self.codecs, data, self.dtype, self.chunk)
        grid = tuple(a // b for a, b in zip(self.entry, self.chunk, strict=True))
        size = 16 * math.prod(grid) + 4
        need(size <= min(len(data), INDEX_LIMIT), "a shard is shorter than its index")
        text = data[:size] if self.index_first else data[-size:]
        index = decode(self.index, text, np.dtype("u8"), (math.prod(grid), 2)).tolist()
        shard = np.full(self.entry, self.fill, self.dtype)
        for place, (offset, length) in zip(np.ndindex(grid), index, strict=True):
            if (offset, length) == (ABSENT, ABSENT):
                continue
            need(offset + length <= len(data), "a chunk lies outside of its shard")
            chunk = decode(self.codecs, data[offset : offset + length], self.dtype, self.chunk)
            corner = [p * c for p, c in zip(place, self.chunk, strict=True)]
            shard[tuple(slice(a, a + c) for a, c in zip(corner, self.chunk, strict=True))] = chunk
        return shard
