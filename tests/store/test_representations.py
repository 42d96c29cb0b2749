"""Representations of stores and arrays as text and HTML."""

from __future__ import annotations

import doctest
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ambar
from ambar._util import html, text


class Elements(HTMLParser):
    """Collects the elements and the text of HTML; asserts that each element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.open.append(tag)
        self.elements.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("module", [html, text])
def test_examples_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_html_is_escaped_and_closed() -> None:
    nasty = '<script>alert("x")</script>'
    cells = html.table([(nasty, 1234, None), (True, 0.5, "y")], header=(nasty, "b", "c"))
    page = html.representation(nasty, {nasty: nasty, "absent": None}, html.details(nasty, cells))
    found = Elements(page)
    assert "script" not in found.elements
    assert found.text.count(nasty) == 6
    assert found.elements.count("td") == 8
    assert "1,234" in found.text
    assert "absent" not in found.text
    assert html.table([]).count("<tr") == 0
    assert "<details open>" in html.details("x", "", is_open=True)


def test_text_has_aligned_columns() -> None:
    assert text.columns([]) == []
    assert text.columns([("a", 5, True), ("bcd", 1200)]) == ["  a        5  True", "  bcd  1,200"]
    assert text.representation("<x>", {"A": None, "B": 1, "Cd": "y"}, ["  z"]) == (
        "<x>\n  B:   1\n  Cd:  y\n  z"
    )


def test_stores_and_arrays_show_shapes_sizes_and_codecs(tmp_path: Path) -> None:
    path = tmp_path / "a<b>.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("run/x", np.zeros((3, 4)), dims=["y", None], attrs={"units": "m"})
        writer.create_array("names", np.array(["a", "bc"], object))
        writer.create_array("t", np.zeros(5, np.float32), error_bound=0.5)
    store = ambar.open_store(path)
    shown = repr(store)
    assert shown.startswith(f"<ambar.Store {path}>\n")
    assert "run/x  (y: 3, 4)  float64  96 B as " in shown
    assert "names  (2,)       string" in shown
    assert "(2 arrays" not in shown
    array = repr(store["run/x"]).splitlines()
    assert array[0] == f"<ambar.Array run/x in {path}>"
    assert "  Shape:       (y: 3, 4)" in array
    assert "  Chunks:      (3, 4)" in array
    assert "  Attributes:  units" in array
    assert "Error bound:  0.5" in repr(store["t"])
    group = repr(store["run"]).splitlines()
    assert group[:3] == [f"<ambar.Group run in {path}>", "  Arrays:  1", "  Groups:  0"]
    assert group[3].startswith("    x  (y: 3, 4)  float64")
    for item in (store, store["names"], store["run"], store[""]):
        page = Elements(item._repr_html_())
        assert page.elements.count("table") >= 1
        assert "float64" in page.text or "string" in page.text
    assert str(path) in Elements(store._repr_html_()).text


def test_a_store_of_many_arrays_shows_some(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "a.ambar", fsync=False) as writer:
        for number in range(50):
            writer.create_array(f"a{number:02}", np.zeros(1))
    store = ambar.open_store(tmp_path / "a.ambar")
    assert "... and 10 more" in repr(store)
    assert len(repr(store).splitlines()) == 46
    assert "50 arrays (10 of them not shown)" in store._repr_html_()
