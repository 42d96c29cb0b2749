"""Points, cells and bounds of meshes as their descriptions have them; VTK is not loaded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ambar.mesh.storage.description import blocks_of
from ambar.mesh.storage.source import Source

POLY_CELLS = {"verts": "Verts", "lines": "Lines", "polygons": "Polys", "strips": "Strips"}
"""The four kinds of cells of a vtkPolyData: their names in stores, and VTK's."""
STRUCTURED = ("ImageData", "UniformGrid", "StructuredPoints", "RectilinearGrid", "StructuredGrid")
"""The types whose points and cells follow from their extent."""


def point_shape(extent: Any) -> tuple[int, int, int] | None:
    """Return how many points (z, y, x) an extent has, None for none."""
    if extent is None:
        return None
    x, y, z = (extent[2 * i + 1] - extent[2 * i] + 1 for i in range(3))
    return (z, y, x) if min(x, y, z) > 0 else None


def cell_shape(extent: Any) -> tuple[int, int, int] | None:
    """Return how many cells (z, y, x) an extent has: a layer of points is a layer of cells."""
    shape = point_shape(extent)
    if shape is None:
        return None
    z, y, x = (max(1, count - 1) for count in shape)
    return (z, y, x)


def lattice_points(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the points (points, 3) of a lattice with these axes, x quickest."""
    values = np.empty((len(z), len(y), len(x), 3), x.dtype)
    values[..., 0] = x
    values[..., 1] = y[:, None]
    values[..., 2] = z[:, None, None]
    return values.reshape(-1, 3)


def bounds_of(mesh: Any) -> list[float] | None:
    """Return VTK's bounds (x0, x1, y0, y1, z0, z1) of an object; None if it has no finite ones."""
    if not hasattr(mesh, "GetBounds") or mesh.IsA("vtkUniformGridAMR"):
        return None
    bounds = [0.0] * 6
    mesh.GetBounds(bounds)
    ordered = all(low <= high for low, high in zip(bounds[::2], bounds[1::2], strict=True))
    return bounds if ordered and all(map(math.isfinite, bounds)) else None


def counts_of(described: Any, source: Source) -> tuple[int, int]:
    """Return how many points and cells a described object has, those of its blocks together.

    Rows of a table are neither; of a hyper-tree grid nothing is counted.
    """
    if not isinstance(described, dict):
        return 0, 0
    inner = [counts_of(block, source) for _, block in blocks_of(described)]
    kind = described.get("type")
    if kind in STRUCTURED:
        extent = described.get("extent")
        inner.append(
            (math.prod(point_shape(extent) or (0,)), math.prod(cell_shape(extent) or (0,)))
        )
    elif kind is not None and "levels" not in described:
        names = ("cells", *POLY_CELLS)
        cells = sum(_cells_in(described.get(name), described, source) for name in names)
        inner.append((_points_in(described.get("points"), source), cells))
    return sum(points for points, _ in inner), sum(cells for _, cells in inner)


def _points_in(points: Any, source: Source) -> int:
    if not isinstance(points, dict):
        return 0
    if "lattice" in points:
        return math.prod(source.shape_of(axis)[0] for axis in points["lattice"])
    return math.prod(source.shape_of(points)[:-1])


def _cells_in(cells: Any, described: dict[str, Any], source: Source) -> int:
    """Return how many cells there are of a kind."""
    if not isinstance(cells, dict):
        return 0
    sizes = cells.get("sizes")
    if sizes is None:
        return source.shape_of(cells.get("corners"))[0]
    of_types = isinstance(sizes, dict) and "of_types" in sizes
    return source.shape_of(described.get("types") if of_types else sizes)[0]
