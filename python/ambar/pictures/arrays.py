"""Pictures of plain arrays: images of two dimensions, lines of one, and errors of two versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar._util.text import suggestion
from ambar.figures.colors import ColorScale, color_scale, error_scale
from ambar.figures.files import save_figure, write_movie
from ambar.figures.labels import label, version_names
from ambar.figures.panels import ImagePanel, Line, LinePanel, Panel, draw_grid, envelope
from ambar.interop.xarray.group_reader import open_group
from ambar.kinds.figures import draw_object
from ambar.pictures.axes import CoordinateAxis, axis_of, is_side
from ambar.pictures.images import at_indices, at_steps, image_panel, numbers_of, position_text
from ambar.pictures.options import ArraysPlot
from ambar.pictures.steps import ArrayPlace, locate, locate_frames, names_to_choose

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ambar.store.array import Array
    from ambar.store.store import Store

_PIXELS = 1024
"""The largest number of values along a side of an image: of more, some are left out."""
_COLUMNS = 3
_MAX_SAMPLED = 8
"""Frames of a movie whose values decide the colours."""


def draw(store: Store, request: ArraysPlot, on: Figure | Axes | None = None) -> Figure:
    """Draw arrays of a store on a figure, by default a new one, or on axes.

    Raises
    ------
    KeyError
        If an array does not exist.
    ValueError
        If an array has no numbers, or the store has no array to draw.
    """
    grid: list[list[Panel]] = []
    names = request.fields or (default_array(store, request.output),)
    places = [locate(store, name, request.output) for name in names]
    if request.against is not None:
        grid = [_comparison(store, request.against, place, request) for place in places]
    else:
        panels: list[Panel] = [_panel_at(store, place, request) for place in places]
        grid = [panels[n : n + _COLUMNS] for n in range(0, len(panels), _COLUMNS)]
    if not request.title:
        grid = [[replace(panel, title="") for panel in row] for row in grid]
    return draw_grid(grid, on=on)


def plot_store(
    store: Store,
    arrays: str | Sequence[str] | None,
    ax: Axes | None,
    options: Mapping[str, Any],
) -> Any:
    """Draw arrays for `Store.plot`, and return the axes."""
    require("xarray", purpose="plot", install="ambar[plot]")
    return draw_object(draw, store, ("arrays", ArraysPlot), store.location, arrays, ax, options)


def write_picture(store: Store, request: ArraysPlot) -> Path:
    """Write a picture, or a movie of steps or along the first of three or more dimensions."""
    require("matplotlib", purpose="ambar plot", install="ambar[plot]")
    require("xarray", purpose="ambar plot", install="ambar[plot]")
    if request.movie is not None:
        frames = _frames(store, request)
        return write_movie(frames, request.movie, rate=request.rate, dpi=request.dpi)
    names = request.fields or (default_array(store, request.output),)
    target = request.target_of(*names)
    return save_figure(draw(store, replace(request, fields=tuple(names))), target, request.dpi)


def default_array(store: Store, output: int | None = None) -> str:
    """Return the largest array of numbers that is not a coordinate.

    It is a path, or a name inside the step `output` of a series, by default the last one.
    """
    best, most = None, -1
    for found, path in names_to_choose(store, output).items():
        array = store[path]
        name = path.rpartition("/")[2]
        is_coordinate = array.ndim == 1 and array.dims == (name,)
        size = array.nbytes * (1 if array.ndim > 1 else 1e-9) * (1e-18 if is_coordinate else 1)
        if _has_numbers(array) and 0 not in array.shape and array.ndim and size > most:
            best, most = found, size
    if best is None:
        raise _core.InvalidError(
            f"{store.location}: expected an array of numbers to draw, found none; ambar ls lists "
            "what the store has"
        )
    return best


def _has_numbers(array: Array) -> bool:
    return array.type_name not in ("string", "bytes") and array.dtype.kind in "biufc"


def array_of(store: Store, place: ArrayPlace, request: ArraysPlot) -> xr.DataArray:
    """Return an array with its coordinates: two dimensions or one, with few enough values."""
    path = place.path
    if path not in store or not hasattr(store[path], "shape"):
        raise _core.NotFoundError(f"{store.location}: no array {path!r}; {suggestion(path, store)}")
    array = store[path]
    if not _has_numbers(array) or 0 in array.shape or not array.ndim:
        raise _core.InvalidError(
            f"{store.location}: expected numbers in the array {path!r}, found "
            f"{array.type_name} of shape {array.shape}; choose another array"
        )
    group, _, name = path.rpartition("/")
    found = open_group(store, group, name)
    hidden = found.dims[:-2]
    if place.index is not None and not hidden:
        raise _core.InvalidError(
            f"{store.location}: expected an array of three or more dimensions for an output, found "
            f"{path!r} of {found.ndim}; leave it out"
        )
    if hidden:
        indices = {dim: found.sizes[dim] // 2 * is_side(found, str(dim)) for dim in hidden}
        if place.index is not None:
            if not -found.shape[0] <= place.index < found.shape[0]:
                raise _core.InvalidError(
                    f"{store.location}: invalid index {place.index} along {found.dims[0]!r}; "
                    f"expected 0 to {found.shape[0] - 1}"
                )
            indices[hidden[0]] = place.index
        found = at_indices(found, indices)
    if found.ndim == 2:
        found = at_steps(found, request.resolution or _PIXELS)
    return found


def _panel_at(
    store: Store, place: ArrayPlace, request: ArraysPlot, scale: ColorScale | None = None
) -> ImagePanel | LinePanel:
    """Return a panel of an array, with its step in the title."""
    panel = panel_of(array_of(store, place, request), request, scale)
    return replace(panel, title=", ".join(filter(None, (place.title, panel.title))))


def panel_of(
    array: xr.DataArray, request: ArraysPlot, scale: ColorScale | None = None
) -> ImagePanel | LinePanel:
    """Return a panel of an array of one or two dimensions."""
    values = numbers_of(array)
    name = str(array.attrs.get("long_name") or array.name).replace("_", " ")
    text = label(name, str(array.attrs.get("units", "")))
    title = position_text(array)
    if values.ndim == 1:
        axis = axis_of(array, str(array.dims[0]))
        return _line_panel(axis, [("", values)], text, title, request)
    if not np.isfinite(values).any():
        raise _core.InvalidError(
            f"expected values of {array.name!r} to draw, found none but missing ones; choose "
            "another part"
        )
    scale = scale or color_scale(
        values,
        log=request.log,
        limits=request.limits,
        colors=request.colors,
        unit=str(array.attrs.get("units", "")),
    )
    y, x = (axis_of(array, str(dim)) for dim in array.dims)
    return image_panel(x, y, values, scale, text, title)


def _line_panel(
    axis: CoordinateAxis,
    lines: Sequence[tuple[str, np.ndarray]],
    text: str,
    title: str,
    request: ArraysPlot,
) -> LinePanel:
    drawn = []
    for name, values in lines:
        places, shown = envelope(values)
        x, y = axis.positions[places], shown
        drawn.append(Line(x=y, y=x, label=name) if axis.is_downward else Line(x=x, y=y, label=name))
    is_log = bool(request.log)
    if axis.is_downward:
        return LinePanel(
            lines=drawn,
            title=title,
            is_downward=True,
            is_log=(is_log, False),
            limits=request.limits,
            x_label=text,
            y_label=axis.label,
        )
    return LinePanel(
        lines=drawn,
        title=title,
        is_log=(False, is_log),
        limits=request.limits,
        x_label=axis.label or " ",
        y_label=text,
        are_dates=(axis.is_time, False),
    )


def _comparison(store: Store, other: Store, place: ArrayPlace, request: ArraysPlot) -> list[Panel]:
    """Return panels of an array in two stores, and of the error."""
    name = place.path
    first, second = (array_of(one, place, request) for one in (store, other))
    if first.shape != second.shape:
        raise _core.InvalidError(
            f"expected two versions of the same array {name!r}, found the shapes {first.shape} in "
            f"{store.location} and {second.shape} in {other.location}"
        )
    a, b = numbers_of(first), numbers_of(second)
    errors = b - a
    largest = float(np.nanmax(np.abs(errors), initial=0.0))
    bounds = [one[name].error_bound for one in (store, other)]
    bound = next((float(x) for x in bounds if isinstance(x, int | float) and x > 0), None)
    is_whole = first.shape == store[name].shape
    title = f"largest error {'' if is_whole else 'shown '}{largest:.2g}"
    title += f", bound {bound:.2g}" if bound else ""
    unit = str(first.attrs.get("units", ""))
    versions = version_names(store.location, other.location)
    text = label(f"error of {first.name}".replace("_", " "), unit)
    if a.ndim == 1:
        axis = axis_of(first, str(first.dims[0]))
        panel = panel_of(first, request)
        both = [(versions[0], a), (versions[1], b)]
        plain = replace(request, log=False, limits=None)
        value = panel.x_label if axis.is_downward else panel.y_label
        return [
            _line_panel(axis, both, value, "", request),
            _line_panel(axis, [("", errors)], text, title, plain),
        ]
    scale = color_scale(
        np.concatenate([a.ravel(), b.ravel()]),
        log=request.log,
        limits=request.limits,
        colors=request.colors,
        unit=unit,
    )
    where = position_text(first)
    names = ", ".join(filter(None, (versions[0], where)))
    original = replace(panel_of(first, request, scale), title=names, has_bar=False)
    copy = replace(panel_of(second, request, scale), title=versions[1], y_label="")
    error: Panel = panel_of(first.copy(data=errors), request, error_scale(largest, bound))
    error = replace(error, title=title, bar_label=text, y_label="")
    return [original, copy, error]


def _frames(store: Store, request: ArraysPlot) -> Iterator[Figure]:
    """Yield a figure for each step, or index of the first dimension, with the same colours."""
    name = (request.fields or (default_array(store),))[0]
    frames = locate_frames(store, name)
    places = np.unique(np.linspace(0, len(frames) - 1, _MAX_SAMPLED).astype(int))
    some = [array_of(store, frames[n], request) for n in places]
    scale = color_scale(
        np.concatenate([numbers_of(one).ravel() for one in some]),
        log=request.log,
        limits=request.limits,
        colors=request.colors,
        unit=str(some[0].attrs.get("units", "")),
    )
    for number, place in enumerate(frames):
        panel: Panel = _panel_at(store, place, request, scale)
        yield draw_grid([[panel if request.title else replace(panel, title="")]])
        if request.report is not None:
            request.report(number + 1, len(frames))
