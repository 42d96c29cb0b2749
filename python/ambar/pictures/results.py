"""Pictures of arrays of xarray that ambar returns: maps, slices, phase diagrams, histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.figures.colors import color_scale
from ambar.figures.labels import label
from ambar.figures.panels import ImagePanel, Line, LinePanel, draw_grid
from ambar.kinds.figures import new_figure
from ambar.pictures.axes import axis_of
from ambar.pictures.images import image_panel, numbers_of, position_text

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def draw(
    array: xr.DataArray,
    ax: Axes | None,
    *,
    log: bool | None,
    limits: tuple[float, float] | None,
    colors: str | None,
) -> Axes:
    """Draw an array of one or two dimensions, and return the axes."""
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
    panel: Any
    if values.ndim == 1:
        is_histogram = f"{array.dims[0]}_lower" in array.coords
        axis = axis_of(array, str(array.dims[0]))
        x = np.repeat(edges[0], 2)[1:-1] if is_histogram else axis.positions
        y = np.repeat(values, 2) if is_histogram else values
        panel = LinePanel(
            lines=[Line(x=x, y=y)],
            is_log=(logs[0], bool(log)),
            limits=limits,
            x_label=" " if axis.is_time else labels[0],
            y_label=text,
            title=position_text(array),
            are_dates=(axis.is_time, False),
        )
    elif not any(f"{dim}_lower" in array.coords for dim in array.dims):
        unit = str(array.attrs.get("units", ""))
        scale = color_scale(values, log=log, limits=limits, colors=colors, unit=unit)
        vertical, horizontal = (axis_of(array, str(dim)) for dim in array.dims)
        panel = image_panel(horizontal, vertical, values, scale, text, position_text(array))
    else:
        shown = np.where(values > 0, values, np.nan) if (values >= 0).all() else values
        scale = color_scale(shown, log=log, limits=limits, colors=colors)
        y, x = edges
        is_even = not any(logs) and all(_is_even(one) for one in edges)
        x_corners, y_corners = np.meshgrid(x, y)
        panel = ImagePanel(
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
    figure = draw_grid([[panel]], on=new_figure() if ax is None else ax)
    return figure.axes[0] if ax is None else ax


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
    unit = str(array[dim].attrs.get("units", "")) if dim in array.coords else ""
    return label(dim.replace("_", " "), unit)
