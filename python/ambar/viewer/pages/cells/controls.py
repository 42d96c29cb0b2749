"""The controls of the page of cells: what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import panel as pn
from bokeh.models import CustomJSTickFormatter

from ambar.fields import available
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.pictures.defaults import (
    box_length_unit,
    default_field,
    usual_unit,
    usual_weight,
)
from ambar.snapshot.regions import AXES
from ambar.viewer.pages.cells.plane import Method, Plane

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.run_info import RunInfo

_DIGITS = "return String(Number(tick.toPrecision(6)))"
_WIDE = {"sizing_mode": "stretch_width"}
_SLICE, _INTEGRAL, _MASS_MEAN, _VOLUME_MEAN = (
    "Slice",
    "Integral along the axis",
    "Mean along the axis, by mass",
    "Mean along the axis, by volume",
)


class Controls:
    """The widgets that choose a plane: field, slice or projection, axis, position and units.

    Parameters
    ----------
    amr
        The cells.
    changed
        Called after the plane has changed.
    reset
        Called instead if the axes or their unit have changed.
    is_exact
        Whether planes keep the precision of the values, for comparisons.
    """

    def __init__(
        self,
        amr: Amr,
        changed: Callable[[], None],
        reset: Callable[[], None],
        *,
        is_exact: bool = False,
    ) -> None:
        self._amr, self._is_exact = amr, is_exact
        info = amr.info
        fields = [*(name for name in amr.fields if name != "domain"), "level"]
        is_solid = amr.ndim == 3
        self.field = pn.widgets.Select(
            label="Field",
            groups={"Stored": fields, "Derived": [*available(amr)]},
            value=default_field(amr),
            **_WIDE,
        )
        self.formula = pn.widgets.TextInput(
            label="Or arithmetic of fields", placeholder=f"{fields[0]}**2", **_WIDE
        )
        self.unit = pn.widgets.Select(label="Unit", options=["code"], **_WIDE)
        means = [_MASS_MEAN, _VOLUME_MEAN] if usual_weight(amr) else [_VOLUME_MEAN]
        self.method = pn.widgets.Select(
            label="Picture", options=[_SLICE, _INTEGRAL, *means], visible=is_solid, **_WIDE
        )
        self.axis = pn.widgets.RadioButtonGroup(
            label="Along", options=list(AXES), value="z", visible=is_solid, **_WIDE
        )
        self.position = pn.widgets.FloatSlider(
            label="Position", visible=is_solid, format=CustomJSTickFormatter(code=_DIGITS), **_WIDE
        )
        self.length_unit = pn.widgets.Select(
            label="Unit of length", options=length_units(info), value=box_length_unit(info), **_WIDE
        )
        self._changed, self._reset = changed, reset
        self._is_setting = False
        self._set_units()
        self._set_position()
        for widget in (self.field, self.formula, self.method):
            widget.param.watch(self._choose, "value")
        for widget in (self.axis, self.length_unit):
            widget.param.watch(self._turn, "value")
        for widget in (self.position, self.unit):
            widget.param.watch(self._move, "value")

    @property
    def widgets(self) -> list[Any]:
        """The widgets, from top to bottom."""
        lengths = [self.length_unit] if len(self.length_unit.options) > 1 else []
        units = [self.unit] if self._amr.info.physical else []
        return [
            self.field,
            self.formula,
            *units,
            self.method,
            self.axis,
            self.position,
            *lengths,
        ]

    @property
    def length(self) -> float:
        """One code length in the unit of length."""
        return _length(self._amr.info, self.length_unit.value)

    @property
    def name(self) -> str:
        """The chosen field, or the arithmetic of fields."""
        return str(self.formula.value.strip() or self.field.value)

    def plane(self, amr: Amr) -> Plane:
        """Return the chosen plane of cells, of these or of those of another step."""
        method, weight = self._method()
        return Plane(
            amr,
            self.name,
            method,
            AXES.index(self.axis.value),
            self.position.value / self.length,
            weight,
            self.unit.value,
            self._is_exact,
        )

    def title(self) -> str:
        """Return what the plane shows."""
        name, axis = self.name.replace("_", " "), self.axis.value
        if self._amr.ndim < 3:
            return name
        if self.method.value == _SLICE:
            unit = self.length_unit.value.replace("code", "")
            return f"{name} at {axis} = {self.position.value:.5g} {unit}".strip()
        words = {_INTEGRAL: f"integrated along {axis}"}
        return f"{name}, {words.get(self.method.value, f'mean along {axis}')}"

    def _method(self) -> tuple[Method, str | None]:
        if self._amr.ndim == 2:
            return "grid", None
        if self.method.value == _SLICE:
            return "slice", None
        weights = {_MASS_MEAN: usual_weight(self._amr), _VOLUME_MEAN: "volume"}
        return "project", weights.get(self.method.value)

    def _choose(self, event: Any) -> None:
        if event.obj is self.field and self.formula.value:
            self.formula.value = ""  # which calls this method again
            return
        self.position.visible = self._amr.ndim == 3 and self.method.value == _SLICE
        self._set_units()
        self._changed()

    def _turn(self, _: object) -> None:
        self._set_position()
        self._reset()

    def _set_units(self) -> None:
        """Offer the units of the field, the usual one first."""
        is_integral = self.method.value == _INTEGRAL
        try:
            usual = usual_unit(self._amr, self.name, int(is_integral))
        except (KeyError, ValueError):  # reading it reports the error
            usual = "code"
        known = (
            {} if is_integral else self._amr.info.units.factors.get(quantity_of(self.name) or "")
        )
        options = list(dict.fromkeys([usual, *(known or {}), "code"]))
        self._set(self.unit, options=options, value=usual)

    def _set_position(self) -> None:
        """Let the position begin at the middle of the chosen axis."""
        axis = AXES.index(self.axis.value)
        if self._amr.ndim <= axis:
            return
        low, high = (end[axis] * self.length for end in (self._amr.lower, self._amr._core.upper))
        step = self._amr.cell_size(self._amr.levels[1])[axis] * self.length
        self._set(self.position, start=low, end=high, step=step, value=(low + high) / 2)

    def _set(self, widget: Any, **values: Any) -> None:
        """Change a widget without a call of `changed`."""
        self._is_setting = True
        widget.param.update(**values)
        self._is_setting = False

    def _move(self, _: object) -> None:
        if not self._is_setting:
            self._changed()


def length_units(info: RunInfo) -> list[str]:
    """Return the units of length to choose from: those between a cell and the box."""
    if not info.physical:
        return ["code"]
    box = max(info.box_size)
    known = [
        name for name in info.units.factors["length"] if 1e-3 < box * _length(info, name) < 1e9
    ]
    return list(dict.fromkeys([box_length_unit(info), *known, "code"]))


def _length(info: RunInfo, unit: str) -> float:
    return 1.0 if unit == "code" else float(info.units.length(unit))
