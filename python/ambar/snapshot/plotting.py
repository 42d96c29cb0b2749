"""Pictures of maps, slices and projections, with a colour bar, a scale bar and a title."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ambar import _core
from ambar._util.figures import check_colors, check_limits
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.physics.unit_expressions import parse_unit, pint_notation
from ambar.snapshot.regions import AXES, Box, length_of_unit
from ambar.snapshot.run_info import RunInfo, readable_length, readable_time

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.field_rows import FieldRows
    from ambar.snapshot.kind import CellsPlot
    from ambar.snapshot.particles import Particles
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

_WORDS = {
    "integral": "",
    "mean": "mean ",
    "dispersion": "dispersion of ",
    "maximum": "maximum of ",
}
"""Statistics of maps, in titles."""
_RESOLUTION = 512
"""Pixels along the longer side of a map."""
_PARTICLE_RESOLUTIONS = (64, 128, 256, 512)
_PARTICLES_PER_PIXEL = 3.0
"""The mean below which a picture of particles has fewer pixels."""
_LARGE_RANGE = 10.0
"""The ratio of the largest to the smallest value from which colours are logarithmic."""
_PERCENTILES = (1.0, 99.9)
"""Ends of logarithmic colours, of the positive values of the pixels."""
_LARGEST_RANGE = 1e5
"""The largest ratio of the ends of logarithmic colours."""


def draw(snapshot: Snapshot, field: str, request: CellsPlot) -> Figure:
    """Return a matplotlib figure of a map, a projection or a slice.

    Data of two dimensions are drawn unchanged. A run with physical units gets a scale bar.

    Raises
    ------
    ValueError
        As for `image_of`, or if the colours or limits are invalid.
    """
    from matplotlib.figure import Figure

    if request.colors is not None:
        check_colors(request.colors)
    if request.limits is not None:
        check_limits(request.limits)
    image = image_of(snapshot, field, request)
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.add_subplot()
    _draw_image(axes, image, snapshot.info, request)
    if request.title:
        axes.set_title(_title(image, snapshot.info, request), fontsize=11)
    return figure


def image_of(snapshot: Snapshot, field: str, request: CellsPlot) -> xr.DataArray:
    """Return a map, a projection or a slice, with lengths in a readable unit.

    Raises
    ------
    ValueError
        If an option is invalid, or does not apply to the dimensions of the data.
    """
    is_map = _is_map(request)
    if request.particles:
        image = _map(particles_of(snapshot, request), field, request)
    else:
        image = _image_of_cells(snapshot, field, request, is_map=is_map)
    if not np.isfinite(image).any():
        condition = "" if request.where is None else f" under the condition {request.where!r}"
        raise _core.InvalidError(
            f"{snapshot.location}: expected values of {field!r} to draw, found none{condition}; "
            "change the condition or the part to draw"
        )
    return _in_length_unit(image, snapshot.info, request.length_unit)


def particles_of(snapshot: Snapshot, request: CellsPlot) -> Particles:
    """Return the particles to draw.

    Raises
    ------
    ValueError
        If there are several species and none is given, or the given one does not exist.
    """
    species = snapshot.species
    if request.species is None:
        if len(species) > 1:
            raise _core.InvalidError(
                f"{snapshot.location}: expected a species of particles, found several; choose one "
                f"of {', '.join(species)} with --species"
            )
        return snapshot.particles
    if request.species not in species:
        raise _core.InvalidError(
            f"{snapshot.location}: the species {request.species!r} does not exist; available: "
            f"{', '.join(species) or 'none'}"
        )
    return species[request.species]


def _image_of_cells(
    snapshot: Snapshot, field: str, request: CellsPlot, *, is_map: bool
) -> xr.DataArray:
    amr = snapshot.amr
    if amr.ndim == 1:
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 2 or 3 dimensions, found 1; read `amr.read()`"
        )
    options = ("slice_at", "weight", "up", "statistic", "where", "depth", "resolution")
    found = [name.removesuffix("_at") for name in options if getattr(request, name) is not None]
    found += ["axis"] if request.axis != "z" else []
    if amr.ndim == 2 and found:
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 3 dimensions for {', '.join(found)}, found 2; "
            "leave these options out; center, width and level apply to 2 dimensions"
        )
    return _map(amr, field, request) if is_map else _raster(amr, field, request)


def _is_map(request: CellsPlot) -> bool:
    """Return whether options need `map`; projections and slices are faster."""
    needed = (request.up, request.statistic, request.where, request.depth, request.resolution)
    is_map = (
        request.particles
        or request.axis not in tuple(AXES)
        or any(one is not None for one in needed)
    )
    if request.slice_at is not None and request.weight is not None:
        raise _core.InvalidError("a weight applies to projections, not to slices; leave one out")
    if is_map and request.slice_at is not None:
        raise _core.InvalidError(
            "expected the axis x, y or z for a slice, and none of up, statistic, where, depth, "
            "resolution and particles; leave them or the slice out"
        )
    if is_map and request.level is not None:
        raise _core.InvalidError(
            "a level applies to projections along x, y or z and to slices, not to maps; give a "
            "resolution, or leave the level out"
        )
    return is_map


def _map(rows: Amr | Particles, field: str, request: CellsPlot) -> xr.DataArray:
    is_integral = request.weight is None and request.statistic in (None, "integral")
    exponent = (-2 if request.particles else 1) if is_integral else 0
    view: dict[str, Any] = {
        "axis": request.axis,
        "up": request.up,
        "center": request.center,
        "width": request.width,
        "depth": request.depth,
        "length_unit": request.length_unit,
        "where": request.where,
        "threads": request.threads,
    }
    resolution = request.resolution or _RESOLUTION
    if request.particles and request.resolution is None:
        resolution = _particle_resolution(cast("Particles", rows), view)
    image: xr.DataArray = rows.map(
        field,
        **view,
        resolution=resolution,
        weight=request.weight,
        statistic=request.statistic,
        unit=request.unit or _usual_unit(rows, field, exponent),
    )
    return image


def _particle_resolution(particles: Particles, view: dict[str, Any]) -> int:
    """Return the resolution for a few particles a pixel: that of a map of their number."""
    smallest, *larger = _PARTICLE_RESOLUTIONS
    if len(particles) < _PARTICLES_PER_PIXEL * larger[0] ** 2:
        return smallest
    # The map is the number of particles per area in code units.
    image = particles.map("radius**0", **view, resolution=smallest, method="nearest")
    unit = image.attrs["length_unit"].replace("code_length", "code")
    pixel = image.attrs["pixel_size"] * length_of_unit(particles.info, unit)
    number = float(np.nansum(image)) * pixel**2
    fitting = (n for n in larger if number >= _PARTICLES_PER_PIXEL * n**2)
    return max(fitting, default=smallest)


def _raster(amr: Amr, field: str, request: CellsPlot) -> xr.DataArray:
    """Return a projection or a slice; cells of data of two dimensions."""
    axis, weight = cast("str", request.axis), request.weight
    is_integral = amr.ndim == 3 and request.slice_at is None and weight is None
    options: dict[str, Any] = {
        "level": request.level,
        "region": _window(amr, request),
        "unit": request.unit or _usual_unit(amr, field, int(is_integral)),
        "threads": request.threads,
    }
    if amr.ndim == 2:
        return amr.grid(field, **options)
    if request.slice_at is not None:
        return amr.slice(field, axis=axis, at=request.slice_at, **options)
    return amr.project(field, axis=axis, weight=weight, **options)


def _in_length_unit(image: xr.DataArray, info: RunInfo, unit: str) -> xr.DataArray:
    """Return an image with coordinates in a unit; for "box" in a readable one if it is known."""
    if image[image.dims[0]].attrs["units"] != "code_length" or not info.physical:
        return image
    if unit in ("box", "code"):
        left, right, *_ = _extent_of(image)
        unit = readable_length((right - left) / 5 * info.units.unit_l).split()[1]
    factor, label = info.units.length(unit), pint_notation(unit)
    places = {dim: (dim, image[dim].to_numpy() * factor, {"units": label}) for dim in image.dims}
    scaled = {name: image.attrs[name] for name in ("center", "pixel_size") if name in image.attrs}
    attrs = {name: (np.array(value) * factor).tolist() for name, value in scaled.items()}
    return image.assign_coords(places).assign_attrs(attrs)


def _draw_image(axes: Axes, image: xr.DataArray, info: RunInfo, request: CellsPlot) -> None:
    """Draw an image with a colour bar and a scale bar."""
    values = np.ma.masked_invalid(image.to_numpy())
    norm, colors = _norm_of(values.compressed(), request.log, request.limits)
    left, right, bottom, top = extent = _extent_of(image)
    unit = image[image.dims[0]].attrs["units"].replace("_", " ")
    picture = axes.imshow(
        values, origin="lower", extent=extent, norm=norm, cmap=request.colors or colors
    )
    axes.set_facecolor("0.15")
    axes.set_xlabel(f"{image.dims[1]} [{unit}]")
    axes.set_ylabel(f"{image.dims[0]} [{unit}]")
    beside = axes.inset_axes((1.03, 0.0, 0.05, 1.0))
    shown = values.compressed()
    low, high = picture.get_clim()
    ends = ("neither", "max", "min", "both")
    extend = ends[2 * int((shown < low).any()) + int((shown > high).any())]
    axes.figure.colorbar(picture, cax=beside, label=_label(image), extend=extend)
    if info.physical:
        _scale_bar(axes, unit, right - left, top - bottom)


def _norm_of(
    values: np.ndarray, log: bool | None, limits: tuple[float, float] | None = None
) -> tuple[Normalize, str]:
    """Return the normalization of values for colours, and a colour map for it.

    Logarithmic colours without limits leave out the extremes of the values: pixels at the edge of
    the box, or with part of a particle, have values close to 0.
    """
    from matplotlib.colors import CenteredNorm, LogNorm, Normalize

    if limits is not None:
        check_limits(limits)
        values = np.array(limits)
    positive = values[values > 0]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if log is None:
        log = low > 0 and high > _LARGE_RANGE * low
    if log and positive.size and positive.min() < high:
        lowest = float(positive.min())
        if limits is None:
            inner, outer = np.percentile(positive, _PERCENTILES).tolist()
            if inner < outer:
                lowest, high = max(inner, outer / _LARGEST_RANGE), outer
        return LogNorm(lowest, high), "inferno"
    if low < 0 < high and limits is not None:
        return Normalize(low, high), "RdBu_r"
    if low < 0 < high:
        return CenteredNorm(halfrange=max(-low, high)), "RdBu_r"
    return Normalize(low, high), "inferno"


def _usual_unit(rows: FieldRows, field: str, exponent: int) -> str:
    """Return the usual unit of a field times a power of length; "code" without one."""
    own = rows._request([field]).units[field]
    if own is None or not rows.info.physical:
        return "code"
    own *= rows.info.units._code_unit("length") ** exponent
    units = (_USUAL_UNITS.get(quantity_of(field) or ""), *_USUAL_UNITS.values())
    return next((unit for unit in units if unit and parse_unit(unit).is_like(own)), "code")


def _window(amr: Amr, request: CellsPlot) -> Box | None:
    """Return the part to draw: all of the box along the axis looked along."""
    info, unit, width, center = amr.info, request.length_unit, request.width, request.center
    if center == "bc" and width is None:
        return None
    if width is None:
        width = max(info.box_size) / length_of_unit(info, unit)
    if not width > 0:
        raise _core.InvalidError(f"invalid width: {width}; expected a length > 0")
    if isinstance(center, str) and center != "bc":
        center = amr.find_center(center, unit=unit).tolist()
    axis = AXES.index(cast("str", request.axis)) if info.ndim == 3 else None
    half = [None if number == axis else width / 2 for number in range(info.ndim)]
    return Box([h and -h for h in half], half, unit, center=center)


def axis_name(axis: str | Sequence[float]) -> str:
    """Return an axis as text, for titles and names of files."""
    return axis if isinstance(axis, str) else "(" + ", ".join(f"{part:g}" for part in axis) + ")"


def _extent_of(image: xr.DataArray) -> Extent:
    """Return the coordinates of the left, right, lower and upper edge of a picture."""
    sides = []
    for dim in image.dims[::-1]:
        places = image[dim].to_numpy()
        cell = places[1] - places[0] if len(places) > 1 else 1.0
        sides += [float(places[0] - cell / 2), float(places[-1] + cell / 2)]
    return sides[0], sides[1], sides[2], sides[3]


def _title(image: xr.DataArray, info: RunInfo, request: CellsPlot) -> str:
    what = _WORDS[image.attrs.get("statistic", "integral")] + str(image.name).replace("_", " ")
    if "at" in image.attrs:
        what += f" at {image.attrs['axis']} = {image.attrs['at']:.4g}"
    elif info.ndim == 3:
        name = axis_name(request.axis)
        what += {"faceon": " face-on", "edgeon": " edge-on"}.get(name, f" along {name}")
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


def _scale_bar(axes: Axes, unit: str, width: float, height: float) -> None:
    """Draw a bar of a round length, about a fifth of the picture wide, on a dark box."""
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    length = _round_down(width / 5)
    bar = AnchoredSizeBar(
        axes.transData,
        length,
        f"{length:g} {unit}",
        "lower left",
        sep=4,
        borderpad=1,
        pad=0.4,
        color="white",
        size_vertical=0.005 * height,
        label_top=True,
    )
    bar.patch.set(facecolor="black", alpha=0.6, linewidth=0)
    axes.add_artist(bar)


def _round_down(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is no larger than `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))
