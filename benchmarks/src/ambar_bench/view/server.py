"""A viewer that prints when it gets a window and when it has sent an image: ``server PATH``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import ambar
from ambar.viewer.pages.cells.map_figure import MapFigure
from ambar.viewer.pages.cells.page import CellsPage


def _logged(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if kind == "window":
            print(kind, time.perf_counter(), flush=True)  # noqa: T201
        result = function(*arguments)
        if kind == "image":
            print(kind, time.perf_counter(), flush=True)  # noqa: T201
        return result

    return call


if __name__ == "__main__":
    MapFigure.show_image = _logged("image", MapFigure.show_image)  # type: ignore[method-assign]
    CellsPage._move = _logged("window", CellsPage._move)  # type: ignore[method-assign]
    viewer = ambar.view(sys.argv[1]).serve(browser=False)
    print(viewer.url, flush=True)  # noqa: T201
    viewer.wait()
