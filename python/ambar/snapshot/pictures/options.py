"""The options of pictures and pages of cells and particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ambar.kinds.request import PlotRequest, ViewRequest
from ambar.snapshot.regions import Center, Cut, Direction, Region

if TYPE_CHECKING:
    from ambar.snapshot.maps.drawing import Statistic


@dataclass(frozen=True, kw_only=True)
class CellsPlot(PlotRequest):
    """The options of ``ambar plot`` for cells and particles."""

    slice_at: float | None = None
    axis: Direction = "z"
    up: Direction | None = None
    particles: bool = False
    species: str | None = None
    """The species of particles, where there are several."""
    weight: str | None = None
    statistic: Statistic | None = None
    where: str | None = None
    region: Region | None = None
    cut: Cut | None = None
    center: Center = "bc"
    width: float | None = None
    depth: float | None = None
    length_unit: str = "box"
    code_units: str | None = None
    """The name of the code units, for outputs that do not state them."""
    level: int | None = None
    resolution: int | None = None
    levels: bool = False
    """Whether borders of levels are drawn."""
    unit: str | None = None
    log: bool | None = None
    limits: tuple[float, float] | None = None
    colors: str | None = None


@dataclass(frozen=True, kw_only=True)
class SeriesPlot(CellsPlot):
    """The options of ``ambar plot`` for a series of outputs."""

    output: int | None = None


@dataclass(frozen=True, kw_only=True)
class CellsView(ViewRequest):
    """The options of `ambar.view` for cells and particles."""

    code_units: str | None = None
    """The name of the code units, for outputs that do not state them."""


def with_code_units(opened: Any, units: str) -> Any:
    """Return a snapshot, or outputs of a run, with code units by name."""
    is_run = isinstance(opened, Sequence)
    return opened._with_units(units) if is_run else opened.with_units(units)


def axis_name(axis: str | Sequence[float] | Direction) -> str:
    """Return an axis as text, for titles and names of files."""
    return axis if isinstance(axis, str) else "(" + ", ".join(f"{part:g}" for part in axis) + ")"
