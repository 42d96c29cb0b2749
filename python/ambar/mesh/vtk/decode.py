"""Data sets and tables, built from their descriptions."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from vtkmodules import vtkCommonDataModel

from ambar import _core
from ambar.interop.vtk_arrays import array_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.extents import POLY_CELLS, STRUCTURED, cell_shape, corner_count, point_shape
from ambar.mesh.vtk.cells import cells_of
from ambar.mesh.vtk.encode import cells_in
from ambar.mesh.vtk.fields import restore_fields
from ambar.mesh.vtk.information import restore_information
from ambar.mesh.vtk.points import points_of

_LARGEST = 2**31 - 2


def new(type_name: str) -> Any:
    """Return an empty VTK object of a type, without its prefix vtk."""
    return getattr(vtkCommonDataModel, f"vtk{type_name}")()


def build_dataset(described: dict[str, Any], reader: ArrayReader, what: str) -> Any:
    """Return the data set, or table, of a description.

    Raises CorruptError if the description or an array is damaged.
    """
    type_name = described["type"]
    mesh = new(type_name)
    _GEOMETRY[type_name](mesh, described, reader, what)
    if type_name == "Table":
        columns = described.get("row_data") or []
        rows = reader.shape_of(columns[0])[0] if columns else 0
        restore_fields(mesh.GetRowData(), columns, reader, f"{what}row data", tuples=rows)
    else:
        extent = described.get("extent") if type_name in STRUCTURED else None
        cells = cells_in(mesh, described)
        for key, data, count, shape in (
            ("point_data", mesh.GetPointData(), mesh.GetNumberOfPoints(), point_shape(extent)),
            ("cell_data", mesh.GetCellData(), cells, cell_shape(extent)),
        ):
            where = f"{what}{key.replace('_', ' ')}"
            restore_fields(data, described.get(key), reader, where, tuples=count, grid=shape)
    restore_object(mesh, described, reader, what)
    return mesh


def restore_object(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    """Set the field data and the information of an object."""
    restore_fields(mesh.GetFieldData(), described.get("field_data"), reader, f"{what}field data")
    restore_information(mesh.GetInformation(), described.get("info") or [])


def integers(value: Any, count: int, reader: ArrayReader, what: str) -> list[int]:
    """Return a list of `count` integers that fit into VTK's int; else raise CorruptError."""
    if (
        not isinstance(value, list)
        or len(value) != count
        or not all(type(n) is int and abs(n) <= _LARGEST for n in value)
    ):
        raise reader.damaged(f"{what} is {value!r:.80}, not {count} integers")
    return value


def floats(value: Any, count: int, reader: ArrayReader, what: str) -> list[float]:
    """Return a list of `count` floats; else raise CorruptError."""
    if isinstance(value, list) and len(value) == count:
        with contextlib.suppress(TypeError, ValueError):
            return [float(item) for item in value]
    raise reader.damaged(f"{what} is {value!r:.80}, not {count} numbers")


def extent_of(described: dict[str, Any], reader: ArrayReader, what: str) -> list[int]:
    """Return the extent of a grid; raises CorruptError if it is damaged."""
    extent = integers(described.get("extent"), 6, reader, f"{what}extent")
    if math.prod(point_shape(extent) or (0,)) > 2**62:
        raise reader.damaged(f"{what}extent {extent} has too many points")
    return extent


def _set_extent(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> list[int]:
    extent = extent_of(described, reader, what)
    mesh.SetExtent(extent)
    return extent


def _image(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    _set_extent(mesh, described, reader, what)
    mesh.SetOrigin(floats(described.get("origin"), 3, reader, f"{what}origin"))
    mesh.SetSpacing(floats(described.get("spacing"), 3, reader, f"{what}spacing"))
    if "direction" in described:
        mesh.SetDirectionMatrix(floats(described["direction"], 9, reader, f"{what}direction"))


def _rectilinear(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    extent = _set_extent(mesh, described, reader, what)
    for axis, name in enumerate("xyz"):
        array = axis_of(described.get(name), reader, f"{what}{name} coordinates")
        most = extent[2 * axis + 1] - extent[2 * axis] + 1
        if point_shape(extent) and (array is None or array.GetNumberOfTuples() != most):
            raise reader.damaged(f"{what}{name} coordinates are not {most}")
        getattr(mesh, f"Set{name.upper()}Coordinates")(array)


def axis_of(described: Any, reader: ArrayReader, what: str) -> Any:
    """Return the array of the coordinates along an axis; None for None."""
    if described is None:
        return None
    values = reader.get(described, what, ndim=(1,), kinds="iuf")
    array = array_of(values, described.get("type"))
    name = described.get("name")
    if isinstance(name, str):
        array.SetName(name)
    return array


def _points(
    mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str, most: int = 0
) -> int:
    """Set the points of the mesh, and return their number."""
    if described.get("points") is None:
        return 0
    points = points_of(described["points"], reader, f"{what}points", most)
    mesh.SetPoints(points)
    return int(points.GetNumberOfPoints())


def _structured(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    extent = _set_extent(mesh, described, reader, what)
    count = _points(mesh, described, reader, what)
    expected = math.prod(point_shape(extent) or (0,))
    if described.get("points") is not None and count != expected:
        raise reader.damaged(f"{what}points are {count}, the extent has {expected}")


def _explicit(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    count = _points(mesh, described, reader, what)
    if "extent" not in described:
        mesh.SetExtent(0, -1, 0, -1, 0, -1)
        return
    extent = _set_extent(mesh, described, reader, what)
    cells = cells_of(described.get("cells"), reader, f"{what}cells", count)
    expected = math.prod(max(0, extent[2 * i + 1] - extent[2 * i]) for i in range(3))
    if cells.GetNumberOfCells() != expected or cells.GetMaxCellSize() != 8:
        raise reader.damaged(f"{what}cells are not the {expected} hexahedra of the extent")
    mesh.SetCells(cells)


def _points_only(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    _points(mesh, described, reader, what)


def _poly(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    count = _points(mesh, described, reader, what)
    for name, vtk_name in POLY_CELLS.items():
        if name in described:
            cells = cells_of(described[name], reader, f"{what}{name}", count)
            getattr(mesh, f"Set{vtk_name}")(cells)


def _unstructured(mesh: Any, described: dict[str, Any], reader: ArrayReader, what: str) -> None:
    corners = described.get("cells")
    count = _points(mesh, described, reader, what, corner_count(corners, reader))
    if corners is None:
        return
    common_type, types = described.get("types"), None
    if isinstance(common_type, dict):
        types = reader.get(common_type, f"{what}types", ndim=(1,), kinds="u")
    elif type(common_type) is not int or not 0 <= common_type < 256:
        raise reader.damaged(f"{what}types are {common_type!r:.80}")
    cells = cells_of(corners, reader, f"{what}cells", count, types)
    if types is None:
        types = np.full(cells.GetNumberOfCells(), common_type, np.uint8)
    if types.dtype != np.uint8:
        raise reader.damaged(f"{what}types have dtype {types.dtype}")
    if len(types) != cells.GetNumberOfCells():
        raise reader.damaged(f"{what}types are {len(types)}, cells {cells.GetNumberOfCells()}")
    faces = of_cells = None
    if "faces" in described:
        faces = cells_of(described["faces"], reader, f"{what}faces", count)
        where = f"{what}faces of cells"
        of_cells = cells_of(described["cell_faces"], reader, where, faces.GetNumberOfCells())
        if of_cells.GetNumberOfCells() != len(types):
            raise reader.damaged(
                f"{what}faces are of {of_cells.GetNumberOfCells()} cells, not {len(types)}"
            )
    _set_cells(mesh, array_of(types), cells, of_cells, faces)


def _set_cells(mesh: Any, types: Any, cells: Any, of_cells: Any, faces: Any) -> None:
    """Set the cells; polyhedra of VTK before 9.4 have another layout."""
    if hasattr(mesh, "SetPolyhedralCells"):
        # SetCells would search all cells for polyhedra.
        mesh.SetPolyhedralCells(types, cells, of_cells, faces)
    elif faces is None:
        mesh.SetCells(types, cells)
    else:
        raise _core.UnsupportedError("polyhedra are read with VTK 9.4 or newer")


def _table(_mesh: Any, _described: dict[str, Any], _reader: ArrayReader, _what: str) -> None:
    return


_GEOMETRY: dict[str, Callable[[Any, dict[str, Any], ArrayReader, str], None]] = {
    "ImageData": _image,
    "UniformGrid": _image,
    "StructuredPoints": _image,
    "RectilinearGrid": _rectilinear,
    "StructuredGrid": _structured,
    "ExplicitStructuredGrid": _explicit,
    "PolyData": _poly,
    "UnstructuredGrid": _unstructured,
    "PointSet": _points_only,
    "Table": _table,
}
