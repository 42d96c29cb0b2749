"""The page of cells in a browser: the values under the pointer are those of the data."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.kinds.request import ViewRequest
from ambar.viewer.cells.call import python_call
from ambar.viewer.cells.overlays import cell_sides, positions
from ambar.viewer.cells.page import CellsPage
from ambar.viewer.cells.plane import Pixels, Plane
from ambar.viewer.cells.tiles import TILES, TileCache, TileReader
from ambar.viewer.cells.view import View
from tests.helpers.browser import Screen, shown
from tests.helpers.paths import RAMSES_CASES
from tests.helpers.sample_outputs import output


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of an output with cells and particles."""
    path = tmp_path_factory.mktemp("cells") / "run.ambar"
    ambar.convert(output("gravpart"), path, fsync=False)
    return path


def pointed(screen: Screen, x: float, y: float) -> dict[str, float]:
    """Return the numbers of the line below the map, with the pointer at a part of the figure."""
    box = screen.wait_for("main .bk-Figure").bounding_box()
    line = screen.page.locator(".ambar-pointer .bk-clearfix")
    for step in range(60):  # a figure that is not drawn yet misses movements
        screen.page.mouse.move(box["x"] + x * box["width"] + step % 2, box["y"] + y * box["height"])
        screen.page.wait_for_timeout(150)
        number = r"(-?\d[\d.]*(?:e[-+]?\d+)?)"
        text = line.inner_text() if line.count() else ""
        if value := re.match(rf"[^:]+: (?:original )?{number}", text.strip()):
            places = re.findall(rf"([xyz]) = {number}", text)
            return {"value": float(value[1]), **{axis: float(place) for axis, place in places}}
    raise AssertionError(f"no value under the pointer: {text!r}")


def check(screen: Screen, x: float, y: float, image: Any) -> dict[str, float]:
    """Check the value under the pointer, which the server may still be sending."""
    for _ in range(40):
        place = pointed(screen, x, y)
        if set(image.dims) <= set(place):
            where = {axis: place[axis] for axis in image.dims}
            expected = float(image.sel(where, method="nearest"))
            if place["value"] == pytest.approx(expected, rel=1e-4, abs=1e-6):
                return place
        screen.page.wait_for_timeout(150)
    raise AssertionError(f"{place}, expected {expected}")


def test_slices_projections_and_zooms_show_the_values_of_the_data(browser: Any, run: Path) -> None:
    amr = ambar.open_snapshot(run).amr
    with shown(browser, run) as screen:
        fields = screen.page.locator("select").first
        check(screen, 0.4, 0.4, amr.slice("density"))
        near = check(screen, 0.5, 0.5, amr.slice("density"))
        # The wheel zooms: the same distance on the screen is shorter.
        for _ in range(8):
            screen.page.mouse.wheel(0, -240)
            screen.page.wait_for_timeout(50)
        far = check(screen, 0.7, 0.5, amr.slice("density"))
        assert abs(far["x"] - near["x"]) < 0.1
        fields.select_option("velocity_y")
        screen.page.get_by_text("x", exact=True).first.click()
        check(screen, 0.45, 0.6, amr.slice("velocity_y", axis="x"))
        fields.select_option("density")
        screen.page.locator("select").nth(1).select_option("Integral along the axis")
        check(screen, 0.45, 0.6, amr.project("density", axis="x"))


def test_requests_without_the_token_are_refused(run: Path) -> None:
    with ambar.view(run).serve(browser=False) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        page, _, token = viewer.url.partition("?token=")
        assert len(token) >= 32
        for url in (page, f"{page}?token={token[:-1]}", f"{page}ws?bokeh-session-id=1"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, timeout=20)  # noqa: S310 - a URL of this machine
            assert refused.value.code in (403, 400)
        with urllib.request.urlopen(viewer.url, timeout=20) as answer:  # noqa: S310
            assert answer.status == 200
        bundle = viewer._repr_mimebundle_()
        assert viewer.url in bundle["text/html"]
        with pytest.raises(OSError, match="in use"):
            ambar.view(run).serve(int(page.rsplit(":", 1)[1].strip("/")), browser=False)


def test_damaged_chunks_leave_holes_and_a_message(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.ambar"
    ambar.convert(output("sedov"), path, fsync=False)
    damaged = bytearray(path.read_bytes())
    at = damaged.find(b"amr/density/c/0")
    damaged[at + 400] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(ambar.CorruptError):
        ambar.open_snapshot(path).amr.slice("density")
    with shown(browser, path) as screen:
        screen.wait_for("text=checksum")
        screen.page.locator("select").first.select_option("pressure")
        screen.page.locator(".alert-danger").wait_for(state="hidden")
        check(screen, 0.5, 0.5, ambar.open_snapshot(path).amr.slice("pressure"))


def test_comparisons_show_the_error_and_its_bound_and_a_lost_server(
    browser: Any, run: Path, tmp_path: Path
) -> None:
    lossy = tmp_path / "lossy.ambar"
    ambar.convert(run, lossy, error_bound={"density": 0.02}, fsync=False)
    original, other = (ambar.open_snapshot(path).amr.slice("density") for path in (run, lossy))
    viewer = ambar.view(run, against=lossy).serve(browser=False)
    page = browser.new_page(viewport={"width": 1300, "height": 700})
    screen = Screen(page)
    page.goto(viewer.url)
    place = check(screen, 0.5, 0.5, original)
    text = page.locator(".ambar-pointer .bk-clearfix").inner_text()
    found = {name: float(value) for name, value in re.findall(r"(\w+) (-?[\d.e-]+) code", text)}
    where = {axis: place[axis] for axis in "xy"}
    values = [float(one.sel(where, method="nearest")) for one in (original, other)]
    assert found["other"] == pytest.approx(values[1], rel=1e-5)
    assert found["difference"] == pytest.approx(values[1] - values[0], rel=1e-2, abs=1e-6)
    assert 0 < abs(found["difference"]) <= 0.02
    assert screen.errors == []
    viewer.stop()
    page.get_by_text("The server of this page has ended").wait_for()
    page.close()


def test_overlays_are_the_cells_and_particles_of_the_window(run: Path) -> None:
    snapshot = ambar.open_snapshot(run)
    amr = snapshot.amr
    plane = Plane(amr, "level", at=0.5)
    view = View(0.25, 0.75, 0.25, 0.75, 500, 500)
    resolution = view.resolution(plane)
    pixels = view.pixels(plane, resolution, 0)
    [*_, image] = TileReader(TileCache()).images(plane, resolution, pixels)
    cells = amr.read(["x", "y", "dx"], where="abs(z - 0.5 - 1e-9) < dx / 2")
    middle = (abs(cells["x"] - 0.5) < 0.25) & (abs(cells["y"] - 0.5) < 0.25)
    edges = {round(float(edge), 9) for edge in cells["x"][middle] - cells["dx"][middle] / 2}
    lines = cell_sides(image, image.values)
    upright = lines.x0 == lines.x1
    assert {round(float(x), 9) for x in lines.x0[upright]} == edges - {0.25}
    x, y = positions(snapshot.particles, plane, view, slab=1.0)
    rows = snapshot.particles.read(["x", "y"])
    inside = (abs(rows["x"] - 0.5) <= 0.25) & (abs(rows["y"] - 0.5) <= 0.25)
    assert len(x) == np.count_nonzero(inside)
    assert sorted(y) == sorted(rows["y"][inside])


def test_tiles_are_read_once_and_released(run: Path) -> None:
    plane = Plane(ambar.open_snapshot(run).amr, "density", at=0.5)
    finest = plane.resolutions[0]
    whole = Pixels(0, finest.shape[0], 0, finest.shape[1])
    cache = TileCache(max_bytes=64 * 64 * 4)
    [*_, image] = TileReader(cache).images(plane, finest, whole)
    assert image.is_complete
    assert cache.nbytes == 64 * 64 * 4
    assert np.array_equal(image.values, plane.amr.slice("density").to_numpy().astype("f4"))
    [only] = TileReader(cache).images(plane, finest, whole)  # nothing is read
    assert np.array_equal(only.values, image.values)
    coarser = next(one for one in plane.resolutions if one.level == finest.level - 1)
    [*_] = TileReader(cache).images(plane, coarser, Pixels(0, 32, 0, 32))
    assert cache.nbytes == 32 * 32 * 4  # which is larger than what is left


def test_series_have_a_slider_whose_neighbours_are_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "series.ambar"
    ambar.convert(output("sedov").parent, path, fsync=False)
    series = ambar.open_series(path)
    shown = CellsPage(series, ViewRequest.of(series))
    shown._background.wait()
    shown._ahead.wait()
    expected = [run.amr.slice("density").to_numpy().astype("f4") for run in series]
    assert np.array_equal(shown._images[0].values, expected[-1])
    planes = [shown._choice.plane(run.amr) for run in series]
    tiles = [TILES.get((plane.key(plane.resolutions[0]), (0, 0))) for plane in planes]
    for tile, image in zip(tiles, expected, strict=True):
        assert isinstance(tile, np.ndarray)
        assert np.array_equal(tile, image)
    shown._steps[0].slider.value = 0
    shown._background.wait()
    assert np.array_equal(shown._images[0].values, expected[0])


def test_the_call_of_python_draws_the_same_picture(run: Path) -> None:
    snapshot = ambar.open_snapshot(run)
    plane = Plane(snapshot.amr, "pressure", "project", axis=1, weight="density")
    view = View(0.25, 0.75, 0.5, 1.0, 400, 400)
    resolution = view.resolution(plane)
    pixels = view.pixels(plane, resolution, 0)
    [*_, image] = TileReader(TileCache()).images(plane, resolution, pixels)
    opened = f"ambar.open_snapshot({str(run)!r})"
    code = python_call(opened, image, view, "log", (1e-3, 2.0), "inferno")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the code that the page shows
    assert np.array_equal(names["image"].to_numpy().astype("f4"), image.values)


def test_the_program_prints_the_url_and_ends_with_ctrl_c(run: Path) -> None:
    command = [sys.executable, "-m", "ambar", "view", str(run), "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        line = program.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=30) as answer:  # noqa: S310
            assert answer.status == 200
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=30) == 0


def test_cells_of_one_dimension_are_refused() -> None:
    tube = RAMSES_CASES / "tube_1d_walls" / "output_00002"
    with pytest.raises(ambar.UnsupportedError, match="2 or 3 dimensions"):
        ambar.view(tube).serve(browser=False)
