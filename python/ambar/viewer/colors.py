"""The colours of a picture: colour map, scale and limits, with their controls and the colour bar.

The browser gets values that are already scaled, and colours them linearly. Ticks of the colour bar
have the true values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
from bokeh import palettes
from bokeh.models import ColorBar, CustomJSTickFormatter, FixedTicker, LinearColorMapper

from ambar import _core
from ambar.figures.colors import DIVERGING, color_scale
from ambar.viewer.layout import text_color

PALETTES: dict[str, tuple[str, ...]] = {
    "viridis": palettes.Viridis256,
    "inferno": palettes.Inferno256,
    "magma": palettes.Magma256,
    "plasma": palettes.Plasma256,
    "cividis": palettes.Cividis256,
    "turbo": palettes.Turbo256,
    "greys": palettes.Greys256,
    "red-blue": palettes.interp_palette(palettes.RdBu[11], 256),
    "purple-green": palettes.interp_palette(palettes.PRGn[11], 256),
}
_DIVERGING = ("red-blue", "purple-green")
"""Colour maps whose middle is at 0 if values have both signs."""
_MAX_VALUES = 100_000
"""Values from which colours are chosen."""
SCALES = ("linear", "log", "symlog")
_DIGITS = (
    "const size = Math.abs(value); "
    "return String(size === 0 || (1e-4 <= size && size < 1e6) ? Number(value.toPrecision(6)) "
    ": value.toExponential(5).replace(/\\.?0*e[+]?/, 'e'))"
)
_TRUE_VALUES = {
    "linear": f"const value = tick; {_DIGITS}",
    "log": f"const value = 10 ** tick; {_DIGITS}",
    "symlog": f"const value = Math.sinh(tick) * unit; {_DIGITS}",
}
"""Code that returns the true value of a tick of the colour bar."""
_DECADES = 12
"""Decades below the maximum that a logarithmic scale shows."""
_LINEAR_PART = 1e-3
"""Where symlog changes from linear to logarithmic, relative to the largest absolute value."""


class Colors:
    """The colour controls of a picture, its colour mapper and its colour bar.

    Parameters
    ----------
    changed : callable
        Called after the scale or the limits changed: the picture sends its values again.
    palette : str, default "viridis"
        The first colour map.

    Examples
    --------
    >>> from ambar.viewer.colors import Colors
    >>> colors = Colors(lambda: None)
    >>> colors.scale.value = "log"
    >>> colors.apply(np.array([[1.0, 10.0], [100.0, 0.0]])).tolist()
    [[0.0, 1.0], [2.0, nan]]
    >>> colors.low.value, colors.high.value
    (1.0, 100.0)
    """

    def __init__(self, changed: Callable[[], None], palette: str = "viridis") -> None:
        self._changed = changed
        self._is_following = False
        self._is_choosing = False
        self._keeps_palette = False
        """Whether the user chose the colour map."""
        self.palette = pn.widgets.Select(
            label="Colour map", options=list(PALETTES), value=palette, sizing_mode="stretch_width"
        )
        self.scale = pn.widgets.RadioButtonGroup(
            label="Scale", options=list(SCALES), value="linear", sizing_mode="stretch_width"
        )
        digits = CustomJSTickFormatter(code=f"const value = tick; {_DIGITS}")
        self.low, self.high = (
            pn.widgets.FloatInput(label=label, format=digits, sizing_mode="stretch_width")
            for label in ("From", "To")
        )
        self.follow = pn.widgets.Checkbox(label="Limits follow the view", value=True)
        self.mapper = LinearColorMapper(PALETTES[palette], nan_color="rgba(128, 128, 128, 0.25)")
        # The colour bar does not notice another ticker or formatter, so these change.
        self.ticker = FixedTicker(ticks=[])
        self.formatter = CustomJSTickFormatter()
        self.bar = self.new_bar()
        self.palette.param.watch(self._recolor, "value")
        self.scale.param.watch(lambda _: self._changed(), "value")
        self.follow.param.watch(self._follow, "value")
        for limit in (self.low, self.high):
            limit.param.watch(self._fix, "value")

    def new_bar(self, *, is_horizontal: bool = False) -> Any:
        """Return a colour bar for another figure."""
        size: dict[str, Any] = {"height": 10, "width": "auto"} if is_horizontal else {"width": 16}
        return ColorBar(
            color_mapper=self.mapper,
            ticker=self.ticker,
            formatter=self.formatter,
            padding=8,
            **size,
            background_fill_color=None,
            major_label_text_color=text_color(),
            major_label_text_font_size="12px",
            title_text_color=text_color(),
            title_text_font_size="13px",
            title_text_font_style="normal",
        )

    @property
    def controls(self) -> Any:
        """The controls, for the side bar."""
        return pn.Column(
            self.palette,
            self.scale,
            pn.Row(self.low, self.high, margin=0),
            self.follow,
            margin=0,
        )

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Return values on the scale, as the browser colours them; sets limits that follow.

        Raises ValueError if the limits are not in order, or not positive on a log scale.
        """
        self.fit(values)
        return self.scaled(values)

    def fit(self, visible: np.ndarray) -> None:
        """Set limits that follow to those of the visible values, and show them.

        Raises ValueError as `apply` does.
        """
        if self.follow.value:
            low, high = limits_of(visible, self.scale.value)
            if self.palette.value in _DIVERGING and low < 0 < high:
                low, high = min(low, -high), max(-low, high)
            self._show_limits(low, high)
        low, high, scale = self.low.value, self.high.value, self.scale.value
        check(low, high, scale)
        ends = self.scaled(np.array([low, high]))
        unit = _LINEAR_PART * max(abs(low), abs(high))
        self.formatter.code = f"const unit = {unit}; {_TRUE_VALUES[scale]}"
        self.ticker.ticks = self.scaled(ticks_between(low, high, scale)).tolist()
        self.mapper.update(low=float(ends[0]), high=float(ends[1]))

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Return values on the scale, as the browser colours them."""
        largest = max(abs(self.low.value), abs(self.high.value))
        return scale_values(values, self.scale.value, largest)

    def choose(self, scale: str, palette: str) -> None:
        """Choose a scale, and a colour map unless the user chose one.

        The picture does not send its values again.
        """
        changed, self._changed = self._changed, lambda: None
        self._is_choosing = True
        self.scale.value = scale
        if not self._keeps_palette:
            self.palette.value = palette
        self._is_choosing = False
        self._changed = changed

    def _show_limits(self, low: float, high: float) -> None:
        self._is_following = True
        rounded = [float(f"{limit:.6g}") for limit in (low, high)]
        self.low.value, self.high.value = rounded if rounded[0] < rounded[1] else (low, high)
        self._is_following = False

    def _follow(self, event: Any) -> None:
        if event.new:
            self._changed()

    def _fix(self, event: Any) -> None:
        """Keep limits that were typed; an emptied one gets its former value back."""
        if event.new is None:
            self._is_following = True
            event.obj.value = event.old
            self._is_following = False
        elif not self._is_following:
            self.follow.value = False
            self._changed()

    def _recolor(self, _: object) -> None:
        self._keeps_palette = self._keeps_palette or not self._is_choosing
        self.mapper.palette = PALETTES[self.palette.value]


def usual_colors(values: np.ndarray, scale: str | None = None) -> tuple[str, str]:
    """Return the scale that suits values, unless one is given, and the colour map."""
    chosen = color_scale(values.reshape(-1)[:: max(values.size // _MAX_VALUES, 1)])
    scale = scale or chosen.kind
    is_diverging = chosen.colors == DIVERGING and scale != "log"
    return scale, "red-blue" if is_diverging else "inferno"


def limits_of(values: np.ndarray, scale: str) -> tuple[float, float]:
    """Return the smallest and the largest value that a scale shows; they differ."""
    shown = values[np.isfinite(values)]
    if scale == "log":
        shown = shown[shown > 0]
    if not shown.size:
        return (1.0, 10.0) if scale == "log" else (0.0, 1.0)
    low, high = float(shown.min()), float(shown.max())
    if scale == "log":
        low = max(low, high / 10**_DECADES)
    if low == high:
        margin = max(0.5, abs(low) * 1e-6)
        return (low / 2, high * 2) if scale == "log" else (low - margin, high + margin)
    return low, high


def check(low: float, high: float, scale: str) -> None:
    """Raise ValueError for limits that a scale cannot have."""
    if not -math.inf < low < high < math.inf:
        raise _core.InvalidError(
            f"invalid limits of the colours: {low:g} to {high:g}; expected two numbers, the lower "
            "one first"
        )
    if scale == "log" and low <= 0:
        raise _core.InvalidError(
            f"invalid limits of a log scale: {low:g} to {high:g}; expected positive numbers, or "
            "choose symlog"
        )


def scale_values(values: np.ndarray, scale: str, largest: float) -> np.ndarray:
    """Return values on a scale; NaN where a log scale has no value."""
    if scale == "linear":
        return values
    if scale == "symlog":
        return np.arcsinh(values / (_LINEAR_PART * largest))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log10(values)
    return np.where(np.isfinite(scaled), scaled, np.nan)


def ticks_between(low: float, high: float, scale: str) -> np.ndarray:
    """Return about five round numbers between two limits.

    Examples
    --------
    >>> ticks_between(0.0, 1.0, "linear").tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks_between(0.02, 500.0, "log").tolist()
    [0.1, 1.0, 10.0, 100.0]
    >>> ticks_between(-50.0, 100.0, "symlog").tolist()
    [-10.0, -1.0, 0.0, 1.0, 10.0, 100.0]
    """
    if scale == "symlog":
        largest = max(abs(low), abs(high))
        decades = _decades(largest * _LINEAR_PART * 3, largest)
        ticks = np.concatenate([-decades[::-1], [0.0], decades])
        return ticks[(ticks >= low) & (ticks <= high)]
    if scale == "log" and high / low >= 100:
        return _decades(low, high)
    step = 10 ** math.floor(math.log10(high - low))
    step = next(step * m for m in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * m) <= 6)
    counts = range(math.ceil(low / step), math.floor(high / step) + 1)
    return np.array([float(f"{count * step:.10g}") for count in counts])


def _decades(low: float, high: float) -> np.ndarray:
    """Return powers of ten between two positive numbers, at most seven."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return 10.0 ** np.arange(first, last + 1, max(-(-(last - first) // 6), 1))
