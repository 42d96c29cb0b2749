"""Commits of stores in one file: records, earlier commits, and tails that were overwritten."""

from __future__ import annotations

import json
import mmap
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import ambar
from campaigns import seal
from tests.helpers.independent_reader import Commit, Record, Store, last_commit, read_records
from tests.helpers.paths import ROOT
from tests.helpers.store_contents import (
    REFUSALS,
    Contents,
    ambars,
    assert_refused,
    assert_same,
    bits,
    extracted,
    mine,
    write,
)

pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")
sys.path.insert(0, str(ROOT / "reference"))

import read as reference

COMMITS = 24


def commits(path: Path) -> Iterator[Contents]:
    """Make commits that write, replace and remove arrays; yield the contents of each."""
    random = np.random.default_rng(3)
    with ambar.create(path, fsync=False) as writer:
        for number in range(1, COMMITS + 1):
            values = random.integers(0, 99, random.integers(1, 60))
            writer.create_array(f"group{number % 3}/of{number % 5}", values, attrs={"n": number})
            if number % 4 == 0:
                writer.remove(f"group{(number - 1) % 3}/of{(number - 1) % 5}")
            if number == 10:
                for extra in range(30):
                    writer.create_array(f"extra/array{extra}", values)
            if number == 12:
                writer.remove("extra")
            writer.commit(f"commit {number}")
            yield ambars(path)


def history(path: Path) -> list[Contents]:
    return list(commits(path))


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content


def records(path: Path) -> list[Record]:
    """Return the records of all commits of a store, the oldest first."""
    with mapped(path) as content:
        return list(read_records(content, last_commit(content)))[::-1]


def by_reference(path: Path, commit: int | None = None) -> Contents:
    """Return the arrays of a commit, and their attributes, according to the reference."""
    arrays = reference.list_arrays(path, commit)
    return {
        name: (node.get("attributes", {}), reference.read(path, name, commit))
        for name, node in arrays.items()
    }


def assert_arrays(found: Contents, expected: Contents) -> None:
    arrays = {name: pair for name, pair in expected.items() if pair[1] is not None}
    assert_same(found, arrays)


def test_earlier_commits(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    expected = history(path)
    for number, contents in enumerate(expected, 1):
        assert_same(mine(path, number), contents)
        assert_same(ambars(path, number), contents)
        assert_arrays(by_reference(path, number), contents)
    last = Store(path).commit
    numbers = [record.commit.number for record in reference.list_commits(path)]
    assert numbers == list(range(last, 0, -1))
    for number in (0, last + 1):
        with pytest.raises(ValueError, match="no commit"):
            reference.read(path, "group0/of0", number)


def test_the_log(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    history(path)
    found, log = records(path), ambar.log(path)[::-1]
    assert len(log) == len(found) >= COMMITS
    for number, (record, info) in enumerate(zip(found, log, strict=True), 1):
        assert record.commit.number == info.number == number
        assert record.message == info.message
        assert record.message == f"commit {number}" or number > COMMITS
        assert (record.written, record.removed) == (info.written, info.removed)
        assert record.time == round(info.time.timestamp() * 10**6)


def tail_length(commit: Commit) -> int:
    return commit.offset + commit.length + 216 - commit.tail


def test_full_commits(tmp_path: Path) -> None:
    """A commit is full where the log would be as long as the last tail (1.4)."""
    path = tmp_path / "x.ambar"
    history(path)
    found = records(path)
    assert found[0].commit.flags == 0
    log = 0
    for before, record in pairwise(found):
        length = record.commit.tail - record.commit.record
        start = before.commit.tail + (0 if before.commit.flags else tail_length(before.commit))
        assert start <= record.commit.record
        assert record.previous == (before.commit.record, before.commit.tail - before.commit.record)
        if record.commit.flags:
            log += length
            assert record.log == log < tail_length(before.commit)
        else:
            # The record of the same commit with its changes would be longer.
            log = 0
            assert record.log == 0
    full = sum(not record.commit.flags for record in found)
    assert 2 <= full <= COMMITS // 2


def test_counts_and_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("x.ambar", "y.ambar"):
        with ambar.create(tmp_path / name, fsync=False) as writer:
            writer.create_array("a", np.arange(9))
            writer.create_array("b", np.arange(9))
            writer.commit()
            writer.remove("a")
    assert (tmp_path / "x.ambar").read_bytes() == (tmp_path / "y.ambar").read_bytes()
    first, second = records(tmp_path / "x.ambar")
    assert first.time == second.time == 1_700_000_000_000_000
    # A document and a chunk of each array.
    assert (first.written, first.removed, first.previous) == (4, 0, None)
    assert (second.written, second.removed) == (0, 2)


def test_other_readers_find_every_commit(tmp_path: Path) -> None:
    """The file ends with the trailer of its last commit, also after one that is shorter."""
    path = tmp_path / "x.ambar"
    for contents in commits(path):
        with mapped(path) as content:
            commit = last_commit(content)
            assert len(content) == commit.offset + commit.length + 216
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            keys = {name for name in archive.namelist() if name.endswith("/zarr.json")}
        assert keys == {f"{name}/zarr.json" for name in contents if name}


def killed(path: Path) -> Iterator[tuple[Path, Contents]]:
    """Yield stores whose writers were killed while they overwrote tails, and expected contents."""
    image = path.with_name("killed.ambar")
    for contents in commits(path):
        content = path.read_bytes()
        commit = last_commit(content)
        if commit.flags:
            for length in (0, 1, 40, 300, tail_length(commit) - 1, 5000):
                start = content[: commit.tail] + b"\xab" * length
                for end in (b"", content[len(start) :]):
                    image.write_bytes(start + end)
                    yield image, contents


def test_a_killed_writer_has_overwritten_the_tail(tmp_path: Path) -> None:
    count = 0
    for count, (path, contents) in enumerate(killed(tmp_path / "x.ambar"), 1):
        assert_same(ambars(path), contents)
        assert_same(mine(path), contents)
        if count % 7 == 0:
            assert_arrays(by_reference(path), contents)
            with ambar.create(path, "a", fsync=False) as writer:
                writer.create_array("later", np.arange(3))
            later = contents | {"later": ({}, np.arange(3))}
            assert_same(ambars(path), later)
            assert_same(mine(path), later)
            assert_same(mine(path, Store(path).commit - 1), contents)
        elif count % 7 == 1:
            ambar.repair(path)
            assert zipfile.ZipFile(path).testzip() is None
            assert_same(ambars(path), contents)
            assert_same(mine(path), contents)
    assert count > 100


def test_damaged_records(tmp_path: Path) -> None:
    """Without the tail, every record since the last full commit is needed."""
    *_, (path, contents) = killed(tmp_path / "x.ambar")
    content = path.read_bytes()
    found = records(path)
    needed = max(at for at, record in enumerate(found) if not record.commit.flags)
    assert needed < len(found) - 1
    for at, record in enumerate(found):
        start = record.commit.record
        for byte in (0, 8, 12, 16, 24, 48, 80, 116, record.commit.tail - start - 1):
            damaged = bytearray(content)
            damaged[start + byte] ^= 0x10
            path.write_bytes(damaged)
            if at >= needed:
                assert_refused(path)
                with pytest.raises(ValueError, match="."):
                    by_reference(path)
            else:
                assert_same(mine(path), contents)
                assert_same(ambars(path), contents)
            with pytest.raises(REFUSALS):
                records(path)
            with pytest.raises(ValueError, match="."):
                reference.list_commits(path)


FORGED: dict[str, tuple[int, int]] = {
    "offset": (0, 1),
    "number": (1, -9),
    "record before": (3, 1),
    "length of the record before": (4, 1),
    "directory": (8, -(2**62)),
    "length of the message": (12, 1),
    "length of the changes": (13, 1),
    "length of the changes as stored": (14, 1),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_records(case: str, tmp_path: Path) -> None:
    """The checksums of the records are valid, but one of the numbers is not."""
    image = seal.read(write(tmp_path / "x.ambar", {"walk": np.arange(90.0)}))
    expected, path = mine(tmp_path / "x.ambar"), tmp_path / "forged.ambar"
    image.steps, image.killed = 2, b""
    seal.write(path, image)
    assert_same(mine(path), expected)
    assert_same(ambars(path), expected)
    assert_arrays(by_reference(path), expected)
    index, more = FORGED[case]

    def change(numbers: list[int]) -> list[int]:
        return [*numbers[:index], numbers[index] + more, *numbers[index + 1 :]]

    image.record_change = change
    seal.write(path, image)
    assert_refused(path)
    with pytest.raises(ValueError, match="."):
        by_reference(path)


def test_a_root_without_other_documents(tmp_path: Path) -> None:
    path = write(tmp_path / "x.ambar", {"walk": np.arange(90.0)})
    expected, folder = ambars(path), extracted(path)
    root = json.loads((folder / "zarr.json").read_bytes())
    root.pop("consolidated_metadata")
    text = json.dumps(root).encode()
    (folder / "zarr.json").write_bytes(seal.seal_root(text))
    assert_same(mine(folder), expected)
    assert_same(ambars(folder), expected)
    assert bits(reference.read(folder, "group/walk")) == bits(expected["group/walk"][1])
    (folder / "zarr.json").write_bytes(text.replace(b'"version"', b'"version" '))
    assert_refused(folder)


@pytest.mark.parametrize("missing", [1, 100])
def test_a_trailer_that_was_cut_off_is_written_again(missing: int, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", np.arange(20))
        writer.commit()
        writer.create_array("b", np.arange(3))
    content = path.read_bytes()
    assert last_commit(content).flags
    for restore in (ambar.repair, lambda path: ambar.create(path, "a", fsync=False).close()):
        path.write_bytes(content[:-missing])
        restore(path)
        assert path.read_bytes() == content
