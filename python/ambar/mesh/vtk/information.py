"""Information that VTK keeps beside data in a vtkInformation: units, names, the time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from vtkmodules.vtkCommonCore import vtkInformationIterator, vtkInformationKeyLookup

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
