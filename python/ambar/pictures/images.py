"""Images of arrays with coordinates: right side up, with edges and labels of their axes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ambar.figures.colors import ColorScale
from ambar.figures.labels import unit_text
from ambar.figures.panels import ImagePanel
from ambar.pictures.axes import STEPS, CoordinateAxis

if TYPE_CHECKING:
    import xarray as xr


def numbers_of(array: xr.DataArray) -> np.ndarray:
    """Return values as floats: magnitudes of complex ones, NaN for missing times."""
    values = array.to_numpy()
    if values.dtype.kind == "c":
        return np.asarray(np.abs(values))
    if values.dtype.kind in "mM":
        return np.where(np.isnat(values), np.nan, values.astype("f8"))
    return np.asarray(values, np.float64)


_SHOWN = "_ambar_shown"
"""The attribute of an array with the parts that `at_indices` chose."""


def at_indices(array: xr.DataArray, indices: Mapping[Hashable, int]) -> xr.DataArray:
    """Return an array at indices of some dimensions, which `position_text` names."""
    sizes = {dim: array.sizes[dim] for dim in indices}
    shown = {
        dim: f"{indices[dim] % size + 1:,} of {size:,}" for dim, size in sizes.items() if size > 1
    }
    found = array.isel(indices)
    found.attrs = {**found.attrs, _SHOWN: {**found.attrs.get(_SHOWN, {}), **shown}}
    return found


def at_steps(array: xr.DataArray, most: int) -> xr.DataArray:
    """Return every n-th value along each dimension, so that at most `most` remain.

    `axis_of` numbers positions without a coordinate by the indices in the original array.
    """
    steps = {dim: max(-(-size // most), 1) for dim, size in array.sizes.items()}
    found = array.isel({dim: slice(None, None, step) for dim, step in steps.items()})
    found.attrs = {**found.attrs, STEPS: steps}
    return found


def position_text(array: xr.DataArray) -> str:
    """Return where values are along the dimensions and axes that a picture does not show."""
    shown = dict(array.attrs.get(_SHOWN, {}))
    parts = []
    for name, coordinate in array.coords.items():
        if coordinate.ndim == 0 and coordinate.dtype.kind in "iufM":
            value = coordinate.to_numpy()
            text = str(value)[:16].replace("T", " ") if value.dtype.kind == "M" else f"{value:.6g}"
            unit = unit_text(str(coordinate.attrs.get("units", "")))
            part = f"{name} = {text} {unit}".strip()
            parts.append(f"{part} ({shown.pop(name)})" if name in shown else part)
    parts += [f"{dim} {which}" for dim, which in shown.items()]
    attrs = array.attrs
    if {"axis", "at"} <= attrs.keys():
        unit = unit_text(str(attrs.get("length_unit", "")))
        parts.append(f"{attrs['axis']} = {attrs['at']:.4g} {unit}".strip())
    if isinstance(redshift := attrs.get("redshift"), float):
        parts.append(f"redshift {redshift:.2f}")
    elif isinstance(time := attrs.get("time"), float):
        parts.append(f"time {time:.4g} {unit_text('code')}")
    return ", ".join(parts)


def image_panel(
    x: CoordinateAxis,
    y: CoordinateAxis,
    values: np.ndarray,
    scale: ColorScale,
    text: str,
    title: str,
) -> ImagePanel:
    """Return an image whose axes increase to the right and upwards, depths downwards."""
    x_edges, y_edges = x.edges, y.edges
    if x_edges[0] > x_edges[-1]:
        x_edges, values = x_edges[::-1], values[:, ::-1]
    if (y_edges[0] > y_edges[-1]) != y.is_downward:
        y_edges, values = y_edges[::-1], values[::-1]
    corners = None if x.is_even and y.is_even else np.meshgrid(x_edges, y_edges)
    is_map = x.is_degrees and y.is_degrees
    width, height = abs(x_edges[-1] - x_edges[0]), abs(y_edges[-1] - y_edges[0])
    is_plain = x.label == x.name and y.label == y.name
    is_plain = is_plain and width <= 4 * height and height <= 4 * width
    has_one_unit = bool(x.unit) and x.unit == y.unit and not (x.is_time or y.is_time)
    return ImagePanel(
        title=title,
        values=values,
        extent=(float(x_edges[0]), float(x_edges[-1]), float(y_edges[0]), float(y_edges[-1])),
        corners=None if corners is None else (corners[0], corners[1]),
        scale=scale,
        bar_label=text,
        x_label=x.label or " ",
        y_label=y.label or " ",
        is_equal=is_map or is_plain or (has_one_unit and not y.is_downward),
        are_dates=(x.is_time, y.is_time),
    )
