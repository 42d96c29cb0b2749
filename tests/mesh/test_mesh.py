"""Meshes: every type of VTK's objects, with every kind of array, comes back unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")

import pyvista as pv
from vtkmodules import vtkCommonDataModel

from tests.helpers.mesh.comparison import assert_same, type_of
from tests.helpers.mesh.samples import DATASETS, DTYPES, OTHERS, TYPES, sphere, with_every_array


def round_trip(mesh: Any, folder: Path, **options: Any) -> Any:
    path = folder / "mesh.ambar"
    ambar.write_mesh(mesh, path, fsync=False, mode="w", **options)
    return ambar.read_mesh(path)


def exact(mesh: Any, folder: Path, **options: Any) -> Any:
    """As `round_trip`, but as VTK's own object: PyVista gives names to arrays without one."""
    path = folder / "mesh.ambar"
    ambar.write_mesh(mesh, path, fsync=False, mode="w", **options)
    return ambar.open_mesh(path).read(wrap=False)


@pytest.mark.parametrize("name", DATASETS)
def test_every_type_of_data_set_comes_back(name: str, tmp_path: Path) -> None:
    mesh = DATASETS[name]()
    assert_same(mesh, exact(mesh, tmp_path))
    assert pv.wrap(mesh) == round_trip(mesh, tmp_path)


@pytest.mark.parametrize("name", DATASETS)
def test_every_kind_of_array_comes_back(name: str, tmp_path: Path) -> None:
    mesh = with_every_array(DATASETS[name]())
    assert_same(mesh, exact(mesh, tmp_path))


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_type_comes_back(name: str, tmp_path: Path) -> None:
    mesh = OTHERS[name]()
    assert_same(mesh, exact(mesh, tmp_path))


@pytest.mark.parametrize("name", TYPES)
def test_empty_objects_come_back(name: str, tmp_path: Path) -> None:
    mesh = getattr(vtkCommonDataModel, f"vtk{name}")()
    read = exact(mesh, tmp_path)
    assert type_of(read) == f"vtk{name}"
    assert_same(mesh, read)


@pytest.mark.parametrize(
    "dtype", [*DTYPES, "float32", "float64", "bool", "complex64", "complex128"]
)
@pytest.mark.parametrize("n", [10, 60])
def test_arrays_as_pyvista_has_them(dtype: str, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mesh = pv.ImageData(dimensions=(n, n, 3))
    for data, count in ((mesh.point_data, mesh.n_points), (mesh.cell_data, mesh.n_cells)):
        data["a"] = (rng.random(count) * 200).astype(dtype)
    mesh.field_data["f"] = np.arange(4).astype(dtype)
    read = round_trip(mesh, tmp_path)
    assert read == mesh
    assert read.field_data["f"].dtype == dtype
    assert read.point_data["a"].dtype == read.cell_data["a"].dtype == dtype
    assert read.point_data["a"].tobytes() == mesh.point_data["a"].tobytes()


def test_bools_and_complex_numbers_in_blocks_come_back(tmp_path: Path) -> None:
    inner = pv.Sphere()
    inner["on"] = np.arange(inner.n_points) % 2 == 0
    inner["z"] = np.arange(inner.n_points) * 1j
    read = round_trip(pv.MultiBlock({"a": pv.MultiBlock({"b": inner})}), tmp_path)
    assert read["a"]["b"]["on"].dtype == bool
    assert read["a"]["b"]["z"].dtype == complex
    assert (read["a"]["b"]["z"] == inner["z"]).all()


@pytest.mark.parametrize("name", DATASETS)
def test_profiles_lose_nothing(name: str, tmp_path: Path) -> None:
    mesh = with_every_array(DATASETS[name]())
    for options in ({"profile": "fast"}, {"profile": "small", "threads": 1}):
        assert_same(mesh, exact(mesh, tmp_path, **options))


def test_a_lattice_is_stored_by_its_axes(tmp_path: Path) -> None:
    mesh = DATASETS["tetrahedra"]()
    assert_same(mesh, round_trip(mesh, tmp_path))
    store = ambar.open_store(tmp_path / "mesh.ambar")
    assert not any("points" in path for path in store)
    mesh.points[777, 2] = np.nextafter(mesh.points[777, 2], 9)  # one bit makes it none
    assert_same(mesh, round_trip(mesh, tmp_path))
    mesh = ambar.open_mesh(tmp_path / "mesh.ambar")
    assert "lattice" not in mesh._about["points"]


def test_values_are_decoded_into_the_memory_of_vtk(tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(30, 30, 30)).to_tetrahedra()
    mesh["p"] = np.random.default_rng(0).random(mesh.n_points)
    read = round_trip(mesh, tmp_path)
    read["p"][0] = 7
    assert read.GetPointData().GetArray("p").GetValue(0) == 7
    before = read.point_data["p"].copy()
    import gc

    gc.collect()
    assert (read.point_data["p"] == before).all()


def test_the_user_dict_comes_back(tmp_path: Path) -> None:
    mesh = sphere()
    mesh.user_dict["name"] = "žluť"
    assert round_trip(mesh, tmp_path).user_dict["name"] == "žluť"
    read = round_trip(sphere(), tmp_path, user_dict={"run": [1, {"at": "points"}]})
    assert read.user_dict["run"] == [1, {"at": "points"}]
    assert ambar.open_mesh(tmp_path / "mesh.ambar").user_dict == {"run": [1, {"at": "points"}]}


def test_thousands_of_small_arrays_take_few_nodes(tmp_path: Path) -> None:
    cube = pv.Cube()
    cube["a"] = np.arange(cube.n_points, dtype=float)
    mesh = pv.MultiBlock([cube.copy() for _ in range(500)])
    read = round_trip(mesh, tmp_path)
    assert_same(mesh, read)
    opened = ambar.open_mesh(tmp_path / "mesh.ambar")
    assert len(opened.store) < 10
    assert len(opened.blocks) == 500
    assert opened.arrays[0].nbytes > 0
    assert (tmp_path / "mesh.ambar").stat().st_size < 50_000


def test_the_reader_copies_no_explicit_grid_without_an_extent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a copy aborts Python at times: VTK leaves the extent of a new object uninitialised."""
    path = tmp_path / "mesh.ambar"
    ambar.write_mesh(pv.wrap(DATASETS["explicit"]()), path, fsync=False)
    shallow_copy = pv.ExplicitStructuredGrid.shallow_copy

    def checked(self: Any, source: Any) -> None:
        assert source.GetNumberOfPoints() > 0
        shallow_copy(self, source)

    monkeypatch.setattr(pv.ExplicitStructuredGrid, "shallow_copy", checked)
    assert pv.read(path).n_cells == 24
    monkeypatch.undo()
    code = f"import pyvista; print(pyvista.read({str(path)!r}).n_cells)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, b"24"), done.stderr


def test_without_pyvista_meshes_are_those_of_vtk(tmp_path: Path) -> None:
    round_trip(sphere(), tmp_path)
    code = f"""
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name == "pyvista":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "pyvista" else found(name, *a)
import ambar
assert not any(name.startswith("vtk") for name in sys.modules)
mesh = ambar.read_mesh({str(tmp_path / "mesh.ambar")!r})
assert type(mesh).__module__.startswith("vtkmodules"), type(mesh)
ambar.write_mesh(mesh, {str(tmp_path / "second.ambar")!r})
assert "pyvista" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert_same(sphere(), ambar.read_mesh(tmp_path / "second.ambar"))
