"""The map of the datasets of a collection, and their selection by a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import RangesUpdate, SelectionGeometry
from bokeh.models import BoxSelectTool, ColumnDataSource, DataRange1d, HoverTool
from bokeh.plotting import figure

from ambar.viewer.layout import is_dark, set_title, style

_MAX_DRAWN = 20_000


class PositionMap:
    """The map.

    Parameters
    ----------
    names : (str, str)
        The labels of the axes.
    chosen : callable
        Called with the positions (numbers) of the datasets in the box that was drawn.
    """

    def __init__(self, names: tuple[str, str], chosen: Callable[[np.ndarray], None]) -> None:
        self._chosen = chosen
        self._x = self._y = np.empty(0)
        self._shown = np.empty(0, np.int64)
        self._names: Callable[[np.ndarray], list[str]] = lambda _: []
        self._points = ColumnDataSource({"x": [], "y": [], "name": []})
        self._marked = ColumnDataSource({"x": [], "y": [], "name": []})
        self.figure = style(
            figure(
                tools="pan,wheel_zoom,reset,save",
                active_scroll="wheel_zoom",
                toolbar_location="above",
                sizing_mode="stretch_both",
                x_axis_label=names[0],
                y_axis_label=names[1],
                x_range=DataRange1d(range_padding=0.03, default_span=1.0),
                y_range=DataRange1d(range_padding=0.03, default_span=1.0),
            )
        )
        points = self.figure.scatter(
            "x",
            "y",
            source=self._points,
            size=4,
            color="#5aa7e8" if is_dark() else "#1f77b4",
            alpha=0.6,
            line_color=None,
            nonselection_alpha=0.6,
        )
        marked = self.figure.scatter(
            "x", "y", source=self._marked, size=7, color="#e8641b", line_color=None
        )
        self.figure.add_tools(
            BoxSelectTool(renderers=[]),
            HoverTool(
                tooltips=[("", "@name"), (names[0], "@x"), (names[1], "@y")],
                renderers=[points, marked],
                limit=3,
            ),
        )
        self.figure.on_event(SelectionGeometry, self._select)
        self.figure.on_event(RangesUpdate, self._zoom)

    def show(
        self,
        x: np.ndarray,
        y: np.ndarray,
        shown: np.ndarray,
        names: Callable[[np.ndarray], list[str]],
    ) -> None:
        """Draw the datasets at some positions; at most 20,000 of those in view.

        Parameters
        ----------
        x, y : ndarray (datasets,)
            The coordinates of all datasets.
        shown : ndarray of int
            The positions of the datasets to draw.
        names : callable
            Returns the names of datasets at some positions.
        """
        self._x, self._y, self._names = x, y, names
        self._shown = shown[np.isfinite(x[shown]) & np.isfinite(y[shown])]
        self._draw(self._shown)

    def mark(self, chosen: np.ndarray) -> None:
        """Mark the selected datasets."""
        self._marked.data = self._columns(chosen[:_MAX_DRAWN])

    def _draw(self, visible: np.ndarray) -> None:
        step = max(-(-len(visible) // _MAX_DRAWN), 1)
        drawn = visible[::step]
        self._points.data = self._columns(drawn)
        set_title(
            self.figure,
            f"{len(visible):,} positions"
            if step == 1
            else f"{len(drawn):,} of {len(visible):,} positions drawn",
        )

    def _columns(self, positions: np.ndarray) -> dict[str, Any]:
        if not len(self._x):
            return {"x": [], "y": [], "name": []}
        names = self._names(positions)
        return {"x": self._x[positions], "y": self._y[positions], "name": names}

    def _within(self, x0: float, x1: float, y0: float, y1: float) -> np.ndarray:
        x, y = self._x[self._shown], self._y[self._shown]
        inside = (x >= min(x0, x1)) & (x <= max(x0, x1)) & (y >= min(y0, y1)) & (y <= max(y0, y1))
        return self._shown[inside]

    def _select(self, event: Any) -> None:
        box = event.geometry
        if event.final and box["type"] == "rect":
            self._chosen(self._within(box["x0"], box["x1"], box["y0"], box["y1"]))

    def _zoom(self, event: Any) -> None:
        if len(self._shown) > _MAX_DRAWN:
            self._draw(self._within(event.x0, event.x1, event.y0, event.y1))
