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
from ambar.viewer.pages.mesh.surface import MOST_FACES, VALUE, Recipe, Surface, surface_of
from ambar.viewer.pages.mesh.surface_view import SurfaceView, geometry_of

_NONE = "none"
_MAGNITUDE = -1
_LAST = ("Normals", "vtk")
"""Beginnings of the names of arrays that VTK has added: they are at the end of the list."""
_SCALED = "scaled"
"""The array that is coloured: the values on the scale of the colours."""
_STYLES = ("surface", "surface with edges", "wireframe", "points")
_VIEWS = {
    "corner": ((1.0, 1.0, 1.0), (0.0, 0.0, 1.0)),
    "x": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "y": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "z": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
}
"""Directions from which the mesh is seen, and the directions that are up."""


class MeshPage:
    """The controls of a mesh and its picture.

    The mesh is read with the arrays that are drawn. Its surface is computed here, and rendered in
    the browser.
    """

    def __init__(self, opened: Mesh | MeshSeries) -> None:
        self._steps = opened if isinstance(opened, MeshSeries) else [opened]
        self._message = Message()
        self._background = Background(self._show, self._message.fail)
        self._read_key: tuple[Any, ...] = ()
        self._read: Any = None
        self._surface: Surface | None = None
        self._sent: Any = None
        self._range: tuple[float, float] | None = None
        self._make_controls(opened)
        self._make_scene()
        self._number_of_array()
        self._look()
        self._draw()
        self.refresh()

    def _make_controls(self, opened: Mesh | MeshSeries) -> None:
        wide = {"sizing_mode": "stretch_width"}
        last = len(self._steps) - 1
        mesh = self._steps[last]
        self._arrays = arrays_of(mesh)
        vectors = [name for on, name, count in self._arrays if on == "point" and count == 3]
        scalars = [name for on, name, count in self._arrays if on == "point" and count == 1]
        names = {f"{name} ({on})": (on, name) for on, name, _ in self._arrays}
        self._step = pn.widgets.IntSlider(
            label="Step", start=0, end=max(last, 1), value=last, visible=last > 0, **wide
        )
        self._label_step(opened)
        self._array = pn.widgets.Select(
            label="Array", options={**names, _NONE: _NONE}, value=next(iter(names.values()), _NONE)
        )
        self._component = pn.widgets.Select(label="Component", visible=False, **wide)
        self._array.sizing_mode = "stretch_width"
        self.colors = Colors(self._draw)
        self.colors.palette.param.watch(lambda _: self._draw(), "value")
        self._style = pn.widgets.Select(label="Style", options=list(_STYLES), **wide)
        self._view = pn.widgets.RadioButtonGroup(options=list(_VIEWS), **wide)
        self._cut = pn.widgets.Select(
            label="Cut", options=[_NONE, "clip", "slice", "threshold"], **wide
        )
        self._normal = pn.widgets.RadioButtonGroup(options=["x", "y", "z"], visible=False, **wide)
        self._place = pn.widgets.FloatSlider(
            label="Place of the plane", value=0.5, end=1, step=0.01, visible=False, **wide
        )
        self._limits = pn.widgets.RangeSlider(label="Values", visible=False, **wide)
        self._invert = pn.widgets.Checkbox(label="Keep the other side", visible=False)
        self._warp = pn.widgets.Select(label="Warp by", options=[_NONE, *vectors, *scalars], **wide)
        self._factor = pn.widgets.FloatInput(label="Factor", value=1.0, visible=False, **wide)
        blocks = {
            f"{number}: {name}" if name else str(number): number
            for number, name in enumerate(mesh.blocks)
        }
        self._blocks = pn.widgets.CheckBoxGroup(
            options=blocks, value=list(blocks.values()), visible=len(blocks) > 1, **wide
        )
        self._about = pn.pane.HTML(margin=(0, 10), **wide)
        self.controls = [
            self._step,
            self._array,
            self._component,
            self.colors.controls,
            self._style,
            pn.widgets.StaticText(value="View from", margin=(5, 10, 0, 10)),
            self._view,
            self._cut,
            self._normal,
            self._place,
            self._limits,
            self._invert,
            self._warp,
            self._factor,
            pn.Column(
                pn.widgets.StaticText(value="Blocks", margin=(5, 10, 0, 10)),
                self._blocks,
                visible=len(blocks) > 1,
                margin=0,
            ),
            self._about,
        ]
        self._step.param.watch(lambda _: self._label_step(opened), "value")
        self._array.param.watch(lambda _: self._number_of_array(), "value")
        self._cut.param.watch(lambda _: self._show_cut(), "value")
        self._warp.param.watch(
            lambda event: setattr(self._factor, "visible", event.new != _NONE), "value"
        )
        for widget in (self._array, self._component, self._cut, self._normal, self._invert,
                       self._warp, self._factor, self._blocks):  # fmt: skip
            widget.param.watch(lambda _: self.refresh(), "value")
        for slider in (self._step, self._place):
            slider.param.watch(lambda _: self.refresh(), "value")
        self._limits.param.watch(lambda _: self._refresh_threshold(), "value")
        self._style.param.watch(lambda _: self._draw(), "value")
        self._view.param.watch(lambda _: self._look(), "value")

    def _make_scene(self) -> None:
        """Make the picture, and the colour bar beside it."""
        self._bounds: Any = self._steps[-1].bounds or (0, 1, 0, 1, 0, 1)
        self._picture = SurfaceView(sizing_mode="stretch_both")
        bar = style(
            figure(
                width=95,
                sizing_mode="stretch_height",
                toolbar_location=None,
                x_range=(0, 1),
                y_range=(0, 1),
                outline_line_color=None,
                min_border_top=20,
                min_border_bottom=20,
            )
        )
        bar.outline_line_color = None
        bar.axis.visible = False
        bar.scatter([], [])  # Bokeh warns of figures without glyphs
        bar.add_layout(self.colors.bar, "right")
        self._bar = pn.pane.Bokeh(bar)
        self.main = pn.Column(
            self._message.pane,
            pn.Row(self._picture, self._bar, sizing_mode="stretch_both", margin=0),
            sizing_mode="stretch_both",
        )

    def _label_step(self, opened: Mesh | MeshSeries) -> None:
        time = opened.times[self._step.value] if isinstance(opened, MeshSeries) else None
        self._step.label = "Step" if time is None else f"Time {time:g}, step"

    def _number_of_array(self) -> None:
        """Offer the components of a vector."""
        chosen = self._array.value
        count = next((n for on, name, n in self._arrays if (on, name) == chosen), 1)
        names = ["x", "y", "z"] if count == 3 else [str(number) for number in range(count)]
        options = {"magnitude": _MAGNITUDE, **{name: number for number, name in enumerate(names)}}
        self._component.param.update(options=options, value=_MAGNITUDE, visible=count > 1)

    def _show_cut(self) -> None:
        """Show the controls of the cut."""
        is_plane = self._cut.value in ("clip", "slice")
        self._normal.visible = self._place.visible = is_plane
        self._limits.visible = self._cut.value == "threshold"
        self._invert.visible = self._cut.value in ("clip", "threshold")

    @property
    def _recipe(self) -> Recipe:
        on, name = ("point", None) if self._array.value == _NONE else self._array.value
        return Recipe(
            association=on,
            array=name,
            component=None if self._component.value == _MAGNITUDE else self._component.value,
            cut=self._cut.value,
            normal=self._normal.value,
            place=self._place.value,
            is_inverted=self._invert.value,
            limits=self._limits.value,
            warp=None if self._warp.value == _NONE else self._warp.value,
            factor=self._factor.value,
            hidden=frozenset(self._blocks.options.values()) - frozenset(self._blocks.value),
        )

    def refresh(self) -> None:
        """Read the mesh and compute its surface, for what the controls say."""
        recipe, step = self._recipe, self._step.value if self._step.visible else 0
        self._background.submit(lambda: self._make(recipe, step))

    def _refresh_threshold(self) -> None:
        if self._cut.value == "threshold":
            self.refresh()

    def _make(self, recipe: Recipe, step: int) -> Iterator[Surface]:
        """Yield the surface."""
        wanted = {(recipe.association, recipe.array), ("point", recipe.warp)}
        key = (step, frozenset(wanted))
        if key != self._read_key:
            mesh = self._steps[step]
            known = {(on, name) for on, name, _ in arrays_of(mesh)}
            on_points, on_cells = (
                [str(name) for place, name in wanted & known if place == on]
                for on in ("point", "cell")
            )
            self._read = mesh.read(point_data=on_points, cell_data=on_cells, field_data=[])
            self._read_key = key
        yield surface_of(self._read, recipe)

    def _show(self, surface: Surface) -> None:
        self._message.clear()
        self._surface, self._bounds = surface, surface.bounds
        self._bar.visible = self.colors.bar.visible = surface.range is not None
        if surface.range is not None and surface.range != self._range:
            low, high = self._range = surface.range
            self._limits.param.update(
                start=low, end=high, step=(high - low) / 200, value=(low, high)
            )
        coarse = (
            f", coarsened from {text.plural(surface.faces, 'face')} for the browser"
            if surface.faces > MOST_FACES
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
                values = np.asarray(self.colors.apply(mesh[VALUE]), "f4")
            except ValueError as error:
                self._message.fail(error)
                return
        picture, style_ = self._picture, self._style.value
        changes: dict[str, Any] = {
            "look": {
                "style": style_.partition(" ")[0],
                "edges": style_.endswith("edges"),
                "background": (0.086, 0.098, 0.114) if is_dark() else (1.0, 1.0, 1.0),
                "text": text_color(),
                "colors": palette_bytes(self.colors.palette.value),
                "range": (self.colors.mapper.low, self.colors.mapper.high),
                "true_value": self.colors.formatter.code,
            }
        }
        if mesh is not self._sent:
            changes["geometry"] = geometry_of(mesh)
            changes["on_points"] = self._surface is None or self._surface.on_points
            self._sent = mesh
        if not np.array_equal(values, picture.values, equal_nan=True):
            changes["values"] = values
        picture.param.update(changes)

    def _look(self) -> None:
        """Look at the whole mesh from a direction."""
        direction, up = _VIEWS[self._view.value]
        self._picture.camera = {"direction": direction, "up": up, "bounds": self._bounds}


def palette_bytes(name: str) -> np.ndarray:
    """Return the red, green, blue and alpha of the colours of a colour map, as bytes."""
    colors = "".join(f"{color.removeprefix('#')[:6]}ff" for color in PALETTES[name])
    return np.frombuffer(bytes.fromhex(colors), "u1")


def arrays_of(mesh: Mesh) -> list[tuple[str, str, int]]:
    """Return the arrays of numbers on points and cells: association, name, components."""
    found: dict[tuple[str, str], int] = {}
    for array in mesh.arrays:
        is_drawn = array.association in ("point", "cell") and array.name is not None
        if is_drawn and array.dtype not in ("string", "bytes"):
            # Shapes are (tuples,) or (z, y, x) for scalars; vectors have one more dimension.
            count = array.shape[-1] if len(array.shape) in (2, 4) else 1
            found.setdefault((array.association, str(array.name)), count)
    arrays = [(on, name, count) for (on, name), count in found.items()]
    return sorted(arrays, key=lambda array: array[1].startswith(_LAST))


def page(opened: Mesh | MeshSeries, request: ViewRequest) -> Any:
    """Return the page of a mesh or a series of meshes."""
    request.refuse_comparison()
    pn.extension("vtk")
    shown = MeshPage(opened)
    first = opened[0] if isinstance(opened, MeshSeries) else opened
    counts = f"{text.plural(first.n_points, 'point')}, {text.plural(first.n_cells, 'cell')}"
    steps = f"{text.plural(len(opened), 'step')}, " if isinstance(opened, MeshSeries) else ""
    facts = f"{first.type}, {steps}{counts}, in {request.location}"
    return frame(request.title, facts, shown.controls, shown.main)
