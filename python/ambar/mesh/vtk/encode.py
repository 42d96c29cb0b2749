"""Data sets and tables: their points, cells and arrays, described."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ambar.interop.vtk_arrays import type_name, values_of
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.storage.extents import POLY_CELLS, STRUCTURED, cell_shape, point_shape
from ambar.mesh.vtk.cells import describe_cells, is_new, polyhedron_faces
from ambar.mesh.vtk.fields import describe_fields
from ambar.mesh.vtk.information import information_of, numbers
from ambar.mesh.vtk.points import describe_points


def below(path: str, name: str) -> str:
    """Return the path of `name` below `path`, which is "" for the mesh itself."""
    return f"{path}/{name}" if path else name


def describe_dataset(mesh: Any, type_name: str, writer: ArrayWriter, path: str) -> dict[str, Any]:
    """Write the arrays of a data set, or a table, and return its description.

    Raises
    ------
    ValueError
        If cells refer to points that do not exist, or arrays have a wrong number of tuples.
    UnsupportedError
        If the values of an array cannot be stored.
    """
    if writer.reorder and type_name in _REORDERED:
        return _describe_reordered(mesh, type_name, writer, path)
    described: dict[str, Any] = {"type": type_name}
    described |= _GEOMETRY[type_name](mesh, writer, path)
    return described | _describe_arrays(mesh, described, writer, path)


def _describe_reordered(
    mesh: Any, type_name: str, writer: ArrayWriter, path: str
) -> dict[str, Any]:
    """Describe a data set with its cells sorted along a curve, in chunks to read alone."""
    from ambar.mesh.vtk.reordering import describe_order, reorder_cells

    unstructured = type_name == "UnstructuredGrid"
    types = _types_of(mesh, path) if unstructured else None
    kinds = {"cells": "Cells"} if unstructured else POLY_CELLS
    found = reorder_cells(mesh, kinds, types, path)
    with writer.chunk_rows(found.rows):
        described: dict[str, Any] = {"type": type_name}
        described |= _GEOMETRY[type_name](found.mesh, writer, path)
        described |= describe_order(found, described, writer, path)
        order = {"point_data": found.points, "cell_data": found.cells}
        return described | _describe_arrays(mesh, described, writer, path, order)


def _describe_arrays(
    mesh: Any,
    described: dict[str, Any],
    writer: ArrayWriter,
    path: str,
    order: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Write the arrays on points, cells and rows and in field data; return their lists."""
    type_name = described["type"]
    described = dict(described)
    grid = described.get("extent") if type_name in STRUCTURED else None
    if type_name == "Table":
        described["row_data"] = describe_fields(
            mesh.GetRowData(), writer, below(path, "row_data"), tuples=mesh.GetNumberOfRows()
        )
    else:
        for key, data, count, shape in (
            ("point_data", mesh.GetPointData(), mesh.GetNumberOfPoints(), point_shape(grid)),
            ("cell_data", mesh.GetCellData(), cells_in(mesh, described), cell_shape(grid)),
        ):
            described[key] = describe_fields(
                data,
                writer,
                below(path, key),
                tuples=count,
                grid=shape,
                flags=pyvista_flags(mesh, key),
                order=None if order is None else order[key],
            )
    return described | describe_object(mesh, writer, path)


def cells_in(mesh: Any, described: dict[str, Any]) -> int:
    """Return the number of cells; VTK does not set the extent of empty explicit grids."""
    if described["type"] == "ExplicitStructuredGrid" and "extent" not in described:
        return 0
    return int(mesh.GetNumberOfCells())


def describe_object(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    """Write what every VTK object has: field data, and information such as the time."""
    described: dict[str, Any] = {
        "field_data": describe_fields(mesh.GetFieldData(), writer, below(path, "field_data"))
    }
    info = information_of(mesh.GetInformation())
    if info:
        described["info"] = info
    return described


def pyvista_flags(mesh: Any, association: str) -> Callable[[str | None], str | None]:
    """Return a function that returns "bitarray" or "complex" for the name of an array.

    PyVista stores bools as bytes and complex numbers as pairs, and keeps the names of these arrays.
    """
    key = {"point_data": "POINT", "cell_data": "CELL"}[association]
    names: dict[str, str] = {}
    for flag in ("bitarray", "complex"):
        kept = getattr(mesh, f"_association_{flag}_names", None) or {}
        names.update(dict.fromkeys(kept.get(key, ()), flag))
    return lambda name: names.get(name) if name is not None else None


def _extent(mesh: Any) -> dict[str, Any]:
    return {"extent": [int(value) for value in mesh.GetExtent()]}


def _image(mesh: Any, _sink: ArrayWriter, _path: str) -> dict[str, Any]:
    described = _extent(mesh)
    described["origin"] = numbers(mesh.GetOrigin())
    described["spacing"] = numbers(mesh.GetSpacing())
    matrix = mesh.GetDirectionMatrix()
    direction = [matrix.GetElement(i, j) for i in range(3) for j in range(3)]
    if direction != [1, 0, 0, 0, 1, 0, 0, 0, 1] or any(
        math.copysign(1, value) < 0 for value in direction
    ):
        described["direction"] = numbers(direction)
    return described


def _rectilinear(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    described = _extent(mesh)
    for name in "xyz":
        array = getattr(mesh, f"Get{name.upper()}Coordinates")()
        described[name] = describe_axis(array, writer, below(path, name))
    return described


def describe_axis(array: Any, writer: ArrayWriter, path: str) -> dict[str, Any] | None:
    """Write the coordinates along an axis, and return their description."""
    if array is None:
        return None
    values = values_of(array, path)
    described: dict[str, Any] = {"name": array.GetName(), "type": type_name(array, values)}
    described = {key: value for key, value in described.items() if value is not None}
    return described | writer.put(path, values, role="points", dims=None)


def _structured(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    described = _extent(mesh)
    points = mesh.GetPoints()
    grid = point_shape(described["extent"])
    if points is not None and grid is not None and points.GetNumberOfPoints() != math.prod(grid):
        grid = None
    described["points"] = describe_points(points, writer, below(path, "points"), grid=grid)
    return described


def _explicit(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    if mesh.GetCells() is None or mesh.GetCells().GetNumberOfCells() == 0:
        return _points_only(mesh, writer, path)  # VTK does not set the extent of empty ones
    described = _extent(mesh)
    described["points"] = describe_points(mesh.GetPoints(), writer, below(path, "points"))
    described["cells"] = describe_cells(
        mesh.GetCells(), writer, below(path, "cells"), mesh.GetNumberOfPoints()
    )
    return described


def _points_only(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    return {"points": describe_points(mesh.GetPoints(), writer, below(path, "points"))}


def _poly(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    described = _points_only(mesh, writer, path)
    for name, vtk_name in POLY_CELLS.items():
        cells = describe_cells(
            getattr(mesh, f"Get{vtk_name}")(), writer, below(path, name), mesh.GetNumberOfPoints()
        )
        if cells is not None:
            described[name] = cells
    return described


def _unstructured(mesh: Any, writer: ArrayWriter, path: str) -> dict[str, Any]:
    count = mesh.GetNumberOfPoints()
    described: dict[str, Any] = {
        "points": describe_points(mesh.GetPoints(), writer, below(path, "points"), lattice=True)
    }
    if is_new(mesh.GetCells()):
        return described
    types = _types_of(mesh, path)
    where = below(path, "cells")
    has_one_type = bool(len(types)) and bool((types == types[0]).all())
    of_types = None if has_one_type else types
    described["cells"] = describe_cells(mesh.GetCells(), writer, where, count, types=of_types)
    if has_one_type:
        described["types"] = int(types[0])
    else:
        described["types"] = writer.put(below(path, "types"), types, role="types", dims=("cell",))
    faces = polyhedron_faces(mesh, below(path, "faces"))
    if faces is not None and faces.GetNumberOfCells():
        described["faces"] = describe_cells(faces, writer, below(path, "faces"), count)
        described["cell_faces"] = describe_cells(
            mesh.GetPolyhedronFaceLocations(),
            writer,
            below(path, "cell_faces"),
            faces.GetNumberOfCells(),
            "face",
        )
    return described


def _types_of(mesh: Any, path: str) -> np.ndarray:
    """Return the types of the cells. VTK before 9.6 returns the array from another method."""
    try:
        array = mesh.GetCellTypes()
    except TypeError:
        array = mesh.GetCellTypesArray()
    return values_of(array, path)


def _table(_mesh: Any, _sink: ArrayWriter, _path: str) -> dict[str, Any]:
    return {}


_REORDERED = ("PolyData", "UnstructuredGrid")
_GEOMETRY: dict[str, Callable[[Any, ArrayWriter, str], dict[str, Any]]] = {
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
DATASETS = tuple(_GEOMETRY)
"""The types that `describe_dataset` supports."""
