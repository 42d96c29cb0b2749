"""Chains of codecs: how the bytes of a chunk become values (format.md, chapters 2.3 and 3)."""

import math
import struct
import zlib
from itertools import product

import numcodecs
import numpy as np
from containers import Container
from hierarchy import Array, named
from pcodec import standalone
from stream import decode as decode_stream
from stream import simplices
from stream.bits import UnsupportedError, check, check_supported, damage, sealed, unzip

ABSENT = (2**64 - 1, 2**64 - 1)


def read_values(container: Container, path: str, array: Array, complete: bool) -> np.ndarray:
    """Return all values of an array.

    `complete` says that no chunk may be missing: ambar wrote the store.
    """
    out = np.full(array.shape, array.fill, array.dtype)
    if 0 in array.shape:
        return out
    name, shard = array.codecs[0]
    sharded = name == "sharding_indexed"
    chunk = tuple(shard.get("chunk_shape", ())) if sharded else array.chunk
    if sharded:
        check(len(array.codecs) == 1 and len(chunk) == len(array.chunk), "codecs beside shards")
        check(all(type(c) is int and c > 0 and n % c == 0 for n, c in zip(array.chunk, chunk)),
              "shards that are not made of whole chunks")  # fmt: skip
    codecs = [named(c) for c in shard.get("codecs", [])] if sharded else array.codecs
    for place in product(*(range(-(-n // c)) for n, c in zip(array.shape, array.chunk))):
        key = "/".join([*filter(None, [path]), "c", *map(str, place)])
        if key not in container:
            check(not complete, f"{key} is missing")
            continue
        data, seal = container.load(key), container[key].seal
        start = [i * n for i, n in zip(place, array.chunk)]
        if sharded:
            grid = [n // c for n, c in zip(array.chunk, chunk)]
            parts = _read_shard(data, seal, math.prod(grid), shard)
        else:
            check(seal in (None, _tag(data)), f"{key} does not match its seal")
            grid, parts = [1] * len(chunk), [data]
        for inner, part in zip(product(*map(range, grid)), parts, strict=True):
            corner = [s + i * c for s, i, c in zip(start, inner, chunk)]
            if part is not None and all(a < n for a, n in zip(corner, array.shape)):
                values = decode(part, codecs, array, chunk)
                target = out[(*(slice(a, a + c) for a, c in zip(corner, chunk)), ...)]
                target[...] = values[tuple(map(slice, target.shape))]
    return out


def _tag(chunk: bytes) -> int:
    return zlib.crc32(chunk[-8:])


def _read_shard(data: bytes, seal: int | None, count: int, shard: dict) -> list[bytes | None]:
    """Return the encoded chunks of a shard (2.3)."""
    names = [named(codec)[0] for codec in shard.get("index_codecs", [])]
    location = shard.get("index_location", "end")
    check_supported(names == ["bytes", "crc32c"] and location in ("start", "end"),
                    "an index of a shard that is not of `bytes` and `crc32c`")  # fmt: skip
    size, table = 16 * count + 4, 4 * count if seal is not None else 0
    check(len(data) >= size + table, "a shard shorter than its index and table")
    if location == "end":
        head = data[len(data) - size - table :]
        tags, index = head[:table], head[table:]
    else:
        head = data[: size + table]
        index, tags = head[:size], head[size:]
    check(seal in (None, zlib.crc32(head)), "index and table of a shard do not match its seal")
    extents = list(struct.iter_unpack("<QQ", sealed(index)))
    check(sum(n for _, n in extents if n != ABSENT[1]) <= len(data), "chunks longer than a shard")
    chunks = []
    for i, (offset, length) in enumerate(extents):
        chunks.append(None if (offset, length) == ABSENT else data[offset : offset + length])
        check(chunks[-1] is None or offset + length <= len(data), "a chunk outside of its shard")
        tag = 0 if chunks[-1] is None else _tag(chunks[-1])
        check(not table or struct.unpack_from("<I", tags, 4 * i)[0] == tag, "a chunk's tag differs")
    return chunks


def decode(data: bytes, codecs: list[tuple[str, dict]], array: Array, shape) -> np.ndarray:
    """Undo a chain of codecs; return the values of one chunk.

    Raises
    ------
    ValueError
        If a checksum differs or the data are damaged in another way, or a codec is unknown.
    """
    chain, before = list(codecs), []
    while chain and chain[0][0] in ("transpose", "numcodecs.delta"):
        name, configuration = chain.pop(0)
        before.append((name, configuration))
        if name == "transpose":
            order = configuration.get("order")
            check(isinstance(order, list) and sorted(order) == list(range(len(shape))),
                  "an order of `transpose` that is not each dimension once")  # fmt: skip
            shape = tuple(shape[d] for d in order)
        else:
            names = {configuration.get("dtype"), configuration.get("astype", array.dtype.str)}
            same = array.dtype.kind in "iu" and {np.dtype(n) for n in names} == {array.dtype}
            check_supported(same, "`numcodecs.delta` of another type than the array's")
    check(chain, "no codec makes bytes")
    (name, configuration), count = chain[0], math.prod(shape)
    for later, _ in reversed(chain[1:]):
        data = _decode_bytes(later, data)
    values = _decode_values(name, configuration, data, array, count).reshape(shape)
    for earlier, settings in reversed(before):
        if earlier == "transpose":
            values = values.transpose(np.argsort(settings["order"]))
        else:
            values = np.add.accumulate(values.ravel(), dtype=values.dtype).reshape(values.shape)
    return values


def _decode_bytes(name: str, data: bytes) -> bytes:
    """Undo a codec that makes bytes of bytes."""
    if name == "crc32c":
        return sealed(data)
    if name == "zstd":
        return unzip(data)
    check_supported(name == "blosc", f"the codec {name!r}")
    check(len(data) >= 16 and int.from_bytes(data[12:16], "little") == len(data),
          "a blosc buffer whose header does not fit its length")  # fmt: skip
    with damage(RuntimeError):
        return numcodecs.Blosc().decode(data)


def _decode_values(name: str, configuration: dict, data: bytes, array: Array, count: int):
    """Undo the codec that makes bytes of values; return `count` values, in one dimension."""
    dtype = array.dtype
    if name in ("vlen-utf8", "vlen-bytes") and array.text:
        return _decode_texts(data, array.text == "string", count)
    if name == "bytes" and not array.text:
        endian = configuration.get("endian", "little")
        check_supported(endian in ("little", "big"), f"the order of bytes {endian!r}")
        values = np.frombuffer(data, dtype)
        values = values.byteswap() if endian == "big" else values
    elif name == "numcodecs.pcodec" and not array.text:
        with damage(RuntimeError):
            values = standalone.simple_decompress(data)
    elif name == "ambar" and dtype.kind == "f":
        values = decode_stream(data, count)
    elif name == "ambar.simplices" and dtype.kind in "iu":
        values = simplices.decode(data, count).view(dtype)
    else:
        raise UnsupportedError(f"the codec {name!r} for {dtype}")
    check(values is not None and values.size == count, "another number of values than the chunk's")
    check(dtype.kind in "mM" or values.dtype == dtype, "values of another type")
    return values.view(dtype)


def _decode_texts(data: bytes, text: bool, count: int) -> np.ndarray:
    values, at = np.empty(count, object), 4
    check(int.from_bytes(data[:4], "little") == count, "another number of texts than the chunk's")
    for i in range(count):
        length = int.from_bytes(data[at : at + 4], "little")
        check(at + 4 + length <= len(data), "texts that end too early")
        value = data[at + 4 : at + 4 + length]
        values[i] = value.decode() if text else value
        at += 4 + length
    check(at == len(data), "bytes are left behind the texts")
    return values
