"""A headless Chromium that shows pages of the viewer, and collects what goes wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ambar
from ambar.viewer.viewer import Viewer

CHROMIUM = "/usr/bin/chromium"
"""The browser of the Debian package chromium."""
ARGUMENTS = ["--no-sandbox", "--enable-unsafe-swiftshader"]
"""For containers, and for WebGL without a graphics card."""


class Screen:
    """A page of the viewer in the browser.

    Parameters
    ----------
    page : playwright.sync_api.Page
        The page.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        """Errors of the console, uncaught exceptions, and failed requests."""
        page.on("console", self._log)
        page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        page.on("requestfailed", lambda request: self.errors.append(f"failed: {request.url}"))

    def _log(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def wait_for(self, selector: str) -> Any:
        """Return the first element that matches a selector, when it is visible."""
        found = self.page.locator(selector).first
        found.wait_for(state="visible", timeout=30_000)
        return found

    def tooltip(self, x: float, y: float) -> dict[str, str]:
        """Return what is shown under the pointer at a place of the figure, in fractions of it."""
        rows = self.page.locator(".bk-tooltip-row-label, .bk-tooltip-row-value")
        texts: list[str] = []
        for step in range(150):  # a figure that is not drawn yet, or is replaced, misses movements
            box = self.wait_for(".bk-Figure").bounding_box()
            if box is not None:
                left, top = box["x"] + x * box["width"], box["y"] + y * box["height"]
                self.page.mouse.move(left + step % 2, top)
            self.page.wait_for_timeout(100)
            texts = rows.all_inner_texts()  # in one call: the tooltip may be replaced
            if step and texts and len(texts) % 2 == 0:
                break
        labels = (label.strip().rstrip(":") for label in texts[::2])
        return dict(zip(labels, (value.strip() for value in texts[1::2]), strict=True))


@contextmanager
def shown(
    browser: Any, path: Any, size: tuple[int, int] = (1200, 800), against: Any = None
) -> Iterator[Screen]:
    """Show data in the browser; the errors of the page must be none at the end."""
    with visited(browser, ambar.view(path, against=against), size) as screen:
        yield screen


@contextmanager
def visited(browser: Any, viewer: Viewer, size: tuple[int, int] = (1200, 800)) -> Iterator[Screen]:
    """Show the page of a viewer in the browser; the errors of the page must be none at the end."""
    with viewer.serve(browser=False):
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        screen = Screen(page)
        page.goto(viewer.url)
        yield screen
        page.close()
    if screen.errors:
        pytest.fail("errors in the browser:\n" + "\n".join(screen.errors))
