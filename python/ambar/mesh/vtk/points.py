"""Coordinates of points: as they are, or those of a lattice by its three axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkPoints

from ambar.interop.vtk_arrays import array_of, type_name, values_of
from ambar.mesh.storage.extents import lattice_points
from ambar.mesh.storage.sink import Sink
from ambar.mesh.storage.source import Source

_FEW = 64
"""Points of which a lattice is not looked for."""
_DIMS = ("point", "xyz")


def describe_points(
    points: Any, sink: Sink, path: str, *, lattice: bool = False, grid: Any = None
) -> dict[str, Any] | None:
    """Put the coordinates of a vtkPoints into the store, and return their description.

    Parameters
    ----------
    points
        The vtkPoints, or None.
    sink
        Where arrays go.
    path
        Under which path.
    lattice
        Whether to look if they are those of a lattice.
    grid
        Shape (z, y, x) of the grid that they make, if it is one.
    """
    if points is None:
        return None
    array = points.GetData()
    values = values_of(array, path)
    described: dict[str, Any] = {}
    if (kind := type_name(array, values)) is not None:
        described["type"] = kind
    if array.GetName() != "Points":
        described["name"] = array.GetName()
    axes = _axes(values) if lattice and len(values) > _FEW else None
    if axes is not None:
        parts = [
            sink.put(f"{path}/{name}", axis, role="points", dims=(name,))
            for name, axis in zip("xyz", axes, strict=True)
        ]
        return described | {"lattice": parts}
    dims: tuple[str, ...] = _DIMS
    if grid is not None and values.size:
        values, dims = values.reshape(*grid, 3), ("z", "y", "x", "xyz")
    return described | sink.put(path, values, role="points", dims=dims)


def points_of(described: Any, source: Source, what: str, most: int | None = None) -> Any:
    """Return the vtkPoints that `describe_points` described.

    `most` is the largest number of points that a lattice may have. Raises CorruptError if it has
    more, or coordinates are not three each.
    """
    if not isinstance(described, dict):
        raise source.damaged(f"{what} are not described")
    if "lattice" in described:
        values = _of_lattice(described["lattice"], source, what, most or 0)
    else:
        values = source.get(described, what, ndim=(2, 4), kinds="iuf")
        if values.shape[-1] != 3:
            raise source.damaged(f"{what} have shape {values.shape}")
        values = values.reshape(-1, 3)
    points = vtkPoints()
    array = array_of(values, described.get("type"))
    name = described.get("name", "Points")
    array.SetName(name if isinstance(name, str) else None)
    points.SetData(array)
    return points


def _axes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return x, y, z if points are all of these, x quickest, to the bit; else None."""
    bits = values.view(f"u{values.itemsize}")
    row = _run(bits[:, 1:], 1, len(bits))
    layer = _run(bits[:, 2:], row, len(bits))
    if len(bits) % layer or layer % row or row + layer // row + len(bits) // layer > len(bits) // 4:
        return None
    grid = bits.reshape(-1, layer // row, row, 3)
    x, y, z = grid[0, 0, :, 0], grid[0, :, 0, 1], grid[:, 0, 0, 2]
    for number, layer_bits in enumerate(grid):
        if not (
            (layer_bits[:, :, 2] == z[number]).all()
            and (layer_bits[:, :, 1] == y[:, None]).all()
            and (layer_bits[:, :, 0] == x).all()
        ):
            return None
    ax, ay, az = (np.ascontiguousarray(axis).view(values.dtype) for axis in (x, y, z))
    return ax, ay, az


def _run(bits: np.ndarray, step: int, count: int) -> int:
    """Return how many points at the start share their values of `bits`, counted in `step`s."""
    reach = step
    while reach < count:
        reach = min(2 * reach, count)
        differs = (bits[:reach:step] != bits[0]).any(axis=1)
        if differs.any():
            return int(differs.argmax()) * step
    return count


def _of_lattice(parts: Any, source: Source, what: str, most: int) -> np.ndarray:
    if not isinstance(parts, list) or len(parts) != 3:
        raise source.damaged(f"{what}: a lattice has three axes")
    x, y, z = (source.get(part, f"{what} axis", ndim=(1,), kinds="iuf") for part in parts)
    count = len(x) * len(y) * len(z)
    if count > most or not x.dtype == y.dtype == z.dtype:
        raise source.damaged(
            f"{what}: a lattice of {count} points, of which cells use at most {most}"
        )
    return lattice_points(x, y, z)
