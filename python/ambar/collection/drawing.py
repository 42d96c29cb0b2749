"""Figure of a collection: the value range of a variable in each dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar.collection.collection import Collection
from ambar.collection.storage.statistics import has_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMES = 40
"""Datasets whose names fit on the axis."""


def first_variable(collection: Collection) -> str:
    """Return the first variable of real numbers that is not a coordinate.

    Raises KeyError if the collection has no such variable.
    """
    for family in collection._families:
        for name, column in family.columns.items():
            if not column.coordinate and has_range(column.type_name):
                return name
    raise _core.NotFoundError(f"{collection.location} has no numeric variable to draw")


def draw_ranges(collection: Collection, variable: str, *, title: bool = True) -> Figure:
    """Draw the smallest and the largest value in each dataset, from the stored statistics.

    Up to 40 datasets are named on the axis, otherwise numbered.

    Raises KeyError if no dataset has the variable, ValueError if it is not numeric.
    """
    from matplotlib.figure import Figure

    table = collection.stats(variable)
    if "min" not in table:
        raise _core.InvalidError(f"{collection.location}: {variable} is not numeric")
    position = {name: at for at, name in enumerate(collection.names)}
    at = [position[name] for name in table["dataset"].tolist()]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    ranges = (table[key] for key in ("min", "max"))
    low, high = (ends.astype(np.float64) if ends.dtype == object else ends for ends in ranges)
    axes.vlines(at, low, high, linewidth=max(0.5, min(6.0, 400 / len(collection))))
    if len(position) <= _MOST_NAMES:
        axes.set_xticks(range(len(position)), list(position), rotation=90, fontsize=8)
    else:
        axes.set_xlabel("dataset, in the order of ambar ls")
    columns = (family.columns.get(variable) for family in collection._families)
    units = {
        str(column.attributes["units"])
        for column in columns
        if column and "units" in column.attributes
    }
    axes.set_ylabel(f"{variable} [{units.pop()}]" if len(units) == 1 else variable)
    if title:
        axes.set_title(f"{len(at):,} datasets: smallest to largest value", loc="left", fontsize=10)
    return figure
