"""Images of a snapshot: maps, slices, projections and grids, in readable units."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ambar import _core
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.centers import find_center
from ambar.snapshot.loading import has_cells
from ambar.snapshot.physics.unit_expressions import pint_notation
from ambar.snapshot.pictures.defaults import (
    box_length_unit,
    is_integrated,
    usual_particle_weight,
    usual_unit,
    usual_weight,
)
from ambar.snapshot.pictures.options import CellsPlot
from ambar.snapshot.regions import AXES, Box, Region, continued_part, length_of_unit
from ambar.snapshot.run_info import RunInfo

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.snapshot import Snapshot

AnyPlot = TypeVar("AnyPlot", bound=CellsPlot)
_RESOLUTION = 512
"""Pixels along the longer side of a map."""
_PARTICLE_RESOLUTIONS = (64, 128, 256, 512)
_PARTICLES_PER_PIXEL = 3.0
"""The mean below which a picture of particles has fewer pixels."""


def image_of(snapshot: Snapshot, field: str, request: CellsPlot) -> xr.DataArray:
    """Return a map, a projection or a slice, with lengths in a readable unit.

    Without options, densities are integrated through a box of three dimensions, and other fields
    averaged, weighted with the density. Fields without one, and data whose coordinates are not
    Cartesian, are cut in the middle. Of particles, masses are summed, and other fields averaged.

    Raises
    ------
    ValueError
        If an option is invalid, or does not apply to the dimensions of the data.
    """
    if request.particles:
        _check_options(request)
        particles = particles_of(snapshot, request)
        if request.weight is None and request.statistic is None:
            request = replace(request, weight=usual_particle_weight(particles, field))
        image = _map(particles, field, request)
    else:
        request = with_usual_view(snapshot, field, request)
        is_map = _check_options(request)
        image = _image_of_cells(snapshot, field, request, is_map=is_map)
    if not np.isfinite(image).any():
        condition = "" if request.where is None else f" under the condition {request.where!r}"
        if request.slice_at is not None:
            condition += f" at {request.slice_at:g} along {request.axis}"
        raise _core.InvalidError(
            f"{snapshot.location}: expected values of {field!r} to draw, found none{condition}; "
            "change the condition or the part to draw"
        )
    return _in_length_unit(image, snapshot.info, request.length_unit)


def with_usual_view(snapshot: Snapshot, field: str, request: CellsPlot) -> CellsPlot:
    """Return a request for cells with the slice or the weight that is usual for a field."""
    amr = snapshot.amr
    given = (request.slice_at, request.weight, request.statistic)
    if amr.ndim != 3 or any(one is not None for one in given):
        return request
    is_cartesian = getattr(snapshot.info, "coordinates", "cartesian") == "cartesian"
    if is_cartesian and is_integrated(amr, field):
        return request
    weight = usual_weight(amr) if is_cartesian else None
    if weight is None and not _needs_map(request):
        return replace(request, slice_at=usual_plane(snapshot, request))
    return replace(request, weight=weight or "volume")


def usual_plane(snapshot: Snapshot, request: CellsPlot) -> float:
    """Return the plane of a slice as a fraction of the box: through the center of the picture.

    Without one it is in the middle of the domain, or of the boxes of patches if that is outside of
    all.
    """
    amr, info = snapshot.amr, snapshot.info
    if _needs_map(request):
        return 0.5  # slices refuse the options
    axis = AXES.index(cast("str", request.axis))
    if not isinstance(request.center, str) or request.center != "bc":
        center = find_center(amr, request.center, request.length_unit, Selection())
        fraction = float((center[axis] - info.lower[axis]) / info.box_size[axis])
        if not 0 <= fraction <= 1:
            upper = [a + b for a, b in zip(info.lower, info.box_size, strict=True)]
            raise _core.InvalidError(
                f"{snapshot.location}: expected a center in the domain, from {info.lower} to "
                f"{tuple(upper)} in code length, found {tuple(center.tolist())}; check "
                f"length_unit={request.length_unit!r}"
            )
        return fraction
    if amr.layout != "patches":
        return 0.5
    fractions = [
        (amr.boxes(number)[:, :, axis] - level.lo[axis]) / (level.hi[axis] - level.lo[axis])
        for number, level in enumerate(getattr(snapshot.info, "levels", ()))
    ]
    lower, upper = np.concatenate(fractions).T
    if ((lower <= 0.5) & (upper > 0.5)).any():
        return 0.5
    return float((lower.min() + upper.max()) / 2)


def levels_of(snapshot: Snapshot, image: xr.DataArray, request: CellsPlot) -> np.ndarray:
    """Return the finest level in each pixel of an image of cells."""
    request = replace(request, unit="code", levels=False)
    if "level" in image.attrs and ("at" in image.attrs or image.attrs.get("axis") is None):
        request = replace(request, level=image.attrs["level"], resolution=None, weight=None)
        if snapshot.info.ndim == 3 and request.slice_at is None:
            request = replace(request, slice_at=usual_plane(snapshot, request))
    else:
        number = max(image.shape)
        request = replace(
            request, statistic="maximum", resolution=number, level=None, weight=None, slice_at=None
        )
    found: np.ndarray = image_of(snapshot, "level", request).to_numpy()
    return found


def with_usual_rows(snapshot: Snapshot, request: AnyPlot) -> AnyPlot:
    """Return a request for particles if there are no cells: for gas, or the largest species."""
    if request.particles or has_cells(snapshot._source.components):
        return request
    species = snapshot.species
    if len(species) < 2:
        return replace(request, particles=bool(species) or "particles" in snapshot.components)
    usual = max(species, key=lambda name: (name == "gas", len(species[name])))
    return replace(request, particles=True, species=usual)


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
    options = ("slice_at", "weight", "up", "statistic", "where", "depth", "cut")
    found = [name.removesuffix("_at") for name in options if getattr(request, name) is not None]
    found += ["axis"] if request.axis != "z" else []
    if amr.ndim == 2 and found:
        raise _core.InvalidError(
            f"{snapshot.location}: expected data of 3 dimensions for {', '.join(found)}, found 2; "
            "leave these options out; center, width, region, level and resolution apply to 2 "
            "dimensions"
        )
    if amr.ndim == 3 and is_map:
        return _map(amr, field, request)
    return _raster(amr, field, request)


def _needs_map(request: CellsPlot) -> bool:
    """Return whether options need `map`; projections and slices are faster."""
    needed = (request.up, request.statistic, request.where, request.depth, request.cut)
    is_named = isinstance(request.axis, str) and request.axis in tuple(AXES)
    return request.particles or not is_named or any(one is not None for one in needed)


def _check_options(request: CellsPlot) -> bool:
    """Return whether `map` draws; raise ValueError for options that exclude each other."""
    is_map = _needs_map(request)
    if request.slice_at is not None and request.weight is not None:
        raise _core.InvalidError("a weight applies to projections, not to slices; leave one out")
    if is_map and request.slice_at is not None:
        raise _core.InvalidError(
            "expected the axis x, y or z for a slice, and none of up, statistic, where, depth, cut "
            "and particles; leave them or the slice out"
        )
    is_map = is_map or (request.resolution is not None and request.slice_at is None)
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
        "region": request.region,
        "threads": request.threads,
    }
    if request.cut is not None and not request.particles:
        view["cut"] = request.cut
    resolution = request.resolution or _RESOLUTION
    if request.particles and request.resolution is None:
        resolution = _particle_resolution(cast("Particles", rows), view)
    image: xr.DataArray = rows.map(
        field,
        **view,
        resolution=resolution,
        weight=request.weight,
        statistic=request.statistic,
        unit=request.unit or usual_unit(rows, field, exponent),
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
    region = window_of(amr, request)
    level = request.level
    if request.resolution is not None:
        level = _level_of(amr, region, request)
    options: dict[str, Any] = {
        "level": level,
        "region": region,
        "unit": request.unit or usual_unit(amr, field, int(is_integral)),
        "threads": request.threads,
    }
    if amr.ndim == 2:
        return amr.grid(field, **options)
    if request.slice_at is not None:
        return amr.slice(field, axis=axis, at=request.slice_at, **options)
    return amr.project(field, axis=axis, weight=weight, **options)


def _level_of(amr: Amr, region: Region | None, request: CellsPlot) -> int:
    """Return the coarsest level with as many cells along the longer side as the resolution."""
    if request.level is not None:
        raise _core.InvalidError("expected a level or a resolution, found both; leave one out")
    lo, hi = continued_part(region, amr.info, amr._core.lower, amr._core.upper)
    resolution = cast("int", request.resolution)
    low, high = amr.levels
    hidden = AXES.index(cast("str", request.axis)) if amr.ndim == 3 else None
    shown = [axis for axis in range(amr.ndim) if axis != hidden]
    for level in range(low, high):
        sizes = amr.cell_size(level)
        if max((hi[n] - lo[n]) / sizes[n] for n in shown) >= resolution * (1 - 1e-9):
            return level
    return high


def _in_length_unit(image: xr.DataArray, info: RunInfo, unit: str) -> xr.DataArray:
    """Return an image with coordinates in a unit; for "box" in a readable one if it is known."""
    coordinates = getattr(info, "coordinates", "cartesian")
    is_code = image[image.dims[0]].attrs["units"] == "code_length"
    if not is_code or not info.physical or coordinates != "cartesian":
        return image
    if unit in ("box", "code"):
        sides = [float(image[dim][-1] - image[dim][0]) for dim in image.dims]
        sides = [
            side * count / (count - 1 or 1) for side, count in zip(sides, image.shape, strict=True)
        ]
        unit = box_length_unit(info, max(sides) / max(info.box_size))
    factor, label = info.units.length(unit), pint_notation(unit)
    places = {dim: (dim, image[dim].to_numpy() * factor, {"units": label}) for dim in image.dims}
    lengths = ("at", "center", "pixel_size", "cell_size")
    scaled = {name: image.attrs[name] for name in lengths if name in image.attrs}
    attrs = {name: (np.array(value) * factor).tolist() for name, value in scaled.items()}
    return image.assign_coords(places).assign_attrs({**attrs, "length_unit": label})


def window_of(amr: Amr, request: CellsPlot) -> Region | None:
    """Return the part to draw: all of the box along the axis looked along."""
    info, unit, width, center = amr.info, request.length_unit, request.width, request.center
    is_whole = isinstance(center, str) and center == "bc" and width is None
    if is_whole or request.region is not None:
        if not is_whole:
            raise _core.InvalidError(
                "a region is the part to draw, as center and width are; leave one of them out"
            )
        return request.region
    if width is None:
        width = max(info.box_size) / length_of_unit(info, unit)
    if not width > 0:
        raise _core.InvalidError(f"invalid width: {width}; expected a length > 0")
    if isinstance(center, str) and center != "bc":
        center = amr.find_center(center, unit=unit).tolist()
    axis = AXES.index(cast("str", request.axis)) if info.ndim == 3 else None
    half = [None if number == axis else width / 2 for number in range(info.ndim)]
    return Box([h and -h for h in half], half, unit, center=center)
