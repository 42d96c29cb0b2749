"""Threads that share a writer: every change happens as a whole, whatever the others do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let threads take turns so often that unprotected state is seen half changed."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _together(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_datasets_added_by_several_threads_keep_their_values(tmp_path: Path) -> None:
    """Threads interleaved within `add` gave datasets the rows, and so the values, of others."""
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as shared:

        def add(thread: int) -> None:
            for number in range(500):
                values = np.full(1000, thread * 1000.0 + number)
                shared.add(f"{thread}_{number}", {"t": ("x", values)})

        _together(4, add)
    found = ambar.open_collection(path)
    values = found.read("t")["t"]
    expected = [int(thread) * 1000.0 + int(number) for thread, number in map(_pair, found.names)]
    assert len(found) == 2000
    np.testing.assert_array_equal(values, np.repeat(expected, 1000).reshape(2000, 1000))


def _pair(name: str) -> list[str]:
    return name.split("_")


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_change_and_commit_at_random(tmp_path: Path, seed: int) -> None:
    """Each thread changes datasets of its own; all of them are as their thread left them."""
    path = tmp_path / "x.ambar"
    shared = ambar.open_collection(path, "w-", fsync=False, ragged=["z"])

    def change(thread: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([seed, thread])
        mine: dict[str, np.ndarray] = {}
        for step in range(60):
            values = rng.integers(0, 1000, rng.integers(0, 6)) + 1000.0 * thread
            dataset = {"v": ("z", values), "lat": ((), float(thread))}
            name = str(rng.choice(list(mine))) if mine else ""
            action = rng.choice(["add", "add", "replace", "rename", "remove", "commit"])
            if action == "add" or (not name and action != "commit"):
                shared.add(f"{thread}-{step}", dataset)
                mine[f"{thread}-{step}"] = values
            elif action == "replace":
                shared.replace(name, dataset)
                mine[name] = values
            elif action == "rename":
                shared.rename(name, f"{thread}-{step}")
                mine[f"{thread}-{step}"] = mine.pop(name)
            elif action == "remove":
                shared.remove(name)
                del mine[name]
            else:
                shared.commit()
            assert set(mine) <= set(shared.names)
        return mine

    expected: dict[str, np.ndarray] = {}
    with shared:
        for part in _together(4, change):
            expected |= part
    found = ambar.open_collection(path)
    assert sorted(found.names) == sorted(expected)
    for name, values in zip(found.names, found.read("v", stack=False)["v"], strict=True):
        np.testing.assert_array_equal(values, expected[name])
    assert found.verify()


def test_a_writer_shared_by_threads(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("rows", shape=(0,), dtype="i8")

        def write(thread: int) -> None:
            for number in range(20):
                writer.create_array(f"g{thread}/a{number}", np.full(100, thread * 100 + number))
                writer.append("rows", np.full(10, thread * 100 + number))

        _together(4, write)
    store = ambar.open_store(path)
    for thread in range(4):
        for number in range(20):
            assert (store[f"g{thread}/a{number}"].read() == thread * 100 + number).all()
    rows = store["rows"].read().reshape(-1, 10)
    assert sorted(rows[:, 0]) == sorted(t * 100 + n for t in range(4) for n in range(20))
    assert (rows == rows[:, :1]).all()


def test_steps_added_by_several_threads(tmp_path: Path) -> None:
    pv = pytest.importorskip("pyvista")
    path = tmp_path / "x.ambar"
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:

        def add(thread: int) -> None:
            for number in range(5):
                mesh = pv.ImageData(dimensions=(3, 3, 3))
                mesh["v"] = np.full(27, thread * 10.0 + number)
                series.add(mesh)

        _together(3, add)
    found = ambar.open_mesh_series(path)
    values = [mesh.read()["v"] for mesh in found]
    assert all((value == value[0]).all() for value in values)
    assert sorted(v[0] for v in values) == sorted(t * 10.0 + n for t in range(3) for n in range(5))


def test_a_forked_child_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    """A child that used its parent's collection waited for a thread that it does not have."""
    path = tmp_path / "x.ambar"
    dataset = {"t": ("x", np.arange(10.0))}
    with ambar.open_collection(path, "w-", fsync=False) as mine:
        mine.add("a", dataset)
        mine.commit()
        child = os.fork()
        if not child:
            code = 1
            try:
                mine.add("b", dataset)
                mine.commit()
            except ValueError as error:
                code = 0 if "forked" in str(error) else 2
                mine.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        mine.add("c", dataset)
    assert ambar.open_collection(path).names == ["a", "c"]
