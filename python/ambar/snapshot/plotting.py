"""Pictures of slices and projections, with a colour bar, a scale bar and a title."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.figures import check_colors, check_limits
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.physics.unit_expressions import parse_unit
from ambar.snapshot.regions import AXES, Box
from ambar.snapshot.run_info import RunInfo, readable_length, readable_time

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.kind import CellsPlot
    from ambar.snapshot.snapshot import Snapshot

Extent: TypeAlias = tuple[float, float, float, float]

_USUAL_UNITS = {
    "density": "g/cm3",
    "surface_density": "Msol/pc2",
    "velocity": "km/s",
    "pressure": "Ba",
    "acceleration": "cm/s2",
    "specific_energy": "erg/g",
    "magnetic_field": "muG",
    "mass": "Msol",
    "time": "Myr",
    "length": "kpc",
    "number_density": "cm-3",
    "temperature": "K",
}

_LARGE_RANGE = 10.0
"""The ratio of the largest to the smallest value from which colours are logarithmic."""


def draw(snapshot: Snapshot, field: str, request: CellsPlot) -> Figure:
    """Return a matplotlib figure of a projection along an axis, or of a slice.

    Data of two dimensions are drawn unchanged. A run with physical units gets a scale bar.

    Raises
    ------
    ValueError
        If the data have one dimension, or have two and a projection or a slice is requested.
    """
    from matplotlib.figure import Figure

    amr, info, axis = snapshot.amr, snapshot.info, request.axis
    is_slice = request.slice_at is not None
    if amr.ndim == 1:
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 2 or 3 dimensions, found 1; read `amr.read()`"
        )
    if amr.ndim == 2 and (axis != "z" or is_slice or request.weight is not None):
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 3 dimensions for an axis, a slice or a weight, "
            "found 2; leave these options out"
        )
    is_integral = amr.ndim == 3 and not is_slice and request.weight is None
    options: dict[str, Any] = {
        "level": request.level,
        "region": _window(info, request.center, request.width, AXES.find(axis)),
        "unit": request.unit or _usual_unit(amr, field, is_integral=is_integral),
        "threads": request.threads,
    }
    if amr.ndim == 2:
        image = amr.grid(field, **options)
    elif request.slice_at is not None:
        image = amr.slice(field, axis=axis, at=request.slice_at, **options)
    else:
        image = amr.project(field, axis=axis, weight=request.weight, **options)
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.add_subplot()
    _draw_image(axes, image, info, request)
    if request.title:
        axes.set_title(_title(image, info), fontsize=11)
    return figure


def _draw_image(axes: Axes, image: xr.DataArray, info: RunInfo, request: CellsPlot) -> None:
    """Draw an image with a colour bar and a scale bar."""
    if request.colors is not None:
        check_colors(request.colors)
    values = np.ma.masked_invalid(image.to_numpy().T)
    norm, colors = _norm_of(values.compressed(), request.log, request.limits)
    left, right, bottom, top = _extent_of(image)
    unit, scale = "code length", 1.0
    if has_units := info.units.unit_l != 1.0:
        unit = readable_length((right - left) / 5 * info.units.unit_l).split()[1]
        scale = info.units.length(unit)
    left, right, bottom, top = extent = (left * scale, right * scale, bottom * scale, top * scale)
    picture = axes.imshow(
        values, origin="lower", extent=extent, norm=norm, cmap=request.colors or colors
    )
    axes.set_facecolor("0.15")
    axes.set_xlabel(f"{image.dims[0]} [{unit}]")
    axes.set_ylabel(f"{image.dims[1]} [{unit}]")
    beside = axes.inset_axes((1.03, 0.0, 0.05, 1.0))
    axes.figure.colorbar(picture, cax=beside, label=_label(image))
    if has_units:
        _scale_bar(axes, unit, left, bottom, right - left, top - bottom)


def _norm_of(
    values: np.ndarray, log: bool | None, limits: tuple[float, float] | None = None
) -> tuple[Normalize, str]:
    """Return the normalization of values for colours, and a colour map for it."""
    from matplotlib.colors import CenteredNorm, LogNorm, Normalize

    if limits is not None:
        check_limits(limits)
        values = np.array(limits)
    positive = values[values > 0]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if log is None:
        log = low > 0 and high > _LARGE_RANGE * low
    if log and positive.size and positive.min() < high:
        return LogNorm(float(positive.min()), high), "inferno"
    if low < 0 < high and limits is not None:
        return Normalize(low, high), "RdBu_r"
    if low < 0 < high:
        return CenteredNorm(halfrange=max(-low, high)), "RdBu_r"
    return Normalize(low, high), "inferno"


def _usual_unit(amr: Amr, field: str, *, is_integral: bool) -> str:
    """Return the usual unit of the dimension of a field; "code" without one."""
    request = amr._request([field])
    own = request.units[field]
    if own is None or not amr.info.physical:
        return "code"
    if is_integral:
        own *= amr.info.units._code_unit("length")
    units = (_USUAL_UNITS.get(quantity_of(field) or ""), *_USUAL_UNITS.values())
    return next((unit for unit in units if unit and parse_unit(unit).is_like(own)), "code")


def _window(info: RunInfo, center: str | Sequence[float], width: float, axis: int) -> Box | None:
    """Return the part to draw: all of the box along the axis looked along."""
    if center == "bc" and width == 1.0:
        return None
    if not width > 0:
        raise _core.InvalidError(f"invalid width: {width}; expected a fraction of the box > 0")
    half = [None if number == axis else width / 2 for number in range(info.ndim)]
    return Box([h and -h for h in half], half, center=center)


def _extent_of(image: xr.DataArray) -> Extent:
    """Return the coordinates of the left, right, lower and upper edge of a picture."""
    sides = []
    for dim in image.dims:
        places = image[dim].to_numpy()
        cell = places[1] - places[0] if len(places) > 1 else 1.0
        sides += [float(places[0] - cell / 2), float(places[-1] + cell / 2)]
    return sides[0], sides[1], sides[2], sides[3]


def _title(image: xr.DataArray, info: RunInfo) -> str:
    what = str(image.attrs["long_name"])
    if "weight" in image.attrs:
        what += f" along {image.attrs['axis']}"
    elif "at" in image.attrs:
        what += f" at {image.attrs['axis']} = {image.attrs['at']:.4g}"
    unit_t = info.units.unit_t
    time = f"{info.time:.4g} code units" if unit_t == 1.0 else readable_time(info.age("s"))
    return f"{what}, time {time}"


def _label(image: xr.DataArray) -> str:
    unit = image.attrs["units"].replace("**", "")
    if unit == "dimensionless":
        return str(image.attrs["long_name"])
    if unit == "code":
        unit = "code units"
    return f"{image.attrs['long_name']} [{unit}]"


def _scale_bar(
    axes: Axes, unit: str, left: float, bottom: float, width: float, height: float
) -> None:
    """Draw a bar of a round length, about a fifth of the picture wide."""
    from matplotlib.patheffects import withStroke

    length = _round_down(width / 5)
    text = f"{length:g} {unit}"
    x, y = left + 0.05 * width, bottom + 0.05 * height
    outline = [withStroke(linewidth=2.5, foreground="black")]
    axes.plot([x, x + length], [y, y], color="black", linewidth=4, solid_capstyle="butt")
    axes.plot([x, x + length], [y, y], color="white", linewidth=2, solid_capstyle="butt")
    axes.text(
        x + length / 2,
        y + 0.015 * height,
        text,
        color="white",
        ha="center",
        va="bottom",
        path_effects=outline,
    )


def _round_down(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is no larger than `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))
