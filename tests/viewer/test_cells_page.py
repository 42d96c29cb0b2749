"""The page of cells in a browser: the values under the pointer are those of the data."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

import ambar
from ambar.kinds.registry import open_outputs
from ambar.kinds.request import ViewRequest
from ambar.snapshot.outputs import Outputs
from ambar.snapshot.pictures.images import image_of
from ambar.snapshot.pictures.options import CellsPlot
from ambar.snapshot.pictures.panels import extent_of
from ambar.viewer.background import Background
from ambar.viewer.colors import Colors, ticks_between
from ambar.viewer.pages.cells.call import _opening, python_call
from ambar.viewer.pages.cells.comparison import difference, error_bound, matching_outputs
from ambar.viewer.pages.cells.line_page import LinePage
from ambar.viewer.pages.cells.overlays import borders, cell_sides, positions
from ambar.viewer.pages.cells.page import CellsPage
from ambar.viewer.pages.cells.particles_page import ParticlesPage
from ambar.viewer.pages.cells.plane import Pixels, Plane
from ambar.viewer.pages.cells.tiles import TILES, Image, TileCache, TileReader
from ambar.viewer.pages.cells.view import View
from ambar.viewer.server import Server
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.browser import Screen, shown
from tests.helpers.particle_snapshots import particles, write_gadget
from tests.helpers.paths import RAMSES_CASES
from tests.helpers.ramses_outputs import HYDRO, Spec, write_output
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
        with screen.page.expect_download() as saved:
            screen.page.locator(".bk-tool-icon-save").click()
        assert saved.value.suggested_filename.startswith("density, integrated along x, time")
        assert saved.value.suggested_filename.endswith(".png")


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "c2FtcGxlIG5vbmNlIDEyMw==",
}
"""Headers of a request to open a websocket."""


def status_of(url: str, headers: dict[str, str] | None = None) -> int:
    """Return the status of the answer to a request."""
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - this machine
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(request, timeout=20)  # noqa: S310
    return answer.value.code


def test_requests_without_the_token_are_refused(run: Path) -> None:
    with ambar.view(run).serve(browser=False) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        page, _, token = viewer.url.partition("?token=")
        assert len(token) >= 32
        wrong = f"?token={token[:-1]}"
        assert [status_of(page), status_of(page + wrong)] == [403, 403]
        # With the token, the answer to a websocket without a session of Bokeh is not a refusal.
        queries = ("", wrong, f"?token={token}")
        socket_status = [status_of(f"{page}ws{query}", UPGRADE) for query in queries]
        assert socket_status[:2] == [403, 403]
        assert socket_status[2] != 403
        with urllib.request.urlopen(viewer.url, timeout=20) as answer:  # noqa: S310
            assert answer.status == 200
        bundle = viewer._repr_mimebundle_()
        assert viewer.url in bundle["text/html"]
        with pytest.raises(OSError, match="in use"):
            ambar.view(run).serve(int(page.rsplit(":", 1)[1].strip("/")), browser=False)


def test_the_first_visitor_gets_the_page_that_was_made_before() -> None:
    themes: list[str] = []

    def make_page() -> Any:
        themes.append(pn.config.theme)
        return pn.Row("text")

    server = Server(make_page, "pages")
    expected = ["default"]
    for query, more in (("&theme=dark", ["dark"]), ("", []), ("", ["default"])):
        urllib.request.urlopen(server.url + query, timeout=20).close()  # noqa: S310
        expected += more
        assert themes == expected
    # It was made long before, and is kept until the browser has connected.
    [first, *others] = server._server.get_sessions()
    assert first.expiration_blocked
    assert not any(session.expiration_blocked for session in others)
    server.stop()


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
        screen.page.locator(".alert-danger").first.wait_for(state="hidden")
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


def whole(plane: Plane, level: int | None = None) -> Image:
    """Return the image of all of a plane."""
    resolution = next(one for one in plane.resolutions if level in (None, one.level))
    pixels = Pixels(0, resolution.shape[0], 0, resolution.shape[1])
    [*_, image] = TileReader(TileCache()).images(plane, resolution, pixels)
    return image


def test_differences_are_those_of_the_stored_values(tmp_path: Path) -> None:
    paths = tmp_path / "a.ambar", tmp_path / "b.ambar"
    ambar.convert(output("sedov"), paths[0], fsync=False)
    ambar.convert(paths[0], paths[1], error_bound={"pressure": 1e-6}, fsync=False)
    runs = [ambar.open_snapshot(path) for path in paths]
    planes = [Plane(run.amr, "pressure", at=0.25, is_exact=True) for run in runs]
    error = np.abs(difference(*map(whole, planes)).values).max()
    assert 5e-7 < error <= 1e-6 == error_bound(runs[1], planes[1])
    means = [replace(planes[1], method="project", weight=name) for name in ("volume", "density")]
    assert [error_bound(runs[1], mean) for mean in means] == [1e-6, None]
    with pytest.raises(ValueError, match=r"expected the box of .*a\.ambar"):
        ambar.view(paths[0], against=output("gravpart")).serve(browser=False)
    with pytest.raises(ValueError, match="against and commit"):
        ambar.view(ambar.open_store(paths[0]), against=paths[1], commit=1)


def test_the_call_of_python_draws_the_same_commit_and_output(tmp_path: Path) -> None:
    path = tmp_path / "run.ambar"
    ambar.convert(output("sedov").parent, path, fsync=False)
    snapshot = ambar.open_series(path, commit=1).output(1)
    image = whole(Plane(snapshot.amr, "pressure", at=0.25))
    code = python_call(snapshot, image, View(0, 0.5, 0, 0.5, 100, 100), "log", (1, 10), "greys")
    assert "commit=1" in code
    assert ".output(1)" in code
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102
    assert np.array_equal(names["image"].to_numpy().astype("f4"), image.values)


def test_names_of_stores_are_not_code(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "<img src=x>.ambar"
    path.symlink_to(run)
    with ambar.view(path).serve(browser=False) as viewer:
        page = urllib.request.urlopen(viewer.url, timeout=20).read()  # noqa: S310 - this machine
    assert b"<b>&lt;img src=x&gt;.ambar</b>" in page
    assert b"<b><img" not in page


def test_colours_have_limits_and_a_few_ticks() -> None:
    colors = Colors(lambda: None)
    colors.fit(np.full((2, 2), 2e33))
    assert colors.low.value < 2e33 < colors.high.value
    low = colors.low.value
    colors.low.value = None  # as an emptied input
    assert colors.low.value == low
    assert len(ticks_between(1.0, 1e11, "log")) == 6


def test_a_closed_page_ends_its_task() -> None:
    document = Document()
    with set_curdoc(document):
        background = Background(lambda _: None, print)
    reached: list[int] = []
    has_started = threading.Event()

    def task() -> Iterator[int]:
        for number in range(10**9):
            reached.append(number)
            has_started.set()
            yield number

    background.submit(task)
    has_started.wait(20)
    for callback in document.session_destroyed_callbacks:
        callback(None)
    background.wait()
    assert len(reached) < 10**9


def test_servers_close_their_descriptors(run: Path) -> None:
    viewer = ambar.view(run)
    viewer.serve(browser=False).stop()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        viewer.serve(browser=False).stop()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


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
    unknown = np.where(image.values == image.values.max(), np.nan, image.values)
    assert len(borders(image, unknown).x0) <= len(borders(image, image.values).x0)
    coarse = whole(plane, amr.levels[0] - 1)
    assert not len(cell_sides(coarse, np.full_like(coarse.values, amr.levels[0])).x0)
    lines = cell_sides(image, image.values)
    upright = lines.x0 == lines.x1
    assert {round(float(x), 9) for x in lines.x0[upright]} == edges - {0.25}
    x, y = positions(snapshot.particles, plane, view, slab=1.0)
    rows = snapshot.particles.read(["x", "y"])
    inside = (abs(rows["x"] - 0.5) <= 0.25) & (abs(rows["y"] - 0.5) <= 0.25)
    assert len(x) == np.count_nonzero(inside)
    assert sorted(y) == sorted(rows["y"][inside])


def test_tiles_are_read_once_and_released(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Plane(ambar.open_snapshot(run).amr, "density", at=0.5)
    finest = plane.resolutions[0]
    pixels = Pixels(0, finest.shape[0], 0, finest.shape[1])
    cache = TileCache(max_bytes=64 * 64 * 4)
    [*_, image] = TileReader(cache).images(plane, finest, pixels)
    assert image.is_complete
    assert cache.nbytes == 64 * 64 * 4
    assert np.array_equal(image.values, plane.amr.slice("density").to_numpy().astype("f4"))
    monkeypatch.setattr(Plane, "read", None)  # nothing is read
    [only] = TileReader(cache).images(plane, finest, pixels)
    monkeypatch.undo()
    assert np.array_equal(only.values, image.values)
    coarser = next(one for one in plane.resolutions if one.level == finest.level - 1)
    [*_] = TileReader(cache).images(plane, coarser, Pixels(0, 32, 0, 32))
    assert cache.nbytes == 32 * 32 * 4
    found = weakref.ref(plane.amr)
    del plane, image, only, _
    gc.collect()
    assert found() is None  # tiles do not keep files open


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
    _, folder = open_outputs(output("sedov").parent)
    for page in (shown, CellsPage(folder, ViewRequest(location="sedov"))):
        page._steps[0].slider.value = 0
        page._background.wait()
        assert np.array_equal(page._images[0].values, expected[0])


def test_colours_are_chosen_for_each_plane_unless_the_user_chose_them(run: Path) -> None:
    snapshot = ambar.open_snapshot(run)
    page = CellsPage(snapshot, ViewRequest.of(snapshot))
    page._background.wait()
    colors = page._colors
    assert (colors.scale.value, colors.palette.value) == ("log", "inferno")
    page._choice.field.value = "velocity_x"
    page._background.wait()
    assert (colors.scale.value, colors.palette.value) == ("linear", "red-blue")
    page._choice.field.value = "temperature"
    page._background.wait()
    assert colors.palette.value == "inferno"
    assert page._maps[0]._bar.title == "temperature [K]"
    colors.palette.value = "viridis"
    page._choice.field.value = "velocity_x"
    page._background.wait()
    assert colors.palette.value == "viridis"


def test_the_call_of_python_draws_the_same_picture(run: Path) -> None:
    snapshot = ambar.open_snapshot(run)
    plane = Plane(snapshot.amr, "pressure", "project", axis=1, weight="density")
    view = View(0.25, 0.75, 0.5, 1.0, 400, 400)
    resolution = view.resolution(plane)
    pixels = view.pixels(plane, resolution, 0)
    [*_, image] = TileReader(TileCache()).images(plane, resolution, pixels)
    code = python_call(snapshot, image, view, "log", (1e-3, 2.0), "inferno")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the code that the page shows
    assert np.array_equal(names["image"].to_numpy().astype("f4"), image.values)


def test_the_program_prints_the_url_and_ends_with_ctrl_c(run: Path) -> None:
    command = [sys.executable, "-m", "ambar", "view", str(run), "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The program inherits an ignored signal, which shells give to background jobs, but no handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    signal.signal(signal.SIGINT, before)
    try:
        assert program.stdout is not None
        line = program.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=30) as answer:  # noqa: S310
            assert answer.status == 200
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=30) == 0
    finally:
        program.kill()
        program.communicate()


def test_a_folder_of_outputs_is_compared_with_its_store(tmp_path: Path) -> None:
    folder, store = tmp_path / "run", tmp_path / "run.ambar"
    for number in (2, 3):
        write_output(folder, Spec(ndim=2, hydro=HYDRO[:4], number=number))
    ambar.convert(folder, store, fsync=False)
    write_output(folder, Spec(ndim=2, hydro=HYDRO[:4], number=4))
    with ambar.view(folder, against=store).serve(browser=False):
        pass
    opened, other = (open_outputs(path)[1] for path in (folder, store))
    same: Any
    page = CellsPage(opened, ViewRequest.of(opened, other))
    assert list(page._steps[0].slider.options) == ["2", "3"]
    assert [steps.number for steps in page._steps] == [3, 3]
    one, same = matching_outputs(opened[0], other)
    assert (one.location, same.info.output) == (opened[0].location, 2)
    with pytest.raises(ValueError, match="expected outputs with the numbers"):
        matching_outputs(opened[2], other)


TUBE = RAMSES_CASES / "tube_1d_walls" / "output_00002"


def test_cells_of_one_dimension_are_lines(browser: Any, tmp_path: Path) -> None:
    with shown(browser, TUBE) as screen:
        screen.page.get_by_text("log", exact=True).first.click()
        found = screen.tooltip(0.2, 0.4)
        x = float(found["x"])
        amr = ambar.open_snapshot(TUBE).amr
        cells = amr.read(["x", "dx", "density"])
        [inside] = np.flatnonzero(abs(cells["x"] - x) <= cells["dx"] / 2)[:1]
        assert float(found["value"]) == pytest.approx(cells["density"][inside], rel=1e-4)
    # Two versions have a line each, and their difference one.
    ambar.convert(TUBE, tmp_path / "near.ambar", error_bound=1e-3, fsync=False)
    original, near = ambar.open_snapshot(TUBE), ambar.open_snapshot(tmp_path / "near.ambar")
    page = LinePage(original, ViewRequest.of(original, near))
    page._background.wait()
    names = ("output_00002", "near.ambar", "difference", "level")
    first, second, error, level = (page._sources[name].data["y"] for name in names)
    np.testing.assert_allclose(second - first, error)
    assert 0 < abs(error).max() <= 1e-3
    assert level.max() == amr.levels[1]
    assert page._below["difference"].title.text.endswith("error bound ±0.001")


def test_particles_without_cells_are_maps(tmp_path: Path) -> None:
    write_gadget(tmp_path / "snap_003.hdf5", particles({0: 5000, 1: 900}))
    ambar.convert(tmp_path / "snap_003.hdf5", tmp_path / "snap.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "snap.ambar")
    page = ParticlesPage(snapshot, ViewRequest.of(snapshot))
    page._background.wait()
    whole: Any = page._image
    expected = image_of(snapshot, "Masses", CellsPlot(path="", particles=True, species="gas"))
    np.testing.assert_array_equal(whole, expected)
    # A window has the particles in it.
    box = float(whole["x"][-1])
    page._move(View(0.2 * box, 0.3 * box, 0.4 * box, 0.5 * box, 500, 500))
    page._background.wait()
    image: Any = page._image
    gas = snapshot.species["gas"]
    x, y, mass = (gas.read([name]).column(name, unit) for name, unit in UNITS.items())
    left, right, bottom, top = extent_of(image)
    assert (left, right) == (pytest.approx(0.1875 * box, 1e-2), pytest.approx(0.3125 * box, 1e-2))
    pixel = image.attrs["pixel_size"]  # and the side of a particle
    parts = [
        np.clip(np.minimum(place + pixel / 2, high) - np.maximum(place - pixel / 2, low), 0, None)
        for place, low, high in ((x, left, right), (y, bottom, top))
    ]
    total = np.sum(mass * parts[0] * parts[1]) / pixel**2
    assert float(image.sum()) * (pixel * 1e6) ** 2 == pytest.approx(total, rel=1e-4)
    page.species.value = "dark_matter"
    page._background.wait()
    assert page._map.plot.title.text.startswith("dark matter, along z")
    # Pixels whose mean is 0 have particles.
    image = page._image
    page._colors.scale.value = "linear"
    page._show(image.where(image.isnull(), 0.0))
    colored = page._map.source.data["image"][0]
    assert np.isfinite(colored).any()
    assert np.isnan(colored).any()


def test_a_plotfile_is_shown_in_the_units_of_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `ambar plot` had the option."""
    folder, flat = write_plotfile(tmp_path / "run" / "plt00000").parent, tmp_path / "flat.ambar"
    given: list[Any] = []
    monkeypatch.setattr("ambar.viewer.pages.cells.page.page", lambda *of: given.append(of))
    for path in (folder / "plt00000", folder):
        ambar.view(path, code_units="Nyx", against=path)._make_page()
    for opened, request in given:
        for one in (opened, request.against):
            snapshot = one[-1] if isinstance(one, Outputs) else one
            assert snapshot.info.units.velocity("km/s") == pytest.approx(1)
            assert _opening(snapshot).endswith(".with_units('Nyx')")
    kpc = ambar.open_snapshot(folder / "plt00000").with_units(ambar.Units(3e21, 1e-24, 1e13))
    names: dict[str, Any] = {"ambar": ambar}
    exec(f"again = {_opening(kpc)}", names)  # noqa: S102 - the code that the page shows
    assert names["again"].info == kpc.info
    with ambar.create(flat) as writer:
        writer.create_array("x", np.zeros(3))
    with pytest.raises(ambar.InvalidError, match="code_units does not apply to the kind 'arrays'"):
        ambar.view(flat, code_units="Nyx")


UNITS = {"x": "Mpc", "y": "Mpc", "mass": "Msol"}
