"""Centers of distances and regions: numbers, extrema, the center of mass, sinks and clumps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar._core import InvalidError, NotFoundError
from ambar.snapshot.analysis.batches import Selection, is_cells
from ambar.snapshot.analysis.statistics import center_of_mass, extremum
from ambar.snapshot.regions import AXES, Box, Centered, center_in_code, length_of_unit

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows
    from ambar.snapshot.regions import Center, Direction, Region
    from ambar.snapshot.run_info import RunInfo

_ROWS = {"sink": ("sinks", "{}"), "clump": ("clumps", "peak_{}")}


def view_about(
    rows: FieldRows,
    center: Center | None,
    unit: str,
    selection: Selection,
    *,
    axis: Direction | None = None,
    velocity: np.ndarray | None = None,
) -> FieldRows:
    """Return rows with a frame; without a center that of `about`, or the middle of the box."""
    own = rows._parameters
    place: Any = "bc" if own.center is None else own.center
    if center is not None:
        place = find_center(rows, center, unit, selection)
    return rows.about(
        place,
        axis=own.axis if axis is None else axis,
        velocity=own.velocity if velocity is None else velocity.tolist(),
        unit="code",
    )


def find_center(rows: FieldRows, center: Center, unit: str, selection: Selection) -> np.ndarray:
    """Return a center in code length."""
    info = rows.info
    if not isinstance(center, str):
        return np.array(center_in_code(center, info, unit))
    kind, _, name = center.partition(":")
    if kind in ("max", "min") and name:
        owner, selection = _owner_of(rows, name, selection)
        peak = extremum(owner, name, selection, is_max=kind == "max")
        if math.isnan(peak.value):
            raise InvalidError(
                f"{owner._title}: expected numbers as {name!r} for the center {center!r}, found "
                f"NaN at {peak.position}; exclude it with where='{name} == {name}', or give the "
                "center as numbers"
            )
        return np.array(peak.position)
    if center == "com":
        found = center_of_mass(rows, "mass", near_selection(selection, info), selection)
        if np.isnan(found).any():
            raise InvalidError(
                f"{rows._title}: no mass in the selection, which has no center of mass; choose "
                "another region, levels or condition"
            )
        return found
    if center == "region":
        place = center_of_region(selection.region, info)
        if place is None:
            raise InvalidError(
                "expected a region with a center for center='region', such as a Box or Sphere, "
                f"found {selection.region!r:.80}; state the center as numbers"
            )
        return place
    if kind in _ROWS and name:
        return _position_of(rows, kind, name)
    if center in ("bc", "boxcenter"):
        return np.array(center_in_code(center, info, unit))
    raise InvalidError(
        f"invalid center {center!r}; expected numbers, 'bc', 'max:FIELD', 'min:FIELD', 'com', "
        "'region', 'sink:ID' or 'clump:ID'"
    )


def _owner_of(rows: FieldRows, name: str, selection: Selection) -> tuple[FieldRows, Selection]:
    """Return the rows of a field: the cells of the snapshot if particles lack it."""
    try:
        rows._request([name])
    except NotFoundError as error:
        cells = None if is_cells(rows) else rows._cells
        if cells is not None:
            return cells, Selection(selection.region, threads=selection.threads)
        if is_cells(rows):
            raise
        raise NotFoundError(
            f"{error}; the snapshot has no cells for this center, either: give numbers, 'com', or "
            "a field of the particles"
        ) from None
    return rows, selection


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


def near_selection(selection: Selection, info: RunInfo) -> np.ndarray:
    """Return the center of a region, or the middle of the box, for the nearest periodic images."""
    place = center_of_region(selection.region, info)
    return np.array(center_in_code("bc", info, "code")) if place is None else place


def center_of_region(region: Region | None, info: RunInfo) -> np.ndarray | None:
    """Return the center of a region in code length; None without one."""
    if isinstance(region, Box):
        lower, size = np.array(info.lower), np.array(info.box_size)
        low, high = map(np.array, region.corners(info))
        low = np.where(np.isfinite(low), low, lower)
        high = np.where(np.isfinite(high), high, lower + size)
        return np.asarray((low + high) / 2)
    if isinstance(region, Centered):
        return np.array(center_in_code(region.center, info, region.unit))
    return None


def in_unit(place: np.ndarray, info: RunInfo, unit: str) -> np.ndarray:
    """Return a position in code length in the unit of regions: "box", "code", "kpc", ..."""
    origin = np.array(info.lower) if unit == "box" else 0.0
    return np.asarray((place - origin) / length_of_unit(info, unit))
