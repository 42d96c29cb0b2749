"""Bombs: small files that declare or decode to far more data than the caller asked for.

Opening, describing, verifying, reading a corner and compacting each take at most 2 s of processor
time and 300 MB of memory, or raise an error of ambar.
"""

from __future__ import annotations

import base64
import copy
import importlib
import json
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from campaigns import samples, seal
from campaigns.campaign import Run
from campaigns.mutation import MESH_DICTIONARY, nested
from campaigns.reads import open_corner
from campaigns.worker import Worker

SECONDS = 2.0
MEMORY = 300 << 20
_CRC = [{"name": "crc32c"}]
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def _array(shape: list[int], chunk: list[int], codecs: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 1.5,
        "codecs": codecs,
        "attributes": {},
        **more,
    }


def _sharded(chunk: list[int], codecs: list[Any]) -> list[Any]:
    index = {"index_codecs": [_BYTES, *_CRC], "index_location": "end"}
    inner = {"chunk_shape": chunk, "codecs": codecs, **index}
    return [{"name": "sharding_indexed", "configuration": inner}]


def _store(
    nodes: dict[str, Any], entries: dict[str, bytes] | None = None, **about: Any
) -> seal.Image:
    root = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"ambar": {"version": 1, "checksum": "crc32c:00000000", **about}},
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": nodes},
    }
    image = seal.Image({**(entries or {}), seal.ROOT: b""})
    seal.set_root(image, root)
    return image


def _sealed(data: bytes) -> bytes:
    return data + struct.pack("<I", seal.crc32c(data))


def _index(places: list[tuple[int, int]]) -> bytes:
    return _sealed(np.array(places, "<u8").tobytes())


def _huge_shape() -> seal.Image:
    return _store({"a": _array([2**43], [2**20], [_BYTES, *_CRC])})


def _many_chunks() -> seal.Image:
    return _store({"a": _array([2**44], [1], [_BYTES, *_CRC])})


def _many_shards() -> seal.Image:
    codecs = _sharded([2**10], [_BYTES, *_CRC])
    return _store({"a": _array([2**45], [2**22], codecs)})


def _many_dimensions() -> seal.Image:
    return _store({"a": _array([2] * 32, [1] * 32, [_BYTES, *_CRC])})


def _fill_values() -> seal.Image:
    """Declare shards without any written chunk."""
    chunks = 2**13
    codecs = _sharded([2**13], [_BYTES, *_CRC])
    index = _index([(2**64 - 1, 2**64 - 1)] * chunks)
    entries = {f"a/c/{n}": index for n in range(4)}
    return _store({"a": _array([2**28], [2**26], codecs)}, entries)


def _repeated_index() -> seal.Image:
    """Refer to one chunk 1,024 times in the index of a shard."""
    chunk = np.zeros(2**20).tobytes()
    from numcodecs import zstd

    data = _sealed(zstd.compress(chunk, 3))
    codecs = [_BYTES, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}, *_CRC]
    entry = data + _index([(0, len(data))] * 1024)
    document = _array([2**30], [2**30], _sharded([2**20], codecs))
    return _store({"a": document}, {"a/c/0": entry})


def _codec_bomb(codec: dict[str, Any], data: bytes) -> seal.Image:
    document = _array([1000], [1000], [_BYTES, codec, *_CRC])
    return _store({"a": document}, {"a/c/0": _sealed(data)})


def _zstd() -> seal.Image:
    from numcodecs import zstd

    codec = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    return _codec_bomb(codec, zstd.compress(bytes(400 << 20), 3))


def _blosc(name: str) -> Callable[[], seal.Image]:
    def make() -> seal.Image:
        from numcodecs import blosc

        data = bytearray(blosc.compress(bytes(64 << 20), name.encode(), 5, 1, 0))
        data[4:8] = struct.pack("<I", 2**31 - 1)
        about = {"cname": name, "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}
        return _codec_bomb({"name": "blosc", "configuration": about}, bytes(data))

    return make


def _texts() -> seal.Image:
    """Declare 2^32 - 1 strings in one chunk."""
    document = _array([2**32 - 1], [2**32 - 1], [{"name": "vlen-utf8"}, *_CRC])
    document |= {"data_type": "string", "fill_value": ""}
    return _store({"a": document}, {"a/c/0": _sealed(struct.pack("<I", 2**32 - 1) + bytes(64))})


def _long_text() -> seal.Image:
    document = _array([2], [2], [{"name": "vlen-utf8"}, *_CRC], data_type="string", fill_value="")
    data = _sealed(struct.pack("<II", 2, 2**32 - 1) + bytes(64))
    return _store({"a": document}, {"a/c/0": data})


def _deep_json() -> seal.Image:
    image = _store({}, title="deep")
    text = image.entries[seal.ROOT].replace(b'"deep"', b"[" * 100_000 + b"]" * 100_000)
    image.entries[seal.ROOT] = seal.seal_root(text)
    return image


def _deep_attributes() -> seal.Image:
    return _store({"g": {"zarr_format": 3, "node_type": "group", "attributes": {"a": nested(110)}}})


def _many_nodes() -> seal.Image:
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    return _store({f"g{number}": group for number in range(20_000)})


def _deep_nodes() -> seal.Image:
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    return _store({"/".join("g" * depth): group for depth in range(1, 1200)})


def _many_codecs() -> seal.Image:
    transposes = [{"name": "transpose", "configuration": {"order": [0]}}] * 20_000
    return _store({"a": _array([10], [10], [*transposes, _BYTES, *_CRC])})


def _changed(kind: str, path: str, values: Callable[[np.ndarray], np.ndarray]) -> seal.Image:
    """Return a sample in which the values of one array were changed."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "x.ambar")
        samples.KINDS[kind](place, False)
        with ambar.create(place, "a", fsync=False) as writer:
            store = ambar.Store._open(place)
            writer.create_array(path, values(store[path].read()), chunks=store[path].chunks)
        return seal.read(place)


def _ragged() -> seal.Image:
    def huge(counts: np.ndarray) -> np.ndarray:
        made = counts.copy()
        made[:2] = 2**62
        return made

    return _changed("collection", "f0/time_count", huge)


def _about(kind: str, change: Callable[[dict[str, Any]], None]) -> seal.Image:
    """Return a sample in which `change` has changed the root's document."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "x.ambar")
        samples.KINDS[kind](place, False)
        image = seal.read(place)
    root = copy.deepcopy(image.root)
    change(root)
    seal.set_root(image, root)
    return image


def _catalogue() -> seal.Image:
    def change(root: dict[str, Any]) -> None:
        nodes = root["consolidated_metadata"]["metadata"]
        for name, inner in (("datasets/name", []), ("datasets/place", [2])):
            nodes[name]["shape"] = [2**36, *inner]

    return _about("collection", change)


def _families() -> seal.Image:
    return _about("collection", lambda root: root["attributes"]["ambar"].update(families=2**40))


def _cells() -> seal.Image:
    def change(root: dict[str, Any]) -> None:
        for node in root["consolidated_metadata"]["metadata"].values():
            if "shape" in node and len(node["shape"]) == 1:
                node["shape"] = [2**40]
            about = node.get("attributes", {}).get("ambar", {})
            if about.get("kind") == "amr":
                about["cells"] = 2**40

    return _about("snapshot", change)


def _boxes() -> seal.Image:
    def change(root: dict[str, Any]) -> None:
        for path, node in root["consolidated_metadata"]["metadata"].items():
            if path.endswith(("/box", "/origin")):
                node["shape"][0] = 2**40
            for level in node.get("attributes", {}).get("ambar", {}).get("levels", ()):
                level |= {"boxes": 2**40, "blocks": 2**40}

    return _about("plotfile", change)


def _mesh() -> seal.Image:
    """Make the description of a mesh inflate to 250 MiB."""

    def change(root: dict[str, Any]) -> None:
        about = root["attributes"]["ambar"]
        decoder = zlib.decompressobj(-15, zdict=MESH_DICTIONARY)
        described = json.loads(decoder.decompress(base64.b85decode(about["data"])))
        text = json.dumps(described | {"user_dict": {"a": "@@"}}).encode()
        head, tail = text.split(b"@@")
        deflater = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=MESH_DICTIONARY)
        pieces = [head, *[b"A" * (1 << 20)] * 250, tail]
        packed = b"".join(map(deflater.compress, pieces)) + deflater.flush()
        about["data"] = base64.b85encode(packed + decoder.unused_data).decode()

    return _about("mesh", change)


def _tail() -> seal.Image:
    """Claim a temporary tail of 4 GiB."""
    image = _store({})
    image.steps = 1
    image.slot_change = lambda numbers: [*numbers[:2], 2**32 - 2**14, *numbers[3:]]
    return image


def _kept_directory() -> seal.Image:
    """Overwrite the last tail, and claim a central directory of 4 GiB in each record."""
    image = _store({})
    image.steps, image.killed = 1, b""
    image.record_change = lambda numbers: [*numbers[:9], 2**32 - 2**14, *numbers[10:]]
    return image


BOMBS: dict[str, Callable[[], seal.Image]] = {
    "huge shape": _huge_shape,
    "many chunks": _many_chunks,
    "many shards": _many_shards,
    "many dimensions": _many_dimensions,
    "fill values": _fill_values,
    "repeated index": _repeated_index,
    "zstd": _zstd,
    "blosc lz4": _blosc("lz4"),
    "blosc zstd": _blosc("zstd"),
    "texts": _texts,
    "long text": _long_text,
    "temporary tail": _tail,
    "kept directory": _kept_directory,
    "deep JSON": _deep_json,
    "deep attributes": _deep_attributes,
    "many nodes": _many_nodes,
    "deep nodes": _deep_nodes,
    "many codecs": _many_codecs,
    "ragged offsets": _ragged,
    "catalogue": _catalogue,
    "families": _families,
    "cells": _cells,
    "boxes": _boxes,
    "mesh description": _mesh,
}


def open_store(path: str) -> None:
    """Open a store."""
    ambar.open(path)


def info(path: str) -> None:
    """Describe a store."""
    from ambar.kinds.registry import overview

    overview(path)


def verify(path: str) -> None:
    """Verify every checksum."""
    ambar.Store._open(path).verify()


def corner(path: str) -> None:
    """Read one value of each array."""
    open_corner(path)


def compact(path: str) -> None:
    """Compact the store."""
    ambar.compact(path)


ACTIONS: dict[str, Callable[[str], None]] = {
    act.__name__: act for act in (open_store, info, verify, corner, compact)
}


def measured(action: str, path: str) -> tuple[float, str]:
    """Run an action; return its processor time and an error that is not one of ambar."""
    started = time.process_time()
    wrong = ""
    try:
        ACTIONS[action](path)
    except ambar.AmbarError:
        pass
    except Exception as error:
        wrong = repr(error)[:500]
    return time.process_time() - started, wrong


def prepare() -> None:
    """Import modules, so that their import is not counted in the first task."""
    for module in ("xarray", "ambar.collection", "ambar.mesh", "ambar.kinds.registry"):
        importlib.import_module(module)


def run(run: Run) -> None:
    """Run every action on every bomb."""
    cases = [(bomb, action) for bomb in BOMBS for action in ACTIONS]
    path, made = run.folder / "case.ambar", ""
    with Worker(10, 4 << 30) as worker:
        worker.call("bombs.prepare")
        for case in run.cases(len(cases)):
            bomb, action = cases[case]
            what = f"{bomb}, {action}"
            if bomb != made or action == "compact":
                seal.write(path, BOMBS[bomb]())
                made = bomb
            run.count("bombs")
            answer = worker.call("bombs.measured", action, str(path))
            if answer.value is None:
                run.finding(case, f"{what}: {answer.died or answer.error}", path, what=what)
                worker.call("bombs.prepare")
                continue
            seconds, wrong = answer.value
            if wrong:
                run.finding(case, f"{what}: {wrong}", path, what=what)
            if seconds > SECONDS:
                run.finding(case, f"{what}: {seconds:.1f} s of processor time", path, what=what)
            if answer.peak > MEMORY:
                run.finding(case, f"{what}: {answer.peak >> 20} MB of memory", path, what=what)
