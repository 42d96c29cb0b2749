"""Values of arrays: chunks, shards and chains of codecs (format.md, 2.3 and chapter 3)."""

import math
import struct
import zlib

import numcodecs
import numpy as np
from containers import Container
from hierarchy import Array, lengths, named
from pcodec import standalone
from stream import decode as decode_stream
from stream import simplices
from stream.bits import Reader, UnsupportedError, check, sealed

ABSENT = 2**64 - 1


def decode_blosc(data: bytes) -> bytes:
    """Undo `blosc`."""
    check(data[12:16] == struct.pack("<I", len(data)), "the length in a blosc header differs")
    return numcodecs.Blosc().decode(data)


BYTES_TO_BYTES = {"crc32c": sealed, "zstd": numcodecs.Zstd().decode, "blosc": decode_blosc}


def read_values(container: Container, path: str, array: Array, complete: bool) -> np.ndarray:
    """Return all values of an array; `complete` says that no chunk may be missing."""
    out = np.full(array.shape, array.fill, array.dtype)
    chunk, codecs, (name, shard) = array.chunk, array.codecs, array.codecs[0]
    if name == "sharding_indexed":
        chunk, codecs = lengths(shard["chunk_shape"], 1), [named(c) for c in shard["codecs"]]
        check(len(array.codecs) == 1 and len(chunk) == len(array.chunk), "codecs besides sharding")
        check(not any(n % c for n, c in zip(array.chunk, chunk)), "shards of partial chunks")
    grid = [n // c for n, c in zip(array.chunk, chunk)]
    for place in np.ndindex(*(-(-n // c) for n, c in zip(array.shape, array.chunk))):
        key = "/".join([*path.split("/"), "c", *map(str, place)]).lstrip("/")
        if key not in container:
            check(not complete, f"{key} is missing")
            continue
        data, seal = container.load(key), container[key].seal
        if name == "sharding_indexed":
            parts = read_shard(data, seal, math.prod(grid), shard)
        else:
            check(seal in (None, tag(data)), f"{key} does not match its seal")
            parts = [data]
        for inner, part in zip(np.ndindex(*grid), parts):
            corner = [(p * g + i) * c for p, g, i, c in zip(place, grid, inner, chunk)]
            if part is not None and all(a < n for a, n in zip(corner, array.shape)):
                target = out[(*(slice(a, a + c) for a, c in zip(corner, chunk)), ...)]
                values = decode(part, codecs, array, chunk)
                target[...] = values[tuple(map(slice, target.shape))]
    return out


def tag(chunk: bytes) -> int:
    """Return the tag of a chunk (2.3)."""
    return zlib.crc32(chunk[-8:])


def read_shard(data: bytes, seal: int | None, count: int, shard: dict) -> list[bytes | None]:
    """Return the encoded chunks of a shard (2.3)."""
    names = [named(codec)[0] for codec in shard["index_codecs"]]
    location = shard.get("index_location", "end")
    check(names == ["bytes", "crc32c"] and location in ("start", "end"),
          f"a shard index with the codecs {names} at the {location}", UnsupportedError)  # fmt: skip
    size, table = 16 * count + 4, 0 if seal is None else 4 * count
    check(len(data) >= size + table, "a shard that is shorter than its index")
    head = data[: size + table] if location == "start" else data[len(data) - size - table :]
    index, tags = head[:size], head[size:]
    if location == "end":
        tags, index = head[:table], head[table:]
    check(seal in (None, zlib.crc32(head)), "the index of a shard does not match its seal")
    extents, chunks = list(struct.iter_unpack("<QQ", sealed(index))), []
    for offset, length in extents:
        absent = (offset, length) == (ABSENT, ABSENT)
        check(absent or offset + length <= len(data), "a chunk outside of its shard")
        chunks.append(None if absent else data[offset : offset + length])
    check(sum(len(chunk or b"") for chunk in chunks) <= len(data), "chunks longer than a shard")
    expected = struct.pack(f"<{count}I", *(0 if chunk is None else tag(chunk) for chunk in chunks))
    check(tags == expected[:table], "the tag of a chunk of a shard differs")
    return chunks


def decode(data: bytes, codecs: list[tuple[str, dict]], array: Array, shape) -> np.ndarray:
    """Return the values of a chunk: undo a codec pipeline (3)."""
    names, dtype = [name for name, _ in codecs], array.dtype
    first = next(i for i, name in enumerate(names) if name not in ("transpose", "numcodecs.delta"))
    for name, configuration in codecs[:first]:
        if name == "transpose":
            order = configuration["order"]
            check(sorted(order) == [*range(len(shape))], f"`transpose` has the order {order}")
            shape = tuple(shape[d] for d in order)
        else:
            types = {configuration["dtype"], configuration.get("astype", dtype.str)}
            same = dtype.kind in "iu" and {np.dtype(t) for t in types} == {dtype}
            check(same, f"`numcodecs.delta` of {types} in an array of {dtype}", UnsupportedError)
    for name in reversed(names[first + 1 :]):
        check(name in BYTES_TO_BYTES, f"unknown codec {name!r}", UnsupportedError)
        data = BYTES_TO_BYTES[name](data)
    values = decode_values(*codecs[first], data, array, math.prod(shape)).reshape(shape)
    for name, configuration in reversed(codecs[:first]):
        if name == "transpose":
            values = values.transpose(np.argsort(configuration["order"]))
        else:
            values = np.add.accumulate(values.ravel(), dtype=dtype).reshape(values.shape)
    return values


def decode_values(name: str, configuration: dict, data: bytes, array: Array, count: int):
    """Undo the array-to-bytes codec; return `count` values, in one dimension."""
    dtype = array.dtype
    if name in ("vlen-utf8", "vlen-bytes") and array.text:
        return decode_strings(data, array.text == "string", count)
    if name == "bytes" and not array.text:
        endian = configuration.get("endian", "little")
        check(endian in ("little", "big"), f"unknown byte order {endian!r}", UnsupportedError)
        values = np.frombuffer(data, dtype)
        values = values.byteswap() if endian == "big" else values
    elif name == "numcodecs.pcodec" and not array.text:
        values = standalone.simple_decompress(data)
    elif name == "ambar" and dtype.kind == "f":
        values = decode_stream(data, count)
    elif name == "ambar.simplices" and dtype.kind in "iu":
        values = simplices.decode(data, count).view(dtype)
    else:
        raise UnsupportedError(f"the codec {name!r} does not apply to {dtype}")
    check(values is not None and values.size == count, "another number of values than in the chunk")
    check(dtype.kind in "mM" or values.dtype == dtype, "values of another type")
    return values.view(dtype)


def decode_strings(data: bytes, is_text: bool, count: int) -> np.ndarray:
    """Undo `vlen-utf8` or `vlen-bytes`."""
    reader, values = Reader(data), np.empty(count, object)
    check(reader.unpack("I") == count, "another number of strings than in the chunk")
    for i in range(count):
        value = reader.take(reader.unpack("I"))
        values[i] = value.decode() if is_text else value
    reader.end()
    return values
