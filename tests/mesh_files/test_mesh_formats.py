"""Round trips through all formats of PyVista and meshio, as their registries name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")
pytest.importorskip("meshio")

import meshio
import pyvista as pv
from pyvista.core.utilities.reader import CLASS_READERS

from ambar.mesh.files.formats import is_vtk_xml, suffixes_to_write

RANDOM = np.random.default_rng(0)


def with_arrays(mesh: Any) -> Any:
    mesh.clear_data()
    mesh["pressure"] = RANDOM.random(mesh.n_points)
    mesh.cell_data["number"] = np.arange(mesh.n_cells, dtype=np.int32)
    return mesh


GRID = pv.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 0.25, 2))
PICTURE = pv.ImageData(dimensions=(4, 3, 1))
PICTURE["pressure"] = np.arange(12, dtype=np.uint8)
MESHES = {
    "tetrahedra": with_arrays(GRID.to_tetrahedra()),
    "triangles": with_arrays(pv.Sphere(theta_resolution=5, phi_resolution=5)),
    "image": with_arrays(GRID.copy()),
    "rectilinear": with_arrays(GRID.cast_to_rectilinear_grid()),
    "structured": with_arrays(GRID.cast_to_structured_grid()),
    "picture": PICTURE,
    "points": pv.PointSet(RANDOM.random((9, 3))),
    "blocks": pv.MultiBlock({"a": with_arrays(pv.Cube()), "b": with_arrays(pv.Sphere())}),
}
# Formats of other cells or values, and writers of meshio with errors: .cgns, .h5m, .su2, .ugrid,
# .wkt and .xml.
REFUSED = {
    "tetrahedra": ".h5m .obj .off .ply .stl .svg .ugrid .wkt .xml",
    "triangles": ".cgns .ele .f3grid .h5m .node .su2 .svg .ugrid .wkt .xml",
    "image": ".jpeg .jpg .png .pnm .tif",
    "points": ".cgns .dat .ele .f3grid .inp .node .stl .su2 .svg .tec .ugrid .wkt .xml",
}
NEVER_READ = {".geo", ".iv", ".svg", ".xyz"}


def suffixes(name: str) -> list[str]:
    """Return the suffixes of formats of a mesh; those of meshio, which makes cells, of few types.

    VTK's XML takes a process each: one of them is enough.
    """
    mesh = MESHES[name]
    own = list(getattr(mesh, "_WRITERS", ()))
    others = suffixes_to_write(mesh) if name in ("tetrahedra", "triangles", "points") else [".msh"]
    found = dict.fromkeys([*own, *others] if name != "blocks" else own)
    aliases = (".bmp", ".dato", ".dato.gz", ".e", ".ex2", ".fem", ".nas", ".tiff", ".vtmb", ".xmf")
    return [each for each in found if each not in aliases and not is_vtk_xml(each)]


CASES = [(name, suffix) for name in MESHES for suffix in suffixes(name)] + [("blocks", ".vtm")]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    for name, mesh in MESHES.items():
        ambar.write_mesh(mesh, folder / f"{name}.ambar", fsync=False)
    return folder


def read_directly(path: Path, suffix: str) -> Any:
    """Return the mesh that PyVista, or meshio for formats that PyVista leaves to it, reads."""
    if suffix in CLASS_READERS and suffix not in (".cgns", ".inp", ".xdmf"):
        return pv.read(path)
    name = "gmsh" if suffix == ".msh" else None
    return pv.from_meshio(meshio.read(path, name))


def leaves(mesh: Any) -> list[Any]:
    if isinstance(mesh, pv.MultiBlock):
        return [leaf for block in mesh for leaf in leaves(block)]
    return [] if mesh is None else [mesh]


def assert_same(found: Any, expected: Any, left_out: Any = ()) -> None:
    for pair in zip(leaves(found), leaves(expected), strict=True):
        one, two = (each.cast_to_unstructured_grid() for each in pair)
        np.testing.assert_array_equal(one.points, two.points)
        np.testing.assert_array_equal(one.cells, two.cells)
        if pv.CellType.POLY_VERTEX not in one.celltypes:  # VTK's reader of XDMF
            np.testing.assert_array_equal(one.celltypes, two.celltypes)
        for name in two.point_data.keys() + two.cell_data.keys():
            if name not in left_out:
                np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "suffix"), CASES)
def test_exports_are_what_the_libraries_read(
    name: str, suffix: str, stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mesh, target = MESHES[name], Path(f"x{suffix}")
    if suffix in REFUSED.get(name, "").split():
        with pytest.raises(ambar.UnsupportedError, match=rf"^x\{suffix}: .* cannot be written as"):
            ambar.export(stores / f"{name}.ambar", target)
        assert list(tmp_path.iterdir()) == []
        return
    left_out = ambar.export(stores / f"{name}.ambar", target).left_out
    if suffix in NEVER_READ:
        assert all("no library reads" in why for why in left_out.values())
        return
    ambar.convert(target, "y.ambar", fsync=False)
    found = ambar.read_mesh("y.ambar")
    assert_same(found, read_directly(target, suffix), left_out)
    # Nothing is lost without a word.
    whole = pv.merge(leaves(found)).clean() if name == "blocks" else pv.merge(leaves(found))
    if "cells" not in left_out and name not in ("points", "blocks"):
        assert found.GetNumberOfCells() == mesh.n_cells
    if suffix not in (".gif", ".jpeg", ".jpg", ".png") and name != "blocks":
        assert whole.bounds == pytest.approx(mesh.bounds, abs=1e-5)
    names = {array for leaf in leaves(found) for array in leaf.array_names}
    arrays = {array for leaf in leaves(mesh) for array in leaf.array_names}
    assert arrays - names <= left_out.keys()
