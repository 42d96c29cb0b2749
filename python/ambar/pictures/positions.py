"""Positions of the datasets of a collection on a map, from attributes or variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from ambar.collection.collection import Collection

_SPHERE = (("longitude", "lon", "long"), ("latitude", "lat"))
_PLANE = (("x", "easting"), ("y", "northing"))
POSITIONS = {name for pair in (_SPHERE, _PLANE) for names in pair for name in names}
"""Names of coordinates in lower case."""


@dataclass(frozen=True)
class PositionNames:
    """The attributes or variables with the horizontal and the vertical coordinate of datasets."""

    x: str
    y: str
    is_sphere: bool
    """Whether they are longitudes and latitudes."""


def position_names(collection: Collection) -> PositionNames | None:
    """Return the names of the coordinates of datasets; None if they have none.

    The coordinates of grids, along dimensions of their names, are not those of datasets.
    """
    variables = [
        name
        for name, layouts in collection.schema.items()
        if any(layout.dims != (name,) or layout.shape == (1,) for layout in layouts)
    ]
    names = {name.lower(): name for name in [*variables, *collection.attrs]}
    for pair in (_SPHERE, _PLANE):
        x, y = (next((names[name] for name in known if name in names), None) for known in pair)
        if x is not None and y is not None:
            return PositionNames(x, y, is_sphere=pair is _SPHERE)
    return None


def coordinate_of(collection: Collection, name: str) -> np.ndarray:
    """Return a coordinate of every dataset, in the order of names; NaN where it has none.

    Of many values, such as those of a track, it is the middle of their range. No values are read:
    the metadata have the smallest and the largest one.

    Raises
    ------
    ValueError
        If `name` is a variable of strings or times.
    """
    if name in list(collection.attrs):
        values = collection.attrs[name].tolist()
        return np.array([v if isinstance(v, int | float) else np.nan for v in values], np.float64)
    having, columns = collection._metadata.statistics(name)
    if "min" not in columns:
        raise _core.InvalidError(f"{collection.location}: {name} is not a variable of numbers")
    middle = (columns["min"].astype("f8") + columns["max"].astype("f8")) / 2
    return np.where(having & (columns["count"] > columns["nulls"]), middle, np.nan)
