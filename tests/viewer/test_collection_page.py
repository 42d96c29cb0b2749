"""The page of collections, in a browser; what it shows is compared with the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.pictures.positions import PositionNames, coordinate_of, position_names
from ambar.viewer.message import Message
from ambar.viewer.pages.collection.lines import (
    DatasetLines,
    coordinates,
    drawable_names,
    read_lines,
)
from ambar.viewer.pages.collection.table import DatasetTable, Query, order_of, page_of, positions_of
from tests.helpers.argo_files import argo
from tests.helpers.browser import shown
from tests.helpers.store_chunks import damage

COUNT = 300


@pytest.fixture(scope="module")
def casts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a collection with attributes for positions; some datasets lack an attribute.

    The values of `salinity` are damaged.
    """
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("collections") / "casts.ambar"
    depth = np.arange(0, 500, 25.0)
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        for number in range(COUNT):
            values = (20 - depth / 30 + rng.normal(size=len(depth))).astype("f4")
            attrs = {"platform": "argo" if number % 3 else "ctd", "lon": number / 10, "lat": 45.0}
            attrs["<i>flag"] = "<b>good"
            collection.add(
                f"cast{number:03}",
                xr.Dataset(
                    {
                        "temperature": ("depth", values, {"units": "degC"}),
                        "salinity": ("depth", rng.random(len(depth))),
                    },
                    {"depth": ("depth", depth, {"units": "m", "positive": "down"})},
                    attrs | ({"cycle": number % 7} if number % 2 else {}),
                ),
            )
    damage(path, "f0/salinity")
    return path


def test_datasets_are_filtered_sorted_selected_and_drawn(browser: Any, casts: Path) -> None:
    collection = ambar.open_collection(casts)
    with shown(browser, casts) as screen:
        rows = screen.page.locator(".tabulator-row")
        screen.wait_for(".tabulator-row")
        screen.wait_for("text=of 300")
        condition = 'platform == "argo" and temperature.max > 20'
        wanted = collection.choose(condition)
        entry = screen.page.locator("input[type=text]").first
        entry.fill("platform = 3")
        entry.press("Enter")
        screen.wait_for("text=write == for equality")
        entry.fill(condition)
        entry.press("Enter")
        screen.wait_for(f"text=of {len(wanted)}")
        assert wanted[0] in rows.first.inner_text()
        # A click on the header sorts all datasets, not those of the page.
        title = screen.page.locator(".tabulator-col-title", has_text="dataset")
        for expected in (wanted[0], wanted[-1]):
            title.click()
            screen.wait_for(f".tabulator-row:first-child >> text={expected}")
        # Names and values of attributes are text, not HTML.
        columns = screen.page.locator(".tabulator-col-title")
        assert columns.filter(has_text="<i>flag").count() == 1
        assert "<b>good" in rows.first.inner_text()
        assert screen.page.locator(".choices__item", has_text="<i>flag").count()
        rows.first.locator("input[type=checkbox]").click()
        screen.wait_for("text=1 dataset selected")
        # Damaged chunks give a message; other variables can still be seen.
        variable = screen.page.locator("select:not([multiple])").first
        variable.select_option("salinity")
        screen.wait_for("text=checksum")
        variable.select_option("temperature")
        screen.page.locator(".alert-danger").last.wait_for(state="hidden")
        entry.fill("")
        entry.press("Enter")
        screen.wait_for("text=of 300")
        screen.page.get_by_text("Select all").click()
        screen.wait_for("text=300 datasets selected")
        # A box on the map selects the datasets in it.
        screen.page.get_by_text("Clear selection").click()
        figure = screen.page.locator(".bk-Figure").first
        figure.locator("[title^='Box Select']").click()
        box = figure.bounding_box()
        screen.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.2)
        screen.page.mouse.down()
        screen.page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + box["height"] * 0.8)
        screen.page.mouse.up()
        screen.page.locator("text=/^1[0-9][0-9] datasets selected/").wait_for()


def test_lines_are_the_values_of_the_datasets(casts: Path) -> None:
    collection = ambar.open_collection(casts)
    assert drawable_names(collection)[0] == "temperature"
    depth = coordinates(collection, "temperature")[0]
    assert (depth.name, depth.is_vertical, depth.is_down) == ("depth", True, True)
    [*_, lines] = read_lines(collection, "temperature", depth, np.array([7, 250]))
    assert lines["name"] == ["cast007", "cast250"]
    np.testing.assert_array_equal(lines["x"][1], collection["cast250"].temperature)
    np.testing.assert_array_equal(lines["y"][1], collection["cast250"].depth)


def test_pages_and_orders_of_the_table(casts: Path) -> None:
    collection = ambar.open_collection(casts)
    frame = page_of(collection, np.array([4, 5]), ["cycle", "temperature.max"])
    assert frame["dataset"].tolist() == ["cast004", "cast005"]
    assert frame["cycle"].tolist()[1] == 5
    statistics = collection.stats("temperature")
    np.testing.assert_array_equal(frame["temperature.max"], statistics["max"][[4, 5]])
    found = positions_of(collection, Query("cycle >= 0", "temperature.max", is_descending=True))
    assert found[0] == np.argmax(np.where(np.arange(COUNT) % 2, statistics["max"], -np.inf))
    # Datasets without the attribute are last in both directions.
    for is_descending in (False, True):
        order = positions_of(collection, Query("", "cycle", is_descending))
        assert set(order[COUNT // 2 :] % 2) == {0}
    assert order_of(np.array(["b", None, "a"], object), is_descending=False).tolist() == [2, 0, 1]


def test_an_attribute_may_have_the_name_of_the_first_column(tmp_path: Path) -> None:
    """The table lacked the column, and sorted by the names instead."""
    path = tmp_path / "sources.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        for name, source in (("a", "ERA5"), ("b", "CMIP6")):
            collection.add(name, xr.Dataset({"u": ("x", [1])}, attrs={"dataset": source}))
    collection = ambar.open_collection(path)
    frame = page_of(collection, np.array([0, 1]), ["dataset", "u.max"])
    assert frame.to_dict("list") == {
        "dataset": ["a", "b"],
        "attrs.dataset": ["ERA5", "CMIP6"],
        "u.max": [1, 1],
    }
    assert positions_of(collection, Query("", "attrs.dataset")).tolist() == [1, 0]
    assert positions_of(collection, Query("", "dataset")).tolist() == [0, 1]
    table = DatasetTable(collection, lambda *_: None, lambda _: None)
    table.refresh()
    table._background.wait()
    assert table._table.value["attrs.dataset"].tolist() == ["ERA5", "CMIP6"]


def test_an_emptied_page_number_is_the_first_page(casts: Path) -> None:
    table = DatasetTable(ambar.open_collection(casts), lambda *_: None, lambda _: None)
    table.refresh()
    table._background.wait()
    table._number.value = 3
    table._number.value = None
    table._background.wait()
    assert table._number.value == 1
    assert table._table.value["dataset"][0] == "cast000"


def test_collections_without_numbers_have_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "names.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        collection.add("a", xr.Dataset({"name": ("n", ["x", "y"])}))
    lines = DatasetLines(ambar.open_collection(path), Message())
    lines.choose(np.array([0]))
    assert not lines.main.objects


def test_positions_of_argo_profiles_come_from_statistics(tmp_path: Path) -> None:
    path = tmp_path / "argo.ambar"
    datasets = {f"profile{number}": argo(number) for number in range(4)}
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        collection.add_many(datasets)
    collection = ambar.open_collection(path)
    names = position_names(collection)
    assert names == PositionNames("LONGITUDE", "LATITUDE", is_sphere=True)
    assert drawable_names(collection)[0] == "TEMP"
    latitudes = [dataset.LATITUDE.item() for dataset in datasets.values()]
    np.testing.assert_allclose(coordinate_of(collection, "LATITUDE"), latitudes)
    pressure = coordinates(collection, "TEMP")[0]
    assert (pressure.name, pressure.is_vertical, pressure.is_down) == ("PRES", True, True)
    [*_, lines] = read_lines(collection, "TEMP", pressure, np.arange(4))
    np.testing.assert_array_equal(lines["x"][3], datasets["profile3"].TEMP.values[0])
