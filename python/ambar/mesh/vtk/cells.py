"""Cells: vtkCellArray as one array of corners per size of cell, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import VTK_INT, VTK_LONG_LONG
from vtkmodules.vtkCommonDataModel import vtkCellArray

from ambar import _core
from ambar.interop.vtk_arrays import adopted, values_of
from ambar.mesh.storage.array_references import Runs, part_of
from ambar.mesh.storage.ragged_cells import Ragged
from ambar.mesh.storage.sink import Sink
from ambar.mesh.storage.source import Source

MOST_SIZES = 16
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
    ValueError
        If a corner is no point, or offsets do not fit.
    """
    if is_usual(cells):
        return None
    lists = lists_in(cells, path, points, what)
    corners = lists.values
    described: dict[str, Any] = {} if corners.itemsize == 8 else {"storage": 32}
    if is_fixed(cells):
        described["fixed"] = True
    if lists.size:
        at = sink.put(f"{path}/corners", lists.table, role="corners", dims=("cell", "corner"))
        return described | {"corners": at}
    offsets, sizes = lists.offsets, lists.sizes
    described["sizes"] = _put_sizes(sizes, types, sink, path)
    different = distinct(sizes)
    if len(different) > MOST_SIZES:
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


def polyhedron_faces(mesh: Any, path: str) -> Any:
    """Return the faces of a mesh's polyhedra, or None. VTK before 9.4 has another layout."""
    if hasattr(mesh, "GetPolyhedronFaces"):
        return mesh.GetPolyhedronFaces()
    if mesh.GetFaces() is not None:
        raise _core.UnsupportedError(f"{path}: polyhedra are written with VTK 9.4 or newer")
    return None


def lists_in(cells: Any, path: str, points: int, what: str = "point") -> Ragged:
    """Return the corners of a vtkCellArray, in its memory; arguments as for `describe_cells`.

    Raises ValueError if a corner is not the number of a point, or offsets are invalid.
    """
    corners = values_of(cells.GetConnectivityArray(), path)
    if corners.size and _largest(corners) >= points:
        raise _core.InvalidError(
            f"/{path}: a cell refers to {what} {_outlier(corners)} of {points}: repair the "
            "mesh before it is written"
        )
    if is_fixed(cells):
        return Ragged.of_table(corners.reshape(cells.GetNumberOfCells(), -1))
    offsets = values_of(cells.GetOffsetsArray(), path)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(corners):
        raise _core.InvalidError(
            f"/{path}: the offsets of the cells do not fit their {len(corners)} corners: repair "
            "the mesh before it is written"
        )
    size = _one_size(offsets)
    if size:
        return Ragged.of_table(corners.reshape(-1, size))
    lists = Ragged(corners, offsets)
    if len(lists) and lists.sizes.min() < 0:
        raise _core.InvalidError(f"/{path}: the offsets of the cells decrease: repair the mesh")
    return lists


def is_fixed(cells: Any) -> bool:
    """Whether a vtkCellArray has cells of one size, for which VTK keeps no offsets."""
    return bool(
        cells.GetNumberOfCells()
        and hasattr(cells, "IsStorageFixedSize")
        and cells.IsStorageFixedSize()
    )


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


def distinct(sizes: np.ndarray) -> list[int]:
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


@dataclass(frozen=True)
class Chosen:
    """Some of the cells that a description has."""

    count: int
    """How many there are in all."""
    runs: Runs
    """Which of them."""
    starts: np.ndarray | None
    """Where the corners of each run begin (runs, arrays), as `starts_of` returns it.

    None of cells of one size, and where there is one run from the first cell on.
    """


def cells_of(
    described: Any, source: Source, what: str, points: int, types: np.ndarray | None = None
) -> Any:
    """Return the vtkCellArray that `describe_cells` described; one without cells for None.

    Raises CorruptError if a corner is not below `points`, or sizes and corners do not fit.
    """
    if described is None:
        return vtkCellArray()
    lists = lists_of(described, source, what, points, types)
    return cell_array(lists, fixed=bool(described.get("fixed")))


def cell_array(lists: Ragged, *, fixed: bool = False) -> Any:
    """Return a vtkCellArray of corners of int64 or int32; with `fixed` without offsets."""
    cells = vtkCellArray()
    dtype = lists.values.dtype
    code = VTK_LONG_LONG if dtype.itemsize == 8 else VTK_INT
    flat = adopted(lists.values, code)
    if fixed and lists.size:
        cells.SetData(lists.size, flat)
    else:
        cells.SetData(adopted(lists.offsets.astype(dtype, copy=False), code), flat)
    return cells


def lists_of(
    described: Any,
    source: Source,
    what: str,
    points: int,
    types: np.ndarray | None = None,
    chosen: Chosen | None = None,
) -> Ragged:
    """Return the corners that `describe_cells` described: of all cells, or of those chosen.

    `types` are those of the same cells. Raises CorruptError if a corner is not below `points`, or
    sizes and corners do not fit.
    """
    if not isinstance(described, dict):
        raise source.damaged(f"{what} are not described")
    dtype = np.dtype("int32" if described.get("storage") == 32 else "int64")
    if "sizes" in described:
        lists = _of_sizes(described, source, what, dtype, types, chosen)
    else:
        reference = _chosen_of(described.get("corners"), chosen, source)
        lists = Ragged.of_table(source.get(reference, f"{what} corners", ndim=(2,), kinds="i"))
        if lists.size == 0:
            raise source.damaged(f"{what}: cells without corners have sizes")
    corners = lists.values
    if corners.dtype != dtype:
        raise source.damaged(f"{what}: corners have dtype {corners.dtype}, not {dtype}")
    if corners.size and _largest(corners) >= points:
        raise source.damaged(f"{what}: a cell refers to {_outlier(corners)} of {points}")
    return lists


def _chosen_of(reference: Any, chosen: Chosen | None, source: Source) -> Any:
    """Return a reference to what an array has for the cells that are chosen."""
    if chosen is None:
        return reference
    return part_of(reference, (chosen.count,), chosen.runs.key, source)


def sizes_of(
    described: Any,
    source: Source,
    what: str,
    types: np.ndarray | None = None,
    chosen: Chosen | None = None,
) -> np.ndarray:
    """Return the size of each cell, of all or of those chosen, as the key `sizes` describes it.

    Raises CorruptError if sizes are negative, or follow from types that there are not.
    """
    table = described.get("of_types") if isinstance(described, dict) else None
    if table is None:
        reference = _chosen_of(described, chosen, source)
        sizes = source.get(reference, f"{what} sizes", ndim=(1,), kinds="iu")
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


def starts_of(sizes: np.ndarray, first: np.ndarray, widths: list[int] | None) -> np.ndarray:
    """Return where the corners of cells of several sizes begin, from each cell of `first` on.

    `sizes` are those of all cells. The result is (first, arrays) int64: for each of the arrays
    `by_size`, which have `widths` corners a cell, its first row; or for `corners` (`widths` are
    None) the first corner.
    """
    columns = [sizes] if widths is None else [sizes == width for width in widths]
    starts = np.zeros((len(first), len(columns)), np.int64)
    for number, column in enumerate(columns):
        ends = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
        starts[:, number] = ends[first]
    return starts


def _of_sizes(
    described: dict[str, Any],
    source: Source,
    what: str,
    dtype: np.dtype[Any],
    types: np.ndarray | None,
    chosen: Chosen | None,
) -> Ragged:
    """Return corners of cells of several sizes."""
    sizes = sizes_of(described["sizes"], source, what, types, chosen)
    total = int(sizes.sum(dtype=np.float64))
    if total > np.iinfo(dtype).max:
        raise source.damaged(f"{what}: sizes add up to {total}")
    offsets = np.zeros(len(sizes) + 1, dtype)
    np.cumsum(sizes, dtype=dtype, out=offsets[1:])
    total = int(offsets[-1])
    references: Any = described.get("by_size")
    if "corners" in described:
        references, columns, ndim = [described["corners"]], [sizes], 1
    elif isinstance(references, list):
        widths = [source.shape_of(part)[-1] for part in references]
        columns, ndim = [sizes == width for width in widths], 2
        if any(size not in widths for size in distinct(sizes)) or 0 in widths:
            raise source.damaged(f"{what}: cells of sizes {distinct(sizes)}, corners of {widths}")
    else:
        raise source.damaged(f"{what}: cells of several sizes have no arrays of corners")
    found = []
    for number, (part, column) in enumerate(zip(references, columns, strict=True)):
        places = _places_of_runs(column, number, len(columns), chosen, source, what)
        found.append(_corners_at(part, source, what, (ndim, dtype), places, chosen is None))
    if ndim == 1:
        return Ragged(found[0], offsets)
    corners = np.empty(total, dtype)
    for values, column, width in zip(found, columns, widths, strict=True):
        corners[_places(offsets[:-1][column], width)] = values
    return Ragged(corners, offsets)


def _places_of_runs(
    column: np.ndarray, number: int, arrays: int, chosen: Chosen | None, source: Source, what: str
) -> Runs:
    """Return the places in an array of corners that cells have, `column` of them each."""
    if chosen is None:
        return Runs.all(int(column.sum(dtype=np.int64)))
    runs, starts = chosen.runs, chosen.starts
    if starts is None and np.array_equal(runs.first, [0]):
        starts = np.zeros((1, arrays), np.int64)
    if starts is None or starts.shape != (len(runs.first), arrays) or starts.min(initial=0) < 0:
        raise source.damaged(f"{what}: {arrays} arrays of corners have no starts of their own")
    bounds = np.concatenate([[0], np.cumsum(runs.counts)])
    ends = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])[bounds]
    return Runs(starts[:, number], starts[:, number] + np.diff(ends))


def _corners_at(
    reference: Any,
    source: Source,
    what: str,
    kind: tuple[int, np.dtype[Any]],
    places: Runs,
    whole: bool,
) -> np.ndarray:
    """Return the places of an array of corners that cells have.

    `kind` is how many dimensions the array has, and its dtype. If `whole`, it must have no others.
    """
    ndim, dtype = kind
    shape = source.shape_of(reference)
    wanted, most = int(places.counts.sum()), int(places.stop.max(initial=0))
    if len(shape) != ndim or most > shape[0] or (whole and wanted != shape[0]):
        raise source.damaged(
            f"{what}: sizes add up to {wanted} places of corners, of which there are {shape}"
        )
    if not whole:
        reference = part_of(reference, shape[:1], places.key, source)
    values = source.get(reference, f"{what} corners", ndim=(ndim,), kinds="i")
    if values.dtype != dtype:
        raise source.damaged(f"{what}: corners have dtype {values.dtype}, not {dtype}")
    return values
