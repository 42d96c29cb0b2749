"""Stores that docs/format.md says must be rejected: forged ones, whose checksums are right.

Ambar must refuse all of them. The reader in independent_reader.py refuses most; what it does not
notice is listed as `UNSEEN`. What ambar has not always noticed either may fail still.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from tests.helpers.independent_reader import Store, crc32c, last_commit
from tests.helpers.paths import DATA
from tests.helpers.store_contents import (
    PROFILES,
    REFUSALS,
    Document,
    ambars,
    assert_refused,
    assert_same,
    bits,
    extracted,
    mine,
    sealed,
    slot,
    trailer,
    write,
)

RANDOM = np.random.default_rng(11)
UNSEEN = {
    *("node type", "format", "no shape", "unknown field", "fill value of true"),
    *("names for other dimensions", "storage transformers"),
    *("other rows of jumps", "corners of another type", "levels of another shape"),
    *("boxes of another type", "ranges of another shape"),
    *("a field of another length", "a field that is not there"),
}


def forge_document(folder: Path, change: Callable[[Document], object]) -> None:
    """Change the root's document and make its checksum right."""
    root = json.loads((folder / "zarr.json").read_bytes())
    change(root)
    about = root["attributes"]["ambar"]
    about["checksum"] = "crc32c:00000000" if "checksum" in about else "missing"
    text = json.dumps(root).encode()
    checksum = b"crc32c:%08x" % crc32c(text)
    (folder / "zarr.json").write_bytes(text.replace(b"crc32c:00000000", checksum))


def node(**fields: Any) -> Callable[[Document], object]:
    """Return a change of the fields of an array's document."""
    return lambda root: root["consolidated_metadata"]["metadata"]["group/walk"].update(fields)


def codecs(*names: str) -> Callable[[Document], object]:
    little = {"configuration": {"endian": "little"}}
    return node(codecs=[{"name": name} | (little if name == "bytes" else {}) for name in names])


DOCUMENTS: dict[str, Callable[[Document], object]] = {
    "version": lambda root: root["attributes"]["ambar"].update(version=2),
    "no checksum": lambda root: root["attributes"]["ambar"].pop("checksum"),
    "node type": node(node_type="table"),
    "format": node(zarr_format=2),
    "no shape": lambda root: root["consolidated_metadata"]["metadata"]["group/walk"].pop("shape"),
    "unknown field": node(novelty={"must_understand": True}),
    "unknown type": node(data_type="float128"),
    "unknown type with fields": node(data_type={"name": "tensor", "configuration": {}}),
    "fill value of another type": node(fill_value="a"),
    "fill value of bits": node(fill_value="0x00"),
    "fill value of true": node(fill_value=True),
    "negative shape": node(shape=[-90]),
    "shape that is not an integer": node(shape=[90.5]),
    "shape with more dimensions": node(shape=[9, 10]),
    "shape that is too large": node(shape=[2**63, 4]),
    "names for other dimensions": node(dimension_names=["a", "b"]),
    "missing chunks": node(shape=[9_000]),
    "other length of chunks": node(
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [91]}}
    ),
    "chunks of nothing": node(
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0]}}
    ),
    "other grid": node(chunk_grid={"name": "rectilinear", "configuration": {"chunk_shape": [90]}}),
    "other keys": node(chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}}),
    "storage transformers": node(storage_transformers=[{"name": "cache"}]),
    "unknown codec": codecs("bytes", "lzma", "crc32c"),
    "no codec of values": codecs("crc32c"),
    "codec of another type": codecs("vlen-utf8", "crc32c"),
    "codec that was not used": codecs("bytes", "blosc", "crc32c"),
    "zstd that was not used": codecs("bytes", "zstd", "crc32c"),
    "pcodec that was not used": codecs("numcodecs.pcodec", "crc32c"),
    "checksum that was not made": codecs("bytes", "crc32c", "crc32c"),
}


def renamed(path: str) -> Callable[[Document], object]:
    """Return a change that puts a group under a path that no node may have."""

    def change(root: Document) -> None:
        nodes = root["consolidated_metadata"]["metadata"]
        nodes[path] = nodes["group"]

    return change


LATER_DOCUMENTS: dict[str, Callable[[Document], object]] = {
    "a node of dots": renamed(".."),
    "a node with a slash": renamed("/group"),
    "a node called zarr.json": renamed("Zarr.json"),
    "a node called ambar": renamed("AMBAR"),
    "a node in no group": lambda root: root["consolidated_metadata"]["metadata"].pop("group"),
    "a group with a shape": lambda root: root["consolidated_metadata"]["metadata"]["group"].update(
        shape=[1]
    ),
}


@pytest.mark.parametrize("case", [*DOCUMENTS, *LATER_DOCUMENTS])
def test_forged_documents(case: str, tmp_path: Path) -> None:
    walk = {"walk": np.random.default_rng(1).integers(0, 2**64, 90, np.uint64)}
    folder = extracted(write(tmp_path / "x.ambar", walk, profile="fast"))
    forge_document(folder, lambda _: None)
    assert bits(mine(folder)["group/walk"][1]) == bits(walk["walk"])
    assert_same(mine(folder), ambars(folder))
    forge_document(folder, (DOCUMENTS | LATER_DOCUMENTS)[case])
    assert_refused(folder, mine_too=case not in UNSEEN | set(LATER_DOCUMENTS))


def test_forged_chunks(tmp_path: Path) -> None:
    """Whatever the codecs leave over or lack is refused, though the checksum is right."""
    words = np.array([f"word {row % 7}" for row in range(500)], object)
    arrays = {"walk": np.cumsum(RANDOM.normal(size=900)), "words": words}
    arrays["steps"] = np.repeat(np.arange(250, dtype=">u8"), 4) * 2**40
    for profile in PROFILES:
        folder = extracted(write(tmp_path / f"{profile}.ambar", arrays, profile=profile))
        for name in arrays:
            file = folder / "group" / name / "c" / "0"
            whole = file.read_bytes()
            content = whole[:-4]
            for forged in (content + b"\0", content + content, content[:-1], content[:20], b""):
                file.write_bytes(sealed(forged))
                assert_refused(folder, mine_too=len(forged) < len(content))
            file.write_bytes(whole)
            assert_same(mine(folder), ambars(folder))
            file.unlink()
            assert_refused(folder)
            file.write_bytes(whole)


def test_forged_indices_of_shards(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ambar", RANDOM.random(1000)
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", values, chunks=[100], fill_value=7.5)
    folder = extracted(path)
    file = folder / "a" / "c" / "0"
    whole, size = file.read_bytes(), 16 * 10 + 4
    index = np.frombuffer(whole[-size:-4], "<u8").reshape(10, 2)
    for offset, length in [(2**64 - 2, 5), (len(whole), 1), (0, len(whole) + 1), (1, index[0, 1])]:
        forged = index.copy()
        forged[3] = offset, length
        file.write_bytes(whole[:-size] + sealed(forged.tobytes()))
        assert_refused(folder)
    forged[3] = 2**64 - 1
    file.write_bytes(whole[:-size] + sealed(forged.tobytes()))
    assert_same(mine(folder), ambars(folder))
    assert set(Store(folder).array("a")[300:400]) == {7.5}
    file.write_bytes(whole[-size + 8 :])
    assert_refused(folder)


def forge_directory(path: Path, change: Callable[[bytes], bytes], **fields: int) -> None:
    """Change the central directory and make all checksums right: its own, of slot and trailer."""
    content = path.read_bytes()
    commit = last_commit(content)
    directory = change(content[commit.offset : commit.offset + commit.length])
    commit = commit._replace(checksum=crc32c(directory), length=len(directory))._replace(**fields)
    start = content[:1024] + slot(commit) + content[1096 : last_commit(content).offset]
    end = trailer(commit._replace(offset=min(commit.offset, 2**40)))
    path.write_bytes(start + directory + end)


def put(place: int, content: bytes) -> Callable[[bytes], bytes]:
    """Return a change of the bytes at a place of the first entry of the central directory."""
    return lambda old: old[:place] + content + old[place + len(content) :]


def put_root(place: int, content: bytes) -> Callable[[bytes], bytes]:
    """Return a change of the root's entry, which is the last one."""
    return lambda old: put(old.rindex(b"PK\1\2") + place, content)(old)


def first_twice(directory: bytes) -> bytes:
    size = 46 + sum(struct.unpack_from("<3H", directory, 28))
    return directory[:size] + directory


DIRECTORIES: dict[str, tuple[Callable[[bytes], bytes], dict[str, int]]] = {
    "another number of entries": (bytes, {"entries": 3}),
    "bytes behind": (lambda old: old + b"\0" * 50, {}),
    "cut short": (lambda old: old[:-1], {}),
    "an entry twice": (first_twice, {"entries": 5}),
    "magic": (put(0, b"PK\3\4"), {}),
    "encrypted": (put(8, b"\1\x08"), {}),
    "name not in UTF-8": (put(46, b"\xff"), {}),
    "compressed": (put(10, b"\x08"), {}),
    "checksum of the root": (put_root(16, b"abcd"), {}),
    "length": (put(20, b"\xfe"), {}),
    "two lengths": (put(20, struct.pack("<2I", 1, 2)), {}),
    "beyond the end": (put(20, struct.pack("<2I", 2**31, 2**31)), {}),
    "without ZIP64": (put(20, b"\xff" * 8), {}),
    "lengths of extra fields": (put(30, b"\xff"), {}),
    "control character": (put(46, b"\n"), {}),
    "backslash": (put(46, b"\\"), {}),
    "empty segment": (put(46, b"/"), {}),
    "dots": (put(46, b"../"), {}),
    "length of the seal": (lambda old: old.replace(b"am\x04\0", b"am\x03\0"), {}),
    "tail behind": (bytes, {"tail": 2**40}),
    "record behind": (bytes, {"record": 2**40}),
    "unknown flags": (bytes, {"flags": 2}),
    "end behind the file's": (bytes, {"offset": 2**40}),
    "end behind 2^64": (bytes, {"offset": 2**64 - 1}),
    "no commit": (bytes, {"number": 0}),
}


@pytest.mark.parametrize(("change", "fields"), DIRECTORIES.values(), ids=DIRECTORIES)
def test_forged_central_directories(
    change: Callable[[bytes], bytes], fields: dict[str, int], tmp_path: Path
) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)})
    expected, content = ambars(path), path.read_bytes()
    forge_directory(path, bytes)
    assert path.read_bytes() == content  # slot and trailer are byte for byte what the page says
    assert_same(mine(path), expected)
    forge_directory(path, change, **fields)
    assert path.read_bytes() != content
    assert_refused(path)


@pytest.mark.parametrize("start", [512, 1024])
@pytest.mark.parametrize("case", ["format", "flags"])
def test_slots_of_other_formats(start: int, case: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)})
    content = path.read_bytes()
    body = put(8 if case == "format" else 64, b"\2")(content[start : start + 68])
    path.write_bytes(content[:start] + sealed(body) + content[start + 72 :])
    assert_refused(path)


LISTS: dict[str, Callable[[str], str]] = {
    "format of the list": lambda old: old.replace("directory 001", "directory 003"),
    "count": lambda old: old.replace("entries 4", "entries 3"),
    "number of the next put": lambda old: old.replace("next", "next -"),
    "key": lambda old: old.replace("group/walk/c/0", "group/../c/0"),
    "key twice": lambda old: old.replace("group/walk/c/0", "group/zarr.json"),
    "length": lambda old: re.sub(r" (\d+ \d+ group/walk/c/0)", r" 1\1", old),
    "line": lambda old: old + "\n",
    "a file that is missing": lambda old: old.replace("walk/c/0", "walk/c/1"),
}
LATER_LISTS: dict[str, Callable[[str], str]] = {
    "commit": lambda old: old.replace("commit 1", "commit 0"),
    "checksum of nine digits": lambda old: old.replace("\n", "\n0", 1),
    "put behind the next": lambda old: re.sub(r"next \d+", "next 2", old),
    "put twice": lambda old: re.sub(r"\d+ zarr", "0 zarr", old),
    "entry that is removed": lambda old: (
        old.replace("removed 0", "removed 1") + "removed zarr.json\n"
    ),
}


@pytest.mark.parametrize("case", [*LISTS, *LATER_LISTS])
def test_forged_lists(case: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)}, directory=True)
    file = path / ".ambar" / "commit"
    text = file.read_text()[:-16]
    forged = (LISTS | LATER_LISTS)[case](text).encode()
    assert forged.decode() != text
    file.write_bytes(forged + b"crc32c %08x\n" % crc32c(forged))
    assert_refused(path, mine_too=case not in UNSEEN | set(LATER_LISTS))
    file.unlink()
    assert_refused(path)


Tree = tuple[Document, dict[str, np.ndarray]]


def walled(path: Path) -> Tree:
    """Return attributes and arrays of a tree of 2 by 3 root cells, whose walk jumps.

    Its only chunk has an index, which this writer leaves out of such trees.
    """
    output = DATA / "ramses_cases" / "coarse_2x3_2d" / "output_00002"
    ambar.convert(output, path, levels=(2, 4), fsync=False, mode="w")
    contents = mine(path)
    arrays = {name: values for name, (_, values) in contents.items() if values is not None}
    cells = Store(path).cells("amr")
    ends = cells.centre - cells.width[:, None] / 2, cells.centre + cells.width[:, None] / 2
    fields = contents["amr"][0]["ambar"]["fields"]
    arrays["amr/index/corner"] = cells.corner[:1]
    arrays["amr/index/box"] = np.array([[ends[0].min(axis=0), ends[1].max(axis=0)]])
    arrays["amr/index/level"] = np.array([[cells.level.min(), cells.level.max()]], "u1")
    ranges = [[[arrays[f"amr/{name}"].min(), arrays[f"amr/{name}"].max()]] for name in fields]
    arrays["amr/index/range"] = np.array(ranges, "f8")
    return contents["amr"][0], arrays


def rewritten(path: Path, tree: Tree) -> Path:
    """Write a tree's attributes and arrays unchanged, as a snapshot."""
    attributes, arrays = tree
    length = len(arrays["amr/level"])
    with ambar.create(path, "w", fsync=False, profile="fast") as writer:
        writer._create_group("amr", attributes)
        for name, values in arrays.items():
            writer.create_array(name, values, chunks=[length] if "index" not in name else None)
    return path


def at(name: str, place: Any, value: Any) -> Callable[[Tree], object]:
    """Return a change of one value of an array."""
    return lambda tree: tree[1][f"amr/{name}"].__setitem__(place, value)


def become(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Tree], object]:
    """Return a change of an array as a whole."""
    return lambda tree: tree[1].update({f"amr/{name}": change(tree[1][f"amr/{name}"])})


def said(**values: Any) -> Callable[[Tree], object]:
    """Return a change of what the group says."""
    return lambda tree: tree[0]["ambar"].update(values)


def core_cells(path: Path) -> dict[str, np.ndarray]:
    """Return cells of a group that is not part of a snapshot, as ambar has them."""
    return _core.Store(str(path)).amr("/amr").cells(["level", "x", "density"])


TREES: dict[str, Callable[[Tree], object]] = {
    "version": said(version=2),
    "layout": said(layout="grid"),
    "dimensions": said(ndim=3),
    "no dimensions": said(ndim=0, root=[]),
    "root of nothing": said(root=[2, 0]),
    "a lattice that is too large": said(root=[2, 2**39]),
    "a finest level that is too low": said(lattice_level=3),
    "a level above the finest": at("level", 3, 5),
    "a level of 255": at("level", 3, 255),
    "cells off the lattice": at("level", 0, 4),
    "a box that is too small": said(root=[2, 2]),
    "a jump out of the box": at("index/jump_corner", (0, 0), 32),
    "a jump below the box": at("index/jump_corner", (0, 0), -1),
    "a jump of no row": at("index/jump_row", 0, 654),
    "other rows of jumps": become("index/jump_row", lambda old: old.astype("i8")),
    "corners of another type": become("index/corner", lambda old: old.astype("i4")),
    "corners of another shape": become("index/corner", lambda old: old[:, :1]),
    "a corner out of the box": at("index/corner", (0, 1), 48),
    "levels of another shape": become("index/level", lambda old: old[:, :1]),
    "boxes of another type": become("index/box", lambda old: old.astype("f4")),
    "ranges of another shape": become("index/range", lambda old: old[1:]),
    "a field of another length": become("density", lambda old: old[1:]),
    "jumps without places": lambda tree: tree[1].pop("amr/index/jump_corner"),
    "a field that is not there": lambda tree: tree[1].pop("amr/density"),
}


@pytest.mark.parametrize("case", TREES)
def test_forged_trees(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    tree = walled(path)
    expected = Store(path).cells("amr")
    for ours, again in zip(expected, Store(rewritten(path, tree)).cells("amr"), strict=True):
        assert bits(ours) == bits(again)
    assert np.array_equal(core_cells(path)["x"], expected.centre[:, 0])
    TREES[case](tree)
    rewritten(path, tree)
    if case not in UNSEEN:
        with pytest.raises(REFUSALS):
            Store(path).cells("amr")
    with pytest.raises(ambar.AmbarError):
        core_cells(path)
