"""Exceptions such as KeyboardInterrupt at any place of `MeshSeries.add`: all steps stay right."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pytest

import ambar
from ambar.mesh import series as series_module
from ambar.mesh.storage import temporal_deltas
from ambar.mesh.storage import temporal_deltas as deduplication
from ambar.store.nodes import WriterAttributes
from ambar.store.writer import write_array

pytest.importorskip("pyvista")

import pyvista as pv

LENGTH = 1200
STEPS = 5
CALLS = ("append", "commit", "create_array", "_create_group", "remove")
"""Methods of a writer that `MeshSeries.add` calls, besides `write_array` and `attrs`."""
TRACED = {module.__file__ for module in (series_module, deduplication, temporal_deltas)}
Values: TypeAlias = Callable[[int], dict[str, np.ndarray]]


def smooth(number: int) -> dict[str, np.ndarray]:
    """Return arrays that are stored as differences."""
    random = np.random.default_rng(0).random(LENGTH)
    return {name: random + k + 1e-9 * number for k, name in enumerate("pq")}


def staggered(number: int) -> dict[str, np.ndarray]:
    """Return arrays as differences: in step 2 the second row of one, the first of another."""
    values = smooth(number)
    return values if number else {"p": values["p"]}


def noise(number: int) -> dict[str, np.ndarray]:
    """Return arrays that are stored uncompressed."""
    return {name: np.random.default_rng([number, k]).random(LENGTH) for k, name in enumerate("pq")}


def others(number: int) -> dict[str, np.ndarray]:
    """Return an array of another length in each step, and an equal one under two names."""
    alike = np.random.default_rng(number // 2).random(LENGTH)
    single = np.random.default_rng(number).random((LENGTH, 2 + number))
    return {f"alike{number}": alike, f"single{number}": single}


def mesh_of(values: dict[str, np.ndarray]) -> Any:
    mesh = pv.PolyData(np.zeros((LENGTH, 3)))
    for name, array in values.items():
        mesh[name] = array
    return mesh


class Interruption:
    """Raises KeyboardInterrupt once, at a place that is counted from `start` on."""

    def __init__(self, place: int) -> None:
        self._left = place
        self._is_on = False
        self.came = False

    def start(self) -> None:
        self._is_on = True

    def stop(self) -> None:
        self._is_on = False

    def pass_place(self) -> None:
        if not self._is_on:
            return
        self._left -= 1
        if self._left < 0:
            self._is_on, self.came = False, True
            raise KeyboardInterrupt


@contextlib.contextmanager
def at_calls(interruption: Interruption) -> Iterator[None]:
    """Make the places those before and on return of each call of the writer."""

    def interruptible(method: Callable[..., None]) -> Callable[..., None]:
        def called(*args: Any, **options: Any) -> None:
            interruption.pass_place()
            method(*args, **options)
            interruption.pass_place()

        return called

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(ambar.Writer, name, interruptible(getattr(ambar.Writer, name)))
        name_of_write = "ambar.mesh.storage.array_writer.write_array"
        patched.setattr(name_of_write, interruptible(write_array))
        set_item = interruptible(WriterAttributes.__setitem__)
        patched.setattr(WriterAttributes, "__setitem__", set_item)
        yield


@contextlib.contextmanager
def at_lines(interruption: Interruption) -> Iterator[None]:
    """Make the places the lines of the modules that number rows and steps."""
    seen = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        line = (frame.f_code, frame.f_lineno)
        if event == "line" and line not in seen:
            seen.add(line)
            interruption.pass_place()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def times_of(path: Path) -> list[float | None]:
    return ambar.open_mesh_series(path).times if path.exists() else []


def add_all(
    path: Path, values: Values, interrupted: int, again: bool, interruption: Interruption, way: Any
) -> list[int]:
    """Add steps, one of which is interrupted; return the numbers of those that must be there."""
    added = []
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        for number in range(STEPS):
            mesh = mesh_of(values(number))
            try:
                if number == interrupted:
                    with way(interruption):
                        interruption.start()
                        series.add(mesh, number)
                        interruption.stop()
                else:
                    series.add(mesh, number)
                added.append(number)
            except KeyboardInterrupt:
                if number in times_of(path):
                    added.append(number)
                if again:
                    with contextlib.suppress(ValueError):  # the time is not after the last one
                        series.add(mesh, number)
                    added = [*range(number + 1)]
    return added


def check(path: Path, values: Values, added: list[int], interrupted: int) -> None:
    """Check all steps; the interrupted one may be there although it raised."""
    series = ambar.open_mesh_series(path)
    numbers = [int(time or 0) for time in series.times]
    assert numbers == sorted(set(numbers))
    assert set(added) <= set(numbers) <= {*added, interrupted}
    for number, mesh in zip(numbers, series, strict=True):
        read = mesh.read()
        assert sorted(read.point_data.keys()) == sorted(values(number))
        for name, array in values(number).items():
            np.testing.assert_array_equal(read[name], array)


def interrupt_everywhere(
    folder: Path, values: Values, interrupted: int, again: bool, way: Any
) -> int:
    """Interrupt a step at every place, check all steps, and return the number of places."""
    for place in range(1000):
        path = folder / f"{place}.ambar"
        interruption = Interruption(place)
        added = add_all(path, values, interrupted, again, interruption, way)
        if not interruption.came:
            return place
        with ambar.open_mesh_series(path, "a", fsync=False) as series:
            series.add(mesh_of(values(STEPS)), STEPS)  # refers to what the interrupted writer wrote
        check(path, values, [*added, STEPS], interrupted)
        path.unlink()
    raise AssertionError("more places than expected")


@pytest.mark.parametrize(
    ("values", "interrupted", "again"),
    [
        (smooth, 0, False),
        (smooth, 1, False),
        (smooth, 1, True),
        (smooth, 3, False),
        (smooth, 3, True),
        (noise, 1, True),
        (noise, 3, False),
        (others, 0, False),
        (others, 3, False),
    ],
)
def test_an_interrupted_call_of_the_writer_leaves_rows_and_steps_numbered_rightly(
    values: Values, interrupted: int, again: bool, tmp_path: Path
) -> None:
    assert interrupt_everywhere(tmp_path, values, interrupted, again, at_calls) >= 8


def test_an_interrupted_line_leaves_rows_and_steps_numbered_rightly(tmp_path: Path) -> None:
    assert interrupt_everywhere(tmp_path, staggered, 2, False, at_lines) >= 50


def interrupt_once(
    monkeypatch: pytest.MonkeyPatch, name: str, error: type[BaseException], after: bool
) -> None:
    """Make the next call of a method of writers raise, before or after its work."""
    method = getattr(ambar.Writer, name)

    def called(*args: Any) -> None:
        monkeypatch.setattr(ambar.Writer, name, method)
        if after:
            method(*args)
        raise error

    monkeypatch.setattr(ambar.Writer, name, called)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("values", [smooth, noise])
def test_an_interrupted_append_does_not_make_later_steps_those_before_them(
    values: Values,
    after: bool,
    error: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        for number in range(8):
            if number == 4:
                interrupt_once(monkeypatch, "append", error, after)
                with pytest.raises(error):
                    series.add(mesh_of(values(number)), number)
            else:
                series.add(mesh_of(values(number)), number)
    check(path, values, [0, 1, 2, 3, 5, 6, 7], 4)
    assert len(ambar.open_mesh_series(path)) == 7


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_step_whose_commit_was_interrupted_is_not_written_over(
    after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ambar"
    first, other, last = (noise(number)["p"] for number in range(3))
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        series.add(mesh_of({"h": last}), 0)
        interrupt_once(monkeypatch, "commit", KeyboardInterrupt, after)
        with pytest.raises(KeyboardInterrupt):
            series.add(mesh_of({"q": first}), 1)
        with pytest.raises(ValueError, match="time 1.0 is not after that of the last step"):
            series.add(mesh_of({"r": other}), 1)
        assert series.times == [0, 1]
        series.add(mesh_of({"r": other}), 2)
        series.add(mesh_of({"w": first}), 3)
    read = [mesh.read() for mesh in ambar.open_mesh_series(path)]
    expected = [("h", last), ("q", first), ("r", other), ("w", first)]
    for mesh, (name, array) in zip(read, expected, strict=True):
        assert mesh.point_data.keys() == [name]
        np.testing.assert_array_equal(mesh[name], array)
