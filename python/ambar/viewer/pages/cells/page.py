"""The page of cells: a map that is panned and zoomed, its controls, and comparisons.

The browser reports its window. The page chooses the resolution of the screen, reads the tiles that
are not in memory in a thread, and sends the image; a newer window ends the work for an older one.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from ambar.snapshot.loading import has_cells
from ambar.snapshot.outputs import Outputs
from ambar.snapshot.pictures.panels import time_of
from ambar.viewer.background import Background
from ambar.viewer.colors import Colors, usual_colors
from ambar.viewer.layout import frame, set_title
from ambar.viewer.message import Message
from ambar.viewer.pages.cells.call import python_call
from ambar.viewer.pages.cells.comparison import (
    check_boxes,
    difference,
    error_bound,
    matching_outputs,
)
from ambar.viewer.pages.cells.controls import Controls
from ambar.viewer.pages.cells.histogram import Histogram
from ambar.viewer.pages.cells.labels import readable_unit, unit_label
from ambar.viewer.pages.cells.line_page import LinePage
from ambar.viewer.pages.cells.map_figure import MapFigure
from ambar.viewer.pages.cells.overlays import Overlays
from ambar.viewer.pages.cells.particles_page import ParticlesPage
from ambar.viewer.pages.cells.plane import Plane, Resolution
from ambar.viewer.pages.cells.pointer import Pointer
from ambar.viewer.pages.cells.steps import Steps
from ambar.viewer.pages.cells.tiles import Image, TileReader
from ambar.viewer.pages.cells.view import View

if TYPE_CHECKING:
    from ambar.kinds.request import ViewRequest
    from ambar.snapshot.snapshot import Snapshot

_READING = "reading..."
_WRAPPED = "white-space: pre-wrap; overflow-wrap: anywhere"
_FIRST_SCREEN = (1000.0, 800.0)
"""The size of a figure that is assumed until the browser reports it."""


def page(opened: Snapshot | Outputs, request: ViewRequest) -> Any:
    """Return the page of a snapshot or a series, alone or compared with another one."""
    if request.against is not None:
        opened, against = matching_outputs(opened, request.against)
        request = replace(request, against=against)
    last = opened[-1] if isinstance(opened, Outputs) else opened
    shown: CellsPage | LinePage | ParticlesPage
    if not has_cells(last.components):
        shown = ParticlesPage(opened, request)
    elif last.amr.ndim == 1:
        shown = LinePage(opened, request)
    else:
        shown = CellsPage(opened, request)
    return frame(request.title, shown.facts, shown.controls, shown.main)


class CellsPage:
    """The maps of the cells of a snapshot, and their controls."""

    def __init__(self, opened: Snapshot | Outputs, request: ViewRequest) -> None:
        self._request = request
        self._steps = [Steps(opened, self._change, request.against)]
        self._view: View
        self._screen = _FIRST_SCREEN
        self._images: tuple[Image, ...] = ()
        self._colored: tuple[object, ...] = ()
        """The field, the plane and the scale for which the colours were chosen."""
        self._message = Message()
        self._reader = TileReader()
        self._background = Background(self._show, self._message.fail, self._message.wait)
        self._ahead = Background(lambda _: None, lambda _: None)
        if request.against is not None:
            self._steps.append(Steps(request.against, self._change, opened))
            self._steps[1].follow(self._steps[0])
            check_boxes(*(steps.snapshot for steps in self._steps))
        self._choice = Controls(
            self._snapshot.amr, self._change, self._reset, is_exact=request.against is not None
        )
        self._colors = Colors(self._color)
        self._maps = [MapFigure(self._colors, bar="right" if request.against is None else "below")]
        if request.against is not None:
            for colors in (self._colors, Colors(self._color, "red-blue")):
                self._maps.append(MapFigure(colors, self._maps[0], "below"))
        self._maps[0].report_window(self._move)
        self._pointer = Pointer(self._maps)
        self._histogram = Histogram(self._colors)
        self._overlays = Overlays(self._maps[0].plot, self._snapshot, self._overlay)
        self._call = pn.pane.HTML(sizing_mode="stretch_width", margin=(5, 10))
        self._call_card = pn.Card(
            self._call,
            title="As a call of Python",
            collapsed=True,
            margin=10,
            sizing_mode="stretch_width",
        )
        self._call_card.param.watch(lambda _: self._show_call(), "collapsed")
        self._reset()

    @property
    def controls(self) -> list[Any]:
        """The controls, from top to bottom."""
        slider = self._steps[0].slider
        return [
            *([] if slider is None else [slider]),
            *self._choice.widgets,
            self._colors.controls,
            self._overlays.boxes,
            pn.pane.Bokeh(self._histogram.plot, margin=(5, 10)),
            self._call_card,
        ]

    @property
    def main(self) -> Any:
        """The maps, with messages above and the pointer's values below."""
        maps = [pn.pane.Bokeh(one.plot, sizing_mode="stretch_both") for one in self._maps]
        return pn.Column(
            self._message.pane,
            self._overlays.message.pane,
            pn.Row(*maps, sizing_mode="stretch_both", margin=0),
            self._pointer.line,
            sizing_mode="stretch_both",
            margin=0,
        )

    @property
    def facts(self) -> str:
        """The sizes of the snapshot, in a line."""
        amr = self._snapshot.amr
        low, high = amr.levels
        return f"{len(amr):,} cells, levels {low} to {high}"

    @property
    def _snapshot(self) -> Snapshot:
        return self._steps[0].snapshot

    def _reset(self) -> None:
        """Show the whole of the plane."""
        plane = self._choice.plane(self._snapshot.amr)
        self._maps[0].show_window(plane.lower, plane.upper, self._choice.length)
        (left, bottom), (right, top) = plane.lower, plane.upper
        self._view = View(left, right, bottom, top, *self._screen)
        self._change()

    def _change(self) -> None:
        """Show other planes in the same window."""
        if len(self._steps) > 1:
            self._steps[1].follow(self._steps[0])
        self._overlays.clear()
        self._images = ()
        self._pointer.clear()
        set_title(self._maps[0].plot, f"{self._choice.title()} ({_READING})")
        self._refresh()

    def _move(self, view: View) -> None:
        """Show another window of the same planes."""
        self._view, self._screen = view, (view.columns, view.rows)
        if not self._images or not all(view.is_in(image) for image in self._images):
            self._refresh()
            return
        if self._colors.follow.value:
            self._color(has_new_image=False)
        self._overlay()

    def _refresh(self) -> None:
        view = self._view
        planes = [self._choice.plane(steps.snapshot.amr) for steps in self._steps]
        self._ahead.stop()
        self._background.submit(lambda: self._read(planes, view))

    def _read_ahead(self) -> None:
        """Read what may be shown next: finer and coarser levels, the outputs before and after.

        Projections are read ahead of time for other outputs only: they may take long.
        """
        view, first = self._view, self._images[0]
        shown = [self._choice.plane(steps.snapshot.amr) for steps in self._steps]
        tasks: list[tuple[list[Plane], View, Resolution | None]] = []
        if first.plane.method != "project":
            finer, coarser = first.plane.neighbours(first.resolution)
            tasks = [(shown, view.zoomed(0.7), finer), (shown, view.zoomed(1.5), coarser)]
        for snapshot in self._steps[0].neighbours:
            tasks.append(([self._choice.plane(snapshot.amr)], view, None))
        self._ahead.submit(lambda: chain.from_iterable(self._read(*task) for task in tasks))

    def _read(
        self, planes: list[Plane], view: View, resolution: Resolution | None = None
    ) -> Iterator[tuple[Image, ...]]:
        """Yield the images of some planes in a window, with ever more of their tiles."""
        resolution = resolution or view.resolution(planes[0])
        pixels = view.pixels(planes[0], resolution)
        images: list[Image] = []
        for number, plane in enumerate(planes):
            for image in self._reader.images(plane, resolution, pixels):
                images[number:] = [image]
                if len(images) == len(planes):
                    yield tuple(images)

    def _show(self, images: tuple[Image, ...]) -> None:
        self._images = images
        self._message.clear()
        errors = [error for image in images for error in image.errors]
        if errors:
            self._message.fail(errors[0])
        if len(images) == 2:
            self._images = (*images, difference(*images))
        self._color()
        self._label()
        if all(image.is_complete for image in images):
            self._overlay()
            self._read_ahead()

    def _color(self, *, has_new_image: bool = True) -> None:
        """Show the images in the chosen colours; limits alone do not change the values."""
        if not self._images:
            return
        first = self._images[0]
        visible = self._visible(first)
        if np.isfinite(visible).any():
            self._choose_colors(first.plane, visible)
        try:
            self._colors.fit(visible)
            if len(self._images) > 1:
                self._fit_errors(self._images[2])
        except ValueError as error:
            self._message.fail(error)
            return
        if not has_new_image and self._colors.scale.value != "symlog":
            self._histogram.show(self._colors.scaled(visible))
            return
        for one, image in zip(self._maps, self._images, strict=True):
            values = one.colors.scaled(image.values)
            one.show_image(image.corner, image.size, values, self._choice.length)
        self._histogram.show(self._colors.scaled(visible))

    def _visible(self, image: Image) -> np.ndarray:
        """Return the values of an image in the window."""
        inner, outer = self._view.pixels(image.plane, image.resolution, 0), image.pixels
        visible = image.values[
            max(inner.bottom - outer.bottom, 0) : max(inner.top - outer.bottom, 0),
            max(inner.left - outer.left, 0) : max(inner.right - outer.left, 0),
        ]
        return visible if visible.size else image.values

    def _choose_colors(self, plane: Plane, values: np.ndarray) -> None:
        """Choose a scale for another field, and a colour map for another plane or scale, too."""
        what = (plane.field, plane.method, plane.axis, plane.weight)
        if self._colored == (*what, self._colors.scale.value):
            return
        is_known = self._colored[:1] == what[:1]
        scale, palette = usual_colors(values, self._colors.scale.value if is_known else None)
        self._colors.choose(scale, palette)
        self._colored = (*what, scale)

    def _fit_errors(self, errors: Image) -> None:
        """Let the colours of the difference end at the error bound, or at the largest error."""
        bound = error_bound(self._steps[1].snapshot, errors.plane)
        visible = self._visible(errors)
        largest = bound or float(np.nanmax(np.abs(visible), initial=0)) or 1.0
        self._maps[2].colors.fit(np.array([-largest, largest]))

    def _label(self) -> None:
        choice, image = self._choice, self._images[0]
        unit = unit_label(image.plane)
        name = choice.name.replace("_", " ")
        length_unit = readable_unit(choice.length_unit.value)
        title = f"{choice.title()}, {time_of(self._snapshot.info)}"
        if not all(one.is_complete for one in self._images):
            title += f" ({_READING})"
        bracket = f" [{unit}]" if unit else ""
        titles, labels, names = [title], [f"{name}{bracket}"], [""]
        if len(self._images) > 1:
            bound = error_bound(self._steps[1].snapshot, image.plane)
            kept = "" if bound is None else f", error bound ±{bound:.3g}"
            titles = [title, Path(self._request.against_location).name, f"difference{kept}"]
            labels = [*labels * 2, f"difference of {name}{bracket}"]
            names = ["original", "other", "difference"]
        axes = ["xyz"[axis] for axis in image.plane.axes]
        for one, text, label in zip(self._maps, titles, labels, strict=True):
            one.show_labels(axes, text, length_unit, label)
        self._pointer.show_labels(axes, length_unit, name, unit, names)

    def _overlay(self) -> None:
        """Draw over the map what is checked, and show the call of the picture."""
        if self._images:
            first = self._images[0]
            self._overlays.refresh(self._snapshot, first, self._view, self._choice.length)
            self._show_call()

    def _show_call(self) -> None:
        """Show the call of the picture, if its card is open."""
        if self._call_card.collapsed or not self._images:
            return
        code = python_call(
            self._snapshot,
            self._images[0],
            self._view,
            self._colors.scale.value,
            (self._colors.low.value, self._colors.high.value),
            self._colors.palette.value,
        )
        self._call.object = f'<pre style="margin: 0; {_WRAPPED}">{html.escape(code)}</pre>'
