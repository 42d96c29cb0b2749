"""ParaView reads meshes through the plugin."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.command_line import run
from tests.helpers.sample_outputs import output

pytest.importorskip("pyvista")

import pyvista as pv

# ParaView 5.11 of Debian 12 asks for what its Python 3.11 has no more.
SCRIPT = """
import inspect, sys
if not hasattr(inspect, "getargspec"):
    inspect.getargspec = inspect.getfullargspec
from paraview import simple, servermanager
from vtkmodules.util.numpy_support import vtk_to_numpy
simple.LoadPlugin(sys.argv[1], remote=False, ns=globals())
reader = AmbarReader(FileName=sys.argv[2])
reader.UpdatePipeline()
mesh = servermanager.Fetch(reader)
print(mesh.GetClassName(), mesh.GetNumberOfPoints(), mesh.GetNumberOfCells())
print(vtk_to_numpy(mesh.GetPointData().GetArray("temperature")).sum())
reader.PointArrays = []
reader.UpdatePipeline()
mesh = servermanager.Fetch(reader)
print(mesh.GetPointData().GetNumberOfArrays(), mesh.GetCellData().GetNumberOfArrays())
steps = AmbarReader(FileName=sys.argv[3])
print(*steps.TimestepValues)
steps.UpdatePipeline(0.5)
print(vtk_to_numpy(servermanager.Fetch(steps).GetPointData().GetArray("temperature")).sum())
"""

CELLS = """
import inspect, sys
if not hasattr(inspect, "getargspec"):
    inspect.getargspec = inspect.getfullargspec
from paraview import simple, servermanager
simple.LoadPlugin(sys.argv[1], remote=False, ns=globals())
for path, lowest in zip(sys.argv[2::2], sys.argv[3::2]):
    reader = AmbarReader(FileName=path)
    reader.CellArrays = ["density"]
    whole = simple.IntegrateVariables(Input=reader, DivideCellDataByVolume=0)
    times = reader.TimestepValues or [0.0]
    whole.UpdatePipeline(times[-1])
    data = servermanager.Fetch(whole).GetCellData()
    mesh = reader.GetClientSideObject().GetOutputDataObject(0)
    arrays = [data.GetArrayName(number) for number in range(data.GetNumberOfArrays())]
    print(mesh.GetClassName(), mesh.GetNumberOfLevels(), *sorted(arrays))
    print(*(data.GetArray(name).GetValue(0) for name in ("density", "Volume")))
    reader.FinestLevel = int(lowest)
    reader.UpdatePipeline(times[-1])
    print(reader.GetClientSideObject().GetOutputDataObject(0).GetNumberOfLevels())
"""


def test_the_plugin_is_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run(capsys, "paraview-plugin", "--install", "--folder", tmp_path / "a b")
    assert code == 0
    installed = tmp_path / "a b" / "ambar_paraview.py"
    assert printed.strip() == str(installed)
    text = installed.read_text()
    compile(text, installed, "exec")
    assert f"AMBAR_PATH = {str(Path(ambar.__file__).parents[1])!r}\n" in text
    code, printed, _ = run(capsys, "paraview-plugin")
    assert code == 0
    assert Path(printed.strip()).read_text().splitlines()[0] == text.splitlines()[0]


def test_paraview_reads_meshes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pvpython = shutil.which("pvpython")
    if pvpython is None:
        pytest.skip("there is no ParaView here (pvpython)")
    mesh = pv.ImageData(dimensions=(6, 5, 4)).to_tetrahedra()
    mesh["temperature"] = np.linspace(0, 1, mesh.n_points)
    mesh.cell_data["number"] = np.arange(mesh.n_cells)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    with ambar.open_mesh_series(tmp_path / "run.ambar", "w-", fsync=False) as series:
        for number in range(3):
            mesh["temperature"] += 1
            series.add(mesh, 0.25 * number)
    mesh["temperature"] -= 3
    run(capsys, "paraview-plugin", "--install", "--folder", tmp_path)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command: list[str | Path] = [
        pvpython,
        script,
        tmp_path / "ambar_paraview.py",
        tmp_path / "x.ambar",
    ]
    command += [tmp_path / "run.ambar"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["vtkUnstructuredGrid", str(mesh.n_points), str(mesh.n_cells)]
    assert float(lines[1][0]) == pytest.approx(mesh["temperature"].sum())
    assert lines[2] == ["0", str(len(mesh.cell_data))]
    assert [float(time) for time in lines[3]] == [0, 0.25, 0.5]
    assert float(lines[4][0]) == pytest.approx(mesh["temperature"].sum() + 3 * mesh.n_points)


def test_paraview_draws_cells_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pvpython = shutil.which("pvpython")
    if pvpython is None:
        pytest.skip("there is no ParaView here (pvpython)")
    plotfiles.write(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "plt.ambar", fsync=False)
    ambar.convert(output("sedov").parent, tmp_path / "run.ambar", fsync=False)
    run(capsys, "paraview-plugin", "--install", "--folder", tmp_path)
    (tmp_path / "script.py").write_text(CELLS)
    stores = [tmp_path / "plt.ambar", tmp_path / "run.ambar"]
    given: list[str | Path] = [
        stores[0],
        "0",
        stores[1],
        "4",
    ]  # with the number of the lowest level
    command: list[str | Path] = [
        pvpython,
        tmp_path / "script.py",
        tmp_path / "ambar_paraview.py",
        *given,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    cells = [ambar.open_snapshot(stores[0]).amr, ambar.open_series(stores[1])[-1].amr]
    for number, amr in enumerate(cells):
        low, high = amr.levels
        told, sums, fewer = lines[3 * number : 3 * number + 3]
        assert told == [
            "vtkOverlappingAMR",
            str(high - low + 1),
            "Volume",
            "density",
            "vtkGhostType",
        ]
        table = amr.read(["density", "level"])
        sizes = {level: np.prod(amr.cell_size(level)) for level in range(low, high + 1)}
        volumes = np.vectorize(sizes.get)(table["level"])
        assert float(sums[0]) == pytest.approx((table["density"] * volumes).sum(), rel=1e-9)
        assert float(sums[1]) == pytest.approx(volumes.sum(), rel=1e-9)
        assert fewer == ["1"]
