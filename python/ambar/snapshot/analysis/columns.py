"""Names and units of the columns that statistics use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ambar._core import InvalidError
from ambar.snapshot.analysis.batches import is_cells
from ambar.snapshot.field_names import quantity_of, without_component
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows

AUTO = "auto"
"""The default weight: the volume of cells, none for particles."""


def weight_name(rows: FieldRows, weight: str | None) -> str | None:
    """Return the column of a weight, None for no weight.

    "volume" and "mass" are those of cells, also if a field has this name.
    """
    if weight == AUTO:
        weight = "volume" if is_cells(rows) else None
    of_cell = f"cell_{weight}"
    has_other = weight in ("volume", "mass") and weight in rows.fields
    return of_cell if has_other and of_cell in rows.derived_fields else weight


def components(vector: str, ndim: int) -> list[str]:
    """Return the columns of a vector."""
    return [f"{vector}_{axis}" for axis in AXES[:ndim]]


def units_of(
    rows: FieldRows,
    names: Sequence[str],
    units: Mapping[str, str] | str | None,
    fields: Sequence[str],
) -> dict[str, str]:
    """Return the unit of each requested column, "code" by default.

    Keys of `units` are requested names or other names of the same columns; a string is the unit of
    the only one of `fields`.
    """
    if isinstance(units, str):
        if len(fields) != 1:
            raise InvalidError(
                f"expected units={{field: unit}} for {len(fields)} fields, found units={units!r}"
            )
        units = {fields[0]: units}
    if units is not None and not isinstance(units, Mapping):
        raise TypeError(
            f"invalid unit: expected a string such as 'code' or 'km/s', or a mapping of fields to "
            f"units, found {units!r:.80}; give the name or the expression of a unit"
        )
    given = dict(units or {})
    columns = rows._request([*names, *given]).columns
    found = dict.fromkeys(names, "code")
    for key, unit in given.items():
        same = [key] if key in found else [n for n in names if columns[n] == columns[key]]
        if not same:
            raise InvalidError(
                f"invalid key {key!r} of units; expected one of {', '.join(dict.fromkeys(names))}"
            )
        found.update(dict.fromkeys(same, unit))
    return found


def unit_factor(rows: FieldRows, name: str, unit: str) -> float:
    """Return the factor from the values of a column to a unit."""
    return rows._column_units([name]).factor(name, unit)


def unit_label(rows: FieldRows, name: str, unit: str) -> str:
    """Return the unit of values of a column that are converted to a unit."""
    return rows._column_units([name]).label(name, unit)


def is_length(rows: FieldRows, name: str) -> bool:
    """Return whether the values of a column are lengths, also in a run that states no units."""
    unit = rows._column_units([name]).of[name]
    if unit is None:
        column = rows._request([name]).columns[name]
        return quantity_of(without_component(column)) == "length"
    return unit.dimension == (1.0, 0.0, 0.0, 0.0)
