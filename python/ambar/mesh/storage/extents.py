"""Numbers of points and cells, and bounds, of meshes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import blocks_of

POLY_CELLS = {"verts": "Verts", "lines": "Lines", "polygons": "Polys", "strips": "Strips"}
"""The four kinds of cells of a vtkPolyData: their names in descriptions, and in VTK."""
STRUCTURED = ("ImageData", "UniformGrid", "StructuredPoints", "RectilinearGrid", "StructuredGrid")
"""The types whose numbers of points and cells follow from an extent."""


def point_shape(extent: Any) -> tuple[int, int, int] | None:
    """Return the numbers of points (z, y, x) of an extent; None if it is empty."""
    if extent is None:
        return None
    x, y, z = (extent[2 * i + 1] - extent[2 * i] + 1 for i in range(3))
    return (z, y, x) if min(x, y, z) > 0 else None


def cell_shape(extent: Any) -> tuple[int, int, int] | None:
    """Return the numbers of cells (z, y, x) of an extent; one in a direction of one point."""
    shape = point_shape(extent)
    if shape is None:
        return None
    z, y, x = (max(1, count - 1) for count in shape)
    return (z, y, x)


def lattice_points(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the points (points, 3) of a lattice with these axes, x fastest."""
    values = np.empty((len(z), len(y), len(x), 3), x.dtype)
    values[..., 0] = x
    values[..., 1] = y[:, None]
    values[..., 2] = z[:, None, None]
    return values.reshape(-1, 3)


def bounds_of(mesh: Any) -> list[float] | None:
    """Return the bounds (x0, x1, y0, y1, z0, z1) of a VTK object; None if they are not finite."""
    if not hasattr(mesh, "GetBounds"):
        return None
    bounds = [0.0] * 6
    mesh.GetBounds(bounds)
    ordered = all(low <= high for low, high in zip(bounds[::2], bounds[1::2], strict=True))
    return bounds if ordered and all(map(math.isfinite, bounds)) else None


def counts_of(described: Any, reader: ArrayReader) -> tuple[int, int]:
    """Return the numbers of points and cells of an object and its blocks.

    Rows of tables are not counted.
    """
    if not isinstance(described, dict):
        return 0, 0
    counts = [counts_of(block, reader) for _, block in blocks_of(described)]
    type_name = described.get("type")
    if type_name in STRUCTURED:
        shapes = point_shape(described.get("extent")), cell_shape(described.get("extent"))
        points, cells = (math.prod(shape or (0,)) for shape in shapes)
        counts.append((points, cells))
    elif type_name is not None:
        lists = ((described.get(name), described.get("types")) for name in ("cells", *POLY_CELLS))
        cells = sum(cell_count(cells, types, reader) for cells, types in lists)
        counts.append((_point_count(described.get("points"), reader), cells))
    return sum(points for points, _ in counts), sum(cells for _, cells in counts)


def _point_count(points: Any, reader: ArrayReader) -> int:
    if not isinstance(points, dict):
        return 0
    if "lattice" in points:
        return math.prod(reader.shape_of(axis)[0] for axis in points["lattice"])
    return math.prod(reader.shape_of(points)[:-1])


def corner_count(cells: Any, reader: ArrayReader) -> int:
    """Return the number of corners of all cells that `cells` describes; None for no cells."""
    if cells is None:
        return 0
    parts = cells["by_size"] if "by_size" in cells else [cells["corners"]]
    return sum(math.prod(reader.shape_of(part)) for part in parts)


def cell_count(cells: Any, types: Any, reader: ArrayReader) -> int:
    """Return the number of cells that `cells` describes; `types` describes their cell types."""
    if not isinstance(cells, dict):
        return 0
    sizes = cells.get("sizes")
    if sizes is None:
        return reader.shape_of(cells.get("corners"))[0]
    has_table = isinstance(sizes, dict) and "of_types" in sizes
    return reader.shape_of(types if has_table else sizes)[0]
