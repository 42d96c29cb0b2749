"""Exports of meshes: files, collections of time steps, and AMR data that VTK's reader reads."""

from __future__ import annotations

import csv
import errno
import logging
import resource
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.command_line import run
from tests.helpers.paths import RAMSES, RAMSES_CASES
from tests.helpers.range_server import RangeServer
from tests.helpers.sample_outputs import amrex_sample, output

pytest.importorskip("pyvista")

import pyvista as pv
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkBitArray
from vtkmodules.vtkCommonDataModel import vtkPartitionedDataSet
from vtkmodules.vtkCommonExecutionModel import (
    vtkStreamingDemandDrivenPipeline,
)
from vtkmodules.vtkIOHDF import vtkHDFReader

from ambar.mesh.files.export import _change, _check_times
from ambar.mesh.files.pyvista_readers import MeshFile
from ambar.mesh.files.vtkhdf import AmrHdfFile
from ambar.snapshot.interop.vtk_amr import blocks_of

# None of them is a float32.
TIMES = [0.1, 0.2, 0.3, 0.4]
Make = Callable[[int], pv.DataSet]


def with_arrays(mesh: pv.DataSet, number: int) -> pv.DataSet:
    """Add an array that changes, one that stays, and vectors on cells; empty ones, too."""
    rng = np.random.default_rng(number)
    mesh.clear_data()
    for data, name, values in (
        (mesh.GetPointData(), "pressure", rng.random(mesh.n_points)),
        (mesh.GetPointData(), "still", np.arange(mesh.n_points, dtype=np.float32)),
        (mesh.GetCellData(), "velocity", rng.random((mesh.n_cells, 3))),
    ):
        array = numpy_to_vtk(values, deep=1)
        array.SetName(name)
        data.AddArray(array)
    mesh.GetFieldData().AddArray(mesh.GetPointData().GetArray("still"))
    return mesh


def tetrahedra(number: int, side: int = 6) -> pv.UnstructuredGrid:
    return with_arrays(pv.ImageData(dimensions=(side, 5, 4)).to_tetrahedra(), number)


def moving(number: int) -> pv.UnstructuredGrid:
    mesh = tetrahedra(number)
    mesh.points = mesh.points + number
    return mesh


def changing(number: int) -> pv.UnstructuredGrid:
    return tetrahedra(number, side=6 + number % 3)


def sphere(number: int) -> pv.PolyData:
    return with_arrays(pv.Sphere(theta_resolution=8 + number), number)


def image(number: int) -> pv.ImageData:
    grid = pv.ImageData(dimensions=(5, 4, 3), origin=(1, 2, 3), spacing=(0.1, 0.2, 0.3))
    return with_arrays(grid, number)


def series_of(path: Path, make: Make) -> list[pv.DataSet]:
    meshes = [make(number) for number in range(len(TIMES))]
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        for time, mesh in zip(TIMES, meshes, strict=True):
            series.add(mesh, time)
    return meshes


def steps_in(path: Path) -> Iterator[tuple[float, Any]]:
    reader = vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    for time in reader.GetOutputInformation(0).Get(key):
        reader.UpdateTimeStep(time)
        yield time, reader.GetOutputDataObject(0)


def arrays(data: Any) -> dict[str, np.ndarray]:
    found = [data.GetArray(number) for number in range(data.GetNumberOfArrays())]
    return {array.GetName(): vtk_to_numpy(array) for array in found}


def assert_equal(found: Any, mesh: Any) -> None:
    assert found.GetClassName() == mesh.GetClassName()
    found.GetFieldData().RemoveArray("Time")  # of VTK's reader
    for kind in ("GetPointData", "GetCellData", "GetFieldData"):
        one, two = arrays(getattr(found, kind)()), arrays(getattr(mesh, kind)())
        assert one.keys() == two.keys(), kind
        for name, values in two.items():
            assert one[name].dtype == values.dtype, name
            np.testing.assert_array_equal(one[name], values, err_msg=name)
    if mesh.IsA("vtkImageData"):
        for name in ("Dimensions", "Origin", "Spacing"):
            assert getattr(found, f"Get{name}")() == getattr(mesh, f"Get{name}")()
        return
    found, mesh = pv.wrap(found), pv.wrap(mesh)
    np.testing.assert_array_equal(found.points, mesh.points)
    assert found.n_cells == mesh.n_cells
    for name in ("verts", "lines", "faces", "strips", "cells", "celltypes"):
        np.testing.assert_array_equal(getattr(found, name, 0), getattr(mesh, name, 0), name)


@pytest.mark.parametrize("make", [tetrahedra, moving, changing, sphere, image])
def test_every_step_comes_back(make: Make, tmp_path: Path) -> None:
    meshes = series_of(tmp_path / "run.ambar", make)
    ambar.export(tmp_path / "run.ambar", tmp_path / "run.pvd")
    ambar.convert(tmp_path / "run.pvd", tmp_path / "again.ambar", fsync=False)
    again = ambar.open_mesh_series(tmp_path / "again.ambar")
    assert again.times == TIMES
    for stored, mesh in zip(again, meshes, strict=True):
        assert_equal(stored.read(wrap=False), mesh)


def test_a_collection_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meshes = series_of(tmp_path / "run.ambar", changing)
    assert run(capsys, "export", tmp_path / "run.ambar", tmp_path / "run.pvd")[0] == 0
    reader = pv.get_reader(tmp_path / "run.pvd")
    assert reader.time_values == TIMES
    for time, mesh in zip(TIMES, meshes, strict=True):
        reader.set_active_time_value(time)
        assert_equal(reader.read()[0], mesh)
    ambar.convert(tmp_path / "run.pvd", tmp_path / "again.ambar", fsync=False)
    assert ambar.open_mesh_series(tmp_path / "again.ambar").times == TIMES
    (tmp_path / "other" / "file").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="other"):
        ambar.export(tmp_path / "run.ambar", tmp_path / "other.pvd")
    assert not (tmp_path / "other.pvd").exists()


def assert_same_amr(found: Any, mesh: Any) -> None:
    """Raise AssertionError if blocks, values or what VTK takes for refined differ."""
    assert found.GetNumberOfLevels() >= mesh.GetNumberOfLevels()
    for level in range(mesh.GetNumberOfLevels()):
        pairs = zip(blocks_of(found, level), blocks_of(mesh, level), strict=True)
        for index, (one, two) in enumerate(pairs):
            boxes = [0] * 6, [0] * 6
            found.GetAMRBox(level, index).GetDimensions(boxes[0])
            mesh.GetAMRBox(level, index).GetDimensions(boxes[1])
            is_plane = mesh.GetGridDescription() != found.GetGridDescription()
            if is_plane:
                boxes[1][4:] = -1, 0  # VTK reads a plane as two layers of cells
            assert boxes[0] == boxes[1]
            origin = (*two.GetOrigin()[:2], -0.5) if is_plane else two.GetOrigin()
            np.testing.assert_allclose(one.GetOrigin(), origin, rtol=1e-14)
            values = arrays(one.GetCellData()), arrays(two.GetCellData())
            assert values[0].keys() == values[1].keys()
            for name in values[1]:
                expected = np.concatenate([values[1][name]] * (2 if is_plane else 1))
                np.testing.assert_array_equal(values[0][name], expected, err_msg=name)


@pytest.mark.parametrize("kind", ["plotfile", "tree", "plane", "sample"])
def test_cells_as_vtkhdf(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "plotfile":
        plotfiles.write(tmp_path / "source")
    source = {
        "sample": lambda: amrex_sample("advection_plt00006"),
        "tree": lambda: output("sedov"),
        "plane": lambda: RAMSES / "sedov2d_small" / "output_00002",
    }
    store = tmp_path / "x.ambar"
    ambar.convert(source.get(kind, lambda: tmp_path / "source")(), store, fsync=False)
    assert run(capsys, "export", store, tmp_path / "x.vtkhdf")[0] == 0
    reader = vtkHDFReader()
    reader.SetFileName(str(tmp_path / "x.vtkhdf"))
    reader.Update()
    # The ghost arrays of the one are those that VTK's BlankCells makes.
    assert_same_amr(reader.GetOutputDataObject(0), ambar.read_mesh(store))
    with pytest.raises(ambar.UnsupportedError, match=r"expected the suffix \.vtkhdf for VTK's AMR"):
        ambar.export(store, tmp_path / "x.vtu")
    with pytest.raises(ambar.UnsupportedError, match="a vtkOverlappingAMR cannot be stored"):
        ambar.convert(tmp_path / "x.vtkhdf", tmp_path / "y.ambar", fsync=False)


def test_planes_as_vtkhdf_have_their_mass(tmp_path: Path) -> None:
    source = RAMSES_CASES / "coarse_2x3_2d" / "output_00002"  # of three levels
    ambar.convert(source, tmp_path / "x.ambar", fsync=False)
    ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtkhdf")
    reader = vtkHDFReader()
    reader.SetFileName(str(tmp_path / "x.vtkhdf"))
    reader.Update()
    found = reader.GetOutputDataObject(0)
    amr = ambar.open_snapshot(tmp_path / "x.ambar").amr
    mass, count = 0.0, 0
    for level in range(found.GetNumberOfLevels()):
        for block in blocks_of(found, level):
            cells = arrays(block.GetCellData())
            are_leaves = cells["vtkGhostType"] == 0
            mass += float(cells["density"][are_leaves].sum() * np.prod(block.GetSpacing()))
            count += int(are_leaves.sum())
    assert count == 2 * len(amr)  # two layers
    assert mass == pytest.approx(amr.sum("mass"), rel=1e-12)


def test_a_run_of_cells_as_vtkhdf(tmp_path: Path) -> None:
    ambar.convert(output("sedov").parent, tmp_path / "run.ambar", fsync=False)
    ambar.export(tmp_path / "run.ambar", tmp_path / "run.vtkhdf")
    series = ambar.open_series(tmp_path / "run.ambar")
    levels = [snapshot.amr.levels for snapshot in series]
    ends = min(low for low, _ in levels), max(high for _, high in levels)
    found = steps_in(tmp_path / "run.vtkhdf")
    for (time, mesh), snapshot in zip(found, series, strict=True):
        assert time == snapshot.info.time
        expected = snapshot.amr.to_vtk(levels=ends)
        finest = mesh.GetNumberOfLevels() - 1
        assert finest == ends[1] - ends[0]
        # Levels that a step has not are there without boxes.
        missing = range(expected.GetNumberOfLevels(), finest + 1)
        assert not any(blocks_of(mesh, level) for level in missing)
        assert_same_amr(mesh, expected)


def test_times_of_exports_increase() -> None:
    with pytest.raises(
        ambar.UnsupportedError, match=r"x\.pvd: expected times that increase, found 1\.0 of step 2"
    ):
        _check_times([0.0, 1.0, 1.0], Path("x.pvd"))


def refused(tmp_path: Path, mesh: pv.DataSet, why: str) -> None:
    """Check that a mesh is not written to VTKHDF, and that nothing is left."""
    store = tmp_path / "one.ambar"
    ambar.write_mesh(mesh, store, fsync=False, mode="w")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ambar.UnsupportedError, match=why):
        ambar.export(store, tmp_path / "x.vtkhdf")
    assert sorted(tmp_path.iterdir()) == before


def test_what_vtkhdf_would_lose_is_refused(tmp_path: Path) -> None:
    for name in ("a/b", "a.b"):
        mesh = tetrahedra(0)
        mesh[name] = np.zeros(mesh.n_points)
        refused(tmp_path, mesh, f"has the name '{name}'")
    mesh = tetrahedra(0)
    bits = vtkBitArray()
    bits.SetName("flags")
    bits.SetNumberOfTuples(mesh.n_cells)
    bits.Fill(1)
    mesh.GetCellData().AddArray(bits)
    refused(tmp_path, mesh, "'flags' has bits")
    mesh = tetrahedra(0)
    mesh["words"] = np.array(["x"] * mesh.n_points)
    refused(tmp_path, mesh, "'words' has strings")
    blocks = pv.MultiBlock({"a.b": tetrahedra(0)})
    ambar.write_mesh(blocks, tmp_path / "blocks.ambar", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match="block 0 has the name 'a.b'"):
        ambar.export(tmp_path / "blocks.ambar", tmp_path / "blocks.vtkhdf")


def test_names_orders_and_ghosts_are_kept(tmp_path: Path) -> None:
    def make(number: int) -> pv.UnstructuredGrid:
        mesh = tetrahedra(number)
        rng = np.random.default_rng(number)
        mesh["ü of (x, y) 'z'"] = np.asfortranarray(rng.random((mesh.n_points, 3)))
        mesh.cell_data["vtkGhostType"] = rng.integers(0, 64, mesh.n_cells, np.uint8)
        return mesh

    meshes = series_of(tmp_path / "run.ambar", make)
    ambar.export(tmp_path / "run.ambar", tmp_path / "run.pvd")
    ambar.convert(tmp_path / "run.pvd", tmp_path / "again.ambar", fsync=False)
    for stored, mesh in zip(ambar.open_mesh_series(tmp_path / "again.ambar"), meshes, strict=True):
        assert_equal(stored.read(wrap=False), mesh)


def test_names_that_make_no_xml_are_refused(tmp_path: Path) -> None:
    for number, name in enumerate(['a "b"', "a & b", "a < b", "a > b"]):
        mesh = tetrahedra(0)
        mesh[name] = np.zeros(mesh.n_points)
        blocks = pv.MultiBlock({name: tetrahedra(0)})
        for kind, (suffix, object_) in enumerate([("vtu", mesh), ("vtm", blocks)]):
            store, target = tmp_path / f"{number}_{kind}.ambar", tmp_path / f"{number}.{suffix}"
            ambar.write_mesh(object_, store, fsync=False)
            with pytest.raises(ambar.UnsupportedError, match="VTK's XML supports names without"):
                ambar.export(store, target)
            assert not target.exists()


def test_partitions_that_vtkhdf_would_lose_are_refused(tmp_path: Path) -> None:
    parts, path = vtkPartitionedDataSet(), tmp_path / "x.ambar"
    for index, part in enumerate((pv.Sphere(), pv.Sphere(center=(1, 2, 3)))):
        parts.SetPartition(index, part)
    ambar.write_mesh(parts, path, fsync=False)
    assert ambar.export(path, tmp_path / "x.vtkhdf").left_out == {}
    for other, message in ((pv.Cube(), "partition 2 has another type"), (None, "2 is empty")):
        parts.SetPartition(2, other)  # type: ignore[arg-type]
        parts.SetNumberOfPartitions(3)
        ambar.write_mesh(parts, path, mode="w", fsync=False)
        with pytest.raises(ambar.UnsupportedError, match=rf"{message}.*hold it: \.vtpd"):
            ambar.export(path, tmp_path / "y.vtkhdf")
        assert not (tmp_path / "y.vtkhdf").exists()


def test_crashes_of_vtk_are_errors(tmp_path: Path) -> None:
    mesh = pv.Plane()
    mesh.point_data.clear()
    mesh.active_texture_coordinates = np.random.default_rng(1).random((mesh.n_points, 2))
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    with pytest.raises(OSError, match=r"killed by SIGSEGV.*choose another format"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.ply")
    mesh["names"] = [f"point {number}" for number in range(mesh.n_points)]
    data = mesh.GetPointData()
    data.SetPedigreeIds(data.GetAbstractArray("names"))
    ambar.write_mesh(mesh, tmp_path / "x.ambar", mode="w", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match="the pedigree ids 'names' are strings"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtp")


@pytest.mark.parametrize("make", [pv.PolyData, pv.UnstructuredGrid, pv.RectilinearGrid])
def test_empty_meshes_are_exported(make: Any, tmp_path: Path) -> None:
    ambar.write_mesh(make(), tmp_path / "x.ambar", fsync=False)
    ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtu")
    assert pv.read(tmp_path / "x.vtu").n_points == 0


def test_the_dictionary_of_a_mesh_is_listed_as_left_out(tmp_path: Path) -> None:
    mesh = pv.Sphere()
    mesh.user_dict["a"] = 1
    ambar.write_mesh(mesh, tmp_path / "x.ambar", user_dict={"b": 2}, fsync=False)
    assert dict(ambar.read_mesh(tmp_path / "x.ambar").user_dict) == {"a": 1, "b": 2}
    with pytest.warns(UserWarning, match="_PYVISTA_USER_DICT"):
        report = ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtu")
    assert report.left_out == {"_PYVISTA_USER_DICT": "not in the file"}


def test_runs_with_other_fields_in_a_step_are_refused(tmp_path: Path) -> None:
    file, less = h5py.File(tmp_path / "x.h5", "w"), tmp_path / "plt"
    plotfiles.write(less)
    cells = ambar.open_snapshot(less).amr
    writer = AmrHdfFile(file.create_group("VTKHDF"), [0.0, 1.0])
    writer.add(cells.to_vtk())
    with pytest.raises(ambar.UnsupportedError, match="step 1: not every step has the fields Temp"):
        writer.add(cells.to_vtk(["density"]))


def test_formats_of_shapes_alone_warn(tmp_path: Path) -> None:
    ambar.write_mesh(sphere(0), tmp_path / "x.ambar", fsync=False)
    with pytest.warns(UserWarning, match=r"x\.stl: the format does not hold .*pressure"):
        done = ambar.export(tmp_path / "x.ambar", tmp_path / "x.stl")
    assert done.left_out == dict.fromkeys(["pressure", "still", "velocity"], "not in the file")
    assert "left out: pressure, not in the file" in str(done)
    assert pv.read(tmp_path / "x.stl").n_cells == sphere(0).n_cells


@pytest.mark.filterwarnings("ignore:.*does not hold unchanged")
def test_changes_of_arrays_are_listed(tmp_path: Path) -> None:
    pytest.importorskip("meshio")
    mesh = pv.UnstructuredGrid(pv.ImageData(dimensions=(3, 2, 2)).to_tetrahedra())
    mesh["large"] = 2**60 + np.arange(mesh.n_points)
    mesh["small"] = np.arange(mesh.n_points)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    done = ambar.export(tmp_path / "x.ambar", tmp_path / "x.msh")
    assert done.left_out["small"] == "float64 in place of int64"
    assert done.left_out["large"] == "rounded to float64"
    vectors = np.array([[1.0, 4.0], [2.0, 3.0]])
    assert _change(vectors, vectors[::-1]) is None
    assert _change(vectors, np.array([[1.0, 3.0], [2.0, 4.0]])) == "other values in the file"
    assert _change(vectors, vectors * (1 + 1e-7)) == "rounded"
    assert _change(np.array([0.1, np.nan]), np.array([0.1, 0.1])) == "other values in the file"


def test_files_with_a_block_for_each_type_of_cells_are_compared(tmp_path: Path) -> None:
    """Equal data in several blocks were reported as changed, and rounded points were not."""
    pytest.importorskip("netCDF4")
    mesh = pv.UnstructuredGrid(
        np.array([4, 0, 1, 2, 3, 5, 0, 1, 2, 3, 4]),
        np.array([pv.CellType.TETRA, pv.CellType.PYRAMID]),
        np.random.default_rng(0).random((5, 3)),
    )
    mesh["p"] = np.arange(5.0) + 0.1
    mesh.cell_data["c"] = np.array([0.1, 7.0])
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    rounded = "rounded to float32 by VTK's reader of this format"
    expected = {
        "e": {"points": rounded, "c": "not in the file"},
        "dat": dict.fromkeys(["points", "p", "c"], rounded),
        "case": {
            "points": "rounded to float32",
            "p": "its name is 'p_n' in the file, rounded to float32",
            "c": "its name is 'c_c' in the file, rounded to float32",
        },
    }
    for suffix, changes in expected.items():
        with pytest.warns(UserWarning, match="does not hold unchanged"):
            done = ambar.export(tmp_path / "x.ambar", tmp_path / f"x.{suffix}")
        assert done.left_out == changes
    mesh["v"] = mesh.points.copy()
    ambar.write_mesh(mesh, tmp_path / "v.ambar", fsync=False)
    with pytest.warns(UserWarning, match="does not hold unchanged"):
        done = ambar.export(tmp_path / "v.ambar", tmp_path / "v.tec")
    assert "components are 'v_0', 'v_1', 'v_2' in the file" in done.left_out["v"]


def test_the_formats_that_a_refusal_lists_hold_the_mesh(tmp_path: Path) -> None:
    """Formats were listed for a mesh whose names, bits or strings they do not support."""
    mesh = tetrahedra(0)
    mesh["a<b"] = np.zeros(mesh.n_points)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match=r"hold it: \.vtk, \.vtkhdf$"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtu")
    mesh["a.b"] = np.zeros(mesh.n_points)
    ambar.write_mesh(mesh, tmp_path / "y.ambar", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match=r"rename it; formats that hold it: \.vtk$"):
        ambar.export(tmp_path / "y.ambar", tmp_path / "y.vtkhdf")
    ambar.write_mesh(pv.PointSet(mesh.points), tmp_path / "p.ambar", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match=r"hold it: \.vtk, \.vtkhdf, \.vtp$"):
        ambar.export(tmp_path / "p.ambar", tmp_path / "p.nothing")
    with ambar.open_mesh_series(tmp_path / "s.ambar", "w-", fsync=False) as series:
        series.add(mesh, 0.5)
    with pytest.raises(ambar.UnsupportedError, match=r"s\.pvd: step 0 cannot be written as \.vtu"):
        ambar.export(tmp_path / "s.ambar", tmp_path / "s.pvd")


def test_threads_restore_the_standard_output(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    sphere(0).save(tmp_path / "x.stl")
    meshio.write(tmp_path / "x.off", meshio.read(tmp_path / "x.stl"))
    before = sys.stdout, sys.stderr, logging.root.manager.disable
    with ThreadPoolExecutor(4) as pool:
        read = [pool.submit(lambda: MeshFile(tmp_path / "x.off").read()) for _ in range(16)]
        assert len({one.result().n_cells for one in read}) == 1
    assert (sys.stdout, sys.stderr, logging.root.manager.disable) == before
    assert not hasattr(sys.modules["meshio._files"], "open")


def test_the_reason_of_a_refused_export_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ambar.write_mesh(sphere(0), tmp_path / "x.ambar", fsync=False)

    def check(path: Path) -> None:
        raise ambar.CorruptError(f"{path}: expected 3 bytes")

    monkeypatch.setattr("ambar.mesh.files.pyvista_readers.check_length", check)
    with pytest.raises(ambar.UnsupportedError, match=r"cannot be read \(.*: expected 3 bytes\)"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.stl")


def test_ensight_has_the_name_that_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VTK wrote u.0.case, while the command printed u.case, which could not be converted."""
    mesh = tetrahedra(0)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    code, printed, _ = run(capsys, "export", tmp_path / "x.ambar", tmp_path / "u.case")
    assert code == 0
    assert Path(printed.partition(": written in ")[0]).is_file()
    done = ambar.convert(tmp_path / "u.case", tmp_path / "again.ambar", fsync=False)
    assert done.converted == ["u.case"]
    (again,) = ambar.read_mesh(tmp_path / "again.ambar")
    assert (again.n_points, again.n_cells) == (mesh.n_points, mesh.n_cells)
    assert sorted(path.name for path in tmp_path.glob("*.case")) == ["u.case"]


@pytest.mark.parametrize("suffix", ["vtp", "ply", "vtk", "vtkhdf", "xyz"])
def test_point_sets_are_written_as_vertices(suffix: str, tmp_path: Path) -> None:
    """PyVista writes point sets as .xyz alone, without their values."""
    points = pv.PointSet(np.random.default_rng(0).random((50, 3)).astype(np.float32))
    points["mass"] = np.arange(50.0)
    ambar.write_mesh(points, tmp_path / "x.ambar", fsync=False)
    target = tmp_path / f"x.{suffix}"
    if suffix in ("ply", "xyz"):
        with pytest.warns(UserWarning, match="does not hold unchanged: mass"):
            ambar.export(tmp_path / "x.ambar", target)
    else:
        ambar.export(tmp_path / "x.ambar", target)
    if suffix == "xyz":
        assert np.loadtxt(target)[:, :3] == pytest.approx(points.points, abs=1e-5)
        return
    np.testing.assert_array_equal(pv.read(target).points, points.points)
    if suffix != "ply":
        np.testing.assert_array_equal(pv.read(target)["mass"], points["mass"])


def test_point_sets_over_time_are_written(tmp_path: Path) -> None:
    points = pv.PointSet(np.random.default_rng(0).random((50, 3)))
    with ambar.open_mesh_series(tmp_path / "run.ambar", "w-", fsync=False) as series:
        for time in TIMES:
            points["mass"] = np.full(50, time)
            series.add(points, time)
    ambar.export(tmp_path / "run.ambar", tmp_path / "run.pvd")
    ambar.convert(tmp_path / "run.pvd", tmp_path / "again.ambar", fsync=False)
    again = ambar.open_mesh_series(tmp_path / "again.ambar")
    for time, stored in zip(TIMES, again, strict=True):
        assert (stored.read()["mass"] == time).all()
        np.testing.assert_array_equal(stored.read().points, points.points)


def test_tables_are_written(tmp_path: Path) -> None:
    """There was no format for a table."""
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {
        "a": rng.random(9),
        "n": np.arange(9),
        "f": rng.random(9).astype(np.float32),
    }
    table = pv.Table({**columns, "v": rng.random((9, 2)), "name": np.array(list('abcdefg,"'))})
    ambar.write_mesh(table, tmp_path / "x.ambar", fsync=False)
    ambar.export(tmp_path / "x.ambar", tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["a", "n", "f", "v:0", "v:1", "name"]
    for name, values in columns.items():
        assert np.array([row[name] for row in rows], values.dtype).tolist() == values.tolist()
    assert [row["name"] for row in rows] == list('abcdefg,"')
    assert [float(row["v:1"]) for row in rows] == table["v"][:, 1].tolist()
    parquet = pytest.importorskip("pyarrow.parquet")
    ambar.export(tmp_path / "x.ambar", tmp_path / "x.parquet")
    found = parquet.read_table(tmp_path / "x.parquet").to_pydict()
    assert {name: found[name] for name in columns} == {n: v.tolist() for n, v in columns.items()}
    with pytest.raises(ambar.UnsupportedError, match=r"expected the suffix \.csv or \.parquet"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtu")


def test_an_export_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # VTK's XML writers free uninitialized memory when a write fails.
    mesh = pv.ImageData(dimensions=(20, 20, 20)).to_tetrahedra()
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="found 1,000; free some") as raised:
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.vtk")
    assert raised.value.errno == errno.ENOSPC
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ambar"]


@pytest.fixture
def hdf5_export(tmp_path: Path) -> Path:
    """A store whose export h5py writes."""
    store = tmp_path / "x.ambar"
    ambar.convert(write_plotfile(tmp_path / "plt"), store, fsync=False)
    shutil.rmtree(tmp_path / "plt")
    return store


def test_an_export_by_h5py_that_does_not_fit_is_refused(
    hdf5_export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    for mode in ("w-", "w"):
        with pytest.raises(OSError, match="found 1,000; free some") as raised:
            ambar.export(hdf5_export, tmp_path / "y.vtkhdf", mode=mode)
        assert (raised.value.errno, raised.value.filename) == (
            errno.ENOSPC,
            str(tmp_path / "y.vtkhdf"),
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ambar"]


@pytest.mark.parametrize("limit", [0, 1000, 9000])
def test_a_failed_write_of_h5py_does_not_end_the_process(
    hdf5_export: Path, limit: int, tmp_path: Path
) -> None:
    """HDF5 crashed at the end of the program, and the error was a RuntimeError without a file."""
    target = tmp_path / "y.vtkhdf"
    program = f"""
        import errno, resource
        import ambar
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        try:
            ambar.export({str(hdf5_export)!r}, {str(target)!r})
        except OSError as error:
            print(error.errno == errno.EFBIG, error.filename)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, f"True {target}\n"), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ambar"]


@pytest.mark.parametrize("suffix", [".vtu", ".vtm", ".pvd"])
def test_a_failed_write_of_vtk_does_not_end_the_process(tmp_path: Path, suffix: str) -> None:
    """VTK's XML writers free uninitialized memory when a write fails."""
    mesh = pv.ImageData(dimensions=(20, 20, 20)).to_tetrahedra()
    if suffix == ".vtm":
        mesh = pv.MultiBlock([mesh, mesh])
    if suffix == ".pvd":
        with ambar.open_mesh_series(tmp_path / "x.ambar", "w-", fsync=False) as series:
            series.add(mesh, 0.5)
    else:
        ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="VTK cannot write it"):
            ambar.export(tmp_path / "x.ambar", tmp_path / f"y{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ambar"]
    ambar.export(tmp_path / "x.ambar", tmp_path / f"y{suffix}")
    read = pv.read(tmp_path / f"y{suffix}")
    assert read.bounds == mesh.bounds


def test_formats_without_blocks(tmp_path: Path) -> None:
    """The reason was an AttributeError of PyVista."""
    mesh = pv.ImageData(dimensions=(3, 3, 3)).to_tetrahedra()
    ambar.write_mesh(pv.MultiBlock([mesh, mesh]), tmp_path / "x.ambar", fsync=False)
    expected = (
        r"the format has no blocks; formats that hold it: .*\.vtm.*\. Or join its blocks, and"
    )
    for suffix in (".vtu", ".vtk", ".msh"):
        with pytest.raises(ambar.UnsupportedError, match=expected):
            ambar.export(tmp_path / "x.ambar", tmp_path / f"y{suffix}")
        new = tmp_path / f"{suffix}.ambar"
        ambar.write_mesh(ambar.read_mesh(tmp_path / "x.ambar").combine(), new, fsync=False)
        ambar.export(new, tmp_path / f"y{suffix}")


def test_exports_in_another_process_keep_the_memory_limit(tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(20, 20, 20))
    mesh["v"] = np.random.default_rng(1).random(8000)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    with ambar.limits(memory=5000), pytest.raises(ambar.LimitError):
        ambar.export(tmp_path / "x.ambar", tmp_path / "y.vti")
    ambar.export(tmp_path / "x.ambar", tmp_path / "y.vti")
    assert np.array_equal(pv.read(tmp_path / "y.vti")["v"], mesh["v"])


def test_cells_at_a_url_as_vtkhdf(tmp_path: Path) -> None:
    ambar.convert(output("sedov"), tmp_path / "x.ambar", fsync=False)
    with RangeServer(tmp_path) as server:
        ambar.export(f"{server.url}/x.ambar", tmp_path / "x.vtkhdf")
    reader = vtkHDFReader()
    reader.SetFileName(str(tmp_path / "x.vtkhdf"))
    reader.Update()
    assert_same_amr(reader.GetOutputDataObject(0), ambar.read_mesh(tmp_path / "x.ambar"))
