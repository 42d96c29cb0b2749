"""Arrays on points, cells or rows, or in field data, and their active attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from vtkmodules.vtkCommonDataModel import vtkDataSetAttributes

from ambar import _core
from ambar.interop.vtk_arrays import (
    array_of,
    component_names,
    name_components,
    type_name,
    values_of,
)
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_writer import ArrayWriter
from ambar.mesh.vtk.information import information_of, restore_information

ROLES = {
    vtkDataSetAttributes.GetAttributeTypeAsString(number): number
    for number in range(vtkDataSetAttributes.NUM_ATTRIBUTES)
}
"""VTK's attributes (Scalars, Vectors, GlobalIds, ...), and their numbers."""
_GRID_DIMS = ("z", "y", "x", "component")


def describe_fields(
    data: Any,
    writer: ArrayWriter,
    path: str,
    *,
    tuples: int | None = None,
    grid: Sequence[int] | None = None,
    pyvista_types: Mapping[str, str] | None = None,
    order: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Write all arrays of a vtkFieldData, and return their descriptions.

    Parameters
    ----------
    data : vtkFieldData
        The arrays.
    writer : ArrayWriter
        Writes the arrays.
    path : str
        The path of the arrays.
    tuples : int, optional
        The number of tuples that each array must have.
    grid : sequence of int, optional
        The shape (z, y, x) of the grid of the values.
    pyvista_types : mapping, optional
        The PyVista types of arrays, "complex" or "bitarray", by their names.
    order : ndarray, optional
        The indices of the tuples to store, in this order; all by default.

    Raises
    ------
    ValueError
        If an array has another number of tuples.
    UnsupportedError
        If the values of an array cannot be stored.
    """
    attributes = {}
    if isinstance(data, vtkDataSetAttributes):
        attributes = {role: data.GetAbstractAttribute(number) for role, number in ROLES.items()}
    described = []
    for index in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(index)
        name = array.GetName()
        where = f"/{path} array {name!r}"
        values = values_of(array, where)
        if tuples is not None and len(values) != tuples:
            raise _core.InvalidError(
                f"{where} has {len(values)} tuples, the mesh {tuples}: remove the array, or give "
                "it a tuple for each"
            )
        if order is not None:
            if order.max(initial=-1) >= len(values):
                raise _core.InvalidError(
                    f"{where} has {len(values)} tuples, the trees refer to tuple {order.max()}: "
                    "remove the array, or give it a tuple for each"
                )
            values = values[order]
        extras = {
            "components": component_names(array),
            "active": [role for role, active in attributes.items() if active is array] or None,
            "info": information_of(array.GetInformation()) if array.HasInformation() else None,
            "pyvista": (pyvista_types or {}).get(name),
        }
        entry = {"name": name, **about_array(array, values, name)}
        entry.update((key, value) for key, value in extras.items() if value is not None)
        dims = None
        if grid is not None and values.size:
            values = values.reshape((*grid, *values.shape[1:]))
            dims = _GRID_DIMS[: values.ndim]
        described.append(entry | writer.put_field(f"{path}/{index}", values, dims, name or ""))
    return described


def about_array(array: Any, values: np.ndarray, name: str | None) -> dict[str, Any]:
    """Return type and name of a VTK array, unless they are the type of its values and `name`."""
    about = {"type": type_name(array, values)} if type_name(array, values) is not None else {}
    return about | ({"name": array.GetName()} if array.GetName() != name else {})


def named_array(values: np.ndarray, about: Mapping[str, Any], name: str | None) -> Any:
    """Return a VTK array of values, with the type and name that `about_array` returned."""
    array = array_of(values, about.get("type"))
    array.SetName(about.get("name", name))
    return array


def restore_fields(
    data: Any,
    entries: Any,
    reader: ArrayReader,
    what: str,
    *,
    tuples: int | None = None,
    grid: Sequence[int] | None = None,
) -> None:
    """Add the described arrays to a vtkFieldData.

    Raises CorruptError if an array has another number of tuples, or not the shape of its grid.
    """
    for entry in entries or ():
        name = entry["name"]
        where = f"{what} {name!r}"
        values = reader.get(entry, where, ndim=(1, 2, 3, 4))
        if values.ndim > 2:
            if grid is None or values.shape[:3] != tuple(grid):
                raise reader.damaged(f"{where} has shape {values.shape}, its grid {grid}")
            values = values.reshape(-1, *values.shape[3:])
        if tuples is not None and len(values) != tuples:
            raise reader.damaged(f"{where} has {len(values)} tuples, not {tuples}")
        if values.ndim == 2 and values.shape[1] == 0:
            raise reader.damaged(f"{where} has no components")
        array = named_array(values, entry, name)
        index = data.AddArray(array)
        names = entry.get("components")
        if isinstance(names, list) and len(names) <= array.GetNumberOfComponents():
            name_components(array, names)
        if entry.get("info"):
            restore_information(array.GetInformation(), entry["info"])
        for role in entry.get("active", ()) if isinstance(data, vtkDataSetAttributes) else ():
            if role in ROLES:
                data.SetActiveAttribute(index, ROLES[role])
