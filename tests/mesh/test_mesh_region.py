"""Cells that touch a box: those that VTK finds, with their points and values; reordered meshes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.store.array import Array
from tests.helpers.command_line import run

pytest.importorskip("pyvista")

import pyvista as pv
from vtkmodules import vtkCommonCore, vtkCommonDataModel

from tests.helpers.mesh import descriptions as mesh_descriptions
from tests.helpers.mesh.samples import (
    CELLS,
    DATASETS,
    partitioned,
    rectilinear,
    structured,
    table,
    with_every_array,
)

IDS = ("vtkOriginalPointIds", "vtkOriginalCellIds")


def sample(name: str) -> Any:
    """Return a sample with arrays of all kinds, none of whose cells is hidden."""
    mesh = with_every_array(DATASETS[name]())
    for data in (mesh.GetPointData(), mesh.GetCellData()):
        data.RemoveArray("vtkGhostType")
        data.RemoveArray("vtkOriginalCellIds")  # which PyVista's to_tetrahedra adds
    return mesh


def boxes(mesh: Any, count: int = 6) -> list[ambar.Box]:
    """Return boxes in and around a mesh: parts of it, a single point, all, and one outside."""
    rng = np.random.default_rng(1)
    lo, hi = np.array(mesh.GetBounds()).reshape(3, 2).T
    found = [ambar.Box(*np.sort(lo + (hi - lo) * rng.random((2, 3)), axis=0)) for _ in range(count)]
    corner = mesh.GetPoint(0)
    return [
        *found,
        ambar.Box(corner, corner),
        ambar.Box((None,) * 3, (None,) * 3),
        ambar.Box((None, None, hi[2]), (None,) * 3),
        ambar.Box(list(hi + 1), list(hi + 2)),
    ]


def touching(mesh: Any, box: ambar.Box) -> list[int]:
    """Return the cells whose bounds touch a box, by VTK's bounds of each cell."""
    lo = [-np.inf if value is None else value for value in box.lo]
    hi = [np.inf if value is None else value for value in box.hi]
    found, bounds, ids = [], [0.0] * 6, vtkCommonCore.vtkIdList()
    for cell in range(mesh.GetNumberOfCells()):
        mesh.GetCellPoints(cell, ids)
        mesh.GetCellBounds(cell, bounds)
        if ids.GetNumberOfIds() and all(
            bounds[2 * a] <= hi[a] and bounds[2 * a + 1] >= lo[a] for a in range(3)
        ):
            found.append(cell)
    return found


def ids_of(part: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that points and cells of a part had."""
    points, cells = (
        data.GetArray(name)
        for data, name in zip((part.GetPointData(), part.GetCellData()), IDS, strict=True)
    )
    assert points.GetDataType() == cells.GetDataType() == vtkCommonCore.VTK_ID_TYPE
    return np.array(points, np.int64), np.array(cells, np.int64)


def corners_of(mesh: Any, cell: int) -> tuple[list[int], list[list[int]]]:
    """Return the numbers of a cell's points, and of those of its faces where it is a polyhedron."""
    ids = vtkCommonCore.vtkIdList()
    mesh.GetCellPoints(cell, ids)
    faces = []
    if mesh.GetCellType(cell) == 42:
        made = mesh.GetCell(cell)
        for number in range(made.GetNumberOfFaces()):
            face = made.GetFace(number).GetPointIds()
            faces.append([face.GetId(i) for i in range(face.GetNumberOfIds())])
    return [ids.GetId(i) for i in range(ids.GetNumberOfIds())], faces


def values_of(array: Any) -> list[Any]:
    """Return the tuples of a VTK array, numbers as their bytes."""
    count, components = array.GetNumberOfTuples(), array.GetNumberOfComponents()
    if array.GetDataType() in (1, 13):  # bits, strings
        flat = [array.GetValue(i) for i in range(count * components)]
        return [flat[i * components : (i + 1) * components] for i in range(count)]
    plain = getattr(array, "ToAOSDataArray", lambda: array)()
    raw = np.frombuffer(plain, np.uint8).reshape(count, -1) if count else np.empty((0, 1), np.uint8)
    return [row.tobytes() for row in raw]


def assert_part(mesh: Any, part: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check that a part has points, cells and values of a mesh; return which."""
    points, cells = ids_of(part)
    assert len(points) == part.GetNumberOfPoints()
    assert len(cells) == part.GetNumberOfCells()
    for new, old in enumerate(points):
        assert part.GetPoint(new) == mesh.GetPoint(old)
    for new, old in enumerate(cells):
        assert part.GetCellType(new) == mesh.GetCellType(old)
        (corners, faces), (before, faces_before) = corners_of(part, new), corners_of(mesh, old)
        assert [points[corner] for corner in corners] == before
        assert [[points[corner] for corner in face] for face in faces] == faces_before
    for ids, one, two in (
        (points, mesh.GetPointData(), part.GetPointData()),
        (cells, mesh.GetCellData(), part.GetCellData()),
    ):
        assert one.GetNumberOfArrays() == two.GetNumberOfArrays() - 1
        for index in range(one.GetNumberOfArrays()):
            arrays = one.GetAbstractArray(index), two.GetAbstractArray(index)
            assert arrays[0].GetName() == arrays[1].GetName()
            assert arrays[0].GetDataType() == arrays[1].GetDataType()
            before = values_of(arrays[0])
            assert values_of(arrays[1]) == [before[i] for i in ids]
        assert one.GetScalars().GetName() == two.GetScalars().GetName()
    return points, cells


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_cells_that_touch_are_those_of_vtk(name: str, reorder: bool, tmp_path: Path) -> None:
    mesh, path = sample(name), tmp_path / "x.ambar"
    ambar.write_mesh(mesh, path, fsync=False, reorder=reorder)
    store = ambar.open_store(path)
    for box in boxes(mesh):
        part = ambar.Mesh(store).read(region=box, original_ids=True, wrap=False)
        points, cells = assert_part(mesh, part)
        assert sorted(cells) == touching(mesh, box)
        used = {corner for cell in cells for corner in corners_of(mesh, cell)[0]}
        assert sorted(points) == sorted(used)
        if not reorder:
            assert (np.diff(cells) > 0).all()
            assert (np.diff(points) > 0).all()


@pytest.mark.parametrize("reorder", [False, True])
def test_parts_are_what_pyvista_extracts(reorder: bool, tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(12, 11, 10)).to_tetrahedra()
    mesh["x"] = np.random.default_rng(0).random(mesh.n_points)
    mesh.save(tmp_path / "x.ambar", reorder=reorder)
    bounds = (2.5, 4.0, 3.3, 6.1, 1.0, 1.5)
    box = ambar.Box(bounds[::2], bounds[1::2])
    part = pv.read(tmp_path / "x.ambar", region=box, original_ids=True)
    found = np.sort(mesh.find_cells_within_bounds(bounds))
    assert sorted(part[IDS[1]]) == found.tolist()
    expected = mesh.extract_cells(found)
    if not reorder:
        assert (part.points == expected.points).all()
        assert (part.cells == expected.cells).all()
        assert (part["x"] == expected["x"]).all()
    assert part.volume == pytest.approx(expected.volume)
    reader = pv.get_reader(tmp_path / "x.ambar")
    assert reader.region is None
    assert not reader.original_ids
    reader.region = box
    assert reader.read().n_cells == len(found)


def turned() -> Any:
    mesh = pv.ImageData(dimensions=(7, 6, 5), spacing=(0.5, 2, 1), origin=(3, -2, 1))
    angle = 0.5
    cos, sin = np.cos(angle), np.sin(angle)
    mesh.direction_matrix = [[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]
    return mesh


def mirrored() -> Any:
    mesh = vtkCommonDataModel.vtkImageData()
    mesh.SetExtent(-1, 3, 2, 5, 0, 2)
    mesh.SetOrigin(0.1, -2.5, 7)
    mesh.SetSpacing(1 / 3, 2, 0.7)
    mesh.SetDirectionMatrix([0, -1, 0, 1, 0, 0, 0, 0, 1])
    return mesh


def plain() -> Any:
    return pv.ImageData(dimensions=(7, 6, 40), spacing=(0.1, 2, 1 / 3), origin=(3, -2, 1))


def slice_of_image() -> Any:
    return pv.ImageData(dimensions=(7, 1, 5))


@pytest.mark.parametrize(
    "make",
    [plain, mirrored, turned, slice_of_image, rectilinear, structured],
    ids=lambda f: f.__name__,
)
def test_grids_are_cut_to_an_extent(make: Any, tmp_path: Path) -> None:
    mesh = pv.wrap(make())
    mesh.point_data["p"] = np.random.default_rng(0).random(mesh.n_points)
    mesh.cell_data["v"] = np.random.default_rng(1).random((mesh.n_cells, 3))
    mesh.point_data["names"] = [f"point {number}" for number in range(mesh.n_points)]
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False, reorder=True)
    store = ambar.open_store(tmp_path / "x.ambar")
    cells_of = np.arange(mesh.n_cells).reshape([max(n - 1, 1) for n in mesh.dimensions[::-1]])
    for box in boxes(mesh):
        part = ambar.Mesh(store).read(region=box, original_ids=True, wrap=False)
        assert part.GetClassName().removeprefix("vtk") in type(mesh).__name__
        mesh.point_data.active_scalars_name = "p"
        mesh.cell_data.active_scalars_name = None
        points, cells = ids_of(part)
        expected = touching(mesh, box)
        assert set(expected) <= set(cells)
        if not expected and make is not turned:
            assert part.GetNumberOfPoints() == part.GetNumberOfCells() == 0
            continue
        for new, old in enumerate(points):
            assert part.GetPoint(new) == mesh.GetPoint(old)
            assert part.GetPointData().GetAbstractArray("names").GetValue(new) == f"point {old}"
        for new, old in enumerate(cells):
            assert [points[i] for i in corners_of(part, new)[0]] == corners_of(mesh, old)[0]
        if len(cells):
            assert (np.array(part.GetPointData().GetArray("p")) == mesh["p"][points]).all()
            assert (np.array(part.GetCellData().GetArray("v")) == mesh.cell_data["v"][cells]).all()
        places = np.stack(np.nonzero(np.isin(cells_of, expected)))
        if make is not turned:  # nothing smaller has them all
            sizes = np.ptp(places, axis=1) + 1
            assert len(cells) == np.prod(sizes)


def test_a_part_of_an_image_is_what_vtk_extracts(tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(30, 20, 10))
    mesh["a"] = np.arange(mesh.n_points, dtype=np.float32)
    mesh.cell_data["b"] = np.arange(mesh.n_cells)
    mesh.save(tmp_path / "x.ambar")
    part = pv.read(tmp_path / "x.ambar", region=ambar.Box((3.5, 4, 0), (7.5, 6.5, 0.5)))
    expected = mesh.extract_subset((3, 8, 3, 7, 0, 1), rebase_coordinates=False)
    assert part.extent == (3, 8, 3, 7, 0, 1)
    assert (part.points == expected.points).all()
    assert (part["a"] == expected["a"]).all()
    assert (part["b"] == expected["b"]).all()


def test_points_without_cells_are_those_inside(tmp_path: Path) -> None:
    mesh = pv.PointSet(np.random.default_rng(3).random((500, 3)).astype(np.float32))
    mesh["x"] = np.arange(500)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    box = ambar.Box((0.1, 0.2, None), (0.7, 0.9, 0.5))
    part = ambar.read_mesh(tmp_path / "x.ambar", region=box)
    inside = ((mesh.points >= [0.1, 0.2, -np.inf]) & (mesh.points <= [0.7, 0.9, 0.5])).all(axis=1)
    assert part["x"].tolist() == np.flatnonzero(inside).tolist()
    assert (part.points == mesh.points[inside]).all()


@pytest.mark.parametrize("reorder", [False, True])
def test_every_block_is_cut(reorder: bool, tmp_path: Path) -> None:
    ambar.write_mesh(partitioned(), tmp_path / "p.ambar", reorder=reorder)
    box = ambar.Box((0, 0, 0), (0.9, 20, 20))
    mesh = partitioned()
    parts = ambar.read_mesh(tmp_path / "p.ambar", region=box)
    assert parts.GetNumberOfPartitions() == 3
    for number in (0, 2):
        whole = mesh.GetPartition(number)
        assert parts.GetPartition(number).GetNumberOfCells() == len(touching(whole, box))
    assert parts.GetPartition(1) is None
    alone = ambar.read_mesh(tmp_path / "p.ambar", region=box, block=0)
    assert alone.n_cells == parts.GetPartition(0).GetNumberOfCells()


def test_a_table_among_blocks_stays_whole(tmp_path: Path) -> None:
    mesh = vtkCommonDataModel.vtkMultiBlockDataSet()
    mesh.SetNumberOfBlocks(2)
    mesh.SetBlock(0, table())
    mesh.SetBlock(1, pv.Sphere())
    ambar.write_mesh(mesh, tmp_path / "m.ambar", fsync=False)
    store = ambar.open_store(tmp_path / "m.ambar")
    part = ambar.Mesh(store).read(region=ambar.Box((9, 9, 9), (10, 10, 10)), wrap=False)
    assert part.GetBlock(0).GetNumberOfRows() == 9
    assert part.GetBlock(1).GetNumberOfCells() == 0


@pytest.mark.parametrize("name", CELLS)
def test_reordering_changes_the_order_alone(name: str, tmp_path: Path) -> None:
    mesh = sample(name)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False, reorder=True)
    store = ambar.open_store(tmp_path / "x.ambar")
    read = ambar.Mesh(store).read(original_ids=True, wrap=False)
    points, cells = assert_part(mesh, read)
    assert sorted(points) == list(range(mesh.GetNumberOfPoints()))
    assert sorted(cells) == list(range(mesh.GetNumberOfCells()))
    assert not ambar.Mesh(store).read(wrap=False).GetPointData().HasArray(IDS[0])
    if name.startswith("tetrahedra"):
        assert keys_of(mesh, cells) == sorted(keys_of(mesh, cells))
        corners = np.concatenate([corners_of(read, i)[0] for i in range(len(cells))])
        _, first = np.unique(corners, return_index=True)
        assert (np.diff(first) > 0).all()
        before, after = (
            np.asarray(each.GetCells().GetConnectivityArray()) for each in (mesh, read)
        )
        assert before.dtype == after.dtype


def keys_of(mesh: Any, cells: np.ndarray) -> list[int]:
    """Return the places of cells' centres on the curve, bit by bit."""
    centres = []
    for cell in cells:
        bounds = np.array(mesh.GetCell(cell).GetBounds()).reshape(3, 2)
        centres.append(bounds.mean(axis=1))
    low = np.min(centres, axis=0)
    side = np.max(np.max(centres, axis=0) - low)
    keys = []
    for centre in centres:
        steps = ((centre - low) * ((2**21 - 1) / side)).astype(int).tolist()
        bits = ((bit, axis) for bit in range(21) for axis in range(3))
        keys.append(sum((steps[axis] >> bit & 1) << (3 * bit + axis) for bit, axis in bits))
    return keys


def scattered(cells: int = 60_000) -> Any:
    """Return tetrahedra, hexahedra and vertices in no order, in a cube of side 1."""
    grid = pv.ImageData(dimensions=(28, 28, 28), spacing=(1 / 27,) * 3)
    parts = [grid.to_tetrahedra(), grid.cast_to_unstructured_grid()]
    mesh = pv.merge(parts)
    order = np.random.default_rng(0).permutation(mesh.n_cells)[:cells]
    mixed = mesh.extract_cells(order)
    mixed.clear_data()
    shuffled = np.random.default_rng(1).permutation(mixed.n_cells)
    made = pv.UnstructuredGrid()
    made.SetPoints(mixed.GetPoints())
    made.Allocate(mixed.n_cells)
    for cell in shuffled:
        ids = mixed.GetCell(cell).GetPointIds()
        made.InsertNextCell(mixed.GetCellType(cell), ids)
    made.cell_data["value"] = np.random.default_rng(2).random(made.n_cells)
    made.point_data["height"] = made.points[:, 2].astype(np.float64)
    return made


@pytest.fixture(scope="module")
def large() -> Any:
    return scattered()


def test_chunks_of_several_sizes_are_found_by_the_index(large: Any, tmp_path: Path) -> None:
    ambar.write_mesh(large, tmp_path / "x.ambar", fsync=False, reorder=True)
    opened = ambar.open_mesh(tmp_path / "x.ambar")
    about, _ = mesh_descriptions.plain(opened.store)
    assert about["index"]["rows"] < large.n_cells / 20
    for lo, hi in (((0.1, 0.1, 0.1), (0.2, 0.3, 0.2)), ((0.4, 0, 0.9), (0.41, 1, 1))):
        part = opened.read(region=ambar.Box(lo, hi), original_ids=True)
        cells = part[IDS[1]]
        bounds = [edge for pair in zip(lo, hi, strict=True) for edge in pair]
        assert np.sort(cells).tolist() == np.sort(large.find_cells_within_bounds(bounds)).tolist()
        assert (part.cell_data["value"] == large.cell_data["value"][cells]).all()
        assert (part["height"] == large["height"][part[IDS[0]]]).all()
        assert (part.celltypes == large.celltypes[cells]).all()
        assert (part.points == large.points[part[IDS[0]]]).all()


def test_parts_of_an_unordered_mesh_are_picked_from_whole_arrays(
    large: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells are in all chunks: reading these row by row took seven times a full read."""
    ambar.write_mesh(large, tmp_path / "x.ambar", fsync=False)
    keys: dict[str, list[Any]] = {}
    read = Array.read

    def noted(self: Array, key: Any = ..., **options: Any) -> np.ndarray:
        keys.setdefault(self.path, []).append(key)
        return read(self, key, **options)

    monkeypatch.setattr(Array, "read", noted)
    box = ambar.Box((0.2, 0.2, 0.2), (0.5, 0.5, 0.5))
    part = ambar.read_mesh(tmp_path / "x.ambar", region=box, original_ids=True)
    monkeypatch.undo()
    assert 0 < part.n_cells < large.GetNumberOfCells()
    assert_part(large, part)
    assert "points" in keys
    for path, each in keys.items():
        assert len(each) == 1, path
        parts = each[0] if isinstance(each[0], tuple) else (each[0],)
        assert not any(isinstance(one, np.ndarray) for one in parts), path


def test_series_are_reordered_alike(tmp_path: Path) -> None:
    mesh = sample("tetrahedra")
    with ambar.open_mesh_series(tmp_path / "s.ambar", "w-", reorder=True, fsync=False) as series:
        series.add(mesh, 0.0)
        before = ambar.open_store(tmp_path / "s.ambar").usage()["live"]
        series.add(mesh, 1.0)
    with ambar.open_mesh_series(tmp_path / "s.ambar", "a", reorder=True, fsync=False) as series:
        series.add(mesh, 2.0)
    read = ambar.open_mesh_series(tmp_path / "s.ambar")
    assert read.store.usage()["live"] < 1.5 * before
    box = boxes(mesh)[0]
    part = read[2].read(region=box, original_ids=True)
    assert sorted(part[IDS[1]]) == touching(mesh, box)


def test_arrays_of_the_same_name_give_way_to_the_numbers(tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(4, 4, 4)).to_tetrahedra()
    own = mesh[IDS[1]].copy()
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False, reorder=True)
    read = ambar.read_mesh(tmp_path / "x.ambar", original_ids=True)
    assert (ambar.read_mesh(tmp_path / "x.ambar")[IDS[1]] == own[read[IDS[1]]]).all()
    assert sorted(read[IDS[1]]) == list(range(mesh.n_cells))


def test_the_command_line_reorders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = pv.Sphere()
    mesh.save(tmp_path / "s.stl")
    mesh.save(tmp_path / "s.vtp")
    command = ("convert", tmp_path / "s.vtp", tmp_path / "s.ambar", "--reorder")
    assert run(capsys, *command)[0] == 0
    assert "index" in mesh_descriptions.plain(ambar.open_store(tmp_path / "s.ambar"))[0]
    (tmp_path / "x.nc").touch()
    code, _, errors = run(capsys, "convert", tmp_path / "x.nc", tmp_path / "n.ambar", "--reorder")
    assert code != 0
    assert "--reorder does not apply to the kind 'collection'" in " ".join(errors.split())
    with pytest.raises(ValueError, match="reorder does not apply"):
        ambar.convert(tmp_path, tmp_path / "n.ambar", reorder=True)


def test_cells_without_a_place_touch_nothing(tmp_path: Path) -> None:
    mesh = sample("tetrahedra")
    points = np.asarray(mesh.GetPoints().GetData())
    points[5] = np.nan
    points[7] = [np.inf, 0, 0]
    empty = vtkCommonDataModel.vtkUnstructuredGrid()
    for name, made in (("nan", mesh), ("empty", empty)):
        path = tmp_path / f"{name}.ambar"
        ambar.write_mesh(made, path, fsync=False, reorder=True)
        part = ambar.read_mesh(path, region=ambar.Box((2, 2, 2), (3, 3, 3)))
        expected = pv.ImageData(dimensions=(14, 13, 12)).to_tetrahedra()
        count = len(touching(expected, ambar.Box((2, 2, 2), (3, 3, 3)))) if name == "nan" else 0
        assert part.n_cells == count


def test_boxes_count_from_a_center(tmp_path: Path) -> None:
    ambar.write_mesh(pv.Sphere(center=(5, 6, 7)), tmp_path / "x.ambar", fsync=False)
    box = ambar.Box((-0.1, -0.1, 0), (0.1, 0.1, None), center=(5, 6, 7))
    other = ambar.Box((4.9, 5.9, 7), (5.1, 6.1, None))
    found = [ambar.read_mesh(tmp_path / "x.ambar", region=each) for each in (box, other)]
    assert 0 < found[0].n_cells == found[1].n_cells < 1000


@pytest.mark.parametrize(
    "made", [pv.PolyData, pv.UnstructuredGrid, pv.PointSet, pv.StructuredGrid, pv.ImageData]
)
@pytest.mark.parametrize("reorder", [False, True])
def test_of_nothing_no_part_touches(made: Any, reorder: bool, tmp_path: Path) -> None:
    ambar.write_mesh(made(), tmp_path / "x.ambar", fsync=False, reorder=reorder)
    box = ambar.Box((-1, -1, -1), (1, 1, 1))
    part = ambar.read_mesh(tmp_path / "x.ambar", region=box, original_ids=True)
    assert type(part) is made
    assert part.n_cells == 0
