"""Names and units of the columns that statistics use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ambar.snapshot.analysis.batches import is_cells
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows

AUTO = "auto"
"""The default weight: the volume of cells, none for particles."""


def weight_name(rows: FieldRows, weight: str | None) -> str | None:
    """Return the column of a weight, None for no weight."""
    if weight == AUTO:
        return "volume" if is_cells(rows) else None
    return weight


def components(vector: str, ndim: int) -> list[str]:
    """Return the columns of a vector."""
    return [f"{vector}_{axis}" for axis in AXES[:ndim]]


def unit_factor(rows: FieldRows, name: str, unit: str) -> float:
    """Return the factor from the values of a column to a unit."""
    return rows._column_units([name]).factor(name, unit)


def unit_label(rows: FieldRows, name: str, unit: str) -> str:
    """Return the unit of values of a column that are converted to a unit."""
    return rows._column_units([name]).label(name, unit)


def is_length(rows: FieldRows, name: str) -> bool:
    """Return whether the values of a column are lengths."""
    unit = rows._column_units([name]).of[name]
    return unit is not None and unit.dimension == (1.0, 0.0, 0.0, 0.0)
