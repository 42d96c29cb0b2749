"""Points: coordinates as an array, or as the three axes of a lattice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkPoints

from ambar.interop.vtk_arrays import values_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.extents import lattice_points
from ambar.mesh.storage.references import Description
from ambar.mesh.vtk.fields import about_array, named_array

_LATTICE_ABOVE = 64
"""Number of points up to which a lattice is not detected."""


def describe_points(
    points: Any, writer: ArrayWriter, path: str, *, lattice: bool = False, grid: Any = None
) -> Description | None:
    """Write the coordinates of a vtkPoints, and return their description.

    Parameters
    ----------
    points : vtkPoints or None
        The points.
    writer : ArrayWriter
        Writes the arrays.
    path : str
        The path of the arrays.
    lattice : bool, default False
        Whether to detect a lattice.
    grid : tuple of int, optional
        The shape (z, y, x) of the structured grid that the points form.
    """
    if points is None:
        return None
    array = points.GetData()
    values = values_of(array, path)
    described = about_array(array, values, "Points")
    axes = _axes(values) if lattice and len(values) > _LATTICE_ABOVE else None
    if axes is not None:
        references = [
            writer.put(f"{path}/{name}", axis, role="points", dims=(name,))
            for name, axis in zip("xyz", axes, strict=True)
        ]
        return described | {"lattice": references}
    dims: tuple[str, ...] = ("point", "xyz")
    if grid is not None and values.size:
        values, dims = values.reshape(*grid, 3), ("z", "y", "x", "xyz")
    return described | writer.put(path, values, role="points", dims=dims)


def points_of(described: Any, reader: ArrayReader, most: int) -> Any:
    """Return the vtkPoints of a description.

    Raises CorruptError if the points are not three coordinates each, or if a lattice has more than
    `most` points.
    """
    if "lattice" in described:
        values = read_lattice(described["lattice"], reader, most)
    else:
        values = read_points(described, reader)
    return vtk_points(values, described)


def vtk_points(values: np.ndarray, about: Mapping[str, Any]) -> Any:
    """Return a vtkPoints with these coordinates, of the type and name that `about` has."""
    points = vtkPoints()
    points.SetData(named_array(values, about, "Points"))
    return points


def read_points(described: Any, reader: ArrayReader) -> np.ndarray:
    """Return coordinates (points, 3); raises CorruptError if there are not three of each point."""
    values = reader.get(described, "points", ndim=(2, 4), kinds="iuf")
    if values.shape[-1] != 3:
        raise reader.damaged(f"points have shape {values.shape}")
    return values.reshape(-1, 3)


def _axes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the axes of the lattice that points form bit for bit, x fastest; else None."""
    bits = values.view(f"u{values.itemsize}")
    row = _run_length(bits[:, 1:], 1, len(bits))
    layer = _run_length(bits[:, 2:], row, len(bits))
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


def _run_length(bits: np.ndarray, step: int, count: int) -> int:
    """Return how many points from the first on have equal `bits`, compared in steps of `step`."""
    stop = step
    while stop < count:
        stop = min(2 * stop, count)
        differs = (bits[:stop:step] != bits[0]).any(axis=1)
        if differs.any():
            return int(differs.argmax()) * step
    return count


def read_lattice(axes: Any, reader: ArrayReader, most: int) -> np.ndarray:
    """Return the points (points, 3) of a lattice; raises CorruptError above `most` points."""
    if not isinstance(axes, list) or len(axes) != 3:
        raise reader.damaged("points: expected three axes of a lattice")
    x, y, z = (reader.get(axis, "axis of points", ndim=(1,), kinds="iuf") for axis in axes)
    count = len(x) * len(y) * len(z)
    if count > most or not x.dtype == y.dtype == z.dtype:
        raise reader.damaged(f"points: expected a lattice of at most {most} points, found {count}")
    return lattice_points(x, y, z)
