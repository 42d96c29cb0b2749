"""Parts of meshes: chosen arrays and blocks, with their bytes alone; bounds; PyVista; HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.cli import main
from tests.helpers.range_server import RangeServer

pytest.importorskip("pyvista")

import pyvista as pv

from tests.helpers.mesh.comparison import assert_same
from tests.helpers.mesh.samples import blocks, collection, table

LOOP: dict[str, Any] = {}
LOOP["a"] = [LOOP]


def grid() -> Any:
    rng = np.random.default_rng(0)
    mesh = pv.ImageData(dimensions=(40, 40, 40)).to_tetrahedra()
    mesh.clear_data()
    for name in "abc":
        mesh.point_data[name] = rng.random(mesh.n_points)
        mesh.cell_data[name] = rng.random(mesh.n_cells)
    mesh.point_data["small"] = np.arange(mesh.n_points) % 2 == 0
    mesh.field_data["time"] = [0.5]
    return mesh


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("meshes") / "grid.ambar"
    ambar.write_mesh(grid(), path, fsync=False)
    return path


def test_chosen_arrays_are_read(path: Path) -> None:
    mesh = ambar.read_mesh(path, point_data=["b"], cell_data=[])
    assert mesh.point_data.keys() == ["b"]
    assert mesh.cell_data.keys() == []
    assert mesh.field_data.keys() == ["time"]
    assert (mesh["b"] == grid().point_data["b"]).all()
    assert ambar.open_mesh(path).read(point_data=[], field_data=[]).array_names == ["a", "b", "c"]


def test_what_there_is_is_known_without_reading(path: Path) -> None:
    mesh = ambar.open(path)
    assert isinstance(mesh, ambar.Mesh)
    assert mesh.type == "UnstructuredGrid"
    assert mesh.blocks == []
    assert mesh.user_dict == {}
    found = {(array.association, array.name): array for array in mesh.arrays}
    assert found["cell", "c"].dtype == "float64"
    assert found["cell", "c"].shape == (grid().n_cells,)
    assert found["cell", "c"].block == ()
    assert found["field", "time"].shape == (1,)
    assert "UnstructuredGrid" in repr(mesh)
    assert "time" in repr(mesh)


def test_arrays_have_the_space_they_take(path: Path) -> None:
    mesh = ambar.open_mesh(path)
    found = {(array.association, array.name): array for array in mesh.arrays}
    array = found["cell", "b"]
    assert array.dtype == "float64"
    assert array.shape == (grid().n_cells,)
    assert array.nbytes == 8 * grid().n_cells
    stored = mesh.store[array.paths[0]]
    assert array.stored_bytes == stored.stored_bytes
    assert array.codecs == stored.codecs
    assert array.ratio == array.nbytes / array.stored_bytes
    assert array.chunk_count > 1
    assert "crc32c" in array.codecs
    lines = [" ".join(line.split()) for line in repr(array).splitlines()]
    assert lines[:3] == [
        "<ambar.MeshArray> cell 'b'",
        f"Shape: ({grid().n_cells},)",
        "Dtype: float64",
    ]
    geometry = {array.name: array for array in mesh.geometry}
    assert geometry["cells/corners"].paths == ("cells/corners",)
    assert geometry["points/lattice/0"].paths == ()  # in the description
    every = [*mesh.arrays, *mesh.geometry]
    assert {path for array in every for path in array.paths} == set(mesh.store) - {"description"}


def test_only_the_bytes_of_chosen_arrays_are_read(path: Path) -> None:
    with RangeServer(path.parent) as server:
        url = f"{server.url}/{path.name}"
        mesh = ambar.open_mesh(url)
        server.take()
        # Not the last one, of which opening has read the end with the directory.
        mesh.read(point_data=[], cell_data=["a"], field_data=[])
        taken = [what.removeprefix("bytes=").split("-") for what in server.take()]
        read = sum(int(last) - int(first) + 1 for first, last in taken)
    geometry = mesh.store["cells/corners"].stored_bytes
    column = next(
        array.stored_bytes
        for array in mesh.arrays
        if (array.association, array.name) == ("cell", "a")
    )
    assert column <= read < 1.02 * (geometry + column) + 4096


def test_meshes_are_read_over_http(path: Path) -> None:
    with RangeServer(path.parent) as server:
        url = f"{server.url}/{path.name}"
        assert_same(grid(), ambar.read_mesh(url, storage_options={"timeout": "10s"}))
        assert ambar.open_mesh(url).type == "UnstructuredGrid"


def test_blocks_are_read_by_number_and_name(tmp_path: Path) -> None:
    mesh = blocks()
    ambar.write_mesh(mesh, tmp_path / "b.ambar")
    opened = ambar.open_mesh(tmp_path / "b.ambar")
    assert opened.blocks == ["žluť / sphere", "Block-01", "Block-02", "Block-03"]
    (normals,) = [array for array in opened.arrays if array.name == "Normals"]
    assert (normals.association, normals.dtype) == ("point", "float32")
    assert (normals.shape, normals.block) == ((mesh[0].n_points, 3), (0,))
    assert ambar.read_mesh(tmp_path / "b.ambar", block=0) == mesh[0]
    assert opened.read(block="žluť / sphere") == mesh[0]
    inner = opened.read(block=(2, "an image"))
    assert type(inner) is pv.ImageData
    assert opened.read(block=1) is None
    assert opened.read(block=-1).n_blocks == 0
    with pytest.raises(KeyError, match="no block 'nothing like it'; available: 4 blocks, named"):
        opened.read(block="nothing like it")
    with pytest.raises(KeyError, match="no block 4; available: 4 blocks"):
        opened.read(block=4)
    with pytest.raises(KeyError, match="no block 0; available: 0 blocks"):
        opened.read(block=(0, 0))


def test_blocks_of_collections_are_read(tmp_path: Path) -> None:
    ambar.write_mesh(collection(), tmp_path / "c.ambar")
    piece = ambar.read_mesh(tmp_path / "c.ambar", block=("parts", 0))
    assert_same(collection().GetPartitionedDataSet(0).GetPartitionAsDataObject(0), piece)


def test_columns_of_a_table_are_chosen(tmp_path: Path) -> None:
    ambar.write_mesh(table(), tmp_path / "t.ambar")
    read = ambar.read_mesh(tmp_path / "t.ambar", cell_data=["uv", "names"])
    assert [read.GetRowData().GetAbstractArray(i).GetName() for i in range(2)] == ["uv", "names"]
    assert read.GetRowData().GetNumberOfArrays() == 2


def test_arrays_that_there_are_not(path: Path) -> None:
    with pytest.raises(KeyError, match=r"no array 'd' in point data; available: 'a', "):
        ambar.read_mesh(path, point_data=["a", "d"])


def test_stores_of_another_kind_are_refused(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_array("a", np.arange(3))
    with pytest.raises(ambar.UnsupportedError, match="meshes or cells, found the kind 'arrays'"):
        pv.read(tmp_path / "x.ambar")
    with pytest.raises(ValueError, match=r"x.ambar: /: expected a mesh, found the kind 'arrays'"):
        ambar.read_mesh(tmp_path / "x.ambar")
    with pytest.raises(FileNotFoundError):
        ambar.read_mesh(tmp_path / "nothing.ambar")


@pytest.mark.parametrize("bound", [1e-3, "1e-3 of range", {"a": 1e-3}, {"*": 1e-3, "b": 1e-6}])
def test_error_bounds_hold(bound: Any, tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(50, 40, 30))
    x, y, z = mesh.points.T
    mesh["a"] = np.sin(x / 9) * np.cos(y / 7) + z / 30
    mesh["b"] = mesh["a"] * 2
    mesh["b"][5] = np.nan
    mesh["n"] = np.arange(mesh.n_points)
    ambar.write_mesh(mesh, tmp_path / "e.ambar", error_bound=bound)
    read = ambar.read_mesh(tmp_path / "e.ambar")
    spread = 1e-3 * np.ptp(mesh["a"]) if isinstance(bound, str) else 1e-3
    assert 0 < np.abs(read["a"] - mesh["a"]).max() <= spread
    if isinstance(bound, dict):
        most = bound.get("b", 0)
        assert np.nanmax(np.abs(read["b"] - mesh["b"])) <= most
    assert np.isnan(read["b"][5])
    assert (read["n"] == mesh["n"]).all()
    sizes = {array.name: array for array in ambar.open_mesh(tmp_path / "e.ambar").arrays}
    assert sizes["a"].ratio > 10
    assert sizes["a"].shape == (30, 40, 50)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_bound": {"small": 1e-3}}, "'small' has values of uint8; only float32"),
        ({"user_dict": {"a": object()}}, "user_dict must be representable in JSON"),
        ({"user_dict": {"a": [{1: 2}]}}, "user_dict must be representable in JSON: key 1"),
        ({"user_dict": LOOP}, "user_dict must be representable in JSON: Circular"),
        ({"user_dict": ["a"]}, "user_dict is a mapping, not a list"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        ambar.write_mesh(grid(), tmp_path / "x.ambar", **options)
    assert not (tmp_path / "x.ambar").exists()


def test_an_error_bound_of_an_array_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r'"d", but such an array does not exist;.* available: '):
        ambar.write_mesh(grid(), tmp_path / "x.ambar", error_bound={"d": 1e-3})
    assert not (tmp_path / "x.ambar").exists()


def test_pyvista_reads_and_writes(tmp_path: Path) -> None:
    mesh = grid()
    mesh.save(tmp_path / "x.ambar", profile="fast", fsync=False)
    mesh.save(tmp_path / "x.ambar")
    assert pv.read(tmp_path / "x.ambar")["small"].dtype == bool
    assert pv.read(tmp_path / "x.ambar", point_data=["a"], cell_data=[]).array_names == [
        "a",
        "time",
    ]
    mesh.ambar.write(tmp_path / "y.ambar")
    assert_same(ambar.read_mesh(tmp_path / "y.ambar"), mesh)
    with pytest.raises(FileExistsError):
        mesh.ambar.write(tmp_path / "y.ambar")


def test_pyvista_has_a_reader_with_array_selection(path: Path) -> None:
    reader = pv.get_reader(path)
    assert isinstance(reader, pv.BaseReader)
    assert reader.point_array_names == ["a", "b", "c", "small"]
    assert reader.cell_array_names == ["a", "b", "c"]
    reader.disable_all_point_arrays()
    reader.enable_point_array("c")
    reader.disable_cell_array("b")
    mesh = reader.read()
    assert mesh.point_data.keys() == ["c"]
    assert mesh.cell_data.keys() == ["a", "c"]
    assert reader.point_data == ["c"]
    reader.point_data = ["a"]
    reader.field_data = []
    reader.threads = 1
    reader.show_progress()
    assert reader.read().point_data.keys() == ["a"]
    with pytest.raises(KeyError, match="no point array 'd'"):
        reader.enable_point_array("d")


def test_pyvista_reads_blocks(tmp_path: Path) -> None:
    ambar.write_mesh(blocks(), tmp_path / "b.ambar")
    assert pv.read(tmp_path / "b.ambar", block=0) == blocks()[0]


def test_info_of_meshes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as code:
        main(["info", str(path)])
    assert not code.value.code
    output = capsys.readouterr().out
    assert "Type:    UnstructuredGrid" in output
    with pytest.raises(SystemExit):
        main(["info", str(path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["type"] == "UnstructuredGrid"
    mesh = ambar.open_mesh(path)
    assert found["arrays"] == [array.to_dict() for array in mesh.arrays]
    assert found["geometry"] == [array.to_dict() for array in mesh.geometry]
