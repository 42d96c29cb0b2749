"""Grids whose cells differ in size: plain arrays with coordinates, which xarray opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ambar import _core
from ambar.formats.yt.source import YtField, reading
from ambar.snapshot.regions import AXES
from ambar.store.error_bounds import select_bounds
from ambar.store.writer import Writer


def is_stretched(dataset: Any) -> bool:
    """Return whether the cells of a grid differ in size."""
    return any(getattr(grid, "cell_widths", None) is not None for grid in dataset.index.grids[:1])


def write_grids(
    writer: Writer,
    dataset: Any,
    fields: Sequence[YtField],
    bounds: Sequence[tuple[str, str]],
    advance: Callable[[int], None],
) -> None:
    """Write each grid as a group: centres and edges of cells, and the fields."""
    ndim = int(dataset.dimensionality)
    for number, grid in enumerate(dataset.index.grids):
        group = f"grid_{number:06}"
        writer.create_group(group, {"level": int(grid.Level)})
        for axis in range(ndim):
            name, widths = AXES[axis], np.asarray(grid.cell_widths[axis], np.float64)
            start = float(grid.LeftEdge[axis].to_value("code_length"))
            edges = np.concatenate([[start], start + np.cumsum(widths)])
            units = {"units": "code_length"}
            writer.create_array(
                f"{group}/{name}", edges[:-1] + widths / 2, dims=[name], attrs=units
            )
            edge = f"{name}_edges"
            writer.create_array(f"{group}/{edge}", edges, dims=[edge], attrs=units)
        for field in fields:
            advance(1)
            with reading(dataset, field.name):
                values = np.asarray(grid[field.key])
            values = values.reshape(values.shape[:ndim])
            grid.clear_data()
            parts = select_bounds(bounds, [field.name]) or []
            if any(part.levels or part.region for part in parts):
                raise _core.InvalidError(
                    f"{field.name}: expected one error bound for a stretched grid, found "
                    f"that of a part, {parts[0].target!r}; leave out the part"
                )
            writer.create_array(
                f"{group}/{field.name}",
                values,
                dims=list(AXES[:ndim]),
                attrs={"units": field.unit},
                error_bound=parts[-1].bound if parts else None,
                layout="grid" if values.dtype.kind == "f" else None,
            )
