"""Colour scales that suit values: linear, logarithmic or symmetric around 0, and their limits."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

ScaleKind: TypeAlias = Literal["linear", "log", "symlog"]

SEQUENTIAL, DIVERGING = "inferno", "RdBu_r"
"""The usual colour maps of values of one sign, and of both signs."""
_LARGE_RANGE = 10.0
"""The ratio of the largest to the smallest value from which colours are logarithmic."""
_SKEWNESS = 3.0
"""The ratio of the percentile 99.9 to the median from which colours are logarithmic."""
_PERCENTILES = (1.0, 99.9)
"""Ends of logarithmic colours, of the positive values."""
_LARGEST_RANGE = 1e5
"""The largest ratio of the ends of logarithmic colours."""
_LARGEST_END = 1e300
"""The largest number at an end: matplotlib adds and multiplies ends."""
_SYMLOG_RANGE = 1e3
"""The ratio of the ends of symmetric logarithmic colours to the end of their linear part."""
_BALANCE = 0.2
"""The least ratio of the extremes of both signs from which colours are symmetric around 0."""
_NEAR_ZERO = 0.05
"""The ratio of the percentile 95 of magnitudes to their end below which most are near 0."""
_ROUNDING = 4096
"""The largest range of values that only rounding makes, in steps of float64 at their magnitude."""
_ROUNDING_OF_STORED = 8
"""The same in steps of the type of the values, if it is a shorter one."""
_ARBITRARY_ZEROS = ("degc", "celsius", "degree_celsius", "degrees_celsius", "deg_c", "degf")
"""Units in lower case whose 0 is not the middle of values."""


@dataclass(frozen=True)
class ColorScale:
    """The colours of values: a colour map, the values at its ends, and what is between them."""

    kind: ScaleKind
    low: float
    high: float
    colors: str = SEQUENTIAL

    @property
    def linear_width(self) -> float:
        """The end of the linear part of a scale of the kind "symlog"."""
        return self.high / _SYMLOG_RANGE

    @property
    def norm(self) -> Normalize:
        """The normalization for matplotlib."""
        from matplotlib.colors import AsinhNorm, LogNorm, Normalize

        if self.kind == "log":
            return LogNorm(self.low, self.high)
        if self.kind == "symlog":
            return AsinhNorm(self.linear_width, vmin=self.low, vmax=self.high)
        return Normalize(self.low, self.high)

    def extend(self, values: np.ndarray) -> str:
        """Return the ends that finite values exceed, as colour bars of matplotlib name them."""
        ends = ("neither", "max", "min", "both")
        return ends[2 * bool((values < self.low).any()) + bool((values > self.high).any())]

    def fractions(self, values: np.ndarray) -> np.ndarray:
        """Return the place of values in the colour map, from 0 to 1; NaN for those without one."""
        low, high = self.low, self.high
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "log":
                values, low, high = np.log(values), math.log(low), math.log(high)
            elif self.kind == "symlog":
                values = np.arcsinh(values / self.linear_width)
                low, high = (math.asinh(end / self.linear_width) for end in (low, high))
            return np.clip((values - low) / (high - low), 0, 1)


def error_scale(largest: float, bound: float | None = None) -> ColorScale:
    """Return colours of errors, symmetric around 0, whose ends are the bound if it is known.

    `largest` is the largest magnitude of the errors, the end without a bound.
    """
    end = min(bound or largest or 1.0, _LARGEST_END)
    return ColorScale("linear", -end, end, DIVERGING)


def color_scale(
    values: np.ndarray,
    *,
    log: bool | None = None,
    limits: tuple[float, float] | None = None,
    colors: str | None = None,
    unit: str = "",
) -> ColorScale:
    """Return a colour scale for values.

    Values of both signs are linear, and symmetric around 0 if the smaller extreme is at least a
    fifth of the larger one, except temperatures in degrees Celsius. Symmetric ones are symmetric
    logarithmic if 95 % of the magnitudes are below 5 % of the largest. Positive ones are
    logarithmic if they extend over more than a factor of 10, or if a few of them are far above the
    others. Extremes that are far from all other values are left out. Colours diverge only if 0 is
    in their middle. Values that differ by rounding only have one colour.

    Parameters
    ----------
    values
        Values; those that are not finite are ignored.
    log
        Whether the scale is logarithmic; for values of both signs symmetric logarithmic.
    limits
        The values at the ends.
    colors
        A colour map of matplotlib.
    unit
        The unit of the values.

    Raises
    ------
    ValueError
        If the limits are not in order, or the colour map does not exist.
    """
    if colors is not None:
        check_colors(colors)
    if limits is not None:
        check_limits(limits)
        values = np.array(limits, np.float64)
    rounding = _rounding(np.asarray(values).dtype)
    values = np.asarray(values, np.float64).ravel()
    values = values[np.isfinite(values)]
    values = np.clip(values, -_LARGEST_END, _LARGEST_END)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if limits is None and high - low <= rounding * max(abs(low), abs(high)):
        values = values[:1]
        low = high = float(values[0])
    is_automatic = log is None
    if log is None:
        log = (limits is None and _is_wide(values)) or (
            limits is not None and low > 0 and (high > _LARGE_RANGE * low)
        )
    is_signed = _is_balanced(low, high) and unit.lower() not in _ARBITRARY_ZEROS
    if log and low < 0 < high:
        end = max(-low, high)
        return ColorScale("symlog", -end, end, colors or DIVERGING)
    if log and high > 0:
        return ColorScale("log", *_log_ends(values, limits), colors or SEQUENTIAL)
    if is_signed and limits is None:
        magnitudes = np.abs(values)
        end = _end_of(magnitudes)
        is_mostly_near_zero = float(np.percentile(magnitudes, 95)) < _NEAR_ZERO * end
        kind: ScaleKind = "symlog" if is_automatic and is_mostly_near_zero else "linear"
        return ColorScale(kind, -end, end, colors or DIVERGING)
    if limits is None and values.size and low < high:
        low, high = -_end_of(-values), _end_of(values)
    if low == high:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    is_symmetric = math.isclose(low, -high)
    return ColorScale("linear", low, high, colors or (DIVERGING if is_symmetric else SEQUENTIAL))


def _rounding(dtype: np.dtype[Any]) -> float:
    """Return the largest range of values, relative to their magnitude, that only rounding makes."""
    of_type = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    return max(_ROUNDING * float(np.finfo(np.float64).eps), _ROUNDING_OF_STORED * of_type)


def _is_wide(values: np.ndarray) -> bool:
    """Return whether values are positive, except a few zeros, and extend over a wide range."""
    positive = values[values > 0]
    if not positive.size or (values < 0).any() or 2 * positive.size < values.size:
        return False
    low, middle, outer = np.percentile(positive, (0, 50, 99.9)).tolist()
    return bool(positive.max() > _LARGE_RANGE * low or outer > _SKEWNESS * middle)


def _is_balanced(low: float, high: float) -> bool:
    """Return whether values extend to both signs, to neither of them only a little."""
    return low < 0 < high and min(-low, high) >= _BALANCE * max(-low, high)


def _log_ends(values: np.ndarray, limits: tuple[float, float] | None) -> tuple[float, float]:
    positive = values[values > 0]
    low, high = float(positive.min()), float(positive.max())
    if limits is None:
        inner, outer = np.percentile(positive, _PERCENTILES).tolist()
        if inner < outer:
            low, high = max(inner, outer / _LARGEST_RANGE), outer
    elif limits[0] <= 0:
        low = high / _LARGEST_RANGE
    return (low, high) if low < high else (low / 2, high * 2)


def _end_of(values: np.ndarray) -> float:
    """Return the largest value, or the percentile 99.9 if a few values are far beyond it."""
    outer, middle, high = np.percentile(values, (99.9, 50, 100)).tolist()
    return float(outer if high - middle > 2 * (outer - middle) > 0 else high)


def check_colors(colors: str) -> None:
    """Raise ValueError, with close matches, if matplotlib has no colour map of that name."""
    from matplotlib import colormaps

    if colors not in colormaps:
        close = difflib.get_close_matches(colors, colormaps)
        raise _core.InvalidError(
            f"{colors!r} is not a colour map of matplotlib; close matches: "
            f"{', '.join(close) or 'none'}"
        )


def check_limits(limits: tuple[float, float]) -> None:
    """Raise ValueError if the lowest and highest value of a colour bar are not in order."""
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise _core.InvalidError(
            f"invalid limits: {low}:{high}; expected two numbers, the lower one first"
        )
