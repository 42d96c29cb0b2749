"""Cells: the connectivity of a vtkCellArray, described, and read again for all or some cells.

The point ids of a cell are its corners. Cells of one size are a table (cells, corners). Cells of
few sizes are a table for each size, and cells of many sizes one list, with the sizes of all cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import VTK_INT, VTK_LONG_LONG
from vtkmodules.vtkCommonDataModel import vtkCellArray

from ambar import _core
from ambar.interop.vtk_arrays import adopted, values_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.connectivity import Connectivity
from ambar.mesh.storage.references import Description, RowRanges, select_rows

MAX_SIZES = 16
"""The largest number of different cell sizes that have a table each."""
_SIZE_DTYPES = [np.dtype(name) for name in ("uint8", "uint16", "uint32", "int64")]


def describe_cells(
    cells: Any,
    writer: ArrayWriter,
    path: str,
    points: int,
    what: str = "point",
    types: np.ndarray | None = None,
) -> Description:
    """Write the connectivity of a vtkCellArray, and return its description.

    Parameters
    ----------
    cells : vtkCellArray
        The cells.
    writer : ArrayWriter
        Writes the arrays.
    path : str
        The path of the arrays.
    points : int
        The number of points: ids must be smaller.
    what : str, default "point"
        What the ids refer to, for messages.
    types : ndarray (cells,), optional
        The types of the cells. Sizes that follow from the type are not stored.

    Raises
    ------
    ValueError
        If an id is not that of a point, or offsets are invalid.
    """
    connectivity = connectivity_of(cells, path, points, what)
    ids, dims = connectivity.ids, ("cell", "corner")
    described: Description = {} if ids.itemsize == 8 else {"storage": 32}
    if is_fixed(cells):
        described["fixed"] = True
    if connectivity.size:
        corners = writer.put(f"{path}/corners", connectivity.table, role="corners", dims=dims)
        return described | {"corners": corners}
    sizes, starts = connectivity.sizes, connectivity.offsets[:-1]
    described["sizes"] = _describe_sizes(sizes, types, writer, path)
    different = distinct_sizes(sizes)
    if len(different) > MAX_SIZES:
        return described | {"corners": writer.put(f"{path}/corners", ids, role="corners")}
    by_size = []
    for size in different:
        table = ids[_indices(starts[sizes == size], size)]
        by_size.append(writer.put(f"{path}/corners_{size}", table, role="corners", dims=dims))
    return described | {"by_size": by_size}


def is_new(cells: Any) -> bool:
    """Whether a vtkCellArray equals a new one: no cells, and ids of 64 bits."""
    if cells is None or cells.GetNumberOfCells():
        return cells is None
    ids = cells.GetConnectivityArray()
    return bool(ids.GetDataTypeSize() == 8 and ids.GetNumberOfTuples() == 0)


def types_of(mesh: Any, path: str) -> np.ndarray:
    """Return the types of the cells. VTK before 9.6 returns the array from another method."""
    try:
        array = mesh.GetCellTypes()
    except TypeError:
        array = mesh.GetCellTypesArray()
    return np.empty(0, np.uint8) if array is None else values_of(array, path)


def polyhedron_faces(mesh: Any) -> Any:
    """Return the faces of polyhedra, None without any."""
    faces = mesh.GetPolyhedronFaces()
    return faces if faces is not None and faces.GetNumberOfCells() else None


def connectivity_of(cells: Any, path: str, points: int, what: str = "point") -> Connectivity:
    """Return the connectivity of a vtkCellArray, sharing its memory.

    Arguments and errors are those of `describe_cells`.
    """
    ids = values_of(cells.GetConnectivityArray(), path)
    if (outlier := _outlier(ids, points)) is not None:
        raise _core.InvalidError(
            f"/{path}: a cell refers to {what} {outlier} of {points}: repair the mesh before it is "
            "written"
        )
    if is_fixed(cells):
        return Connectivity.of_table(ids.reshape(cells.GetNumberOfCells(), -1))
    offsets = values_of(cells.GetOffsetsArray(), path)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(ids):
        raise _core.InvalidError(
            f"/{path}: the offsets of the cells do not fit their {len(ids)} corners: repair the "
            "mesh before it is written"
        )
    if (size := cells.IsHomogeneous()) > 0:
        return Connectivity.of_table(ids.reshape(-1, size))
    connectivity = Connectivity(ids, offsets)
    if len(connectivity) and connectivity.sizes.min() < 0:
        raise _core.InvalidError(f"/{path}: the offsets of the cells decrease: repair the mesh")
    return connectivity


def is_fixed(cells: Any) -> bool:
    """Whether VTK keeps no offsets, because all cells have one size."""
    has_fixed = hasattr(cells, "IsStorageFixedSize") and cells.IsStorageFixedSize()
    return bool(cells.GetNumberOfCells() and has_fixed)


def _describe_sizes(
    sizes: np.ndarray, types: np.ndarray | None, writer: ArrayWriter, path: str
) -> Description:
    """Return the size of each cell type if sizes follow from types; else write all sizes."""
    if types is not None:
        table = np.zeros(256, sizes.dtype)
        table[types] = sizes
        if np.array_equal(table[types], sizes):
            used = np.flatnonzero(np.bincount(types, minlength=256))
            return {"of_types": {str(number): int(table[number]) for number in used}}
    largest = sizes.max(initial=0)
    dtype = next(dtype for dtype in _SIZE_DTYPES if largest <= np.iinfo(dtype).max)
    return writer.put(f"{path}/sizes", sizes.astype(dtype), role="sizes", dims=("cell",))


def distinct_sizes(sizes: np.ndarray) -> list[int]:
    """Return the different sizes of cells, ascending, without 0."""
    is_small = sizes.max(initial=0) <= 1 << 20
    found = np.flatnonzero(np.bincount(sizes, minlength=1)) if is_small else np.unique(sizes)
    return [int(size) for size in found if size]


def _indices(starts: np.ndarray, size: int) -> np.ndarray:
    """Return the indices (cells, size) of the ids of cells of one size."""
    return starts[:, None] + np.arange(size, dtype=starts.dtype)


def _outlier(ids: np.ndarray, points: int) -> int | None:
    """Return an id that is not one of `points` points; None if all are."""
    # Negative ids are the largest unsigned ones.
    if ids.size == 0 or ids.reshape(-1).view(f"u{ids.itemsize}").max() < points:
        return None
    return int(ids.min()) if ids.min() < 0 else int(ids.max())


@dataclass(frozen=True)
class CellSelection:
    """Ranges of the cells of a description."""

    count: int
    """The number of all cells."""
    ranges: RowRanges
    """The selected cells."""
    starts: np.ndarray
    """Where the corners of each range start, as returned by `starts_of`: (ranges, arrays).

    (ranges, 0) for cells of one size.
    """

    def rows_of(self, number: int, counts: np.ndarray) -> RowRanges:
        """Return the rows of array `number` that the cells have, `counts` rows each."""
        starts = self.starts[:, number]
        bounds = np.concatenate([[0], np.cumsum(self.ranges.counts)])
        ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[bounds]
        return RowRanges(starts, starts + np.diff(ends))


def cells_of(
    described: Any, reader: ArrayReader, what: str, points: int, types: np.ndarray | None = None
) -> Any:
    """Return the vtkCellArray of a description; an empty one for None.

    Raises CorruptError if an id is not below `points`, or sizes do not fit.
    """
    if described is None:
        return vtkCellArray()
    connectivity = read_connectivity(described, reader, what, points, types)
    return cell_array(connectivity, fixed=bool(described.get("fixed")))


def cell_array(connectivity: Connectivity, *, fixed: bool = False) -> Any:
    """Return a vtkCellArray, of int64 or int32 like the ids; without offsets if `fixed`."""
    cells = vtkCellArray()
    dtype = connectivity.ids.dtype
    code = VTK_LONG_LONG if dtype.itemsize == 8 else VTK_INT
    ids = adopted(connectivity.ids, code)
    if fixed and connectivity.size:
        cells.SetData(connectivity.size, ids)
    else:
        cells.SetData(adopted(connectivity.offsets.astype(dtype, copy=False), code), ids)
    return cells


def read_connectivity(
    described: Any,
    reader: ArrayReader,
    what: str,
    points: int,
    types: np.ndarray | None = None,
    selection: CellSelection | None = None,
) -> Connectivity:
    """Return the connectivity of all cells, or of a selection; `types` are those of these cells.

    Raises CorruptError if an id is not below `points`, or sizes do not fit.
    """
    dtype = np.dtype("int32" if described.get("storage") == 32 else "int64")
    if "sizes" in described:
        sizes = _read_sizes(described["sizes"], reader, what, types, selection)
        if (total := int(sizes.sum(dtype=np.float64))) > np.iinfo(dtype).max:
            raise reader.damaged(f"{what}: sizes add up to {total}")
        connectivity = _read_with_sizes(described, reader, what, sizes, dtype, selection)
    else:
        reference = _select(described.get("corners"), selection, reader)
        table = reader.get(reference, f"{what} corners", ndim=(2,), kinds="i")
        connectivity = Connectivity.of_table(table)
        if connectivity.size == 0:
            raise reader.damaged(f"{what}: cells without sizes have no corners")
    ids = connectivity.ids
    if ids.dtype != dtype:
        raise reader.damaged(f"{what}: corners have dtype {ids.dtype}, not {dtype}")
    if (outlier := _outlier(ids, points)) is not None:
        raise reader.damaged(f"{what}: a cell refers to {outlier} of {points}")
    return connectivity


def _select(reference: Any, selection: CellSelection | None, reader: ArrayReader) -> Any:
    """Return a reference to the values of the selected cells."""
    if selection is None:
        return reference
    return select_rows(reference, (selection.count,), selection.ranges.key, reader)


def _read_sizes(
    described: Any,
    reader: ArrayReader,
    what: str,
    types: np.ndarray | None,
    selection: CellSelection | None,
) -> np.ndarray:
    """Return the sizes of all cells, or of a selection, from a description's key `sizes`.

    Raises CorruptError if sizes are negative, or follow from types that do not exist.
    """
    if "of_types" not in described:
        reference = _select(described, selection, reader)
        sizes = reader.get(reference, f"{what} sizes", ndim=(1,), kinds="iu")
    elif types is None:
        raise reader.damaged(f"{what}: sizes follow from types, but there are no types")
    else:
        table = np.full(256, -1, np.int64)
        for key, size in described["of_types"].items():
            table[int(key)] = size
        sizes = table[types]
    if sizes.dtype == np.uint64 or sizes.min(initial=0) < 0:
        raise reader.damaged(f"{what}: sizes are negative, of uint64, or not those of all types")
    return sizes


def starts_of(sizes: np.ndarray, first: np.ndarray, widths: list[int] | None) -> np.ndarray:
    """Return where the corners of cells start in the arrays of a description.

    Parameters
    ----------
    sizes : ndarray (cells,)
        The sizes of all cells.
    first : ndarray (ranges,)
        The cells whose starts are returned.
    widths : list of int, optional
        The sizes of the cells in each table; None if there is one list of corners.

    Returns
    -------
    ndarray (ranges, arrays), int64
        The rows of the tables, or the indices in the list.
    """
    columns = [sizes] if widths is None else [sizes == width for width in widths]
    starts = np.zeros((len(first), len(columns)), np.int64)
    for number, column in enumerate(columns):
        ends = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
        starts[:, number] = ends[first]
    return starts


def _read_with_sizes(
    described: Description,
    reader: ArrayReader,
    what: str,
    sizes: np.ndarray,
    dtype: np.dtype[Any],
    selection: CellSelection | None,
) -> Connectivity:
    """Return the connectivity of cells of several sizes."""
    is_list = "corners" in described
    references = [described["corners"]] if is_list else described["by_size"]
    widths = [] if is_list else [reader.shape_of(table)[-1] for table in references]
    if not is_list and (0 in widths or not set(distinct_sizes(sizes)) <= set(widths)):
        raise reader.damaged(f"{what}: cells of sizes {distinct_sizes(sizes)}, corners of {widths}")
    if selection is not None:
        expected = len(selection.ranges.starts), len(references)
        if selection.starts.shape != expected or selection.starts.min(initial=0) < 0:
            raise reader.damaged(f"{what}: the index has no starts for {expected[1]} arrays")
    # All arrays are read, and so compared with the sizes, before memory for the ids is allocated.
    arrays = []
    for number, table in enumerate(references):
        counts = sizes if is_list else sizes == widths[number]
        rows, shape = int(counts.sum(dtype=np.int64)), reader.shape_of(table)
        ranges = RowRanges.all(rows) if selection is None else selection.rows_of(number, counts)
        is_outside = ranges.stops.max(initial=0) > shape[0]
        if is_outside or (selection is None and rows != shape[0]):
            raise reader.damaged(
                f"{what}: sizes add up to {rows} rows of corners, of shape {shape}"
            )
        is_whole = selection is None
        part = table if is_whole else select_rows(table, shape[:1], ranges.key, reader)
        ndim = 1 if is_list else 2
        arrays.append(reader.get(part, f"{what} corners", ndim=(ndim,), kinds="i"))
    offsets = np.zeros(len(sizes) + 1, dtype)
    np.cumsum(sizes, dtype=dtype, out=offsets[1:])
    if is_list:
        return Connectivity(arrays[0], offsets)
    ids = np.empty(int(offsets[-1]), dtype)
    for values, width in zip(arrays, widths, strict=True):
        ids[_indices(offsets[:-1][sizes == width], width)] = values
    return Connectivity(ids, offsets)
