"""Files of meshes become stores, and files again; and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.command_line import run
from tests.helpers.rendering import skip_without_rendering

pytest.importorskip("pyvista")

import pyvista as pv


def grid() -> pv.UnstructuredGrid:
    mesh = pv.ImageData(dimensions=(6, 5, 4)).to_tetrahedra()
    mesh["temperature"] = np.linspace(0, 1, mesh.n_points)
    mesh.cell_data["number"] = np.arange(mesh.n_cells)
    return mesh


@pytest.fixture
def vtu(tmp_path: Path) -> Path:
    grid().save(tmp_path / "wing.vtu")
    return tmp_path / "wing.vtu"


def test_a_file_becomes_a_store_and_a_file_again(
    vtu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "wing.ambar"
    code, printed, _ = run(capsys, "convert", vtu, store, "--json")
    assert code == 0
    done = json.loads(printed)
    assert done["converted"] == ["wing.vtu"]
    assert done["source_bytes"] == vtu.stat().st_size
    assert done["stored_bytes"] == store.stat().st_size
    assert pv.read(store) == grid()
    for name in ["again.vtkhdf", "again.vtk"]:
        assert run(capsys, "export", store, tmp_path / name)[0] == 0
        again = pv.read(tmp_path / name)
        np.testing.assert_array_equal(again.points, grid().points)
        np.testing.assert_array_equal(again["temperature"], grid()["temperature"])
        np.testing.assert_array_equal(again.cells_dict[10], grid().cells_dict[10])


@pytest.mark.parametrize("value", [4_000_000_000, np.inf, 1e200])
def test_vectors_whose_range_vtk_cannot_read(value: float, tmp_path: Path) -> None:
    """VTK stores the range of the magnitudes, and does not read an infinite one."""
    mesh = pv.Sphere()
    mesh["v"] = np.full((mesh.n_points, 3), value)
    mesh["v"][0] = 1
    mesh.save(tmp_path / "x.vtp")
    ambar.convert(tmp_path / "x.vtp", tmp_path / "x.ambar", fsync=False)
    np.testing.assert_array_equal(ambar.read_mesh(tmp_path / "x.ambar")["v"], mesh["v"])


def test_blocks(tmp_path: Path) -> None:
    blocks = pv.MultiBlock({"a": pv.Sphere(), "b": grid()})
    blocks.user_dict["run"] = 7
    blocks.save(tmp_path / "both.vtm")
    done = ambar.convert(tmp_path / "both.vtm", tmp_path / "both.ambar", fsync=False)
    assert done.source_bytes > (tmp_path / "both.vtm").stat().st_size
    found = pv.read(tmp_path / "both.ambar")
    assert found.keys() == ["a", "b"]
    assert found["a"] == pv.Sphere()
    assert not ambar.export(tmp_path / "both.ambar", tmp_path / "again.vtm").left_out
    again = pv.read(tmp_path / "again.vtm")
    assert again["a"] == pv.Sphere()
    assert again.user_dict == found.user_dict == {"run": 7}


def test_tables_among_blocks(tmp_path: Path) -> None:
    """PyVista 0.49 ends with an AttributeError where it checks them."""
    blocks = pv.MultiBlock({"a": pv.Sphere(), "b": pv.Table({"row": np.arange(3)})})
    blocks.save(tmp_path / "both.vtm")
    ambar.convert(tmp_path / "both.vtm", tmp_path / "both.ambar", fsync=False)
    readers = (ambar.read_mesh, pv.read, lambda path: pv.get_reader(path).read())
    for read in readers:
        found = read(tmp_path / "both.ambar")
        assert found["a"] == pv.Sphere()
        assert found["b"]["row"].tolist() == [0, 1, 2]


def test_an_export_that_fails_leaves_nothing(
    vtu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ambar.convert(vtu, tmp_path / "x.ambar", fsync=False)

    def full(_: pv.UnstructuredGrid, path: Path) -> None:
        path.write_bytes(b"half")
        raise pv.VTKExecutionError("no room")

    before = sorted(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(pv.UnstructuredGrid, "save", full)
        with pytest.raises(OSError, match=r"VTK cannot write it: no room.*y\.vtk"):
            ambar.export(tmp_path / "x.ambar", tmp_path / "y.vtk")
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(OSError, match="nowhere"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "nowhere" / "y.vtu")


def test_refusals(vtu: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="levels does not apply"):
        ambar.convert(vtu, tmp_path / "x.ambar", levels=(1, 2))
    with pytest.raises(ValueError, match="fields does not apply"):
        ambar.convert(vtu, tmp_path / "x.ambar", fields=["temperature"])
    damaged = tmp_path / "damaged.vtkhdf"
    damaged.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99))
    with pytest.raises(ambar.AmbarError, match=r"damaged\.vtkhdf"):
        ambar.convert(damaged, tmp_path / "x.ambar")
    for length in [0, 300, vtu.stat().st_size // 2]:
        cut = tmp_path / "cut.vtu"
        cut.write_bytes(vtu.read_bytes()[:length])
        with pytest.raises(ambar.CorruptError, match=r"cut\.vtu: expected a \.vtu file"):
            ambar.convert(cut, tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()
    ambar.convert(vtu, tmp_path / "x.ambar", fsync=False)
    with pytest.raises(FileExistsError, match="wing"):
        ambar.export(tmp_path / "x.ambar", vtu)
    with pytest.raises(ambar.UnsupportedError, match=r"(?s)cannot be written as \.xyz.*\.vtu"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.xyz")
    with pytest.raises(ValueError, match="format does not apply"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "y.vtu", format="netcdf")


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_without_rendering()
    ambar.write_mesh(grid(), tmp_path / "wing.ambar", fsync=False)
    target = tmp_path / "wing.png"
    arguments = ["plot", tmp_path / "wing.ambar", target, "--scalars", "temperature"]
    assert run(capsys, *arguments)[0] == 0
    colours = pv.read(target).point_data.active_scalars
    assert len(np.unique(colours, axis=0)) > 50
    with pytest.raises(KeyError, match="no array 'pressure'.*number, temperature"):
        from ambar.mesh.drawing import MeshPlot, write_picture

        plot = MeshPlot(path="wing.ambar", target=target, fields=("pressure",))
        write_picture(ambar.open_mesh(tmp_path / "wing.ambar"), plot)
    assert run(capsys, *arguments[:2], tmp_path / "wing.xyz")[0] == 2
    ambar.write_mesh(pv.UnstructuredGrid(), tmp_path / "none.ambar", fsync=False)
    code, _, err = run(capsys, "plot", tmp_path / "none.ambar", target)
    assert (code, "no points to draw" in err) == (2, True)
