"""Data sets and tables: described, with their arrays written, and built from descriptions."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from vtkmodules import vtkCommonDataModel

from ambar import _core
from ambar.interop.vtk_arrays import array_of, values_of
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.extents import POLY_CELLS, STRUCTURED, cell_shape, corner_count, point_shape
from ambar.mesh.storage.references import Description
from ambar.mesh.vtk.cells import (
    cells_of,
    describe_cells,
    is_new,
    polyhedron_faces,
    types_of,
)
from ambar.mesh.vtk.fields import (
    about_array,
    describe_fields,
    describe_points,
    information_of,
    named_array,
    numbers,
    points_of,
    restore_fields,
    restore_information,
)
from ambar.mesh.vtk.pyvista_wrapping import pyvista_types
from ambar.mesh.vtk.reordering import describe_order, reorder_cells

_LARGEST_INT_OF_VTK = 2**31 - 2
_REORDERED = ("PolyData", "UnstructuredGrid")


def below(path: str, name: str) -> str:
    """Return the path of `name` below `path`, which is "" for the mesh itself."""
    return f"{path}/{name}" if path else name


def new(type_name: str) -> Any:
    """Return an empty VTK object of a type, without its prefix vtk."""
    return getattr(vtkCommonDataModel, f"vtk{type_name}")()


def describe_dataset(mesh: Any, type_name: str, writer: ArrayWriter, path: str) -> Description:
    """Write the arrays of a data set, or a table, and return its description.

    Raises
    ------
    ValueError
        If cells refer to points that do not exist, or arrays have a wrong number of tuples.
    UnsupportedError
        If the values of an array cannot be stored.
    """
    describe, described = _GEOMETRY[type_name][0], {"type": type_name}
    if not (writer.reorder and type_name in _REORDERED):
        described |= describe(mesh, writer, path)
        return described | _describe_arrays(mesh, described, writer, path, {})
    found = reorder_cells(mesh, path)
    with writer.chunk_rows(found.rows):
        described |= describe(found.mesh, writer, path)
        described |= describe_order(found, described, writer, path)
        order = {"point_data": found.points, "cell_data": found.cells}
        return described | _describe_arrays(mesh, described, writer, path, order)


def _describe_arrays(
    mesh: Any,
    described: Description,
    writer: ArrayWriter,
    path: str,
    order: Mapping[str, np.ndarray],
) -> Description:
    """Write the arrays on points, cells and rows and in field data; return their lists."""
    lists = {
        key: describe_fields(
            data,
            writer,
            below(path, key),
            tuples=tuples,
            grid=grid,
            pyvista_types=pyvista_types(mesh, key),
            order=order.get(key),
        )
        for key, data, tuples, grid in _lists_of(mesh, described)
    }
    lists = {key: entries for key, entries in lists.items() if entries}
    return lists | describe_object(mesh, writer, path)


def _lists_of(
    mesh: Any, described: Description
) -> Iterator[tuple[str, Any, int, tuple[int, int, int] | None]]:
    """Yield key, arrays, number of tuples and shape of the grid of each list of arrays."""
    if described["type"] == "Table":
        yield "row_data", mesh.GetRowData(), mesh.GetNumberOfRows(), None
        return
    extent = described.get("extent")
    grid = extent if described["type"] in STRUCTURED else None
    # VTK does not set the extent of empty explicit grids.
    is_empty = described["type"] == "ExplicitStructuredGrid" and extent is None
    cells = 0 if is_empty else mesh.GetNumberOfCells()
    yield "point_data", mesh.GetPointData(), mesh.GetNumberOfPoints(), point_shape(grid)
    yield "cell_data", mesh.GetCellData(), cells, cell_shape(grid)


def describe_object(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    """Write what every VTK object has: field data, and information such as the time."""
    described: Description = {
        "field_data": describe_fields(
            mesh.GetFieldData(),
            writer,
            below(path, "field_data"),
            pyvista_types=pyvista_types(mesh, "field_data"),
        ),
        "info": information_of(mesh.GetInformation()),
    }
    return {key: value for key, value in described.items() if value}


def build_dataset(described: Description, reader: ArrayReader) -> Any:
    """Return the data set, or table, of a description.

    Raises CorruptError if the description or an array is damaged.
    """
    mesh = new(described["type"])
    _GEOMETRY[described["type"]][1](mesh, described, reader)
    for key, data, count, grid in _lists_of(mesh, described):
        entries, tuples = described.get(key) or [], count
        if key == "row_data" and entries:
            tuples = reader.shape_of(entries[0])[0]
        restore_fields(data, entries, reader, key.replace("_", " "), tuples=tuples, grid=grid)
    restore_object(mesh, described, reader)
    return mesh


def restore_object(mesh: Any, described: Description, reader: ArrayReader) -> None:
    """Set the field data and the information of an object."""
    restore_fields(mesh.GetFieldData(), described.get("field_data"), reader, "field data")
    restore_information(mesh.GetInformation(), described.get("info") or [])


def integers(value: Any, count: int, reader: ArrayReader, what: str) -> list[int]:
    """Return a list of `count` integers that fit into VTK's int; else raise CorruptError."""
    is_list = isinstance(value, list) and len(value) == count
    if not is_list or not all(type(n) is int and abs(n) <= _LARGEST_INT_OF_VTK for n in value):
        raise reader.damaged(f"{what} is {value!r:.80}, not {count} integers")
    return list(value)


def floats(value: Any, count: int, reader: ArrayReader, what: str) -> list[float]:
    """Return a list of `count` floats; else raise CorruptError."""
    if isinstance(value, list) and len(value) == count:
        with contextlib.suppress(TypeError, ValueError):
            return [float(item) for item in value]
    raise reader.damaged(f"{what} is {value!r:.80}, not {count} numbers")


def extent_of(described: Description, reader: ArrayReader) -> list[int]:
    """Return the extent of a grid; raises CorruptError if it is damaged."""
    extent = integers(described.get("extent"), 6, reader, "extent")
    if not _has_counts(extent):
        raise reader.damaged(f"extent {extent} has a number of points that VTK does not support")
    if math.prod(point_shape(extent) or (0,)) > 2**62:
        raise reader.damaged(f"extent {extent} has too many points")
    return extent


def _has_counts(extent: list[int]) -> bool:
    """Return whether the number of points in each direction is a C int that is not negative.

    VTK before 9.6 aborts the process where an image has another extent.
    """
    return all(0 <= extent[2 * i + 1] - extent[2 * i] + 1 <= 2**31 - 1 for i in range(3))


def _describe_extent(mesh: Any, path: str) -> Description:
    extent = [int(value) for value in mesh.GetExtent()]
    if not _has_counts(extent):
        raise _core.InvalidError(
            f"/{path}: extent {extent} has a number of points that VTK does not support; "
            "an empty extent is [0, -1, 0, -1, 0, -1]"
        )
    return {"extent": extent}


def _describe_image(mesh: Any, _writer: ArrayWriter, path: str) -> Description:
    described = _describe_extent(mesh, path)
    described["origin"] = numbers(mesh.GetOrigin())
    described["spacing"] = numbers(mesh.GetSpacing())
    direction = numbers(mesh.GetDirectionMatrix().GetData())
    if repr(direction) != repr(numbers(np.eye(3).flat)):  # -0.0 is not 0.0
        described["direction"] = direction
    return described


def _build_image(mesh: Any, described: Description, reader: ArrayReader) -> None:
    mesh.SetExtent(extent_of(described, reader))
    mesh.SetOrigin(floats(described.get("origin"), 3, reader, "origin"))
    mesh.SetSpacing(floats(described.get("spacing"), 3, reader, "spacing"))
    if "direction" in described:
        mesh.SetDirectionMatrix(floats(described["direction"], 9, reader, "direction"))


def describe_axes(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    """Write the coordinates along x, y and z, and return their descriptions."""
    described: Description = {}
    for name in "xyz":
        array = getattr(mesh, f"Get{name.upper()}Coordinates")()
        described[name] = None
        if array is not None:
            where = below(path, name)
            values = values_of(array, where)
            about = about_array(array, values, None)
            described[name] = about | writer.put(where, values, role="points")
    return described


def build_axes(
    mesh: Any, described: Description, reader: ArrayReader, counts: tuple[int, ...] | None
) -> None:
    """Set the coordinates along x, y and z; those of an empty grid may have any number.

    Raises CorruptError if there are not `counts` coordinates.
    """
    for axis, name in enumerate("xyz"):
        about, array, count = described.get(name), None, 0
        if about is not None:
            values = reader.get(about, f"{name} coordinates", ndim=(1,), kinds="iuf")
            array, count = named_array(values, about, None), len(values)
        if counts and count != counts[axis]:
            raise reader.damaged(f"{name} coordinates are not {counts[axis]}")
        getattr(mesh, f"Set{name.upper()}Coordinates")(array)


def _describe_rectilinear(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    return _describe_extent(mesh, path) | describe_axes(mesh, writer, path)


def _build_rectilinear(mesh: Any, described: Description, reader: ArrayReader) -> None:
    extent = extent_of(described, reader)
    mesh.SetExtent(extent)
    shape = point_shape(extent)
    build_axes(mesh, described, reader, None if shape is None else shape[::-1])


def _describe_points(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    return {"points": describe_points(mesh.GetPoints(), writer, below(path, "points"))}


def _build_points(mesh: Any, described: Description, reader: ArrayReader, most: int = 0) -> int:
    """Set the points of the mesh, and return their number."""
    if described.get("points") is None:
        return 0
    points = points_of(described["points"], reader, most)
    mesh.SetPoints(points)
    return int(points.GetNumberOfPoints())


def _describe_structured(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    described = _describe_extent(mesh, path)
    points, grid = mesh.GetPoints(), point_shape(described["extent"])
    if points is not None and grid is not None and points.GetNumberOfPoints() != math.prod(grid):
        grid = None
    described["points"] = describe_points(points, writer, below(path, "points"), grid=grid)
    return described


def _build_structured(mesh: Any, described: Description, reader: ArrayReader) -> None:
    extent = extent_of(described, reader)
    mesh.SetExtent(extent)
    count = _build_points(mesh, described, reader)
    expected = math.prod(point_shape(extent) or (0,))
    if described.get("points") is not None and count != expected:
        raise reader.damaged(f"points are {count}, the extent has {expected}")


def _describe_explicit(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    described = _describe_points(mesh, writer, path)
    cells, count = mesh.GetCells(), mesh.GetNumberOfPoints()
    if cells is not None and cells.GetNumberOfCells():
        described |= _describe_extent(mesh, path)
        described["cells"] = describe_cells(cells, writer, below(path, "cells"), count)
    return described


def _build_explicit(mesh: Any, described: Description, reader: ArrayReader) -> None:
    count = _build_points(mesh, described, reader)
    if "extent" not in described:
        mesh.SetExtent(0, -1, 0, -1, 0, -1)
        return
    extent = extent_of(described, reader)
    mesh.SetExtent(extent)
    cells = cells_of(described.get("cells"), reader, "cells", count)
    expected = math.prod(max(0, extent[2 * i + 1] - extent[2 * i]) for i in range(3))
    if cells.GetNumberOfCells() != expected or cells.GetMaxCellSize() != 8:
        raise reader.damaged(f"cells are not the {expected} hexahedra of the extent")
    mesh.SetCells(cells)


def _describe_poly(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    described, count = _describe_points(mesh, writer, path), mesh.GetNumberOfPoints()
    for name, vtk_name in POLY_CELLS.items():
        array = getattr(mesh, f"Get{vtk_name}")()
        if not is_new(array):
            described[name] = describe_cells(array, writer, below(path, name), count)
    return described


def _build_poly(mesh: Any, described: Description, reader: ArrayReader) -> None:
    count = _build_points(mesh, described, reader)
    for name, vtk_name in POLY_CELLS.items():
        if name in described:
            getattr(mesh, f"Set{vtk_name}")(cells_of(described[name], reader, name, count))


def _describe_unstructured(mesh: Any, writer: ArrayWriter, path: str) -> Description:
    points, count = mesh.GetPoints(), mesh.GetNumberOfPoints()
    described: Description = {
        "points": describe_points(points, writer, below(path, "points"), lattice=True)
    }
    if is_new(mesh.GetCells()):
        return described
    types, where = types_of(mesh, path), below(path, "cells")
    if len(types) and (types == types[0]).all():
        described["cells"] = describe_cells(mesh.GetCells(), writer, where, count)
        described["types"] = int(types[0])
    else:
        described["cells"] = describe_cells(mesh.GetCells(), writer, where, count, types=types)
        described["types"] = writer.put(below(path, "types"), types, role="types", dims=("cell",))
    if faces := polyhedron_faces(mesh):
        described["faces"] = describe_cells(faces, writer, below(path, "faces"), count)
        of_cells, count = mesh.GetPolyhedronFaceLocations(), faces.GetNumberOfCells()
        where = below(path, "cell_faces")
        described["cell_faces"] = describe_cells(of_cells, writer, where, count, "face")
    return described


def _build_unstructured(mesh: Any, described: Description, reader: ArrayReader) -> None:
    corners, types = described.get("cells"), described.get("types")
    count = _build_points(mesh, described, reader, corner_count(corners, reader))
    if corners is None:
        return
    if isinstance(types, dict):
        types = reader.get(types, "types", ndim=(1,), kinds="u")
        cells = cells_of(corners, reader, "cells", count, types)
    elif type(types) is int and 0 <= types < 256:
        cells = cells_of(corners, reader, "cells", count)
        types = np.full(cells.GetNumberOfCells(), types, np.uint8)
    else:
        raise reader.damaged(f"types are {types!r:.80}")
    if types.dtype != np.uint8 or len(types) != cells.GetNumberOfCells():
        raise reader.damaged(
            f"types are {len(types)} of {types.dtype}, cells {cells.GetNumberOfCells()}"
        )
    if "faces" not in described:
        mesh.SetCells(array_of(types), cells)  # also in VTK 9.2, as in ParaView 5.11
        return
    faces = cells_of(described["faces"], reader, "faces", count)
    about, count = described["cell_faces"], faces.GetNumberOfCells()
    of_cells = cells_of(about, reader, "faces of cells", count)
    if of_cells.GetNumberOfCells() != len(types):
        count = of_cells.GetNumberOfCells()
        raise reader.damaged(f"faces are of {count} cells, not {len(types)}")
    mesh.SetPolyhedralCells(array_of(types), cells, of_cells, faces)


_IMAGE = (_describe_image, _build_image)
_GEOMETRY: dict[
    str,
    tuple[
        Callable[[Any, ArrayWriter, str], Description],
        Callable[[Any, Description, ArrayReader], object],
    ],
] = {
    "ImageData": _IMAGE,
    "UniformGrid": _IMAGE,
    "StructuredPoints": _IMAGE,
    "RectilinearGrid": (_describe_rectilinear, _build_rectilinear),
    "StructuredGrid": (_describe_structured, _build_structured),
    "ExplicitStructuredGrid": (_describe_explicit, _build_explicit),
    "PolyData": (_describe_poly, _build_poly),
    "UnstructuredGrid": (_describe_unstructured, _build_unstructured),
    "PointSet": (_describe_points, _build_points),
    "Table": (lambda *_: {}, lambda *_: None),
}
"""The functions that describe and set the geometry of each type."""
DATASETS = tuple(_GEOMETRY)
"""The types that `describe_dataset` supports."""
