"""Snapshots of codes without a reader as yt datasets in memory, whose values are read on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import yt

from ambar import _core
from ambar.snapshot.code_info import CELLS, CodeInfo
from ambar.snapshot.interop.patch_levels import Level, levels_of
from ambar.snapshot.physics.unit_expressions import UNITS, Unit

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot


def stream_dataset(snapshot: Snapshot, info: CodeInfo, **options: Any) -> Any:
    """Return the cells of a snapshot as ``yt.load_amr_grids`` returns grids.

    Raises
    ------
    UnsupportedError
        If levels are refined by different ratios.
    """
    levels = levels_of(snapshot.amr)
    ratios = {level.ratio for level in levels[:-1]} or {2}
    if len(ratios) > 1:
        raise _core.UnsupportedError(
            f"{snapshot.location}: expected one refinement ratio for yt, found {sorted(ratios)}"
        )
    units = {name: _unit_in_yt(info, name) for name in snapshot.components[CELLS]}
    lower = np.array(info.lower)
    grids = []
    for number, level in enumerate(levels):
        for index, (first, after) in enumerate(level.boxes):
            shape = tuple((after - first).tolist())
            grid: dict[Any, Any] = {
                name: (_reader(level, index, name, shape), unit) for name, unit in units.items()
            }
            grid["level"] = number
            grid["dimensions"] = _three(shape, 1)
            grid["left_edge"] = _three(lower + first * np.array(level.cell_size), 0.0)
            grid["right_edge"] = _three(lower + after * np.array(level.cell_size), 1.0)
            grids.append(grid)
    if info.physical:
        own = info.units
        options = {
            "length_unit": (own.unit_l, "cm"),
            "time_unit": (own.unit_t, "s"),
            "mass_unit": (own.unit_m, "g"),
            "velocity_unit": (own.unit_v, "cm/s"),
            **options,
        }
    sides = np.array(info.box_size) / levels[0].cell_size
    upper = _three(info.upper, 1.0)
    dataset = yt.load_amr_grids(
        grids,
        _three(np.rint(sides).astype(int), 1),
        bbox=np.stack([_three(info.lower, 0.0), upper], axis=1),
        sim_time=info.time,
        periodicity=tuple(_three(info.periodic or (True,) * info.ndim, True)),
        geometry=info.coordinates,
        refine_by=ratios.pop(),
        dataset_name=snapshot.location,
        **options,
    )
    if info.gamma is not None:
        dataset.gamma = info.gamma
    return dataset


def _reader(
    level: Level, index: int, name: str, shape: tuple[int, ...]
) -> Callable[[Any, Any], np.ndarray]:
    def read(_grid: Any, _field: Any) -> np.ndarray:
        values = level.read(name, index).astype(np.float64)
        return values.reshape(_three(shape, 1), order="F")

    return read


def _three(values: Any, rest: Any) -> list[Any]:
    """Return values for three dimensions."""
    known: list[Any] = np.asarray(values).tolist()
    return known + [rest] * (3 - len(known))


def _unit_in_yt(info: CodeInfo, name: str) -> str:
    """Return the unit of a field in yt's notation; "" if it is not known."""
    unit: Unit | None = info.units_of(CELLS)._unit_of_name(name)
    if unit is None:
        return ""
    gauss = UNITS["Gauss"]
    if unit.is_like(gauss):
        return f"{unit.factor / gauss.factor!r}*gauss"
    return f"{unit.factor!r}*{unit.text}" if unit.text != "dimensionless" else ""
