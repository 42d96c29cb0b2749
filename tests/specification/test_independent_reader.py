"""Stores of ambar's, read as docs/format.md says and in no other way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.store.writer import Profile
from tests.helpers.array_samples import samples
from tests.helpers.independent_reader import Store, crc32c, last_commit, morton, walk
from tests.helpers.paths import DATA
from tests.helpers.store_contents import (
    PROFILES,
    REFUSALS,
    ambars,
    assert_refused,
    assert_same,
    bits,
    extracted,
    full_record,
    mine,
    slot,
    trailer,
    write,
)

pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")

OUTPUTS = sorted(DATA.glob("ramses*/*/output_*"))
RANDOM = np.random.default_rng(11)


def sharded() -> dict[str, np.ndarray]:
    """Return arrays of several chunks, whole and not, of every way to encode them."""
    words = [f"{'x' * (row % 5)}{row}" for row in range(700)]
    return {
        "walk": np.cumsum(RANDOM.normal(size=50_000)),
        "noise": RANDOM.random((70, 90)),
        "integers": np.cumsum(RANDOM.integers(0, 3, (101, 67)), 0),
        "cells": cells(np.int64, 1_001),
        "points": np.cumsum(RANDOM.integers(0, 3, (3_001, 3)), 0) * np.float32(0.5),
        "flags": RANDOM.random(5_000) > 0.9,
        "complex": RANDOM.random((30, 30)) + 1j,
        "cube": RANDOM.integers(0, 9, (13, 14, 15)).astype(np.float32),
        "words": np.array(words, dtype=object),
        "word_table": np.array(words, dtype=object).reshape(35, 20),
        "names": np.array(words),
        "moments": np.arange(3_000).astype("M8[ms]"),
    }


def cells(dtype: type[np.integer], count: int) -> np.ndarray:
    """Return the corners of hexahedra in a row, the numbers of which pass the type's largest."""
    corners = np.array([0, 1, 8, 7, 64, 65, 72, 71])
    with np.errstate(over="ignore"):
        return (corners + np.arange(count)[:, None] + np.iinfo(dtype).max - 200).astype(dtype)


def chunks(values: np.ndarray) -> list[int]:
    return [max(1, size // 3 - 1) for size in values.shape]


def test_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # as the page says


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
def test_every_type(profile: Profile, directory: bool, tmp_path: Path) -> None:
    arrays = samples()
    path = write(tmp_path / "x.ambar", arrays, profile=profile, directory=directory)
    found = mine(path)
    assert_same(found, ambars(path))
    for name, values in arrays.items():
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        assert bits(found[f"group/{name}"][1]) == bits(native.reshape(values.shape)), name


@pytest.mark.parametrize("profile", PROFILES)
def test_shards(profile: Profile, tmp_path: Path) -> None:
    arrays, path = sharded(), tmp_path / "x.ambar"
    with ambar.create(path, profile=profile, fsync=False) as writer:
        for name, values in arrays.items():
            writer.create_array(name, values, chunks=chunks(values))
    store = ambar.open_store(path)
    assert all(store[name].shards for name in arrays)
    found = mine(path)
    assert_same(found, ambars(path))
    for name, values in arrays.items():
        assert bits(found[name][1]) == bits(values), name


def test_fill_values(tmp_path: Path) -> None:
    fills = [np.float32("nan"), 2.5, -np.inf, 1 - 2j, True, -7, 2**64 - 1, "text", b"\0\1"]
    fills += [np.datetime64("NaT", "s"), np.timedelta64(5, "ms"), np.float16(0.1)]
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        for number, fill in enumerate(fills):
            writer.create_array(f"a{number}", np.full(3, fill), fill_value=fill)
        writer.create_array("texts", np.array(["a"], object), fill_value="☃")
        writer.create_array("binary", np.array([b"a"], object), fill_value=b"\xff")
    assert_same(mine(path), ambars(path))


@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
def test_commits_replace_and_remove(directory: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", samples(), directory=directory)
    for commit in (2, 3):
        with ambar.create(path, "a", fsync=False) as writer:
            writer.create_array("group/float64", np.full((37, 11), commit))
            writer.create_array(f"new{commit}/deeper/words", np.array(["a", "b" * commit], object))
            writer.remove("group/uint8" if commit == 2 else "group/scalar")
        assert Store(path).commit == commit
        assert_same(mine(path), ambars(path))
    assert set(Store(path).array("group/float64").flat) == {3}
    assert not {"group/uint8", "group/scalar"} & set(Store(path).nodes)


@pytest.mark.parametrize(("before", "after"), [((3, 4), (5,)), ((5,), (3, 4))])
def test_dimensions_change_in_a_directory(
    before: tuple[int, ...], after: tuple[int, ...], tmp_path: Path
) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.zeros(before)}, directory=True)
    for commit in (2, 3):
        with ambar.create(path, "a", fsync=False) as writer:
            writer.create_array("group/walk", np.full(after, commit))
        values = mine(path)["group/walk"][1]
        assert values is not None
        assert set(values.flat) == {commit}


def test_a_copy_without_ambars_records(tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", samples())
    assert_same(mine(extracted(path)), ambars(path))


def two_commits(path: Path) -> Path:
    write(path, {"scalar": np.array(3.5), "walk": np.arange(300.0)}, profile="small")
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("more", RANDOM.random((20, 30)), chunks=[7, 11])
        writer.create_array("words", np.array(["a", "☃"], object))
    return path


@pytest.mark.parametrize("tail", [b"", b"\0", b"PK\3\4" * 500])
def test_dead_tails_and_damaged_slots(tail: bytes, tmp_path: Path) -> None:
    path = two_commits(tmp_path / "x.ambar")
    expected, whole = ambars(path), path.read_bytes()
    path.write_bytes(whole + tail)
    assert_same(mine(path), expected)
    for start in (512, 1024):
        path.write_bytes(whole[:start] + b"\xff" * 64 + whole[start + 64 :] + tail)
        if tail:
            assert_refused(path)
        else:
            assert Store(path).commit == 2
            assert_same(mine(path), expected)
    path.write_bytes(whole[:512] + bytes(1024) + whole[1536:])
    assert_refused(path)
    commit = last_commit(whole)
    end = commit.tail if commit.flags else len(whole)
    path.write_bytes(whole[: end - 1])
    assert_refused(path)


def test_places_beyond_4_gib(tmp_path: Path) -> None:
    """A central directory is moved far behind its entries, then ambar appends to the store."""
    path = write(tmp_path / "x.ambar", {"walk": np.arange(300.0)})
    content = path.read_bytes()
    commit = last_commit(content)
    directory = content[commit.offset : commit.offset + commit.length]
    place = 2**32 - 3000
    commit = commit._replace(offset=place, tail=place, record=place - 120)
    with path.open("r+b") as file:  # the bytes between are a hole of the file
        file.seek(1024)
        file.write(slot(commit))
        file.seek(commit.record)
        file.write(full_record(commit) + directory + trailer(commit))
    with ambar.create(path, "a", fsync=False) as writer:
        for number in range(3):
            writer.create_array(f"noise{number}", RANDOM.random(400))
    assert path.stat().st_size > 2**32
    assert_same(mine(path), ambars(path))


def assert_cells(path: Path) -> None:
    """Assert that cells' levels, places and centres are ambar's, and so is all else."""
    amr, found = ambar.open_snapshot(path).amr, Store(path).cells("amr")
    axes = "xyz"[: amr.ndim]
    expected = amr.read(["level", "dx", *axes, *(f"i{axis}" for axis in axes)])
    assert np.array_equal(found.level, expected["level"])
    assert bits(found.width) == bits(expected["dx"])
    for number, axis in enumerate(axes):
        assert found.centre[:, number].tobytes() == expected[axis].tobytes()
        assert np.array_equal(found.corner[:, number] // found.size[:, 0], expected[f"i{axis}"])
    assert_same(mine(path), ambars(path))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: f"{path.parent.name}-{path.name[-2:]}")
def test_cells_of_ramses_outputs(output: Path, tmp_path: Path) -> None:
    ambar.convert(output, tmp_path / "x.ambar", fsync=False)
    assert_cells(tmp_path / "x.ambar")


@pytest.mark.parametrize("profile", PROFILES)
def test_cells_of_some_levels(profile: Profile, tmp_path: Path) -> None:
    """Where levels were left out, the walk along the curve jumps."""
    path = tmp_path / "x.ambar"
    output = DATA / "ramses" / "gravpart_small" / "output_00002"
    ambar.convert(output, path, levels=(5, 5), profile=profile, fsync=False)
    assert len(Store(path).array("amr/index/jump_row")) > 10
    assert_cells(path)


def test_keys_and_points_are_inverse() -> None:
    for ndim in (1, 2, 3):
        corners = sorted(RANDOM.integers(0, 2**42, (50, ndim)).tolist(), key=morton)
        jumps = dict(enumerate(map(morton, corners)))
        assert walk([1] * 50, ndim, jumps).tolist() == corners
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
    slots = (content[:512] + slots + content[1096:] for slots in flips(content[512:1096], 100))
    for damaged in (*flips(content, 200), *slots):
        path.write_bytes(damaged)
        try:
            found = mine(path)
        except REFUSALS:
            refused += 1
        else:
            assert_same(found, expected)
    assert 100 < refused < 300


def test_flipped_bits_of_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    values = {"scalar": np.array(3.5), "walk": np.arange(90.0), "words": np.array(["a"], object)}
    write(path, values, directory=True)
    for file in (file for file in path.rglob("*") if file.is_file() and file.name != "lock"):
        content = file.read_bytes()
        for damaged in flips(content, 20):
            file.write_bytes(damaged)
            with pytest.raises(REFUSALS):
                mine(path)
        file.write_bytes(content)
    assert_same(mine(path), ambars(path))
