"""The figure of a plane: image, axes in a unit of length, colour bar, and the value at the pointer.

The browser moves and scales the last image by itself, and keeps lengths of both axes equal. It
reports the window once per frame; the server answers with another image if the last one does not
show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS, Range1d
from bokeh.plotting import figure

from ambar.viewer.colors import Colors
from ambar.viewer.layout import set_title, style
from ambar.viewer.pages.cells.view import View
from ambar.viewer.sampling import as_float32

Place: TypeAlias = tuple[float, float]
"""A position, or a width and a height."""

_REPORT_WINDOW = """
if (plot.is_reporting) return
plot.is_reporting = true
requestAnimationFrame(() => {
  plot.is_reporting = false
  const columns = plot.inner_width, rows = plot.inner_height
  if (!(columns > 20 && rows > 20)) return
  const width = x.end - x.start, height = y.end - y.start
  const pixel = Math.max(width / columns, height / rows)
  if (Math.abs(pixel * columns / width - 1) > 1e-3 || Math.abs(pixel * rows / height - 1) > 1e-3) {
    const [cx, cy] = [(x.start + x.end) / 2, (y.start + y.end) / 2]
    x.setv({start: cx - pixel * columns / 2, end: cx + pixel * columns / 2})
    y.setv({start: cy - pixel * rows / 2, end: cy + pixel * rows / 2})
  }
  const scale = window.devicePixelRatio
  view.data = {window: [x.start, x.end, y.start, y.end, columns * scale, rows * scale]}
})
"""
_GO_TO = """
const [left, right, bottom, top] = target.data.window
x.setv({start: left, end: right, reset_start: left, reset_end: right})
y.setv({start: bottom, end: top, reset_start: bottom, reset_end: top})
"""


class MapFigure:
    """The figure of a plane.

    Parameters
    ----------
    colors
        The colours of the image.
    beside
        Another figure, with which this one moves.
    bar
        The side of the colour bar.
    """

    def __init__(
        self,
        colors: Colors,
        beside: MapFigure | None = None,
        bar: Literal["right", "below"] = "right",
    ) -> None:
        self.colors = colors
        self.source = ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
        self.plot: Any = figure(
            x_range=beside.plot.x_range if beside else Range1d(0, 1, syncable=False),
            y_range=beside.plot.y_range if beside else Range1d(0, 1, syncable=False),
            tools="pan,wheel_zoom,box_zoom,reset,save",
            active_scroll="wheel_zoom",
            active_drag="pan",
            toolbar_location="right" if bar == "right" else "above",
            sizing_mode="stretch_both",
            min_border=10,
        )
        self.plot.image(
            image="image",
            x="x",
            y="y",
            dw="dw",
            dh="dh",
            source=self.source,
            color_mapper=colors.mapper,
        )
        self._bar = colors.new_bar(is_horizontal=bar == "below")
        self.plot.add_layout(self._bar, bar)
        style(self.plot)
        self._length = 1.0
        self._target = ColumnDataSource({"window": [0.0, 1.0, 0.0, 1.0]})

    def report_window(self, on_view: Callable[[View], None]) -> None:
        """Call a function with the window, code length, after each move and change of size."""
        plot, x, y = self.plot, self.plot.x_range, self.plot.y_range
        view = ColumnDataSource({"window": []})
        report = CustomJS(args={"plot": plot, "x": x, "y": y, "view": view}, code=_REPORT_WINDOW)
        for side in (x, y):
            side.js_on_change("start", report)
            side.js_on_change("end", report)
        plot.js_on_change("inner_width", report)
        plot.js_on_change("inner_height", report)
        go_to = CustomJS(args={"target": self._target, "x": x, "y": y}, code=_GO_TO)
        self._target.js_on_change("data", go_to)

        def on_change(_attr: str, _old: object, new: dict[str, list[float]]) -> None:
            left, right, bottom, top, columns, rows = new["window"]
            unit = self._length
            on_view(View(left / unit, right / unit, bottom / unit, top / unit, columns, rows))

        view.on_change("data", on_change)

    def show_window(self, lower: Place, upper: Place, length: float) -> None:
        """Show all between two corners; `length` is their unit in the unit of the axes."""
        self._length = length
        (left, bottom), (right, top) = lower, upper
        sides = [side * length for side in (left, right, bottom, top)]
        self.plot.x_range.update(start=sides[0], end=sides[1])
        self.plot.y_range.update(start=sides[2], end=sides[3])
        self._target.data = {"window": sides}

    def show_image(self, corner: Place, size: Place, values: np.ndarray, length: float) -> None:
        """Show an image from its lower left corner on, with values on the scale of the colours.

        `length` is the unit of its corner and size in that of the axes.
        """
        sides = (side * length for side in (*corner, *size))
        places = {name: [side] for name, side in zip(("x", "y", "dw", "dh"), sides, strict=True)}
        self.source.data = {"image": [as_float32(values)], **places}

    def show_labels(self, axes: Sequence[str], title: str, length_unit: str, label: str) -> None:
        """Show the title, and the labels of the axes and of the colour bar."""
        for axis, name in zip((self.plot.xaxis, self.plot.yaxis), axes, strict=True):
            axis.axis_label = f"{name} [{length_unit}]"
        set_title(self.plot, title)
        self._bar.title = label
