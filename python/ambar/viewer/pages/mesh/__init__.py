"""The page of meshes and series of meshes: surfaces, which the browser renders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import panel as pn
import pyvista as pv
from bokeh.plotting import figure

from ambar._util import text
from ambar.kinds.request import ViewRequest
from ambar.mesh.mesh import Mesh, bounds_text
from ambar.mesh.series import MeshSeries
from ambar.viewer.background import Background
from ambar.viewer.colors import PALETTES, Colors
from ambar.viewer.layout import frame, is_dark, style, text_color
from ambar.viewer.message import Message
from ambar.viewer.pages.mesh.controls import MeshControls, arrays_of
from ambar.viewer.pages.mesh.surface import MAX_FACES, VALUE, Recipe, Surface, surface_of
from ambar.viewer.pages.mesh.surface_view import SurfaceView, geometry_of


class MeshPage:
    """The picture of a mesh and its controls.

    The mesh is read with the arrays that are drawn. Its surface is computed here, and rendered in
    the browser.
    """

    def __init__(self, opened: Mesh | MeshSeries) -> None:
        self._steps = opened if isinstance(opened, MeshSeries) else [opened]
        self._message = Message()
        self._background = Background(self._show, self._message.fail, self._message.wait)
        self._read_key: tuple[Any, ...] = ()
        self._read: Any = None
        self._surface: Surface | None = None
        self._sent: Any = None
        self._bounds: Any = self._steps[-1].bounds or (0, 1, 0, 1, 0, 1)
        self._origin = np.reshape(self._bounds, (3, 2)).mean(axis=1)
        self._controls = MeshControls(opened, self._refresh)
        self._colors = Colors(self._draw)
        self._colors.palette.param.watch(lambda _: self._draw(), "value")
        self._controls.style.param.watch(lambda _: self._draw(), "value")
        self._controls.look.param.watch(lambda _: self._look(), "value")
        self._about = pn.pane.HTML(margin=(0, 10), sizing_mode="stretch_width")
        self.controls = [
            *self._controls.data,
            self._colors.controls,
            *self._controls.shape,
            self._about,
        ]
        self._picture = SurfaceView(sizing_mode="stretch_both")
        self._bar = pn.pane.Bokeh(color_bar(self._colors))
        self.main = pn.Column(
            self._message.pane,
            pn.Row(self._picture, self._bar, sizing_mode="stretch_both", margin=0),
            sizing_mode="stretch_both",
        )
        self._look()
        self._draw()
        self._refresh()

    def _refresh(self) -> None:
        """Read the mesh and compute its surface."""
        recipe, step = self._controls.recipe, self._controls.step
        self._background.submit(lambda: self._make(recipe, step))

    def _make(self, recipe: Recipe, step: int) -> Iterator[Surface]:
        """Yield the surface. The mesh is read again only if other arrays are drawn."""
        wanted = {(recipe.association, recipe.array), ("point", recipe.warp)}
        key = (step, frozenset(wanted))
        if key != self._read_key:
            mesh = self._steps[step]
            wanted &= {(on, name) for on, name, _ in arrays_of(mesh)}
            on_points, on_cells = (
                [str(name) for place, name in wanted if place == on] for on in ("point", "cell")
            )
            self._read = mesh.read(point_data=on_points, cell_data=on_cells, field_data=[])
            self._read_key = key
        yield surface_of(self._read, recipe)

    def _show(self, surface: Surface) -> None:
        self._message.clear()
        self._surface, self._bounds = surface, surface.bounds
        self._bar.visible = surface.range is not None
        if surface.range is not None:
            self._controls.offer_limits(*surface.range)
        coarse = (
            f", coarsened from {text.plural(surface.faces, 'face')} for the browser"
            if surface.faces > MAX_FACES
            else ""
        )
        self._about.object = (
            f"{text.plural(surface.cells, 'cell')} shown{coarse}<br>{bounds_text(surface.bounds)}"
        )
        self._draw()

    def _draw(self) -> None:
        """Send the surface to the browser, with the colours and the style of the controls.

        Only what has changed is sent.
        """
        mesh = pv.PolyData() if self._surface is None else self._surface.mesh
        values = np.empty(0, "f4")
        if VALUE in mesh.array_names:
            try:
                values = np.asarray(self._colors.apply(mesh[VALUE]), "f4")
            except ValueError as error:
                self._message.fail(error)
                return
        drawn_as = self._controls.style.value
        changes: dict[str, Any] = {
            "look": {
                "style": drawn_as.partition(" ")[0],
                "edges": drawn_as.endswith("edges"),
                "background": (0.086, 0.098, 0.114) if is_dark() else (1.0, 1.0, 1.0),
                "text": text_color(),
                "colors": palette_bytes(self._colors.palette.value),
                "range": (self._colors.mapper.low, self._colors.mapper.high),
                "true_value": self._colors.formatter.code,
                "name": self._controls.name,
            }
        }
        if mesh is not self._sent:
            changes["geometry"] = geometry_of(mesh, self._origin)
            changes["on_points"] = self._surface is None or self._surface.on_points
            self._sent = mesh
        if not np.array_equal(values, self._picture.values, equal_nan=True):
            changes["values"] = values
        self._picture.param.update(changes)

    def _look(self) -> None:
        """Look at the whole mesh from a direction."""
        bounds = np.asarray(self._bounds) - np.repeat(self._origin, 2)
        self._picture.camera = {**self._controls.camera, "bounds": bounds.tolist()}


def color_bar(colors: Colors) -> Any:
    """Return a figure of a colour bar alone."""
    bar = figure(
        width=95,
        sizing_mode="stretch_height",
        toolbar_location=None,
        x_range=(0, 1),
        y_range=(0, 1),
    )
    bar.scatter([], [])  # Bokeh warns of figures without glyphs
    bar.add_layout(colors.bar, "right")
    style(bar).update(outline_line_color=None, min_border_top=20, min_border_bottom=20)
    bar.axis.visible = False
    return bar


def palette_bytes(name: str) -> np.ndarray:
    """Return the red, green, blue and alpha of the colours of a colour map, as bytes."""
    colors = "".join(f"{color.removeprefix('#')[:6]}ff" for color in PALETTES[name])
    return np.frombuffer(bytes.fromhex(colors), "u1")


def page(opened: Mesh | MeshSeries, request: ViewRequest) -> Any:
    """Return the page of a mesh or a series of meshes."""
    request.refuse_comparison()
    pn.extension("vtk")  # the page loads vtk.js
    shown = MeshPage(opened)
    last = opened[-1] if isinstance(opened, MeshSeries) else opened
    counts = f"{text.plural(last.n_points, 'point')}, {text.plural(last.n_cells, 'cell')}"
    steps = f"{text.plural(len(opened), 'step')}, " if isinstance(opened, MeshSeries) else ""
    facts = f"{last.type}, {steps}{counts}, in {request.location}"
    return frame(request.title, facts, shown.controls, shown.main)
