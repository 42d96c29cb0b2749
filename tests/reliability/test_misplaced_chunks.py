"""Chunks that stand in another chunk's place: reading and verifying them is an error.

Each chunk ends with its own checksum, so that one that was copied over another of equal length
looks whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from tests.helpers import independent_reader
from tests.helpers.range_server import RangeServer

SHAPE = (128, 30)
ROWS = 2  # of a chunk
PER_SHARD = 16
SHARDED: dict[str, Any] = {"chunks": (ROWS, 30), "shards": (PER_SHARD * ROWS, 30)}
ARRAYS = ("one/raw", "two/raw", "one/coded", "two/coded", "one/bounded", "two/bounded")
WHOLE = ("whole/a", "whole/b")
REFUSED = "not the one that was written here|of another shard"

Place = tuple[Path, int, int]


def values(name: str, *, seed: int) -> np.ndarray:
    """Return noise in few bits, of which many chunks take equally many bytes."""
    return np.random.default_rng([seed, *name.encode()]).integers(0, 256, SHAPE) / 256


def write(path: Path, seed: int = 1, **options: Any) -> Path:
    with ambar.create(path, fsync=False, **options) as writer:
        for name in ARRAYS:
            how: dict[str, Any] = {"profile": "raw"} if name.endswith("raw") else {}
            how["error_bound"] = 0.01 if name.endswith("bounded") else None
            writer.create_array(name, values(name, seed=seed), **SHARDED, **how)
        for name in WHOLE:
            writer.create_array(name, values(name, seed=seed)[0], profile="raw")
    return path


def by_ranks(path: Path, seed: int = 1) -> Path:
    """Write a store as ranks do, whose indices are at the start of shards."""
    writer = _core.RankWriter.first(
        path,
        "create",
        durability="none",
        ranks=1,
        placement="reserved",
        alignment=0,
        extent=0,
        threads=1,
        queue=None,
    )
    for name in (*ARRAYS, *WHOLE):
        data = values(name, seed=seed)
        data, cut = (data[0], {}) if name in WHOLE else (data, SHARDED)
        bound = 0.01 if name.endswith("bounded") else None
        spec = _core.ArraySpec(str(data.dtype), data.shape, profile="raw", error_bound=bound, **cut)
        array = writer.declare(f"/{name}", spec, None)
        writer.write(array, data, [0] * data.ndim, data.shape)
    writer.conclude(writer.commit([writer.seal()]))
    writer.close()
    return path


def places(path: Path, name: str) -> Iterator[Place]:
    """Yield where the chunks of an array are stored: file, offset, length."""
    array = _core.Store(str(path)).array(f"/{name}")
    for found in array.chunk_ranges():
        yield path / found.file if found.file else path, found.offset, found.length


def read_at(place: Place) -> bytes:
    file, offset, length = place
    return file.read_bytes()[offset : offset + length]


def copy(source: bytes, place: Place) -> None:
    with place[0].open("r+b") as file:
        file.seek(place[1])
        file.write(source)


def swap(one: Place, two: Place) -> None:
    first, second = read_at(one), read_at(two)
    assert first != second
    copy(first, two)
    copy(second, one)


def equally_long(one: list[Place], two: list[Place]) -> tuple[Place, Place]:
    """Return two different chunks of equal length."""
    pairs = ((a, b) for a, b in itertools.product(one, two) if a != b and a[2] == b[2])
    return next((a, b) for a, b in pairs if read_at(a) != read_at(b))


def within_a_shard(path: Path, name: str, _other: Path) -> None:
    chunks = list(places(path, name))
    firsts = range(0, len(chunks), PER_SHARD)
    shards = [chunks[first : first + PER_SHARD] for first in firsts]
    pairs = [(a, b) for shard in shards for a, b in itertools.combinations(shard, 2)]
    swap(*next((a, b) for a, b in pairs if a[2] == b[2] and read_at(a) != read_at(b)))


def between_shards(path: Path, name: str, _other: Path) -> None:
    chunks = list(places(path, name))
    swap(*equally_long(chunks[:PER_SHARD], chunks[PER_SHARD:]))


def between_arrays(path: Path, name: str, _other: Path) -> None:
    swap(*equally_long(list(places(path, name)), list(places(path, name.replace("one", "two")))))


def from_another_file(path: Path, name: str, other: Path) -> None:
    own, theirs = list(places(path, name)), list(places(other, name))
    place, source = equally_long(own, theirs)
    copy(read_at(source), place)


CHANGES = (within_a_shard, between_shards, between_arrays, from_another_file)
FORMS = ("file", "folder", "ranks")


def stores(form: str, folder: Path) -> tuple[Path, Path]:
    """Write two stores of equal shapes and unequal values."""
    path, other = folder / "x.ambar", folder / "other.ambar"
    if form == "ranks":
        return by_ranks(path), by_ranks(other, seed=2)
    directory = form == "folder"
    return write(path, directory=directory), write(other, seed=2, directory=directory)


def opened(path: str | Path) -> ambar.Store:
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    return store


def damage(path: Path) -> str:
    with pytest.raises(ambar.CorruptError) as caught:
        opened(path).verify()
    return str(caught.value)


def assert_refused(store: ambar.Store, name: str, most: int = 2) -> None:
    """Check that no way to read an array returns a wrong value in silence."""
    array = store[name]
    with pytest.raises(ambar.CorruptError, match=REFUSED) as caught:
        array.read()
    assert name in str(caught.value)
    with pytest.raises(ambar.CorruptError, match=REFUSED):
        array[1:, 3:5]
    with pytest.raises(ambar.CorruptError, match=REFUSED):
        array[np.arange(len(array)), 7]
    with pytest.raises(ambar.CorruptError, match=REFUSED):
        store.read_together([name])
    refused = 0
    for row in range(0, len(array), ROWS):
        try:
            array[row]
        except ambar.CorruptError as error:
            refused += f"chunk {row // ROWS}/0" in str(error)
    assert 1 <= refused <= most


def assert_refused_remotely(path: Path, name: str) -> None:
    with RangeServer(path.parent) as server:
        store = opened(f"{server.url}/{path.name}" + "/" * path.is_dir())
        with pytest.raises(ambar.CorruptError, match=REFUSED):
            store[name].read()
        with pytest.raises(ambar.CorruptError, match=REFUSED):
            store.read_together([name])
        with pytest.raises(ambar.CorruptError, match=REFUSED):
            store[name][1:, 3:5]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["one/raw", "one/coded", "one/bounded"])
@pytest.mark.parametrize("form", FORMS)
def test_misplaced_chunks_are_refused(
    form: str, name: str, change: Callable[[Path, str, Path], None], tmp_path: Path
) -> None:
    path, other = stores(form, tmp_path)
    bound = 0.01 if name.endswith("bounded") else 0
    assert np.abs(opened(path)[name].read() - values(name, seed=1)).max() <= bound
    change(path, name, other)
    assert_refused(opened(path), name)
    assert_refused_remotely(path, name)
    assert "not the one that was written here" in damage(path)


@pytest.mark.parametrize("form", FORMS)
def test_shards_of_another_file_are_refused(form: str, tmp_path: Path) -> None:
    """A shard that is copied with its index and tags contradicts nothing but the directory."""
    path, other = stores(form, tmp_path)
    own, theirs = (list(places(store, "one/raw"))[:PER_SHARD] for store in (path, other))
    tail = (4 + 16) * PER_SHARD + 4
    start = theirs[0][1] - (tail if form == "ranks" else 0)
    shard = theirs[0][0].read_bytes()[start : start + PER_SHARD * theirs[0][2] + tail]
    copy(shard, (own[0][0], own[0][1] - theirs[0][1] + start, 0))
    assert_refused(opened(path), "one/raw", most=PER_SHARD)
    assert_refused_remotely(path, "one/raw")
    assert "of another shard" in damage(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", ["whole/b", "other"])
def test_misplaced_chunks_without_shards_are_refused(
    form: str, source: str, tmp_path: Path
) -> None:
    path, other = stores(form, tmp_path)
    (theirs,) = places(other, "whole/a") if source == "other" else places(path, source)
    (own,) = places(path, "whole/a")
    copy(read_at(theirs), own)
    with pytest.raises(ambar.CorruptError, match=REFUSED):
        opened(path)["whole/a"].read()
    with pytest.raises(ambar.CorruptError, match=REFUSED):
        opened(path)["whole/a"][3]
    assert "not the one that was written here" in damage(path)


@pytest.mark.parametrize("form", FORMS)
def test_chunks_stay_tied_to_their_places_when_a_store_is_changed(
    form: str, tmp_path: Path
) -> None:
    """Regions, rows, compacting and repair keep or renew the tags of all chunks."""
    path, other = stores(form, tmp_path)
    row = np.full((1, SHAPE[1]), 0.5)
    with ambar.create(path, "a", fsync=False) as writer:
        writer.write_region("one/raw", row, (5, 0))
        writer.append("two/raw", row)
    ambar.compact(path)
    ambar.repair(path)
    expected = values("one/raw", seed=1)
    expected[5] = row
    np.testing.assert_array_equal(opened(path)["one/raw"].read(), expected)
    np.testing.assert_array_equal(opened(path)["two/raw"][-1], row[0])
    opened(path).verify()
    np.testing.assert_array_equal(independent_reader.Store(path).array("one/raw"), expected)
    for name in ("one/raw", "one/coded"):
        within_a_shard(path, name, other)
        assert_refused(opened(path), name)


def test_the_independent_reader_verifies_tags_and_seals(tmp_path: Path) -> None:
    store = independent_reader.Store(write(tmp_path / "x.ambar"))
    store.array("one/raw")
    shard, length = store._entries["one/raw/c/1/0"], ROWS * SHAPE[1] * 8 + 4
    swapped = shard[length : 2 * length] + shard[:length] + shard[2 * length :]
    store._entries["one/raw/c/1/0"] = swapped
    with pytest.raises(ValueError, match="the tag of a chunk differs"):
        store.array("one/raw")
    store._entries["one/raw/c/1/0"] = store._entries["two/raw/c/1/0"]
    with pytest.raises(ValueError, match="the seal of a shard differs"):
        store.array("one/raw")
    store._entries["whole/a/c/0"] = store._entries["whole/b/c/0"]
    with pytest.raises(ValueError, match="the tag of a chunk differs"):
        store.array("whole/a")


def test_damage_of_a_chunks_end_is_not_called_a_swap(tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar")
    for name in ("one/raw", "one/coded", "whole/a"):
        file, offset, length = next(places(path, name))
        copy(bytes([read_at((file, offset, length))[-1] ^ 1]), (file, offset + length - 1, 1))
        with pytest.raises(ambar.CorruptError, match="the file is damaged"):
            opened(path)[name].read()


@pytest.mark.parametrize("form", ["file", "folder"])
def test_other_zarr_readers_pass_over_the_tags(form: str, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = write(tmp_path / "x.ambar", directory=form == "folder")
    store = zarr.storage.ZipStore(path) if form == "file" else zarr.storage.LocalStore(path)
    for name in ("one/raw", "one/coded", "whole/a"):
        found = zarr.open_array(store, path=name, mode="r")[:]
        np.testing.assert_array_equal(found, opened(path)[name].read())
