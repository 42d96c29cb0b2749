"""Vectors within error bounds: each component has a range, and an array, of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")

import pyvista as pv

SCALES = (1.0, 0.1, 0.001)


def flow(points: np.ndarray) -> np.ndarray:
    """Return velocities whose components differ in size."""
    x, y, z = points.T / 5
    parts = np.sin(x) * np.cos(y), np.cos(y + z), np.sin(z) * np.cos(x)
    return np.stack([scale * part for scale, part in zip(SCALES, parts, strict=True)], axis=1)


def grid() -> Any:
    mesh = pv.ImageData(dimensions=(30, 29, 28))
    mesh["v"] = flow(mesh.points)
    mesh.cell_data["w"] = flow(mesh.cell_centers().points).astype(np.float32)
    mesh["z"] = mesh["v"][:, 0] + 1j * mesh["v"][:, 2]
    return mesh


def cells() -> Any:
    mesh = grid().to_tetrahedra()
    mesh.clear_data()
    mesh["v"] = flow(mesh.points)
    mesh.cell_data["w"] = flow(mesh.cell_centers().points).astype(np.float32)
    mesh["z"] = mesh["v"][:, 0] + 1j * mesh["v"][:, 2]
    return mesh


@pytest.mark.parametrize("make", [grid, cells])
@pytest.mark.parametrize("reorder", [False, True])
def test_a_part_of_the_range_is_that_of_each_component(
    make: Any, reorder: bool, tmp_path: Path
) -> None:
    """The range was that of all components together: the third one was lost."""
    mesh, path = make(), tmp_path / "x.ambar"
    ambar.write_mesh(mesh, path, error_bound="1e-3 of range", fsync=False, reorder=reorder)
    read = ambar.read_mesh(path, original_ids=True)
    rows = {"point": slice(None), "cell": slice(None)}
    if reorder and make is cells:
        rows = {"point": read["vtkOriginalPointIds"], "cell": read["vtkOriginalCellIds"]}
    for name, of, scales in (("v", "point", SCALES), ("w", "cell", SCALES)):
        values = getattr(mesh, f"{of}_data")[name][rows[of]]
        found = getattr(read, f"{of}_data")[name]
        assert found.dtype == values.dtype
        for number, scale in enumerate(scales):
            off = np.abs(found[:, number] - values[:, number]).max()
            assert 0 < off <= 1e-3 * np.ptp(values[:, number]) * (1 + 1e-6) < 3e-3 * scale
    # Complex numbers have no bound, as in arrays.
    assert read["z"].dtype == mesh["z"].dtype
    np.testing.assert_array_equal(read["z"], mesh["z"][rows["point"]])
    opened = ambar.open_mesh(path)
    shapes = {info.name: (info.dtype, info.shape[-1]) for info in opened.arrays}
    assert shapes["v"] == (str(mesh["v"].dtype), 3)
    assert shapes["w"] == ("float32", 3)
    np.testing.assert_array_equal(opened.read_array("v"), read["v"])
    np.testing.assert_array_equal(opened.read_array("w", rows=[5, 900, 7]), read["w"][[5, 900, 7]])
    np.testing.assert_array_equal(opened.read_array("v", rows=slice(9, 99)), read["v"][9:99])
    for key in (slice(9, None, -2), slice(-(10**6), None, -1)):
        np.testing.assert_array_equal(opened.read_array("v", rows=key), read["v"][key])
    part = ambar.read_mesh(path, region=(3, 9, 3, 9, 3, 9), original_ids=True, point_data=["v"])
    ids = part["vtkOriginalPointIds"]
    place = np.empty(mesh.n_points, int)
    place[np.arange(mesh.n_points)[rows["point"]]] = np.arange(mesh.n_points)
    np.testing.assert_array_equal(part["v"], read["v"][place[ids]])
    paths = {array.name: array.paths for array in opened.arrays}
    assert [len(paths[name]) for name in "vwz"] == [3, 3, 1]
    assert set(paths["v"]) <= set(opened.store)


def test_a_bound_of_complex_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="array 'z' has complex numbers; only float32 and float64"):
        ambar.write_mesh(grid(), tmp_path / "x.ambar", error_bound={"z": 1e-3})


def test_components_apart_take_less(tmp_path: Path) -> None:
    """Beside each other on a grid they took 16 times the room."""
    mesh, path = pv.ImageData(dimensions=(40, 40, 40)), tmp_path / "x.ambar"
    mesh["v"] = flow(mesh.points)
    ambar.write_mesh(mesh, path, error_bound=1e-3, fsync=False)
    assert np.abs(ambar.read_mesh(path)["v"] - mesh["v"]).max() <= 1e-3
    assert path.stat().st_size < mesh["v"].nbytes / 80


def test_vectors_in_series_and_comparisons(tmp_path: Path) -> None:
    meshes = []
    for time in range(4):
        mesh = cells()
        mesh["v"] = mesh["v"] * [1 + time, 1, 1]
        meshes.append(mesh)
    for name, bound in (("a", None), ("b", "1e-3 of range")):
        with ambar.open_mesh_series(
            tmp_path / f"{name}.ambar", "w-", fsync=False, error_bound=bound
        ) as series:
            for time, mesh in enumerate(meshes):
                series.add(mesh, time)
    for mesh, step in zip(meshes, ambar.open_mesh_series(tmp_path / "b.ambar"), strict=True):
        off = np.abs(step.read()["v"] - mesh["v"]).max(axis=0)
        assert (off <= 1e-3 * np.ptp(mesh["v"], axis=0) * (1 + 1e-6)).all()
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", ["v"], output=3)
    assert found.held
    [field] = found.fields
    assert isinstance(field.bound, float)
    assert 0 < field.all.max_error <= field.bound


@pytest.mark.parametrize("change", ["short", "none", "text"])
def test_damaged_components_are_errors(change: str, tmp_path: Path) -> None:
    from tests.helpers.mesh.descriptions import plain, together

    path = tmp_path / "x.ambar"
    ambar.write_mesh(cells(), path, error_bound=1e-3, fsync=False)
    about, streams = plain(ambar.open_store(path))
    (entry,) = (entry for entry in about["point_data"] if entry["name"] == "v")
    parts = entry["components_at"]
    (other,) = (entry for entry in about["cell_data"] if entry["name"] == "w")
    entry["components_at"] = {
        "short": [*parts[:2], other["components_at"][0]],
        "none": [],
        "text": "points",
    }[change]
    with ambar.create(path, "a") as writer:
        writer._create_group("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError):
        ambar.read_mesh(path)
