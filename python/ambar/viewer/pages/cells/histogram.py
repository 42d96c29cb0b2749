"""The distribution of the values in the window, beside the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, Range1d
from bokeh.plotting import figure

from ambar.viewer.colors import Colors
from ambar.viewer.layout import style

_BINS = 64
_MAX_VALUES = 200_000
"""Values that are counted. A larger window is counted by every n-th row."""


class Histogram:
    """A histogram on the scale of the colours, between their limits."""

    def __init__(self, colors: Colors) -> None:
        self._colors = colors
        self._source = ColumnDataSource({"left": [], "right": [], "top": []})
        self.plot = self._figure()

    def _figure(self) -> Any:
        plot = figure(
            height=130,
            sizing_mode="stretch_width",
            tools="",
            toolbar_location=None,
            x_range=Range1d(0, 1),
            title="Values in the window",
        )
        plot.quad(
            left="left",
            right="right",
            bottom=0,
            top="top",
            source=self._source,
            line_color=None,
            fill_color="#6b8fb8",
        )
        plot.y_range.start = 0
        style(plot)
        plot.yaxis.visible = False
        plot.xaxis.update(ticker=FixedTicker(ticks=[]), formatter=self._colors.formatter)
        plot.title.update(text_font_size="12px", text_font_style="normal")
        return plot

    def show(self, scaled: np.ndarray) -> None:
        """Count values on the scale of the colours; bars have the square root of the number."""
        low, high = self._colors.mapper.low, self._colors.mapper.high
        values = scaled[:: max(scaled.size // _MAX_VALUES, 1)]
        counts, edges = np.histogram(values[np.isfinite(values)], _BINS, (low, high))
        self.plot.x_range.update(start=low, end=high)
        self.plot.xaxis[0].ticker.ticks = self._colors.ticker.ticks[::2]
        self._source.data = {"left": edges[:-1], "right": edges[1:], "top": np.sqrt(counts)}
