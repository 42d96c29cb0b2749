"""Objects of meshio as unstructured grids of VTK."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar._util.user_warnings import warn


def pyvista() -> Any:
    """Return PyVista; raises ModuleNotFoundError if it is not installed."""
    return require("pyvista", purpose="reading and writing mesh files", install="ambar[mesh]")


def to_vtk(mesh: Any) -> Any:
    """Return a `meshio.Mesh` as an object of VTK, other objects unchanged.

    Warns of data that VTK cannot represent; raises UnsupportedError if PyVista cannot convert it.
    """
    if type(mesh).__module__.partition(".")[0] != "meshio":
        return mesh
    left_out: dict[str, str] = {}
    try:
        grid = from_meshio(mesh, left_out)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        cells = ", ".join(dict.fromkeys(block.type for block in mesh.cells)) or "none"
        arrays = ", ".join(f"{name} ({values.dtype})" for name, values in mesh.point_data.items())
        raise _core.UnsupportedError(
            f"the meshio.Mesh with the cells {cells} and the arrays {arrays or 'none'} cannot be "
            f"converted to VTK: {error}; convert these types"
        ) from error
    for name, why in left_out.items():
        warn(f"{name!r} of the meshio.Mesh is left out: {why}")
    return grid


def from_meshio(mesh: Any, left_out: dict[str, str]) -> Any:
    """Return a `meshio.Mesh` as a PyVista UnstructuredGrid.

    PyVista converts points and their data to float64, joins sets of cells, and leaves out sets of
    points and field data. Here dtypes are kept, and each set becomes an array of 0 and 1. Data that
    VTK cannot represent are added to `left_out`, with the reason.
    """
    meshio = import_module("meshio")
    bare = meshio.Mesh(mesh.points, mesh.cells, cell_data=mesh.cell_data)
    grid = pyvista().from_meshio(bare)
    if mesh.points.dtype.itemsize == 4:
        grid.points = grid.points.astype(np.float32)
    for name, values in mesh.point_data.items():
        grid.point_data[name] = values.astype(values.dtype.newbyteorder("="))
    for name, indices in mesh.point_sets.items():
        _add_set(grid.point_data, name, [indices], [grid.n_points], left_out)
    counts = [len(block.data) for block in mesh.cells]
    for name, blocks in mesh.cell_sets.items():
        _add_set(grid.cell_data, name, blocks, counts, left_out)
    for name, values in mesh.field_data.items():
        try:
            grid.field_data[name] = np.atleast_1d(values)
        except (TypeError, ValueError):
            left_out[name] = f"VTK has no field data of the type {type(values).__name__}"
    return grid


def _add_set(
    data: Any, name: str, blocks: list[Any], counts: list[int], left_out: dict[str, str]
) -> None:
    """Add an array that is 1 for the points or cells of a set, given by indices in blocks."""
    array = np.zeros(sum(counts), np.uint8)
    start = 0
    for indices, count in zip(blocks, counts, strict=True):
        found = np.asarray([] if indices is None else indices, np.int64)
        # meshio also keeps other numbers as sets: gmsh:bounding_entities.
        if name in data or ((found < 0) | (found >= count)).any():
            left_out[name] = "expected a set of points or cells of a new name, found other numbers"
            return
        array[start + found] = 1
        start += count
    data[name] = array
