"""Rows of one array of a mesh, and boxes, with their bytes alone: files, HTTP, object stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.range_server import RangeServer

pytest.importorskip("pyvista")

import pyvista as pv

from tests.helpers.mesh.samples import blocks, every_array, image, table, with_every_array

ROWS = [
    None,
    slice(None),
    slice(5, 9),
    slice(100, 9000, 7),
    slice(-5, None),
    slice(9000, 3, -11),
    slice(None, None, -1),
    slice(7, 7),
    slice(3000, 3004),
    [5, -1, 3000, 5],
    [],
    np.array([17]),
]


def grid() -> Any:
    """Return a mesh of tetrahedra, whose arrays have many chunks each."""
    rng = np.random.default_rng(0)
    mesh = pv.ImageData(dimensions=(50, 50, 50)).to_tetrahedra()
    mesh.clear_data()
    for name in "abc":
        mesh.point_data[name] = rng.random(mesh.n_points)
        mesh.cell_data[name] = rng.random(mesh.n_cells)
    mesh.cell_data["vector"] = rng.random((mesh.n_cells, 3))
    return mesh


@pytest.fixture(scope="module")
def mesh() -> Any:
    return grid()


@pytest.fixture(scope="module")
def folder(mesh: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the mesh, and with it reordered."""
    folder = tmp_path_factory.mktemp("meshes")
    ambar.write_mesh(mesh, folder / "grid.ambar", fsync=False)
    ambar.write_mesh(mesh, folder / "sorted.ambar", fsync=False, reorder=True)
    return folder


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_rows_are_those_of_numpy(rows: Any, tmp_path: Path) -> None:
    image = pv.ImageData(dimensions=(40, 30, 20))
    rng = np.random.default_rng(0)
    for mesh in (image, image.cast_to_unstructured_grid()):
        for data, count in ((mesh.point_data, mesh.n_points), (mesh.cell_data, mesh.n_cells)):
            data["one"] = rng.random(count)
            data["three"] = rng.random((count, 3)).astype(np.float32)
            data["bool"] = rng.random(count) > 0.5
            data["complex"] = rng.random(count) + 1j * rng.random(count)
            data["text"] = [f"value {n}" for n in range(count)]
        mesh.save(tmp_path / "x.ambar")
        opened = ambar.open_mesh(tmp_path / "x.ambar")
        for association in ("point", "cell"):
            data = getattr(mesh, f"{association}_data")
            for name in list(data):
                read = opened.read_array(name, association=association, rows=rows)
                expected = np.asarray(data[name])[slice(None) if rows is None else rows]
                assert read.dtype == expected.dtype or name == "text"
                assert read.shape == expected.shape
                assert (read == expected).all()
                assert read.flags.c_contiguous


def test_rows_of_small_arrays_fields_tables_and_blocks(tmp_path: Path) -> None:
    ambar.write_mesh(with_every_array(image()), tmp_path / "i.ambar")
    opened = ambar.open_mesh(tmp_path / "i.ambar")
    for array in every_array(60, np.random.default_rng(0)):
        name = array.GetName()
        if name is None or name.startswith("vtk"):
            continue
        whole = ambar.read_mesh(tmp_path / "i.ambar").point_data[name]
        found = opened.read_array(name, association="point", rows=slice(20, 40, 3))
        if name == "bits of two components":
            assert found.shape == (7, 2)
            assert found.dtype == bool
        assert (found.ravel() == np.asarray(whole)[20:40:3].ravel()).all(), name
    assert opened.read_array("vectors", association="field", rows=slice(1, 3)).shape == (2, 3)
    ambar.write_mesh(table(), tmp_path / "t.ambar")
    vectors: Any = {"name": "vectors", "association": "field"}
    wanted: Any
    for wanted in ((0, 2), range(0, 3, 2), np.array([0, 2])):
        assert opened.read_array(**vectors, rows=wanted).shape == (2, 3)
    assert opened.read_array(**vectors, rows=[]).shape == (0, 3)
    wrong: Any
    for wrong in (2, ..., [[0, 2]]):
        with pytest.raises(ValueError, match="invalid rows of 'vectors'.*expected a slice"):
            opened.read_array(**vectors, rows=wrong)
    assert ambar.open_mesh(tmp_path / "t.ambar").read_array("names", rows=[1, 3]).tolist() == [
        "žluť 1",
        "",
    ]
    ambar.write_mesh(blocks(), tmp_path / "b.ambar")
    opened = ambar.open_mesh(tmp_path / "b.ambar")
    normals = opened.read_array("Normals", block="žluť / sphere", rows=slice(5))
    assert (normals == blocks()[0].point_data["Normals"][:5]).all()
    assert opened.read_array("sizes").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="no array 'Normals'; available: field 'sizes'; give block="):
        opened.read_array("Normals")
    with pytest.raises(KeyError, match="no block 7"):
        opened.read_array("Normals", block=7)
    with pytest.raises(KeyError, match="no array 'a'; available: "):
        opened.read_array("a", block=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": "a"}, ValueError, "point array 'a' and cell array 'a' have the same name"),
        ({"name": "d"}, KeyError, "no array 'd'; available: point 'a', "),
        (
            {"name": "vector", "association": "point"},
            KeyError,
            "no point array 'vector'",
        ),
        (
            {"name": "a", "association": "node"},
            ValueError,
            "one of 'point', 'cell', 'row', 'field'",
        ),
        ({"name": "vector", "rows": [0, 10**7]}, IndexError, "index 10000000 is outside a dim"),
        (
            {"name": "vector", "rows": "x"},
            ValueError,
            "invalid rows of .*; expected a slice, integers or bools",
        ),
        ({"name": "vector", "rows": [0.5]}, ValueError, "indices are integers, not float64"),
        ({"name": "vector", "rows": [True]}, IndexError, "a mask of 1 values"),
    ],
)
def test_rows_that_there_are_not(
    options: dict[str, Any], error: type[Exception], message: str, folder: Path
) -> None:
    with pytest.raises(error, match=message):
        ambar.open_mesh(folder / "grid.ambar").read_array(**options)


def test_a_mask_chooses_rows(mesh: Any, folder: Path) -> None:
    mask = np.random.default_rng(2).random(mesh.n_points) < 0.01
    read = ambar.open_mesh(folder / "grid.ambar").read_array("a", association="point", rows=mask)
    assert (read == mesh.point_data["a"][mask]).all()


def test_rows_are_read_without_vtk(folder: Path) -> None:
    code = (
        "import sys; sys.modules['vtkmodules'] = sys.modules['pyvista'] = None; import ambar; "
        f"mesh = ambar.open({str(folder / 'grid.ambar')!r}); "
        "print(len(mesh.read_array('a', association='cell', rows=slice(7))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"


def asked(server: RangeServer) -> int:
    """Return the bytes that a server was asked for since the last call."""
    taken = [what.removeprefix("bytes=").split("-") for what in server.take()]
    return sum(int(last) - int(first) + 1 if first else int(last) for first, last in taken)


def arrays_in(path: Path) -> dict[tuple[str, str | None], ambar.MeshArray]:
    """Return the arrays of a mesh by association and name."""
    mesh = ambar.open_mesh(path)
    return {(array.association, array.name): array for array in [*mesh.arrays, *mesh.geometry]}


def test_one_array_takes_its_own_bytes(mesh: Any, folder: Path) -> None:
    with RangeServer(folder) as server:
        opened = ambar.open_mesh(f"{server.url}/grid.ambar")
        server.take()
        read = opened.read_array("a", association="cell")
        whole = asked(server)
        assert (read == mesh.cell_data["a"]).all()
        column = arrays_in(folder / "grid.ambar")["cell", "a"]
        # Its own bytes, and no more but the index of its shard, which is among them.
        assert 0.99 * column.stored_bytes <= whole <= column.stored_bytes
        rows = slice(300_000, 300_100)
        read = opened.read_array("a", association="cell", rows=rows)
        assert (read == mesh.cell_data["a"][rows]).all()
        # One or two chunks.
        assert asked(server) < 2.5 * column.stored_bytes / column.chunk_count + 4096


def read_calls() -> int:
    """Return the bytes that this process' read calls have returned so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def test_a_box_takes_the_bytes_of_chunks_that_touch(mesh: Any, folder: Path) -> None:
    lo, hi = (10, 20, 5), (18, 26, 13)
    wanted: dict[str, Any] = {
        "region": ambar.Box(lo, hi),
        "cell_data": ["b"],
        "point_data": ["c"],
        "field_data": [],
    }
    bounds = [edge for pair in zip(lo, hi, strict=True) for edge in pair]
    found = np.sort(mesh.find_cells_within_bounds(bounds))
    for name in ("grid", "sorted"):
        opened = ambar.open_mesh(folder / f"{name}.ambar")
        part = opened.read(**wanted, original_ids=True)
        cells, points = part["vtkOriginalCellIds"], part["vtkOriginalPointIds"]
        assert np.sort(cells).tolist() == found.tolist()
        assert (part.cell_data["b"] == mesh.cell_data["b"][cells]).all()
        assert (part.point_data["c"] == mesh.point_data["c"][points]).all()
    stored = arrays_in(folder / "sorted.ambar")
    names = [("geometry", "cells/corners"), ("geometry", "points"), ("cell", "b"), ("point", "c")]
    before = read_calls()
    opened.read(**wanted)
    read = read_calls() - before
    # The box has 0.7 % of the cells, and touches a few of 288 chunks; of the points some more.
    assert read < sum(stored[name].stored_bytes for name in names) / 10
    with RangeServer(folder) as server:
        opened = ambar.open_mesh(f"{server.url}/sorted.ambar")
        server.take()
        assert opened.read(**wanted) == ambar.read_mesh(folder / "sorted.ambar", **wanted)
        # The gap between two chunks of small arrays is read with them, for fewer requests.
        assert asked(server) < (folder / "sorted.ambar").stat().st_size / 15


def test_meshes_on_an_object_store(mesh: Any, folder: Path) -> None:
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"access_key_id": "ours", "secret_access_key": "secret"}
    try:
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=keys["access_key_id"],
            aws_secret_access_key=keys["secret_access_key"],
        )
        client.create_bucket(Bucket="meshes")
        client.upload_file(str(folder / "sorted.ambar"), "meshes", "run/sorted.ambar")
        options = {"endpoint": endpoint, "region": "us-east-1", **keys}
        url = "s3://meshes/run/sorted.ambar"
        box = ambar.Box((3, 3, 3), (6, 9, 4))
        part = ambar.read_mesh(url, region=box, point_data=["a"], storage_options=options)
        here = ambar.read_mesh(folder / "sorted.ambar", region=box, point_data=["a"])
        assert part == here
        assert part.n_cells == len(mesh.find_cells_within_bounds((3, 6, 3, 9, 3, 4)))
        opened = ambar.open_mesh(url, storage_options=options)
        order = ambar.read_mesh(folder / "sorted.ambar", original_ids=True)["vtkOriginalCellIds"]
        rows = slice(1000, 2000)
        read = opened.read_array("vector", rows=rows)
        assert (read == mesh.cell_data["vector"][order[rows]]).all()
    finally:
        server.stop()
