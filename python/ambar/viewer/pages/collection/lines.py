"""Profiles and time series of the selected datasets of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, DataRange1d, HoverTool
from bokeh.palettes import Category20
from bokeh.plotting import figure

from ambar.collection.collection import Collection
from ambar.collection.read.metadata import common_attributes
from ambar.collection.storage.family import Family
from ambar.figures.panels import bin_extremes
from ambar.pictures.axes import is_downward
from ambar.viewer.background import Background
from ambar.viewer.layout import set_title, style
from ambar.viewer.message import Message
from ambar.viewer.sampling import as_floats

MAX_LINES = 200
"""Lines that are drawn of the selected datasets."""
_MAX_POINTS = 2000
"""Points of a line; a longer one has the smallest and the largest value of each part."""
_MAX_READ = 1 << 22
"""Values of a line that are read; a longer one is read with a step."""
_INDEX = "index"
_UP = ("height", "altitude", "z")
"""Names of vertical coordinates that increase upwards."""


@dataclass(frozen=True)
class Coordinate:
    """A variable against which another one is drawn."""

    name: str
    is_vertical: bool
    is_down: bool
    """Whether it increases downwards, as a depth and a pressure do."""


class DatasetLines:
    """The variable of the selected datasets as lines.

    Parameters
    ----------
    collection : Collection
        The collection.
    message : Message
        Where errors are shown.
    """

    def __init__(self, collection: Collection, message: Message) -> None:
        self._collection, self._message = collection, message
        self._background = Background(self._show, message.fail, message.wait)
        self._chosen = np.empty(0, np.int64)
        self._coordinates: dict[str, Coordinate] = {}
        self._source = ColumnDataSource({"x": [], "y": [], "name": [], "color": []})
        names = drawable_names(collection)
        self.variable = pn.widgets.Select(
            label="Variable", options=names, sizing_mode="stretch_width"
        )
        self.against = pn.widgets.Select(label="Against", sizing_mode="stretch_width")
        self.controls = pn.Column(
            self.variable, self.against, margin=0, sizing_mode="stretch_width"
        )
        self.main = pn.Column(sizing_mode="stretch_both", margin=0)
        self.variable.param.watch(lambda _: self._choose_variable(), "value")
        self.against.param.watch(lambda _: self._start(), "value")
        if names:
            self._choose_variable()

    def choose(self, chosen: np.ndarray) -> None:
        """Draw the datasets at some positions."""
        self._chosen = chosen
        self._read()

    def _choose_variable(self) -> None:
        options = coordinates(self._collection, self.variable.value)
        self._coordinates = {option.name: option for option in options}
        names = list(self._coordinates)
        before = self.against.value
        self.against.param.update(options=names, value=names[0])
        if self.against.value == before:  # otherwise its watcher starts
            self._start()

    def _start(self) -> None:
        """Draw an empty figure for the variable and its coordinate, and read the lines."""
        coordinate = self._coordinates.get(self.against.value)
        if coordinate is None:  # the options change
            return
        variable, against = (
            title_of(self._collection, name) for name in (self.variable.value, coordinate.name)
        )
        labels = (variable, against) if coordinate.is_vertical else (against, variable)
        is_time = is_time_of(self._collection, coordinate.name)
        self.figure = figure(
            tools="pan,wheel_zoom,box_zoom,reset,save",
            active_scroll="wheel_zoom",
            toolbar_location="above",
            sizing_mode="stretch_both",
            x_axis_label=labels[0],
            y_axis_label=labels[1],
            x_axis_type="datetime" if is_time and not coordinate.is_vertical else "auto",
            y_axis_type="datetime" if is_time and coordinate.is_vertical else "auto",
            x_range=DataRange1d(default_span=1.0),
            y_range=DataRange1d(flipped=coordinate.is_down, default_span=1.0),
        )
        drawn = self.figure.multi_line(
            "x", "y", source=self._source, line_color="color", line_width=1.5, line_alpha=0.85,
            hover_line_width=3, hover_line_color="color", hover_line_alpha=1,
        )  # fmt: skip
        self.figure.add_tools(
            HoverTool(
                tooltips=[("", "@name"), (labels[0], "$x"), (labels[1], "$y")],
                renderers=[drawn],
                limit=3,
            )
        )
        self._source.data = {"x": [], "y": [], "name": [], "color": []}
        self.main[:] = [pn.pane.Bokeh(style(self.figure))]
        self._read()

    def _read(self) -> None:
        if not self._coordinates:  # no variable can be drawn
            return
        chosen, variable = self._chosen[:MAX_LINES], self.variable.value
        coordinate = self._coordinates[self.against.value]
        count, drawn = len(self._chosen), len(chosen)
        set_title(
            self.figure,
            "Select datasets in the table or with a box on the map"
            if not count
            else f"{variable} of {count:,} datasets"
            if count == drawn
            else f"{variable} of the first {drawn:,} of {count:,} selected datasets",
        )
        self._background.submit(lambda: read_lines(self._collection, variable, coordinate, chosen))

    def _show(self, columns: Mapping[str, list[Any]]) -> None:
        self._message.clear()
        self._source.data = dict(columns)


def read_lines(
    collection: Collection, variable: str, coordinate: Coordinate, positions: np.ndarray
) -> Iterator[dict[str, list[Any]]]:
    """Yield the columns of a multi-line glyph, with more lines each time.

    Datasets without the variable have no line. An error is raised after the lines of all other
    datasets.
    """
    columns: dict[str, list[Any]] = {"x": [], "y": [], "name": [], "color": []}
    failure: Exception | None = None
    yield columns
    for number, name in enumerate(collection._catalogue.names_at(positions)):
        try:
            line = read_line(collection, name, variable, coordinate.name)
        except Exception as error:
            failure = failure or error
            continue
        if line is None:
            continue
        along, values = line
        x, y = (values, along) if coordinate.is_vertical else (along, values)
        for key, value in (("x", x), ("y", y), ("name", name), ("color", _color(number))):
            columns[key] = [*columns[key], value]
        yield dict(columns)
    if failure is not None:
        raise failure


def _color(number: int) -> str:
    # Ten saturated colours first, then ten light ones.
    colors: str = Category20[20][number * 2 % 20 + number // 10 % 2]
    return colors


def read_line(
    collection: Collection, name: str, variable: str, against: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the coordinate and the values of a dataset; None if it lacks the variable.

    Of a variable with several dimensions the line is along the last one, at the first index of
    the others.
    """
    dataset = collection[name]
    if variable not in dataset.variables:
        return None
    array = dataset[variable]
    dim = array.dims[-1]
    step = max(-(-array.sizes[dim] // _MAX_READ), 1)

    def along(found: Any) -> np.ndarray:
        part = found.isel({d: slice(None, None, step) if d == dim else 0 for d in found.dims})
        return as_floats(part.values)

    values = along(array)
    has_coordinate = against in dataset.variables and dim in dataset[against].dims
    positions = along(dataset[against]) if has_coordinate else np.arange(len(values)) * step
    if len(values) > _MAX_POINTS:
        places, values = bin_extremes(values, -(-len(values) // (_MAX_POINTS // 2)))
        positions = positions[places]
    return positions, values


def drawable_names(collection: Collection) -> list[str]:
    """Return the variables that can be lines.

    Single values along the last dimension, vertical coordinates and other coordinates are last.
    """
    ranks: dict[str, int] = {}
    for family in collection._families:
        for name, column in family.columns.items():
            if column.dims and _is_number(family, name):
                is_single = family.sizes.get(column.dims[-1]) == 1
                is_coordinate = column.coordinate or _coordinate(family, name).is_vertical
                ranks[name] = max(ranks.get(name, 0), is_coordinate + 2 * is_single)
    return sorted(ranks, key=ranks.__getitem__)


def coordinates(collection: Collection, variable: str) -> list[Coordinate]:
    """Return what a variable can be drawn against: the most likely one first.

    These are the coordinate of its last dimension, a vertical coordinate or a time, the index, and
    then all other variables along this dimension.
    """
    likely: dict[str, Coordinate] = {}
    others: dict[str, Coordinate] = {}
    for family in collection._families:
        if variable not in family.columns:
            continue
        dim = family.columns[variable].dims[-1]
        names = [
            name
            for name, column in family.columns.items()
            if name != variable and dim in column.dims and _is_number(family, name, times=True)
        ]
        for name in sorted(names, key=lambda name: (name != dim, len(name))):
            found = _coordinate(family, name)
            is_time = family.columns[name].times is not None
            is_likely = name == dim or found.is_vertical or is_time
            (likely if is_likely else others).setdefault(name, found)
    by_index = Coordinate(_INDEX, is_vertical=False, is_down=False)
    return [*likely.values(), by_index, *others.values()]


def _coordinate(family: Family, name: str) -> Coordinate:
    attributes = common_attributes(family, name)
    positive = str(attributes.get("positive", "")).lower()
    is_named = is_downward(name, {}) or name.lower() in _UP
    is_vertical = is_named or positive in ("up", "down") or attributes.get("axis") == "Z"
    return Coordinate(name, is_vertical, is_vertical and is_downward(name, attributes))


def _is_number(family: Family, name: str, *, times: bool = False) -> bool:
    column = family.columns[name]
    try:
        kind = np.dtype(column.type_name).kind
    except TypeError:
        return False
    return kind in "biuf" and (times or column.times is None)


def title_of(collection: Collection, name: str) -> str:
    """Return the name of a variable with its unit."""
    for family in collection._families:
        if name in family.columns and family.columns[name].times is None:
            unit = common_attributes(family, name).get("units")
            return f"{name} ({unit})" if isinstance(unit, str) and unit.strip() else name
    return name


def is_time_of(collection: Collection, name: str) -> bool:
    """Whether a variable has times."""
    families = [family for family in collection._families if name in family.columns]
    return bool(families) and families[0].columns[name].times is not None
