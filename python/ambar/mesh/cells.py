"""Cells: vtkCellArray as one array of corners per size of cell, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import VTK_INT, VTK_LONG_LONG
from vtkmodules.vtkCommonDataModel import vtkCellArray

from ambar import _core
from ambar.mesh.arrays import adopted, values_of
from ambar.mesh.sink import Sink
from ambar.mesh.source import Source

_MOST_SIZES = 16
"""Of how many sizes cells may be for their corners to lie size by size."""
_BLOCK = 1 << 16
"""Offsets that are looked at together, so that they stay in the cache."""
_SMALLEST = [np.dtype(name) for name in ("uint8", "uint16", "uint32", "int64")]


def describe_cells(
    cells: Any,
    sink: Sink,
    path: str,
    points: int,
    what: str = "point",
    types: np.ndarray | None = None,
) -> dict[str, Any] | None:
    """Put the corners of a vtkCellArray into the store, and return their description.

    Parameters
    ----------
    cells
        The vtkCellArray, or None.
    sink
        Where arrays go.
    path
        Under which path.
    points
        What the corners count: they are below this number.
    what
        What the corners count, for messages.
    types
        The types of the cells; sizes that follow from them are not stored.

    Raises
    ------
    InvalidError
        If a corner is no point, or offsets do not fit.
    """
    if is_usual(cells):
        return None
    corners = values_of(cells.GetConnectivityArray(), path)
    if corners.size and _largest(corners) >= points:
        raise _core.InvalidError(
            f"/{path}: a cell refers to {what} {_outlier(corners)} of {points}: repair the "
            "mesh before it is written"
        )
    described: dict[str, Any] = {} if corners.itemsize == 8 else {"storage": 32}
    count = cells.GetNumberOfCells()
    if count and hasattr(cells, "IsStorageFixedSize") and cells.IsStorageFixedSize():
        described["fixed"] = True
        return described | _put_corners(corners.reshape(count, -1), sink, path)
    offsets = values_of(cells.GetOffsetsArray(), path)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(corners):
        raise _core.InvalidError(
            f"/{path}: the offsets of the cells do not fit their {len(corners)} corners: repair "
            "the mesh before it is written"
        )
    size = _one_size(offsets)
    if size:
        return described | _put_corners(corners.reshape(-1, size), sink, path)
    sizes = np.diff(offsets)
    if len(sizes) and sizes.min() < 0:
        raise _core.InvalidError(f"/{path}: the offsets of the cells decrease: repair the mesh")
    described["sizes"] = _put_sizes(sizes, types, sink, path)
    different = _distinct(sizes)
    if len(different) > _MOST_SIZES:
        described["corners"] = sink.put(f"{path}/corners", corners, role="corners")
        return described
    starts = offsets[:-1]
    described["by_size"] = [
        sink.put(
            f"{path}/corners_{size}",
            corners[_places(starts[sizes == size], size)],
            role="corners",
            dims=("cell", "corner"),
        )
        for size in different
    ]
    return described


def is_usual(cells: Any) -> bool:
    """Whether there are no cells, and they would take 64 bits a corner, as new ones do."""
    if cells is None:
        return True
    return bool(
        cells.GetNumberOfCells() == 0
        and cells.GetConnectivityArray().GetDataTypeSize() == 8
        and cells.GetConnectivityArray().GetNumberOfTuples() == 0
    )


def _put_corners(corners: np.ndarray, sink: Sink, path: str) -> dict[str, Any]:
    at = sink.put(f"{path}/corners", corners, role="corners", dims=("cell", "corner"))
    return {"corners": at}


def _put_sizes(
    sizes: np.ndarray, types: np.ndarray | None, sink: Sink, path: str
) -> dict[str, Any]:
    """Return the size of each type of cell, or else how to refer to the size of each cell."""
    if types is not None:
        table = np.zeros(256, sizes.dtype)
        table[types] = sizes
        if np.array_equal(table[types], sizes):
            used = np.flatnonzero(np.bincount(types, minlength=256))
            return {"of_types": {str(kind): int(table[kind]) for kind in used}}
    small = next(dtype for dtype in _SMALLEST if sizes.max(initial=0) <= np.iinfo(dtype).max)
    return sink.put(f"{path}/sizes", sizes.astype(small), role="sizes", dims=("cell",))


def _one_size(offsets: np.ndarray) -> int:
    """Return the size of the cells if they are all of one, else 0."""
    cells = len(offsets) - 1
    if cells < 1 or offsets[-1] % cells or offsets[-1] == 0:
        return 0
    size = int(offsets[-1]) // cells
    for start in range(0, len(offsets), _BLOCK):
        block = offsets[start : start + _BLOCK]
        if block[0] != start * size or not np.array_equal(
            block[1:] - block[:-1], np.full(len(block) - 1, size, block.dtype)
        ):
            return 0
    return size


def _distinct(sizes: np.ndarray) -> list[int]:
    """Return the different sizes, but 0, ascending."""
    largest = int(sizes.max(initial=0))
    if largest > 1 << 20:
        return [int(size) for size in np.unique(sizes) if size]
    counts = np.bincount(sizes, minlength=1)
    return [int(size) for size in np.flatnonzero(counts) if size]


def _places(starts: np.ndarray, size: int) -> np.ndarray:
    """Return where the corners of cells of one size are (cells, size)."""
    return starts[:, None] + np.arange(size, dtype=starts.dtype)


def _largest(corners: np.ndarray) -> int:
    """Return the largest corner; negative ones count as very large."""
    unsigned = corners.reshape(-1).view(f"u{corners.itemsize}")
    return int(unsigned.max(initial=0))


def _outlier(corners: np.ndarray) -> int:
    return int(corners.min()) if corners.min() < 0 else int(corners.max())


def cells_of(
    described: Any, source: Source, what: str, points: int, types: np.ndarray | None = None
) -> Any:
    """Return the vtkCellArray that `describe_cells` described; one without cells for None.

    Raises CorruptError if a corner is not below `points`, or sizes and corners do not fit.
    """
    cells = vtkCellArray()
    if described is None:
        return cells
    if not isinstance(described, dict):
        raise source.damaged(f"{what} are not described")
    dtype = np.dtype("int32" if described.get("storage") == 32 else "int64")
    offsets, size = None, 0
    if "sizes" in described:
        offsets, corners = _of_sizes(described, source, what, dtype, types)
    else:
        corners = source.get(described.get("corners"), f"{what} corners", ndim=(2,), kinds="i")
        size = corners.shape[1]
        if size == 0:
            raise source.damaged(f"{what}: cells without corners have sizes")
    if corners.dtype != dtype:
        raise source.damaged(f"{what}: corners have dtype {corners.dtype}, not {dtype}")
    if corners.size and _largest(corners) >= points:
        raise source.damaged(f"{what}: a cell refers to {_outlier(corners)} of {points}")
    code = VTK_LONG_LONG if dtype.itemsize == 8 else VTK_INT
    flat = adopted(corners.reshape(-1), code)
    if described.get("fixed") and size:
        cells.SetData(size, flat)
        return cells
    if offsets is None:
        offsets = np.arange(0, corners.size + 1, size, dtype=dtype)
    cells.SetData(adopted(offsets, code), flat)
    return cells


def _sizes_of(described: Any, source: Source, what: str, types: np.ndarray | None) -> np.ndarray:
    """Return the size of each cell."""
    table = described.get("of_types") if isinstance(described, dict) else None
    if table is None:
        sizes = source.get(described, f"{what} sizes", ndim=(1,), kinds="iu")
        if sizes.dtype == np.uint64 or sizes.min(initial=0) < 0:
            raise source.damaged(f"{what}: sizes are negative, or of uint64")
        return sizes
    if types is None or not isinstance(table, dict):
        raise source.damaged(f"{what}: sizes follow from types that there are not")
    lookup = np.full(256, -1, np.int64)
    for kind, size in table.items():
        if not (kind.isdecimal() and int(kind) < 256 and type(size) is int and 0 <= size < 2**31):
            raise source.damaged(f"{what}: cells of type {kind!r} have size {size!r}")
        lookup[int(kind)] = size
    found: np.ndarray = lookup[types]
    if found.min(initial=0) < 0:
        raise source.damaged(f"{what}: a type of cells has no size")
    return found


def _of_sizes(
    described: dict[str, Any],
    source: Source,
    what: str,
    dtype: np.dtype[Any],
    types: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and corners of cells of several sizes."""
    sizes = _sizes_of(described["sizes"], source, what, types)
    total = int(sizes.sum(dtype=np.float64))
    offsets = np.zeros(len(sizes) + 1, dtype)
    if total > np.iinfo(dtype).max:
        raise source.damaged(f"{what}: sizes add up to {total}")
    np.cumsum(sizes, dtype=dtype, out=offsets[1:])
    total = int(offsets[-1])
    if "corners" in described:
        corners = source.get(described["corners"], f"{what} corners", ndim=(1,), kinds="i")
        if len(corners) != total:
            raise source.damaged(
                f"{what}: sizes add up to {total}, there are {len(corners)} corners"
            )
        return offsets, corners
    parts = described.get("by_size")
    different = _distinct(sizes)
    if not isinstance(parts, list) or len(parts) != len(different):
        raise source.damaged(f"{what}: cells have {len(different)} sizes, and not as many arrays")
    found = []
    for part, size in zip(parts, different, strict=True):
        values = source.get(part, f"{what} of {size} corners", ndim=(2,), kinds="i")
        if values.shape != (int((sizes == size).sum()), size) or values.dtype != dtype:
            raise source.damaged(
                f"{what} of {size} corners: {values.dtype} of shape {values.shape}"
            )
        found.append(values)
    corners = np.empty(total, dtype)
    for values, size in zip(found, different, strict=True):
        corners[_places(offsets[:-1][sizes == size], size)] = values
    return offsets, corners
