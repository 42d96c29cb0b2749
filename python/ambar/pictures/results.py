"""Pictures of arrays of xarray that ambar returns: maps, slices, phase diagrams, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.arguments import names_of
from ambar._util.text import suggestion
from ambar.figures.colors import color_scale
from ambar.figures.labels import label, statistic_name
from ambar.figures.panels import ImagePanel, Line, LinePanel, Panel, draw_grid
from ambar.kinds.figures import new_figure
from ambar.pictures.axes import axis_of
from ambar.pictures.images import image_panel, numbers_of, position_text

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_SIZES = ("count", "weight_sum")
"""Variables of profiles that are drawn only without others: the number and weight of cells."""
_COLUMNS = 3
"""Most panels beside each other."""


def draw(
    arrays: Sequence[xr.DataArray],
    ax: Axes | None,
    *,
    log: bool | None,
    limits: tuple[float, float] | None,
    colors: str | None,
    line_label: str | None = None,
) -> Any:
    """Draw arrays of one or two dimensions, each in a panel, and return the axes."""
    panels = [_panel(array, log, limits, colors) for array in arrays]
    for panel in panels:
        if isinstance(panel, LinePanel) and line_label is not None:
            panel.lines = [replace(line, label=line_label) for line in panel.lines]
    grid = [panels[n : n + _COLUMNS] for n in range(0, len(panels), _COLUMNS)]
    figure = draw_grid(grid, on=new_figure() if ax is None else ax)
    if ax is not None:
        return ax
    return figure.axes[0] if len(figure.axes) == 1 else np.array(figure.axes)


def arrays_to_draw(dataset: xr.Dataset, names: str | Sequence[str] | None) -> list[xr.DataArray]:
    """Return variables of a dataset, by default those of numbers with one or two dimensions.

    Of profiles, those of fields are chosen. Dimensions of size 1 are left out. Raises KeyError if a
    variable does not exist, and ValueError if there is none to draw.
    """
    known = [str(name) for name in dataset.data_vars]
    chosen = None if names is None else names_of("variables", names)
    for name in chosen or ():
        if name not in known:
            raise _core.NotFoundError(f"no variable {name!r}; {suggestion(name, known)}")
    arrays = [dataset[name].squeeze() for name in (known if chosen is None else chosen)]
    if chosen is None:
        arrays = [one for one in arrays if one.ndim in (1, 2) and one.dtype.kind in "biuf"]
        arrays = [one for one in arrays if one.name not in _SIZES] or arrays
    if not arrays:
        raise _core.InvalidError(
            f"expected variables of one or two dimensions to draw, found none among "
            f"{', '.join(known) or 'no variables'}; select a part with isel"
        )
    return arrays


def _panel(
    array: xr.DataArray,
    log: bool | None,
    limits: tuple[float, float] | None,
    colors: str | None,
) -> Panel:
    """Return a panel of an array of one or two dimensions."""
    values = numbers_of(array)
    if values.ndim not in (1, 2) or not np.isfinite(values).any():
        raise _core.InvalidError(
            f"expected values of one or two dimensions to draw, found the shape {array.shape} with "
            f"{int(np.isfinite(values).sum())} finite values; select a part with isel"
        )
    name = str(array.attrs.get("long_name", array.name or "value")).replace("_", " ")
    text = label(name, str(array.attrs.get("units", "")))
    edges = [_edges(array, str(dim)) for dim in array.dims]
    logs = [_is_log(array, str(dim)) for dim in array.dims]
    labels = [_label(array, str(dim)) for dim in array.dims]
    if values.ndim == 1:
        is_histogram = f"{array.dims[0]}_lower" in array.coords
        axis = axis_of(array, str(array.dims[0]))
        x = np.repeat(edges[0], 2)[1:-1] if is_histogram else axis.positions
        y = np.repeat(values, 2) if is_histogram else values
        return LinePanel(
            lines=[Line(x=x, y=y, label=name)],
            is_log=(logs[0], None if log is None and is_histogram else bool(log)),
            limits=limits,
            x_label=" " if axis.is_time else labels[0],
            y_label=text,
            title=position_text(array),
            are_dates=(axis.is_time, False),
        )
    if not any(f"{dim}_lower" in array.coords for dim in array.dims):
        unit = str(array.attrs.get("units", ""))
        text = label(statistic_name(name, array.attrs), unit)
        scale = color_scale(values, log=log, limits=limits, colors=colors, unit=unit)
        vertical, horizontal = (axis_of(array, str(dim)) for dim in array.dims)
        return image_panel(horizontal, vertical, values, scale, text, position_text(array))
    shown = np.where(values > 0, values, np.nan) if (values >= 0).all() else values
    scale = color_scale(shown, log=log, limits=limits, colors=colors)
    y, x = edges
    is_even = not any(logs) and all(_is_even(one) for one in edges)
    x_corners, y_corners = np.meshgrid(x, y)
    return ImagePanel(
        values=shown,
        extent=(float(x[0]), float(x[-1]), float(y[0]), float(y[-1])),
        corners=None if is_even else (x_corners, y_corners),
        is_equal=False,
        is_log=(logs[1], logs[0]),
        is_blank=True,
        scale=scale,
        bar_label=text,
        x_label=labels[1],
        y_label=labels[0],
    )


def _edges(array: xr.DataArray, dim: str) -> np.ndarray:
    """Return the edges of bins or pixels along a dimension."""
    if f"{dim}_lower" in array.coords:
        lower, upper = (array[f"{dim}_{end}"].to_numpy() for end in ("lower", "upper"))
        return np.append(lower, upper[-1])
    return axis_of(array, dim).edges


def _is_log(array: xr.DataArray, dim: str) -> bool:
    return dim in array.coords and array[dim].attrs.get("scale") == "log"


def _is_even(edges: np.ndarray) -> bool:
    steps = np.diff(edges)
    return bool(np.allclose(steps, steps.mean(), rtol=0, atol=1e-3 * abs(steps.mean())))


def _label(array: xr.DataArray, dim: str) -> str:
    return label(dim.replace("_", " "), axis_of(array, dim).unit)
