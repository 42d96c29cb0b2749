"""Pictures of slices and projections, with a colour bar, a scale bar and a title."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar._util.figures import check_colors
from ambar.snapshot.amr import AXES
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.regions import Box
from ambar.snapshot.run_info import RunInfo, readable_length, readable_time
from ambar.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

_USUAL_UNITS = {
    "density": "g/cm3",
    "surface_density": "Msol/pc2",
    "velocity": "km/s",
    "pressure": "Ba",
    "acceleration": "cm/s2",
    "specific_energy": "erg/g",
    "magnetic_field": "muG",
}

_LARGE_RANGE = 10.0
"""The ratio of the largest to the smallest value from which colours are logarithmic."""


def draw(
    snapshot: Snapshot,
    field: str = "density",
    *,
    axis: str = "z",
    slice_at: float | None = None,
    weight: str | None = None,
    center: str | Sequence[float] = "bc",
    width: float = 1.0,
    level: int | None = None,
    unit: str | None = None,
    log: bool | None = None,
    colors: str | None = None,
    threads: int | None = None,
) -> Figure:
    """Return a matplotlib figure of a projection along `axis`, or of a slice.

    Data of two dimensions are drawn unchanged.

    Parameters
    ----------
    snapshot
        What to draw.
    field, axis, weight, level, threads
        As for `Amr.project` and `Amr.slice`.
    slice_at
        Draw a slice, cutting the axis at this fraction of the box.
    center, width
        Middle and side of the part to draw, fractions of the box; "bc" is the box's middle.
    unit
        Unit of the values; by default "code" for a run without physical units, else a usual one.
    log, colors
        As for `paint`.

    Raises
    ------
    ValueError
        If the data have one dimension, or have two and a projection or a slice is requested.
    """
    amr = snapshot.amr
    if amr.ndim == 1:
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 2 or 3 dimensions, found 1; read `amr.read()`"
        )
    if amr.ndim == 2 and (axis != "z" or slice_at is not None or weight is not None):
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 3 dimensions for an axis, a slice or a weight, "
            "found 2; leave these options out"
        )
    summed = amr.ndim == 3 and slice_at is None and weight is None
    unit = unit or _usual_unit(snapshot.info, field, summed=summed)
    region = _window(snapshot.info, center, width, AXES.find(axis))
    if amr.ndim == 2:
        image = amr.grid(field, level=level, region=region, unit=unit, threads=threads)
    elif slice_at is None:
        image = amr.project(
            field, axis=axis, level=level, weight=weight, region=region, unit=unit, threads=threads
        )
    else:
        image = amr.slice(
            field, axis=axis, at=slice_at, level=level, region=region, unit=unit, threads=threads
        )
    return figure_of(image, snapshot.info, log=log, colors=colors)


def figure_of(
    image: xr.DataArray, info: RunInfo, *, log: bool | None = None, colors: str | None = None
) -> Figure:
    """Return a matplotlib figure of a slice, a projection or a grid of two dimensions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    paint(axes, image, info, log=log, colors=colors)
    axes.set_title(_title(image, info), fontsize=11)
    return figure


def paint(
    axes: Axes,
    image: xr.DataArray,
    info: RunInfo,
    *,
    log: bool | None = None,
    colors: str | None = None,
) -> None:
    """Draw a slice or projection into matplotlib's `axes`, with a colour bar.

    A run with physical units gets a scale bar.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    image : xarray.DataArray
        The values, of two dimensions with coordinates.
    info : RamsesInfo or AmrexInfo
        Units of the run.
    log : bool, optional
        Colours by the logarithm. By default so if all values are positive and extend over more than
        a factor of 10.
    colors : str, optional
        A colour map of matplotlib. By default "inferno"; for values of both signs "RdBu_r", centred
        on zero.
    """
    if colors is not None:
        check_colors(colors)
    values = np.ma.masked_invalid(image.to_numpy().T)
    norm, is_signed = _norm(values.compressed(), log)
    left, right, bottom, top = extent = _extent(image)
    picture = axes.imshow(
        values,
        origin="lower",
        extent=extent,
        norm=norm,
        cmap=colors or ("RdBu_r" if is_signed else "inferno"),
    )
    axes.set_facecolor("0.15")
    axes.set_xlabel(f"{image.dims[0]} [code length]")
    axes.set_ylabel(f"{image.dims[1]} [code length]")
    beside = axes.inset_axes((1.03, 0.0, 0.05, 1.0))
    axes.figure.colorbar(picture, cax=beside, label=_label(image))
    if info.units.unit_l != 1.0:
        _scale_bar(axes, info, left, bottom, right - left, top - bottom)


def _norm(values: np.ndarray, log: bool | None) -> tuple[Normalize, bool]:
    """Return how values become colours, and whether the scale is centred on zero."""
    from matplotlib.colors import LogNorm, Normalize

    positive = values[values > 0]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if log is None:
        log = low > 0 and high > _LARGE_RANGE * low
    if log and positive.size and positive.min() < high:
        return LogNorm(float(positive.min()), high), False
    if low < 0 < high:
        largest = max(-low, high)
        return Normalize(-largest, largest), True
    return Normalize(low, high), False


def _usual_unit(info: RunInfo, field: str, *, summed: bool) -> str:
    if not info.physical:
        return "code"
    quantity = quantity_of(field)
    if summed:
        quantity = "surface_density" if quantity == "density" else None
    return _USUAL_UNITS.get(quantity or "", "code")


def _window(info: RunInfo, center: str | Sequence[float], width: float, axis: int) -> Box | None:
    """Return the part to draw: all of the box along the axis looked along."""
    if center == "bc" and width == 1.0:
        return None
    if not width > 0:
        raise _core.InvalidError(f"invalid width: {width}; expected a fraction of the box > 0")
    half = [None if number == axis else width / 2 for number in range(info.ndim)]
    return Box([h and -h for h in half], half, center=center)


def _extent(image: xr.DataArray) -> tuple[float, float, float, float]:
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
    time = f"{info.time:.4g} code" if unit_t == 1.0 else readable_time(info.age("s"))
    return f"{what}, time {time}"


def _label(image: xr.DataArray) -> str:
    unit = image.attrs["units"]
    if unit == "code":
        summed = str(image.attrs.get("weight", "")).startswith("none")
        unit = "code units" + (" x code length" if summed else "")
    return f"{image.attrs['long_name']} [{unit}]"


def _scale_bar(
    axes: Axes, info: RunInfo, left: float, bottom: float, width: float, height: float
) -> None:
    """Draw a bar of a round length, about a fifth of the picture wide."""
    from matplotlib.patheffects import withStroke

    wanted = width / 5
    name = readable_length(wanted * info.units.unit_l).split()[1]
    per_unit = info.units.length(name)
    length = _round_down(wanted * per_unit) / per_unit
    text = f"{length * per_unit:g} {name}"
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
