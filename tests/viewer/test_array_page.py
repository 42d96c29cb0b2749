"""The page of plain arrays, in a browser; values are compared with those of the data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
import ambar.xarray
from ambar.figures.panels import bin_extremes
from ambar.viewer.background import Background
from ambar.viewer.message import Message
from ambar.viewer.pages.arrays import Comparison, ImagePicture, first_values
from ambar.viewer.pages.arrays.axes import Axis, axes_of
from ambar.viewer.pages.arrays.windows import read_image, read_line
from tests.helpers.browser import Screen, shown
from tests.helpers.paths import RAMSES_CASES
from tests.helpers.range_server import RangeServer
from tests.helpers.store_chunks import damage

RNG = np.random.default_rng(7)


MARKUP = "<img src=missing onerror=alert(1)>"
"""A coordinate that the page must not interpret."""


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """Return a store with coordinates that ascend, descend, are uneven, and times.

    The array `damaged` has a chunk that fails its checksum, and `wide` has more columns than the
    screen.
    """
    latitudes, longitudes = np.linspace(60, -60, 61), np.arange(0.0, 360.0, 3.0)
    fields = RNG.normal(280, 5, (6, 3, 61, 120)).astype("f4")
    packed = RNG.integers(0, 900, (6, 61, 120)) / 100
    dataset = xr.Dataset(
        {
            "temperature": (("time", "level", "lat", "lon"), fields, {"units": "K"}),
            "rain": (("time", "lat", "lon"), packed, {"units": "mm"}),
            "station": ("time", np.arange(6.0)),
            "wide": (("place", "row", "column"), RNG.integers(0, 255, (1, 100, 6000), "u1")),
            "damaged": (("row", "lon"), RNG.random((100, 120))),
        },
        coords={
            "time": np.datetime64("2020-01-01", "ns") + np.arange(6) * np.timedelta64(6, "h"),
            "level": [1000.0, 850.0, 100.0],
            "lat": ("lat", latitudes, {"units": "degrees_north"}),
            "lon": longitudes,
            "place": [MARKUP],
        },
    )
    dataset["rain"][0, 0, 0] = np.nan
    path = tmp_path_factory.mktemp("arrays") / "weather.ambar"
    encoding = {"rain": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}}
    dataset.ambar.write(path, encoding=encoding, fsync=False)
    damage(path, "damaged")
    return path, dataset


@pytest.fixture(scope="module")
def screen(browser: Any, weather: tuple[Path, xr.Dataset]) -> Iterator[Screen]:
    """Return the page of the store, which is read over HTTP."""
    path, _ = weather
    with RangeServer(path.parent) as server, shown(browser, f"{server.url}/{path.name}") as page:
        yield page


def choose(screen: Screen, variable: str) -> None:
    """Choose a variable."""
    screen.page.locator("select").first.select_option(variable)


def check_value(screen: Screen, field: xr.DataArray) -> None:
    """Check that the value under the pointer becomes that of a field of two dimensions."""
    rows, columns = field.dims
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = screen.tooltip(0.4, 0.3)
        if {rows, columns, "value"} <= set(found):
            at = {name: float(found[str(name)]) for name in (rows, columns)}
            expected = float(
                field.sel(at) if rows in field.coords else field[{n: int(i) for n, i in at.items()}]
            )
            if float(found["value"]) == pytest.approx(expected, rel=1e-5):
                return
        screen.page.wait_for_timeout(100)
    pytest.fail(f"expected the value of {field.name} there, found {found}")


def test_the_value_under_the_pointer_is_that_of_the_data(
    screen: Screen, weather: tuple[Path, xr.Dataset]
) -> None:
    _, dataset = weather
    choose(screen, "temperature")
    check_value(screen, dataset.temperature[0, 0])
    # The sliders choose indices of the other dimensions, here the last ones.
    handles = screen.page.locator(".noUi-handle")
    for number, label in enumerate(("time = 2020-01-02 06:00", "level = 100")):
        for _ in range(20):
            handles.nth(number).press("ArrowRight")
            screen.page.wait_for_timeout(100)
            if screen.page.get_by_text(label).count():
                break
    check_value(screen, dataset.temperature[5, 2])
    # "Play" moves the first slider, and begins again after the last index.
    play = screen.page.get_by_role("button", name="Play")
    last = screen.wait_for("text=time = 2020-01-02 06:00")
    play.click()
    last.wait_for(state="detached", timeout=30_000)
    screen.wait_for("text=time = 2020-01-01")
    play.click()
    # A click draws the line along the time.
    screen.tooltip(0.4, 0.3)
    screen.page.mouse.down()
    screen.page.mouse.up()
    screen.page.locator(".bk-Figure").nth(1).wait_for()
    # Another variable, which is decoded, on a logarithmic scale.
    choose(screen, "rain")
    check_value(screen, dataset.rain[0])
    screen.page.locator("text=log").first.click()
    check_value(screen, dataset.rain[0])


def test_the_pointer_names_the_index_of_an_image_with_steps(
    screen: Screen, weather: tuple[Path, xr.Dataset]
) -> None:
    choose(screen, "wide")
    check_value(screen, weather[1].wide[0].drop_vars("place"))
    # Names and coordinates are text, not HTML.
    assert screen.page.get_by_text(MARKUP).first.is_visible()


def test_variables_can_be_changed_faster_than_they_are_shown(
    screen: Screen, weather: tuple[Path, xr.Dataset]
) -> None:
    # Messages of the figure, of its background and of the controls are on their way together.
    for number in range(30):
        choose(screen, ("rain", "temperature")[number % 2])
        for place in RNG.uniform((300, 150), (1000, 500), (3, 2)):
            screen.page.mouse.click(*place)
            screen.page.wait_for_timeout(40)
    check_value(screen, weather[1].temperature[0, 0])


def test_the_last_change_is_shown_without_another_one(
    screen: Screen, weather: tuple[Path, xr.Dataset]
) -> None:
    # Panel forgets messages that are queued while others are written.
    names = ("rain", "temperature", "wide")
    for number in range(9):
        choose(screen, names[number % 3])
        for place in RNG.uniform((300, 150), (1000, 500), (3, 2)):
            screen.page.mouse.click(*place)
            screen.page.wait_for_timeout(40)
        field = weather[1][names[number % 3]]
        check_value(screen, field[(0,) * (field.ndim - 2)].drop_vars("place", errors="ignore"))


def test_damaged_chunks_give_a_message(screen: Screen) -> None:
    choose(screen, "damaged")
    screen.wait_for("text=checksum")
    # The other variables can still be seen.
    choose(screen, "rain")
    screen.page.locator(".alert-danger").wait_for(state="hidden")
    assert "value" in screen.tooltip(0.5, 0.5)


def test_intact_parts_of_damaged_arrays_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    values = RNG.random((3, 90, 70))
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", values, chunks=(2, 20, 16))
    damage(path, "a")
    array = ambar.open_store(path)["a"]
    for rows, columns in ((slice(0, 90, 1), slice(0, 70, 1)), (slice(5, 80, 4), slice(8, 64, 4))):
        for plane in range(3):
            [*_, window] = read_image(array, [plane, rows, columns], 1)
            is_read = np.isfinite(window.values)
            expected = values[plane, rows, columns]
            np.testing.assert_array_equal(window.values[is_read], expected[is_read])
            # One chunk of the planes 0 and 1 is damaged: at most 20 x 16 values.
            steps = rows.step * columns.step
            assert len(window.errors) == (plane < 2)
            assert (~is_read).sum() * steps <= 320 * (plane < 2)
    # A line of a damaged chunk lacks its values; a window in it has none.
    place = np.argwhere(~np.isfinite(_image(array, 0)))[0]
    [*_, line] = read_line(array, [0, slice(0, 90), int(place[1])], 1000)
    assert 0 < np.isnan(line.values).sum() <= 20
    assert len(line.errors) == 1
    row, column = (slice(int(at), int(at) + 1, 1) for at in place)
    with pytest.raises(ambar.CorruptError, match="checksum"):
        list(read_image(array, [0, row, column], 1))


def _image(array: ambar.Array, plane: int) -> np.ndarray:
    slices = [slice(0, size, 1) for size in array.shape[1:]]
    return list(read_image(array, [plane, *slices], 1))[-1].values


def test_two_versions_are_beside_their_difference(
    browser: Any, weather: tuple[Path, xr.Dataset], tmp_path: Path
) -> None:
    path, dataset = weather
    near = dataset[["temperature"]] + np.float32(0.5)
    near.ambar.write(tmp_path / "near.ambar", fsync=False)
    with shown(browser, path, against=tmp_path / "near.ambar") as screen:
        screen.wait_for(".bk-Figure >> nth=2")
        check_value(screen, dataset.temperature[0, 0])
    original, other = (ambar.open_store(one) for one in (path, tmp_path / "near.ambar"))
    array, message = original["temperature"], Message()
    comparison = Comparison(other["temperature"], ("a", "b"))
    picture = ImagePicture(array, "a", axes_of(original, array), message, comparison)
    for image in picture.images:
        image._background.wait()
    first, second, third = (image._source.data["image"][0] for image in picture.images)
    np.testing.assert_allclose(second - first, third, atol=1e-4)
    assert picture.images[2].figure.title.text == "max error 0.5"
    assert picture.images[2]._colors.high.value == pytest.approx(0.5, rel=1e-4)
    with pytest.raises(ValueError, match="expected a Store"):
        ambar.view(path, against=RAMSES_CASES / "tube_1d_walls" / "output_00002")


def test_values_stay_at_their_indices_while_a_read_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", RNG.random((100, 100)))
    store = ambar.open_store(path)
    picture = ImagePicture(store["a"], "a", axes_of(store, store["a"]), Message())
    image = picture.image
    image._background.wait()
    before = {name: getattr(image._image.glyph, name) for name in ("x", "y", "dw", "dh")}
    path.write_bytes(b"")
    image.figure.x_range.update(start=40, end=55)
    image.refresh()
    image._background.wait()
    image.recolor()
    assert {name: getattr(image._image.glyph, name) for name in before} == before
    assert not image.is_reading


def test_a_page_says_that_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ambar.viewer.background._PATIENCE", 0.02)
    message = Message()
    results: list[Any] = []
    background = Background(results.append, message.fail, message.wait)

    def read(failure: Exception | None) -> Iterator[str]:
        end = time.monotonic() + 10
        while not message.pane.visible and time.monotonic() < end:
            time.sleep(0.01)
        results.append(message.pane.object)
        if failure is not None:
            raise failure
        yield "values"

    background.submit(lambda: read(None))
    background.wait()
    assert results == ["reading ...", "values"]
    assert not message.pane.visible
    background.submit(lambda: read(OSError("503 Service Unavailable")))
    background.wait()
    assert results[2:] == ["reading ..."]
    assert message.pane.object == "503 Service Unavailable"


def test_lists_read_few_values() -> None:
    for shape in ((), (7,), (0, 3), (500, 2000), (3, 100_000), (40, 30, 2)):
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        part = values[first_values(shape, 500)].reshape(-1)
        assert part.size < 1000
        np.testing.assert_array_equal(part[:500], values.reshape(-1)[:500])


def test_windows_of_images_are_read_in_pieces(tmp_path: Path, monkeypatch: Any) -> None:
    values = RNG.random((3, 200, 140))
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", values, chunks=(1, 16, 32))
        writer.create_array("complex", values[0] + 1j * values[1])
    store = ambar.open_store(path)
    monkeypatch.setattr("ambar.viewer.pages.arrays.windows._PIECE", 1 << 14)
    rows, columns = slice(12, 192, 4), slice(2, 140, 2)
    images = list(read_image(store["a"], [2, rows, columns], 1))
    assert len(images) > 3
    np.testing.assert_array_equal(images[-1].values, values[2, rows, columns])
    [*_, turned] = read_image(store["a"], [2, rows, columns], 2)
    np.testing.assert_array_equal(turned.values, values[2, rows, columns].T)
    [*_, magnitude] = read_image(store["complex"], [slice(0, 200, 1), slice(0, 140, 1)], 0)
    np.testing.assert_array_equal(magnitude.values, abs(values[0] + 1j * values[1]))


def test_lines_keep_the_extremes_of_each_pixel(tmp_path: Path) -> None:
    values = RNG.normal(size=1_000_000)
    values[123_456] = 99
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", values)
    array = ambar.open_store(path)["a"]
    [*_, line] = read_line(array, [slice(0, 1_000_000)], 500)
    indices, shown_values = line.indices, line.values
    assert len(indices) == 1000
    assert shown_values.max() == 99
    np.testing.assert_array_equal(values[indices], shown_values)
    places, found = bin_extremes(np.array([1.0, np.nan, 3.0, np.nan]), 3)
    assert places.tolist() == [0, 2, 3, 3]
    assert found[:2].tolist() == [1.0, 3.0]


def test_axes_have_the_coordinates_of_the_store(weather: tuple[Path, xr.Dataset]) -> None:
    path, dataset = weather
    store = ambar.open_store(path)
    time, level, lat, lon = axes_of(store, store["temperature"])
    assert time.is_time
    assert time.label(1) == "2020-01-01 06:00"
    assert (lat.start, lat.step, lat.title) == (60, -2, "lat (degrees_north)")
    assert lat.index(-59.2) == 60
    assert level.uneven is not None
    assert [level.index(position) for position in (900.0, 20.0)] == [1, 2]
    assert level.even().step == 1
    assert lon.span(slice(0, 120, 4)) == (-1.5, 360)
    assert lat.span(slice(0, 61, 1)) == (-61, 122)
    assert Axis("x", 10, "x").window(-5, 20, 1000) == slice(0, 10, 1)
    assert np.array_equal(lat.at(np.arange(61)), dataset.lat)
