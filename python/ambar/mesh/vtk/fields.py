"""Points, arrays on points, cells or rows and in field data, and the information on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkInformationIterator, vtkInformationKeyLookup, vtkPoints
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
from ambar.mesh.storage.extents import lattice_points
from ambar.mesh.storage.references import Description

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
        is_complex = extras["pyvista"] == "complex"
        place = f"{path}/{index}"
        entry |= writer.put_field(place, values, dims, name or "", is_complex=is_complex)
        described.append(entry)
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


# How the names of keys begin whose values VTK computes from the data, and those of the pipeline.
_CACHES = (
    *("L2_NORM", "COMPONENT_RANGE", "PER_COMPONENT", "PER_FINITE_COMPONENT", "DISCRETE_VALUE"),
    *("DATA_EXTENT_TYPE", "DATA_PIECE_NUMBER", "DATA_NUMBER_OF"),
)
_VALUES: dict[str, Callable[[Any], Any]] = {
    "String": str,
    "Double": float,
    "Integer": int,
    "IdType": int,
    "UnsignedLong": int,
}


def information_of(information: Any) -> list[list[Any]] | None:
    """Return the entries of a vtkInformation as lists [location, name, value]; None if it is empty.

    Only numbers, strings and lists of these are returned, and no computed values.
    """
    if information is None or information.GetNumberOfKeys() == 0:
        return None
    found = []
    walk = vtkInformationIterator()
    walk.SetInformation(information)
    walk.InitTraversal()
    while not walk.IsDoneWithTraversal():
        key = walk.GetCurrentKey()
        convert, is_list = _kind_of(key)
        if convert is not None and not key.GetName().startswith(_CACHES):
            if is_list:
                value = [_plain(information.Get(key, i)) for i in range(information.Length(key))]
            else:
                value = _plain(information.Get(key))
            found.append([key.GetLocation(), key.GetName(), value])
        walk.GoToNextItem()
    return sorted(found, key=lambda entry: entry[:2]) or None


def restore_information(information: Any, entries: list[list[Any]]) -> None:
    """Set the entries that `information_of` returned; keys that VTK does not know are ignored."""
    for location, name, value in entries:
        key = vtkInformationKeyLookup.Find(str(name), str(location))
        convert, is_list = _kind_of(key)
        if convert is not None and is_list:
            for item in value:
                information.Append(key, convert(item))
        elif convert is not None:
            information.Set(key, convert(value))


def _kind_of(key: Any) -> tuple[Callable[[Any], Any] | None, bool]:
    """Return the type of the values of a key, None for objects, and whether it has several."""
    kind = type(key).__name__.removeprefix("vtkInformation").removesuffix("Key")
    return _VALUES.get(kind.removesuffix("Vector")), kind.endswith("Vector")


def _plain(value: Any) -> Any:
    """Return NaN and infinities as strings, which JSON lacks and `float` reads."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def numbers(values: Any) -> list[float | str]:
    """Return floats for JSON; those that are not finite are strings."""
    return [_plain(float(value)) for value in values]


_LATTICE_ABOVE = 64
"""Number of points up to which a lattice is not detected."""


def describe_points(
    points: Any, writer: ArrayWriter, path: str, *, lattice: bool = False, grid: Any = None
) -> Description | None:
    """Write the coordinates of a vtkPoints, and return their description.

    Parameters
    ----------
    points : vtkPoints or None
        The points.
    writer : ArrayWriter
        Writes the arrays.
    path : str
        The path of the arrays.
    lattice : bool, default False
        Whether to detect a lattice.
    grid : tuple of int, optional
        The shape (z, y, x) of the structured grid that the points form.
    """
    if points is None:
        return None
    array = points.GetData()
    values = values_of(array, path)
    described = about_array(array, values, "Points")
    axes = _axes(values) if lattice and len(values) > _LATTICE_ABOVE else None
    if axes is not None:
        references = [
            writer.put(f"{path}/{name}", axis, role="points", dims=(name,))
            for name, axis in zip("xyz", axes, strict=True)
        ]
        return described | {"lattice": references}
    dims: tuple[str, ...] = ("point", "xyz")
    if grid is not None and values.size:
        values, dims = values.reshape(*grid, 3), ("z", "y", "x", "xyz")
    return described | writer.put(path, values, role="points", dims=dims)


def points_of(described: Any, reader: ArrayReader, most: int) -> Any:
    """Return the vtkPoints of a description.

    Raises CorruptError if the points are not three coordinates each, or if a lattice has more than
    `most` points.
    """
    if "lattice" in described:
        values = read_lattice(described["lattice"], reader, most)
    else:
        values = read_points(described, reader)
    return vtk_points(values, described)


def vtk_points(values: np.ndarray, about: Mapping[str, Any]) -> Any:
    """Return a vtkPoints with these coordinates, of the type and name that `about` has."""
    points = vtkPoints()
    points.SetData(named_array(values, about, "Points"))
    return points


def read_points(described: Any, reader: ArrayReader) -> np.ndarray:
    """Return coordinates (points, 3); raises CorruptError if there are not three of each point."""
    values = reader.get(described, "points", ndim=(2, 4), kinds="iuf")
    if values.shape[-1] != 3:
        raise reader.damaged(f"points have shape {values.shape}")
    return values.reshape(-1, 3)


def _axes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the axes of the lattice that points form bit for bit, x fastest; else None."""
    bits = values.view(f"u{values.itemsize}")
    row = _run_length(bits[:, 1:], 1, len(bits))
    layer = _run_length(bits[:, 2:], row, len(bits))
    if len(bits) % layer or layer % row or row + layer // row + len(bits) // layer > len(bits) // 4:
        return None
    grid = bits.reshape(-1, layer // row, row, 3)
    x, y, z = grid[0, 0, :, 0], grid[0, :, 0, 1], grid[:, 0, 0, 2]
    for number, layer_bits in enumerate(grid):
        if not (
            (layer_bits[:, :, 2] == z[number]).all()
            and (layer_bits[:, :, 1] == y[:, None]).all()
            and (layer_bits[:, :, 0] == x).all()
        ):
            return None
    ax, ay, az = (np.ascontiguousarray(axis).view(values.dtype) for axis in (x, y, z))
    return ax, ay, az


def _run_length(bits: np.ndarray, step: int, count: int) -> int:
    """Return how many points from the first on have equal `bits`, compared in steps of `step`."""
    stop = step
    while stop < count:
        stop = min(2 * stop, count)
        differs = (bits[:stop:step] != bits[0]).any(axis=1)
        if differs.any():
            return int(differs.argmax()) * step
    return count


def read_lattice(axes: Any, reader: ArrayReader, most: int) -> np.ndarray:
    """Return the points (points, 3) of a lattice; raises CorruptError above `most` points."""
    if not isinstance(axes, list) or len(axes) != 3:
        raise reader.damaged("points: expected three axes of a lattice")
    x, y, z = (reader.get(axis, "axis of points", ndim=(1,), kinds="iuf") for axis in axes)
    count = len(x) * len(y) * len(z)
    if count > most or not x.dtype == y.dtype == z.dtype:
        raise reader.damaged(f"points: expected a lattice of at most {most} points, found {count}")
    return lattice_points(x, y, z)
