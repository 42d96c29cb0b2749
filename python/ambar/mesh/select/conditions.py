"""The points or cells of a data set for which a condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar import _core
from ambar._util.text import suggestion
from ambar.mesh.select.region_cells import Points
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.references import Description, in_memory

_Column = tuple[dict[str, Any], int | None]
"""The description of an array, and a component of it; None for the only one."""


def parse_condition(text: str) -> _core.Condition:
    """Return a condition; raises ValueError if it is invalid, or has units."""
    condition = _core.Condition(text)
    if condition.units:
        raise _core.InvalidError(
            f"invalid condition {text!r}: expected numbers without units, found "
            f"{condition.units[0]!r}; the units of meshes are not known"
        )
    return condition


def evaluate_condition(
    condition: _core.Condition, described: Description, reader: ArrayReader
) -> dict[str, np.ndarray]:
    """Return where a condition holds: {"points": bools} or {"cells": bools}.

    Raises
    ------
    KeyError
        If an array does not exist.
    ValueError
        If the condition names arrays on points and arrays on cells, or an array of several
        components.
    """
    on_points, on_cells = (
        {entry["name"]: entry for entry in described.get(key) or ()}
        for key in ("point_data", "cell_data")
    )
    known = {**on_points, **on_cells}
    # The coordinates are the components of an array without a name.
    names = {axis: f".{axis}" for axis in "xyz" if axis not in known}
    if names.keys() & set(condition.fields):
        on_points[""] = in_memory(Points(described, reader).read_all(), {"name": ""})
    for association, arrays in (("points", on_points), ("cells", on_cells)):
        columns = [_column(names.get(name, name), arrays) for name in condition.fields]
        if None not in columns:
            values = [_values(column, reader) for column in columns if column]
            pairs = zip(condition.fields, values, strict=True)
            return {association: condition.evaluate(dict(pairs))}
    for name in condition.fields:
        if name not in names and _column(name, known) is None:
            raise _core.NotFoundError(
                f"{reader.where}: no array {name!r} on points or cells; "
                f"{suggestion(name, map(str, known))}"
            )
    raise _core.InvalidError(
        f"{reader.where}: expected a condition on points or on cells, found arrays on both "
        f"in {', '.join(condition.fields)}; x, y and z are coordinates of points"
    )


def _column(name: str, arrays: dict[str, dict[str, Any]]) -> _Column | None:
    """Return the array that a name in a condition refers to; None if it does not exist."""
    if name in arrays:
        return arrays[name], None
    base, _, component = name.rpartition(".")
    is_component = base in arrays and component in ("x", "y", "z")
    return (arrays[base], "xyz".index(component)) if is_component else None


def _values(column: _Column, reader: ArrayReader) -> np.ndarray:
    entry, component = column
    where = f"array {entry['name']!r}"
    values = reader.get(entry, where, ndim=(1, 2, 3, 4))
    values = values.reshape(-1, *values.shape[3:]) if values.ndim > 2 else values
    if values.ndim == 1 and component is None:
        return values
    if values.ndim == 1 or component is None or component >= values.shape[1]:
        raise _core.InvalidError(
            f"{reader.where}: {where} in a condition: expected one of its components, such as "
            f"{entry['name']}.x, found {values.shape[1:] or 'no'} components"
        )
    return values[:, component]
