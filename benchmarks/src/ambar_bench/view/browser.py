"""A headless Chromium in which events of the mouse are timed until their pixels are painted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

CHROMIUM = "/usr/bin/chromium"
FRAME = 1000
"""Pixels along the sides of the map."""
_SETTLED = 0.7
"""Seconds after an event in which its last image arrives."""
_WATCH = """
() => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const source = models.find((model) => model.type == "ColumnDataSource" && "image" in model.data)
  window.plot = models.find((model) => model.type == "Figure" && model.toolbar.tools.length)
  window.painted = () => new Promise((done) =>
    requestAnimationFrame(() => setTimeout(() => done(performance.now()))))
  source.properties.data.change.connect(async () => { window.image = await painted() })
  for (const kind of ["wheel", "mousemove"])
    window.addEventListener(kind, async (event) => {
      window.event_at = event.timeStamp
      window.moved = await painted()
    }, {capture: true})
}
"""
_FIRST = """
() => {
  const document = window.Bokeh?.documents[0]
  if (!document) return false
  return [...document._all_models.values()].some((model) =>
    model.type == "ColumnDataSource" && "image" in model.data && model.data.image.length
    && !isNaN(model.data.image[0][0]))
}
"""
_PAINTED = """
() => new Promise((done) =>
  requestAnimationFrame(() => setTimeout(() => done(performance.now()))))
"""


@dataclass(frozen=True)
class Step:
    """The times of an event, in milliseconds after it."""

    moved: float
    """The browser has painted the last image at its new place."""
    settled: float
    """The last image of the server for it is painted; the same without a new image."""
    has_image: bool


class Page:
    """A page of the viewer."""

    def __init__(self, page: Any) -> None:
        self._page = page

    @property
    def center(self) -> tuple[float, float]:
        """The middle of the map on the screen."""
        box = self._page.locator("main .bk-Figure").first.bounding_box()
        return box["x"] + 60 + FRAME / 2, box["y"] + 30 + FRAME / 2

    def first_picture(self, url: str) -> float:
        """Open a URL; return the milliseconds until the first image is painted."""
        self._page.goto(url, wait_until="commit")
        self._page.wait_for_function(_FIRST, polling="raf")
        return float(self._page.evaluate(_PAINTED))

    def set_frame(self) -> None:
        """Give the map `FRAME` pixels along both sides, and watch it."""
        self._page.evaluate(_WATCH)
        for _ in range(3):
            self._page.wait_for_timeout(1000)
            inside = self._page.evaluate("[plot.inner_width, plot.inner_height]")
            size = self._page.viewport_size
            width, height = size["width"] + FRAME - inside[0], size["height"] + FRAME - inside[1]
            self._page.set_viewport_size({"width": width, "height": height})
        self._page.wait_for_timeout(3000)

    def wheel(self, turn: float) -> Step:
        """Turn the wheel over the middle of the map."""
        self._page.mouse.move(*self.center)
        return self._timed(lambda: self._page.mouse.wheel(0, turn))

    def drag(self, columns: float, rows: float) -> Step:
        """Move the map by a number of pixels, with the button pressed."""
        x, y = self.center
        self._page.mouse.move(x, y)
        self._page.mouse.down()
        step = self._timed(lambda: self._page.mouse.move(x + columns, y + rows))
        self._page.mouse.up()
        return step

    def choose(self, label: str) -> None:
        """Choose an option of the list that has it."""
        option = self._page.locator("option", has_text=label).first
        option.locator("xpath=ancestor::select").select_option(label=label)

    def save(self, path: str) -> None:
        """Save a picture of the screen."""
        self._page.screenshot(path=path)

    def _timed(self, move: Callable[[], None]) -> Step:
        self._page.wait_for_timeout(100)
        self._page.evaluate("() => { window.image = window.moved = 0 }")
        move()
        self._page.wait_for_timeout(_SETTLED * 1000)
        begin, moved, image = self._page.evaluate("[event_at, moved, image]")
        return Step(moved - begin, max(moved, image) - begin, image > begin)


@contextmanager
def opened_page() -> Iterator[Page]:
    """Yield an empty page; the browser ends at the end of the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Page(browser.new_page(viewport={"width": FRAME + 440, "height": FRAME + 150}))
        browser.close()
