"""The decoder in `reference`, written from docs/format.md alone, reads what ambar writes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.codecs
from ambar import _core
from ambar.store.writer import Profile
from tests.helpers.paths import RAMSES_CASES, ROOT

pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")

REFERENCE = ROOT / "reference"
sys.path.insert(0, str(REFERENCE))

import read as reference  # noqa: E402
import stream  # noqa: E402
from stream import packet, simplices  # noqa: E402
from stream.bits import crc32c  # noqa: E402

GOLDEN = ROOT / "crates/ambar-codec/tests/golden"
STREAMS = sorted(GOLDEN.glob("*.stream"))
PACKETS = sorted(GOLDEN.glob("*.packet"))
VECTORS = sorted((REFERENCE / "vectors").glob("*.bin"))
OUTPUTS = sorted(RAMSES_CASES.glob("*/output_*"))[:4]
PROFILES = ("fast", "balanced", "small")


def decode(name: str, data: bytes, count: int | None = None) -> np.ndarray:
    """Decode a stream of the codec that its name says."""
    return (simplices if name.startswith("simplices") else stream).decode(data, count)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_golden_streams_decode_to_their_values(path: Path) -> None:
    values = decode(path.name, path.read_bytes())
    assert values.tobytes() == path.with_suffix(".values").read_bytes()


@pytest.mark.parametrize("path", PACKETS, ids=lambda path: path.stem)
def test_golden_packets_decode_to_their_chunks(path: Path) -> None:
    assert packet.decode(path.read_bytes()) == path.with_suffix(".chunk").read_bytes()


def test_vectors_are_those_of_the_golden_streams() -> None:
    assert len(VECTORS) > 50
    for path in VECTORS:
        data, described = path.read_bytes(), json.loads(path.with_suffix(".json").read_text())
        golden = GOLDEN / f"{path.stem}.{'packet' if described['kind'] == 'packet' else 'stream'}"
        assert golden.read_bytes() == data, "run reference/make_vectors.py"
        values = np.load(path.with_suffix(".npy"))
        if described["kind"] == "packet":
            assert packet.decode(data) == values.tobytes()
        else:
            assert decode(path.name, data).tobytes() == values.tobytes()
        if described["kind"] == "ambar":
            assert stream.read_header(data) == described["header"]


WORKED = """
    01 01 04 02 05 01 05 00 00 00 00 00 00 d0 3f 01 01 0f a0 20 60 0d a8 00 00 4b fb b6 98 20 8b 15
    e0 20 01 00 00 00 61 06 00 00 c1 04 00 00 01 00 00 00 21 03 00 00 01 00 00 00 01 00 00 00 01 00
    00 00 02 b6 06 89 ea d3 9b"""


ADAPTIVE = """
    01 01 04 0a 05 01 05 00 00 00 00 00 00 d0 3f 01 06 ff e3 00 ca 4a 80 02 b6 06 0a cb b3 1a"""


@pytest.mark.parametrize("example", [WORKED, ADAPTIVE], ids=["rans", "adaptive"])
def test_the_worked_examples_of_the_format(example: str) -> None:
    expected = np.array([1.024, 2.0439994, 2.863999, 4.4839993, 19.904], np.float32)
    assert same(stream.decode(bytes.fromhex(example)), expected)
    assert same(_core.codec_decode(bytes.fromhex(example), "float32", (5,)), expected)


def test_the_adaptive_example_is_what_the_writer_writes() -> None:
    values = np.array([1, 2, 3, 4.5, 20], np.float32)
    assert ambar.codecs.encode(values, 0.25) == bytes.fromhex(ADAPTIVE)


@pytest.mark.parametrize("values", [[], [np.nan] * 9, [-0.0, 0.0, -0.0, 3.0]], ids=str)
def test_streams_of_few_values(values: list[float]) -> None:
    for bound in (0.0, 0.25):
        encoded = ambar.codecs.encode(np.array(values), bound)
        expected = _core.codec_decode(encoded, "float64", (len(values),))
        assert same(stream.decode(encoded), expected)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_cells_with_equal_corners(width: int) -> None:
    random = np.random.default_rng(width)
    for points in range(1, 81):
        cells = random.integers(0, points, (random.integers(40), width))
        assert same(simplices.decode(ambar.codecs.encode_corners(cells)), cells.ravel().view("u8"))


MASKED = [(20, 21), (9, 10, 11), (30, 1, 14), (90,), (700,), (2, 3, 300)]


@pytest.mark.parametrize("shape", MASKED, ids=str)
def test_streams_with_masks(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    for _ in range(12):
        values = random.normal(size=shape).cumsum(-1) * 10
        for start in random.integers(values.size, size=values.size // 20):
            values.reshape(-1)[start : start + 6] = np.nan
        encoded = ambar.codecs.encode(values, 1e-2)
        assert stream.read_header(encoded)["masked"]
        assert same(stream.decode(encoded), _core.codec_decode(encoded, "float64", shape).ravel())


BOUNDS = ["1e-3 relative", "1e-3 relative above 1e-2", "9 bits", "0.01 rms"]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fast", [False, True])
def test_streams_of_every_kind_of_bound(bound: str, dtype: str, *, fast: bool) -> None:
    smooth = field((12, 13, 14))
    powers = 10 ** (3 * smooth)
    for values in (smooth, powers, -powers, np.where(smooth > 1, 0, powers), smooth * np.inf):
        encoded = ambar.codecs.encode(values.astype(dtype), bound, fast=fast)
        decoded = _core.codec_decode(encoded, dtype, values.shape).ravel()
        assert same(stream.decode(encoded), decoded)


@pytest.mark.parametrize("bound", ["1e-3 relative", "1e-3 relative above 1e-2", "0.2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fills_are_coded_values(bound: str, dtype: str) -> None:
    values = np.abs(field((20, 21))).astype(dtype)
    values[3:9, 4:15] = np.nan
    values[0, 0] = 1e-9
    encoded = ambar.codecs.encode(values, bound)
    header = stream.read_header(encoded)
    assert header["masked"]
    assert header["clamped"] or bound == "1e-3 relative"
    fill = values[3, 4].tobytes()
    at = encoded.index(fill)
    whole = float("1.5" if header["clamped"] else "7.25")
    for other in (whole, -whole, 0.0, -0.0, np.inf, -np.inf, np.nan):
        changed = encoded[:at] + np.array(other, dtype).tobytes() + encoded[at + len(fill) : -4]
        changed += crc32c(changed).to_bytes(4, "little")
        decoded = _core.codec_decode(changed, dtype, values.shape)
        assert same(stream.decode(changed), decoded.ravel())
        is_clamped = other < 0 and header["clamped"]
        assert np.isfinite(decoded[3, 4]) == (np.isfinite(other) or is_clamped)


def field(shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(5)
    places = sum(np.sin(place / (3 + i)) for i, place in enumerate(np.indices(shape)))
    return np.asarray(places + random.normal(0, 0.01, shape))


def samples() -> dict[str, np.ndarray]:
    """Return arrays of every type and shape, some of them in several chunks."""
    random = np.random.default_rng(5)
    numbers = {f"of_{dtype}": (random.normal(size=(700, 3)) * 40).astype(np.int8).astype(dtype)
               for dtype in [*"bBhHiIlLe", "c8", "c16"]}  # fmt: skip
    return numbers | {
        "cube32": field((20, 21, 22)).astype("f4"),
        "cube64": field((20, 21, 22)),
        "zeros": np.where(field((30, 31)) > 0, -0.0, 0.0),
        "holes": np.where(field((40, 41)) > 0.5, np.nan, field((40, 41))),
        "four": field((3, 8, 9, 10)),
        "long": field((9_000,)),
        "bool": random.random(5_000) > 0.9,
        "cells": np.sort(random.integers(0, 500, (5_000, 4)), axis=0),
        "words": np.array([f"{'x' * (row % 5)}\u00e9{row}" for row in range(300)], dtype=object),
        "names": np.array(["a", "bcd", "\u00e9"]),
        "bytes": np.array([b"a", b"bcd"]),
        "moments": np.arange(3_000).astype("M8[ms]"),
        "durations": np.arange(9).astype("m8[5us]"),
        "scalar": np.array(3.5),
        "empty": np.zeros((0, 3)),
    }


def same(found: np.ndarray, expected: Any) -> bool:
    """Return whether two arrays have the same bits."""
    if found.dtype == object:
        return found.tolist() == np.asarray(expected).tolist()
    expected = np.asarray(expected)
    return (found.dtype, found.shape, found.tobytes()) == (
        expected.dtype, expected.shape, expected.tobytes())  # fmt: skip


def compare(path: Path) -> int:
    """Check that all arrays are those that ambar reads; return how many there are."""
    store, paths = ambar.Store._open(path), reference.list_arrays(path)
    assert set(paths) == set(store)
    for name in paths:
        assert same(reference.read(path, name), store[name][...]), name
    return len(paths)


def make(path: Path, profile: Profile, *, directory: bool) -> None:
    """Write a store of all samples, in two commits."""
    with ambar.create(path, directory=directory, profile=profile) as writer:
        for name, values in samples().items():
            chunks = [max(1, size // 2 - 1) for size in values.shape] if values.size > 600 else None
            writer.create_array(f"g/{name}", values, chunks=chunks)
        writer.commit()
        for name in ("cube32", "cube64", "holes", "four", "long"):
            writer.create_array(f"bounded/{name}", samples()[name], error_bound=1e-3)
        writer.remove("g/of_b")


@pytest.mark.parametrize("directory", [False, True], ids=["zip", "directory"])
@pytest.mark.parametrize("profile", PROFILES)
def test_stores_of_every_profile(tmp_path: Path, profile: Profile, directory: bool) -> None:
    make(tmp_path / "a", profile, directory=directory)
    assert compare(tmp_path / "a") == len(samples()) + 4


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.parent.name)
def test_snapshots(tmp_path: Path, output: Path) -> None:
    ambar.convert(output, tmp_path / "small", profile="small")
    ambar.convert(output, tmp_path / "bounded", error_bound="1e-3 of range")
    assert compare(tmp_path / "small") == compare(tmp_path / "bounded") > 5


def test_zips_and_directories_of_zarr_python(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as inside:
        zarr.create_array(inside, name="x", data=field((30, 31)), chunks=(8, 9))
    zarr.create_array(
        tmp_path / "b", name="x", data=field((30, 31)), chunks=(8, 9), shards=(16, 18)
    )
    for name in ("a.zip", "b"):
        assert same(reference.read(tmp_path / name, "x"), field((30, 31)))


def test_the_command_line(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "a") as writer:
        writer.create_array("g/x", field((30, 31)))
    command = [sys.executable, str(REFERENCE / "read.py"), str(tmp_path / "a")]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert listed.startswith("g/x\tfloat64\t(30, 31)")
    subprocess.run([*command, "g/x", str(tmp_path / "x.npy")], check=True)
    assert same(np.load(tmp_path / "x.npy"), field((30, 31)))
    missing = subprocess.run([*command, "g/y", "y.npy"], capture_output=True, check=False)
    assert missing.returncode == 1


@pytest.mark.parametrize("resealed", [False, True])
def test_damaged_streams_are_refused(resealed: bool) -> None:
    random = np.random.default_rng(9)
    # Every third one: with a right checksum, each is decoded.
    for path in VECTORS[:: 3 if resealed else 1]:
        if path.with_suffix(".json").read_text().find('"packet"') > 0:
            continue
        count = np.load(path.with_suffix(".npy")).size
        data = bytearray(path.read_bytes())
        data[random.integers(len(data) - 4)] ^= 1 << random.integers(8)
        if resealed:
            data[-4:] = crc32c(bytes(data[:-4])).to_bytes(4, "little")
            with contextlib.suppress(ValueError):
                assert decode(path.name, bytes(data), count).size == count
        else:
            with pytest.raises(ValueError, match="."):
                decode(path.name, bytes(data), count)
        with pytest.raises(ValueError, match="."):
            decode(path.name, bytes(data[: random.integers(len(data))]), count)


@pytest.mark.parametrize("directory", [False, True], ids=["zip", "directory"])
def test_damaged_stores_are_refused_or_read_whole(tmp_path: Path, directory: bool) -> None:
    random, path = np.random.default_rng(9), tmp_path / "a"
    with ambar.create(path, directory=directory) as writer:
        writer.create_array("g/x", field((30, 31)), chunks=[8, 9])
        writer.commit()
        writer.create_array("y", np.arange(9))
    for file in [path] if not directory else [path / ".ambar/commit", path / "g/x/c/0/0"]:
        whole = file.read_bytes()
        # The records restore a tail that is cut off.
        end = len(whole) if directory else reference.list_commits(path)[0].commit.tail
        for _ in range(60):
            data = bytearray(whole)
            data[random.integers(len(data))] ^= 1 << random.integers(8)
            file.write_bytes(data)
            with contextlib.suppress(ValueError):
                assert same(reference.read(path, "g/x"), field((30, 31)))
            file.write_bytes(data[: random.integers(end - 1)])
            with pytest.raises(ValueError, match="."):
                reference.read(path, "g/x")
        file.write_bytes(whole)


def test_a_chunk_at_another_place_is_refused(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "a", directory=True) as writer:
        writer.create_array("x", field((30, 31)))
        writer.create_array("y", field((30, 31)) + 1)
    (tmp_path / "a/x/c/0/0").write_bytes((tmp_path / "a/y/c/0/0").read_bytes())
    with pytest.raises(ValueError, match=r"CRC-32|bytes"):
        reference.read(tmp_path / "a", "x")
