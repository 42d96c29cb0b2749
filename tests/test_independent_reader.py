"""Stores of ambar's, read as docs/format.md says and in no other way."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from independent_container import StoreError, crc32c, last_commit
from independent_reader import Store, morton, points
from test_arrays import samples

pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")

DATA = Path(__file__).parent / "data"
OUTPUTS = sorted(DATA.glob("ramses*/*/output_*"))
PROFILES = ("fast", "balanced", "small")
RANDOM = np.random.default_rng(11)
Document = dict[str, Any]
Contents = dict[str, tuple[Document, np.ndarray | None]]


def sharded() -> dict[str, np.ndarray]:
    """Return arrays of several chunks, whole and not, of every way to encode them."""
    words = [f"{'x' * (row % 5)}{row}" for row in range(700)]
    return {
        "walk": np.cumsum(RANDOM.normal(size=50_000)),
        "noise": RANDOM.random((70, 90)),
        "integers": np.cumsum(RANDOM.integers(0, 3, (101, 67)), 0),
        "flags": RANDOM.random(5_000) > 0.9,
        "complex": RANDOM.random((30, 30)) + 1j,
        "cube": RANDOM.integers(0, 9, (13, 14, 15)).astype(np.float32),
        "words": np.array(words, dtype=object),
        "word_table": np.array(words, dtype=object).reshape(35, 20),
        "names": np.array(words),
        "moments": np.arange(3_000).astype("M8[ms]"),
    }


def chunks(values: np.ndarray) -> list[int]:
    return [max(1, size // 3 - 1) for size in values.shape]


def write(path: Path, arrays: dict[str, np.ndarray], **options: Any) -> Path:
    """Write a store whose groups and arrays have attributes."""
    with ambar.create(path, durability="none", **options) as writer:
        writer.group("group", {"note": "☃ crc32c:0123abcd", "deep": {"list": [1, None, 2.5]}})
        for name, values in arrays.items():
            writer.array(f"group/{name}", values, attributes={"name": name})
    return path


def mine(path: Path) -> Contents:
    """Return attributes and values of all nodes, as the page says."""
    store, arrays = Store(path), set(Store(path).arrays())
    return {
        node: (store.attributes(node), store.array(node) if node in arrays else None)
        for node in store.nodes
    }


def ambars(path: Path) -> Contents:
    """Return attributes and values of all nodes, as ambar has them."""
    store = ambar.Store(_core.Store(str(path)))
    groups: Contents = {node: (store.attributes(f"/{node}"), None) for node in store.groups}
    return groups | {node: (store[node].attributes, store[node].read()) for node in store}


def bits(values: np.ndarray | None) -> object:
    """Return what makes two arrays the same."""
    if values is None:
        return None
    content = values.tolist() if values.dtype.kind == "O" else values.tobytes()
    return values.dtype.str, values.shape, content


def assert_same(found: Contents, expected: Contents) -> None:
    assert sorted(found) == sorted(expected)
    for node, (attributes, values) in expected.items():
        assert found[node][0] == attributes, node
        assert bits(found[node][1]) == bits(values), node


def test_crc32c_of_every_length() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # as the page says
    data = RANDOM.bytes(1000)
    for size in (0, 1, 3, 127, 128, 129, 255, 256, 1000):
        register = 0xFFFFFFFF
        for byte in data[:size]:
            register ^= byte
            for _ in range(8):
                register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
        assert crc32c(data[:size]) == register ^ 0xFFFFFFFF


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
def test_every_type(profile: str, directory: bool, tmp_path: Path) -> None:
    arrays = samples()
    path = write(tmp_path / "x.ambar", arrays, profile=profile, directory=directory)
    found = mine(path)
    assert_same(found, ambars(path))
    for name, values in arrays.items():
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        assert bits(found[f"group/{name}"][1]) == bits(native.reshape(values.shape)), name


@pytest.mark.parametrize("profile", PROFILES)
def test_shards(profile: str, tmp_path: Path) -> None:
    arrays, path = sharded(), tmp_path / "x.ambar"
    with ambar.create(path, profile=profile, durability="none") as writer:
        for name, values in arrays.items():
            writer.array(name, values, chunks=chunks(values))
    store = ambar.open(path)
    assert all(store[name].shards for name in arrays)
    found = mine(path)
    assert_same(found, ambars(path))
    for name, values in arrays.items():
        assert bits(found[name][1]) == bits(values), name


def test_fill_values(tmp_path: Path) -> None:
    fills = [np.float32("nan"), 2.5, -np.inf, 1 - 2j, True, -7, 2**64 - 1, "text", b"\0\1"]
    fills += [np.datetime64("NaT", "s"), np.timedelta64(5, "ms"), np.float16(0.1)]
    path = tmp_path / "x.ambar"
    with ambar.create(path, durability="none") as writer:
        for number, fill in enumerate(fills):
            writer.array(f"a{number}", np.full(3, fill), fill_value=fill)
        writer.array("texts", np.array(["a"], object), fill_value="☃")
        writer.array("binary", np.array([b"a"], object), fill_value=b"\xff")
    assert_same(mine(path), ambars(path))


@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
def test_commits_replace_and_remove(directory: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", samples(), directory=directory)
    for commit in (2, 3):
        with ambar.append(path, durability="none") as writer:
            writer.array("group/float64", np.full((37, 11), commit))
            writer.array(f"new{commit}/deeper/words", np.array(["a", "b" * commit], object))
            writer.remove("group/uint8" if commit == 2 else "group/scalar")
        assert Store(path).commit == commit
        assert_same(mine(path), ambars(path))
    assert set(Store(path).array("group/float64").flat) == {3}
    assert not {"group/uint8", "group/scalar"} & set(Store(path).nodes)


def test_a_copy_without_ambars_records(tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", samples())
    assert_same(mine(extracted(path)), ambars(path))


def extracted(path: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.with_suffix(".files"))
    return path.with_suffix(".files")


def two_commits(path: Path) -> Path:
    write(path, {"scalar": np.array(3.5), "walk": np.arange(300.0)}, profile="small")
    with ambar.append(path, durability="none") as writer:
        writer.array("more", RANDOM.random((20, 30)), chunks=[7, 11])
        writer.array("words", np.array(["a", "☃"], object))
    return path


@pytest.mark.parametrize("tail", [b"", b"\0", b"PK\3\4" * 500])
def test_dead_tails_and_damaged_slots(tail: bytes, tmp_path: Path) -> None:
    path = two_commits(tmp_path / "x.ambar")
    expected, whole = ambars(path), path.read_bytes()
    path.write_bytes(whole + tail)
    assert_same(mine(path), expected)
    for slot in (512, 1024):
        path.write_bytes(whole[:slot] + b"\xff" * 64 + whole[slot + 64 :] + tail)
        if tail:
            assert_refused(path)
        else:
            assert Store(path).commit == 2
            assert_same(mine(path), expected)
    path.write_bytes(whole[:512] + bytes(1024) + whole[1536:])
    assert_refused(path)
    path.write_bytes(whole[:-1])
    assert_refused(path)


def assert_refused(path: Path, *, strictly: bool = False) -> None:
    """Assert that both readers refuse a store, or that the strict one does."""
    with pytest.raises(StoreError):
        mine(path)
    if not strictly:
        with pytest.raises(ambar.AmbarError):
            ambars(path)


def assert_cells(path: Path) -> None:
    """Assert that cells' levels, places and centres are ambar's, and so is all else."""
    amr, found = ambar.open(path).amr, Store(path).cells("amr")
    axes = "xyz"[: amr.ndim]
    expected = amr.cells(["level", "dx", *axes, *(f"i{axis}" for axis in axes)])
    assert np.array_equal(found.level, expected["level"])
    assert bits(found.width) == bits(expected["dx"])
    for number, axis in enumerate(axes):
        assert found.centre[:, number].tobytes() == expected[axis].tobytes()
        assert np.array_equal(found.corner[:, number] // found.size, expected[f"i{axis}"])
    assert_same(mine(path), ambars(path))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: f"{path.parent.name}-{path.name[-2:]}")
def test_cells_of_ramses_outputs(output: Path, tmp_path: Path) -> None:
    ambar.convert(output, tmp_path / "x.ambar", durability="none")
    assert_cells(tmp_path / "x.ambar")


@pytest.mark.parametrize("profile", PROFILES)
def test_cells_of_some_levels(profile: str, tmp_path: Path) -> None:
    """Where levels were left out, the walk along the curve jumps."""
    path = tmp_path / "x.ambar"
    output = DATA / "ramses" / "gravpart_small" / "output_00002"
    ambar.convert(output, path, levels=(5, 5), profile=profile, durability="none")
    assert len(Store(path).array("amr/index/jump_row")) > 10
    assert_cells(path)


def test_keys_and_points_are_inverse() -> None:
    for ndim in (1, 2, 3):
        corners = RANDOM.integers(0, 2**42, (50, ndim))
        assert np.array_equal(
            points([morton(corner) for corner in corners.tolist()], ndim), corners
        )
    assert morton([1, 0, 0]) == 1
    assert morton([3, 0, 1]) == 0b1101


def flips(content: bytes, count: int) -> Iterator[bytes]:
    """Return copies of `content` with one bit flipped, at random."""
    for place in np.random.default_rng(count).integers(0, 8 * len(content), count).tolist():
        copy = bytearray(content)
        copy[place // 8] ^= 1 << place % 8
        yield bytes(copy)


def test_flipped_bits_of_a_file(tmp_path: Path) -> None:
    path = two_commits(tmp_path / "x.ambar")
    expected, content, refused = mine(path), path.read_bytes(), 0
    slots = (content[:512] + slots + content[1088:] for slots in flips(content[512:1088], 150))
    for damaged in (*flips(content, 300), *slots):
        path.write_bytes(damaged)
        try:
            found = mine(path)
        except StoreError:
            refused += 1
        else:
            assert_same(found, expected)
    assert 200 < refused < 450


def test_flipped_bits_of_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    values = {"scalar": np.array(3.5), "walk": np.arange(90.0), "words": np.array(["a"], object)}
    write(path, values, directory=True)
    expected = mine(path)
    for file in (file for file in path.rglob("*") if file.is_file() and file.name != "lock"):
        content = file.read_bytes()
        for damaged in flips(content, 40):
            file.write_bytes(damaged)
            try:
                found = mine(path)
            except StoreError:
                continue
            assert file.name == "zarr.json"
            assert file != path / "zarr.json"  # the only document that is read
            assert_same(found, expected)
        file.write_bytes(content)


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
    "shape that is no integer": node(shape=[90.5]),
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


@pytest.mark.parametrize("change", DOCUMENTS.values(), ids=DOCUMENTS)
def test_forged_documents(change: Callable[[Document], object], tmp_path: Path) -> None:
    walk = {"walk": np.random.default_rng(1).integers(0, 2**64, 90, np.uint64)}
    folder = extracted(write(tmp_path / "x.ambar", walk, profile="fast"))
    forge_document(folder, lambda _: None)
    assert bits(mine(folder)["group/walk"][1]) == bits(walk["walk"])
    assert_same(mine(folder), ambars(folder))
    forge_document(folder, change)
    assert_refused(folder)


def sealed(content: bytes) -> bytes:
    return content + struct.pack("<I", crc32c(content))


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
            for forged in (content + b"\0", content[:-1], b"", content[:20], b"\xff" + content[1:]):
                file.write_bytes(sealed(forged))
                if forged[:1] != b"\xff" or "pco" in str(content[:4]):
                    assert_refused(folder)
            file.write_bytes(whole)
            assert_same(mine(folder), ambars(folder))
            file.unlink()
            assert_refused(folder)
            file.write_bytes(whole)


def test_forged_indices_of_shards(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ambar", RANDOM.random(1000)
    with ambar.create(path, durability="none") as writer:
        writer.array("a", values, chunks=[100], fill_value=7.5)
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
    slot = sealed(struct.pack("<8s2I5QI", b"ambarcmt", 1, *commit, 0))
    start = content[:1024] + slot + content[1088 : last_commit(content).offset]
    trailer = commit._replace(offset=min(commit.offset, 2**40)).trailer()
    path.write_bytes(start + directory + trailer)


def put(place: int, content: bytes) -> Callable[[bytes], bytes]:
    """Return a change of the bytes at a place of the first entry of the central directory."""
    return lambda old: old[:place] + content + old[place + len(content) :]


def put_root(place: int, content: bytes) -> Callable[[bytes], bytes]:
    """Return a change of the root's entry, which is the last one."""
    return lambda old: put(old.rindex(b"PK\1\2") + place, content)(old)


def earlier(directory: bytes) -> bytes:
    """Let the content of the first entry begin a byte before its local header ends."""
    place = directory.index(b"am\x08\0") + 4
    return put(place, bytes([directory[place] - 1]))(directory)


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
    "extra field": (lambda old: old.replace(b"am\x08\0", b"ax\x08\0"), {}),
    "place before its header ends": (earlier, {}),
    "tail behind": (bytes, {"tail": 2**40}),
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


@pytest.mark.parametrize("slot", [512, 1024])
def test_slots_of_other_formats(slot: int, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)})
    content = path.read_bytes()
    for place, forged in ((8, 2), (56, 1)):
        body = put(place, bytes([forged]))(content[slot : slot + 60])
        path.write_bytes(content[:slot] + sealed(body) + content[slot + 64 :])
        assert_refused(path, strictly=place == 56)


LISTS: dict[str, Callable[[str], str]] = {
    "format": lambda old: old.replace("directory 001", "directory 002"),
    "count": lambda old: old.replace("entries 4", "entries 3"),
    "number of the next put": lambda old: old.replace("next", "next -"),
    "key": lambda old: old.replace("group/walk/c/0", "group/../c/0"),
    "key twice": lambda old: old.replace("group/walk/c/0", "group/zarr.json"),
    "length": lambda old: re.sub(r" (\d+ \d+ group/walk/c/0)", r" 1\1", old),
    "line": lambda old: old + "\n",
    "a file that is missing": lambda old: old.replace("walk/c/0", "walk/c/1"),
}
STRICT_LISTS: dict[str, Callable[[str], str]] = {
    "commit": lambda old: old.replace("commit 1", "commit 0"),
    "checksum of nine digits": lambda old: old.replace("\n", "\n0", 1),
    "put behind the next": lambda old: re.sub(r"next \d+", "next 2", old),
    "put twice": lambda old: re.sub(r"\d+ zarr", "0 zarr", old),
    "entry that is removed": lambda old: (
        old.replace("removed 0", "removed 1") + "removed zarr.json\n"
    ),
}


@pytest.mark.parametrize("case", LISTS | STRICT_LISTS)
def test_forged_lists(case: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)}, directory=True)
    file = path / ".ambar" / "commit"
    text = file.read_text()[:-16]
    forged = (LISTS | STRICT_LISTS)[case](text).encode()
    assert forged.decode() != text
    file.write_bytes(forged + b"crc32c %08x\n" % crc32c(forged))
    assert_refused(path, strictly=case in STRICT_LISTS)
    file.unlink()
    assert_refused(path)
