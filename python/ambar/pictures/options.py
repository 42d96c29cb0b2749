"""The options of pictures of arrays and collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ambar.kinds.request import PlotRequest


@dataclass(frozen=True, kw_only=True)
class ArraysPlot(PlotRequest):
    """The options of ``ambar plot`` for stores of arrays."""

    output: int | None = None
    """The step of a series; else the index along the first of three or more dimensions. None for
    the last step, the middle of a side of a volume, otherwise the first index."""
    resolution: int | None = None
    log: bool | None = None
    limits: tuple[float, float] | None = None
    colors: str | None = None


@dataclass(frozen=True, kw_only=True)
class CollectionPlot(PlotRequest):
    """The options of ``ambar plot`` for collections."""

    supported_fields: ClassVar[tuple[str, ...]] = ()

    where: str | None = None
    log: bool | None = None
    limits: tuple[float, float] | None = None
    colors: str | None = None
