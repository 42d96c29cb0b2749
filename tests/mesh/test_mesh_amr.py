"""Cells of AMR stores as VTK's overlapping AMR data: values, boxes, and what is refined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import amrex_plotfiles, plotfiles
from tests.helpers.paths import RAMSES, RAMSES_CASES
from tests.helpers.sample_outputs import amrex_sample, output

pytest.importorskip("pyvista")

import pyvista as pv
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkDataObject

from ambar.snapshot.interop.vtk_amr import REFINED, blocks_of

GHOSTS = "vtkGhostType"


def arrays(grid: pv.ImageData) -> dict[str, np.ndarray]:
    data = grid.GetCellData()
    found = [data.GetArray(number) for number in range(data.GetNumberOfArrays())]
    return {array.GetName(): vtk_to_numpy(array) for array in found}


def every_block(mesh: Any) -> list[tuple[int, Any]]:
    levels = range(mesh.GetNumberOfLevels())
    return [(level, grid) for level in levels for grid in blocks_of(mesh, level)]


def leaves(mesh: Any, field: str, ndim: int = 3) -> np.ndarray:
    """Return x, y, ... and value of all cells that are not refined, sorted."""
    found = []
    for _, grid in every_block(mesh):
        values = arrays(grid)
        sides = [np.arange(n - 1) + 0.5 for n in grid.GetDimensions()[:ndim]]
        places = np.meshgrid(*sides[::-1], indexing="ij")[::-1]
        corner, size = grid.GetOrigin(), grid.GetSpacing()
        columns = [corner[i] + places[i].ravel() * size[i] for i in range(ndim)]
        rows = np.stack([*columns, values[field]], axis=1)
        found.append(rows[values[GHOSTS] == 0])
    cells = np.concatenate(found)
    return cells[np.lexsort(cells[:, :ndim].round(9).T)]


def test_a_plotfile_comes_back(tmp_path: Path) -> None:
    levels = plotfiles.write(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "x.ambar", fsync=False)
    for path in (tmp_path / "plt", tmp_path / "x.ambar"):
        amr = ambar.open_snapshot(path).amr
        mesh = amr.to_vtk()
        assert mesh.GetNumberOfLevels() == 2
        assert mesh.GetInformation().Get(vtkDataObject.DATA_TIME_STEP()) == 0.25
        for level, boxes in enumerate(plotfiles.BOXES):
            grids = blocks_of(mesh, level)
            assert len(grids) == len(boxes)
            for index, (grid, (lo, hi)) in enumerate(zip(grids, boxes, strict=True)):
                where = tuple(slice(a, b + 1) for a, b in zip(lo, hi, strict=True))
                found = arrays(grid)
                assert list(found) == [*plotfiles.FIELDS, GHOSTS]
                for name, values in zip(plotfiles.FIELDS, levels[level], strict=True):
                    np.testing.assert_array_equal(found[name], values[where].ravel(order="F"))
                covered = plotfiles.covered()[where] if level == 0 else np.zeros(1)
                expected = np.broadcast_to(covered, values[where].shape).ravel(order="F")
                np.testing.assert_array_equal(found[GHOSTS], expected * REFINED)
                size = np.array(amr.cell_size(level))
                np.testing.assert_allclose(grid.GetOrigin(), plotfiles.LOWER + lo * size)
                np.testing.assert_allclose(grid.GetSpacing(), size)
                box = [0] * 6
                mesh.GetAMRBox(level, index).GetDimensions(box)
                assert (tuple(box[::2]), tuple(box[1::2])) == (lo, hi)


def test_a_real_plotfile_is_as_yt_reads_it(tmp_path: Path) -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(40)
    sample = amrex_sample("advection_plt00006")
    ambar.convert(sample, tmp_path / "x.ambar", fsync=False)
    mesh = ambar.read_mesh(tmp_path / "x.ambar", cell_data=["phi", "phi32"])
    grids = list(yt.load(str(sample)).index.grids)
    blocks = every_block(mesh)
    assert len(grids) == len(blocks)
    for theirs, (level, grid) in zip(grids, blocks, strict=True):
        assert theirs.Level == level
        np.testing.assert_allclose(grid.GetOrigin(), theirs.LeftEdge.d, atol=1e-12)
        found = arrays(grid)
        for name in ("phi", "phi32"):
            values = theirs["boxlib", name].d.ravel(order="F")
            np.testing.assert_array_equal(found[name].astype(np.float64), values)
        refined = ~theirs.child_mask.ravel(order="F")
        np.testing.assert_array_equal(found[GHOSTS] == REFINED, refined)


@pytest.mark.parametrize("case", ["gravpart_small", "sedov2d_small"])
def test_a_tree_has_every_leaf_once(case: str, tmp_path: Path) -> None:
    ambar.convert(RAMSES / case / "output_00002", tmp_path / "x.ambar", fsync=False)
    amr = ambar.open_snapshot(tmp_path / "x.ambar").amr
    mesh = amr.to_vtk(["density", "level"])
    with np.load(RAMSES / case / "truth_leaf_00002.npz") as columns:
        true = {name: columns[name] for name in columns.files}
    axes = ["x", "y", "z"][: amr.ndim]
    true |= {a: (true[f"i{a}"] + 0.5) * amr.boxlen * 0.5 ** true["level"] for a in axes}
    found = leaves(mesh, "density", amr.ndim)
    assert len(found) == len(true["density"])
    order = np.lexsort([true[axis].round(9) for axis in axes])
    for number, axis in enumerate(axes):
        np.testing.assert_allclose(found[:, number], true[axis][order], rtol=1e-12)
    np.testing.assert_array_equal(found[:, -1], true["density"][order])
    # Each cell is in one box, and each box holds nothing else.
    cells = sum(grid.GetNumberOfCells() for _, grid in every_block(mesh))
    refined = sum(int((arrays(grid)[GHOSTS] != 0).sum()) for _, grid in every_block(mesh))
    children = sum(grid.GetNumberOfCells() for level, grid in every_block(mesh) if level)
    assert cells == len(amr) + refined
    assert children == refined * 2**amr.ndim


def test_refined_cells_of_a_tree_are_means(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    mesh = amr.to_vtk("density")
    for place, level in enumerate(range(amr.levels[0], amr.levels[1])):
        means = amr.grid("density", level=level).values
        for grid in blocks_of(mesh, place):
            first = np.round(np.divide(grid.GetOrigin(), grid.GetSpacing())).astype(int)
            counts = np.subtract(grid.GetDimensions(), 1)
            part = means[tuple(slice(a, a + n) for a, n in zip(first, counts, strict=True))]
            np.testing.assert_allclose(arrays(grid)["density"], part.ravel(order="F"), rtol=1e-12)


def test_levels_and_regions(gravpart: ambar.Snapshot, tmp_path: Path) -> None:
    coarse = gravpart.amr.to_vtk("density", levels=(4, 5))
    assert coarse.GetNumberOfLevels() == 2
    finest = [arrays(grid)[GHOSTS] for grid in blocks_of(coarse, 1)]
    assert not any(ghosts.any() for ghosts in finest)
    box = ambar.Box((0.25, 0.25, 0.3), (0.5, 0.75, 0.5))
    part = leaves(gravpart.amr.to_vtk("density", region=box), "density")
    # 0.3 is in the fifth of 16 cells of the lowest level.
    outward = ambar.Box((0.25, 0.25, 0.25), (0.5, 0.75, 0.5))
    assert len(part) == len(gravpart.amr.read(["density"], region=outward))
    plotfiles.write(tmp_path / "plt")
    amr = ambar.open_snapshot(tmp_path / "plt").amr
    box = ambar.Box((0.3, 0.5, 2.0), (0.9, 0.9, 2.4), unit="code")
    cut = amr.to_vtk(region=box)
    outward = ambar.Box((0.25, 0.5, 2.0), (1.0, 1.0, 2.5), unit="code")
    cells = amr.read(["x", "y", "z", "density"], region=outward)
    order = np.lexsort([cells[axis].round(9) for axis in "xyz"])
    np.testing.assert_array_equal(leaves(cut, "density")[:, 3], cells["density"][order])
    whole = amr.to_vtk(levels=(0, 0))
    assert not any(arrays(grid)[GHOSTS].any() for grid in blocks_of(whole, 0))


def test_flat_plotfiles(tmp_path: Path) -> None:
    boxes = [[((0, 0), (15, 15))], [((4, 4), (11, 19))]]
    flat = amrex_plotfiles.write_plotfile(tmp_path / "flat", boxes, domain=(16, 16))
    amr = ambar.open_snapshot(flat).amr
    mesh = amr.to_vtk()
    assert [grid.GetDimensions() for _, grid in every_block(mesh)] == [(17, 17, 1), (9, 17, 1)]
    assert sum(grid.GetNumberOfCells() for _, grid in every_block(mesh)) == 256 + 128
    cells = amr.read(["x", "y", "Temp"])
    order = np.lexsort([cells["x"].round(9), cells["y"].round(9)])
    np.testing.assert_array_equal(leaves(mesh, "Temp", 2)[:, 2], cells["Temp"][order])


def test_pyvista_reads_cells(tmp_path: Path) -> None:
    plotfiles.write(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "x.ambar", fsync=False)
    mesh = pv.read(tmp_path / "x.ambar")
    assert mesh.keys() == ["level_0", "level_1"]
    assert mesh[1][2].array_names == ["density", "Temp", GHOSTS]
    amr = ambar.open_snapshot(tmp_path / "x.ambar").amr
    cells = amr.read(["density", "z", "dx"])
    # Filters and pictures have each leaf cell once.
    plane = float(cells["z"].mean()) + 1e-3
    is_cut = np.abs(cells["z"] - plane) < cells["dx"] / 2
    found = mesh.slice(normal="z", origin=(0, 0, plane)).combine()
    np.testing.assert_array_equal(np.sort(found["density"]), np.sort(cells["density"][is_cut]))
    assert mesh.get_data_range("density") == (cells["density"].min(), cells["density"].max())
    reader = pv.get_reader(tmp_path / "x.ambar")
    assert reader.cell_array_names == ["density", "Temp"]
    assert reader.time_values == []
    reader.disable_cell_array("density")
    assert reader.read()[0][0].array_names == ["Temp", GHOSTS]
    reader.block = (1, 0)
    assert reader.read().dimensions == (11, 9, 9)
    block = ambar.read_mesh(tmp_path / "x.ambar", block=(1, 0))
    assert block.GetDimensions() == (11, 9, 9)
    blocks: list[Any] = ["x", 0, (2, 0), (1, 3), (0, 0, 0)]
    for wrong in blocks:
        with pytest.raises(KeyError, match="no block "):
            ambar.read_mesh(tmp_path / "x.ambar", block=wrong)
    with pytest.raises(KeyError, match="'phi' in cell data; available: 'density'"):
        ambar.read_mesh(tmp_path / "x.ambar", cell_data=["phi"])
    with pytest.raises(KeyError, match="'Temp' in point data; available: none"):
        ambar.read_mesh(tmp_path / "x.ambar", point_data=["Temp"])


def test_pyvista_reads_a_run(tmp_path: Path) -> None:
    ambar.convert(output("sedov").parent, tmp_path / "run.ambar", fsync=False)
    reader = pv.get_reader(tmp_path / "run.ambar")
    series = ambar.open_series(tmp_path / "run.ambar")
    assert reader.time_values == series.times.tolist()
    reader.set_active_time_point(1)
    blocks = reader.read()
    assert blocks.keys() == [f"level_{n}" for n in range(4, 6)]
    cells = blocks.combine()
    np.testing.assert_array_equal(
        np.sort(cells["density"][cells[GHOSTS] == 0]),
        np.sort(series[1].amr.read(["density"])["density"]),
    )


def test_refusals(gravpart: ambar.Snapshot, tmp_path: Path) -> None:
    with pytest.raises(ambar.UnsupportedError, match="one dimension"):
        ambar.open_snapshot(RAMSES_CASES / "tube_1d_walls" / "output_00002").amr.to_vtk()
    with pytest.raises(KeyError, match="no field 'nothing'.*density"):
        gravpart.amr.to_vtk("nothing")
    with pytest.raises(ValueError, match="levels 8 to 9 do not exist; available: 0 to 6"):
        gravpart.amr.to_vtk(levels=(8, 9))
    with pytest.raises(ValueError, match="Sphere"):
        gravpart.amr.to_vtk(region=ambar.Sphere("bc", 0.1))  # type: ignore[arg-type]
    amrex_plotfiles.write_plotfile(tmp_path / "plt", fields={GHOSTS: amrex_plotfiles.smooth})
    with pytest.raises(ambar.UnsupportedError, match="name of VTK.s array of refined cells"):
        ambar.open_snapshot(tmp_path / "plt").amr.to_vtk()


def test_cells_whose_indices_vtk_does_not_have_are_refused(tmp_path: Path) -> None:
    far = 2**31
    boxes = [[((far, 0, 0), (far + 3, 3, 3))]]
    amrex_plotfiles.write_plotfile(tmp_path / "plt", boxes, domain=(far + 4, 4, 4))
    with pytest.raises(ambar.UnsupportedError, match=f"level 0 have indices from 0 to {far + 4}"):
        ambar.open_snapshot(tmp_path / "plt").amr.to_vtk()


def test_the_cells_of_a_tree_are_read_with_the_given_threads(
    gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read with all cores."""
    given: list[int | None] = []
    amr, read = gravpart.amr, type(gravpart.amr).read

    def observed(self: ambar.Amr, *args: Any, **options: Any) -> Any:
        given.append(options["threads"])
        return read(self, *args, **options)

    monkeypatch.setattr(type(amr), "read", observed)
    amr.to_vtk("density", threads=1)
    assert given == [1, 1]
