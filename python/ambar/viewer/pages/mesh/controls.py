"""The controls of the page of meshes, and the recipe of the surface that they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import panel as pn

from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.viewer.pages.mesh.surface import Recipe

_NONE = "none"
_MAGNITUDE = -1
_NO_LIMITS = (-math.inf, math.inf)
_LAST = ("Normals", "vtk")
"""Beginnings of the names of arrays that VTK has added: they are at the end of the list."""
_VIEWS = {
    "corner": {"direction": (1.0, 1.0, 1.0), "up": (0.0, 0.0, 1.0)},
    "x": {"direction": (1.0, 0.0, 0.0), "up": (0.0, 0.0, 1.0)},
    "y": {"direction": (0.0, -1.0, 0.0), "up": (0.0, 0.0, 1.0)},
    "z": {"direction": (0.0, 0.0, 1.0), "up": (0.0, 1.0, 0.0)},
}
"""Directions from which the mesh is seen, and the directions that are up."""


class MeshControls:
    """What is drawn of a mesh.

    Parameters
    ----------
    opened : Mesh or MeshSeries
        The mesh, or the series, whose last step is drawn first.
    changed : callable
        Called after `step` or `recipe` changed.
    """

    def __init__(self, opened: Mesh | MeshSeries, changed: Callable[[], None]) -> None:
        steps = opened if isinstance(opened, MeshSeries) else [opened]
        self._times = opened.times if isinstance(opened, MeshSeries) else [None]
        self._changed = changed
        self._is_updating = True  # no changes are reported
        self._chosen = _NO_LIMITS
        mesh, last = steps[-1], len(steps) - 1
        self._components = {(on, name): count for on, name, count in arrays_of(mesh)}
        self._make_data(last)
        self._make_cut()
        self._make_blocks(mesh)
        wide = {"sizing_mode": "stretch_width"}
        self.style = pn.widgets.Select(
            label="Style", options=["surface", "surface with edges", "wireframe", "points"], **wide
        )
        self.look = pn.widgets.RadioButtonGroup(options=list(_VIEWS), **wide)
        self._label_step()
        self._offer_components()
        self._is_updating = False

    def _make_data(self, last: int) -> None:
        """Make the controls of the step, the coloured array, and the warp."""
        wide = {"sizing_mode": "stretch_width"}
        arrays = {f"{name} ({on})": (on, name) for on, name in self._components}
        on_points = [name for on, name in self._components if on == "point"]
        warps = [name for name in on_points if self._components["point", name] in (1, 3)]
        self._step = pn.widgets.IntSlider(end=max(last, 1), value=last, visible=last > 0, **wide)
        self._array = pn.widgets.Select(
            label="Array",
            options={**arrays, _NONE: _NONE},
            value=next(iter(arrays.values()), _NONE),
            **wide,
        )
        self._component = pn.widgets.Select(label="Component", **wide)
        self._warp = pn.widgets.Select(label="Warp by", options=[_NONE, *warps], **wide)
        self._factor = pn.widgets.FloatInput(label="Factor", value=1.0, visible=False, **wide)
        self._watch(self._step, self._label_step)
        self._watch(self._array, self._offer_components)
        self._watch(self._component, self._reset_limits)
        self._watch(self._warp, self._show_factor)
        self._watch(self._factor)

    def _make_cut(self) -> None:
        wide = {"sizing_mode": "stretch_width"}
        self._cut = pn.widgets.Select(
            label="Cut", options=[_NONE, "clip", "slice", "threshold"], **wide
        )
        self._normal = pn.widgets.RadioButtonGroup(options=["x", "y", "z"], visible=False, **wide)
        self._place = pn.widgets.FloatSlider(
            label="Place of the plane", value=0.5, end=1, step=0.01, visible=False, **wide
        )
        self._limits = pn.widgets.RangeSlider(label="Values", visible=False, **wide)
        self._invert = pn.widgets.Checkbox(label="Keep the other side", visible=False)
        self._watch(self._cut, self._show_cut)
        self._watch(self._limits, self._choose_limits)
        for widget in (self._normal, self._place, self._invert):
            self._watch(widget)

    def _make_blocks(self, mesh: Mesh) -> None:
        names = {
            f"{number}: {name}" if name else str(number): number
            for number, name in enumerate(mesh.blocks)
        }
        self._blocks = pn.widgets.CheckBoxGroup(options=names, value=list(names.values()))
        self._watch(self._blocks)

    def _watch(self, widget: Any, adapt: Callable[[], None] | None = None) -> None:
        """Adapt other controls when one changes, and report the change."""

        def change(_: object) -> None:
            if self._is_updating:
                return
            if adapt is not None:
                self._is_updating = True
                adapt()
                self._is_updating = False
            self._changed()

        widget.param.watch(change, "value")

    @property
    def data(self) -> list[Any]:
        """The controls of the step and of the coloured array."""
        return [self._step, self._array, self._component]

    @property
    def shape(self) -> list[Any]:
        """The controls of the style, the direction, the cut, the warp, and the blocks."""
        blocks = [_heading("Blocks"), self._blocks] if len(self._blocks.options) > 1 else []
        cut = [self._cut, self._normal, self._place, self._limits, self._invert]
        view = [self.style, _heading("View from"), self.look]
        return [*view, *cut, self._warp, self._factor, *blocks]

    @property
    def step(self) -> int:
        """The number of the step."""
        return int(self._step.value)

    @property
    def camera(self) -> dict[str, Any]:
        """The direction from which the mesh is seen, and the one that is up."""
        return dict(_VIEWS[self.look.value])

    @property
    def name(self) -> str:
        """The name of the coloured values: the array, with its component; "" without colours."""
        if self._array.value == _NONE:
            return ""
        names = {number: name for name, number in self._component.options.items()}
        component = f", {names[self._component.value]}" if self._component.visible else ""
        return f"{self._array.value[1]}{component}"

    @property
    def recipe(self) -> Recipe:
        """What is drawn."""
        on, name = ("point", None) if self._array.value == _NONE else self._array.value
        return Recipe(
            association=on,
            array=name,
            component=None if self._component.value == _MAGNITUDE else self._component.value,
            cut=self._cut.value,
            normal=self._normal.value,
            place=self._place.value,
            is_inverted=self._invert.value,
            limits=self._chosen,
            warp=None if self._warp.value == _NONE else self._warp.value,
            factor=1.0 if self._factor.value is None else self._factor.value,
            hidden=frozenset(self._blocks.options.values()) - frozenset(self._blocks.value),
        )

    def offer_limits(self, low: float, high: float) -> None:
        """Let a threshold choose between the smallest and the largest value of the mesh.

        Limits that were chosen before are kept.
        """
        limits = [limit for limit in self._chosen if math.isfinite(limit)]
        start, end = min(low, *limits, high), max(low, *limits, high)
        self._limits.disabled = start == end  # a slider needs two ends
        if start == end:
            return
        self._is_updating = True
        value = (max(self._chosen[0], start), min(self._chosen[1], end))
        self._limits.param.update(start=start, end=end, step=(end - start) / 200, value=value)
        self._is_updating = False

    def _choose_limits(self) -> None:
        """Keep limits that were moved; one at an end of the slider has no effect."""
        (low, high), margin = self._limits.value, self._limits.step / 2
        self._chosen = (
            low if low > self._limits.start + margin else -math.inf,
            high if high < self._limits.end - margin else math.inf,
        )

    def _reset_limits(self) -> None:
        self._chosen = _NO_LIMITS

    def _label_step(self) -> None:
        time = self._times[self.step]
        self._step.label = "Step" if time is None else f"Time {time:g}, step"

    def _offer_components(self) -> None:
        count = self._components.get(self._array.value, 1)
        names = ["x", "y", "z"] if count == 3 else map(str, range(count))
        options = {"magnitude": _MAGNITUDE, **{name: n for n, name in enumerate(names)}}
        self._component.param.update(options=options, value=_MAGNITUDE, visible=count > 1)
        self._reset_limits()

    def _show_factor(self) -> None:
        self._factor.visible = self._warp.value != _NONE

    def _show_cut(self) -> None:
        self._normal.visible = self._place.visible = self._cut.value in ("clip", "slice")
        self._limits.visible = self._cut.value == "threshold"
        self._invert.visible = self._cut.value in ("clip", "threshold")


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


def _heading(text: str) -> Any:
    return pn.widgets.StaticText(value=text, margin=(5, 10, 0, 10))
