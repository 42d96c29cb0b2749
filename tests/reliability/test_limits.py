"""Small files that declare much: they take neither time nor memory, and limits can be set."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.independent_reader import crc32c
from tests.helpers.sample_outputs import output

BUDGET = """
import resource, sys, time
import ambar.cli, ambar.store.store

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

path, *calls = sys.argv[1:]
for call in calls:
    before, start = used(), time.process_time()
    try:
        exec(call)
    except BaseException as error:  # the command line ends with SystemExit
        print(type(error).__name__, error)
    took, memory = time.process_time() - start, used() - before
    print(f"{took:.2f} s, {memory / 1e6:.0f} MB: {call}")
    if took > 2 or memory > 300e6:
        sys.exit(1)
"""


def array(shape: list[int], chunk: list[int], shard: list[int] | None = None) -> dict[str, Any]:
    codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]
    if shard:
        inner = {"chunk_shape": chunk, "codecs": codecs, "index_location": "end",
                 "index_codecs": codecs}  # fmt: skip
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    grid = {"name": "regular", "configuration": {"chunk_shape": shard or chunk}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "uint8",
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 1,
        "codecs": codecs,
        "attributes": {},
    }


def folder(path: Path, arrays: dict[str, Any], *, ours: bool) -> Path:
    """Write documents alone, with the root's checksum or as another program's."""
    path.mkdir()
    about = {"ambar": {"version": 1, "checksum": "crc32c:00000000"}} if ours else {}
    metadata = {"kind": "inline", "must_understand": False, "metadata": arrays}
    root = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": about,
        "consolidated_metadata": metadata,
    }
    text = json.dumps(root).encode()
    text = text.replace(b"crc32c:00000000", b"crc32c:%08x" % crc32c(text))
    (path / "zarr.json").write_bytes(text)
    for name, document in arrays.items():
        (path / name).mkdir()
        (path / name / "zarr.json").write_text(json.dumps(document))
    return path


HOSTILE = {
    "one dimension": array([1 << 45], [1]),
    "three dimensions": array([1 << 15] * 3, [1] * 3),
    "shards": array([1 << 45], [1], [1 << 20]),
    "all there is": array([1 << 60], [1]),
}


def budget(path: Path, *calls: str) -> str:
    """Run each of `calls` within 2 s of processor time and 300 MB; return what they print."""
    done = subprocess.run(
        [sys.executable, "-c", BUDGET, path, *calls],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("what", HOSTILE)
def test_declared_chunks_take_neither_time_nor_memory(
    what: str, ours: bool, tmp_path: Path
) -> None:
    """Verifying and listing walk through what a store has, not through what it declares."""
    path = folder(tmp_path / "x.zarr", {f"a{n}": HOSTILE[what] for n in range(5)}, ours=ours)
    (path / "a3/c").mkdir()
    (path / "a3/c/7").write_bytes(b"\1" + crc32c(b"\1").to_bytes(4, "little"))
    said = budget(
        path,
        "ambar.open(path).verify()",
        "store = ambar.open(path); [store[name].stored_bytes for name in store]",
        "ambar.cli.main(['info', path])",
        "list(ambar.references(path))",
    )
    if ours and what != "all there is":
        assert "entries are missing: a0/c/0" in said


def test_missing_chunks_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False, directory=True) as writer:
        writer.create_array("a", np.arange(40), chunks=(2,), shards=(4,))
    (tmp_path / "x.ambar/.ambar").rename(tmp_path / "records")
    for shard in (3, 4, 8, 9):
        (path / f"a/c/{shard}").unlink()
    with pytest.raises(
        ambar.CorruptError, match=r"4 of 10 entries are missing: a/c/3, a/c/4, a/c/8, "
    ):
        ambar.open_store(path).verify()


def test_a_read_that_passes_the_memory_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", np.arange(100_000), chunks=(1000,))
        writer.create_array("words", np.array(["word"] * 1000, object))
    store = ambar.open_store(path)
    default = ambar.get_limits()
    with ambar.limits(memory=100_000):
        assert ambar.get_limits() == {"memory": 100_000}
        np.testing.assert_array_equal(store["a"][5:15], np.arange(5, 15))
        with pytest.raises(ambar.LimitError, match=r"limit of 100000.*ambar.limits\(memory="):
            store["a"].read()
        with ambar.limits(memory=1000), pytest.raises(ambar.LimitError, match="the strings"):
            store["words"].read()
        with ambar.limits(memory=None):
            assert ambar.get_limits() == default
            assert len(store["a"].read()) == 100_000
        assert ambar.get_limits() == {"memory": 100_000}
    assert ambar.get_limits() == default
    ambar.limits(memory=5_000_000)
    assert ambar.get_limits() == {"memory": 5_000_000}
    ambar.limits(memory=None)
    assert ambar.get_limits() == default
    for memory in (0, -1, 1 << 64):
        with pytest.raises(ValueError, match=f"memory={memory}"):
            ambar.limits(memory=memory)


def test_fill_values_are_within_the_memory_limit(tmp_path: Path) -> None:
    """A few hundred bytes that declare an array of fill values do not fill the memory."""
    path = folder(tmp_path / "x.zarr", {"a": array([1 << 45], [1 << 29])}, ours=False)
    store = ambar.open_store(path)
    with pytest.raises(ambar.LimitError, match="memory limit"):
        store["a"].read()
    assert store["a"][1 << 44] == 1


def test_everything_that_reads_keeps_to_the_memory_limit(tmp_path: Path) -> None:
    """Cells, particles, indices and collections were decoded within the default limits alone."""
    cells, profiles, array = (
        tmp_path / "cells.ambar",
        tmp_path / "profiles.ambar",
        tmp_path / "a.ambar",
    )
    ambar.convert(output("gravpart"), cells, fsync=False)
    with ambar.open_collection(profiles, "w-", fsync=False) as writer:
        for number in range(20):
            writer.add(f"d{number}", {"t": ("x", np.arange(2000.0) + number)})
    values = np.random.default_rng(0).random((64, 64, 64))
    with ambar.create(array, fsync=False) as writer:
        writer.create_array("a", values, error_bound=1e-3)
    reads: dict[str, Callable[[], object]] = {
        "cells": ambar.open_snapshot(cells).amr.read,
        "grid": lambda: ambar.open_snapshot(cells).amr.grid("density", level=5),
        "particles": ambar.open_snapshot(cells).particles.read,
        "collection": lambda: ambar.open_collection(profiles).read("t"),
        "array within a bound": ambar.open_store(array)["a"].read,
    }
    for name, read in reads.items():
        read()
        with ambar.limits(memory=20_000), pytest.raises(ambar.LimitError, match="memory limit"):
            read()
            pytest.fail(name)


def test_what_cannot_be_allocated_is_an_error(tmp_path: Path) -> None:
    """Where the system gives no memory, reading raises an error and the process lives on."""
    path = folder(tmp_path / "x.zarr", {"a": array([1 << 45], [1 << 30])}, ours=False)
    (path / "a/c").mkdir()
    (path / "a/c/0").write_bytes(bytes(100))
    program = """
import resource, sys
import numpy as np
import ambar
store = ambar.open(sys.argv[1])
ambar.limits(memory=1 << 40)
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
for key in (slice(0, 1 << 33), slice(0, 10), slice(1 << 31, (1 << 31) + 9)):
    try:
        store["a"].read(key, threads=1)
    except ambar.AmbarError as error:
        print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, path],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "LimitError"


def test_chunks_that_overlap_do_not_multiply_a_file(tmp_path: Path) -> None:
    count = 1000
    path = folder(tmp_path / "x.zarr", {"a": array([count * 90], [90], [count * 90])}, ours=False)
    chunk = b"\7" * 90
    chunk += crc32c(chunk).to_bytes(4, "little")
    index = np.array([[0, 94]] * count, "<u8").tobytes()
    (path / "a/c").mkdir()
    (path / "a/c/0").write_bytes(chunk + index + crc32c(index).to_bytes(4, "little"))
    with pytest.raises(ambar.CorruptError, match="some of them overlap"):
        ambar.open_store(path)["a"].read()


def test_entries_that_share_bytes_are_not_verified_one_by_one(tmp_path: Path) -> None:
    """Entries that all claim the same bytes make verifying take any number of times the file."""
    path, count = tmp_path / "x.zip", 300
    content = json.dumps({"zarr_format": 3, "node_type": "group"}).encode().ljust(100_000)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zarr.json", content)
        directory = archive.start_dir
    file = path.read_bytes()
    record = file[directory : directory + 46 + len("zarr.json")]
    assert record.endswith(b"zarr.json")
    records = record + b"".join(record[:46] + b"a/c/0%04d" % n for n in range(count))
    end = bytearray(file[directory + len(record) :])
    struct.pack_into("<2H2I", end, 8, count + 1, count + 1, len(records), directory)
    path.write_bytes(file[:directory] + records + end)
    with pytest.raises(ambar.CorruptError, match="some of them share bytes"):
        ambar.open_store(path).verify()
