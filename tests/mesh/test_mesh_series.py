"""Meshes over time: each step comes back, and what stays is stored once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.command_line import run

pytest.importorskip("pyvista")

import pyvista as pv


def step(number: int) -> pv.UnstructuredGrid:
    mesh = pv.ImageData(dimensions=(14, 13, 12)).to_tetrahedra()
    mesh.clear_data()
    rng = np.random.default_rng(number)
    mesh["pressure"] = rng.random(mesh.n_points)
    mesh["height"] = np.asarray(mesh.points[:, 2], np.float64)
    mesh.cell_data["region"] = np.arange(mesh.n_cells)
    return mesh


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with ambar.open_mesh_series(tmp_path / "run.ambar", "w-", fsync=False) as series:
        for number in range(5):
            series.add(step(number), 0.5 * number)
    return tmp_path / "run.ambar"


def test_steps_come_back(path: Path) -> None:
    series = ambar.open(path)
    assert isinstance(series, ambar.MeshSeries)
    assert series.times == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert len(series) == 5
    for number, mesh in enumerate(series):
        assert mesh.read() == step(number)
    np.testing.assert_array_equal(series.at(1.7).read()["pressure"], step(3)["pressure"])
    assert series[-1].read(point_data=["height"], cell_data=[]).array_names == ["height"]
    assert "Steps:      5\n  Times:      0 to 2\n" in repr(series)
    with pytest.raises(KeyError, match="no step at or before time -1"):
        series.at(-1)
    with pytest.raises(IndexError):
        series[5]


def test_times_increase(tmp_path: Path) -> None:
    with ambar.open_mesh_series(tmp_path / "run.ambar", "a", fsync=False) as series:
        series.add(step(0), 1.0)
        wrong: list[Any] = ["2", b"2", True, np.True_, 1j, [2.0]]
        for time in wrong:
            with pytest.raises(TypeError, match="expected a number as the time of the step, found"):
                series.add(step(2), time)
        with pytest.raises(ValueError, match="time 0.5 is not after that of the last step, 1.0"):
            series.add(step(2), 0.5)
        numbers: list[Any] = [np.float32(1.5), np.int64(2)]
        for time in numbers:
            series.add(step(2), time)
        assert series.times == [1.0, 1.5, 2.0]
        with pytest.raises(ValueError, match="the series is open for writing; close it"):
            series[0]


def test_all_steps_have_times_or_none_has(tmp_path: Path) -> None:
    """Readers of PyVista mixed the numbers of some steps with the times of others."""
    timed, numbered = tmp_path / "timed.ambar", tmp_path / "numbered.ambar"
    with ambar.open_mesh_series(timed, "w-", fsync=False) as series:
        series.add(step(0), 0.0)
        with pytest.raises(ValueError, match="expected a time for step 1, as for the step before"):
            series.add(step(1))
    with ambar.open_mesh_series(numbered, "w-", fsync=False) as series:
        series.add(step(0))
    with ambar.open_mesh_series(numbered, "a", fsync=False) as series:
        with pytest.raises(ValueError, match=r"expected no time for step 1, .*, found 0\.5; give"):
            series.add(step(1), 0.5)
        series.add(step(1))
    with pytest.raises(
        ValueError, match=r"numbered\.ambar: expected steps with times, as in .*tim"
    ):
        ambar.merge([timed, numbered], tmp_path / "both.ambar")
    assert not (tmp_path / "both.ambar").exists()
    # Stores of earlier versions have both.
    with ambar.create(numbered, "a") as writer:
        about = writer._core.attributes("/")
        about["ambar"]["times"] = [0.5, None]
        writer._create_group("/", about)
    assert pv.get_reader(numbered).time_values == [0.0, 1.0]


def test_what_stays_is_stored_once(path: Path, tmp_path: Path) -> None:
    ambar.write_mesh(step(0), tmp_path / "one.ambar", fsync=False)
    alone = (tmp_path / "one.ambar").stat().st_size
    changing = step(0)["pressure"].nbytes
    store = ambar.open_store(path)
    assert store.usage()["live"] < alone + 4 * (changing + 2000)
    assert [name for name in store if name.endswith("corners")] == ["step_000000/cells/corners"]


def test_cells_that_are_slow_to_decode_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = pv.PolyData(np.random.default_rng(3).random((3000, 3)).astype(np.float32))
    mesh = cloud.delaunay_3d()
    with ambar.open_mesh_series(tmp_path / "x.ambar", "w-", profile="small") as written:
        for number in range(5):
            mesh["number"] = np.full(mesh.n_points, number)
            written.add(mesh)
    series = ambar.open_mesh_series(tmp_path / "x.ambar")
    corners = "step_000000/cells/corners"
    assert "simplices" in series.store[corners].codecs
    reads = []
    read = ambar.Array.read

    def counted(array: ambar.Array, *arguments: Any, **options: Any) -> np.ndarray:
        reads.append(array.path.strip("/"))
        return read(array, *arguments, **options)

    monkeypatch.setattr(ambar.Array, "read", counted)
    for number, step in enumerate(series):
        found = step.read()
        assert found["number"].tolist() == [number] * mesh.n_points
        np.testing.assert_array_equal(found.cell_connectivity, mesh.cell_connectivity)
        found.cell_connectivity[:] = 0  # what is changed is not what the next step gets
    assert reads.count(corners) == 2


def test_a_run_goes_on(path: Path) -> None:
    with ambar.open_mesh_series(path, "a", fsync=False) as series:
        series.add(step(7), 9.0)
        series.add(step(8), 10.0, user_dict={"number": 8})
    series = ambar.open_mesh_series(path)
    assert series.times[-2:] == [9.0, 10.0]
    assert series[5].read() == step(7)
    assert series[6].user_dict == {"number": 8}
    np.testing.assert_array_equal(series[6].read()["pressure"], step(8)["pressure"])
    cells = [name for name in series.store if name.endswith("corners")]
    assert cells == ["step_000000/cells/corners"]


def test_a_step_that_fails_leaves_nothing_to_be_shared(path: Path) -> None:
    bad = step(9)
    bad.points = bad.points + 1
    bad["late"] = np.full(bad.n_points, "x" * 20)
    bad["odd"] = np.zeros(bad.n_points)
    with ambar.open_mesh_series(path, "a", error_bound={"late": 0.1}, fsync=False) as series:
        with pytest.raises(ValueError, match="late"):
            series.add(bad, 9.0)
        good = step(9)
        good.points = good.points + 1
        series._error_bound = None
        series.add(good, 9.0)
    assert ambar.open_mesh_series(path)[5].read() == good


def test_bounds_tell_arrays_apart(tmp_path: Path) -> None:
    with ambar.open_mesh_series(
        tmp_path / "x.ambar", "w-", error_bound={"pressure": 0.01}, fsync=False
    ) as series:
        mesh = step(0)
        mesh["exact"] = mesh["pressure"].copy()
        series.add(mesh)
        series.add(mesh)
    for found in ambar.open_mesh_series(tmp_path / "x.ambar"):
        read = found.read()
        np.testing.assert_array_equal(read["exact"], mesh["exact"])
        assert 0 < abs(read["pressure"] - mesh["pressure"]).max() <= 0.01


def test_modes(path: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.ambar"
    with ambar.open_mesh_series(new, "a", fsync=False) as series:
        series.add(step(0), 0.5)
    with pytest.raises(FileExistsError, match=r"new\.ambar"):
        ambar.open_mesh_series(new, "w-")
    with ambar.open_mesh_series(new, "w", fsync=False) as series:
        assert len(ambar.open_mesh_series(new)) == 1
        series.add(step(0))
        series.add(step(1))
    assert ambar.open_mesh_series(new).times == [None, None]
    with pytest.raises(RuntimeError), ambar.open_mesh_series(new, "a", fsync=False) as series:
        series.add(step(2))
        raise RuntimeError
    assert len(ambar.open_mesh_series(new, "r")) == 3
    with pytest.raises(FileNotFoundError):
        ambar.open_mesh_series(tmp_path / "nothing.ambar")
    with pytest.raises(ValueError, match="invalid mode 'x': must be one of 'r', 'w-', 'w', 'a'"):
        ambar.open_mesh_series(path, "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a path for mode 'w', found a bytes"):
        ambar.open_mesh_series(b"", "w")
    with pytest.raises(ValueError, match="invalid mode 'a': must be one of 'w-', 'w'"):
        ambar.write_mesh(step(0), path, mode="a")  # type: ignore[arg-type]


def test_refusals(path: Path, tmp_path: Path) -> None:
    series = ambar.open_mesh_series(path)
    with pytest.raises(ValueError, match="invalid time: nan"):
        series.at(float("nan"))
    with pytest.raises(TypeError, match="invalid time: expected a number, found 'a'"):
        series.at("a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not open for writing"):
        series.add(step(0))
    with ambar.open_mesh_series(path, "a") as writing:
        with pytest.raises(ValueError, match="not after"):
            writing.add(step(0), 2.0)
        with pytest.raises(ambar.BusyError):
            ambar.open_mesh_series(path, "a")
    ambar.write_mesh(step(0), tmp_path / "one.ambar", fsync=False)
    with pytest.raises(ValueError, match="expected a series of meshes, found a store of the k"):
        ambar.open_mesh_series(tmp_path / "one.ambar", "a")
    for times, error in [("x", ambar.CorruptError), ([[]], ambar.CorruptError)]:
        with ambar.create(path, "a", fsync=False) as writer:
            about = {"kind": "series", "version": 1, "of": "mesh", "times": times}
            writer._create_group("", {"ambar": about})
        with pytest.raises(error, match="times"):
            ambar.open_mesh_series(path)


def test_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run(capsys, "info", path)
    assert code == 0
    assert printed == f"{ambar.open_mesh_series(path)!r}\n"
    assert "UnstructuredGrid" in printed
    assert "step_000000/cells/corners" in run(capsys, "ls", path)[1]
    code, printed, _ = run(capsys, "info", path, "--json")
    assert [step["time"] for step in json.loads(printed)["steps"]] == [0.0, 0.5, 1.0, 1.5, 2.0]
    code, _, errors = run(capsys, "export", path, path.with_name("x.vtu"))
    assert code != 0
    assert "expected the suffix .pvd for time steps" in errors


def test_pyvista_reads_steps(path: Path) -> None:
    reader = pv.get_reader(path)
    assert reader.time_values == [0.0, 0.5, 1.0, 1.5, 2.0]
    reader.set_active_time_value(1.5)
    assert reader.read() == step(3)
    reader.set_active_time_point(1)
    assert reader.active_time_value == 0.5
    reader.disable_all_cell_arrays()
    read = reader.read()
    np.testing.assert_array_equal(read["pressure"], step(1)["pressure"])
    assert read.cell_data.keys() == []
    assert pv.read(path) == step(0)
