"""The line below the maps: position and values under the pointer, found in the browser."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.events import MouseLeave, MouseMove
from bokeh.models import ColumnDataSource, CustomJS, Div

from ambar.viewer.pages.cells.map_figure import MapFigure

_SHOW = """
if (!labels.data.text.length) return
const [first, second, length_unit, field, value_unit, ...names] = labels.data.text
const digits = (value) => String(Number(value.toPrecision(7)))
const values = sources.map((source, number) => {
  const {image, x, y, dw, dh} = source.data
  if (!image.length) return ""
  const [rows, columns] = image[0].shape
  const column = Math.floor((cb_obj.x - x[0]) / dw[0] * columns)
  const row = Math.floor((cb_obj.y - y[0]) / dh[0] * rows)
  if (!(0 <= column && column < columns && 0 <= row && row < rows)) return ""
  const value = image[0][row * columns + column]
  const text = isNaN(value) ? "no value" : new Function("tick", formatters[number].code)(value)
  return `${names[number]} <b>${text}</b> ${value_unit}&emsp;`
})
const [x, y] = [digits(cb_obj.x), digits(cb_obj.y)]
line.text = `${field}: ${values.join("")} ${first} = ${x}, ${second} = ${y} ${length_unit}`
"""


class Pointer:
    """The values of some figures under the pointer, which is over one of them."""

    def __init__(self, maps: Sequence[MapFigure]) -> None:
        self._labels = ColumnDataSource({"text": []})
        self.line = Div(
            text="", height=20, margin=(0, 0, 4, 60), syncable=False, css_classes=["ambar-pointer"]
        )
        show = CustomJS(
            args={
                "sources": [one.source for one in maps],
                "formatters": [one.colors.formatter for one in maps],
                "labels": self._labels,
                "line": self.line,
            },
            code=_SHOW,
        )
        hide = CustomJS(args={"line": self.line}, code='line.text = ""')
        self._labels.js_on_change("data", hide)  # the line is of another field or plane
        for one in maps:
            one.plot.js_on_event(MouseMove, show)
            one.plot.js_on_event(MouseLeave, hide)

    def show_labels(
        self,
        axes: Sequence[str],
        length_unit: str,
        field: str,
        unit: str,
        names: Sequence[str],
    ) -> None:
        """Show the field, units, and the name of each value."""
        self._labels.data = {"text": [*axes, length_unit, field, unit, *names]}

    def clear(self) -> None:
        """Show nothing until the next labels."""
        self._labels.data = {"text": []}
