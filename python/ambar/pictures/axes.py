"""Axes of arrays with coordinates: positions, edges, labels, and the direction of depths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar.figures.labels import label

if TYPE_CHECKING:
    import xarray as xr

_UNEVEN = 1e-3
"""Largest deviation of evenly spaced coordinates, relative to their distance."""
_DEPTHS = ("depth", "pres", "plev")
"""The beginnings of names of coordinates that increase downwards."""
_SIDES = (*"xyzijk", "lat", "lon", "latitude", "longitude")
_LENGTHS = (
    *("nm", "um", "micron", "mm", "cm", "m", "km", "meter", "meters", "metre", "metres"),
    *("au", "ly", "pc", "kpc", "mpc", "code_length"),
)
"""Units of coordinates along a side of a volume."""
_UNNAMED = re.compile(r"(.*_)?dim_\d+")
STEPS = "_ambar_steps"
"""The attribute of an array with the step of each dimension, of `at_steps`."""
_DEGREES = ("degrees_north", "degrees_east", "degree_north", "degree_east", "degrees")


@dataclass(frozen=True)
class CoordinateAxis:
    """The positions along a dimension: its coordinate, or indices."""

    name: str
    positions: np.ndarray
    label: str
    unit: str = ""
    is_time: bool = False
    """Whether positions are days since 1970."""
    is_downward: bool = False

    @property
    def is_even(self) -> bool:
        """Whether positions have equal distances."""
        steps = np.diff(self.positions)
        if not len(steps):
            return True
        return bool(np.allclose(steps, steps.mean(), rtol=0, atol=_UNEVEN * abs(steps.mean())))

    @property
    def edges(self) -> np.ndarray:
        """The edges between positions, and those outside of the first and the last one."""
        places = self.positions
        if len(places) < 2:
            half = max(0.5, np.spacing(abs(places[0])))
            return np.array([places[0] - half, places[0] + half])
        middle = (places[1:] + places[:-1]) / 2
        first, last = 2 * places[0] - middle[0], 2 * places[-1] - middle[-1]
        return np.concatenate([[first], middle, [last]])

    @property
    def is_degrees(self) -> bool:
        """Whether positions are degrees on a sphere."""
        return self.unit in _DEGREES


def axis_of(array: xr.DataArray, dim: str) -> CoordinateAxis:
    """Return the axis of a dimension of an array, which `at_steps` may have reduced."""
    step = array.attrs.get(STEPS, {}).get(dim, 1)
    plain = CoordinateAxis(dim, np.arange(array.sizes[dim], dtype=np.float64) * step, dim)
    if dim not in array.coords:
        return plain
    coordinate = array[dim]
    values, attrs = coordinate.to_numpy(), coordinate.attrs
    name = str(attrs.get("long_name", dim)).replace("_", " ")
    if values.dtype.kind == "M":
        days = np.where(np.isnat(values), np.nan, values.astype("M8[ns]").astype("f8") / 86400e9)
        return CoordinateAxis(dim, days, "", is_time=True)
    if values.dtype.kind == "O":
        return _calendar_axis(coordinate, name) or plain
    if values.dtype.kind not in "iuf" or not _is_sorted(values):
        return plain
    unit = str(attrs.get("units", ""))
    text = label(name, unit.replace("degrees_", "degrees ").replace("degree_", "degrees "))
    return CoordinateAxis(dim, values.astype("f8"), text, unit, is_downward=is_downward(dim, attrs))


def _calendar_axis(coordinate: xr.DataArray, name: str) -> CoordinateAxis | None:
    """Return an axis of cftime dates, as numbers in the units of the file; None for other objects.

    Without units, the numbers are days since the first date.
    """
    values = coordinate.to_numpy()
    if not len(values) or not all(hasattr(value, "calendar") for value in values):
        return None
    from cftime import date2num

    unit = str(coordinate.encoding.get("units") or f"days since {values[0]:%Y-%m-%d}")
    numbers = np.asarray(date2num(values, unit, values[0].calendar), np.float64)
    return CoordinateAxis(name, numbers, label(name, unit), unit) if _is_sorted(numbers) else None


def is_downward(name: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether a coordinate increases downwards: by its attribute "positive", or its name.

    Examples
    --------
    >>> is_downward("depth", {}), is_downward("depth", {"positive": "up"}), is_downward("z", {})
    (True, False, False)
    """
    positive = str(attrs.get("positive", "")).lower()
    if positive in ("up", "down"):
        return positive == "down"
    return name.lower() == "lev" or name.lower().startswith(_DEPTHS)


def is_side(array: xr.DataArray, dim: str) -> bool:
    """Return whether a dimension is a side of a volume.

    The name of the dimension, or the units or the attribute "axis" of its coordinate decide. Depths
    do not count, since their first index is the surface, nor do wavelengths. Three dimensions
    without names are sides.
    """
    coordinate = array[dim]
    attrs = coordinate.attrs
    is_wavelength = dim.lower().startswith("wave")
    if is_wavelength or is_downward(dim, attrs) or coordinate.dtype.kind not in "iuf":
        return False
    unit = str(attrs.get("units", "")).lower()
    return (
        dim.lower() in _SIDES
        or unit in _LENGTHS
        or unit.endswith(("_north", "_east"))
        or str(attrs.get("axis")).upper() in ("X", "Y", "Z")
        or (array.ndim == 3 and all(_UNNAMED.fullmatch(str(other)) for other in array.dims))
    )


def _is_sorted(values: np.ndarray) -> bool:
    steps = np.diff(values.astype("f8"))
    return bool(np.all(steps > 0) or np.all(steps < 0))
