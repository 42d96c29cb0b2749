"""Time steps in files of other programs become a series of meshes."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh.files.pyvista_readers import MeshFile
from tests.helpers.command_line import run

pytest.importorskip("pyvista")

import pyvista as pv
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase
from vtkmodules.vtkCommonCore import vtkObjectFactory
from vtkmodules.vtkCommonDataModel import vtkDataObject
from vtkmodules.vtkCommonExecutionModel import (
    vtkStreamingDemandDrivenPipeline,
)
from vtkmodules.vtkIOExodus import vtkExodusIIWriter


def step(number: int) -> pv.UnstructuredGrid:
    mesh = pv.ImageData(dimensions=(6, 5, 4)).to_tetrahedra()
    mesh.clear_data()
    mesh["pressure"] = np.random.default_rng(number).random(mesh.n_points)
    mesh.cell_data["region"] = np.arange(mesh.n_cells)
    return mesh


def write_steps(folder: Path, numbers: list[int], name: str = "step_{}.vtu") -> list[Path]:
    paths = [folder / name.format(number) for number in numbers]
    for number, path in zip(numbers, paths, strict=True):
        step(number).save(path)
    return paths


def write_pvd(path: Path, entries: list[str]) -> Path:
    lines = "\n".join(f"<DataSet {entry}/>" for entry in entries)
    path.write_text(
        '<?xml version="1.0"?><VTKFile type="Collection" version="0.1">'
        f"<Collection>{lines}</Collection></VTKFile>"
    )
    return path


def assert_steps(path: Path, numbers: list[int], times: list[float | None]) -> None:
    series = ambar.open_mesh_series(path)
    assert series.times == times
    for mesh, number in zip(series, numbers, strict=True):
        assert mesh.read() == step(number)


def test_a_collection_of_paraview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_steps(tmp_path, [1, 2, 3])
    # Times in another order than the files' names, and none that float32 holds.
    times = {1: 0.3, 2: 0.1, 3: 0.2}
    entries = [f'timestep="{at}" part="0" file="step_{n}.vtu"' for n, at in times.items()]
    pvd = write_pvd(tmp_path / "flow.pvd", entries)
    target = tmp_path / "flow.ambar"
    code, printed, _ = run(capsys, "convert", pvd, target, "--json")
    assert code == 0
    done = json.loads(printed)
    assert done["converted"] == ["step_2.vtu", "step_3.vtu", "step_1.vtu"]
    assert done["source_bytes"] == sum(file.stat().st_size for file in tmp_path.glob("*.vtu"))
    assert_steps(target, [2, 3, 1], [0.1, 0.2, 0.3])
    again = ambar.convert(pvd, target, mode="a")
    assert (len(again.skipped), again.source_bytes) == (3, 0)
    corners = [name for name in ambar.open_store(target) if name.endswith("corners")]
    assert corners == ["step_000000/cells/corners"]


def test_parts_become_blocks(tmp_path: Path) -> None:
    write_steps(tmp_path, [1, 2, 3])
    pvd = write_pvd(
        tmp_path / "flow.pvd",
        [
            'timestep="0" part="1" name="outlet" file="step_2.vtu"',
            'timestep="0" part="0" file="step_1.vtu"',
            'timestep="1" part="0" file="step_3.vtu"',
        ],
    )
    ambar.convert(pvd, tmp_path / "x.ambar", fsync=False)
    first, second = (mesh.read() for mesh in ambar.open_mesh_series(tmp_path / "x.ambar"))
    assert first.keys() == ["part 0", "outlet"]
    assert first[1] == step(2)
    assert second.keys() == ["part 0"]


@pytest.mark.parametrize("suffix", ["vtu", "vtk"])
def test_a_series_of_paraview(tmp_path: Path, suffix: str) -> None:
    write_steps(tmp_path, [1, 2], f"step_{{}}.{suffix}")
    files = [{"name": f"step_{n}.{suffix}", "time": 0.1 * n} for n in (1, 2)]
    path = tmp_path / f"flow.{suffix}.series"
    path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    ambar.convert(path, tmp_path / "x.ambar", fsync=False)
    assert_steps(tmp_path / "x.ambar", [1, 2], [0.1, 0.2])


class Solver(VTKPythonAlgorithmBase):
    """A source of three steps, for writers of VTK."""

    times = (0.25, 0.5, 0.75)

    def __init__(self) -> None:
        super().__init__(nInputPorts=0, nOutputPorts=1, outputType="vtkUnstructuredGrid")

    def RequestInformation(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        info = outputs.GetInformationObject(0)
        info.Set(vtkStreamingDemandDrivenPipeline.TIME_STEPS(), self.times, 3)
        info.Set(vtkStreamingDemandDrivenPipeline.TIME_RANGE(), [0.25, 0.75], 2)
        return 1

    def RequestData(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        info = outputs.GetInformationObject(0)
        time = info.Get(vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP())
        vtkDataObject.GetData(outputs, 0).ShallowCopy(step(self.times.index(time)))
        return 1


def test_a_file_of_several_times(tmp_path: Path) -> None:
    # Where `import vtk` has loaded all of VTK, VTK makes the parallel writer instead, which
    # crashes without MPI.
    vtkObjectFactory.SetAllEnableFlags(False, "vtkExodusIIWriter")
    solver, writer = Solver(), vtkExodusIIWriter()
    writer.SetFileName(str(tmp_path / "flow.ex2"))
    writer.SetInputConnection(solver.GetOutputPort())
    writer.WriteAllTimeStepsOn()
    writer.Write()
    done = ambar.convert(tmp_path / "flow.ex2", tmp_path / "x.ambar", fsync=False)
    assert done.converted == [f"flow.ex2 step {number}" for number in range(3)]
    series = ambar.open_mesh_series(tmp_path / "x.ambar")
    assert series.times == [*Solver.times]
    for number, stored in enumerate(series):
        block = stored.read(block=(0, 0))
        # VTK's writer of Exodus rounds values.
        expected = np.sort(step(number)["pressure"])
        np.testing.assert_allclose(np.sort(block["pressure"]), expected, atol=1e-7)
    with pytest.raises(ValueError, match="expected one time step, found 3: convert the file alone"):
        ambar.convert(
            [tmp_path / "flow.ex2"] * 2 + write_steps(tmp_path, [1]), tmp_path / "y.ambar"
        )


def test_numbered_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_steps(tmp_path, [10, 9, 2])
    assert run(capsys, "convert", *paths, tmp_path / "x.ambar")[0] == 0
    assert_steps(tmp_path / "x.ambar", [2, 9, 10], [None] * 3)
    reports: list[tuple[int, int]] = []
    ambar.convert(
        f"{tmp_path}/step_*.vtu",
        tmp_path / "y.ambar",
        fsync=False,
        progress=lambda done, total: reports.append((done, total)),
    )
    assert_steps(tmp_path / "y.ambar", [2, 9, 10], [None] * 3)
    sizes = [path.stat().st_size for path in paths[::-1]]
    assert reports == [(sum(sizes[: n + 1]), sum(sizes)) for n in range(3)]


def test_files_that_tell_their_time(tmp_path: Path) -> None:
    for number in (1, 2):
        mesh = step(number)
        mesh.field_data["TimeValue"] = [0.1 * number]
        mesh.save(tmp_path / f"step_{number}.vtu")
    ambar.convert(f"{tmp_path}/*.vtu", tmp_path / "x.ambar", fsync=False)
    assert ambar.open_mesh_series(tmp_path / "x.ambar").times == [0.1, 0.2]


@pytest.mark.parametrize("timed", [1, 2])
def test_files_of_which_some_have_times_are_refused(timed: int, tmp_path: Path) -> None:
    for number in (1, 2):
        mesh = step(number)
        if number == timed:
            mesh.field_data["TimeValue"] = [0.5]
        mesh.save(tmp_path / f"step_{number}.vtu")
    message = f"step_2.vtu: expected {'a' if timed == 1 else 'no'} time, as for step_1.vtu, found"
    for mode in ("w-", "a"):
        with pytest.raises(ValueError, match=message):
            ambar.convert(f"{tmp_path}/*.vtu", tmp_path / "x.ambar", mode=mode, fsync=False)
        assert len(ambar.open_mesh_series(tmp_path / "x.ambar")) == 1


def test_only_one_step_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_steps(tmp_path, [1, 2, 3, 4])
    alive: list[weakref.ref[pv.UnstructuredGrid]] = []
    most = 0
    read = MeshFile.read

    def watched(self: MeshFile, number: int = 0) -> pv.UnstructuredGrid:
        nonlocal most
        gc.collect()
        most = max(most, sum(one() is not None for one in alive))
        mesh = read(self, number)
        alive.append(weakref.ref(mesh))
        return mesh

    monkeypatch.setattr(MeshFile, "read", watched)
    ambar.convert(paths, tmp_path / "x.ambar", fsync=False)
    assert len(alive) == 4
    assert most <= 1  # the one before, which the next takes the place of


def test_a_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_steps(tmp_path, [1, 2])
    target = tmp_path / "x.ambar"
    ambar.convert(paths, target, fsync=False)
    paths += write_steps(tmp_path, [3])
    with pytest.raises(FileExistsError):
        ambar.convert(paths, target)
    code, printed, _ = run(capsys, "convert", *paths, target, "--resume", "--json")
    assert code == 0
    assert json.loads(printed)["converted"] == ["step_3.vtu"]
    assert json.loads(printed)["skipped"] == ["step_1.vtu", "step_2.vtu"]
    assert_steps(target, [1, 2, 3], [None] * 3)
    with pytest.raises(ValueError, match="not the first ones"):
        ambar.convert(paths[:2], target, mode="a")
    entries = [f'timestep="{n}" file="step_{n}.vtu"' for n in (1, 2, 3)]
    pvd = write_pvd(tmp_path / "flow.pvd", entries)
    with pytest.raises(ValueError, match="not the first ones"):
        ambar.convert(pvd, target, mode="a")


def test_a_step_that_cannot_be_read(tmp_path: Path) -> None:
    paths = write_steps(tmp_path, [1, 2, 3])
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ambar.CorruptError, match=r"step_2\.vtu: .*cannot be read"):
        ambar.convert(paths, tmp_path / "x.ambar", fsync=False)
    assert_steps(tmp_path / "x.ambar", [1], [None])
    paths[1].write_bytes(whole)
    ambar.convert(paths, tmp_path / "x.ambar", mode="a", fsync=False)
    assert_steps(tmp_path / "x.ambar", [1, 2, 3], [None] * 3)


def test_refusals(tmp_path: Path) -> None:
    paths = write_steps(tmp_path, [1, 2])
    target = tmp_path / "x.ambar"
    with pytest.raises(ValueError, match="levels does not apply"):
        ambar.convert(paths, target, levels=(1, 2))
    with pytest.raises(ValueError, match="fields does not apply"):
        ambar.convert(paths, target, fields=["pressure"])
    ambar.convert(paths[0], tmp_path / "one.ambar", mode="a", fsync=False)
    with pytest.raises(ValueError, match="as a whole"):
        ambar.convert(paths[0], tmp_path / "one.ambar", mode="a")
    for text in ["", "<a/>", "<VTKFile><Collection><DataSet timestep='0'/></Collection></VTKFile>"]:
        (tmp_path / "bad.pvd").write_text(text)
        with pytest.raises(ambar.CorruptError, match=r"bad\.pvd: expected a collection"):
            ambar.convert(tmp_path / "bad.pvd", target)
    for text in ["", "[]", "{}", '{"files": []}', '{"files": [{"name": "x", "time": "nan"}]}']:
        (tmp_path / "bad.vtu.series").write_text(text)
        with pytest.raises(ambar.CorruptError, match=r"bad\.vtu\.series: expected a series"):
            ambar.convert(tmp_path / "bad.vtu.series", target)
    pvd = write_pvd(tmp_path / "lost.pvd", ['timestep="0" file="nowhere.vtu"'])
    with pytest.raises(
        FileNotFoundError, match=r"lost\.pvd lists .*nowhere\.vtu, which does not exist"
    ):
        ambar.convert(pvd, target)
    assert not target.exists()
