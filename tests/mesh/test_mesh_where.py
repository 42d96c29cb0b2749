"""Cells for which a condition holds, compared with PyVista's `extract_cells`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pv = pytest.importorskip("pyvista")

from tests.helpers.mesh.samples import table  # noqa: E402

IMAGE = pv.ImageData(dimensions=(12, 11, 10), spacing=(0.5, 1, 2), origin=(1, 2, 3))
MESHES = {
    "image": IMAGE,
    "flat": pv.ImageData(dimensions=(6, 1, 4)),
    "rectilinear": IMAGE.cast_to_rectilinear_grid(),
    "structured": IMAGE.cast_to_structured_grid(),
    "unstructured": IMAGE.cast_to_unstructured_grid(),
    "tetrahedra": IMAGE.to_tetrahedra(),
    "surface": pv.Sphere(),
}


def sample(name: str) -> Any:
    rng = np.random.default_rng(0)
    mesh = MESHES[name].copy()
    mesh.clear_data()
    mesh["p"] = rng.random(mesh.n_points)
    mesh["v"] = rng.random((mesh.n_points, 3))
    mesh.cell_data["c"] = rng.random(mesh.n_cells)
    return mesh


def cells_where(mesh: Any, points: np.ndarray) -> list[int]:
    """Return the cells whose points are all True."""
    return [i for i in range(mesh.n_cells) if points[mesh.get_cell(i).point_ids].all()]


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("name", MESHES)
def test_cells_where_a_condition_holds(name: str, reorder: bool, tmp_path: Path) -> None:
    mesh = sample(name)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", reorder=reorder, fsync=False)
    velocity, x = mesh["v"][:, 1], mesh.points[:, 0]
    for where, ids in (
        ("p > 0.2", cells_where(mesh, mesh["p"] > 0.2)),
        ("v.y > .1 and x > 1.2", cells_where(mesh, (velocity > 0.1) & (x > 1.2))),
        ("c < 0.5", np.flatnonzero(mesh.cell_data["c"] < 0.5)),
        ("p > 5", []),
    ):
        found = ambar.read_mesh(tmp_path / "x.ambar", where=where, original_ids=True)
        cells = found.cell_data.get("vtkOriginalCellIds", np.arange(found.n_cells))
        points = found.point_data.get("vtkOriginalPointIds", np.arange(found.n_points))
        assert sorted(cells) == sorted(ids)
        np.testing.assert_allclose(found.points, mesh.points[points], rtol=1e-14)
        np.testing.assert_array_equal(found["p"], mesh["p"][points])
        np.testing.assert_array_equal(found.cell_data["c"], mesh.cell_data["c"][cells])
        if len(ids):
            expected = mesh.extract_cells(np.asarray(ids)).compute_cell_sizes()
            sizes = found.compute_cell_sizes()
            for size in ("Length", "Area", "Volume"):
                np.testing.assert_allclose(sizes[size].sum(), expected[size].sum(), rtol=1e-6)


def test_a_name_of_points_and_cells_is_refused(tmp_path: Path) -> None:
    mesh = pv.Plane()
    mesh.point_data["p"], mesh.cell_data["p"] = np.zeros(mesh.n_points), np.ones(mesh.n_cells)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    with pytest.raises(ValueError, match="both have arrays named p; read the mesh"):
        ambar.read_mesh(tmp_path / "x.ambar", where="p > 0.5")
    # Coordinates are those of points.
    assert ambar.read_mesh(tmp_path / "x.ambar", where="p > 0.5 and x > 0").n_cells == 0


def test_with_a_region_and_chosen_arrays(tmp_path: Path) -> None:
    mesh = sample("tetrahedra")
    blocks = pv.MultiBlock({"a": mesh, "table": pv.Table({"n": np.arange(3)})})
    ambar.write_mesh(blocks, tmp_path / "x.ambar", fsync=False)
    region = (1, 3, 2, 7, 3, 9)
    inside = ambar.read_mesh(tmp_path / "x.ambar", block="a", region=region)
    found = pv.read(tmp_path / "x.ambar", region=region, where="c < 0.5", point_data=["v"])
    assert found["a"].n_cells == (inside.cell_data["c"] < 0.5).sum()
    assert sorted(found["a"].array_names) == ["c", "v"]
    assert found["table"].n_rows == 3
    points = pv.PointSet(mesh.points)
    points["p"] = mesh["p"]
    ambar.write_mesh(points, tmp_path / "points.ambar", fsync=False)
    found = ambar.read_mesh(tmp_path / "points.ambar", where="p > 0.5", point_data=[])
    assert found.n_points == (mesh["p"] > 0.5).sum()


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("q > 1", KeyError, "no array 'q' on points or cells; available: p, v, c"),
        ("p > 1 and c > 1", ValueError, "found arrays on both in p, c"),
        ("v > 1", ValueError, r"expected one of its components, such as v\.x"),
        ("p.x > 1", ValueError, "found no components"),
        ("p > 1 km", ValueError, "expected numbers without units, found 'km'"),
        ("p >", ValueError, "invalid condition at character 4"),
    ],
)
def test_invalid_conditions(where: str, error: type, message: str, tmp_path: Path) -> None:
    ambar.write_mesh(sample("tetrahedra"), tmp_path / "x.ambar", fsync=False)
    with pytest.raises(error, match=message):
        ambar.read_mesh(tmp_path / "x.ambar", where=where)


@pytest.mark.parametrize("arguments", [{"where": 5}, {"point_data": 5}])
def test_arguments_of_another_type_are_not_damage(arguments: Any, tmp_path: Path) -> None:
    """They were reported as a damaged description of the mesh."""
    ambar.write_mesh(sample("tetrahedra"), tmp_path / "x.ambar", fsync=False)
    with pytest.raises(TypeError):
        ambar.read_mesh(tmp_path / "x.ambar", **arguments)


def test_types_without_conditions(tmp_path: Path) -> None:
    ambar.write_mesh(table(), tmp_path / "x.ambar", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match=r"does not support region= and where="):
        ambar.read_mesh(tmp_path / "x.ambar", where="p > 1")
