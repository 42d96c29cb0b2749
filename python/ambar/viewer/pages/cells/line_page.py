"""The page of cells of one dimension: a field and the levels over x, and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
from bokeh.events import RangesUpdate
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ambar.figures.labels import version_names
from ambar.figures.panels import envelope
from ambar.snapshot.pictures.drawing import bound_of
from ambar.snapshot.pictures.options import CellsPlot
from ambar.snapshot.pictures.panels import profile_of, time_of
from ambar.snapshot.units import ColumnUnits
from ambar.viewer.background import Background
from ambar.viewer.layout import set_title, style
from ambar.viewer.message import Message
from ambar.viewer.pages.cells.comparison import check_boxes
from ambar.viewer.pages.cells.controls import Controls
from ambar.viewer.pages.cells.labels import readable_unit
from ambar.viewer.pages.cells.steps import Steps

if TYPE_CHECKING:
    from ambar.kinds.request import ViewRequest
    from ambar.snapshot.outputs import Outputs
    from ambar.snapshot.snapshot import Snapshot

_COLORS = ("#3b78b8", "#e07b39")
_LEVEL, _ERROR = "level", "difference"
_HEIGHTS = {_LEVEL: 150, _ERROR: 220}
"""The heights of the figures below that of the field, pixels."""
_LEFT = 80
"""The space for labels at the left of all figures, pixels."""


@dataclass(frozen=True)
class Profile:
    """Both edges of each cell, and its value twice."""

    x: np.ndarray
    y: np.ndarray


class LinePage:
    """The lines of a field of a snapshot, or of two versions of it, and their controls."""

    def __init__(self, opened: Snapshot | Outputs, request: ViewRequest) -> None:
        self._steps = [Steps(opened, self._refresh, request.against)]
        self._names = [""]
        if request.against is not None:
            self._steps.append(Steps(request.against, self._refresh, opened))
            self._steps[1].follow(self._steps[0])
            check_boxes(*(steps.snapshot for steps in self._steps))
            self._names = version_names(request.location, request.against_location)
        self._request = CellsPlot(path=request.location)
        self._message = Message()
        self._background = Background(self._show, self._message.fail, self._message.wait)
        self._profiles: dict[str, Profile] = {}
        self._bound: float | None = None
        self._choice = Controls(self._snapshot.amr, self._refresh, self._reset)
        self._scale = pn.widgets.RadioButtonGroup(
            label="Scale", options=["linear", "log"], sizing_mode="stretch_width"
        )
        self._scale.param.watch(lambda _: self._rebuild(), "value")
        self._range = Range1d(0.0, 1.0)
        self._sources: dict[str, ColumnDataSource] = {}
        below = [*([_ERROR] if request.against is not None else []), _LEVEL]
        self._below = {name: self._figure([name], height=_HEIGHTS[name]) for name in below}
        self._pane = pn.pane.Bokeh(sizing_mode="stretch_both")
        self._plot: Any = None
        self._rebuild()
        self._reset()

    @property
    def controls(self) -> list[Any]:
        """The controls, from top to bottom."""
        slider = self._steps[0].slider
        return [*([] if slider is None else [slider]), *self._choice.widgets, self._scale]

    @property
    def main(self) -> Any:
        """The figures, with messages above."""
        below = [pn.pane.Bokeh(one, sizing_mode="stretch_width") for one in self._below.values()]
        return pn.Column(
            self._message.pane, self._pane, *below, sizing_mode="stretch_both", margin=0
        )

    @property
    def facts(self) -> str:
        """The sizes of the snapshot, in a line."""
        amr = self._snapshot.amr
        return f"{len(amr):,} cells, levels {amr.levels[0]} to {amr.levels[1]}"

    @property
    def _snapshot(self) -> Snapshot:
        return self._steps[0].snapshot

    def _reset(self) -> None:
        """Show the whole of the axis."""
        amr, length = self._snapshot.amr, self._choice.length
        ends = (amr.lower[0] * length, amr._core.upper[0] * length)
        self._range.update(start=ends[0], end=ends[1], reset_start=ends[0], reset_end=ends[1])
        self._refresh()

    def _refresh(self) -> None:
        """Read the chosen field."""
        if len(self._steps) > 1:
            self._steps[1].follow(self._steps[0])
        snapshots = [steps.snapshot for steps in self._steps]
        field, unit, length = (
            self._choice.name,
            self._choice.unit.value,
            self._choice.length_unit.value,
        )
        self._background.submit(lambda: self._read(snapshots, field, unit, length))

    def _read(
        self, snapshots: list[Snapshot], field: str, unit: str, length: str
    ) -> Iterator[dict[str, Profile]]:
        """Yield the lines by their names."""
        found = {
            name: Profile(*profile_of(snapshot, field, unit, length, self._request))
            for name, snapshot in zip(self._names, snapshots, strict=True)
        }
        if len(found) > 1:
            first, other = found.values()
            if np.array_equal(first.x, other.x):
                found[_ERROR] = Profile(first.x, other.y - first.y)
        levels = profile_of(snapshots[0], "level", "code", length, self._request)
        yield {**found, _LEVEL: Profile(*levels)}

    def _show(self, profiles: dict[str, Profile]) -> None:
        self._message.clear()
        self._profiles = profiles
        self._label()
        self._draw()

    def _draw(self) -> None:
        """Send what is in view: of many cells the extremes of each pixel."""
        for name, source in self._sources.items():
            profile = self._profiles.get(name, Profile(np.empty(0), np.empty(0)))
            inside = (profile.x >= self._range.start) & (profile.x <= self._range.end)
            first, after = (np.flatnonzero(inside)[[0, -1]] + (-2, 3)) if inside.any() else (0, 0)
            part = slice(max(first, 0), after)
            x, y = profile.x[part], profile.y[part].astype(np.float64)
            if len(y):
                places, y = envelope(y)
                x = x[places]
            if self._scale.value == "log" and name in self._names:
                y = np.where(y > 0, y, np.nan)
            source.data = {"x": x, "y": y}

    def _label(self) -> None:
        """Show the title, and the labels of the axes."""
        amr, choice = self._snapshot.amr, self._choice
        units = ColumnUnits(amr._units, amr._request([choice.name]).units)
        unit = readable_unit(units.label(choice.name, choice.unit.value))
        bracket = "" if unit in ("", "dimensionless") else f" [{unit}]"
        set_title(self._plot, f"{choice.title()}, {time_of(self._snapshot.info)}")
        self._plot.yaxis.axis_label = f"{choice.name.replace('_', ' ')}{bracket}"
        for name, plot in self._below.items():
            plot.yaxis.axis_label = name if name == _LEVEL else f"{name}{bracket}"
        if _ERROR in self._below:
            self._show_bound()
        self._below[_LEVEL].xaxis.axis_label = f"x [{readable_unit(choice.length_unit.value)}]"

    def _show_bound(self) -> None:
        """Show the error bound in the title of the difference."""
        snapshots = [steps.snapshot for steps in self._steps]
        request = CellsPlot(path=self._request.path, unit=self._choice.unit.value)
        bound = bound_of(self._choice.name, request, *snapshots)
        text = "" if bound is None else f", error bound ±{bound:.3g}"
        if _ERROR in self._profiles:
            text = f"largest {np.nanmax(abs(self._profiles[_ERROR].y)):.3g}{text}"
        else:
            text = "not shown: the cells of both versions differ"
        set_title(self._below[_ERROR], f"difference, {text}")

    def _rebuild(self) -> None:
        """Make the figure of the field: the scale of an axis of Bokeh cannot change."""
        self._plot = self._figure(self._names, scale=self._scale.value)
        self._plot.on_event(RangesUpdate, lambda _: self._draw())
        self._pane.object = self._plot
        if self._profiles:
            self._label()
            self._draw()

    def _figure(self, names: list[str], *, scale: str = "linear", height: int | None = None) -> Any:
        """Return a figure of lines, whose sources are kept by their names."""
        size = {"sizing_mode": "stretch_both"} if height is None else {"height": height}
        plot = figure(
            x_range=self._range,
            y_axis_type=scale,
            tools="xpan,xwheel_zoom,box_zoom,reset,save",
            active_scroll="xwheel_zoom",
            toolbar_location="right" if height is None else None,
            title=" ",
            min_border_left=_LEFT,
            **({"sizing_mode": "stretch_width"} | size),
        )
        for name, color in zip(names, _COLORS, strict=False):
            source = ColumnDataSource({"x": [], "y": []})
            self._sources[name] = source
            label = {"legend_label": name} if name and height is None else {}
            line = plot.line("x", "y", source=source, line_color=color, line_width=1.5, **label)
            rows = [("x", "@x{0.[000000]}"), (name or "value", "@y{0.[000000]}")]
            plot.add_tools(HoverTool(tooltips=rows, renderers=[line], mode="vline"))
        return style(plot)
