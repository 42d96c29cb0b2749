"""Panels of snapshots: images of cells and particles, and lines of data of one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar.figures.colors import ColorScale, color_scale
from ambar.figures.labels import label, statistic_name, unit_text
from ambar.figures.panels import Extent, ImagePanel, Line, LinePanel, Panel
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.maps.fits import single_size
from ambar.snapshot.physics.readable import readable_time
from ambar.snapshot.physics.unit_expressions import pint_notation
from ambar.snapshot.pictures.defaults import box_length_unit, default_field, usual_unit
from ambar.snapshot.pictures.images import image_of, levels_of, particles_of, window_of
from ambar.snapshot.pictures.options import CellsPlot, axis_name
from ambar.snapshot.run_info import redshift_of
from ambar.snapshot.units import ColumnUnits

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.run_info import RunInfo
    from ambar.snapshot.snapshot import Snapshot

_COLUMNS = 3
"""Most panels of one snapshot beside each other."""
_ANGLES = {
    ("polar", "y"): r"$\theta$",
    ("cylindrical", "y"): "z",
    ("cylindrical", "z"): r"$\theta$",
    ("spherical", "y"): r"$\theta$",
    ("spherical", "z"): r"$\phi$",
}


def fields_of(snapshot: Snapshot, request: CellsPlot) -> tuple[str, ...]:
    """Return the fields to draw: those of the request, or the usual one."""
    if request.fields:
        return request.fields
    rows = particles_of(snapshot, request) if request.particles else snapshot.amr
    return (default_field(rows, is_particles=request.particles),)


def grid_of(snapshot: Snapshot, request: CellsPlot) -> list[list[Panel]]:
    """Return a panel for each field: images beside each other, lines below each other."""
    fields = fields_of(snapshot, request)
    if snapshot.info.ndim == 1 and not request.particles:
        return stack([line_panel([(snapshot, "")], field, request) for field in fields])
    panels = [image_panel(snapshot, image_of(snapshot, f, request), request) for f in fields]
    columns = 2 if len(panels) == 4 else _COLUMNS
    return [list(panels[n : n + columns]) for n in range(0, len(panels), columns)]


def scale_of(images: Sequence[xr.DataArray], request: CellsPlot) -> ColorScale:
    """Return the colours of the values of images together."""
    values = np.concatenate([image.to_numpy().ravel() for image in images])
    return color_scale(values, log=request.log, limits=request.limits, colors=request.colors)


def image_panel(
    snapshot: Snapshot,
    image: xr.DataArray,
    request: CellsPlot,
    scale: ColorScale | None = None,
) -> ImagePanel:
    """Return a panel of an image, with the given colours or those of its values."""
    info = snapshot.info
    coordinates = getattr(info, "coordinates", "cartesian")
    unit = str(image[image.dims[1]].attrs["units"])
    panel = ImagePanel(
        title=", ".join(filter(None, [request.species, view_text(image, request)])),
        values=image.to_numpy(),
        extent=extent_of(image),
        scale=scale or scale_of([image], request),
        bar_label=value_label(image),
        x_label=label(str(image.dims[1]), unit),
        y_label=label(str(image.dims[0]), unit),
        bar_unit=unit if info.physical else None,
        is_sparse=request.particles,
    )
    if request.levels and not request.particles:
        panel = replace(panel, levels=levels_of(snapshot, image, request))
    return panel if coordinates == "cartesian" else _curved(panel, image, info, coordinates)


def _curved(panel: ImagePanel, image: xr.DataArray, info: RunInfo, coordinates: str) -> ImagePanel:
    """Return a panel of an image in coordinates with a radius: with its form, if it has an angle.

    In the plane of a radius and an angle, positions are Cartesian. The axis of the angle of
    spherical coordinates is vertical.
    """
    vertical, horizontal = map(str, image.dims)
    names = {
        dim: _ANGLES.get((coordinates, dim), "r" if dim == "x" else dim)
        for dim in (vertical, horizontal)
    }
    factor, unit = 1.0, "code_length"
    if info.physical:
        known = box_length_unit(info, info.box_size[0] / max(info.box_size))
        factor, unit = info.units.length(known), pint_notation(known)
    if "at" in image.attrs:
        axis, at = str(image.attrs["axis"]), image.attrs["at"]
        name = _ANGLES.get((coordinates, axis), "r" if axis == "x" else axis)
        is_length = not name.startswith("$")
        place = f"{at * factor if is_length else at:.4g} {unit_text(unit) if is_length else 'rad'}"
        panel = replace(panel, title=f"{name} = {place}")
    left, right, bottom, top = panel.extent
    is_angle = {dim: names[dim].startswith("$") for dim in names}
    if horizontal != "x" or coordinates not in ("polar", "cylindrical", "spherical"):
        units = {dim: "rad" if is_angle[dim] else "code_length" for dim in names}
        labels = [label(names[dim], units[dim]) for dim in (horizontal, vertical)]
        is_equal = len(set(units.values())) == 1
        return replace(
            panel, x_label=labels[0], y_label=labels[1], is_equal=is_equal, bar_unit=None
        )
    if not is_angle[vertical]:
        extent: Extent = (left * factor, right * factor, bottom * factor, top * factor)
        return replace(
            panel,
            extent=extent,
            x_label=label(names[horizontal], unit),
            y_label=label(names[vertical], unit),
            bar_unit=panel.bar_unit and unit,
        )
    radius = np.linspace(left, right, image.shape[1] + 1) * factor
    angle = np.linspace(bottom, top, image.shape[0] + 1)[:, None]
    along, across = radius * np.cos(angle), radius * np.sin(angle)
    is_polar_angle = coordinates == "spherical" and vertical == "y"
    x, y = (across, along) if is_polar_angle else (along, across)
    return replace(
        panel,
        corners=(x, y),
        extent=(float(x.min()), float(x.max()), float(y.min()), float(y.max())),
        x_label=label("R" if is_polar_angle else "x", unit),
        y_label=label("z" if is_polar_angle else "y", unit),
        bar_unit=panel.bar_unit and unit,
        levels=None,
    )


def stack(panels: Sequence[LinePanel]) -> list[list[Panel]]:
    """Return panels below each other, of which the last one has the label of the common axis."""
    height = 0.6 if len(panels) == 1 else 0.35
    last = len(panels) - 1
    return [
        [replace(panel, height=height, x_label=panel.x_label if number == last else "")]
        for number, panel in enumerate(panels)
    ]


def extent_of(image: xr.DataArray) -> Extent:
    """Return the coordinates of the left, right, lower and upper edge of an image."""
    sides = []
    for dim in image.dims[::-1]:
        places = image[dim].to_numpy()
        cell = places[1] - places[0] if len(places) > 1 else single_size(image, dim)
        sides += [float(places[0] - cell / 2), float(places[-1] + cell / 2)]
    return sides[0], sides[1], sides[2], sides[3]


def value_label(image: xr.DataArray) -> str:
    """Return the label of the values of an image, for its colour bar."""
    return label(value_name(image), str(image.attrs["units"]))


def value_name(image: xr.DataArray) -> str:
    """Return the name of the values of an image: the field, and how it is seen through the box."""
    return statistic_name(str(image.attrs["long_name"]), image.attrs)


def line_panel(
    snapshots: Sequence[tuple[Snapshot, str]], field: str, request: CellsPlot
) -> LinePanel:
    """Return a panel of a field of one dimension of snapshots, each with a label."""
    first = snapshots[0][0]
    unit = request.unit or usual_unit(first.amr, field)
    length = box_length_unit(first.info)
    lines = [
        Line(x=x, y=values, label=name)
        for snapshot, name in snapshots
        for x, values in [profile_of(snapshot, field, unit, length, request)]
    ]
    is_positive = all(bool((line.y > 0).all()) for line in lines)
    units = ColumnUnits(first.amr._units, first.amr._request([field]).units)
    length = "code_length" if length == "code" else pint_notation(length)
    return LinePanel(
        lines=lines,
        is_log=(False, bool(request.log) and is_positive),
        limits=request.limits,
        x_label=label("x", length),
        y_label=label(field.replace("_", " "), units.label(field, unit)),
    )


def profile_of(
    snapshot: Snapshot, field: str, unit: str, length: str, request: CellsPlot
) -> tuple[np.ndarray, np.ndarray]:
    """Return both edges of each cell of one dimension, and its value twice."""
    amr = snapshot.amr
    region = window_of(amr, request)
    cells = amr.read(
        ["x", "dx", field], region=region, where=request.where, threads=request.threads
    )
    if not len(cells):
        raise _core.InvalidError(
            f"{snapshot.location}: expected cells to draw, found none; change the condition or the "
            "part to draw"
        )
    order = np.argsort(cells["x"])
    middle, half = cells["x"][order], cells["dx"][order] / 2
    edges = np.stack([middle - half, middle + half], 1).ravel()
    values = cells.column(field, unit)[order]
    return edges * snapshot.info.units.length(length), np.repeat(values, 2)


def view_text(image: xr.DataArray, request: CellsPlot) -> str:
    """Return from where an image of three dimensions is seen; "" for one of two."""
    attrs = image.attrs
    if "at" in attrs:
        unit = attrs.get("length_unit", "")
        size = float(np.ptp(image[image.dims[1]].to_numpy()))
        place = 0.0 if abs(attrs["at"]) < 1e-6 * size else attrs["at"]
        at = f"{attrs['axis']} = {place:.4g}"
        return f"{at} {unit_text(unit)}" if unit else at
    if "axis" not in attrs or len(attrs.get("center", "xyz")) == 2:
        return ""
    name = axis_name(request.axis)
    return {"faceon": "face-on", "edgeon": "edge-on"}.get(name, f"along {name}")


def time_of(info: RunInfo) -> str:
    """Return the time of a snapshot, with the redshift of a cosmological run."""
    text = f"time {info.time:.4g} {unit_text('code')}"
    if info.physical and info.units.factors:
        text = f"time {readable_time(info.age('s'))}"
    if (redshift := redshift_of(info)) is not None:
        # Other units than "Nyx" do not state the unit of the time of an expanding run of AMReX.
        is_stated = not isinstance(info, AmrexInfo) or info.units._run_time is not None
        is_known = info.physical and is_stated
        return f"redshift {redshift:.2f}, {text}" if is_known else f"redshift {redshift:.2f}"
    return text
