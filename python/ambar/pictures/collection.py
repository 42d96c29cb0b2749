"""Pictures of collections: positions of datasets on a map, and profiles or series of some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar._util.text import plural, suggestion
from ambar.figures.colors import SEQUENTIAL, ColorScale, color_scale
from ambar.figures.files import save_figure
from ambar.figures.labels import label
from ambar.figures.panels import Line, LinePanel, Panel, PointPanel, draw_grid, envelope
from ambar.pictures.axes import axis_of, is_downward
from ambar.pictures.images import at_indices, image_panel, numbers_of, position_text
from ambar.pictures.options import CollectionPlot
from ambar.pictures.positions import POSITIONS, coordinate_of, position_names

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ambar.collection.collection import Collection

_VERTICAL = ("depth", "pres", "pressure", "z", "altitude", "height")
_COORDINATES = {*_VERTICAL, "time", *POSITIONS}
_USUAL = ("temp", "salinity", "psal", "oxygen", "doxy", "chla")
"""The beginnings of names of variables that are drawn rather than others."""
_MAX_LINES = 40
"""Datasets whose values are drawn."""
_MAX_GROUPS = 3
"""Maximum number of panels for datasets with different axes."""


def draw(
    collection: Collection, request: CollectionPlot, on: Figure | Axes | None = None
) -> Figure:
    """Draw a collection on a figure, by default a new one, or on axes.

    Raises
    ------
    KeyError
        If no dataset has a variable.
    ValueError
        If no dataset is selected, or has values to draw.
    """
    names = collection.choose(request.where)
    if not names:
        condition = f" under the condition {request.where!r}" if request.where else ""
        raise _core.InvalidError(
            f"{collection.location}: expected datasets to draw, found none{condition}"
        )
    variables = request.fields or _default_variables(collection)
    for name in variables:
        if name not in collection.variables:
            raise _core.NotFoundError(
                f"{collection.location}: no variable {name!r}; "
                f"{suggestion(name, collection.variables)}"
            )
    panels: list[Panel] = []
    grids = [_grid_panel(collection, names, name, request) for name in variables]
    positions = None if any(grids) else _positions(collection, names)
    if positions is not None:
        panels.append(_map_panel(collection, names, positions, variables, request))
    title = plural(len(names), "dataset")
    for name, grid in zip(variables, grids, strict=True):
        found = [grid] if grid else _lines_panels(collection, names, name, request)
        panels += found[:_MAX_GROUPS]
        if len(found) > _MAX_GROUPS:
            title += f", {name} along {_MAX_GROUPS} of {len(found)} different axes"
    if not panels:
        raise _core.InvalidError(
            f"{collection.location}: expected positions of datasets, or numbers along a dimension "
            "to draw, found none; choose a variable"
        )
    if not request.title:
        panels = [replace(panel, title="") for panel in panels]
    return draw_grid([panels], title if request.title else "", on)


def write_picture(collection: Collection, request: CollectionPlot) -> Path:
    """Write a picture of a collection, and return its path."""
    for module in ("matplotlib", "xarray"):
        require(module, purpose="ambar plot", install="ambar[plot]")
    if request.movie is not None or request.against is not None:
        option = "--movie" if request.movie is not None else "--against"
        raise _core.InvalidError(
            f"{request.path}: {option} does not apply to the kind 'collection'; leave it out"
        )
    figure = draw(collection, request)
    return save_figure(figure, request.target_of(*request.fields), request.dpi)


def _default_variables(collection: Collection) -> tuple[str, ...]:
    """Return the variable to draw: numbers along a dimension, if possible with depths or times.

    Of grids, whose dimensions have coordinates, it is a variable of the most dimensions.
    """
    found: dict[str, int] = {}
    along = {
        dim
        for name, layouts in collection.schema.items()
        if name.lower() in (*_VERTICAL, "time", "juld")
        for dim in layouts[0].dims
    }
    coordinates = {
        name for name, layouts in collection.schema.items() if layouts[0].dims == (name,)
    }
    for name, layouts in collection.schema.items():
        layout = layouts[0]
        lengths = [length for length in layout.shape if length != 1]
        is_number = layout.dtype.startswith(("float", "int", "uint"))
        if not is_number or not lengths or name in layout.dims or name.lower() in _COORDINATES:
            continue
        is_usual = any(name.lower().startswith(usual) for usual in _USUAL)
        axes = [
            dim
            for dim, length in zip(layout.dims, layout.shape, strict=True)
            if length != 1 and dim in coordinates
        ]
        form = 1 + len(axes) if len(axes) > 1 else 2 * (len(lengths) == 1)
        found[name] = 4 * is_usual + form + bool(along & {*layout.dims})
    return (max(found, key=found.__getitem__),) if found else ()


@dataclass(frozen=True)
class _Positions:
    """The horizontal and the vertical coordinate of datasets."""

    x: np.ndarray
    y: np.ndarray
    is_sphere: bool
    """Whether they are longitudes and latitudes."""


def _positions(collection: Collection, names: list[str]) -> _Positions | None:
    """Return the positions of datasets; None if they have none."""
    found = position_names(collection)
    if found is None:
        return None
    index = {name: number for number, name in enumerate(collection.names)}
    rows = [index[name] for name in names]
    x, y = (coordinate_of(collection, name)[rows] for name in (found.x, found.y))
    if not (np.isfinite(x) & np.isfinite(y)).any():
        return None
    return _Positions(x, y, is_sphere=found.is_sphere)


def _map_panel(
    collection: Collection,
    names: list[str],
    positions: _Positions,
    variables: tuple[str, ...],
    request: CollectionPlot,
) -> Panel:
    """Return the positions, coloured by the largest value of the first variable."""
    x, y, is_sphere = positions.x, positions.y, positions.is_sphere
    panel = PointPanel(
        x=x,
        y=y,
        size=float(np.clip(6000 / len(names), 4, 30)),
        is_equal=True,
        stretch=float(1 / np.cos(np.radians(np.nanmean(y)))) if is_sphere else 1.0,
        x_label="longitude [degrees]" if is_sphere else "x",
        y_label="latitude [degrees]" if is_sphere else "y",
        y_range=(-90.0, 90.0) if is_sphere else (-np.inf, np.inf),
    )
    if not variables:
        return panel
    table = collection.stats(variables[0])
    if "max" not in table or table["max"].dtype.kind not in "iuf":
        return panel
    largest = dict(zip(table["dataset"].tolist(), table["max"].tolist(), strict=True))
    values = np.array([largest.get(name, np.nan) for name in names], np.float64)
    unit = _attribute(collection, variables[0], "units")
    scale = color_scale(
        values, log=request.log, limits=request.limits, colors=request.colors, unit=unit
    )
    text = label(f"maximum of {variables[0]}", unit)
    return replace(panel, values=values, scale=scale, bar_label=text)


def _grid_panel(
    collection: Collection, names: list[str], variable: str, request: CollectionPlot
) -> Panel | None:
    """Return an image of the first dataset if a variable has two coordinates there, else None.

    Along other dimensions, such as the time, it shows the first part with finite values.

    Raises ValueError if all values are missing, or the variable is empty.
    """
    having = set(collection.stats(variable)["dataset"].tolist())
    name = next((name for name in names if name in having), None)
    if name is None:
        return None
    values = collection[name][variable]
    grid = [dim for dim in values.dims if dim in values.coords and values.sizes[dim] > 1][-2:]
    if len(grid) < 2 or values.dtype.kind not in "iuf":
        return None
    hidden = [dim for dim in values.dims if dim not in grid]
    for indices in np.ndindex(*(values.sizes[dim] for dim in hidden)):
        shown = at_indices(values, dict(zip(hidden, indices, strict=True)))
        numbers = numbers_of(shown)
        if np.isfinite(numbers).any():
            break
    else:
        raise _without_values(collection, name, values)
    unit = str(values.attrs.get("units", ""))
    scale = color_scale(
        numbers, log=request.log, limits=request.limits, colors=request.colors, unit=unit
    )
    y, x = (axis_of(shown, str(dim)) for dim in grid)
    which = f"{name} (1 of {len(names):,})" if len(names) > 1 else name
    title = ", ".join(filter(None, [which, position_text(shown)]))
    return image_panel(x, y, numbers, scale, label(variable.replace("_", " "), unit), title)


def _without_values(
    collection: Collection, dataset: str, values: xr.DataArray
) -> _core.InvalidError:
    """Return the error for a variable of a dataset that is empty, or whose values are missing."""
    empty = [dim for dim, length in values.sizes.items() if not length]
    found = f"the length 0 of its dimension {empty[0]!r}" if empty else "only missing ones"
    return _core.InvalidError(
        f"{collection.location}: expected values of {values.name!r} to draw, found {found} in the "
        f"dataset {dataset!r}; choose another dataset or variable"
    )


def _attribute(collection: Collection, variable: str, name: str) -> str:
    """Return an attribute of a variable of the first dataset that has the variable."""
    first = collection.stats(variable)["dataset"][0]
    return str(collection[str(first)][variable].attrs.get(name, ""))


@dataclass(frozen=True)
class _LinesAxis:
    """The axis along which lines are drawn."""

    text: str
    is_downward: bool
    is_time: bool


def _lines_panels(
    collection: Collection, names: list[str], variable: str, request: CollectionPlot
) -> list[Panel]:
    """Return the values of a variable in some datasets, over their vertical coordinate or time.

    Datasets whose axes differ, such as dates and numbers of days, are in different panels, first
    those of the most datasets. Datasets without values have no line.

    Raises ValueError if no dataset has values along one dimension.
    """
    having = set(collection.stats(variable)["dataset"].tolist())
    chosen = [name for name in names if name in having]
    some = [chosen[int(n)] for n in np.linspace(0, len(chosen) - 1, min(len(chosen), _MAX_LINES))]
    groups: dict[_LinesAxis, list[Line]] = {}
    error = _core.InvalidError(
        f"{collection.location}: expected a variable with one dimension in a dataset, found none "
        f"in {variable!r}; choose another variable"
    )
    text = variable
    colors = _line_colors(len(some))
    for number, name in enumerate(some):
        dataset = collection[name]
        values = dataset[variable]
        if not values.size:
            error = _without_values(collection, name, values)
            continue
        for dim in values.dims[1:] if values.ndim > 1 and 1 not in values.shape[:1] else ():
            values = values.isel({dim: 0})
        values = values.squeeze(drop=True)
        if values.ndim != 1:
            continue
        positions, axis = _along(dataset, values, str(values.dims[0]))
        text = label(variable.replace("_", " "), str(values.attrs.get("units", "")))
        places, shown = envelope(np.asarray(values.to_numpy(), np.float64))
        x, y = (shown, positions[places]) if axis.is_downward else (positions[places], shown)
        style = {"color": colors[number], "alpha": 0.8, "linewidth": 0.9}
        named = "" if len(some) > 8 else name
        groups.setdefault(axis, []).append(Line(x=x, y=y, label=named, style=style))
    if not groups:
        raise error
    return [
        LinePanel(
            lines=lines,
            title=f"{len(lines)} of {len(names):,}" if len(lines) < len(names) else "",
            x_label=text if axis.is_downward else axis.text or " ",
            y_label=axis.text if axis.is_downward else text,
            is_downward=axis.is_downward,
            is_log=(bool(request.log), False) if axis.is_downward else (False, bool(request.log)),
            are_dates=(axis.is_time and not axis.is_downward, False),
        )
        for axis, lines in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _along(dataset: xr.Dataset, values: xr.DataArray, dim: str) -> tuple[np.ndarray, _LinesAxis]:
    """Return positions of values, and their axis.

    That is the coordinate of the dimension, or a variable of depths along it.
    """
    for name, variable in dataset.variables.items():
        if str(name).lower() in _VERTICAL and dim in variable.dims and name != values.name:
            found = dataset[name].squeeze(drop=True)
            if found.dims == (dim,) and found.dtype.kind in "iuf":
                text = label(str(name), str(found.attrs.get("units", "")))
                is_down = is_downward(str(name), found.attrs)
                return np.asarray(found.to_numpy(), np.float64), _LinesAxis(text, is_down, False)
    axis = axis_of(values, dim)
    return axis.positions, _LinesAxis(axis.label, axis.is_downward, axis.is_time)


def _line_colors(count: int) -> list[tuple[float, ...]]:
    """Return a colour for each of some lines, without the brightest ones."""
    from matplotlib import colormaps

    scale = ColorScale("linear", 0.0, float(max(count, 2) - 1), SEQUENTIAL)
    places = 0.85 * scale.fractions(np.arange(max(count, 2)))
    return [tuple(map(float, color)) for color in colormaps["viridis"](places)]
