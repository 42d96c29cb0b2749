"""The page of particles without cells: maps of the mass, or of other fields, as plots have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from ambar.snapshot.pictures.defaults import box_length_unit, default_field
from ambar.snapshot.pictures.images import image_of, with_usual_rows
from ambar.snapshot.pictures.options import CellsPlot
from ambar.snapshot.pictures.panels import extent_of, time_of, value_name, view_text
from ambar.snapshot.regions import AXES
from ambar.viewer.background import Background
from ambar.viewer.colors import Colors, usual_colors
from ambar.viewer.layout import set_title
from ambar.viewer.message import Message
from ambar.viewer.pages.cells.controls import length_units
from ambar.viewer.pages.cells.labels import readable_unit
from ambar.viewer.pages.cells.map_figure import MapFigure
from ambar.viewer.pages.cells.pointer import Pointer
from ambar.viewer.pages.cells.steps import Steps
from ambar.viewer.pages.cells.view import View

if TYPE_CHECKING:
    import xarray as xr

    from ambar.kinds.request import ViewRequest
    from ambar.snapshot.outputs import Outputs
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.snapshot import Snapshot

_READING = "reading..."
_MARGIN = 1.25
"""The side of what is read over the longer side of the window."""
_ZOOM = 2.0
"""The part of an image, as a divisor of its side, from which a window gets another one."""


class ParticlesPage:
    """The map of the particles of a snapshot without cells, and its controls."""

    def __init__(self, opened: Snapshot | Outputs, request: ViewRequest) -> None:
        request.refuse_comparison()
        self._steps = Steps(opened, self._reset)
        snapshot, wide = self._steps.snapshot, {"sizing_mode": "stretch_width"}
        usual = with_usual_rows(snapshot, CellsPlot(path=request.location))
        self._request = replace(usual, particles=True)
        self._image: xr.DataArray | None = None
        self._colored: tuple[str | None, str] | None = None
        """The species and the field for which the colours were chosen."""
        self._message = Message()
        self._background = Background(self._show, self._message.fail, self._message.wait)
        self.species = pn.widgets.Select(
            label="Species",
            options=list(snapshot.species),
            value=usual.species,
            visible=len(snapshot.species) > 1,
            **wide,
        )
        self.field = pn.widgets.Select(label="Field", **wide)
        self.axis = pn.widgets.RadioButtonGroup(
            label="Along", options=list(AXES), value="z", visible=snapshot.info.ndim == 3, **wide
        )
        self.length_unit = pn.widgets.Select(
            label="Unit of length",
            options=length_units(snapshot.info),
            value=box_length_unit(snapshot.info),
            **wide,
        )
        self._colors = Colors(self._color)
        self._map = MapFigure(self._colors)
        self._map.report_window(self._move)
        self._pointer = Pointer([self._map])
        self._offer_fields()
        self.species.param.watch(lambda _: self._offer_fields(), "value")
        for widget in (self.species, self.axis, self.length_unit):
            widget.param.watch(lambda _: self._reset(), "value")
        self.field.param.watch(lambda _: self._reset(), "value")
        self._reset()

    @property
    def controls(self) -> list[Any]:
        """The controls, from top to bottom."""
        slider = self._steps.slider
        lengths = [self.length_unit] if len(self.length_unit.options) > 1 else []
        steps = [] if slider is None else [slider]
        return [*steps, self.species, self.field, self.axis, *lengths, self._colors.controls]

    @property
    def main(self) -> Any:
        """The map, with messages above and the pointer's values below."""
        return pn.Column(
            self._message.pane,
            pn.pane.Bokeh(self._map.plot, sizing_mode="stretch_both"),
            self._pointer.line,
            sizing_mode="stretch_both",
            margin=0,
        )

    @property
    def facts(self) -> str:
        """The numbers of particles, in a line."""
        snapshot = self._steps.snapshot
        if snapshot.species:
            counts = ((len(rows), name) for name, rows in snapshot.species.items())
            return ", ".join(f"{count:,} {name.replace('_', ' ')}" for count, name in counts)
        return f"{len(snapshot.particles):,} particles"

    @property
    def _rows(self) -> Particles:
        snapshot, name = self._steps.snapshot, self.species.value
        return snapshot.particles if name is None else snapshot.species[name]

    def _offer_fields(self) -> None:
        """Offer the fields of the species, the mass first."""
        rows = self._rows
        usual, known = default_field(rows, is_particles=True), rows.fields
        self.field.param.update(options=list(dict.fromkeys([usual, *known])), value=usual)

    @property
    def _length(self) -> float:
        """One code length in the unit of length."""
        unit, info = self.length_unit.value, self._steps.snapshot.info
        return 1.0 if unit == "code" else float(info.units.length(unit))

    @property
    def _axes(self) -> list[int]:
        """The numbers of the horizontal and the vertical axis."""
        return [axis for axis in range(3) if axis != AXES.index(self.axis.value)]

    def _domain(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper corner of the box, in the unit of length."""
        info = self._steps.snapshot.info
        lower, size = np.array(info.lower, float), np.array(info.box_size, float)
        return lower * self._length, (lower + size) * self._length

    def _reset(self) -> None:
        """Show all particles."""
        lower, upper = (end[self._axes] for end in self._domain())
        self._image = None
        self._pointer.clear()
        self._map.show_window((lower[0], lower[1]), (upper[0], upper[1]), 1.0)
        self._read(None)

    def _move(self, view: View) -> None:
        """Show another window: read a map of it if the last one lacks it, or is too coarse."""
        if self._image is None:
            return
        left, right, bottom, top = extent_of(self._image)
        lower, upper = (end[self._axes] for end in self._domain())
        (x0, y0), (x1, y1) = lower, upper
        is_inside = max(view.left, x0) >= left and min(view.right, x1) <= right
        is_inside &= max(view.bottom, y0) >= bottom and min(view.top, y1) <= top
        side = max(view.right - view.left, view.top - view.bottom)
        if not is_inside or side * _ZOOM < max(right - left, top - bottom):
            self._read(view)

    def _read(self, view: View | None) -> None:
        """Read a map of a window, or of all."""
        snapshot, field = self._steps.snapshot, self.field.value
        request = self._part(
            replace(
                self._request,
                species=self.species.value,
                axis=self.axis.value,
                length_unit=self.length_unit.value,
            ),
            view,
        )
        set_title(self._map.plot, f"{field.replace('_', ' ')} ({_READING})")
        self._background.submit(lambda: iter([image_of(snapshot, field, request)]))

    def _part(self, request: CellsPlot, view: View | None) -> CellsPlot:
        """Return the request for a square around a window; for all if it is as large."""
        lower, upper = self._domain()
        sizes = (upper - lower)[self._axes]
        side = (
            np.inf
            if view is None
            else _MARGIN * max(view.right - view.left, view.top - view.bottom)
        )
        if view is None or side >= sizes.max():
            return request
        center = (lower + upper) / 2
        middle = ((view.left + view.right) / 2, (view.bottom + view.top) / 2)
        for axis, place in zip(self._axes, middle, strict=True):
            half = min(side, upper[axis] - lower[axis]) / 2
            center[axis] = min(max(place, lower[axis] + half), upper[axis] - half)
        return replace(request, center=tuple(center.tolist()), width=side)

    def _show(self, image: xr.DataArray) -> None:
        self._message.clear()
        self._image = image
        what = (self.species.value, self.field.value)
        if what != self._colored:
            self._colors.choose(*usual_colors(image.to_numpy()))
            self._colored = what
        self._color()
        self._label(image)

    def _color(self) -> None:
        """Show the image in the chosen colours."""
        if self._image is None:
            return
        try:
            scaled = self._colors.apply(self._image.to_numpy())
        except ValueError as error:
            self._message.fail(error)
            return
        left, right, bottom, top = extent_of(self._image)
        self._map.show_image((left, bottom), (right - left, top - bottom), scaled, 1.0)

    def _label(self, image: xr.DataArray) -> None:
        """Show the title, and the labels of the axes and of the colour bar."""
        info = self._steps.snapshot.info
        unit, length = (
            readable_unit(str(one)) for one in (image.attrs["units"], self.length_unit.value)
        )
        unit = "" if unit == "dimensionless" else unit
        name = value_name(image)
        view = view_text(image, replace(self._request, axis=self.axis.value))
        species = (self.species.value or "").replace("_", " ")
        title = ", ".join(filter(None, [species, view, time_of(info)]))
        axes = ["xyz"[axis] for axis in self._axes]
        self._map.show_labels(axes, title, length, f"{name} [{unit}]" if unit else name)
        self._pointer.show_labels(axes, length, name, unit, [""])
