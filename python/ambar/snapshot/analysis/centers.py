"""Centers of distances and regions: numbers, extrema, the center of mass, sinks and clumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar._core import InvalidError, NotFoundError
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.statistics import center_of_mass, extremum
from ambar.snapshot.regions import AXES, Box, Centered, center_in_code, length_of_unit

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows
    from ambar.snapshot.regions import Center
    from ambar.snapshot.run_info import RunInfo

Axis: TypeAlias = str | Sequence[float] | npt.NDArray[np.floating]

_ROWS = {"sink": ("sinks", "{}"), "clump": ("clumps", "peak_{}")}


def view_about(
    rows: FieldRows,
    center: Center | None,
    unit: str,
    selection: Selection,
    *,
    axis: Axis | None = None,
    velocity: np.ndarray | None = None,
) -> FieldRows:
    """Return rows with a frame; without a center that of `about`, of the region, or of the box."""
    own = rows._parameters
    place: Any = own.center
    if center is not None:
        place = find_center(rows, center, unit, selection)
    elif place is None:
        place = center_of_region(selection, rows.info)
    return rows.about(
        place,
        axis=own.axis if axis is None else axis,  # type: ignore[arg-type]
        velocity=own.velocity if velocity is None else velocity,  # type: ignore[arg-type]
        unit="code",
    )


def find_center(rows: FieldRows, center: Center, unit: str, selection: Selection) -> np.ndarray:
    """Return a center in code length."""
    info = rows.info
    if not isinstance(center, str):
        return np.array(center_in_code(center, info, unit))
    kind, _, name = center.partition(":")
    if kind in ("max", "min") and name:
        return np.array(extremum(rows, name, selection, is_max=kind == "max").position)
    if center == "com":
        return center_of_mass(rows, "mass", center_of_region(selection, info), selection)
    if kind in _ROWS and name:
        return _position_of(rows, kind, name)
    if center in ("bc", "boxcenter"):
        return np.array(center_in_code(center, info, unit))
    raise InvalidError(
        f"invalid center {center!r}; expected numbers, 'bc', 'max:FIELD', 'min:FIELD', 'com', "
        "'sink:ID' or 'clump:ID'"
    )


def _position_of(rows: FieldRows, kind: str, number: str) -> np.ndarray:
    """Return the position of a sink or clump by its number."""
    component, pattern = _ROWS[kind]
    if not number.isdecimal():
        raise InvalidError(f"invalid number of a {kind}: {number!r}; expected '{kind}:1'")
    table = None
    if component in rows._source.components:
        table = rows._source.table(component)
    if table is None:
        why = rows._source.missing.get(component, "they are not loaded")
        raise NotFoundError(f"{rows._source.location}: no {component}: {why}")
    names = [pattern.format(axis) for axis in AXES[: rows.info.ndim]]
    columns = table.read(["id", *names])
    found = np.flatnonzero(columns["id"] == int(number))
    if not found.size:
        known = ", ".join(map(str, np.sort(columns["id"])[:10].astype(int))) or "none"
        raise NotFoundError(f"{rows._source.location}: no {kind} {number}; available: {known}")
    return np.array([float(columns[name][found[0]]) for name in names])


def center_of_region(selection: Selection, info: RunInfo) -> np.ndarray:
    """Return the center of a region; that of the box where the region has none."""
    region = selection.region
    lower, size = np.array(info.lower), np.array(info.box_size)
    if isinstance(region, Box):
        low, high = map(np.array, region.corners(info))
        low = np.where(np.isfinite(low), low, lower)
        high = np.where(np.isfinite(high), high, lower + size)
        return np.asarray((low + high) / 2)
    if isinstance(region, Centered):
        return np.array(center_in_code(region.center, info, region.unit))
    return lower + size / 2


def in_unit(place: np.ndarray, info: RunInfo, unit: str) -> np.ndarray:
    """Return a position in code length in the unit of regions: "box", "code", "kpc", ..."""
    origin = np.array(info.lower) if unit == "box" else 0.0
    return np.asarray((place - origin) / length_of_unit(info, unit))
