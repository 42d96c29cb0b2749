"""Figures, movies and FITS files of snapshots, series of them, and two versions of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ambar import _core
from ambar._util.user_warnings import warn
from ambar.figures.colors import ColorScale, check_colors, check_limits, error_scale
from ambar.figures.files import save_figure, write_movie
from ambar.figures.labels import label, version_names
from ambar.figures.panels import ImagePanel, Line, LinePanel, Panel, draw_grid
from ambar.snapshot.pictures.defaults import usual_unit
from ambar.snapshot.pictures.images import AnyPlot, image_of, usual_plane, with_usual_rows
from ambar.snapshot.pictures.options import CellsPlot, SeriesPlot, axis_name, with_code_units
from ambar.snapshot.pictures.panels import (
    extent_of,
    fields_of,
    grid_of,
    image_panel,
    line_panel,
    scale_of,
    stack,
    time_of,
)
from ambar.snapshot.regions import length_of_unit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ambar.snapshot.series import Series
    from ambar.snapshot.snapshot import Snapshot

AnyOutputs = TypeVar("AnyOutputs", bound="Snapshot | Series")
_MAX_COLUMNS = 4
"""Outputs of a series in a picture without a choice."""
_MAX_SAMPLED = 8
"""Outputs of a series whose values decide the colours of a movie."""
_MAX_BOXES = 2.0
"""The width in boxes that no picture needs: the diagonal of a box is shorter."""


def draw(
    snapshot: Snapshot | Series, request: CellsPlot, on: Figure | Axes | None = None
) -> Figure:
    """Draw a snapshot or a series on a figure, by default a new one, or on axes.

    Raises
    ------
    ValueError
        If an option is invalid, or there are no values to draw.
    KeyError
        If a field does not exist.
    """
    snapshot, request = _prepared(snapshot, request)
    _warn_of_width(snapshot, request)
    if request.colors is not None:
        check_colors(request.colors)
    if request.limits is not None:
        check_limits(request.limits)
    grid, title = _grid(snapshot, request)
    if not request.title:
        grid = [[replace(panel, title="") for panel in row] for row in grid]
    elif len(titles := {panel.title for row in grid for panel in row}) == 1:
        title = ", ".join(filter(None, [*titles, title]))
        grid = [[replace(panel, title="") for panel in row] for row in grid]
    return draw_grid(grid, title if request.title else "", on)


def _prepared(opened: AnyOutputs, request: AnyPlot) -> tuple[AnyOutputs, AnyPlot]:
    """Return the outputs in the units of a request, and a request for the rows that they have."""
    if request.code_units is not None:
        opened = with_code_units(opened, request.code_units)
        against = request.against
        if against is not None:
            against = with_code_units(against, request.code_units)
        request = replace(request, code_units=None, against=against)
    if not isinstance(opened, Sequence):
        request = with_usual_rows(opened, request)
    elif len(opened):
        request = with_usual_rows(opened[-1], request)
    return opened, request


def _warn_of_width(opened: Snapshot | Series, request: CellsPlot) -> None:
    """Warn of a width of several boxes, which is probably a number in another unit."""
    if request.width is None or (isinstance(opened, Sequence) and not len(opened)):
        return
    info = (opened[-1] if isinstance(opened, Sequence) else opened).info
    boxes = request.width * length_of_unit(info, request.length_unit) / max(info.box_size)
    if boxes > _MAX_BOXES:
        warn(
            f"the width {request.width:g} {request.length_unit} is {boxes:.3g} times the box; "
            f"expected at most {_MAX_BOXES:g} times; choose another width or length_unit "
            "(--length-unit)"
        )


def _grid(snapshot: Snapshot | Series, request: CellsPlot) -> tuple[list[list[Panel]], str]:
    """Return the panels of a picture, and its title."""
    if isinstance(snapshot, Sequence):
        chosen = _outputs(snapshot, request)
        if request.against is None and len(chosen) > 1:
            return _series_grid(chosen, request), ""
        snapshot = chosen[-1]
    if request.against is not None:
        grid, view = _comparison_grid(snapshot, _other(request, snapshot), request)
        return grid, ", ".join(filter(None, [view, time_of(snapshot.info)]))
    return grid_of(snapshot, request), time_of(snapshot.info)


def _outputs(series: Series, request: CellsPlot) -> list[Snapshot]:
    """Return the outputs that a picture shows: the chosen one, or some at equal distances."""
    if not len(series):
        raise _core.InvalidError(f"{series.location}: expected outputs to draw, found none")
    if isinstance(request, SeriesPlot) and request.output is not None:
        return [series.output(request.output)]
    if request.against is not None:
        return [series[-1]]
    places = np.linspace(0, len(series) - 1, min(len(series), _MAX_COLUMNS))
    return [series[int(place)] for place in np.round(places)]


def _other(request: CellsPlot, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot to compare with: of a series the output of the same number."""
    other: Any = request.against
    is_series = isinstance(other, Sequence)
    if is_series:
        number = getattr(snapshot.info, "output", None)
        other = other.output(number) if number in other.outputs else other[-1]
    found: Snapshot = other
    return found


def _series_grid(snapshots: Sequence[Snapshot], request: CellsPlot) -> list[list[Panel]]:
    """Return a row of panels for each field, with one colour scale, and a column per output."""
    grid: list[list[Panel]] = []
    fields = fields_of(snapshots[0], request)
    if snapshots[0].info.ndim == 1 and not request.particles:
        named = [(one, time_of(one.info)) for one in snapshots]
        return stack([line_panel(named, field, request) for field in fields])
    for field in fields:
        images = [image_of(one, field, request) for one in snapshots]
        scale = scale_of(images, request)
        row: list[Panel] = []
        for number, (one, image) in enumerate(zip(snapshots, images, strict=True)):
            panel = image_panel(one, image, request, scale)
            view = panel.title if not grid else ""
            title = ", ".join(filter(None, [view if number == 0 else "", time_of(one.info)]))
            is_last = number == len(images) - 1
            shares_axis = number > 0 and extent_of(image)[2:] == extent_of(images[0])[2:]
            row.append(
                replace(
                    panel,
                    title="" if grid else title,
                    has_bar=is_last,
                    y_label="" if shares_axis else panel.y_label,
                )
            )
        grid.append(row)
    return grid


def _comparison_grid(
    original: Snapshot, other: Snapshot, request: CellsPlot
) -> tuple[list[list[Panel]], str]:
    """Return a row of panels for each field, and what the first one shows of the box.

    Panels are the original, the other version, and the error.
    """
    grid: list[list[Panel]] = []
    view = ""
    names = version_names(original.location, other.location)
    request = replace(request, against=None)
    is_flat = original.info.ndim != 3 or request.particles
    if not is_flat and request.slice_at is None and request.weight is None:
        if request.where is not None:
            raise _core.InvalidError(
                "--where does not apply with --against, which compares slices; leave it out, or "
                "compare maps: --weight volume"
            )
        # The bound holds for cells, not for integrals.
        request = replace(request, slice_at=usual_plane(original, request))
    for field in fields_of(original, request):
        bound = (
            None
            if request.particles or request.weight is not None
            else bound_of(field, request, original, other)
        )
        if original.info.ndim == 1 and not request.particles:
            grid += _line_comparison((original, other), names, field, bound, request)
            continue
        images = [image_of(one, field, request) for one in (original, other)]
        if images[0].shape != images[1].shape:
            raise _core.InvalidError(
                f"expected two versions of the same data, found images of {images[0].shape} and "
                f"{images[1].shape} pixels of {original.location} and {other.location}; give a "
                "level that both have: --level, or level="
            )
        scale = scale_of(images, request)
        both = [
            image_panel(one, image, request, scale)
            for one, image in zip((original, other), images, strict=True)
        ]
        view = view or both[0].title
        both = [replace(panel, title=name) for panel, name in zip(both, names, strict=True)]
        error = _error_panel(both[0], images, bound)
        others = [replace(panel, y_label="") for panel in (both[1], error)]
        grid.append([replace(both[0], has_bar=False), *others])
    return grid, view


def _error_panel(panel: ImagePanel, images: Sequence[xr.DataArray], bound: float | None) -> Panel:
    """Return a panel of the errors of an image, whose colours end at the bound if it is known."""
    errors = images[1].to_numpy() - images[0].to_numpy()
    unit = str(images[0].attrs["units"])
    largest = float(np.nanmax(np.abs(errors)))
    text = f"largest error {largest:.2g}" + (f", bound {bound:.2g}" if bound else "")
    return replace(
        panel,
        title=text,
        values=errors,
        scale=error_scale(largest, bound),
        bar_label=label(f"error of {images[0].name}".replace("_", " "), unit),
        levels=None,
    )


def _line_comparison(
    versions: Sequence[Snapshot],
    names: Sequence[str],
    field: str,
    bound: float | None,
    request: CellsPlot,
) -> list[list[Panel]]:
    both = line_panel(list(zip(versions, names, strict=True)), field, request)
    a, b = both.lines
    panels: list[list[Panel]] = [[both]]
    if a.x.shape == b.x.shape:
        lines = [Line(x=a.x, y=b.y - a.y)]
        for sign in (-1, 1) if bound else ():
            ends = np.full(2, sign * (bound or 0.0))
            style = {"color": "0.4", "linestyle": "--", "linewidth": 0.8}
            lines.append(Line(x=a.x[[0, -1]], y=ends, style=style))
        _, bracket, unit = both.y_label.partition(" [")
        panels.append(
            [LinePanel(lines=lines, x_label=both.x_label, y_label=f"error{bracket}{unit}")]
        )
    return panels


def bound_of(field: str, request: CellsPlot, *snapshots: Snapshot) -> float | None:
    """Return the absolute error bound that a store records for a field; None without one.

    The bound is in the unit of the picture.
    """
    for snapshot in snapshots:
        place = snapshot._stored_at
        if place is None:
            continue
        store, path = place
        found = store._ambar_attributes(f"{path.rstrip('/')}/amr").get("error_bounds", {})
        if isinstance(bound := found.get(field), int | float) and bound > 0:
            unit = request.unit or usual_unit(snapshot.amr, field)
            return float(bound) * snapshot.amr._column_units([field]).factor(field, unit)
    return None


def frames_of(series: Series, request: SeriesPlot) -> Iterator[Figure]:
    """Yield a figure for each output of a series, with the same colours."""
    series, request = _prepared(series, request)
    _warn_of_width(series, request)
    chosen = [series[int(n)] for n in np.linspace(0, len(series) - 1, _MAX_SAMPLED).round()]
    chosen = list({one.location: one for one in chosen}.values())
    scales: dict[str, ColorScale | tuple[float, float]] = {}
    for field in fields_of(chosen[0], request):
        if chosen[0].info.ndim == 1 and not request.particles:
            lines = line_panel([(one, "") for one in chosen], field, request).lines
            low = min(float(line.y.min()) for line in lines)
            high = max(float(line.y.max()) for line in lines)
            room = 0.05 * (high - low) or 1.0
            scales[field] = request.limits or (low - room, high + room)
        else:
            scales[field] = scale_of([image_of(one, field, request) for one in chosen], request)
    for number, snapshot in enumerate(series):
        row: list[Panel] = []
        for field, scale in scales.items():
            if isinstance(scale, ColorScale):
                image = image_of(snapshot, field, request)
                row.append(image_panel(snapshot, image, request, scale))
            else:
                row.append(line_panel([(snapshot, "")], field, replace(request, limits=scale)))
        title = time_of(snapshot.info) if request.title else ""
        yield draw_grid([row], title)
        if request.report is not None:
            request.report(number + 1, len(series))


def write_picture(opened: Snapshot | Series, request: CellsPlot) -> Path:
    """Write a picture, a movie of a series, or a FITS file, and return its path."""
    opened, request = _prepared(opened, request)
    if request.movie is not None:
        if not isinstance(opened, Sequence) or not isinstance(request, SeriesPlot):
            raise _core.InvalidError(
                f"{request.path}: expected a series for a movie, found one output; leave --movie "
                "out, or give the folder of a run"
            )
        _outputs(opened, request)  # raises an error for an empty series
        frames = frames_of(opened, request)
        return write_movie(frames, request.movie, rate=request.rate, dpi=request.dpi)
    if not isinstance(opened, Sequence) and getattr(request, "output", None) is not None:
        raise _core.InvalidError(
            f"{request.path}: expected a series for an output, found one output; leave it out"
        )
    snapshot = _outputs(opened, request)[-1] if isinstance(opened, Sequence) else opened
    fields = fields_of(snapshot, request)
    name = "" if snapshot.info.ndim < 3 else axis_name(request.axis)
    target = request.target_of(*fields, *filter(None, [name]))
    if target.suffix.lower() in (".fits", ".fit"):
        from ambar.snapshot.maps.fits import write_fits

        _warn_of_width(snapshot, request)
        if len(fields) > 1:
            from xarray import Dataset

            images = {field: image_of(snapshot, field, request) for field in fields}
            write_fits(Dataset(images), target, mode="w")
        else:
            write_fits(image_of(snapshot, fields[0], request), target, mode="w")
        return target
    return save_figure(draw(opened, request), target, request.dpi)
