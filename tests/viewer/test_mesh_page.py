"""The page of meshes, in a browser; values are compared with those of PyVista."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
from playwright.sync_api import expect

import ambar
from ambar.viewer.pages.mesh import surface as surfaces
from ambar.viewer.pages.mesh.controls import MeshControls
from ambar.viewer.pages.mesh.surface import VALUE, Recipe, surface_of
from ambar.viewer.pages.mesh.surface_view import geometry_of
from tests.helpers.browser import Screen, shown
from tests.helpers.store_chunks import damage


@pytest.fixture(scope="module")
def box() -> pv.UnstructuredGrid:
    """Return a mesh of hexahedra."""
    mesh = pv.ImageData(dimensions=(13, 13, 13), spacing=(1 / 12,) * 3).cast_to_unstructured_grid()
    mesh["pressure"] = mesh.points @ np.array([1.0, 10.0, 100.0])
    mesh["velocity"] = mesh.points * np.array([0.0, 0.0, 0.5])
    mesh.cell_data["number"] = np.arange(mesh.n_cells)
    return mesh


def choose(screen: Screen, label: str, option: str) -> None:
    """Choose an option of the select below a label."""
    screen.page.locator(f'select:below(:text-is("{label}"))').first.select_option(label=option)


def test_a_mesh_is_drawn_cut_and_picked(
    browser: Any, box: pv.UnstructuredGrid, tmp_path: Path
) -> None:
    path = tmp_path / "blocks.ambar"
    ball = pv.Sphere(radius=0.3, center=(0.5, 0.5, 2))
    box = box.copy()
    box["noise"] = np.random.default_rng(1).random((box.n_points, 32))
    ambar.write_mesh(pv.MultiBlock({"box": box, "ball": ball}), path, fsync=False)
    damage(path, "blocks/0/point_data")
    with shown(browser, path) as screen:
        screen.wait_for(f"text={box.n_cells + ball.n_cells:,} cells shown")
        screen.page.get_by_text("1: ball").click()
        screen.wait_for(f"text={box.n_cells:,} cells shown")
        # Seen from above, the middle of the picture is a point of the upper face.
        screen.page.get_by_role("button", name="z", exact=True).first.click()
        area = screen.page.locator("main").bounding_box()
        middle = (area["x"] + area["width"] * 0.45, area["y"] + area["height"] * 0.5)
        value, *position = pick(screen, middle, 1.0)
        assert value == pytest.approx(np.array(position) @ [1, 10, 100], rel=1e-3)
        assert screen.page.locator(".picked").inner_text().startswith("pressure: ")
        # Values of cells, cut by a plane and by their values.
        choose(screen, "Array", "number (cell)")
        choose(screen, "Cut", "clip")
        clipped = box.clip("x", origin=(0.5, 0.5, 0.5))
        screen.wait_for(f"text={clipped.n_cells:,} cells shown")
        expect(screen.page.locator(".picked")).to_have_text("")  # it was of another surface
        choose(screen, "Cut", "threshold")
        screen.wait_for(f"text={box.n_cells:,} cells shown")
        choose(screen, "Style", "surface with edges")
        choose(screen, "Warp by", "velocity")
        number, *_ = pick(screen, middle, 1.5)
        assert number in box.cell_data["number"][-144:]
        # Damaged chunks give a message; other arrays can still be seen.
        choose(screen, "Array", "noise (point)")
        screen.wait_for("text=checksum")
        choose(screen, "Array", "none")
        screen.page.locator(".alert-danger").wait_for(state="hidden")


def pick(screen: Screen, place: tuple[float, float], height: float) -> list[float]:
    """Return the value and the position that a click shows, when it is at a height."""
    for _ in range(100):
        screen.page.mouse.click(*place)
        screen.page.wait_for_timeout(100)
        shown_text = screen.page.locator(".picked").inner_text()
        numbers = [float(number) for number in re.findall(r"[0-9.]+", shown_text)]
        if numbers and numbers[-1] == height:
            return numbers
    pytest.fail(f"expected a value at the height {height}, found {shown_text!r}")


def test_the_steps_of_a_series(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.ambar"
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        for number in range(3):
            sphere = pv.Sphere(theta_resolution=8 + number, phi_resolution=8)
            sphere["height"] = sphere.points[:, 2] * (number + 1)
            series.add(sphere, number / 2)
    with shown(browser, path) as screen:
        counts = [mesh.n_cells for mesh in ambar.open_mesh_series(path)]
        screen.wait_for(f"text={counts[2]} cells shown")
        screen.page.locator(".noUi-handle").first.press("ArrowLeft")
        screen.wait_for(f"text={counts[1]} cells shown")
        assert screen.wait_for("text=Time 0.5")


def test_chosen_limits_stay_until_another_array_is_chosen(
    box: pv.UnstructuredGrid, tmp_path: Path
) -> None:
    ambar.write_mesh(box, tmp_path / "box.ambar", fsync=False)
    changes: list[Recipe] = []
    controls = MeshControls(
        ambar.open_mesh(tmp_path / "box.ambar"), lambda: changes.append(controls.recipe)
    )
    controls.offer_limits(0.0, 10.0)
    assert not changes
    controls._limits.value = (4.0, 10.0)
    assert changes[-1].limits == (4, np.inf)
    for ends in ((1.0, 20.0), (5.0, 5.0), (0.0, 2.0), (3.0, 8.0)):  # of other steps
        controls.offer_limits(*ends)
        assert controls.recipe.limits == (4, np.inf)
    assert (controls._limits.start, *controls._limits.value, controls._limits.end) == (3, 4, 8, 8)
    assert len(changes) == 1
    controls._array.value = ("cell", "number")
    assert changes[-1].limits == (-np.inf, np.inf)


def test_points_far_from_the_origin_are_not_rounded(box: pv.UnstructuredGrid) -> None:
    far = box.copy()
    far.points = box.points.astype("f8") + np.array([5e6, 5e5, 0])
    surface = surface_of(far, Recipe()).mesh
    origin = np.array([5e6, 5e5, 0])
    sent = geometry_of(surface, origin)
    points = sent["points"].reshape(-1, 3) + sent["origin"]
    np.testing.assert_allclose(points, surface.points, rtol=0, atol=1e-6)


def test_surfaces_are_those_of_pyvista(box: pv.UnstructuredGrid, monkeypatch: Any) -> None:
    velocity = np.linalg.norm(box["velocity"], axis=1)
    whole = surface_of(box, Recipe(array="velocity"))
    assert whole.mesh.n_cells == 6 * 12**2
    assert whole.range == (velocity.min(), velocity.max())
    component = surface_of(box, Recipe(array="velocity", component=2)).mesh
    np.testing.assert_allclose(component[VALUE], component.points[:, 2] / 2)
    cut = surface_of(box, Recipe(array="pressure", cut="slice", normal="y", place=0.25)).mesh
    assert set(np.round(cut.points[:, 1], 6)) == {0.25}
    np.testing.assert_allclose(cut[VALUE], cut.points @ np.array([1.0, 10.0, 100.0]), rtol=1e-5)
    few = surface_of(box, Recipe("cell", "number", cut="threshold", limits=(10, 30)))
    assert few.cells == 21
    assert set(few.mesh[VALUE]) <= set(range(10, 31))
    warped = surface_of(box, Recipe(warp="velocity", factor=2.0)).mesh
    assert warped.bounds[5] == pytest.approx(2)
    assert VALUE not in warped.array_names
    # Blocks without the array have no values, and hidden ones no faces.
    blocks = pv.MultiBlock({"box": box, "other": pv.MultiBlock([pv.Sphere()])})
    both = surface_of(blocks, Recipe(array="pressure")).mesh
    assert np.isnan(both[VALUE]).sum() == pv.Sphere().n_points
    assert surface_of(blocks, Recipe(hidden=frozenset([1]))).mesh.n_cells == 6 * 12**2
    monkeypatch.setattr(surfaces, "MAX_FACES", 500)
    monkeypatch.setattr(surfaces, "_DIVISIONS", 4)
    coarse = surface_of(box, Recipe("cell", "number"))
    assert coarse.faces == 6 * 12**2
    assert 0 < coarse.mesh.n_cells < 300
    assert set(coarse.mesh[VALUE]) <= set(range(box.n_cells))
