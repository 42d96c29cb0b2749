"""Numbers of points and cells, bounds and times of meshes; the arguments that go with them."""

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

from tests.helpers.mesh.samples import DATASETS, OTHERS

COUNTED = [name for name in (*DATASETS, *OTHERS) if name != "table"]


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("reorder", [False, True])
def test_numbers_and_bounds_are_those_of_vtk(name: str, reorder: bool, tmp_path: Path) -> None:
    """`info` and `repr` print them."""
    mesh = {**DATASETS, **OTHERS}[name]()
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False, reorder=reorder)
    opened = ambar.open_mesh(tmp_path / "x.ambar")
    assert (opened.n_points, opened.n_cells) == (
        mesh.GetNumberOfPoints(),
        mesh.GetNumberOfCells(),
    )
    lines = [" ".join(line.split()) for line in repr(opened).splitlines()]
    assert f"Points: {opened.n_points:,}" in lines
    assert f"Cells: {opened.n_cells:,}" in lines
    bounds = [0.0] * 6
    mesh.GetBounds(bounds)
    assert opened.bounds == tuple(bounds)
    assert f"x from {bounds[0]:.6g} to {bounds[1]:.6g}" in repr(opened)


def test_what_has_no_place_has_no_bounds(tmp_path: Path) -> None:
    nowhere = pv.PolyData(np.full((2, 3), np.nan))
    for mesh in (pv.PolyData(), pv.Table({"a": np.arange(3)}), nowhere):
        ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False, mode="w")
        opened = ambar.open_mesh(tmp_path / "x.ambar")
        assert opened.bounds is None
        assert repr(opened)


def test_the_command_shows_numbers_and_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = pv.ImageData(dimensions=(11, 11, 11))
    ambar.write_mesh(grid, tmp_path / "x.ambar", fsync=False)
    _, printed, _ = run(capsys, "info", tmp_path / "x.ambar")
    assert printed == f"{ambar.open_mesh(tmp_path / 'x.ambar')!r}\n"
    assert "x from 0 to 10, y from 0 to 10" in printed
    _, printed, _ = run(capsys, "info", tmp_path / "x.ambar", "--json")
    found = json.loads(printed)
    assert (found["points"], found["cells"], found["bounds"]) == (1331, 1000, [0, 10] * 3)


def series(path: Path, times: list[float | None]) -> None:
    """Write points that move, with each step."""
    with ambar.open_mesh_series(path, "w-", fsync=False) as writing:
        for number, time in enumerate(times):
            mesh = pv.ImageData(dimensions=(9, 9, 9)).cast_to_unstructured_grid()
            mesh.points = mesh.points + (number // 2)
            mesh["step"] = np.random.default_rng(number).random(mesh.n_points)
            writing.add(mesh, time)


def test_every_step_has_its_own_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step whose description is that of an earlier one must not have that one's bounds."""
    series(tmp_path / "run.ambar", [0.0, 1.0, 2.0, 3.0, 4.0])
    opened = ambar.open_mesh_series(tmp_path / "run.ambar")
    for number, step in enumerate(opened):
        moved = number // 2
        assert step.bounds == (moved, 8 + moved) * 3
        assert step.bounds == step.read().bounds
    _, printed, _ = run(capsys, "info", tmp_path / "run.ambar")
    assert "729" in printed
    assert "512" in printed


def test_bounds_are_a_region(tmp_path: Path) -> None:
    """``region=mesh.bounds`` was refused."""
    mesh = pv.ImageData(dimensions=(9, 9, 9)).to_tetrahedra()
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    bounds = (0.5, 2.5, 1.5, 3.5, 0.0, 1.0)
    box = ambar.Box(bounds[::2], bounds[1::2])
    expected = ambar.read_mesh(tmp_path / "x.ambar", region=box)
    regions: list[Any] = [bounds, list(bounds), np.array(bounds)]
    for region in regions:
        assert ambar.read_mesh(tmp_path / "x.ambar", region=region) == expected
    assert pv.read(tmp_path / "x.ambar", region=bounds) == expected
    assert ambar.open_mesh(tmp_path / "x.ambar").read(region=mesh.bounds).n_cells == mesh.n_cells
    wrong: list[Any] = [(0, 1, 0, 1), "abcdef", 7, [None] * 6]
    for region in wrong:
        with pytest.raises(ValueError, match="expected an ambar.Box, or bounds"):
            ambar.read_mesh(tmp_path / "x.ambar", region=region)
    with pytest.raises(ValueError, match="expected lo <= hi"):
        ambar.read_mesh(tmp_path / "x.ambar", region=(1, 0, 0, 1, 0, 1))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, 1025, 2**70])
def test_numbers_of_threads_are_checked(threads: Any, tmp_path: Path) -> None:
    """Small meshes were read with 0 threads, as no array of theirs is."""
    ambar.write_mesh(pv.Cube(), tmp_path / "x.ambar", fsync=False)
    with pytest.raises(ValueError, match="invalid number of threads"):
        ambar.read_mesh(tmp_path / "x.ambar", threads=threads)


def test_files_that_exist_are_python_s_error(tmp_path: Path) -> None:
    (tmp_path / "x.ambar").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"x\.ambar"):
        ambar.write_mesh(pv.Cube(), tmp_path / "x.ambar")
    with pytest.raises(FileExistsError, match=r"x\.ambar"):
        ambar.open_mesh_series(tmp_path / "x.ambar", "w-")
    assert (tmp_path / "x.ambar").read_bytes() == b"mine"
    ambar.write_mesh(pv.Cube(), tmp_path / "x.ambar", mode="w")
    assert ambar.read_mesh(tmp_path / "x.ambar").n_cells == 6


def test_times_need_not_match_to_the_bit(tmp_path: Path) -> None:
    """0.1 + 0.2 was not found among steps of 0.3, and the error listed all times."""
    times = [0.0, *(float(n) / 10 for n in range(1, 200))]
    series(tmp_path / "run.ambar", [0.0, 0.1, 0.2, 0.3, 0.5])
    opened = ambar.open_mesh_series(tmp_path / "run.ambar")
    reader = pv.get_reader(tmp_path / "run.ambar")
    for time, step in ((0.1 + 0.2, 3), (float(np.float32(0.1)), 1), (1e-9, 0), (0.3 - 1e-12, 3)):
        reader.set_active_time_value(time)
        assert reader.active_time_value == opened.times[step]
        assert opened.at(time).path == opened[step].path
    assert opened.at(0.4).path == opened[3].path
    with pytest.raises(KeyError, match=r"the nearest of 5 times are 0\.2, 0\.3, 0\.5"):
        reader.set_active_time_value(0.35)
    with pytest.raises(KeyError, match=r"before time -0\.1; the first is at 0\.0"):
        opened.at(-0.1)
    from ambar.mesh.steps import step_at

    with pytest.raises(KeyError, match=r"nearest of 200 times are 4\.9, 5\.0, 5\.1$"):
        step_at(times, 5.02, "here")
    assert [step_at(times, time, "here") for time in times] == list(range(200))
